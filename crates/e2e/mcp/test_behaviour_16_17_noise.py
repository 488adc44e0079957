"""BEHAVIOUR 16 and 17: what terminals do to text: paint, questions to the terminal, and bytes that are not text.

The text is what a person would have seen; the raw view is every byte; and no program is kept waiting for a reply.
"""

import random
import re

import pytest

pytestmark = pytest.mark.one_server


# promise: output-4
async def test_a_line_that_is_written_over_is_one_line(workspace):
    answer = await workspace.terminal("for i in $(seq 1 1000); do printf '\\rprogress %d' $i; done; echo")
    assert answer.text.startswith("progress 1000\n[exit 0")


# promise: output-1
async def test_the_raw_view_is_every_byte(workspace):
    session = await workspace.session()
    done = await session.run(r"printf 'a\bb\e[31mx\e[0m\e]0;t\a\r\xff\0\n'")
    raw = await session.read(view="raw", command_id=done.fact("command"))
    assert raw.output == r"a\x08b\e[31mx\e[0m\e]0;t\x07\r\xff\x00\r"


@pytest.mark.parametrize(
    "question, end",
    [(r"\e[6n", "R"), (r"\e[c", "c"), (r"\e[>c", "c"), (r"\e[5n", "n"), (r"\e[?6n", "R"), (r"\e[18t", "t")],
)
# promise: output-5
async def test_a_question_to_the_terminal_is_answered_once(workspace, question, end):
    ask = f"printf '{question}'; read -s -t 60 -d {end} reply; first=$?; read -s -t 0.3 -n 1 more; echo \"<$first $(($? > 128))>\""
    (workspace.project / "ask").write_text(ask)
    # A pattern outranks that the program wants input, which it does for a moment.
    answer = await workspace.terminal("bash ask", wait_for="<.*>", timeout=60)
    assert answer.last_line.endswith("<0 1>"), answer.text
    await workspace.agent.at(answer.session_id).idle()
    # A caller with the answer "still running" gets its end.
    end = f' · command {answer.fact("command")} "bash ask" has ended: exit 0' if answer.is_running else ""
    assert (await workspace.terminal("echo next")).text == f"next\n[exit 0{end}]"


async def test_the_reported_cursor_position_is_true(workspace):
    session = await workspace.session(dimensions={"cols": 80, "rows": 24})
    answer = await session.run(r"printf '\e[2J\e[7;11H\e[6n'; IFS= read -s -t 60 -d R reply; echo; echo ${reply#*[}")
    assert (answer.last_line, answer.exit) == ("7;11", 0)


# promise: output-5
async def test_a_question_is_not_answered_again_when_it_is_shown_again(workspace):
    session = await workspace.session()
    asked = await session.run(r"printf '\e[6n'; read -s -t 60 -d R reply; echo answered")
    for view in ("text", "raw", "screen"):
        await session.read(view=view)
    assert asked.last_line == "answered"
    later = await session.run("bash -c 'read -s -t 0.2 -n 1 more; echo \"<$(($? > 128))>\"'", wait_for="<.*>", timeout=60)
    assert later.last_line == "<1>"


# promise: output-4
async def test_characters_that_come_byte_by_byte_are_whole(workspace):
    byte_by_byte = "import os; [os.write(1, bytes([b])) for b in '漢字🦀é\\n'.encode() * 50]"
    answer = await workspace.terminal(f'python3 -c "{byte_by_byte}"')
    assert answer.output == "漢字🦀é\n[… the same line 49 more times]"


# promise: output-4
async def test_bytes_that_are_not_text_are_escaped_and_counted(workspace):
    await workspace.terminal("true")
    answer = await workspace.terminal(r"printf 'bad\xff\xfe|\xc3\n'")
    assert answer.text == "bad\\xff\\xfe|\\xc3\n[exit 0 · 3 bytes are not text, shown as \\xNN]"
    nul = await workspace.terminal(r"printf 'a\0b\n'")
    assert nul.text == "a\\x00b\n[exit 0 · 1 byte is not text, shown as \\xNN]"


