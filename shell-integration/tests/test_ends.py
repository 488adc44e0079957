"""The facts of a command's end: exit code, pipeline status, flags, directory. Each test is one fact about a real bash."""

import os
import re
import signal

from rig import HAS_BUILTINS, Shell, plain_functions, same


def facts(*commands, **kind):
    """Runs commands in one shell and gives what the last one's end says."""
    with Shell(**kind) as sh:
        for command in commands:
            end = sh.run(command)
        return end.facts


def test_exit_codes_are_the_commands_own():
    with Shell() as sh:
        cases = {
            "true": 0,
            "false": 1,
            "(exit 7)": 7,
            "nosuch": 127,
            "sh -c 'kill -9 $$'": 137,
            "bash -c 'kill -TERM $$'": 143,
        }
        same({c: sh.run(c).facts for c in cases}, {c: (n, [n], "") for c, n in cases.items()})


def test_a_pipeline_tells_the_status_of_each_element():
    assert facts("false | true") == (0, [1, 0], "")
    assert facts("set -o pipefail", "(exit 3) | true | (exit 0)") == (3, [3, 0, 0], "")


def test_a_command_sees_the_status_of_the_one_before():
    with Shell() as sh:
        sh.run("(exit 7)")
        same(sh.prints("echo $?"), "7\n")
        sh.run("(exit 3) | (exit 4) | true")
        same(sh.prints('echo "$? ${PIPESTATUS[@]}"'), "0 3 4 0\n")
        sh.run("true | (exit 4)")
        same(sh.prints('echo "$? ${PIPESTATUS[@]}"'), "4 0 4\n")
        sh.type("(exit 5) | (exit 6)")
        same(sh.prints('echo "$? ${PIPESTATUS[@]}"'), "6 5 6\n")


def test_a_persons_line_is_reported_without_an_id():
    with Shell() as sh:
        end = sh.type("false | true")
        assert (end.id, end.facts) == (0, (0, [1, 0], ""))
        same(sh.run("(exit 2)").facts, (2, [2], ""))
        same(sh.type("false").facts, (1, [1], ""))


def test_declarations_work_as_if_typed():
    with Shell() as sh:
        sh.run("declare -a x=(1 2)")
        same(sh.prints('echo "${x[1]} ${#FUNCNAME[@]}"'), "2 0\n")
        sh.run("f() { local y=3; echo $y; return 4; }; alias g='f'")
        same(sh.run("g").facts, (4, [4], ""))
        same(sh.printed(), "3\n")
        same(sh.run("local z=1").exit, 1)
        same(sh.run("return 5").facts, (2, [2], ""))


def test_exit_ends_the_shell_with_its_status():
    for command, status in ("exit 3", 3), ("exec true", 0), ("kill -9 $$", -9), ("sleep 50 & echo $!; exit 5", 5):
        with Shell() as sh:
            sh.start(command)
            if "sleep" in command:
                # The background job keeps the terminal open, so the shell's own end is what counts.
                pid, raw = os.waitpid(sh.pid, 0)
                sh.status = os.waitstatus_to_exitcode(raw)
                assert (pid, sh.status) == (sh.pid, status)
                while not (job := re.search(rb"\n(\d+)\r\n", sh.output[sh.begin :])):
                    sh.pump(1)
                os.kill(int(job[1]), signal.SIGKILL)
            else:
                same(sh.ended(), status)


def test_an_exit_trap_still_runs():
    with Shell() as sh:
        sh.run("trap 'echo bye' EXIT")
        sh.start("exit 4")
        assert (sh.ended(), b"bye\r\n" in sh.output) == (4, True)


def test_an_interrupt_is_an_end_but_not_an_incomplete_command():
    with Shell() as sh:
        sh.start("echo on; sleep 60; echo after")
        sh.sees(b"on\r\n")
        os.killpg(sh.foreground("sleep"), signal.SIGINT)
        end = sh.done()
        assert (end.facts, sh.last_id) == ((130, [130], "n"), end.id)
        assert b"after" not in sh.output[sh.begin :]
        same(sh.prints("echo $?"), "130\n")


