"""zsh: what a command's end says: exit code, pipeline status, flags, directory. Each test is one fact about a real zsh."""

import os
import signal

from rig import Zsh, plain_functions, same


def test_exit_codes_are_the_commands_own():
    with Zsh() as sh:
        cases = {
            "true": 0,
            "false": 1,
            "(exit 7)": 7,
            "nosuch": 127,
            "sh -c 'kill -9 $$'": 137,
            "bash -c 'kill -TERM $$'": 143,
            "[[ a == b ]]": 1,
            "x=1": 0,
            "ls *.nothing": 1,
        }
        same({c: sh.run(c).facts for c in cases}, {c: (n, [n], "") for c, n in cases.items()})


def test_a_pipeline_tells_the_status_of_each_element():
    with Zsh() as sh:
        same(sh.run("false | true").facts, (0, [1, 0], ""))
        sh.run("setopt pipefail")
        same(sh.run("(exit 3) | true | (exit 0)").facts, (3, [3, 0, 0], ""))
        same(sh.type("(exit 3) | true").facts, (3, [3, 0], ""))


def test_a_command_sees_the_status_of_the_one_before():
    with Zsh() as sh:
        sh.run("(exit 7)")
        same(sh.prints("echo $?"), "7\n")
        sh.run("(exit 3) | (exit 4) | true")
        same(sh.prints('echo "$? ${pipestatus[@]}"'), "0 3 4 0\n")
        sh.run("true | (exit 4)")
        same(sh.prints('echo "$? ${pipestatus[@]}"'), "4 0 4\n")
        sh.type("(exit 5) | (exit 6)")
        same(sh.prints('echo "$? ${pipestatus[@]}"'), "6 5 6\n")
        sh.run("(exit 5) | (exit 6)")
        sh.at_prompt()
        sh.keys(b"echo $?\r")
        sh.sees(b"\r\n6\r\n")
        sh.done()


def test_a_persons_line_is_reported_without_an_id():
    with Zsh() as sh:
        end = sh.type("false | true")
        same((end.id, end.facts), (0, (0, [1, 0], "")))
        same(sh.run("(exit 2)").facts, (2, [2], ""))
        same(sh.type("false").facts, (1, [1], ""))
        same(sh.type("fi").facts[:1], (1,))
        same(sh.run("true").facts, (0, [0], ""))


def test_a_person_at_the_prompt_interrupts_leaves_and_pastes():
    with Zsh() as sh:
        for keys in b"abc\x03", b"\r", b"\x1b[200~(exit 3)\n(exit 4)\x1b[201~\r":
            sh.reads_keys()
            sh.keys(keys)
            same((keys, (end := sh.done()).id), (keys, 0))
        same(end.facts, (4, [4], ""))
        sh.run("sleep 60 &")
        sh.reads_keys()
        sh.keys(b"\x04")
        same((sh.done().id, b"you have running jobs" in sh.output), (0, True))
        same(sh.run("kill -9 $!; wait; (exit 6)").facts, (6, [6], ""))
        sh.reads_keys()
        sh.keys(b"\x04")
        same(sh.ended(), 6)


def test_lines_typed_ahead_are_reported_one_by_one():
    with Zsh() as sh:
        sh.start("read -k1; sleep 0.1")
        sh.keys(b"x(exit 3)\r(exit 4)\r")
        same([sh.done().facts for _ in range(3)], [(0, [0], ""), (3, [3], ""), (4, [4], "")])


def test_declarations_work_as_if_typed():
    with Zsh() as sh:
        sh.run("typeset -a x=(1 2); local z=3; typeset -A m=(a b)")
        same(sh.prints('echo "${x[2]} $z $m[a] $0"'), "2 3 b zsh\n")
        sh.run("f() { local y=3; echo $y; return 4; }; alias g='f'")
        same(sh.run("g").facts, (4, [4], ""))
        same(sh.printed(), "3\n")
        same(sh.run("return 5; echo no").exit, 5)
        same(sh.run("setopt ksharrays; unsetopt equals").facts, (0, [0], ""))
        same(sh.prints('echo "${x[1]} =ls"'), "2 =ls\n")


