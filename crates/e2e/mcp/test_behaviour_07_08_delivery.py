"""BEHAVIOUR 7 and 8: commands and input arrive, byte for byte, whatever they are made of.

`shell-integration/tests/test_delivery.py` has the shapes of commands; this file has the limits and the refusals.
"""

import hashlib
import random

import pytest

pytestmark = pytest.mark.one_server

COMMAND_BYTES_MAX = 1 << 20


def heredoc(text):
    """The command that writes a text, which ends in a newline, to a file."""
    return f"cat > f <<'END_OF_FILE'\n{text}END_OF_FILE"


def lines(size):
    """So many bytes in lines of every length, with words that shells expand and bytes that line editors take for keys."""
    chance = random.Random(2)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789 \"'$`\\!#&()*;<>?[]^{|}~" + "".join(map(chr, [*range(1, 32), 127]))
    text = "\x1b[7337~ \x1b[200~ \x1b[201~ é 漢字 🦀 e\u0301 \u202e\ufeff\n" + "x" * 200_000 + "\n"
    while len(text) < size:
        text += "".join(chance.choices(letters, k=chance.randrange(200))) + "\n"
    return text.encode()[: size - 1].decode(errors="ignore") + "\n"


# promise: send-1
async def test_a_command_of_one_mebibyte_arrives_and_one_byte_more_is_refused(workspace):
    room = COMMAND_BYTES_MAX - len(heredoc(""))
    text = lines(room)
    assert len(heredoc(text).encode()) == COMMAND_BYTES_MAX
    assert (await workspace.terminal(heredoc(text))).exit == 0
    assert (workspace.project / "f").read_bytes() == text.encode()
    refused = await workspace.terminal(heredoc("x" + text))
    assert (refused.is_error, "1048576" in refused.text.replace(",", "")) == (True, True)
    assert (await workspace.terminal("echo ok")).output == "ok"


async def test_a_command_with_a_nul_is_refused(workspace):
    refused = await workspace.terminal("echo a\0b")
    assert refused.is_error
    assert (await workspace.terminal("echo ok")).output == "ok"


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
async def test_a_program_that_does_not_read_accepts_little_input_and_the_answer_says_how_much(workspace):
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


# promise: send-3
async def test_an_incomplete_command_reports_which_part_ran_and_consumes_nothing(workspace):
    await workspace.terminal("true")
    for nothing in ("if true; then", "echo first; for i in 1 2", "echo 'x", "cat <<EOF\nabc"):
        answer = await workspace.terminal(nothing)
        assert "first" not in answer.output and answer.text.endswith("; it was not run]"), answer.text
        assert "incomplete" in answer.text, answer.text
    for nothing in ("for i in 1 2", "case x in", "x=(a", "echo first\nfor i in 1 2"):
        answer = await workspace.terminal(nothing)
        assert "first" not in answer.output and answer.text.endswith("; it was not run]"), answer.text
        # Bash's words name nothing of what ptyd puts behind a text.
        assert "unexpected end of file" in answer.output or "unexpected EOF" in answer.output, answer.text
        assert "if'" not in answer.output and "ptyd" not in answer.output, answer.text
    answer = await workspace.terminal("echo first\nif true; then")
    assert "first" in answer.output and answer.text.endswith("; the shell ran the lines before it]"), answer.text
    answer = await workspace.terminal("echo a; )")
    assert ("syntax error near unexpected token `)'" in answer.output, answer.exit) == (True, 2)
    assert (await workspace.terminal("echo ok")).text == "ok\n[exit 0]"


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
