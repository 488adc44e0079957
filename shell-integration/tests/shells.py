"""The table of shells in which a fact holds: each shell's words for the same thing, and what it says itself."""

from dataclasses import dataclass

from rig import BASH, FISH, FISH_SCRIPT, HAS_BUILTINS, SCRIPT, ZSH, ZSH_SCRIPT, Fish, Zsh, same
from rig import Shell as Bash


@dataclass(frozen=True)
class Words:
    """The words of a shell."""

    program: str
    script: str
    # A command of the shell that ends with a code.
    exit: str
    status: str
    statuses: str
    pid: str
    kill_jobs: str
    # The file of the user's own, as an argument of the rig.
    config: str
    # The code and the flags of a text that is wrong, and of one that is incomplete.
    wrong: int
    incomplete: int
    ask: str
    # It asks with the line editor.
    edit: str
    vi: str
    emacs: str


WORDS = {
    Bash: Words(
        BASH, SCRIPT, "(exit {})", "$?", "${PIPESTATUS[@]}", "$$", "kill -9 $(jobs -p); wait", "bashrc", 2, 2,
        "read -p 'name? ' n; echo got:$n", "read -e -p 'name? ' n; echo got:$n", "set -o vi", "set -o emacs",
    ),
    Zsh: Words(
        ZSH, ZSH_SCRIPT, "(exit {})", "$?", "${pipestatus[@]}", "$$", "kill -9 %${(k)^jobstates}; wait", "zshrc", 1, 1,
        "read 'n?name? '; echo got:$n", "n=; vared -p 'name? ' n; echo got:$n", "bindkey -v", "bindkey -e",
    ),
    Fish: Words(
        FISH, FISH_SCRIPT, "sh -c 'exit {}'", "$status", "$pipestatus", "$fish_pid", "kill -9 (jobs -p)", "config", 123, 123,
        "read -P 'name? ' n; echo got:$n", "read -P 'name? ' n; echo got:$n", "fish_vi_key_bindings", "fish_default_key_bindings",
    ),
}
ALL = tuple(WORDS)


def in_each(*shells):
    """One test for several shells, which gets the shell and its words; a failure names its shell.

    Where bash has no builtins, a test runs for bash alone: nothing changes for the others.
    """

    def of(test):
        def in_all():
            for shell in (one for one in shells if HAS_BUILTINS or one is Bash):
                try:
                    test(shell, WORDS[shell])
                except AssertionError as failed:
                    raise AssertionError(f"{WORDS[shell].program}: {failed}") from failed

        in_all.__name__ = test.__name__
        return in_all

    return of


def codes(words, *numbers):
    """Commands that end with these codes, as a pipeline."""
    return " | ".join(words.exit.format(number) for number in numbers)


def ready(sh):
    """Waits until the editor takes a person's keys."""
    # A fish whose editor does not yet sleep may throw a key away.
    (sh.reads_keys if isinstance(sh, Fish) else sh.at_prompt)()


def survives(shell, *commands, **kind):
    """After each command of someone's own, the next one still has a true end."""
    words = WORDS[shell]
    with shell(**kind) as sh:
        for command in commands:
            sh.run(command)
        same(sh.run(codes(words, 7)).facts, (7, [7], ""))
        same(sh.run("false | true").facts, (0, [1, 0], ""))
        if shell is Zsh:
            same(sh.run("(exit 3) | (exit 4)").facts, (4, [3, 4], ""))
            same(sh.prints('echo "${pipestatus[@]}"'), "3 4\n")
            same(sh.run("fi").facts, (1, [1], "n"))
            same(sh.run("echo 'abc").facts, (1, [1], "i"))
            same(sh.run("cat <<E\nabc").facts, (1, [1], "i"))
        same(sh.type(codes(words, 5)).facts, (5, [5], ""))
        return sh.prints("builtin echo fine" if shell is Fish else "echo fine")
