"""Commands arrive as the bytes they are, whatever the line editor, its plugins, the history and the terminal would have made of them."""

import hashlib
import os
import re
import signal
import time

from rig import ABORT, ACCEPT, HAS_BUILTINS, LOAD, plain_seconds, same
from shells import ALL, Bash, Fish, Zsh, codes, in_each, ready

SHAPES = {
    "echo a \\": "a\n",
    "echo a \\\n": "a\n",
    "echo a # comment": "a\n",
    "echo a # it's a | pipe && more": "a\n",
    "# a comment\necho a": "a\n",
    "echo 'a |'": "a |\n",
    "echo a\\|": "a|\n",
    "echo 'a\nb'\n\n\n": "a\nb\n",
}
SHAPES_OF_SH = {
    "cat <<-EOF\n\tone\n\t\ttwo\n\tEOF\necho three": "one\ntwo\nthree\n",
    "cat <<EOF\nEOF": "",
    "cat <<'A B' <<<c\nx\nA B\n": "{here}c\n",
    "(exit 0) && echo '()'": "()\n",
    "echo $'a\\nb'\n\n\n": "a\nb\n",
    "for i in 1 2\ndo\necho $i\ndone": "1\n2\n",
    "f() {\n echo in f\n}\nf": "in f\n",
    "(for i in 1 2; do echo $i; done | cat)": "1\n2\n",
    "echo a &&\necho b": "a\nb\n",
    "case x in x) echo case;; esac": "case\n",
    "(\ncd /\npwd\n)": "/\n",
    "true && ! false && echo yes": "yes\n",
    "echo one; echo two &>/dev/null; { echo three; }": "one\nthree\n",
    "-- 2>/dev/null || echo dashes": "dashes\n",
}
# zsh reads the whole of a text before it runs a line of it.
ALIAS = {"alias hi='echo hello'\nhi there": "hello there\n"}
SHAPES_OF = {
    Bash: SHAPES_OF_SH | ALIAS | {"shopt -s extglob\ntouch x y\necho !(x)": "y\n", "cat <<A <<B\na\nA\nb\nB": "b\n"},
    Zsh: SHAPES_OF_SH
    | {
        "for i (1 2) echo $i": "1\n2\n",
        "repeat 2 echo x": "x\nx\n",
        "if [[ a == a ]] { echo b }": "b\n",
        "touch x y; echo (x|z)": "x\n",
        "{ echo a } always { echo b }": "a\nb\n",
    },
    Fish: ALIAS
    | {
        "echo a \\\\": "a \\\n",
        "": "",
        " \n\n ": "",
        "# comment": "",
        "for i in 1 2\necho $i\nend": "1\n2\n",
        "for i in 1 2 \\\n 3; echo $i; end": "1\n2\n3\n",
        "function f\n echo in f\nend\nf": "in f\n",
        "echo one; echo two >/dev/null; begin; echo three; end": "one\nthree\n",
        "echo $argv; echo (count $argv)": "\n0\n",
        "true; and echo yes\nor echo no": "yes\n",
        "echo (string escape -- a\\ b)": "'a b'\n",
    },
}


@in_each(*ALL)
def test_shapes_of_commands_keep_their_meaning(shell, _words):
    # zsh alone gives a command the input of all its redirections.
    cases = {c: said.replace("{here}", "x\n" if shell is Zsh else "") for c, said in (SHAPES | SHAPES_OF[shell]).items()}
    with shell() as sh:
        same({c: sh.prints(c) for c in cases}, cases)
        if shell is Fish:
            same(sh.run("-n").facts, (127, [127], ""))
            same(sh.run("--help").exit, 127)


@in_each(Fish)
def test_a_pipeline_may_have_many_lines(shell, _words):
    with shell() as sh:
        same(sh.run("echo a |\n\ncat").facts, (0, [0, 0], ""))
        same(sh.run("begin; echo x; false; end | cat").facts, (0, [1, 0], ""))
        same(sh.printed(), "x\n")


@in_each(Zsh)
def test_the_users_aliases_and_options_shape_a_text(shell, _words):
    with shell() as sh:
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


@in_each(*ALL)
def test_every_byte_arrives(shell, _words):
    odd = "!! !x ^a^b \\t\\t ~ `` $HOME é漢🙂 \x01\x03\x04\x12\x16\x1a\x7f\x1b[A\r\r\n {a,b} # * ? (a) <b>".encode() + b"\xff\xc3\x83\x84"
    with shell() as sh:
        sh.run(b"printf %s '" + odd + b"' > got")
        same((sh.home / "got").read_bytes(), odd)


