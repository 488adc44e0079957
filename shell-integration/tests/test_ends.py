"""The facts of a command's end: exit code, pipeline status, flags, directory. Each test is one fact about real shells."""

import os
import re
import signal

from rig import HAS_BUILTINS, same
from shells import ALL, Bash, Fish, Zsh, codes, in_each, ready


@in_each(*ALL)
def test_exit_codes_are_the_commands_own(shell, words):
    cases = {"true": 0, "false": 1, codes(words, 7): 7, "nosuch": 127, "sh -c 'kill -9 $$'": 137, "bash -c 'kill -TERM $$'": 143}
    cases |= {Bash: {}, Zsh: {"[[ a == b ]]": 1, "x=1": 0, "ls *.nosuch": 1}, Fish: {"ls *.nosuch": 124, "return 5": 5}}[shell]
    with shell() as sh:
        same({c: sh.run(c).facts for c in cases}, {c: (n, [n], "") for c, n in cases.items()})


@in_each(*ALL)
def test_a_pipeline_reports_the_status_of_each_element(shell, words):
    with shell() as sh:
        same(sh.run("false | true").facts, (0, [1, 0], ""))
        same(sh.run(f"{codes(words, 3, 4)} | true").facts, (0, [3, 4, 0], ""))
        if shell is Fish:
            same(sh.run("not true | false").facts, (0, [0, 1], ""))
            return
        sh.run("set -o pipefail")
        same(sh.run("(exit 3) | true | (exit 0)").facts, (3, [3, 0, 0], ""))
        same(sh.type("(exit 3) | true").facts, (3, [3, 0], ""))


@in_each(*ALL)
def test_a_command_sees_the_status_of_the_one_before(shell, words):
    with shell() as sh:
        both = f"echo {words.status} {words.statuses}"
        sh.run(codes(words, 7))
        same(sh.prints(f"echo {words.status}"), "7\n")
        sh.run(f"{codes(words, 3, 4)} | true")
        same(sh.prints(both), "0 3 4 0\n")
        sh.run(f"true | {codes(words, 4)}")
        same(sh.prints(both), "4 0 4\n")
        sh.run(codes(words, 4))
        same(sh.prints(both), "4 4\n")
        sh.type(codes(words, 4))
        same(sh.prints(both), "4 4\n")
        sh.type(codes(words, 5, 6))
        same(sh.prints(both), "6 5 6\n")
        sh.run(codes(words, 5, 6))
        sh.at_prompt()
        sh.keys(f"echo {words.status}\r".encode())
        sh.sees(b"\r\n6\r\n" if shell is Zsh else b"6\r\n")
        sh.done()


@in_each(Fish)
def test_a_status_that_not_has_turned_is_seen_by_the_next_command(shell, _words):
    with shell() as sh:
        same(sh.run("not true | sh -c 'exit 4'").facts, (0, [0, 4], ""))
        same(sh.prints("echo $status $pipestatus"), "0 0 4\n")
        same(sh.run("not true").facts, (1, [0], ""))
        same(sh.prints("echo $status $pipestatus"), "1 0\n")
        sh.type("not true | sh -c 'exit 6'")
        same(sh.prints("echo $status $pipestatus"), "0 0 6\n")


@in_each(*ALL)
def test_a_child_that_a_signal_has_ended_gives_that_signals_code(shell, words):
    with shell() as sh:
        for signo in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGKILL, signal.SIGABRT, signal.SIGPIPE, signal.SIGUSR1):
            for text in ("sh -c 'kill -{} $$'", "true | sh -c 'kill -{} $$'"):
                same((text, signo, sh.run(text.format(int(signo))).facts[0]), (text, signo, 128 + signo))
            same(sh.prints(f"echo {words.status}"), f"{128 + signo}\n")


@in_each(*ALL)
def test_the_directory_is_exact_to_the_byte(shell, _words):
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


@in_each(*ALL)
def test_a_line_that_a_person_types_is_reported_without_an_id(shell, words):
    with shell() as sh:
        end = sh.type("false | true")
        same((end.id, end.facts), (0, (0, [1, 0], "")))
        same(sh.run(codes(words, 2)).facts, (2, [2], ""))
        same(sh.type("false").facts, (1, [1], ""))
        same(sh.type(codes(words, 2)).facts, (2, [2], ""))
        if shell is not Bash:
            refused = sh.type("echo )")
            same((refused.id, refused.exit != 0), (0, True))
        same(sh.prints("echo usable"), "usable\n")
        if shell is Fish:
            same(sh.type("").id, 0)


