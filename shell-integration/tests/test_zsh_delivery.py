"""zsh: commands arrive as the bytes they are, whatever the line editor, its plugins and the history would have made of them."""

import hashlib
import os
import signal
import time

from rig import ABORT, ACCEPT, LOAD, ZSH, Zsh, plain_functions, plain_seconds, same


def test_shapes_of_commands_keep_their_meaning():
    cases = {
        "cat <<-EOF\n\tone\n\t\ttwo\n\tEOF\necho three": "one\ntwo\nthree\n",
        "cat <<EOF\nEOF": "",
        "cat <<'A B' <<<c\nx\nA B\n": "x\nc\n",
        "echo a \\": "a\n",
        "echo a \\\n": "a\n",
        "echo a # comment": "a\n",
        "echo a # it's a | pipe && more": "a\n",
        "# a comment\necho a": "a\n",
        "echo 'a |'": "a |\n",
        "echo a\\|": "a|\n",
        "(exit 0) && echo '()'": "()\n",
        "echo $'a\\nb'\n\n\n": "a\nb\n",
        "for i in 1 2\ndo\necho $i\ndone": "1\n2\n",
        "for i (1 2) echo $i": "1\n2\n",
        "repeat 2 echo x": "x\nx\n",
        "if [[ a == a ]] { echo b }": "b\n",
        "f() {\n echo in f\n}\nf": "in f\n",
        "touch x y; echo (x|z)": "x\n",
        "{ echo a } always { echo b }": "a\nb\n",
        "echo one; echo two &>/dev/null; { echo three; }": "one\nthree\n",
        "-- 2>/dev/null || echo dashes": "dashes\n",
    }
    with Zsh() as sh:
        same({c: sh.prints(c) for c in cases}, cases)


def test_the_users_aliases_and_options_shape_a_text():
    with Zsh() as sh:
        sh.run("alias hi='echo hello'; alias -g NUL='>/dev/null'; alias -s txt=echo; alias open='echo a |'")
        same(sh.prints("hi there; echo x NUL; a.txt"), "hello there\na.txt\n")
        same(sh.run("open").facts, (1, [1], "i"))
        sh.run("alias __ptyd_tell=false builtin=false eval=false; alias -g eval=no __ptyd_tell=no")
        same(sh.run("open cat").facts, (0, [0, 0], ""))
        same(sh.printed(), "a\n")
        sh.run("setopt rcquotes")
        same(sh.prints("echo 'it''s'"), "it's\n")
        sh.run("setopt ignorebraces")
        same(sh.prints("echo }"), "}\n")


def test_a_megabyte_arrives_whole_and_quickly():
    took = plain = 0
    for body in b"0123456789abcde\n" * 65536, "äöü €\n".encode() * 95000, b"# | && ()\n" * 104000:
        with Zsh() as sh:
            text = b"cat >got <<'EOF'\n" + body + b"EOF\nsha256sum got"
            began = time.monotonic()
            sh.run(text)
            took += time.monotonic() - began
            same(sh.printed(), hashlib.sha256(body).hexdigest() + "  got\n")
            plain += plain_seconds(ZSH, text, sh.home)
    # A delivery whose time grows with the square of the text takes thousands of times as long.
    assert took < 100 * plain, (took, plain)


def test_a_half_typed_line_is_replaced():
    with Zsh() as sh:
        for half in b"echo half", b"echo 'half", b"abc\x1b[D\x1b[D", b"echo \\", b"\x1b[200~pasted\necho half\x1b[201~":
            sh.at_prompt()
            sh.keys(half)
            same((half, sh.prints("echo whole")), (half, "whole\n"))


def test_after_a_persons_keys_the_abort_key_makes_the_editor_listen():
    # An unfinished search, quoted insert, prefix, count or sequence would eat the load key.
    with Zsh() as sh:
        sh.type("touch half")
        (sh.home / "half").unlink()

        def whole_after(half):
            sh.at_prompt()
            sh.keys(half + ABORT)
            sh.hand_over("echo whole")
            while (end := sh.done()).id == 0:
                pass
            same((half, end.id, end.facts, b"\x07whole\r\n" in sh.output), (half, sh.last_id, (0, [0], ""), True))

        for half in b"\x12tou", b"\x16", b"\x1b3", b"\x1b", b"\x18", b"\x1b[", b"touch half", b"\x1bx", b"if true\r":
            whole_after(half)
        sh.run("bindkey -v")
        for half in b"\x12tou", b"\x16", b"\x1b3d", b"\x1b/tou", b"\x1bf", b"touch half", b"\x1bv", b"\x1bV":
            whole_after(half)
        same(list(sh.home.glob("half*")), [])


