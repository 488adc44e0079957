"""BEHAVIOUR 9 and 10: much output, and output that belongs to nobody's command.

Every count is exact, every byte can be read again, and a flood in one session does not concern another.
"""

import asyncio
import hashlib
import re
from pathlib import Path

import pytest

from mcp_client import CALL_SECONDS, IS_FULL

LINES = 5_000_000 if IS_FULL else 300_000
def peak_memory_kib(pid):
    """The most that a process ever had in memory."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1))


# promise: output-1, output-2, output-3
async def test_a_flood_is_cut_exactly_costs_no_memory_and_disturbs_no_neighbour(workspace):
    session, neighbour = await workspace.session(), await workspace.session()
    await neighbour.run("true")
    before = peak_memory_kib(workspace.server())
    flood = asyncio.create_task(session.run(f"seq 1 {LINES}", timeout=70))
    while not flood.done():
        assert (await neighbour.run("true")).exit == 0
    answer = await flood
    assert answer.exit == 0
    assert peak_memory_kib(workspace.server()) - before < 64 * 1024

    whole = "".join(f"{n}\n" for n in range(1, LINES + 1))
    head, omitted, tail = re.split(r"(\[… [\d,]+ bytes omitted: .*\]\n)", answer.output + "\n")
    size, first, last, since = re.match(r'\[… ([\d,]+) bytes omitted: lines (\d+)–(\d+);.*"since":"o:(\d+)"', omitted).groups()
    first, last = int(first), int(last)
    assert (head, tail) == (
        "".join(f"{n}\n" for n in range(1, first)),
        "".join(f"{n}\n" for n in range(last + 1, LINES + 1)),
    )
    assert 25_000 <= len(head) + len(tail) <= 30_000
    missing = "".join(f"{n}\n" for n in range(first, last + 1))
    assert int(size.replace(",", "")) == len(missing) + (last + 1 - first)
    read = await session.pages(f"o:{since}", command_id=answer.fact("command"))
    assert hashlib.sha256((head + read).encode()).hexdigest() == hashlib.sha256(whole.encode()).hexdigest()


async def test_the_omitted_lines_can_be_searched_with_their_numbers(workspace):
    session = await workspace.session()
    done = await session.run("seq 1 30000")
    found = await session.read(command_id=done.fact("command"), search="^1?7777$")
    assert found.output == "7777: 7777\n17777: 17777"
    assert found.facts[0] == "2 matching lines in 30,000"


# promise: end-6
async def test_no_command_has_the_later_output_of_a_grandchild(workspace):
    workspace.gate()
    # It is answered before the grandchild prints, which the gate still keeps.
    answer = await workspace.terminal("(cat gate; echo late) & echo hi")
    assert (answer.last_line, answer.exit) == ("hi", 0)
    await workspace.open_gate()
    looked = ""
    async with asyncio.timeout(CALL_SECONDS):
        while "late" not in looked:
            look = await workspace.terminal("")
            assert look.facts[:2] == ["idle", "last exit 0"]
            looked += look.output + "\n"
    # It began to print where the cursor was, behind the prompt.
    assert re.fullmatch(r"\n*(.*[#$] )?opened\n+late\n", looked), looked
    # bash tells at one of its next prompts that the job is done, which is shown with the command behind it.
    for _ in range(2):
        following = await workspace.terminal("echo next")
        assert [line for line in following.output.splitlines() if "Done" not in line] == ["next"], following.text
    assert (await workspace.terminal("echo next")).text == "next\n[exit 0]"


async def test_a_background_job_is_answered_at_once_with_the_shells_own_line_about_it(workspace):
    answer = await workspace.terminal("nohup sleep 3600 >/dev/null 2>&1 & sleep 3601 & echo x")
    assert (re.sub(r"(?m) \d+$", " PID", answer.output), answer.exit) == ("[1] PID\n[2] PID\nx", 0), answer.text
    # A job is a copy of the shell until it has become its program.
    there = workspace.agent.at(answer.session_id)
    await there.until(lambda _: {"sleep 3600", "sleep 3601"} <= set(workspace.processes(answer.session_id).values()))
    assert "Running" in (await workspace.terminal("jobs")).output


async def test_output_through_a_process_substitution_comes_once_and_ends_stay_exact(workspace):
    answer = await workspace.terminal("exec > >(tee -a log); echo said-$((1))")
    assert answer.exit == 0
    later = await workspace.terminal("echo said-$((2)); (exit 3)")
    assert later.exit == 3
    session = workspace.agent.at(answer.session_id)
    await session.read(since="o:0", wait_for="said-2", timeout=60)
    # It comes when tee has passed it on, with its command or behind it.
    assert re.findall(r"said-\d", await session.pages("o:0")) == ["said-1", "said-2"]
    assert (workspace.project / "log").read_text().splitlines() == ["said-1", "said-2"]


# promise: output-8
async def test_blanks_and_tabs_at_the_end_of_a_line_stay(workspace):
    answer = await workspace.terminal(r"printf 'a  \n   \nb\t\nc  \033[Kd \033[2D\033[K\n'")
    # Erased blanks are gone.
    assert answer.text.startswith("a  \n   \nb\t\nc  \n[exit 0"), repr(answer.text)


async def test_equal_lines_are_folded_before_the_text_is_cut(workspace):
    line = "x" * 200
    answer = await workspace.terminal(f"echo begin; yes {line} | head -n 3000; echo end")
    assert answer.output.splitlines() == ["begin", line, "[… the same line 2,999 more times]", "end"], answer.text[:500]
    session = await workspace.session()
    assert (await session.run(f"yes {line} | head -n 3000")).output.splitlines()[1] == "[… the same line 2,999 more times]"


@pytest.mark.parametrize("tool", ["terminal", "execute_in_terminal"])
async def test_a_call_says_how_much_output_it_wants(workspace, tool):
    session = await workspace.session()
    call = {"session_id": session.id, "command": "seq 10000"}
    answer = await workspace.agent.call(tool, **call, max_output=200)
    assert len(answer.output) < 400 and "bytes omitted: lines" in answer.output, answer.text
    assert answer.output.splitlines()[0] == "1" and answer.last_line == "10000"
    assert len((await workspace.agent.call(tool, **call, max_output="10")).output) < 250
    assert len((await workspace.agent.call(tool, **call, max_output=10_000_000)).output) < 31_000