@in_each(Zsh)
def test_a_person_at_the_prompt_interrupts_leaves_and_pastes(shell, _words):
    with shell() as sh:
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


@in_each(Zsh, Fish)
def test_lines_typed_ahead_each_have_their_end(shell, words):
    with shell() as sh:
        sh.start("read -k1; sleep 0.1" if shell is Zsh else "sleep 0.2; echo first")
        sh.keys((b"x" if shell is Zsh else b"") + f"{codes(words, 3)}\r{codes(words, 4)}\r".encode())
        same([sh.done().facts for _ in range(3)], [(0, [0], ""), (3, [3], ""), (4, [4], "")])
        same(sh.run("true").facts, (0, [0], ""))


# Texts in their order, each with its code, or with the output of its success.
DECLARATIONS = {
    Bash: {
        "declare -a x=(1 2)": 0,
        'echo "${x[1]} ${#FUNCNAME[@]}"': "2 0\n",
        "f() { local y=3; echo $y; return 4; }; alias g='f'": 0,
        "local z=1": 1,
        "return 5": 2,
    },
    Zsh: {
        "typeset -a x=(1 2); local z=3; typeset -A m=(a b)": 0,
        'echo "${x[2]} $z $m[a] $0"': "2 3 b zsh\n",
        "f() { local y=3; echo $y; return 4; }; alias g='f'": 0,
        "return 5; echo no": 5,
        "setopt ksharrays; unsetopt equals": "",
        'echo "${x[1]} =ls"': "2 =ls\n",
    },
    Fish: {
        "set x 1 2; set -g y 3; set -x z 4; function f; set -l y 3; echo $y; return 4; end; alias g=f": 0,
        "echo $x $y; printenv z; set -q argv; or echo no argv": "1 2 3\n4\nno argv\n",
        "status is-interactive; and status is-interactive-job-control; and echo $fish_pid": "{pid}\n",
    },
}


@in_each(*ALL)
def test_declarations_work_as_if_typed(shell, _words):
    with shell() as sh:
        for text, wanted in DECLARATIONS[shell].items():
            told = sh.run(text).exit if isinstance(wanted, int) else sh.prints(text)
            same((text, told), (text, wanted if isinstance(wanted, int) else wanted.format(pid=sh.pid)))
        same((sh.run("g").facts, sh.printed()), ((4, [4], ""), "3\n"))
        if shell is Bash:
            same(sh.run("return 5").facts, (2, [2], ""))


@in_each(*ALL)
def test_exit_ends_the_shell_with_its_status(shell, words):
    for command, status in ("exit 3", 3), ("exec true", 0), (f"kill -9 {words.pid}", -9), ("echo a; exit 130", 130):
        with shell() as sh:
            sh.start(command)
            same((command, sh.ended()), (command, status))
            if shell is Fish and status != 130:
                same([body for kind, body in sh.records if kind == "D"], [])


@in_each(Bash)
def test_a_job_that_keeps_the_terminal_does_not_delay_the_end_of_the_shell(shell, _words):
    with shell() as sh:
        sh.start("sleep 50 & echo $!; exit 5")
        pid, raw = os.waitpid(sh.pid, 0)
        sh.status = os.waitstatus_to_exitcode(raw)
        same((pid, sh.status), (sh.pid, 5))
        while not (job := re.search(rb"\n(\d+)\r\n", sh.output[sh.begin :])):
            sh.pump(1)
        os.kill(int(job[1]), signal.SIGKILL)


@in_each(Fish)
def test_an_exit_that_fish_refuses_because_of_jobs_is_an_end(shell, words):
    with shell() as sh:
        sh.run("sleep 60 &")
        same(sh.run("exit 3").facts, (3, [3], "n"))
        same(sh.prints("echo here"), "here\n")
        sh.run(words.kill_jobs)


@in_each(*ALL)
def test_an_exit_trap_still_runs(shell, _words):
    trap = "trap 'echo bye' EXIT"
    of_zsh = trap, "TRAPEXIT() { echo bye; }", "zshexit() { echo bye; }"
    for trap in {Bash: [trap], Zsh: of_zsh, Fish: ["function bye --on-event fish_exit; echo bye; end"]}[shell]:
        with shell() as sh:
            same(sh.run(trap).facts, (0, [0], ""))
            sh.start("exit 4")
            same((trap, sh.ended(), b"bye\r\n" in sh.output), (trap, 4, True))


