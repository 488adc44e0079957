"""Users, their files and their commands disturb a shell; each time the ends stay right and the user's things work."""

import os
import signal
import subprocess
import tempfile
import termios
from pathlib import Path

from rig import FISH_SCRIPT, HAS_BUILTINS, MOVES, SCRIPT, ZSH_SCRIPT, Shell, quoted, same
from shells import ALL, Bash, Fish, Zsh, codes, in_each, survives


LOADED_LINE = b'\\builtin eval -- "$__ptyd_text"'


@in_each(Bash, Zsh)
def test_errexit_ends_the_shell_only_for_a_failing_command(shell, words):
    with shell() as sh:
        sh.run("set -e")
        for harmless in "true", "! true", "false || true", "if false; then :; fi", "false && true":
            sh.run(harmless)
        facts = sh.run("! true").facts
        same(facts if shell is Bash else facts[0], (1, [0], "") if shell is Bash else 1)
        same(sh.prints("echo $?"), "1\n")
        same(sh.run("fi").facts, (words.wrong, [words.wrong], "n"))
        same(sh.run("echo 'abc").facts, (words.wrong, [words.wrong], "i"))
        same(sh.type("! true").exit, 1)
        sh.start("echo last; false; echo never")
        same((sh.ended(), b"last\r\n" in sh.output, b"never\r\n" in sh.output), (1, True, False))


@in_each(Bash, Zsh)
def test_an_unset_variable_is_an_error_of_the_command_alone(shell, _words):
    with shell() as sh:
        sh.run("set -u")
        end = sh.run("echo $nope")
        same(end.facts if shell is Zsh else end.exit, (1, [1], "n") if shell is Zsh else 1)
        same(sh.type("echo $nope").exit, 1)
        same(sh.prints("echo ok"), "ok\n")


PROMPTS = {
    Bash: """
    starship_precmd() { STATUS=$? PIPE="${PIPESTATUS[*]}"; PS1="[$STATUS]> "; }
    PROMPT_COMMAND=starship_precmd
    """,
    Zsh: """
    themed() { STATUS=$? PIPE="$pipestatus"; PROMPT="[$STATUS]> "; }
    precmd_functions=(themed); setopt promptsubst; RPROMPT='right'
    """,
    Fish: """function fish_prompt; set -g STATUS $status; set -g PIPE $pipestatus; echo "[$STATUS]> "; end""",
}


@in_each(*ALL)
def test_a_prompt_of_the_starship_kind_sees_the_true_status(shell, words):
    with shell(**{words.config: PROMPTS[shell]}) as sh:
        sh.run(codes(words, 7))
        sh.sees(b"[7]> ")
        same(sh.prints("echo $STATUS"), "7\n")
        sh.sees(b"[0]> ")
        sh.type(codes(words, 4, 3))
        sh.sees(b"[3]> ")
        if shell is not Fish:
            # Without the builtins our hook is before it in the same element.
            same(sh.prints("echo $PIPE"), "3\n" if shell is Bash and not HAS_BUILTINS else "4 3\n")


@in_each(Bash, Zsh)
def test_redirections_of_the_whole_shell_spoil_no_end(shell, _words):
    with shell() as sh:
        sh.run("exec 1>&-")
        same(sh.run("cat </dev/zero 2>/dev/null").exit, 1)
        sh.run("exec 1>/dev/tty")
        same(sh.prints("echo found"), "found\n")
        sh.run("exec 2>/dev/null")
        same(sh.run("nosuch").facts, (127, [127], ""))
        same(sh.prints("echo out; echo err >&2"), "out\n")
        sh.run("exec 2>&-")
        same(sh.prints("echo closed"), "closed\n")
        sh.run("exec 2>/dev/tty")
        same(sh.prints("echo err >&2"), "err\n")
        sh.run("exec 3>&1 > >(cat >log)")
        same(sh.run("echo logged").facts, (0, [0], ""))
        sh.run("exec >&3 3>&-")
        same(sh.prints("until [[ -s log ]]; do :; done; grep -ao logged log"), "logged\n")
        sh.run("exec 0</dev/tty")
        same(sh.run("(exit 7)").facts, (7, [7], ""))


