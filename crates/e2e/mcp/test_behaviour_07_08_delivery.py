"""BEHAVIOUR 7 and 8: commands and input arrive, byte for byte, whatever they are made of.

The files that the commands write are compared whole: nothing may be lost, expanded, completed or typed twice.
"""

import hashlib
import random

import pytest

pytestmark = pytest.mark.one_server

COMMAND_BYTES_MAX = 1 << 20


def lines(size, seed):
    """So many bytes of printable text in lines of every length."""
    chance = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789 \"'$`\\!#&()*;<>?[]^{|}~\t"
    text = ""
    while len(text) < size:
        text += "".join(chance.choices(letters, k=chance.randrange(200))) + "\n"
    return text[: size - 1] + "\n"


def heredoc(text, file="f"):
    """The command that writes a text, which ends in a newline, to a file."""
    return f"cat > {file} <<'END_OF_FILE'\n{text}END_OF_FILE"


TEXTS = {
    "leading tabs": "\tone\n\t\ttwo\n  \tthree\t\n",
    "a 6,000-byte line": "x" * 6000 + "\n",
    "a 200 KB line": "y" * 200_000 + "\n",
    "200 KB of lines": lines(200_000, 1),
    "history expansion": "!! !x !$ ^a^b^ a!b\n",
    "control characters": "".join(map(chr, [*range(1, 10), *range(11, 32), 127])) + "\n",
    "CRLF": "one\r\ntwo\r\n",
    "trailing backslashes": "a\\\nb\\\\\n\\\n",
    "UTF-8": "é ü 漢字 🦀 e\u0301 \u200b\u202e\ufeff\n",
    "what shells expand": "$HOME `id` $(id) ~ * {a,b} \\n %s\n",
    "our own keys": "\x1b[7337~ \x1b[7339~ \x1b[200~ \x1b[201~\n",
    "ends of file": "\x04\nEOF\nEND\n\x1a\n",
}


@pytest.mark.parametrize("name", TEXTS)
# promise: send-1
async def test_a_heredoc_arrives_byte_for_byte(workspace, name):
    written = await workspace.terminal(heredoc(TEXTS[name]))
    assert (written.output, written.exit) == ("", 0)
    assert (workspace.project / "f").read_bytes() == TEXTS[name].encode()


# promise: send-1
async def test_a_command_of_one_mebibyte_arrives_and_one_byte_more_is_refused(workspace):
    room = COMMAND_BYTES_MAX - len(heredoc(""))
    text = lines(room, 2)
    assert len(heredoc(text).encode()) == COMMAND_BYTES_MAX
    assert (await workspace.terminal(heredoc(text))).exit == 0
    assert (workspace.project / "f").read_bytes() == text.encode()
    refused = await workspace.terminal(heredoc("x" + text))
    assert (refused.is_error, "1048576" in refused.text.replace(",", "")) == (True, True)
    assert (await workspace.terminal("echo ok")).output == "ok"


@pytest.mark.parametrize(
    "command, output",
    [
        ('echo "a!b"', "a!b"),
        ("echo '!!'", "!!"),
        ("echo a\x12b | od -An -c", "   a 022   b  \\n"),
        ("printf '%s' '\x16\x03\x04\x1a\x7f' | od -An -tx1", " 16 03 04 1a 7f"),
        ("echo tab\there | od -An -c | tr -s ' '", " t a b h e r e \\n"),
        ("echo one \\\n  two", "one two"),
        ("echo 'ends in a backslash' \\", "ends in a backslash"),
        ("echo {1..3} \u00e9", "1 2 3 é"),
        ("cat <<< $'a\\tb'", "a\tb"),
        ("  echo leading blanks  ", "leading blanks"),
        ("echo -n no newline", "no newline"),
    ],
)
# promise: send-2
async def test_a_command_means_what_it_means_in_a_script(workspace, command, output):
    answer = await workspace.terminal(command)
    assert (answer.output, answer.exit) == (output, 0)


async def test_a_command_with_crlf_line_ends_arrives_as_it_is(workspace):
    await workspace.terminal("printf '%s' 'a\r\nb' > f")
    assert (workspace.project / "f").read_bytes() == b"a\r\nb"


async def test_a_command_with_a_nul_is_refused(workspace):
    refused = await workspace.terminal("echo a\0b")
    assert refused.is_error
    assert (await workspace.terminal("echo ok")).output == "ok"


# promise: send-1
async def test_5000_bytes_without_a_newline_reach_a_program_that_reads_lines_whole(workspace):
    session = await workspace.session()
    await session.run("cat > f")
    sent = await session.type("x" * 5000, timeout=0.3)
    assert not sent.is_error, sent.text
    await session.press("Enter", timeout=0.1)
    assert (await session.press("C-d", timeout=60)).exit == 0
    assert (workspace.project / "f").read_text() == "x" * 5000 + "\n"


