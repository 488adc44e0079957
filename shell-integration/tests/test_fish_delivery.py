"""Commands arrive in fish as the bytes they are, whatever the line editor and the terminal would have made of them."""

import hashlib
import re
import time

from fish_rig import FISH, Shell
from rig import ABORT, ACCEPT, LOAD, plain_functions, plain_seconds, same


def test_shapes_of_commands_keep_their_meaning():
    cases = {
        "echo a \\": "a\n",
        "echo a \\\n": "a\n",
        "echo a # comment": "a\n",
        "echo a # it's a | pipe && more": "a\n",
        "echo 'a |'": "a |\n",
        "echo a\\|": "a|\n",
        "echo a \\\\": "a \\\n",
        "": "",
        " \n\n ": "",
        "# comment": "",
        "echo 'a\nb'\n\n\n": "a\nb\n",
        "for i in 1 2\necho $i\nend": "1\n2\n",
        "for i in 1 2 \\\n 3; echo $i; end": "1\n2\n3\n",
        "function f\n echo in f\nend\nf": "in f\n",
        "alias hi='echo hello'\nhi there": "hello there\n",
        "echo one; echo two >/dev/null; begin; echo three; end": "one\nthree\n",
        "echo $argv; echo (count $argv)": "\n0\n",
        "true; and echo yes\nor echo no": "yes\n",
        "echo (string escape -- a\\ b)": "'a b'\n",
    }
    with Shell() as sh:
        same({c: sh.prints(c) for c in cases}, cases)
        same(sh.run("-n").facts, (127, [127], ""))
        same(sh.run("--help").exit, 127)


def test_a_pipeline_may_have_many_lines():
    with Shell() as sh:
        same(sh.run("echo a |\n\ncat").facts, (0, [0, 0], ""))
        same(sh.run("begin; echo x; false; end | cat").facts, (0, [1, 0], ""))
        same(sh.printed(), "x\n")


def test_abbreviations_and_suggestions_are_not_applied():
    config = "abbr -a echo -- touch abbreviated"
    for name in "__ptyd_begin", "__ptyd_finish", "a":
        config += f"; abbr -a --position anywhere {name} touch"
    with Shell(config=config) as sh:
        sh.type("echo suggested")
        same(sh.prints("echo a"), "a\n")
        same(sh.prints("echo\ta\t\tb"), "a b\n")
    with Shell(config="abbr -a --position anywhere --regex '.+' all 'touch abbreviated'") as sh:
        same(sh.prints("echo a"), "a\n")
        same(list(sh.home.glob("abbr*")), [])


def test_a_line_longer_than_the_terminals_arrives_whole():
    text = "x" * 6000
    with Shell() as sh:
        same(sh.prints(f"set v {text}; string length $v"), "6000\n")


def test_a_megabyte_arrives_whole_and_quickly():
    bodies = b"0123456789abcde\n" * 65536, "äöü €\n".encode() * 95000, b"# | && ()\n" * 104000, b"\xff\xfe\n" * 300000
    took = plain = 0
    for body in bodies:
        with Shell() as sh:
            text = b"printf %s '" + body + b"' >got\nsha256sum got"
            began = time.monotonic()
            sh.run(text)
            took += time.monotonic() - began
            same(sh.printed(), hashlib.sha256(body).hexdigest() + "  got\n")
            plain += plain_seconds(FISH, text, sh.home)
    # A delivery whose time grows with the square of the text takes thousands of times as long.
    assert took < 100 * plain, (took, plain)


def test_a_half_typed_line_is_replaced():
    with Shell() as sh:
        for half in b"echo half", b"echo 'half", b"abc\x1b[D\x1b[D", b"echo \\", b"if true\r echo half":
            sh.reads_keys()
            sh.keys(half)
            same((half, sh.prints("echo whole")), (half, "whole\n"))


