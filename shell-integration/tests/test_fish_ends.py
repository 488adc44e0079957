"""The facts of a command's end in fish: exit code, pipeline status, flags, directory. Each test is one fact."""

import os
import signal

from fish_rig import Shell
from rig import plain_functions, same


def test_exit_codes_are_the_commands_own():
    with Shell() as sh:
        cases = {
            "true": 0,
            "false": 1,
            "sh -c 'exit 7'": 7,
            "nosuch": 127,
            "ls *.nosuch": 124,
            "sh -c 'kill -9 $$'": 137,
            "sh -c 'kill -TERM $$'": 143,
            "return 5": 5,
        }
        same({c: sh.run(c).facts for c in cases}, {c: (n, [n], "") for c, n in cases.items()})


def test_a_pipeline_tells_the_status_of_each_element():
    with Shell() as sh:
        same(sh.run("false | true").facts, (0, [1, 0], ""))
        same(sh.run("sh -c 'exit 3' | sh -c 'exit 4' | true").facts, (0, [3, 4, 0], ""))
        same(sh.run("not true | false").facts, (0, [0, 1], ""))


def test_a_command_sees_the_status_of_the_one_before():
    with Shell() as sh:
        sh.run("sh -c 'exit 7'")
        same(sh.prints("echo $status"), "7\n")
        sh.run("sh -c 'exit 3' | sh -c 'exit 4' | true")
        same(sh.prints("echo $status $pipestatus"), "0 3 4 0\n")
        sh.run("true | sh -c 'exit 4'")
        same(sh.prints("echo $status $pipestatus"), "4 0 4\n")
        sh.run("sh -c 'exit 4'")
        same(sh.prints("echo $status $pipestatus"), "4 4\n")
        same(sh.run("not true | sh -c 'exit 4'").facts, (0, [0, 4], ""))
        same(sh.prints("echo $status $pipestatus"), "0 0 4\n")
        same(sh.run("not true").facts, (1, [0], ""))
        same(sh.prints("echo $status $pipestatus"), "1 0\n")
        sh.type("sh -c 'exit 5' | sh -c 'exit 6'")
        same(sh.prints("echo $status $pipestatus"), "6 5 6\n")
        sh.type("not true | sh -c 'exit 6'")
        same(sh.prints("echo $status $pipestatus"), "0 0 6\n")


def test_a_persons_line_is_reported_without_an_id():
    with Shell() as sh:
        end = sh.type("false | true")
        same((end.id, end.facts), (0, (0, [1, 0], "")))
        same(sh.run("false").facts, (1, [1], ""))
        same(sh.type("sh -c 'exit 2'").facts, (2, [2], ""))
        same(sh.type("").id, 0)


def test_a_persons_line_that_fish_refuses_is_reported():
    with Shell() as sh:
        end = sh.type("echo )")
        same((end.id, sh.prints("echo usable")), (0, "usable\n"))


def test_lines_typed_ahead_each_have_their_end():
    with Shell() as sh:
        sh.start("sleep 0.2; echo first")
        sh.keys(b"sh -c 'exit 4'\rfalse\r")
        same([sh.done().facts for _ in range(3)], [(0, [0], ""), (4, [4], ""), (1, [1], "")])
        same(sh.run("true").facts, (0, [0], ""))


def test_declarations_work_as_if_typed():
    with Shell() as sh:
        sh.run("set x 1 2; set -g y 3; set -x z 4; function f; set -l y 5; echo $y; return 6; end; alias g=f")
        same(sh.prints("echo $x $y; printenv z; set -q argv; or echo no argv"), "1 2 3\n4\nno argv\n")
        same(sh.run("g").facts, (6, [6], ""))
        same(sh.printed(), "5\n")
        same(sh.prints("status is-interactive; and status is-interactive-job-control; and echo $fish_pid"), f"{sh.pid}\n")


def test_exit_ends_the_shell_with_its_status_and_ends_no_command():
    for command, status in ("exit 3", 3), ("exec true", 0), ("kill -9 $fish_pid", -9), ("echo a; exit 130", 130):
        with Shell() as sh:
            sh.start(command)
            same((command, sh.ended()), (command, status))
            same([body for kind, body in sh.records if kind == "D" and status != 130], [])


def test_an_exit_that_fish_refuses_because_of_jobs_is_an_end():
    with Shell() as sh:
        sh.run("sleep 60 &")
        same(sh.run("exit 3").facts, (3, [3], "n"))
        same(sh.prints("echo here"), "here\n")
        sh.run("kill -9 (jobs -lp)")


def test_an_exit_handler_still_runs():
    with Shell() as sh:
        sh.run("function bye --on-event fish_exit; echo bye; end")
        sh.start("exit 4")
        same((sh.ended(), b"bye\r\n" in sh.output), (4, True))


def test_an_interrupt_is_an_end_but_not_an_incomplete_command():
    with Shell() as sh:
        sh.start("echo on; sleep 60; echo after")
        sh.sees(b"on\r\n")
        os.killpg(sh.foreground("sleep"), signal.SIGINT)
        end = sh.done()
        same((end.facts, sh.last_id), ((130, [130], "n"), end.id))
        assert b"after" not in sh.output[sh.begin :], sh.transcript()
        same(sh.printed().rstrip(), "on")
        same(sh.prints("echo $status"), "130\n")