@in_each(*ALL)
def test_terminal_modes_that_a_command_leaves_behind_spoil_no_end(shell, _words):
    for mode in "raw -echo", "-echo":
        same((mode, survives(shell, f"stty {mode}")), (mode, "fine\n"))
    with shell() as sh:
        sh.run("stty -echo")
        same(sh.prints("echo fine"), "fine\n")
        assert shell is not Bash or not termios.tcgetattr(sh.leader)[3] & termios.ECHO
    with shell() as sh:
        sh.run("stty -icanon")
        sh.at_prompt()
        same(sh.prints("echo fine"), "fine\n")


@in_each(*ALL)
def test_the_shell_may_read_the_terminal_itself(shell, words):
    menu = "select x in one two; do echo got:$x; break; done"
    asks = [(words.ask, b"name? ", b"John")] + [(menu, b"#? " if shell is Bash else b"?# ", b"2")] * (shell is not Fish)
    with shell() as sh:
        for text, question, answer in asks:
            sh.start(text)
            sh.sees(question)
            sh.keys(answer + b"\r")
            same((text, sh.done().facts), (text, (0, [0], "")))
            last, got = sh.printed().splitlines()[-1], "got:two" if answer == b"2" else "got:John"
            # fish clears the line behind its question.
            same(last.removeprefix("\x1b[K") if shell is Fish else last, got)


@in_each(*ALL)
def test_a_nested_shell_is_one_command(shell, words):
    inner = {Bash: "bash --norc --noprofile", Zsh: "zsh", Fish: "sh"}[shell]
    with shell(**({"zshrc": "PS1='nested> '"} if shell is Zsh else {})) as sh:
        sh.start(inner)
        sh.sees(b"nested> " if shell is Zsh else b"$ " if os.getuid() else b"# ")
        sh.keys(b"echo in:$((1+1)); exit 9\r")
        same(sh.done().facts, (9, [9], ""))
        assert "in:2\n" in sh.printed()
        if shell is Fish:
            sh.start(f"{words.program} --no-config")
            sh.until("nested prompt", lambda: b"> " in sh.output[sh.begin :] or b"# " in sh.output[sh.begin :])
            sh.keys(b"exit 8\r")
            same(sh.done().facts, (8, [8], ""))
            same(sh.records, [])
        same(sh.rejected, [])


STARTUPS = {
    Bash: (
        "return 3",
        "PROMPT_COMMAND='x=$?'; trap 'y=1' DEBUG",
        "set -u; HISTCONTROL=ignoreboth; shopt -s extglob",
        "set -u; echo $nope; x=1",
        "if then fi (",
    ),
    Zsh: (
        "return 3",
        "if true; then",
        "echo ${x:?no}; y=1",
        "setopt nounset ksharrays shwordsplit noglob; emulate sh; TRAPDEBUG() { :; }",
        "autoload -Uz compinit; compinit -u; autoload -Uz promptinit; promptinit; prompt fade",
    ),
    Fish: ("return 3", "nosuch", "end", "set -g fish_key_bindings nosuch", "false", "bind --erase --all", "cd /", "exit 6"),
}


@in_each(*ALL)
def test_startup_files_that_ask_return_fail_or_leave(shell, words):
    asks = {Bash: "read -p 'who? ' x; echo hi:$x", Zsh: "read 'x?who? '; echo hi:$x", Fish: "read -P 'who? ' -g x; set -g x hi:$x"}
    with shell(**{words.config: asks[shell]}, wait=False) as sh:
        sh.sees(b"who? ")
        sh.keys(b"me\r")
        same((sh.done().facts, sh.prints("echo $x")), ((0, [0], ""), "hi:me\n" if shell is Fish else "me\n"))
    for startup in STARTUPS[shell]:
        same((startup, survives(shell, **{words.config: startup})), (startup, "fine\n"))
    # It ends the file and not the shell of a fish.
    if shell is not Fish:
        with shell(**{words.config: "exit 6"}, wait=False) as sh:
            same(sh.ended(), 6)