@in_each(*ALL)
def test_a_carriage_return_is_part_of_the_command(shell, _words):
    with shell() as sh:
        sh.run("echo 'a\r\nb' >got\ntrue")
        same((sh.home / "got").read_bytes(), b"a\r\nb\n")


@in_each(*ALL)
def test_a_line_longer_than_the_terminals_arrives_whole(shell, _words):
    text = "x" * 6000
    with shell() as sh:
        if shell is Fish:
            same(sh.prints(f"set v {text}; string length $v"), "6000\n")
        else:
            same(sh.prints(f"v={text}; echo ${{#v}} x${{v//x}}"), "6000 x\n")


@in_each(*ALL)
def test_a_megabyte_arrives_whole_and_quickly(shell, words):
    bodies = [b"0123456789abcde\n" * 65536, "äöü €\n".encode() * 95000, b"# | && ()\n" * 104000]
    took = plain = 0
    for body in bodies + [b"\xff\xfe\n" * 300000] * (shell is Fish):
        with shell() as sh:
            if shell is Bash:
                sh.run("set +o history")
            written = b"printf %s '" + body + b"' >got" if shell is Fish else b"cat >got <<'EOF'\n" + body + b"EOF"
            text = written + b"\nsha256sum got"
            began = time.monotonic()
            sh.run(text)
            took += time.monotonic() - began
            same(sh.printed(), hashlib.sha256(body).hexdigest() + "  got\n")
            plain += plain_seconds(words.program, text, sh.home)
    # A delivery whose time grows with the square of the text takes thousands of times as long.
    assert took < 100 * plain, (took, plain)


@in_each(*ALL)
def test_a_half_typed_line_is_replaced(shell, _words):
    own = {Bash: [], Zsh: [b"\x1b[200~pasted\necho half\x1b[201~"], Fish: [b"if true\r echo half"]}
    with shell() as sh:
        for half in b"echo half", b"echo 'half", b"abc\x1b[D\x1b[D", b"echo \\", *own[shell]:
            ready(sh)
            sh.keys(half)
            same((half, sh.prints("echo whole")), (half, "whole\n"))


# Unfinished searches, quoted inserts, prefixes, counts, menus and sequences, which would eat the load key.
HALVES = [b"\x12tou", b"\x16", b"\x1b", b"\x18", b"\x1b[", b"touch half"]
HALVES_OF = {
    Bash: [*HALVES, b"\x1b3"],
    Zsh: [*HALVES, b"\x1b3", b"\x1bx", b"if true\r"],
    Fish: [*HALVES, b"tou\x1b[A", b"touch \t\t", b"to\t\t\x1b[B"],
}
HALVES_IN_VI = [b"\x1b3d", b"\x1bf", b"touch half"]
HALVES_IN_VI_OF = {
    Bash: [*HALVES_IN_VI, b"\x12tou", b"\x16", b"\x1b/tou"],
    Zsh: [*HALVES_IN_VI, b"\x12tou", b"\x16", b"\x1b/tou", b"\x1bv", b"\x1bV"],
    Fish: [*HALVES_IN_VI, b"\x1bd", b"\x1br", b"\x1bR", b"\x1bv", b"\x1bfx", b'\x1b"', b"\x1bc"],
}


@in_each(*ALL)
def test_after_a_persons_keys_the_abort_key_makes_the_editor_listen(shell, words):
    with shell() as sh:
        sh.type("touch half")
        (sh.home / "half").unlink()

        def whole_after(half, is_vi):
            ready(sh)
            sh.keys(half)
            if shell is Fish and half[:1] == b"\x12" and not is_vi:
                # fish finds a match in its history later, and a command that comes at the very same moment is refused.
                sh.until("match", lambda: b"touch half" in re.sub(rb"\x1b[^m]*m", b"", sh.output[sh._seen :]))
            sh.keys(ABORT)
            if shell is not Zsh:
                same((half, sh.prints("echo whole")), (half, "whole\n"))
                return
            sh.hand_over("echo whole")
            # zsh tells that an unfinished line has ended.
            while (end := sh.done()).id == 0:
                pass
            same((half, end.id, end.facts, b"\x07whole\r\n" in sh.output), (half, sh.last_id, (0, [0], ""), True))

        for half in HALVES_OF[shell]:
            whole_after(half, False)
        sh.run(words.vi)
        for half in HALVES_IN_VI_OF[shell]:
            whole_after(half, True)
        same(list(sh.home.glob("half*")), [])