def test_a_loop_of_the_shells_own_can_be_interrupted():
    with Shell() as sh:
        sh.start("echo on; while :; do :; done")
        sh.sees(b"on\r\n")
        os.kill(sh.pid, signal.SIGINT)
        same(sh.done().facts, (130, [130], "n"))
        same(sh.run("false").facts, (1, [1], ""))


def test_a_background_job_does_not_delay_the_end():
    with Shell() as sh:
        same(sh.run("(sleep 60; echo late) & echo hi").facts, (0, [0], ""))
        same(sh.printed().splitlines()[-1], "hi")
        sh.run("kill -9 %1; wait")


def test_a_changed_path_is_told_before_the_end():
    with Shell() as sh:
        assert sh.path == os.environ["PATH"].encode()
        sh.path = None
        sh.run("true")
        assert sh.path is None
        sh.run("PATH=/nowhere:$PATH")
        assert sh.path == b"/nowhere:" + os.environ["PATH"].encode()
        sh.run("PATH=")
        assert (sh.path, sh.run("echo x").exit) == (b"", 0)


def test_incomplete_commands_end_with_a_flag_and_nothing_hangs():
    # Refused before anything ran, where what follows would be swallowed; else found by the parser.
    refused = [
        "function f",
        "f()",
        "f ( )  # head only",
        "echo abc |",
        "echo abc |& \\\n",
        "echo abc && # more to come\n",
        "echo abc ||\n\n  # a comment\n# another\n",
        "cat <<EOF\nfoo",
        "x=$(cat <<EOF\nfoo",
        # The parser would name the code behind them.
        "x=(a b",
        "case x in",
        "case x in y) echo",
        "case x in y) echo;;",
        "for i",
        "for i in 1 2",
        "for i in 1 2; do",
        "for ((;;))",
        "select i in 1 2",
    ]
    parsed = [
        "if true; then",
        "while true; do echo x",
        "until false",
        "echo 'abc",
        'echo "abc',
        "echo `abc",
        "echo $(abc",
        "echo ${x:-",
        "echo $((1 +",
        "((1 +",
        "(echo abc",
        "{ echo abc",
        "f() {",
        "echo \"$(echo 'abc)\"",
    ]
    with Shell() as sh:
        same({c: sh.run(c).facts for c in refused}, {c: (2, [2], "i") for c in refused})
        same({c: sh.run(c).facts[2] for c in parsed}, {c: "ni" for c in parsed})
        same(sh.run("while true; do echo x").facts, (2, [2], "ni"))
        assert sh.printed().startswith("bash: syntax error: unexpected end of file")
        same(sh.run("declare -F f").facts, (1, [1], ""))
        same(sh.prints("echo usable"), "usable\n")


def test_bashs_message_about_an_incomplete_command_names_nothing_of_ours():
    incomplete = ["for i in 1 2", "for ((;;))", "case x in", "case x in y) ;;", "case x", "select i", "x=(a", "true\nx+=(", "[[ a"]
    with Shell() as sh:
        for settings in ("", "set -u", "set -e"):
            sh.run(settings or ":")
            for command in incomplete:
                sh.run(command)
                said = sh.printed()
                assert "if" not in said and "ptyd" not in said and "`;'" not in said, (settings, command, said)
                assert "unexpected" in said or "expected" in said, (settings, command, said)


def test_a_head_with_its_body_runs_and_the_last_match_stays():
    with Shell() as sh:
        for settings in ("", "set -u"):
            sh.run(settings or ":")
            same(sh.prints("for i in 1 2; do echo $i; done; x=(a b); case $i in 2) echo ${x[1]};; esac"), "1\n2\nb\n")
            sh.run("[[ ab =~ (b) ]]")
            same(sh.prints("for m in \"${BASH_REMATCH[1]}\"; do echo $m; done"), "b\n")


def test_errexit_is_told_as_it_is_at_the_end_of_a_command():
    with Shell() as sh:
        for command, is_on in (":", False), ("set -e", True), ("set -u", True), ("set +e", False), ("set -o errexit; true", True):
            sh.run(command)
            same((command, sh.has_errexit), (command, is_on))
        sh.type("set +e")
        same(sh.has_errexit, False)
        sh.type("set -e")
        same(sh.has_errexit, True)