def test_exit_ends_the_shell_with_its_status():
    for command, status in ("exit 3", 3), ("exec true", 0), ("kill -9 $$", -9):
        with Zsh() as sh:
            sh.start(command)
            same(sh.ended(), status)


def test_an_exit_trap_still_runs():
    for trap in "trap 'echo bye' EXIT", "TRAPEXIT() { echo bye; }", "zshexit() { echo bye; }":
        with Zsh() as sh:
            same(sh.run(trap).facts, (0, [0], ""))
            sh.start("exit 4")
            same((trap, sh.ended(), b"bye\r\n" in sh.output), (trap, 4, True))


def test_an_interrupt_is_an_end_but_not_an_incomplete_command():
    with Zsh() as sh:
        sh.start("echo on; sleep 60; echo after")
        sh.sees(b"on\r\n")
        os.killpg(sh.foreground("sleep"), signal.SIGINT)
        end = sh.done()
        same((end.facts, end.id), ((130, [130], "n"), sh.last_id))
        assert b"after" not in sh.output[sh.begin :]
        same(sh.prints("echo $?"), "130\n")


def test_a_loop_of_the_shells_own_can_be_interrupted():
    with Zsh() as sh:
        for loop in "while :; do :; done", "repeat 100000000; do x=1; done":
            sh.start(f"echo on; {loop}")
            sh.sees(b"on\r\n")
            os.kill(sh.pid, signal.SIGINT)
            same(sh.done().facts[1:], ([130], "n"))
            same(sh.run("false").facts, (1, [1], ""))


def test_a_background_job_does_not_delay_the_end():
    with Zsh() as sh:
        same(sh.run("(sleep 60; echo late) & echo hi").facts, (0, [0], ""))
        same(sh.printed().splitlines()[-1], "hi")
        same(sh.run("sleep 60 &").facts, (0, [0], ""))
        sh.run("kill -9 %${(k)^jobstates}; wait")


def test_a_changed_path_is_told_before_the_end():
    with Zsh() as sh:
        same(sh.path, os.environ["PATH"].encode())
        sh.path = None
        sh.run("true")
        same(sh.path, None)
        sh.run("path=(/nowhere $path)")
        same(sh.path, b"/nowhere:" + os.environ["PATH"].encode())
        sh.run("PATH=")
        same((sh.path, sh.run("echo x").exit), (b"", 0))
        sh.run("unset PATH")
        same((sh.path, sh.run("echo x").exit), (b"", 0))


INCOMPLETE = [
    "function f",
    "f()",
    "f()  # head only",
    "echo abc |",
    "echo abc |& \\\n",
    "echo abc && # more to come\n",
    "echo abc ||\n\n  # a comment\n# another\n",
    "cat <<EOF\nfoo",
    "cat <<-EOF\n\tfoo\n",
    "cat <<EOF",
    "x=$(cat <<EOF\nfoo",
    "for i in 1 2",
    "for i (1 2)",
    "repeat 3",
    "if [[ a == a ]]",
    "while [[ a == b ]]",
    "if true; then",
    "if true",
    "if true; then echo a; else",
    "while true; do echo x",
    "until false",
    "echo 'abc",
    'echo "abc',
    "echo `abc",
    "echo $(abc",
    "echo ${x:-",
    "echo $((1 +",
    "((1 +",
    "[[ a ==",
    "[[ a == b",
    "(echo abc",
    "{ echo abc",
    "x=(a b",
    "case x in",
    "case x in y) echo",
    "case x in (y",
    "for i in 1 2; do",
    "for ((i = 0; i < 3;",
    "foreach i (1 2)\necho $i",
    "select i in 1 2",
    "f() {",
    "() {",
    "echo \"$(echo 'abc)\"",
    "echo $'abc",
    "cat <(echo a",
    "{ echo a } always {",
    "time (",
]


def test_incomplete_commands_end_with_a_flag_and_nothing_hangs_or_runs():
    with Zsh() as sh:
        same({c: sh.run("touch ran\n" + c).facts for c in INCOMPLETE}, {c: (1, [1], "i") for c in INCOMPLETE})
        same(sh.run("which f").exit, 1)
        same(list(sh.home.glob("ran")), [])
        same(sh.prints("echo usable"), "usable\n")


