"""Commands arrive as the bytes they are, whatever the line editor and the terminal would have made of them."""

import hashlib
import time

from rig import ABORT, ACCEPT, BASH, HAS_BUILTINS, LOAD, Shell, plain_functions, plain_seconds, same


def test_shapes_of_commands_keep_their_meaning():
    cases = {
        "cat <<-EOF\n\tone\n\t\ttwo\n\tEOF\necho three": "one\ntwo\nthree\n",
        "echo a \\": "a\n",
        "echo a \\\n": "a\n",
        "echo a # comment": "a\n",
        "echo a # it's a | pipe && more": "a\n",
        "echo 'a |'": "a |\n",
        "echo a\\|": "a|\n",
        "(exit 0) && echo '()'": "()\n",
        "echo $'a\\nb'\n\n\n": "a\nb\n",
        "for i in 1 2\ndo\necho $i\ndone": "1\n2\n",
        "f() {\n echo in f\n}\nf": "in f\n",
        "shopt -s extglob\ntouch x y\necho !(x)": "y\n",
        "alias hi='echo hello'\nhi there": "hello there\n",
        "echo one; echo two &>/dev/null; { echo three; }": "one\nthree\n",
    }
    with Shell() as sh:
        same({c: sh.prints(c) for c in cases}, cases)


def test_a_megabyte_arrives_whole_and_quickly():
    took = plain = 0
    for body in b"0123456789abcde\n" * 65536, "äöü €\n".encode() * 95000, b"# | && ()\n" * 104000:
        with Shell() as sh:
            sh.run("set +o history")
            text = b"cat >got <<'EOF'\n" + body + b"EOF\nsha256sum got"
            began = time.monotonic()
            sh.run(text)
            took += time.monotonic() - began
            same(sh.printed(), hashlib.sha256(body).hexdigest() + "  got\n")
            plain += plain_seconds(BASH, text, sh.home)
    # A delivery whose time grows with the square of the text takes thousands of times as long.
    assert took < 100 * plain, (took, plain)


def test_a_half_typed_line_is_replaced():
    with Shell() as sh:
        for half in b"echo half", b"echo 'half", b"abc\x1b[D\x1b[D", b"echo \\":
            sh.at_prompt()
            sh.keys(half)
            same((half, sh.prints("echo whole")), (half, "whole\n"))


def test_after_a_persons_keys_the_abort_key_makes_the_editor_listen():
    # An unfinished search, quoted insert, prefix, count or sequence would eat the load key.
    with Shell() as sh:
        sh.type("touch half")
        (sh.home / "half").unlink()
        for half in b"\x12tou", b"\x16", b"\x1b3", b"\x1b", b"\x18", b"\x1b[", b"touch half":
            sh.at_prompt()
            sh.keys(half + ABORT)
            same((half, sh.prints("echo whole")), (half, "whole\n"))
        sh.run("set -o vi")
        for half in b"\x12tou", b"\x16", b"\x1b3d", b"\x1b/tou", b"\x1bf", b"touch half":
            sh.at_prompt()
            sh.keys(half + ABORT)
            same((half, sh.prints("echo whole")), (half, "whole\n"))
        same(list(sh.home.glob("half*")), [])


def test_commands_work_in_both_modes_of_vi():
    with Shell() as sh:
        sh.run("set -o vi")
        same(sh.prints("echo insert"), "insert\n")
        sh.at_prompt()
        sh.keys(b"abc\x1b")
        same(sh.prints("echo command"), "command\n")
        same(sh.type("echo typed").facts, (0, [0], ""))
        sh.run("set -o emacs")
        same(sh.prints("echo emacs"), "emacs\n")


def test_a_start_prints_nothing_of_ours():
    with Shell() as sh:
        sh.at_prompt()
        assert b"__ptyd" not in sh.output, sh.transcript()


def test_commands_work_at_the_prompt_at_which_a_person_changes_to_vi():
    with Shell(bashrc="bind '\"\\C-xv\": vi-editing-mode'") as sh:
        sh.run("(exit 7) | (exit 3)")
        sh.at_prompt()
        sh.keys(b"half\x18v")
        same(sh.prints("echo $? ${PIPESTATUS[@]}"), "3 7 3\n")
        same(sh.prints("echo insert"), "insert\n")


# promise: send-2
def test_the_shells_history_is_what_a_person_typed():
    with Shell(bashrc="HISTFILE=~/hist; HISTCONTROL=ignoredups") as sh:
        sh.type("echo one")
        sh.run("echo staged")
        sh.type("echo two")
        same(sh.prints("history >h; sed 's/^ *[0-9]* *//' h"), "echo one\necho two\n")
        sh.type("!!")
        assert b"\necho two\r\n" in sh.output
        same(sh.prints("echo $HISTCONTROL"), "ignoredups\n")
        sh.at_prompt()
        sh.keys(b"echo $HISTCONTROL\r")
        sh.sees(b"\rignoredups\r\n")
        sh.done()
        sh.start("exit")
        sh.ended()
        same((sh.home / "hist").read_text(), "echo one\necho two\necho $HISTCONTROL\n")


def test_the_users_ps0_stays():
    with Shell(bashrc="PS0='<${n}>'; n=1") as sh:
        same(sh.prints("echo a"), "<1>a\n")
        sh.run("n=2; PS0='[$n]'$'\\n'")
        same(sh.prints("echo b"), "[2]\nb\n")
        sh.run("unset PS0")
        same(sh.prints("echo c"), "c\n")
        sh.run("PS0='literal '; shopt -u promptvars")
        same(sh.prints("echo d"), "d\n")
        sh.run("shopt -s promptvars")
        same(sh.prints("echo e"), "literal e\n")


def test_an_empty_or_missing_command_file_runs_nothing():
    with Shell() as sh:
        sh.at_prompt()
        sh.keys(b"touch half" + LOAD + ACCEPT)
        same((sh.done().id, list(sh.home.glob("half"))), (0, []))
        sh.write_staged(b"")
        sh.at_prompt()
        sh.keys(b"touch half" + LOAD + ACCEPT)
        same((sh.done().id, list(sh.home.glob("half"))), (0, []))



def test_a_path_of_any_length_is_reported_and_spoils_no_end():
    with Shell() as sh:
        for length in 8191, 8193, 59_000:
            same(sh.run(f"PATH=${{PATH%%:/pad*}}:/pad$(printf '%0{length}d' 0)").exit, 0)
            same((sh.prints("echo fine"), len(sh.path) > length), ("fine\n", True))


def test_a_pipestatus_of_the_environment_crashes_nothing():
    # Without the builtins its text would be the pipeline's status.
    if HAS_BUILTINS:
        with Shell(env={"PIPESTATUS": "A" * 64}) as sh:
            same(sh.run("(exit 3)").exit, 3)


load_tests = plain_functions(globals())