@in_each(Bash, Zsh)
def test_a_child_that_moves_the_offset_of_the_staged_command_or_reads_it_changes_nothing_of_it(shell, _words):
    job = "%3" if shell is Zsh else "%1"
    for does in MOVES, "import os; [os.read(96, 7) for _ in iter(int, 1)]":
        with shell() as sh:
            sh.run(f"python3 -c '{does}' & trap 'kill {job}' EXIT")
            for length in [0, 10, 1000, 3900, 10000] * 20:
                same(sh.prints(f"x={'a' * length}; echo ${{#x}}; :"), f"{length}\n")
            sh.run(f"kill {job}; wait")


# The places of a hook of the user's, which is `foo` or is not there.
HOOKS = {
    Bash: [
        "PROMPT_COMMAND=",
        "unset PROMPT_COMMAND",
        "PROMPT_COMMAND=foo",
        "PROMPT_COMMAND='foo;'",
        "PROMPT_COMMAND+=(foo)",
        "PROMPT_COMMAND=(foo foo)",
        "PROMPT_COMMAND=\"foo; $PROMPT_COMMAND\"",
        "PROMPT_COMMAND=\"${PROMPT_COMMAND:+$PROMPT_COMMAND; }foo\"",
        "PROMPT_COMMAND+=\"${PROMPT_COMMAND:+; }foo\"",
        "export PROMPT_COMMAND=foo",
    ],
    Zsh: [
        "precmd_functions=()",
        "unset precmd_functions",
        "precmd_functions=(foo)",
        "precmd_functions+=(foo)",
        "precmd_functions=(foo $precmd_functions)",
        "autoload -Uz add-zsh-hook; add-zsh-hook precmd foo",
        "precmd() { foo; }",
        "precmd() { foo; echo ${x:?no}; }",
        "precmd() { return 9; }; preexec() { return 9; }; zshaddhistory() { return 1; }",
        "zshaddhistory_functions=(); unset preexec_functions",
        "zshaddhistory() { return 2; }",
        "typeset -gU precmd_functions; precmd_functions=(foo foo)",
        "precmd_functions=foo",
    ],
    Fish: ["function foo --on-event fish_postexec; set -ga seen $status; end"],
}


@in_each(*ALL)
def test_a_hook_of_the_prompt_sees_each_status_once_in_every_place(shell, words):
    defines = {} if shell is Fish else {words.config: "foo() { seen+=($?); }"}
    for change in HOOKS[shell]:
        with shell(**defines) as sh:
            sh.run(change)
            sh.run("set -g seen" if shell is Fish else "seen=()")
            # The hook sees the end of that command, too.
            wanted = [0]
            for command, statuses in (codes(words, 7), [7]), ("false | true", [1, 0]), (codes(words, 3, 4), [3, 4]):
                same((change, sh.run(command).facts), (change, (statuses[-1], statuses, "")))
                wanted.append(statuses[-1])
            # An error in the hook ends nothing, and is the status of what a person types.
            if "x:?" not in change:
                same((change, sh.type(codes(words, 5)).facts), (change, (5, [5], "")))
                wanted.append(5)
            times = ("foo" in change) * (2 if shell is Bash and "foo foo" in change else 1)
            shown = sh.prints("echo $seen" if shell is Fish else 'echo "${seen[@]}"').split()
            same((change, shown), (change, [str(status) for status in wanted for _ in range(times)]))


# Handlers of failed commands.
FAILED = {Bash: ["trap 'echo ERR $?' ERR"], Zsh: ["trap 'echo ERR $?' ZERR", "TRAPZERR() { echo ERR $?; }"]}


@in_each(Bash, Zsh)
def test_traps_of_the_user_work(shell, _words):
    for trap in FAILED[shell]:
        with shell() as sh:
            sh.run(trap)
            same((trap, sh.run("(exit 3)").facts, sh.printed()), (trap, (3, [3], ""), "ERR 3\n"))
            same(sh.prints("false || true"), "")
            before = len(sh.output)
            sh.type("true")
            assert b"ERR" not in sh.output[before:]
            sh.run("trap 'echo usr' USR1; trap 'echo int' INT")
            same(sh.prints("kill -USR1 $$; :"), "usr\n")
            if shell is Bash:
                sh.run("set -ET; trap 'echo ret' RETURN; trap 'echo dbg >/dev/null' DEBUG")
                same(sh.run("(exit 7)").facts, (7, [7], ""))