@in_each(*ALL)
def test_an_interrupt_is_an_end_but_not_an_incomplete_command(shell, words):
    with shell() as sh:
        for text in "echo on; sleep 60; echo after", "echo on\nsleep 60\necho after":
            for is_key in False, True:
                sh.start(text)
                sh.sees(b"on\r\n")
                group = sh.foreground("sleep")
                if is_key:
                    sh.keys(b"\x03")
                else:
                    os.killpg(group, signal.SIGINT)
                end = sh.done()
                same((text, end.facts, sh.last_id), (text, (130, [130], "n"), end.id))
                assert b"after" not in sh.output[sh.begin :], sh.transcript()
                if shell is Fish and not is_key:
                    same(sh.printed().rstrip(), "on")
                same(sh.prints(f"echo {words.status}"), "130\n")


@in_each(*ALL)
def test_a_loop_of_the_shells_own_can_be_interrupted(shell, _words):
    loop = "while true; end" if shell is Fish else "while :; do :; done"
    # zsh itself runs nothing more, also without us, if an interrupt comes between two checks at the end of a round. That is one in two
    # hundred for the shortest round, and far fewer for a long one.
    long = ": ${(l:99999:)x}"
    with shell() as sh:
        for loop in [f"while :; do {long}; done", f"repeat 100000000; do {long}; done"] if shell is Zsh else [loop]:
            sh.start(f"echo on; {loop}")
            sh.sees(b"on\r\n")
            os.kill(sh.pid, signal.SIGINT)
            end = sh.done()
            same((end.pipestatus, end.flags), ([130], "n"))
            assert shell is Zsh or end.exit == 130, end
            same(sh.run("false").facts, (1, [1], ""))


@in_each(*ALL)
def test_a_stopped_job_ends_the_command(shell, words):
    # fish leaves its status as it was.
    code, word = {Bash: (148, "Stopped"), Zsh: (148, "suspended"), Fish: (0, "stopped")}[shell]
    with shell() as sh:
        sh.start("sleep 60")
        os.killpg(sh.foreground("sleep"), signal.SIGTSTP)
        same(sh.done().exit, code)
        assert word in sh.prints("jobs")
        sh.run(words.kill_jobs)


@in_each(*ALL)
def test_a_background_job_does_not_delay_the_end(shell, words):
    with shell() as sh:
        late = "sleep 60" if shell is Fish else "(sleep 60; echo late)"
        same(sh.run(f"{late} & echo hi").facts, (0, [0], ""))
        same(sh.printed().splitlines()[-1], "hi")
        same(sh.run("sleep 60 &").facts, (0, [0], ""))
        sh.run(words.kill_jobs)


@in_each(*ALL)
def test_a_changed_path_is_reported_before_the_end(shell, _words):
    longer, *none = {
        Bash: ("PATH=/nowhere:$PATH", "PATH="),
        Zsh: ("path=(/nowhere $path)", "PATH=", "unset PATH"),
        Fish: ("set PATH /nowhere $PATH", "set PATH"),
    }[shell]
    with shell() as sh:
        same(sh.path, os.environ["PATH"].encode())
        sh.path = None
        sh.run("true")
        same(sh.path, None)
        sh.run(longer)
        same(sh.path, b"/nowhere:" + os.environ["PATH"].encode())
        for text in none:
            sh.run(text)
            same((text, sh.path, sh.run("echo x").exit), (text, b"", 0))


@in_each(Bash, Zsh)
def test_a_virtual_environment_changes_the_path_and_the_prompt(shell, _words):
    activate = 'PATH="$HOME/venv/bin:$PATH"; export PATH; VIRTUAL_ENV="$HOME/venv"; PS1="(venv) $PS1"; hash -r'
    with shell(files={"activate": activate}) as sh:
        sh.run(". ./activate")
        assert sh.path.startswith(os.fsencode(sh.home / "venv/bin:")), sh.path
        sh.sees(b"(venv) ")
        same(sh.prints("echo fine"), "fine\n")


