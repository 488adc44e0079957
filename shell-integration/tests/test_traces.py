"""A trace that a person turns on shows the person's commands, and nothing of ours."""

from rig import HAS_BUILTINS, Fish, Shell as Bash, Zsh, same

TEXT = "f() { echo in; }; f; false | true"
TRAPPED = "trap 'echo \"T:$BASH_COMMAND\"' DEBUG"
CALLED, SEEN = "T:f\nin\n", "T:f\nT:f\nT:echo in\nin\n"
PIPED = "T:false\nT:true\n"
# Without the builtins bash evaluates a text by a command, which the trap sees.
EVALUATES = "" if HAS_BUILTINS else 'T:\\builtin eval -- "$__ptyd_text"\n'


def shows(shell, on, expected, statuses=(1, 0), first=""):
    """Asserts what a text prints after the command `on`, which itself prints `first`."""
    with shell() as sh:
        sh.run(on)
        same((on, sh.printed()), (on, first))
        same((on, sh.run(TEXT).facts), (on, (0, list(statuses), "")))
        # Each part of a pipeline is a process, and the second may be the first to print.
        same((on, sorted(sh.printed().splitlines())), (on, sorted(expected.splitlines())))


def test_bash_traces_the_persons_commands_alone():
    xtrace = "++ f\n++ echo in\nin\n++ false\n++ true\n"
    for on in "set -x", "BASH_XTRACEFD=2; set -x", "exec 7>&1; BASH_XTRACEFD=7; set -x" if HAS_BUILTINS else "set -x":
        shows(Bash, on, xtrace)
    shows(Bash, TRAPPED, EVALUATES + CALLED + PIPED)
    for on in "set -T", "shopt -s extdebug", "set -u; shopt -s failglob nullglob; set -T":
        shows(Bash, f"{on}; {TRAPPED}", EVALUATES + SEEN + PIPED)
    shows(Bash, "set -T; trap 'echo R' RETURN", "in\nR\n")
    shows(Bash, "set -E; trap 'echo E' ERR", "in\n")


def test_a_trace_of_typed_lines_and_its_end_show_nothing_of_ptyd():
    for shell, prefix in (Bash, "++ "), (Zsh, "+(eval):1> "):
        with shell() as sh:
            same(sh.prints("set -x"), "")
            same(sh.run("false").facts, (1, [1], ""))
            # Without the builtins the trace is turned on again by a command of ours.
            status = 1 if shell is Zsh or HAS_BUILTINS else 0
            same(sh.prints("echo $?"), f"{prefix}echo {status}\n{status}\n")
            before = len(sh.output)
            sh.type("echo typed")
            shown = bytes(sh.output[before:])
            assert b"__ptyd" not in shown and b"echo typed\r\ntyped\r\n" in shown, sh.transcript()
            before = len(sh.output)
            sh.run("(exit 3)")
            # Without the builtins a syntax error shows our line.
            sh.run("fi" if shell is Zsh or HAS_BUILTINS else "true")
            shown = bytes(sh.output[before:])
            assert not any(ours in shown for ours in (b"+ __ptyd", b"> __ptyd", b"eval $")), shown
            same(sh.prints("set +x"), f"{prefix}set +x\n")
            same(sh.prints("echo quiet"), "quiet\n")
            sh.run("PS4='$(false)x '; set -x; false")
            same(sh.run("false | true").facts[0], 0)


def test_a_trace_in_a_file_has_one_line_of_ptyd():
    with Bash() as sh:
        sh.run("exec 7>>trace")
        sh.run("BASH_XTRACEFD=7; set -x")
        # Without the builtins a syntax error shows our line.
        for command in "echo a", "false | true", "echo c; fi" if HAS_BUILTINS else "echo c":
            sh.run(command)
            assert "ptyd" not in sh.printed(), sh.printed()
        sh.run("set +x; unset BASH_XTRACEFD; exec 7>&-")
        trace = (sh.home / "trace").read_text()
        # The command that turns the trace on shows it. Without the builtins the file has the prompt's commands, too.
        assert "+ echo a\n" in trace and (trace.count("ptyd") <= 1 or not HAS_BUILTINS), trace