@pytest.mark.parametrize("width", [99, 4095, 4096, 4097, 20_000])
# promise: send-1
async def test_200000_bytes_of_input_arrive_whatever_the_length_of_their_lines(workspace, width):
    text = (("z" * width + "\n") * (200_000 // (width + 1) + 1))[:200_000]
    digest = hashlib.sha256((text + "\n").encode()).hexdigest()
    await workspace.terminal("cat > f")
    # Enter comes behind it.
    sent = await workspace.terminal(text, is_input=True, timeout=1)
    assert not sent.is_error, sent.text
    assert (await workspace.terminal("C-d", timeout=60)).exit == 0
    assert hashlib.sha256((workspace.project / "f").read_bytes()).hexdigest() == digest


# promise: send-4
async def test_a_program_that_does_not_read_takes_little_and_the_answer_says_how_much(workspace):
    session = await workspace.session()
    await session.run("sleep 60", wait_for_completion=False)
    async with workspace.promised(3):
        stalled = await session.type("y" * 99 + "\n" + "0123456789" * 100_000, timeout=60)
    assert stalled.is_error
    words = stalled.text.replace(",", "")
    accepted = int(words.split(" of 1000100 bytes were typed")[0].rsplit(" ", 1)[1])
    assert 0 <= accepted < 100_000
    assert (await session.press("C-c", timeout=60)).exit == 130
    # The shell does not run the input that ptyd had accepted.
    assert (await session.run("echo ok")).last_line == "ok"


@pytest.mark.parametrize(
    "command, output",
    [
        ("cat > f <<'EOF'\nx\nEOF\ncat f", "x"),
        ("echo hi # a comment", "hi"),
        ("# only a comment", ""),
        ("echo one; # two\necho three", "one\nthree"),
        ("if true; then\n  echo yes\nfi", "yes"),
        ("f() {\n  echo \"f $1\"\n}\nf 1", "f 1"),
        ("for i in 1 2; do echo $i; done | cat", "1\n2"),
        ("echo a &&\necho b", "a\nb"),
        ("cat <<A <<B\na\nA\nb\nB", "b"),
        ("case x in x) echo case;; esac", "case"),
        ("\n\necho blank lines\n\n", "blank lines"),
        ("(\ncd /\npwd\n)", "/"),
        ("{ echo group; }", "group"),
        ("echo 'one\ntwo'", "one\ntwo"),
        ("true && ! false", ""),
    ],
)
async def test_every_shape_of_a_command_runs(workspace, command, output):
    answer = await workspace.terminal(command)
    assert (answer.output, answer.exit) == (output, 0)
    assert (await workspace.terminal("echo ok")).text == "ok\n[exit 0]"


async def test_a_command_in_the_background_answers_before_it_has_ended(workspace):
    assert (await workspace.terminal("sleep 3600 &")).exit == 0
    assert "Running" in (await workspace.terminal("jobs")).output


@pytest.mark.parametrize(
    "incomplete",
    ["if true; then", "cat <<EOF\nabc", "echo 'open", 'echo "open', "echo $(", "{ echo a", "for i in 1 2; do", "echo a |", "echo a &&"],
)
# promise: send-3
async def test_an_incomplete_command_is_said_and_eats_nothing(workspace, incomplete):
    answer = await workspace.terminal(incomplete)
    assert "incomplete" in answer.text and answer.exit in (None, 2), answer.text
    assert (await workspace.terminal("echo ok")).text == "ok\n[exit 0]"


async def test_an_incomplete_command_says_what_of_it_was_run(workspace):
    await workspace.terminal("true")
    for nothing in ("if true; then", "echo first; for i in 1 2", "echo 'x"):
        answer = await workspace.terminal(nothing)
        assert "first" not in answer.output and answer.text.endswith("; it was not run]"), answer.text
    for nothing in ("for i in 1 2", "case x in", "x=(a", "echo first\nfor i in 1 2"):
        answer = await workspace.terminal(nothing)
        assert "first" not in answer.output and answer.text.endswith("; it was not run]"), answer.text
        # Bash's words name nothing of what ptyd puts behind a text.
        assert "unexpected end of file" in answer.output or "unexpected EOF" in answer.output, answer.text
        assert "if'" not in answer.output and "ptyd" not in answer.output, answer.text
    answer = await workspace.terminal("echo first\nif true; then")
    assert "first" in answer.output and answer.text.endswith("; the text before it was run]"), answer.text


async def test_a_syntax_error_is_an_end_with_bashs_own_words(workspace):
    answer = await workspace.terminal("echo a; )")
    assert ("syntax error near unexpected token `)'" in answer.output, answer.exit) == (True, 2)
    assert (await workspace.terminal("echo ok")).output == "ok"


# promise: send-4
async def test_no_later_commands_output_has_input_that_a_program_left_unread(workspace):
    # It takes one key in raw mode and leaves; the rest of what is typed is a line for the shell.
    (workspace.project / "one.py").write_text(
        "import os, termios, tty\n"
        "before = termios.tcgetattr(0)\n"
        "tty.setraw(0)\n"
        "print('ready', end='\\r\\n', flush=True)\n"
        "os.read(0, 1)\n"
        "termios.tcsetattr(0, termios.TCSADRAIN, before)\n"
    )
    session = await workspace.session()
    # Whether the shell has run that line when the next command is handed over is chance.
    for _ in range(20):
        assert (await session.run("python3 one.py", wait_for="ready", timeout=60)).fact("matched") == '"ready"'
        assert (await session.type("xtrue\r", timeout=60)).exit == 0
        assert (await session.run("echo next")).output == "next"
