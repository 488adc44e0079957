"""The cost of whole tasks to a model, in calls and tokens, then and now: pytest prints the table of `docs/text-format.md`."""

import shutil

import pytest

from mcp_client import REPOSITORY
from test_tokens import tokens
from transcripts import TASKS, Transcript

PROGRAMS = {"git": "git", "cargo": "cargo", "npm": "npm", "9 keys": "vim"}


@pytest.mark.parametrize("name", TASKS)
# promise: output-11
async def test_a_task_needs_no_looks_and_at_most_the_documented_calls_and_tokens(workspace, name, record_property):
    program = next((program for start, program in PROGRAMS.items() if name.startswith(start)), "python3")
    if shutil.which(program, path=workspace.env["PATH"]) is None and shutil.which(program) is None:
        pytest.skip(f"not installed: {program}")
    task = Transcript(workspace.agent)
    await TASKS[name](task, workspace)
    calls, cost = len(task.answers), sum(tokens(*(answer.text for answer in task.answers)))
    rows = [row.split(" | ") for row in (REPOSITORY / "docs/text-format.md").read_text().splitlines()]
    [row] = [row for row in rows if row[0] == f"| {name}"]
    documented_calls, documented_cost = row[4], row[6].strip(" |")
    record_property("row", " | ".join([*row[:4], str(calls), str(task.polls), f"{cost:,} |"]))
    assert task.polls == 0
    assert calls == int(documented_calls)
    # Paths, durations and versions differ between machines.
    assert cost <= 1.2 * int(documented_cost.replace(",", ""))
