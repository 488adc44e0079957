"""A pattern is matched against what a program prints, and never against the echo of the line that was typed at it.

Programs echo a line once, by the kernel, or paint it again and again as an editor does, with colours and suggestions.
"""

import asyncio
import sys
from pathlib import Path

import far
import pytest
from fullscreen import needs
from mcp_client import CALL_SECONDS

pytestmark = pytest.mark.one_server

IPYTHON = Path(sys.executable).with_name("ipython")

# By program: a line that names the word and does not print it, and one that prints it once the gate is opened.
SHELL = ("x=ready", "cat {gate}; echo ready")
PYTHON = ("w = 'ready'", "open('{gate}').read(); print('ready')")
READERS = {
    "python3 -q": PYTHON,
    f"{IPYTHON} --no-banner": PYTHON,
    "node": ("var w = 'ready'", "fs.readFileSync('{gate}'); 'ready'"),
    "sqlite3": ("-- ready", ".shell cat {gate}; echo ready"),
    "perl -de0": ("$w = 'ready'", "system('cat {gate}; echo ready')"),
    "gdb -q -nx": ("set $w = 1 # ready", "shell cat {gate}; echo ready"),
    "bash --norc": SHELL,
    "zsh -f": SHELL,
    "dash": SHELL,
    "mksh": SHELL,
    "fish --no-config": ("set x ready", "cat {gate}; echo ready"),
}

EACH = pytest.mark.parametrize("program", [pytest.param(program, marks=needs(program.split()[0])) for program in READERS])


def is_matched(answer) -> bool:
    return any(fact.startswith("matched") for fact in answer.facts)


async def holds(session, workspace, gate, silent, line):
    """The property, at a program that reads."""
    for _ in range(2):
        answer = await session.type(silent + "\n", wait_for="ready", until=["input"], timeout=CALL_SECONDS)
        assert answer.wants and not is_matched(answer), (silent, answer.text)
        typed = line.format(gate=gate) + "\n"
        call = asyncio.create_task(session.type(typed, wait_for="ready", timeout=CALL_SECONDS))
        # The program reads the gate, so it has shown the whole line.
        await workspace.open_gate("")
        answer = await call
        # A match in the echo would end the wait before the program's own line.
        lines = [line.strip("'") for line in answer.output.splitlines()]
        assert is_matched(answer) and "ready" in lines, (typed, answer.text)
        answer = await session.read(since="last", until=["input"], timeout=CALL_SECONDS)
        assert answer.wants, answer.text


@EACH
# promise: wait-2
async def test_a_pattern_matches_what_is_printed_and_no_echo(workspace, program):
    session = await workspace.session()
    answer = await session.run(program, until=["input"], timeout=CALL_SECONDS)
    assert answer.wants, answer.text
    await holds(session, workspace, workspace.gate(), *READERS[program])


@EACH
# promise: wait-2
async def test_a_pattern_matches_no_echo_of_a_line_that_is_typed_while_the_program_starts(workspace, program):
    session = await workspace.session()
    start, gate = workspace.gate("start"), workspace.gate()
    await session.run(f"sh -c 'cat {start}; exec {program}'", timeout=0.1)
    line = READERS[program][1].format(gate=gate)
    call = asyncio.create_task(session.type(line + "\n", wait_for="ready", timeout=CALL_SECONDS))
    await session.until(lambda _: line.encode() in workspace.journal(session.id))
    await workspace.open_gate(name="start")
    await workspace.open_gate("")
    answer = await call
    printed = [shown for shown in answer.output.splitlines() if "ready" in shown and line not in shown]
    assert is_matched(answer) and printed, answer.text
    await session.terminate(force=True)


@far.needs_sshd
@pytest.mark.parametrize("shell", ["bash --norc", "zsh -f", "fish --no-config", "python3 -q"])
# promise: wait-2
async def test_a_pattern_matches_no_echo_from_far_away(workspace, shell):
    session = await workspace.session()
    with far.machine(workspace.root) as ssh:
        answer = await session.run(f"{ssh} -t {shell}", until=["input"], timeout=CALL_SECONDS)
        assert answer.wants, answer.text
        await holds(session, workspace, workspace.gate(), *READERS[shell])
        await session.terminate(force=True)