def test_after_a_persons_keys_the_abort_key_makes_the_editor_listen():
    # An unfinished search, menu, quoted insert, or sequence would eat the keys.
    with Shell() as sh:
        sh.type("touch half")
        (sh.home / "half").unlink()
        halves = b"\x12tou", b"\x16", b"\x1b", b"\x18", b"\x1b[", b"touch half", b"tou\x1b[A", b"touch \t\t", b"to\t\t\x1b[B"
        for half in halves:
            sh.reads_keys()
            sh.keys(half)
            if half[:1] == b"\x12":
                # fish finds a match in its history later, and a command that comes at the very same moment is refused.
                sh.until("match", lambda: b"touch half" in re.sub(rb"\x1b[^m]*m", b"", sh.output[sh._seen :]))
            sh.keys(ABORT)
            same((half, sh.prints("echo whole")), (half, "whole\n"))
        sh.run("fish_vi_key_bindings")
        halves = b"\x1b3d", b"\x1bd", b"\x1br", b"\x1bR", b"\x1bv", b"\x1bf", b"\x1bfx", b"touch half", b'\x1b"', b"\x1bc"
        for half in halves:
            sh.reads_keys()
            sh.keys(half + ABORT)
            same((half, sh.prints("echo whole")), (half, "whole\n"))
        same(list(sh.home.glob("half*")), [])


def test_commands_work_in_every_mode_of_vi():
    with Shell() as sh:
        sh.run("fish_vi_key_bindings")
        same(sh.prints("echo insert"), "insert\n")
        for keys in b"abc\x1b", b"abc\x1bv", b"abc\x1br", b"abc\x1bR":
            sh.reads_keys()
            sh.keys(keys)
            same((keys, sh.prints("echo command")), (keys, "command\n"))
            same(sh.type("true").facts, (0, [0], ""))
        sh.run("fish_hybrid_key_bindings")
        same(sh.prints("echo hybrid"), "hybrid\n")
        sh.run("fish_default_key_bindings")
        same(sh.prints("echo emacs"), "emacs\n")
        same(sh.type("false").facts, (1, [1], ""))


def test_the_shells_history_is_what_a_person_typed():
    with Shell() as sh:
        sh.type("echo one")
        sh.run("echo staged")
        sh.type("echo two")
        sh.run("history save; string match '*cmd*' <.local/share/fish/fish_history")
        same(sh.printed(), "- cmd: echo one\n- cmd: echo two\n")


def test_a_text_longer_than_the_users_limit_is_not_taken():
    with Shell() as sh:
        sh.run("set -g fish_read_limit 50")
        sh.hand_over("touch ran " + "x" * 1000)
        same(sh.record("R").split(b";")[1], b"2")
        same((sh.done().id, list(sh.home.glob("ran"))), (0, []))
        same(sh.prints("set -e fish_read_limit; echo fine"), "fine\n")


def test_a_key_that_a_person_presses_by_accident_runs_nothing_twice():
    with Shell() as sh:
        sh.run("echo x >>got")
        sh.reads_keys()
        sh.keys(b"touch half" + LOAD + ACCEPT)
        same((sh.done().id, list(sh.home.glob("half"))), (0, []))
        same((sh.home / "got").read_text(), "x\n")


def test_an_empty_or_missing_command_file_runs_nothing():
    with Shell() as sh:
        sh.reads_keys()
        sh.keys(b"touch half" + LOAD + ACCEPT)
        same((sh.done().id, list(sh.home.glob("half"))), (0, []))
        sh.write_staged(b"")
        sh.reads_keys()
        sh.keys(b"touch half" + LOAD + ACCEPT)
        same((sh.done().id, list(sh.home.glob("half"))), (0, []))


load_tests = plain_functions(globals())


def test_a_command_handed_to_a_hook_that_reads_is_refused_and_the_prompt_is_told():
    asks = "function asks --on-event fish_prompt; set -q asked; or begin; set -g asked 1; %s; end; end"
    for reads in "read -P 'who? ' -g who", "set -g who (read -P 'who? ')":
        for is_config in True, False:
            with Shell(config=asks % reads if is_config else "", wait=not is_config) as sh:
                if not is_config:
                    sh.run(asks % reads)
                sh.sees(b"who? ")
                sh.reads_keys()
                if not is_config:
                    # The end of a command is reported before the prompt's hooks run, so the holder is told of the read.
                    same(sh.record("R").split(b";")[1], b"0")
                same(sh.records, [])
                sh.keys(b"Jo")
                sh.hand_over("touch a")
                same(sh.record("R").split(b";")[1], str(sh.last_id).encode())
                sh.report()
                same(sh.record("R").split(b";")[1], b"0")
                sh.keys(b"hn\r")
                # A prompt is reported only when all of its hooks have run.
                same(sh.done().facts, (0, [0], ""))
                sh.reads_keys()
                same(sh.prints("echo $who; test -e a; echo $status"), "John\n1\n")