# bash and zsh lack the end of each of these texts.
OPEN = [
    "function f",
    "f()",
    "f()  # head only",
    "echo abc |",
    "echo abc |& \\\n",
    "echo abc && # more to come\n",
    "echo abc ||\n\n  # a comment\n# another\n",
    "cat <<EOF\nfoo",
    "x=$(cat <<EOF\nfoo",
    "x=(a b",
    "case x in",
    "case x in y) echo",
    "for i in 1 2",
    "for i in 1 2; do",
    "select i in 1 2",
]
# The parser of bash finds these where it runs the text.
OPEN_TO_THE_PARSER = [
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
OPEN_TO_BASH = ["f ( )  # head only", "case x in y) echo;;", "for i", "for ((;;))", "touch b || # c"]
OPEN_TO_ZSH = [
    "cat <<-EOF\n\tfoo\n",
    "cat <<EOF",
    "for i (1 2)",
    "repeat 3",
    "if [[ a == a ]]",
    "while [[ a == b ]]",
    "if true",
    "if true; then echo a; else",
    "[[ a ==",
    "[[ a == b",
    "case x in (y",
    "for ((i = 0; i < 3;",
    "foreach i (1 2)\necho $i",
    "() {",
    "echo $'abc",
    "cat <(echo a",
    "{ echo a } always {",
    "time (",
]
OPEN_TO_FISH = [
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
INCOMPLETE = {Bash: OPEN + OPEN_TO_BASH, Zsh: OPEN + OPEN_TO_THE_PARSER + OPEN_TO_ZSH, Fish: OPEN_TO_FISH}


@in_each(*ALL)
def test_incomplete_commands_end_with_a_flag_and_nothing_hangs_or_runs(shell, words):
    code = words.incomplete
    with shell() as sh:
        for command in INCOMPLETE[shell]:
            end = sh.run(("touch ran\n" if shell is Zsh else "touch ran; ") + command)
            same((command, end.facts, sh.home.joinpath("ran").exists()), (command, (code, [code], "i"), False))
            assert shell is not Fish or sh.printed().startswith("fish: "), (command, sh.printed())
            same((command, sh.run(command).facts), (command, (code, [code], "i")))
        same(sh.run({Bash: "declare -F f", Zsh: "which f", Fish: "functions -q f"}[shell]).exit, 1)
        same(sh.prints("echo usable"), "usable\n")


@in_each(Bash)
def test_a_command_whose_end_the_parser_misses_has_both_flags(shell, _words):
    with shell() as sh:
        same({c: sh.run(c).facts[2] for c in OPEN_TO_THE_PARSER}, {c: "ni" for c in OPEN_TO_THE_PARSER})
        same(sh.run("while true; do echo x").facts, (2, [2], "ni"))
        assert sh.printed().startswith("bash: syntax error: unexpected end of file")
        same(sh.run("declare -F f").facts, (1, [1], ""))
        same(sh.prints("echo usable"), "usable\n")


@in_each(Bash)
def test_bashs_message_about_an_incomplete_command_names_nothing_of_ptyd(shell, _words):
    incomplete = ["for i in 1 2", "for ((;;))", "case x in", "case x in y) ;;", "case x", "select i", "x=(a", "true\nx+=(", "[[ a"]
    with shell() as sh:
        for settings in ("", "set -u", "set -e"):
            sh.run(settings or ":")
            for command in incomplete:
                sh.run(command)
                said = sh.printed()
                assert "if" not in said and "ptyd" not in said and "`;'" not in said, (settings, command, said)
                assert "unexpected" in said or "expected" in said, (settings, command, said)


@in_each(Bash)
def test_a_head_with_its_body_runs_and_the_last_match_stays(shell, _words):
    with shell() as sh:
        for settings in ("", "set -u"):
            sh.run(settings or ":")
            same(sh.prints("for i in 1 2; do echo $i; done; x=(a b); case $i in 2) echo ${x[1]};; esac"), "1\n2\nb\n")
            sh.run("[[ ab =~ (b) ]]")
            same(sh.prints("for m in \"${BASH_REMATCH[1]}\"; do echo $m; done"), "b\n")


@in_each(Bash)
def test_errexit_is_reported_as_set_at_the_end_of_a_command(shell, _words):
    with shell() as sh:
        for command, is_on in (":", False), ("set -e", True), ("set -u", True), ("set +e", False), ("set -o errexit; true", True):
            sh.run(command)
            same((command, sh.has_errexit), (command, is_on))
        sh.type("set +e")
        same(sh.has_errexit, False)
        sh.type("set -e")
        same(sh.has_errexit, True)


@in_each(Bash)
def test_a_text_before_a_here_document_without_an_end_has_not_run(shell, _words):
    with shell() as sh:
        for command in "cat <<EOF; touch a\nfoo", "touch a; cat <<E":
            same((command, sh.run(command).facts, list(sh.home.glob("a"))), (command, (2, [2], "i"), []))


# The facts and the words of a refused text.
REFUSALS = {
    Bash: {"cat <<EOF\nfoo": (2, "i", "here-document at line 1 delimited by end-of-file")},
    Zsh: {
        "fi": (1, "n", "zsh: parse error near `fi'\n"),
        "echo 'abc": (1, "i", "zsh: unmatched '\n"),
        "if true; then": (1, "i", "zsh: parse error near `then'\n"),
        "echo a\n)\necho b": (1, "n", "zsh: parse error near `)'\n"),
    },
    Fish: {"if true": (123, "i", "fish: Missing end to balance this if statement")},
}


@in_each(*ALL)
def test_the_shell_says_why_it_refuses(shell, _words):
    with shell() as sh:
        for text, (code, flag, says) in REFUSALS[shell].items():
            same((text, sh.run(text).facts), (text, (code, [code], flag)))
            said = sh.printed()
            assert says in said if shell is Bash else said.strip() == says.strip(), (text, said)
        if shell is not Fish:
            same(sh.prints("cat <<EOF\nfoo\nEOF"), "foo\n")
            same(sh.prints("echo $((1<<2)) '<<EOF'"), "4 <<EOF\n")


WRONG = {
    Bash: ["fi"],
    Zsh: ["fi", "done", "}", ")", "echo a\n)\necho b", "if fi", "case x in esac)", "a;;b", "&& a", "| a", "echo )"],
    Fish: ["end", "echo )", "echo >", "a=1", "echo {a", "|", "case", "echo $x[1", "echo a; and", "$x = 1 )"],
}


@in_each(*ALL)
def test_a_syntax_error_did_not_run_but_is_not_incomplete(shell, words):
    with shell() as sh:
        for command in WRONG[shell]:
            end = sh.run("touch ran; " + command if shell is Fish and command != "|" else command)
            same((command, end.flags, sh.home.joinpath("ran").exists()), (command, "n", False))
            assert (end.exit != 0) if shell is Fish else (end.facts == (words.wrong, [words.wrong], "n")), (command, end)
        same(sh.run("echo one\n)\necho two").flags, "n")
        # bash reads its text line by line.
        same(("one\n" in sh.printed(), "two" in sh.printed()), (shell is Bash, False))
        if shell is not Fish:
            same(sh.run("echo one\n)\necho two").facts, (words.wrong, [words.wrong], "n"))
        same(sh.prints("echo ok"), "ok\n")


@in_each(Zsh)
def test_an_error_ends_the_text_and_says_so(shell, _words):
    with shell() as sh:
        for error in "echo ${x:?no}; echo never", "echo *.nothing; echo never", "typeset -r r=1; r=2; echo never":
            same((error, sh.run(error).facts), (error, (1, [1], "n")))
            assert "never" not in sh.printed()
        same(sh.prints("echo $?"), "1\n")


@in_each(*ALL)
def test_the_report_key_while_a_command_reads_says_still_running(shell, words):
    # Even where the command has taken the hook away.
    of_bash = "PROMPT_COMMAND=; " + words.edit, "f() { PROMPT_COMMAND=; $1 -e -p 'name? ' n; echo got:$n; }; f read"
    with shell() as sh:
        for text in (words.edit, *{Bash: of_bash, Zsh: ["precmd_functions=(); " + words.edit], Fish: ()}[shell]):
            sh.start(text)
            sh.sees(b"name? ")
            ready(sh)
            sh.report()
            same((text, sh.record("R").split(b";")[1]), (text, b"%d" % sh.last_id))
            sh.keys(b"John\r")
            same((text, sh.done().facts), (text, (0, [0], "")))
            assert sh.printed().endswith("got:John\n"), sh.transcript()


@in_each(Fish)
def test_a_read_that_a_person_started_continues_and_receives_no_command(shell, _words):
    with shell() as sh:
        sh.at_prompt()
        sh.keys(b"read -P 'name? ' n\r")
        sh.sees(b"name? \x1b[K")
        sh.reads_keys()
        # The report key names no command, and the load key the refused one.
        sh.report()
        same(sh.record("R").split(b";")[1], b"0")
        sh.keys(b"Jo")
        sh.hand_over("touch a")
        same(sh.record("R").split(b";")[1], b"1")
        sh.keys(b"hn\r")
        same((sh.done().id, list(sh.home.glob("a"))), (0, []))
        same(sh.prints("echo $n"), "John\n")


@in_each(Zsh)
def test_the_report_key_at_the_prompt_says_that_nothing_runs(shell, _words):
    with shell() as sh:
        sh.run("true")
        sh.at_prompt()
        sh.report()
        same(sh.record("R").split(b";")[1], b"0")
        same(sh.run("false").facts, (1, [1], ""))


@in_each(Fish)
def test_the_report_key_at_the_prompt_reports_the_end_once_more(shell, _words):
    with shell() as sh:
        sh.run("sh -c 'exit 7'")
        sh.reads_keys()
        sh.report()
        end = sh.done()
        same((end.id, end.facts), (0, (7, [7], "l")))
        same(sh.prints("echo $status"), "7\n")


@in_each(Bash, Fish)
def test_a_lost_hook_is_found_by_the_report_key(shell, _words):
    # With the builtins the hook is the line editor's, and cannot be lost.
    is_kept = shell is Bash and HAS_BUILTINS
    with shell() as sh:
        if shell is Fish:
            sh.start("functions -e (functions -a | string match '__ptyd*'); echo on; sh -c 'exit 3'")
            sh.sees(b"on\r\n")
            sh.reads_keys()
        else:
            sh.start("PROMPT_COMMAND=; echo on; sleep 60")
            sh.sees(b"on\r\n")
            os.killpg(sh.foreground("sleep"), signal.SIGINT)
            sh.foreground("bash")
            sh.at_prompt()
        if not is_kept:
            same(sh.records, [])
            sh.report()
        end = sh.done()
        flags = "l" if shell is Fish else "n" if is_kept else "ln"
        same((end.id, set(end.flags)), (1, set(flags)))
        assert shell is Fish or end.exit == 130, end
        same(sh.run("false").facts, (1, [1], ""))


@in_each(Bash)
def test_a_hook_that_a_person_removed_returns_with_the_next_command(shell, _words):
    with shell() as sh:
        sh.at_prompt()
        sh.keys(b"PROMPT_COMMAND=\r")
        sh.sees(b"PROMPT_COMMAND=\r\n")
        if HAS_BUILTINS:
            same(sh.done().facts, (0, [0], ""))
        sh.at_prompt()
        same(sh.run("false").facts, (1, [1], ""))


@in_each(Zsh)
def test_a_hook_that_a_command_removed_returns_after_it(shell, _words):
    with shell() as sh:
        same(sh.run("precmd_functions=(); false").facts, (1, [1], ""))
        same(sh.type("(exit 5)").facts, (5, [5], ""))
        sh.start("precmd_functions=(); echo on; sleep 60")
        sh.sees(b"on\r\n")
        os.killpg(sh.foreground("sleep"), signal.SIGINT)
        same(sh.done().facts, (130, [130], "n"))
        same(sh.run("false").facts, (1, [1], ""))
        same(sh.type("(exit 5)").facts, (5, [5], ""))


@in_each(Zsh)
def test_a_hook_that_a_person_removed_returns_with_the_next_command_or_the_report_key(shell, _words):
    with shell() as sh:
        for back in (lambda: sh.run("false")), (lambda: (sh.report(), sh.done())[1]):
            sh.at_prompt()
            sh.keys(b"precmd_functions=(); (exit 1)\r")
            sh.sees(b"precmd_functions=(); (exit 1)\x1b")
            sh.reads_keys()
            same((sh.records, back().exit), ([], 1))
            same(sh.type("(exit 5)").facts, (5, [5], ""))


@in_each(Bash, Zsh)
def test_a_key_on_a_continuation_line_of_a_person_takes_nothing(shell, words):
    more = b"more> "
    with shell(**{words.config: "PS2='more> '"}) as sh:
        sh.at_prompt()
        sh.keys(b"if true\r")
        sh.sees(more)
        sh.hand_over("touch a")
        sh.record("R")
        # bash shows the line again for each key.
        sh.until("accept key", lambda: sh.output.count(more, sh._seen) >= (3 if shell is Bash else 2))
        sh.reads_keys()
        os.kill(sh.pid, signal.SIGINT)
        same(sh.done().id, 0)
        same(list(sh.home.glob("a")), [])
        same(sh.run("false").facts, (1, [1], ""))


@in_each(Bash)
# promise: check-2
def test_the_shell_heeds_signals_that_the_tests_were_told_to_ignore(shell, _words):
    # As `nohup` and a script's `&` start them.
    numbers = signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        with shell() as sh:
            sh.run("grep SigIgn /proc/self/status")
            mask = int(sh.printed().split("SigIgn:")[1].split()[0], 16)
            same([number.name for number in numbers if mask >> (number - 1) & 1], [])
            same(sh.run("kill -INT $$; echo not here").facts[0], 130)
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
