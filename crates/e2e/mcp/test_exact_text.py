"""Every door answers the text, tabs and line ends that a program prints, at every width, whole or in pieces.

The pieces of the texts come from the review that found what was lost: tabs at the right margin, wide characters that do
not fit, blanks at the end of a line, CR LF, a missing newline, controls.
"""

import asyncio
import os
import random
import re
import subprocess

import pytest

from mcp_client import PTYD

FULL = "PTYD_TEST_FULL" in os.environ
PIECES = ["\t", "\t\t", " ", "   ", "a", "word", "0123456789", "x" * 37, "日", "日本語", "é", "e\u0301", "👩\u200d💻", "\u3000", "[exit 0]"]
STYLES = ["\x1b[1;32m", "\x1b[m", "\x1b]0;title\x07"]
FILES = {
    "Makefile": "all: x\n\tgcc -o x x.c\t# one\n\n\ttrue\t\n",
    "main.go": 'package main\n\nfunc main() {\n\tx := []string{\n\t\t"a",\t// one\n\t}\n}\n',
    "table.tsv": "".join("\t".join(f"field{i}{j}" * (1 + (i + j) % 3) for j in range(12)) + "\t\n" for i in range(30)),
    "trailing": "x   \ny \n   \n\n",
    "wide": "x" * 79 + "日本\n" + "漢字" * 90 + "\n",
    "no newline": "a\nb",
}


def printed(seed: int) -> tuple[str, str]:
    """Output, and the text of it."""
    draw = random.Random(seed)
    output = text = ""
    for _ in range(draw.randrange(80)):
        if draw.random() < 0.2:
            output += draw.choice(STYLES)
        elif draw.random() < 0.15:
            output, text = output + "\n", text + "\n"
        else:
            piece = draw.choice(PIECES)
            output, text = output + piece, text + piece
    return output, text


@pytest.fixture
async def doors(served):
    """A function that prints bytes in a session of some columns, and returns the text that each door gives of them."""
    path = served.project / "printed"

    async def read(output: bytes, cols: int) -> dict:
        path.write_bytes(output)
        session = await agent.session(dimensions={"cols": cols, "rows": 24})
        answer = await session.run(f"cat {path}")
        assert answer.exit == 0, answer.text
        command = answer.fact("command")
        program = await structured.at(session.id).read(command_id=command)
        of_session = f"/terminals/{session.id}"
        page = (await rest.get(f"{of_session}/output", params={"commandId": command})).json()
        hits = (await rest.get(f"{of_session}/search", params={"commandId": command, "q": "^", "limit": 1000})).json()
        executed = (await rest.post(f"{of_session}/execute", json={"command": f"cat {path}", "timeout": 60})).json()
        command_line = [PTYD, "run", "--", "cat", str(path)]
        piped = await asyncio.to_thread(
            subprocess.run, command_line, env=served.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True
        )
        await session.terminate(force=True)
        return {
            "MCP": answer.text[: answer.text.rindex("[")],
            "facts": answer.text[answer.text.rindex("[") :],
            "structured": program.structured["output"],
            "output": page["text"],
            "crlf": page["crlfLines"],
            "escaped": page["escaped"],
            "search": [hit["text"] for hit in hits["matches"]],
            "execute": executed["output"],
            "run": piped.stdout,
        }

    async with served.http() as rest, served.another_agent() as agent, served.another_agent("--structured") as structured:
        yield read


def lines_of(text: str) -> list[str]:
    return text.split("\n")[: -1 if text.endswith("\n") or not text else None]


@pytest.mark.parametrize("cols", [20, 80, 120])
# promise: output-4
async def test_printed_text_is_exact_at_every_door(doors, cols):
    for seed in range(100 if FULL else 3):
        output, text = printed(seed * 1000 + cols)
        seen = await doors(output.encode(), cols)
        is_ended = text.endswith("\n") or not text
        assert seen["MCP"] == text + ("" if is_ended else "\n"), (seed, output)
        assert ("no newline at the end" in seen["facts"]) == (not is_ended), (seed, seen["facts"])
        assert {seen[door] for door in ("structured", "output", "execute")} == {text}, (seed, output)
        assert seen["search"] == lines_of(text), (seed, output)
        assert seen["run"].decode() == text, (seed, output)


# promise: output-4
async def test_a_file_that_is_read_can_be_written_back(doors):
    for name, text in FILES.items():
        seen = await doors(text.encode(), 80)
        assert {seen[door] for door in ("structured", "output", "execute")} == {text}, name
        assert seen["run"].decode() == text, name


# promise: output-4
async def test_cr_lf_and_controls_are_facts_and_a_pipe_gets_cr_lf_as_it_is(doors):
    output = b"a\r\nb\r\nk1\x01v1\x0c\x7f\n\x1b]0;never ends\nseen\n"
    seen = await doors(output, 80)
    text = "a\nb\nk1\\x01v1\\x0c\\x7f\n\nseen\n"
    assert {seen[door] for door in ("MCP", "structured", "output", "execute")} == {text}
    facts = "2 lines end in CR LF", "3 bytes are not text, shown as \\xNN", "14 bytes of unfinished sequences not shown"
    assert [fact for fact in facts if fact not in seen["facts"]] == []
    assert (seen["crlf"], seen["escaped"]) == (2, 3)
    assert seen["run"] == b"a\r\nb\r\nk1\\x01v1\\x0c\\x7f\n\nseen\n"


# promise: output-9
async def test_structured_output_has_no_marks(doors):
    text = "same\n" * 12 + "y" * 12_000 + "\n\u200bx\n"
    seen = await doors(text.encode(), 80)
    assert seen["structured"] == text
    assert "[… the same line 11 more times]" in seen["MCP"]


# promise: output-4
async def test_pieces_are_read_as_the_whole_wherever_the_output_is_cut(served):
    text = "abc\tdef日本語\té👩\u200d💻\tend   \n"
    os.mkfifo(served.project / "parts")
    (served.project / "emit").write_text(
        "import os\nfor part in open('parts'):\n    os.write(1, bytes.fromhex(part))\n"
    )
    async with served.another_agent() as agent, served.http() as rest:
        session = await agent.session()
        started = await session.run("python3 emit; echo done", timeout=0)
        command, read, at = started.fact("command"), "", None
        # Otherwise nobody would open the other end.
        assert command, started.text
        with open(served.project / "parts", "w") as parts:
            for byte in text.encode():
                parts.write(f"{byte:02x}\n")
                parts.flush()
                query = {"commandId": command, "waitMs": 50} if at is None else {"since": f"o:{at}", "waitMs": 50}
                page = (await rest.get(f"/terminals/{session.id}/output", params=query)).json()
                assert "\\x" not in page["text"], read
                read, at = read + page["text"], page["nextOffset"]
        while "done\n" not in read:
            page = (await rest.get(f"/terminals/{session.id}/output", params={"since": f"o:{at}", "waitMs": 1000})).json()
            read, at = read + page["text"], page["nextOffset"]
        # The prompt may be behind it.
        assert read.partition("done\n")[0] == text


# promise: output-13
async def test_a_pattern_matches_a_tab_and_a_search_shows_the_match_of_a_long_line(workspace):
    session = await workspace.session()
    answer = await session.run(r"printf 'a\tb'; sleep 60", wait_for=r"a\tb", timeout=60)
    assert "matched" in answer.text, answer.text
    await session.press("ctrl+c")
    await session.run("printf '%03000dNEEDLE%03000d\\n' 0 0")
    found = await session.read(search="NEEDLE")
    assert re.search(r"^\d+: …0+NEEDLE0+…$", found.text, re.M), found.text[:300]