@in_each(Bash, Zsh)
def test_the_prompt_and_other_readonly_variables_are_the_users(shell, words):
    locks = ["PS1='mine> '"] + [f"readonly {name}" for name in ("PS1", "PS0", "HISTCONTROL", "PATH", "HISTSIZE", *["IFS", "BUFFER"] * (shell is Zsh))]
    same(survives(shell, *locks), "fine\n")
    with shell(**{words.config: "PS1='mine> '"}) as sh:
        sh.sees(b"mine> ")
        same((sh.run("__ptyd_secret=x").exit, sh.prints("echo fine")), (1, "fine\n"))


# bash itself may give the number to the stderr that it saves for a redirection.
CLOSED = {Bash: ["exec 97>&-", "exec 97>&2", "exec 97>reports", "exec 97> >(cat)"], Zsh: ["fd=97; exec {fd}>&-"]}


@in_each(Bash, Zsh)
def test_a_closed_attestation_socket_forges_nothing_and_stops_nothing(shell, _words):
    for lost in CLOSED[shell]:
        with shell() as sh:
            sh.start(lost)
            sh.at_prompt()
            sh.keys(b"echo still; here=1; PATH=$PATH:/x\r")
            sh.sees(b"still\r\n")
            sh.reads_keys()
            sh.report()
            sh.keys(b"echo again\r")
            sh.sees(b"again\r\n")
            reports = sh.home / "reports"
            assert sh.secret.encode() not in sh.output + (reports.read_bytes() if reports.exists() else b""), lost
            same(sh.records, [])


@in_each(*ALL)
def test_an_interrupted_startup_is_attested(shell, words):
    # The child of fish says that it is there: between two commands of its start-up file fish heeds no interrupt.
    asks = {Bash: "read -p 'who? ' x", Zsh: "read 'x?who? '", Fish: "sh -c 'echo who?; exec sleep 60'"}[shell]
    with shell(**{words.config: asks}, wait=False) as sh:
        sh.sees(b"who?")
        if shell is Fish:
            sh.keys(b"\x03")
        else:
            sh.sleeps()
            os.kill(sh.pid, signal.SIGINT)
        if not HAS_BUILTINS:
            # The interrupt ends all of bash's startup, and the hook is not in place then.
            sh.at_prompt()
            same(sh.records, [])
            sh.report()
        end = sh.done()
        assert shell is not Bash or end.facts == (130, [130], "" if HAS_BUILTINS else "l"), end
        same(sh.prints("echo fine"), "fine\n")


@in_each(*ALL)
def test_without_a_socket_the_shell_is_just_the_users(shell, words):
    asks = {
        Bash: [["--rcfile", SCRIPT, "-ic", "declare -F | grep -c __ptyd; echo $mine."]],
        Zsh: [[option, "-c", "functions + | grep -c __ptyd; echo $mine$ZDOTDIR."] for option in ("-i", "+i")],
        Fish: [["-i", "-C", f"source {quoted(FISH_SCRIPT)}", "-c", "begin; functions -a; set -n; end | string match '__ptyd*' | count; echo $mine."]],
    }
    files = {".bashrc": "mine=yes", ".zshenv": "mine=yes", ".config/fish/config.fish": "set -g mine yes"}
    with tempfile.TemporaryDirectory() as home:
        for name, text in files.items():
            (Path(home) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(home) / name).write_text(text)
        (Path(home) / "folder").mkdir()
        (Path(home) / "folder/.zshenv").symlink_to(ZSH_SCRIPT)
        env = {"HOME": home, "PATH": os.environ["PATH"]} | ({"ZDOTDIR": f"{home}/folder"} if shell is Zsh else {})
        for argv in asks[shell]:
            got = subprocess.run(
                [words.program, *argv], stdin=subprocess.DEVNULL, capture_output=True, env=env, start_new_session=True, check=False
            )
            same(got.stdout, b"0\nyes.\n")