# promise: output-3
async def test_output_that_escaped_bytes_make_too_long_keeps_both_ends(workspace):
    await workspace.terminal("true")
    write = "python3 -c 'import os; os.write(1, {})'"
    binary = await workspace.terminal(write.format(r'b"HEAD\n" + b"\xff" * 9000 + b"\nEND1\nEND2\n"'))
    assert re.fullmatch(
        r'HEAD\n\[… 9,002 bytes omitted: lines 2–2; get_terminal_output \{.*\}\]\nEND1\nEND2', binary.output
    ), binary.text
    mixed = await workspace.terminal(write.format(r'b"".join(b"%d some words \xff\xff\n" % i for i in range(1400))'))
    omission = r'\n\[… [\d,]+ bytes omitted: lines (\d+)–(\d+); get_terminal_output \{.*\}\]\n'
    (omitted,) = re.finditer(omission, mixed.output)
    head, tail = mixed.output[: omitted.start()].split("\n"), mixed.output[omitted.end() :].split("\n")
    line = r"%d some words \xff\xff"
    assert head == [line % i for i in range(int(omitted[1]) - 1)]
    assert tail == [line % i for i in range(int(omitted[2]), 1400)]
    assert 25_000 < len(mixed.output) < 30_200


@pytest.mark.parametrize("seed", range(3))
async def test_a_megabyte_of_noise_leaves_a_sane_terminal(workspace, seed):
    (workspace.project / "noise").write_bytes(random.Random(seed).randbytes(1 << 20))
    noise = await workspace.terminal("cat noise", timeout=60)
    assert noise.exit == 0, noise.text[-300:]
    assert len(noise.text) < 40_000
    for word in ("sane", "é漢🦀"):
        answer = await workspace.terminal(f"echo {word}", timeout=60)
        assert (answer.output, answer.exit) == (word, 0)
    assert (await workspace.terminal("read x", timeout=60)).wants == "input"
    assert (await workspace.terminal("typed", is_input=True)).exit == 0
    assert (await workspace.terminal("echo $x")).output == "typed"


# promise: output-10
async def test_the_model_learns_of_text_that_a_person_does_not_see(workspace):
    tricks = r"a\u202eb\U000e0041 \e[8mignore this\e[28m \e]8;;http://evil\e\\link\e]8;;\e\\ \e]52;c;aGk=\a\n"
    answer = await workspace.terminal(f"printf '{tricks}'")
    assert answer.output == r"a\u{202e}b\u{e0041} ignore this link "
    assert answer.facts[1:5] == [
        r"2 invisible characters shown as \u{…}",
        "10 characters were concealed from people",
        "1 link target not shown",
        "1 clipboard write not shown",
    ]


# promise: output-10
async def test_controls_of_c1_that_come_as_characters_are_shown(workspace):
    session = await workspace.session()
    answer = await session.run(r"printf 'a\u0085b\u009b31mc\n'")
    assert answer.output == r"a\u{85}b\u{9b}31mc"
    assert r"2 invisible characters shown as \u{…}" in answer.facts
    found = await session.read(search="31mc$")
    assert r": a\u{85}b\u{9b}31mc" in found.text and r"2 invisible characters shown as \u{…}" in found.facts


# promise: output-9
async def test_binary_output_is_summed_up_and_can_be_fetched(workspace):
    (workspace.project / "picture").write_bytes(b"\x89PNG\r\n\x1a\n" + random.Random(1).randbytes(5000))
    session = await workspace.session()
    answer = await session.run("cat picture")
    assert re.fullmatch(
        r'\[… [\d,]+ bytes of binary output, beginning ".*"; get_terminal_output \{.*"view":"raw"\}\]', answer.output
    )
    assert answer.exit == 0
    raw = await session.read(view="raw", command_id=answer.fact("command"))
    assert raw.output.startswith(r"\x89PNG")
