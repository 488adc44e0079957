"""A client that was told that a command still runs is told how it ended, whatever it does next."""

import asyncio
import json

from mcp_client import CALL_SECONDS


async def gated(workspace, then: str):
    """A command that has said `begun`, and goes on when its gate is opened."""
    workspace.gate()
    running = await workspace.terminal(f"echo begun; cat gate; {then}", wait_for="begun", timeout=60)
    assert running.is_running and running.output == "begun", running.text
    return running


def call_in(fact: str) -> dict:
    """The arguments that a fact names for reading on."""
    return json.loads(fact.rpartition("get_terminal_output ")[2])


async def next_one(workspace, command: str):
    """Runs a command as soon as the one before it has ended."""
    async with asyncio.timeout(CALL_SECONDS):
        while (answer := await workspace.terminal(command)).is_error:
            assert "busy" in answer.text, answer.text
    return answer


# promise: wait-6
async def test_the_next_command_tells_how_the_one_before_it_ended(workspace):
    running = await gated(workspace, "seq 1 50; (exit 3)")
    await workspace.open_gate()
    after = await next_one(workspace, "echo next")
    assert (after.output.split(), after.exit) == (["opened", *map(str, range(1, 51)), "next"], 0), after.text
    [missed] = [fact for fact in after.facts if "has ended" in fact]
    assert missed.startswith(f'command {running.fact("command")} "echo begun; cat gate; seq 1 50; (exit 3)"'), missed
    assert '" has ended: exit 3, ' in missed and missed.endswith(", its output is lines 1–51"), missed
    assert (await workspace.terminal("echo again")).text == "again\n[exit 0]"


# promise: wait-6
async def test_a_long_output_is_announced_with_the_call_that_reads_it(workspace):
    await gated(workspace, "seq 1 1000; (exit 3)")
    await workspace.open_gate()
    after = await next_one(workspace, "echo next")
    assert (after.output, after.exit) == ("next", 0), after.text
    [missed] = [fact for fact in after.facts if "has ended" in fact]
    # 9 numbers of one digit, 90 of two, 900 of three and one of four, each with CR and LF, behind the gate's own word.
    assert '" has ended: exit 3, ' in missed and ", 4,901 bytes not read: get_terminal_output {" in missed, missed
    unread = await workspace.agent.call("get_terminal_output", **call_in(missed))
    assert unread.output.split() == ["opened", *map(str, range(1, 1001))], unread.text
    assert (await workspace.terminal("echo again")).text == "again\n[exit 0]"


# promise: end-9
async def test_reading_an_idle_session_says_how_its_newest_command_ended(workspace):
    session = await workspace.session()
    assert "last" not in (await session.read()).text
    for command, told in [
        ("true", "last exit 0"),
        ("echo words; (exit 7)", "last exit 7"),
        ("sh -c 'kill -TERM $$'", "last exit 143, TERM"),
        ("case x in", "last failed: "),
    ]:
        ended = await session.run(command)
        for view in ("text", "screen", "raw"):
            facts = (await session.read(view=view)).facts
            assert facts[0] == "idle" and facts[1].startswith(told), facts
            assert facts[2] == f'command {ended.fact("command")}', facts
    running = await session.run("sleep 60", timeout=0.3)
    assert running.is_running and "last" not in (await session.read()).text


async def test_a_silent_end_is_reported_as_well_and_without_a_call(workspace):
    workspace.gate()
    running = await workspace.terminal("read -r _ <gate", timeout=0.3)
    await workspace.open_gate()
    after = await next_one(workspace, "true")
    [missed] = [fact for fact in after.facts if "has ended" in fact]
    assert missed.startswith(f'command {running.fact("command")} "read -r _ <gate" has ended: exit 0'), missed
    assert "not read" not in missed, missed


async def test_a_look_that_shows_the_end_is_enough(workspace):
    await gated(workspace, "(exit 4)")
    await workspace.open_gate()
    ended = await workspace.terminal(timeout=60)
    assert ended.output.endswith("opened") and "4" in ended.text, ended.text
    assert "has ended" not in (await workspace.terminal("true")).text


# promise: wait-6
async def test_the_end_of_a_command_that_took_its_shell_with_it_is_reported_by_the_fresh_one(workspace):
    old = (await gated(workspace, "echo last words; exit 7")).session_id
    await workspace.open_gate()
    after = await next_one(workspace, "echo fresh")
    assert after.output == "opened\nlast words\nexit\nfresh" and after.session_id != old, after.text
    [missed] = [fact for fact in after.facts if "has ended" in fact]
    assert ("exit 7" in missed, missed.endswith("its output is lines 1–3")) == (True, True), missed