# Settings that break careless scripts; zsh and fish have tables of their own.
OPTIONS = "set -u", "set -f", "set -C", "set -o posix", "set -o vi", "set -a", "set -b", "set -h", "set -P", "set +m", "set +o history"
SHOPTS = "extglob", "nocasematch", "nullglob", "failglob", "xpg_echo", "lastpipe", "cmdhist", "lithist", "extdebug"
SETTINGS = [
    *OPTIONS,
    *(f"shopt -s {option}" for option in SHOPTS),
    "IFS=x7",
    "IFS=",
    "unset IFS",
    "IFS='0123456789x;'",
    "LC_ALL=C",
    "LINENO=500",
    "TMOUT=1000",
    "TERM=dumb",
    "PS0=; unset PS1 PS2 PS4",
    "n=0; PS1='$((++n)) \\w \\$(false) > '",
    "PROMPT_COMMAND='true; echo -n; false'",
    "unalias -a",
    "alias eval=no builtin=no printf=no",
    "alias printf=false builtin=false eval=false",
    "printf() { :; }; eval() { :; }; read() { :; }; command() { :; }",
    "set -o histexpand; HISTCONTROL=; HISTTIMEFORMAT='%F '",
    "mkdir -m 0 locked; cd /",
    "trap '' INT TERM QUIT HUP",
    "trap ':' DEBUG",
    "trap - DEBUG",
    "exec 2>errors",
]


def test_options_that_break_careless_scripts():
    for setting in SETTINGS:
        same((setting, survives(Bash, setting)), (setting, "fine\n"))
    same(survives(Bash, "set -m", "set +m"), "fine\n")


def test_a_syntax_error_after_a_typed_errexit_does_not_end_the_shell():
    with Shell() as sh:
        sh.type("set -e")
        sh.at_prompt()
        same(sh.run("fi").facts, (2, [2], "n"))
        same(sh.prints("echo fine"), "fine\n")


def test_the_lines_that_bash_prints_as_it_reads_them_are_not_ours():
    for on in "set -v", "set -o verbose", "set -euv; :":
        with Shell(files={"lines": "echo of a file\n"}) as sh:
            sh.run(f"alias opens='('; {on}")
            same((on, sh.prints("echo a\necho b")), (on, "echo a\na\necho b\nb\n"))
            same((on, sh.prints(". ./lines")), (on, ". ./lines\necho of a file\nof a file\n"))
            # `set -e` needs the load key, as everything does without the builtins, and there nothing is behind the text to see PIPESTATUS.
            statuses = [1, 0] if HAS_BUILTINS and not sh.has_errexit else [0]
            same((on, sh.run("false | true").facts), (on, (0, statuses, "")))
            same((on, sh.run("echo 'abc").facts), (on, (2, [2], "i")))
            assert "ptyd" not in sh.printed(), sh.printed()
            for text in "fi", "opens" if HAS_BUILTINS and not sh.has_errexit else "fi":
                same((on, text, sh.run(text).facts), (on, text, (2, [2], "n")))
                assert "ptyd" not in sh.printed(), sh.printed()
            same((on, sh.prints("echo $?")[-2:]), (on, "2\n"))
            sh.run("set +euv")
            same((on, sh.prints("echo quiet")), (on, "quiet\n"))


def test_a_readonly_prompt_command_leaves_the_ends_to_the_finish():
    with Shell(bashrc="PROMPT_COMMAND=:; readonly PROMPT_COMMAND") as sh:
        # The builtins need no place in it.
        same(sh.first.flags, "" if HAS_BUILTINS else "l")
        same(sh.run("(exit 7)").facts, (7, [7], ""))
        same(sh.run("fi").facts, (2, [2], "n"))
        same(sh.prints("echo fine"), "fine\n")