def test_zsh_says_why_it_refuses():
    with Zsh() as sh:
        said = {c: (sh.run(c).facts, sh.printed()) for c in ("fi", "echo 'abc", "if true; then", "echo a\n)\necho b")}
        wanted = {
            "fi": ((1, [1], "n"), "zsh: parse error near `fi'\n"),
            "echo 'abc": ((1, [1], "i"), "zsh: unmatched '\n"),
            "if true; then": ((1, [1], "i"), "zsh: parse error near `then'\n"),
            "echo a\n)\necho b": ((1, [1], "n"), "zsh: parse error near `)'\n"),
        }
        same(said, wanted)
        same(sh.prints("cat <<EOF\nfoo\nEOF"), "foo\n")
        same(sh.prints("echo $((1<<2)) '<<EOF'"), "4 <<EOF\n")


def test_syntax_errors_are_not_incomplete():
    wrong = ["fi", "done", "}", ")", "echo a\n)\necho b", "if fi", "case x in esac)", "a;;b", "&& a", "| a", "echo )"]
    with Zsh() as sh:
        same({c: sh.run(c).facts for c in wrong}, {c: (1, [1], "n") for c in wrong})
        same(sh.prints("echo ok"), "ok\n")


def test_an_error_ends_the_text_and_says_so():
    with Zsh() as sh:
        for error in "echo ${x:?no}; echo never", "echo *.nothing; echo never", "typeset -r r=1; r=2; echo never":
            same((error, sh.run(error).facts), (error, (1, [1], "n")))
            assert "never" not in sh.printed()
        same(sh.prints("echo $?"), "1\n")


def test_the_report_key_in_an_editor_inside_a_command_says_still_running():
    with Zsh() as sh:
        for lost in "", "precmd_functions=(); ":
            sh.start(lost + "n=; vared -p 'name? ' n; echo got:$n")
            sh.sees(b"name? ")
            sh.at_prompt()
            sh.report()
            same(sh.record("R").split(b";")[1], b"%d" % sh.last_id)
            sh.keys(b"John\r")
            same(sh.done().facts, (0, [0], ""))
            assert sh.printed().endswith("got:John\n")


def test_the_report_key_at_the_prompt_says_that_nothing_runs():
    with Zsh() as sh:
        sh.run("true")
        sh.at_prompt()
        sh.report()
        same(sh.record("R").split(b";")[1], b"0")
        same(sh.run("false").facts, (1, [1], ""))


def test_a_hook_that_a_command_took_away_is_back_after_it():
    with Zsh() as sh:
        same(sh.run("precmd_functions=(); false").facts, (1, [1], ""))
        same(sh.type("(exit 5)").facts, (5, [5], ""))
        sh.start("precmd_functions=(); echo on; sleep 60")
        sh.sees(b"on\r\n")
        os.killpg(sh.foreground("sleep"), signal.SIGINT)
        same(sh.done().facts, (130, [130], "n"))
        same(sh.run("false").facts, (1, [1], ""))
        same(sh.type("(exit 5)").facts, (5, [5], ""))


def test_a_hook_that_a_person_took_away_comes_back_with_the_next_command_or_the_report_key():
    with Zsh() as sh:
        for back in (lambda: sh.run("false")), (lambda: (sh.report(), sh.done())[1]):
            sh.at_prompt()
            sh.keys(b"precmd_functions=(); (exit 1)\r")
            sh.sees(b"precmd_functions=(); (exit 1)\x1b")
            sh.reads_keys()
            same((sh.records, back().exit), ([], 1))
            same(sh.type("(exit 5)").facts, (5, [5], ""))


def test_a_key_on_a_continuation_line_of_a_person_takes_nothing():
    with Zsh(zshrc="PS2='more> '") as sh:
        sh.at_prompt()
        sh.keys(b"if true\r")
        sh.sees(b"more> ")
        sh.hand_over("touch a")
        sh.record("R")
        sh.until("accept key", lambda: sh.output.count(b"more> ", sh._seen) >= 2)
        sh.reads_keys()
        os.kill(sh.pid, signal.SIGINT)
        same(sh.done().id, 0)
        same(list(sh.home.glob("a")), [])
        same(sh.run("false").facts, (1, [1], ""))


load_tests = plain_functions(globals())