@in_each(*ALL)
def test_commands_work_in_every_mode_of_vi(shell, words):
    with shell() as sh:
        sh.run(words.vi)
        same(sh.prints("echo insert"), "insert\n")
        for keys in b"abc\x1b", *([b"abc\x1bv", b"abc\x1br", b"abc\x1bR"] if shell is Fish else []):
            ready(sh)
            sh.keys(keys)
            same((keys, sh.prints("echo command")), (keys, "command\n"))
            same(sh.type("echo typed").facts, (0, [0], ""))
        if shell is Fish:
            sh.run("fish_hybrid_key_bindings")
            same(sh.prints("echo hybrid"), "hybrid\n")
        sh.run(words.emacs)
        same(sh.prints("echo emacs"), "emacs\n")
        same(sh.type("false").facts, (1, [1], ""))


@in_each(Zsh)
def test_commands_work_in_every_keymap(shell, _words):
    with shell() as sh:
        for keymap in "bindkey -N mine .safe; bindkey -A mine main", "bindkey -d", "KEYTIMEOUT=1; bindkey -v":
            sh.run(keymap)
            same((keymap, sh.prints("echo fine")), (keymap, "fine\n"))


@in_each(Bash)
def test_the_start_of_a_shell_prints_nothing_of_ptyd(shell, _words):
    with shell() as sh:
        sh.at_prompt()
        assert b"__ptyd" not in sh.output, sh.transcript()


@in_each(Bash)
def test_commands_work_at_the_prompt_at_which_a_person_changes_to_vi(shell, words):
    with shell(bashrc="bind '\"\\C-xv\": vi-editing-mode'") as sh:
        sh.run(codes(words, 7, 3))
        sh.at_prompt()
        sh.keys(b"half\x18v")
        same(sh.prints("echo $? ${PIPESTATUS[@]}"), "3 7 3\n")
        same(sh.prints("echo insert"), "insert\n")


@in_each(Bash, Zsh)
# promise: send-2
def test_history_expansion_and_completion_are_not_applied(shell, _words):
    with shell() as sh:
        sh.type("echo typed")
        same(sh.prints('echo "a!b" !! !e \\!'), "a!b !! !e !\n")
        same(sh.prints("echo\ta\t\tb"), "a b\n")


@in_each(Fish)
def test_abbreviations_and_suggestions_are_not_applied(shell, _words):
    config = "abbr -a echo -- touch abbreviated"
    for name in "__ptyd_begin", "__ptyd_finish", "a":
        config += f"; abbr -a --position anywhere {name} touch"
    with shell(config=config) as sh:
        sh.type("echo suggested")
        same(sh.prints("echo a"), "a\n")
        same(sh.prints("echo\ta\t\tb"), "a b\n")
    with shell(config="abbr -a --position anywhere --regex '.+' all 'touch abbreviated'") as sh:
        same(sh.prints("echo a"), "a\n")
        same(list(sh.home.glob("abbr*")), [])


HISTORIES = {
    Bash: "HISTFILE=~/hist; HISTCONTROL=ignoredups",
    Zsh: "HISTFILE=~/hist; HISTSIZE=100; SAVEHIST=100; setopt incappendhistory",
    Fish: "",
}


@in_each(*ALL)
# promise: send-2
def test_the_shells_history_contains_only_lines_that_a_person_typed(shell, words):
    with shell(**{words.config: HISTORIES[shell]}) as sh:
        sh.type("echo one")
        sh.run("echo staged")
        sh.type("echo two")
        if shell is Fish:
            sh.run("history save; string match '*cmd*' <.local/share/fish/fish_history")
            same(sh.printed(), "- cmd: echo one\n- cmd: echo two\n")
            return
        lists = "fc -ln 1" if shell is Zsh else "history >h; sed 's/^ *[0-9]* *//' h"
        same(sh.prints(lists), "echo one\necho two\n")
        sh.run("echo staged")
        sh.type("!!")
        assert b"\necho two\r\n" in sh.output
        if shell is Zsh:
            sh.run("echo staged")
            sh.at_prompt()
            sh.keys(b"\x1b[A\r")
            same(sh.done().facts, (0, [0], ""))
            typed = "echo one\necho two\necho two\necho two\n"
            same((sh.prints(lists), sh.prints("echo $HISTSIZE $HISTFILE")), (typed, f"100 {sh.home}/hist\n"))
        else:
            same(sh.prints("echo $HISTCONTROL"), "ignoredups\n")
            sh.at_prompt()
            sh.keys(b"echo $HISTCONTROL\r")
            sh.sees(b"\rignoredups\r\n")
            sh.done()
            typed = "echo one\necho two\necho $HISTCONTROL\n"
        sh.start("exit")
        sh.ended()
        same((sh.home / "hist").read_text(), typed)