def test_a_loop_of_the_shells_own_can_be_interrupted():
    with Shell() as sh:
        sh.start("echo on; while true; end")
        sh.sees(b"on\r\n")
        os.kill(sh.pid, signal.SIGINT)
        same(sh.done().facts, (130, [130], "n"))
        same(sh.run("false").facts, (1, [1], ""))


def test_a_key_interrupts_as_a_signal_does():
    with Shell() as sh:
        sh.start("echo on; sleep 60; echo after")
        sh.sees(b"on\r\n")
        sh.foreground("sleep")
        sh.keys(b"\x03")
        same(sh.done().facts, (130, [130], "n"))


def test_a_background_job_does_not_delay_the_end():
    with Shell() as sh:
        same(sh.run("sleep 60 & echo hi").facts, (0, [0], ""))
        same(sh.printed().splitlines()[-1], "hi")
        sh.run("kill -9 (jobs -lp)")


def test_a_changed_path_is_told_before_the_end():
    with Shell() as sh:
        same(sh.path, os.environ["PATH"].encode())
        sh.path = None
        sh.run("true")
        same(sh.path, None)
        sh.run("set PATH /nowhere $PATH")
        same(sh.path, b"/nowhere:" + os.environ["PATH"].encode())
        sh.run("set PATH")
        same((sh.path, sh.run("echo x").exit), (b"", 0))


INCOMPLETE = [
    "echo a |",
    "echo a &&",
    "echo a ||",
    "echo a >&2 |",
    "echo a | # more to come",
    "begin; end |",
    "if true",
    "if true; echo a",
    "begin",
    "begin; echo a",
    "while true",
    "for i in",
    "for i in 1 2; echo a",
    "switch x",
    "switch x; case x; echo a",
    "function f",
    "function f; echo a",
    'echo "a',
    "echo 'a",
    "echo (echo a",
    "echo $(echo a",
    'echo "$(echo a',
    "set x (",
    "echo 1\nif true\necho 2",
]


def test_incomplete_commands_end_with_a_flag_and_have_not_run():
    with Shell() as sh:
        for command in INCOMPLETE:
            end = sh.run("touch ran; " + command)
            same((command, end.facts, sh.home.joinpath("ran").exists()), (command, (123, [123], "i"), False))
            same((command, sh.printed()[:6]), (command, "fish: "))
        same(sh.run("functions -q f").facts, (1, [1], ""))
        same(sh.prints("echo usable"), "usable\n")


def test_fish_says_what_is_missing():
    with Shell() as sh:
        same(sh.run("if true").flags, "i")
        same(sh.printed().strip(), "fish: Missing end to balance this if statement")


def test_a_syntax_error_did_not_run_but_is_not_incomplete():
    with Shell() as sh:
        for command in "end", "echo )", "echo >", "a=1", "echo {a", "|", "case", "echo $x[1", "echo a; and", "$x = 1 )":
            end = sh.run("touch ran; " + command if command != "|" else command)
            same((command, end.flags, end.exit != 0, sh.home.joinpath("ran").exists()), (command, "n", True, False))
        same(sh.run("echo one\n)\necho two").flags, "n")
        assert "one\n" not in sh.printed(), sh.transcript()
        same(sh.run("echo ok").facts, (0, [0], ""))


def test_the_report_key_during_a_read_says_still_running():
    with Shell() as sh:
        sh.start("read -P 'name? ' n; echo got:$n")
        sh.sees(b"name? ")
        sh.reads_keys()
        sh.report()
        same(sh.record("R").split(b";")[1], b"1")
        sh.keys(b"John\r")
        same(sh.done().facts, (0, [0], ""))
        assert sh.printed().endswith("got:John\n"), sh.transcript()


def test_the_report_key_during_a_read_that_a_person_started_names_no_command():
    with Shell() as sh:
        sh.at_prompt()
        sh.keys(b"read -P 'name? ' n\r")
        sh.sees(b"name? \x1b[K")
        sh.reads_keys()
        sh.report()
        same(sh.record("R").split(b";")[1], b"0")
        sh.keys(b"John\r")
        same(sh.done().id, 0)


def test_a_command_handed_to_a_read_is_refused_and_the_read_goes_on():
    with Shell() as sh:
        sh.at_prompt()
        sh.keys(b"read -P 'name? ' n\r")
        sh.sees(b"name? \x1b[K")
        sh.reads_keys()
        sh.keys(b"Jo")
        sh.hand_over("touch a")
        same(sh.record("R").split(b";")[1], b"1")
        sh.keys(b"hn\r")
        same(sh.done().id, 0)
        same(list(sh.home.glob("a")), [])
        same(sh.prints("echo $n"), "John\n")


def test_the_report_key_at_the_prompt_tells_the_end_once_more():
    with Shell() as sh:
        sh.run("sh -c 'exit 7'")
        sh.reads_keys()
        sh.report()
        end = sh.done()
        same((end.id, end.facts), (0, (7, [7], "l")))
        same(sh.prints("echo $status"), "7\n")


def test_a_lost_hook_is_found_by_the_report_key():
    with Shell() as sh:
        sh.start("functions -e (functions -a | string match '__ptyd*'); echo on; sh -c 'exit 3'")
        sh.sees(b"on\r\n")
        sh.reads_keys()
        same(sh.records, [])
        sh.report()
        end = sh.done()
        same((end.id, end.flags), (1, "l"))
        same(sh.run("false").facts, (1, [1], ""))


load_tests = plain_functions(globals())