def test_our_functions_cannot_be_taken_away():
    with Shell() as sh:
        # With the builtins the others are defined when they are needed, whatever has their names by then.
        first = ("__ptyd_seldom", "__ptyd_read_on") if HAS_BUILTINS else ("__ptyd_hook", "__ptyd_tell")
        same(sh.run(f"unset -f {' '.join(first)}").exit, 1)
        same(sh.run(f"{first[0]}() {{ :; }}").exit, 1)
        same(sh.run("__ptyd_hook() { :; }").exit, 0 if HAS_BUILTINS else 1)
        same(sh.run("__ptyd_secret=x").exit, 1)
        same(sh.prints("echo fine"), "fine\n")
        same(sh.run("fi").facts, (2, [2], "n"))
        same(sh.run("unset -f __ptyd_hook __ptyd_tell").exit, 1)


def test_a_shell_that_cannot_take_the_short_line_takes_the_command_with_the_load_key():
    of_the_line = "unalias -a", "shopt -u expand_aliases", "bind '\"__\":\"x\"'", "bind '\"y\":\"hello\"'", "alias __ptyd=no-such-command"
    of_the_key = "enable -n ___ptyd_run", "enable -d ___ptyd_run", "___ptyd_run() { :; }", "bind '\"\\e\\x14\":\"hello\\n\"'"
    for lost in of_the_key if HAS_BUILTINS else of_the_line:
        with Shell() as sh:
            sh.run(lost)
            before = len(sh.output)
            same(sh.prints("echo $((1 + 1)) b"), "2 b\n")
            assert LOADED_LINE in sh.output[before:], sh.transcript()
            same(sh.run("false").facts, (1, [1], ""))


def test_options_that_a_prompt_command_of_the_users_sets_break_nothing():
    for option in "u", "a", "e", "x":
        with Shell(bashrc=f"PROMPT_COMMAND='set -{option}'") as sh:
            sh.run("set +aeux; (exit 3)")
            # Without the builtins a trace is turned on again by the text itself, which is a command.
            status = {"x": "\n3\n" if HAS_BUILTINS else "\n0\n"}.get(option, "3\n")
            same((option, sh.prints("echo $?")[-3:]), (option, status))
            same("__ptyd" in sh.prints("env"), False)


def test_a_shell_without_its_descriptor_of_the_terminal_reports_its_ends():
    with Shell() as sh:
        sh.run("exec 255>&-")
        same(sh.prints("echo a"), "a\n")
        same(sh.run("false").facts, (1, [1], ""))


def test_nothing_of_ptyd_is_in_the_output_of_a_command():
    for odd in "exec 255>&-", "set -T; trap 'echo RET' RETURN", "local() { :; }", "return() { echo no; }":
        with Shell() as sh:
            sh.run(odd)
            same((odd, sh.prints("echo a")), (odd, "a\n"))


def test_a_readonly_histignore_keeps_our_lines_out_of_the_history():
    with Shell(bashrc="readonly HISTIGNORE=ls") as sh:
        sh.run("echo a")
        sh.type("echo b")
        sh.run("echo c")
        same(sh.prints("history >h; grep -c -e ptyd -e echo h"), "1\n")


def test_the_short_line_is_for_the_usual_state_only():
    with Shell() as sh:
        same(sh.prints("echo a"), "a\n")
        assert LOADED_LINE not in sh.output, sh.transcript()
        for unusual in "PS0='mine> '", "HISTIGNORE=ls", *([] if HAS_BUILTINS else ["set -x", "PATH=$PATH:/x"]):
            sh.run(unusual)
            assert not sh.short_keys, unusual
            sh.run("set +x; PS0=")
            sh.run(":")
            assert sh.short_keys, unusual


def test_a_shell_without_free_descriptors_claims_no_end():
    # Without the builtins the code behind a text cannot run there, so the status that the prompt finds is not the command's.
    with Shell() as sh:
        sh.start("ulimit -n 3")
        if HAS_BUILTINS:
            same(sh.done().facts, (0, [0], ""))
        sh.reads_keys()
        sh.keys(b"echo still; here=1\r")
        sh.sees(b"\rstill\r\n")
        sh.reads_keys()
        same(sh.records, [])