def test_a_trap_that_prints_errors_does_not_hide_an_end():
    for on in "shopt -s extdebug; trap 'echo T >&2' DEBUG", "shopt -s extdebug; trap 'echo T' DEBUG":
        with Bash() as sh:
            sh.run(on)
            for _ in range(2):
                same(sh.run("(exit 7)").facts, (7, [7], ""))


def test_ptyd_does_not_change_a_persons_trap_in_bash():
    with Bash() as sh:
        sh.run("set -ET; trap 'n=$((n+1))' DEBUG; trap 'e=$((e+1))' ERR; trap 'r=$((r+1))' RETURN")
        for refused in "fi", "cat <<X\nnever closed", "echo 'abc":
            assert "i" in sh.run(refused).flags or refused == "fi"
        sh.type("true")
        shown = sh.prints("trap -p DEBUG ERR RETURN")
        same(shown, "trap -- 'n=$((n+1))' DEBUG\ntrap -- 'e=$((e+1))' ERR\ntrap -- 'r=$((r+1))' RETURN\n")


def test_a_refused_text_shows_bashs_message_and_no_trace():
    if not HAS_BUILTINS:
        return
    for on in TRAPPED, f"set -T; {TRAPPED}", "set -T; trap 'echo T:R' RETURN", "set -x", "set -xv", "BASH_XTRACEFD=1; set -x":
        with Bash() as sh:
            sh.run(on)
            for refused, flags in ("fi", "n"), ("cat <<X\nnever closed", "i"), ("true &&", "i"):
                same((on, refused, sh.run(refused).facts), (on, refused, (2, [2], flags)))
                shown = sh.printed()
                assert "ptyd" not in shown and "T:" not in shown and "+" not in shown, (on, refused, shown)


def test_zsh_traces_the_persons_commands_alone():
    xtrace = "+(eval):1> f\n+f:0> echo in\nin\n+(eval):1> false\n+(eval):1> true\n"
    shows(Zsh, "setopt xtrace", xtrace)
    shows(Zsh, "setopt verbose", "in\n")
    shows(Zsh, "setopt verbose xtrace", xtrace)
    for on in "trap 'echo E' ZERR", "TRAPZERR() { echo E; }", "trap 'echo X' EXIT":
        shows(Zsh, on, "in\n")


# zsh runs the trap before each statement: also before the one that reports the end.
TOLD = "T:{\n\t\\__ptyd_tell\n} &> /dev/null\n"


def test_a_debug_trap_of_zsh_sees_one_statement_of_ptyd_behind_a_text():
    expected = "T:f () {\n\techo in\n}\nT:f\nT:echo in\nin\nT:false | true\n" + TOLD
    # A trap that is not a function leaves its own `pipestatus`, as it does for what is typed.
    shows(Zsh, "trap 'print -r -- \"T:$ZSH_DEBUG_CMD\"' DEBUG", expected, statuses=[0], first=TOLD)
    shows(Zsh, 'TRAPDEBUG() { print -r -- "T:$ZSH_DEBUG_CMD"; }', expected, first=TOLD)


def test_a_debug_trap_of_zsh_changes_no_refusal():
    for on in "trap 'echo T' DEBUG", "TRAPDEBUG() { echo T; }":
        with Zsh() as sh:
            sh.run(on)
            for refused, flags, words in ("fi", "n", "zsh: parse error near `fi'"), ("echo 'abc", "i", "zsh: unmatched '"):
                same((on, refused, sh.run(refused).facts), (on, refused, (1, [1], flags)))
                same((on, refused, sh.printed().splitlines()), (on, refused, ["T", words, "T"]))
            assert "T" in sh.prints("true"), sh.printed()
            same(sh.type("(exit 5)").facts, (5, [5], ""))


def test_a_trace_of_fish_has_the_text_and_three_lines_of_ptyd():
    with Fish() as sh:
        sh.run("set -g fish_trace 1")
        same(sh.run("false | true").facts, (0, [1, 0], ""))
        evaluates, *shown = sh.printed().splitlines()
        assert evaluates.startswith("-> eval false"), evaluates
        same(shown, ["--> false", "--> true", "--> __ptyd_tell 0 1 0", "----> set -l fish_trace"])