def test_an_incomplete_command_has_not_run():
    with Shell() as sh:
        for command in "touch a |", "touch a &&\n", "touch a; touch b || # c", "cat <<EOF; touch a\nfoo", "touch a; cat <<E":
            end = sh.run(command)
            assert (end.facts, list(sh.home.glob("[ab]"))) == ((2, [2], "i"), []), command


def test_an_unterminated_here_document_is_refused_and_bash_says_why():
    with Shell() as sh:
        same(sh.run("cat <<EOF\nfoo").facts, (2, [2], "i"))
        assert "here-document at line 1 delimited by end-of-file" in sh.printed()
        same(sh.prints("cat <<EOF\nfoo\nEOF"), "foo\n")
        same(sh.prints("echo $((1<<2)) '<<EOF'"), "4 <<EOF\n")


def test_a_plain_syntax_error_did_not_run_to_its_end_but_is_not_incomplete():
    with Shell() as sh:
        same(sh.run("fi").facts, (2, [2], "n"))
        same(sh.run("echo one\n)\necho two").facts, (2, [2], "n"))
        assert "one\n" in sh.printed() and "two" not in sh.printed()
        same(sh.run("echo ok").facts, (0, [0], ""))


def test_the_report_key_during_read_e_says_still_running():
    with Shell() as sh:
        sh.start("read -e -p 'name? ' n; echo got:$n")
        sh.sees(b"name? ")
        sh.at_prompt()
        sh.report()
        same(sh.record("R").split(b";")[1], b"1")
        sh.keys(b"John\r")
        same(sh.done().facts, (0, [0], ""))
        assert sh.printed().endswith("got:John\n")


def test_read_e_after_the_hook_was_lost_is_not_an_end():
    with Shell() as sh:
        for command in "PROMPT_COMMAND=; read -e -p 'name? ' n", "f() { PROMPT_COMMAND=; $1 -e -p 'name? '; }; f read":
            sh.start(command)
            sh.sees(b"name? ")
            sh.at_prompt()
            sh.report()
            same(sh.record("R").split(b";")[1], b"%d" % sh.last_id)
            sh.keys(b"\r")
            same(sh.done().facts, (0, [0], ""))


def test_a_lost_hook_is_found_by_the_report_key():
    # With the builtins the hook is the line editor's, and cannot be lost.
    with Shell() as sh:
        sh.start("PROMPT_COMMAND=; echo on; sleep 60")
        sh.sees(b"on\r\n")
        os.killpg(sh.foreground("sleep"), signal.SIGINT)
        sh.foreground("bash")
        sh.at_prompt()
        if not HAS_BUILTINS:
            assert sh.records == []
            sh.report()
        end = sh.done()
        assert (end.id, end.exit, set(end.flags)) == (1, 130, {"n"} if HAS_BUILTINS else {"l", "n"})
        same(sh.run("false").facts, (1, [1], ""))


def test_a_hook_that_a_person_took_away_comes_back_with_the_next_command():
    with Shell() as sh:
        sh.at_prompt()
        sh.keys(b"PROMPT_COMMAND=\r")
        sh.sees(b"PROMPT_COMMAND=\r\n")
        if HAS_BUILTINS:
            same(sh.done().facts, (0, [0], ""))
        sh.at_prompt()
        same(sh.run("false").facts, (1, [1], ""))


def test_a_key_on_a_continuation_line_of_a_person_takes_nothing():
    with Shell() as sh:
        sh.at_prompt()
        sh.keys(b"if true\r")
        sh.sees(b"> ")
        sh.hand_over("touch a")
        sh.record("R")
        sh.until("accept key", lambda: sh.output.count(b"> ", sh._seen) == 3)
        sh.reads_keys()
        os.kill(sh.pid, signal.SIGINT)
        same(sh.done().id, 0)
        assert list(sh.home.glob("a")) == []
        same(sh.run("false").facts, (1, [1], ""))


# promise: check-2
def test_the_shell_heeds_signals_that_the_tests_ignore():
    # As `nohup` and a script's `&` start them.
    numbers = signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        with Shell() as sh:
            sh.run("grep SigIgn /proc/self/status")
            mask = int(sh.printed().split("SigIgn:")[1].split()[0], 16)
            same([number.name for number in numbers if mask >> (number - 1) & 1], [])
            same(sh.run("kill -INT $$; echo not here").facts[0], 130)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


load_tests = plain_functions(globals())
