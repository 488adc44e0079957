"""One wait in several sessions: the first that is over answers, or all of them, and no output of another one is lost."""

import asyncio
import re

from mcp_client import at_least


async def sessions(workspace, *commands):
    """A session for each command, which runs in it."""
    made = [await workspace.session() for _ in commands]
    for session, command in zip(made, commands, strict=True):
        answer = await session.run(command, wait_for_completion=False)
        assert answer.is_running or answer.exit is not None, answer.text
    return made


async def read(workspace, first, *others, **arguments):
    """One reading of several sessions."""
    ids = [other.id for other in others]
    return await workspace.agent.call("get_terminal_output", session_id=first.id, other_sessions=ids, **arguments)


# promise: wait-7
async def test_the_first_session_whose_command_ends_answers_and_the_others_are_listed(workspace):
    workspace.gate()
    slow, gated = await sessions(workspace, "printf be; echo gun; sleep 60", "echo before; cat gate; false")
    waits = asyncio.create_task(read(workspace, slow, gated, timeout=60))
    await workspace.open_gate()
    answer = await waits
    assert "before" in answer.text and "opened" in answer.text, answer.text
    assert "exit 1" in answer.text and f"session {gated.id}" in answer.text, answer.text
    assert re.search(rf"\[{slow.id} · name \"[^\"]+\" · running · command c1", answer.text) and "begun" not in answer.text, answer.text
    # The output of the other session is still unread.
    later = await slow.read(since="last", wait_for="begun", timeout=60)
    assert later.output == "begun", later.text
    # An end that was told does not answer a second time.
    with at_least(1):
        answer = await read(workspace, slow, gated, timeout=1)
    # The facts of each session stand in a line of its own, and nothing was read.
    assert answer.text.count("\n") == 1, answer.text


async def test_an_end_between_two_calls_answers_at_once(workspace):
    workspace.gate()
    slow, quick = await sessions(workspace, "sleep 60", "cat gate; echo done")
    await workspace.open_gate()
    await quick.idle()
    answer = await read(workspace, slow, quick, timeout=60)
    assert ("exit 0" in answer.text, "timeout" in answer.text) == (True, False), answer.text


async def test_all_of_them_are_awaited_on_request(workspace):
    first, second = workspace.gate(), workspace.gate("second")
    one, other = await sessions(workspace, f"cat {first}", f"cat {second}; exit 3")
    waits = asyncio.create_task(read(workspace, one, other, timeout=60, wait_for_all=True))
    await workspace.open_gate("first\n")
    await one.idle()
    assert not waits.done()
    await workspace.open_gate("last\n", "second")
    answer = await waits
    *output, first_facts, last_facts = answer.text.splitlines()
    assert output[0] == "first" and "last" in output[1:], answer.text
    assert "exit 0" in first_facts and f"session {one.id} · its output is line" in first_facts, answer.text
    assert "session ended" in last_facts and f"session {other.id} · its output is line" in last_facts, answer.text


async def test_a_pattern_and_a_question_end_the_wait(workspace):
    asks, prints = await sessions(workspace, "read -p 'sure? ' x", "sleep 60")
    answer = await read(workspace, prints, asks, timeout=60)
    assert "sure?" in answer.text and re.search(rf"\[{prints.id} · name \"[^\"]+\" · running", answer.text), answer.text
    workspace.gate()
    serves, other = await sessions(workspace, "cat gate; sleep 60", "echo unread; sleep 60")
    waits = asyncio.create_task(read(workspace, other, serves, timeout=60, wait_for="opened"))
    await workspace.open_gate()
    answer = await waits
    assert 'matched "opened"' in answer.text and serves.id in answer.text, answer.text
    # Neither a match elsewhere nor a time-out takes anything from the output of a session that was not over.
    answer = await read(workspace, other, serves, timeout=0.2, wait_for="never")
    assert "unread" not in answer.text.replace('"echo unread', ""), answer.text
    assert (await other.read(since="last", wait_for="unread", timeout=60)).output == "unread"


async def test_a_part_of_the_output_is_read_where_nothing_runs(workspace):
    one, other = await sessions(workspace, "seq 20000", "seq 20000")
    await one.idle()
    await other.idle()
    await read(workspace, one, other)
    answer = await read(workspace, one, other, since="o:0", view="raw")
    assert len(answer.text) < 31_000 and answer.text.count("its output is lines") == 2, answer.text[-300:]
    answer = await read(workspace, one, other, search="^1999[0-9]$")
    assert answer.text.count("19990\n") == 2, answer.text


async def test_impossible_requests_are_refused_and_read_nothing(workspace):
    one, other = await sessions(workspace, "echo one", "echo other")
    refused = await read(workspace, one, other, command_id="c1")
    assert refused.is_error and "command_id" in refused.text
    refused = await workspace.agent.call("get_terminal_output", session_id=one.id, other_sessions=["s0-nothing"])
    assert refused.is_error and "s0-nothing" in refused.text


# promise: wait-7
async def test_a_session_that_is_purged_is_named_and_the_others_are_read(workspace):
    gate = workspace.gate()
    ends, purged, unknown = await sessions(workspace, f"cat {gate}", "true", "true")
    for session in (purged, unknown):
        await workspace.purge(session.id)
    waits = asyncio.create_task(read(workspace, purged, ends, unknown, timeout=60, wait_for_all=True))
    await workspace.open_gate("read\n")
    answer = await waits
    assert not answer.is_error, answer.text
    of_first, of_ends, of_last = answer.text.splitlines()[-3:]
    assert of_first.startswith(f"[not read: no session {purged.id}") and of_first.endswith(f" · session {purged.id}]")
    assert "exit 0" in of_ends and "read" in answer.text.splitlines()[0], answer.text
    assert of_last.startswith(f"[not read: no session {unknown.id}"), answer.text
    # Where there is nothing else to tell it is an error.
    answer = await read(workspace, purged, unknown)
    assert answer.is_error and purged.id in answer.text, answer.text


# promise: wait-7
async def test_a_session_that_is_purged_while_it_is_awaited_ends_the_wait(workspace):
    workspace.gate()
    purged, slow = await sessions(workspace, "echo begun; sleep 60", "sleep 60")
    waits = asyncio.create_task(read(workspace, purged, slow, timeout=50))
    # The other call has begun to wait once the kill finds it.
    await workspace.agent.call("list_terminal_sessions")
    await workspace.purge(purged.id)
    answer = await waits
    assert not answer.is_error and purged.id in answer.text and re.search(rf"\[{slow.id} · name \"[^\"]+\" · running", answer.text), answer.text