def test_commands_work_in_every_keymap():
    with Zsh() as sh:
        sh.run("bindkey -v")
        same(sh.prints("echo insert"), "insert\n")
        sh.at_prompt()
        sh.keys(b"abc\x1b")
        same(sh.prints("echo command"), "command\n")
        same(sh.type("echo typed").facts, (0, [0], ""))
        sh.run("bindkey -e")
        same(sh.prints("echo emacs"), "emacs\n")
        sh.run("bindkey -N mine .safe; bindkey -A mine main")
        same(sh.prints("echo mine"), "mine\n")
        sh.run("bindkey -d")
        same(sh.prints("echo fresh"), "fresh\n")
        sh.run("KEYTIMEOUT=1; bindkey -v")
        same(sh.prints("echo hurried"), "hurried\n")


def test_the_shells_history_is_what_a_person_typed():
    with Zsh(zshrc="HISTFILE=~/hist; HISTSIZE=100; SAVEHIST=100; setopt incappendhistory") as sh:
        sh.type("echo one")
        sh.run("echo staged")
        sh.type("echo two")
        same(sh.prints("fc -ln 1"), "echo one\necho two\n")
        sh.run("echo staged")
        sh.type("!!")
        assert b"\necho two\r\n" in sh.output
        sh.run("echo staged")
        sh.at_prompt()
        sh.keys(b"\x1b[A\r")
        same(sh.done().facts, (0, [0], ""))
        same((sh.prints("fc -ln 1"), sh.prints("echo $HISTSIZE $HISTFILE")), ("echo one\necho two\necho two\necho two\n", f"100 {sh.home}/hist\n"))
        sh.start("exit")
        sh.ended()
        same((sh.home / "hist").read_text(), "echo one\necho two\necho two\necho two\n")


def test_plugins_that_wrap_the_editor_do_no_harm():
    zshrc = """
    mine() { zle .accept-line; }; zle -N accept-line mine
    zle-line-init() { BUFFER=suggested; zle -R; }; zle -N zle-line-init
    zle-line-pre-redraw() { region_highlight=("0 3 bold"); }; zle -N zle-line-pre-redraw
    zle-line-finish() { print -n 'finish;'; }; zle -N zle-line-finish
    preexec() { print -n "preexec;"; }; preexec_functions=(preexec)
    """
    with Zsh(zshrc=zshrc) as sh:
        same(sh.prints("echo whole"), "whole\n")
        same(sh.prints("echo 'more\n\nlines'"), "more\n\nlines\n")


def test_an_empty_or_missing_command_file_runs_nothing():
    with Zsh() as sh:
        sh.at_prompt()
        sh.keys(b"touch half" + LOAD + ACCEPT)
        same((sh.done().id, list(sh.home.glob("half"))), (0, []))
        for bad in b"", b"ptyd 7\0x\0001\0echo no", b"ptyd 7\0000\0001\0echo no", b"ptyd x\0009\0001\0echo no", b"9\0001\0echo no":
            sh.write_staged(bad)
            sh.at_prompt()
            sh.keys(b"touch half" + LOAD + ACCEPT)
            same((sh.done().id, list(sh.home.glob("half"))), (0, []))


def test_a_command_is_taken_once():
    with Zsh() as sh:
        sh.run("echo x >>ran")
        sh.at_prompt()
        sh.keys(LOAD + ACCEPT)
        same((sh.done().id, (sh.home / "ran").read_text()), (0, "x\n"))


def test_the_mark_of_an_unfinished_line_is_not_output():
    with Zsh() as sh:
        same(sh.prints("printf abc"), "abc")
        same(sh.run("printf abc; echo ${x:?no}").exit, 1)
        same(sh.printed(), "abczsh: x: no\n")
        sh.start("printf abc; sleep 60")
        sh.sees(b"abc")
        os.killpg(sh.foreground("sleep"), signal.SIGINT)
        sh.done()
        same(sh.printed(), "abc")


load_tests = plain_functions(globals())