@in_each(Bash)
def test_ps0_of_the_user_stays(shell, _words):
    with shell(bashrc="PS0='<${n}>'; n=1") as sh:
        same(sh.prints("echo a"), "<1>a\n")
        sh.run("n=2; PS0='[$n]'$'\\n'")
        same(sh.prints("echo b"), "[2]\nb\n")
        sh.run("unset PS0")
        same(sh.prints("echo c"), "c\n")
        sh.run("PS0='literal '; shopt -u promptvars")
        same(sh.prints("echo d"), "d\n")
        sh.run("shopt -s promptvars")
        same(sh.prints("echo e"), "literal e\n")


@in_each(Zsh)
def test_plugins_that_wrap_the_editor_spoil_no_end(shell, _words):
    zshrc = """
    mine() { zle .accept-line; }; zle -N accept-line mine
    zle-line-init() { BUFFER=suggested; zle -R; }; zle -N zle-line-init
    zle-line-pre-redraw() { region_highlight=("0 3 bold"); }; zle -N zle-line-pre-redraw
    zle-line-finish() { print -n 'finish;'; }; zle -N zle-line-finish
    preexec() { print -n "preexec;"; }; preexec_functions=(preexec)
    """
    with shell(zshrc=zshrc) as sh:
        same(sh.prints("echo whole"), "whole\n")
        same(sh.prints("echo 'more\n\nlines'"), "more\n\nlines\n")


@in_each(*ALL)
def test_an_empty_or_missing_command_file_runs_nothing(shell, _words):
    # zsh reads the head of a staged command by itself.
    bad = b"ptyd 7\0x\0001\0echo no", b"ptyd 7\0000\0001\0echo no", b"ptyd x\0009\0001\0echo no", b"9\0001\0echo no"
    with shell() as sh:
        for staged in None, b"", *(bad if shell is Zsh else ()):
            if staged is not None:
                sh.write_staged(staged)
            ready(sh)
            sh.keys(b"touch half" + LOAD + ACCEPT)
            same((staged, sh.done().id, list(sh.home.glob("half"))), (staged, 0, []))


@in_each(Zsh, Fish)
def test_a_command_is_taken_once(shell, _words):
    with shell() as sh:
        sh.run("echo x >>ran")
        ready(sh)
        sh.keys(b"touch half" + LOAD + ACCEPT)
        same((sh.done().id, (sh.home / "ran").read_text(), list(sh.home.glob("half"))), (0, "x\n", []))


@in_each(Fish)
def test_a_text_longer_than_the_users_limit_is_not_taken(shell, _words):
    with shell() as sh:
        sh.run("set -g fish_read_limit 50")
        sh.hand_over("touch ran " + "x" * 1000)
        same(sh.record("R").split(b";")[1], b"2")
        same((sh.done().id, list(sh.home.glob("ran"))), (0, []))
        same(sh.prints("set -e fish_read_limit; echo fine"), "fine\n")


@in_each(Zsh)
def test_the_mark_of_an_unfinished_line_is_not_output(shell, _words):
    with shell() as sh:
        same(sh.prints("printf abc"), "abc")
        same(sh.run("printf abc; echo ${x:?no}").exit, 1)
        same(sh.printed(), "abczsh: x: no\n")
        sh.start("printf abc; sleep 60")
        sh.sees(b"abc")
        os.killpg(sh.foreground("sleep"), signal.SIGINT)
        sh.done()
        same(sh.printed(), "abc")


@in_each(Bash)
def test_a_path_of_any_length_is_reported_and_spoils_no_end(shell, _words):
    with shell() as sh:
        for length in 8191, 8193, 59_000:
            same(sh.run(f"PATH=${{PATH%%:/pad*}}:/pad$(printf '%0{length}d' 0)").exit, 0)
            same((sh.prints("echo fine"), len(sh.path) > length), ("fine\n", True))


@in_each(Bash)
def test_a_pipestatus_of_the_environment_crashes_nothing(shell, _words):
    # Without the builtins its text would be the pipeline's status.
    if HAS_BUILTINS:
        with shell(env={"PIPESTATUS": "A" * 64}) as sh:
            same(sh.run("(exit 3)").exit, 3)


@in_each(Fish)
def test_a_command_handed_to_a_hook_that_reads_is_refused_and_the_prompt_is_reported(shell, _words):
    asks = "function asks --on-event fish_prompt; set -q asked; or begin; set -g asked 1; %s; end; end"
    for reads in "read -P 'who? ' -g who", "set -g who (read -P 'who? ')":
        for is_config in True, False:
            with shell(config=asks % reads if is_config else "", wait=not is_config) as sh:
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
