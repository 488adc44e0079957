"""Several calls in one turn, as hosts send them: commands run one after the other in the order in which they were sent,
and what concerns the running command does not wait behind it.
"""

import asyncio

import pytest

from mcp_client import IS_FULL


@pytest.mark.parametrize("keys", [[""], ["name", "id"]])
# promise: send-5
async def test_commands_that_are_sent_at_once_are_all_answered_in_order(workspace, keys):
    """Those of the one-tool shell, and those of a session by its name and by its id."""
    session = await workspace.session(name="work")
    runs = {"": workspace.terminal, "name": workspace.agent.at("work").run, "id": session.run}
    for _ in range(20 if IS_FULL else 3):
        calls = [runs[key](f"echo {n} >> order; cat order") for n, key in enumerate(keys * (8 // len(keys)))]
        answers = await asyncio.gather(*calls)
        expected = ["\n".join(str(number) for number in range(last + 1)) for last in range(8)]
        assert [(answer.output, answer.exit) for answer in answers] == [(output, 0) for output in expected]
        (workspace.project / "order").unlink()


async def test_commands_of_a_named_session_take_turns_and_sessions_do_not_wait_for_each_other(workspace):
    workspace.gate()
    one, other = await workspace.session(), await workspace.session()
    waits = asyncio.create_task(one.run("cat gate"))
    behind = asyncio.create_task(one.run("echo behind"))
    assert (await other.run("echo other")).output == "other"
    assert not behind.done()
    await workspace.open_gate()
    assert ((await waits).output, (await behind).output) == ("opened", "behind")


async def test_keys_input_and_looks_do_not_wait_for_their_turn(workspace):
    reads = asyncio.create_task(workspace.terminal("cat"))
    behind = asyncio.create_task(workspace.terminal("echo behind"))
    assert (await reads).wants == "input"
    # The earlier command was told as still running, so the one behind it is refused and not kept for later.
    refused = await behind
    assert (refused.is_error, "busy" in refused.text) == (True, True), refused.text
    looked, typed = await asyncio.gather(workspace.terminal("", timeout=1), workspace.terminal("more", is_input=True))
    assert looked.is_running and typed.is_running
    assert (await workspace.terminal("C-c")).exit == 130


async def test_a_command_is_not_run_if_its_turn_does_not_come_within_its_timeout(workspace):
    workspace.gate()
    await workspace.terminal("true")
    waits = asyncio.create_task(workspace.terminal("cat gate"))
    late = await asyncio.create_task(workspace.terminal("touch ran", timeout=0.3))
    assert (late.is_error, "not run" in late.text) == (True, True), late.text
    await workspace.open_gate()
    assert (await waits).output == "opened"
    assert not (workspace.project / "ran").exists()
