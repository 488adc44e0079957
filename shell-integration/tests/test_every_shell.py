"""The rules for every shell with keys of ours, or in bash and zsh, whose words are the same."""

import os
import signal

from fish_rig import Shell as Fish
from rig import Shell as Bash
from rig import Zsh, plain_functions, same


def in_each(*shells):
    """One test for several shells; a failure names its shell."""

    def of(test):
        def in_all():
            for shell in shells:
                try:
                    test(shell)
                except AssertionError as failed:
                    raise AssertionError(f"{shell.__module__}.{shell.__name__}: {failed}") from failed

        in_all.__name__ = test.__name__
        return in_all

    return of


@in_each(Bash, Zsh, Fish)
def test_every_byte_arrives(shell):
    odd = "!! !x ^a^b \\t\\t ~ `` $HOME é漢🙂 \x01\x12\x16\x7f\x1b[A\r\r\n {a,b} # * ? (a) <b>".encode() + b"\xff\xc3\x83\x84"
    with shell() as sh:
        sh.run(b"printf %s '" + odd + b"' > got")
        same((sh.home / "got").read_bytes(), odd)


@in_each(Bash, Zsh, Fish)
def test_the_directory_is_exact_to_the_byte(shell):
    with shell() as sh:
        names = 'q"u\\', "with\nnewline", "semi;colon", "tab\there", "-n", "ü 漢", "%d %~"
        for name in *map(str.encode, names), b"\xff\x83\xa0":
            path = os.fsencode(sh.home) + b"/" + name
            os.mkdir(path)
            # Between single quotes fish alone takes a backslash for something else.
            word = path.replace(b"\\", b"\\\\") if shell is Fish else path
            end = sh.run(b"cd -- '" + word + b"'")
            same((end.facts, end.cwd), ((0, [0], ""), path))
        os.rmdir(path)
        same(sh.run("true").cwd, path)


@in_each(Bash, Zsh, Fish)
def test_a_child_that_a_signal_has_ended_gives_that_signals_code(shell):
    with shell() as sh:
        for signo in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGKILL, signal.SIGABRT, signal.SIGPIPE, signal.SIGUSR1):
            for text in ("sh -c 'kill -{} $$'", "true | sh -c 'kill -{} $$'"):
                same((text, signo, sh.run(text.format(int(signo))).facts[0]), (text, signo, 128 + signo))
            # fish has no other name for it.
            same(sh.prints("echo $status" if shell is Fish else "echo $?"), f"{128 + signo}\n")


@in_each(Bash, Zsh, Fish)
def test_a_stopped_job_ends_the_command(shell):
    # fish leaves its status as it was.
    code, word, kill = {
        Bash: (148, "Stopped", "kill -9 %1; wait"),
        Zsh: (148, "suspended", "kill -9 %%; wait"),
        Fish: (0, "stopped", "kill -9 (jobs -lp)"),
    }[shell]
    with shell() as sh:
        sh.start("sleep 60")
        os.killpg(sh.foreground("sleep"), signal.SIGTSTP)
        same(sh.done().exit, code)
        assert word in sh.prints("jobs")
        sh.run(kill)


@in_each(Bash, Zsh, Fish)
def test_a_carriage_return_is_part_of_the_command(shell):
    with shell() as sh:
        sh.run("echo 'a\r\nb' >got\ntrue")
        same((sh.home / "got").read_bytes(), b"a\r\nb\n")


@in_each(Bash, Zsh, Fish)
def test_a_command_of_many_lines_stops_at_an_interrupt(shell):
    with shell() as sh:
        sh.start("echo on\nsleep 60\necho after")
        sh.sees(b"on\r\n")
        os.killpg(sh.foreground("sleep"), signal.SIGINT)
        same(sh.done().facts, (130, [130], "n"))
        assert b"after" not in sh.output[sh.begin :]


@in_each(Bash, Zsh)
def test_a_line_longer_than_the_terminals_arrives_whole(shell):
    text = "x" * 6000
    with shell() as sh:
        same(sh.prints(f"v={text}; echo ${{#v}} x${{v//x}}"), "6000 x\n")


@in_each(Bash, Zsh)
# promise: send-2
def test_history_expansion_and_completion_are_not_applied(shell):
    with shell() as sh:
        sh.type("echo typed")
        same(sh.prints('echo "a!b" !! !e \\!'), "a!b !! !e !\n")
        same(sh.prints("echo\ta\t\tb"), "a b\n")


@in_each(Bash, Zsh)
def test_a_virtual_environment_changes_the_path_and_the_prompt(shell):
    activate = 'PATH="$HOME/venv/bin:$PATH"; export PATH; VIRTUAL_ENV="$HOME/venv"; PS1="(venv) $PS1"; hash -r'
    with shell(files={"activate": activate}) as sh:
        sh.run(". ./activate")
        assert sh.path.startswith(os.fsencode(sh.home / "venv/bin:")), sh.path
        sh.sees(b"(venv) ")
        same(sh.prints("echo fine"), "fine\n")


@in_each(Bash, Zsh)
def test_allexport_does_not_export_anything_of_ours(shell):
    with shell() as sh:
        sh.run("set -a")
        sh.run("false | true")
        sh.run("fi")
        sh.type("true")
        same(sh.prints("x=1; env >e; grep -c __ptyd e || grep '^x=' e"), "0\nx=1\n")


@in_each(Bash, Zsh)
def test_records_of_the_shell_without_the_secret_are_rejected(shell):
    with shell() as sh:
        same(sh.run("builtin printf 'D;guess;99;1;0;0;;/forged\\0' >&97; (exit 3)").facts, (3, [3], ""))
        same(sh.rejected, [(sh.pid, b"D;guess;99;1;0;0;;/forged")])


load_tests = plain_functions(globals())
