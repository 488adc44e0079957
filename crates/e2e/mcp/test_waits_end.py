"""A wait ends when nothing that it waits for can come any more, and by nothing that the call itself typed."""

import pytest
from mcp_client import at_least, within


@pytest.mark.parametrize("asks", ["read -p 'q? ' x", "read -sp 'password: ' x", "python3 -q"])
async def test_a_pattern_does_not_outwait_a_program_that_asks_something_else(workspace, asks):
    with at_least(0.9), within(0.4):
        asked = await workspace.terminal(asks, wait_for="never", timeout=30)
    assert (asked.is_running, asked.wants) == (True, "a password" if "-s" in asks else "input"), asked.text
    session = workspace.agent.at(asked.session_id)
    with within(0.4):
        again = await session.read(wait_for="never", timeout=30)
    assert any("wants" in fact or "waits for" in fact for fact in again.facts), again.text


async def test_a_dialogue_ends_when_the_program_asks_something_else(workspace):
    asked = await workspace.terminal("read -p 'one? ' x; read -p 'two? ' y; echo $x$y")
    session = workspace.agent.at(asked.session_id)
    with within(0.4):
        steps = [{"input": "a\r"}, {"wait_for": "three", "input": "b\r"}]
        told = await workspace.agent.call("send_input_to_terminal", session_id=session.id, steps=steps)
    assert ("did not match" in told.facts[0], told.wants, "two?" in told.output) == (True, "input", True), told.text
    with within(0.4):
        told = await workspace.agent.call(
            "send_input_to_terminal", session_id=session.id, steps=[{"wait_for": "three", "input": "b\r"}]
        )
    assert ("did not match" in told.facts[0], told.wants) == (True, "input"), told.text
    assert (await workspace.terminal("b", is_input=True)).last_line == "ab"


RAW = """
import os, sys, time, tty
tty.setraw(0)
print("press h for help\\r")
time.sleep(0)
if not os.fork():
    time.sleep(2)
    print("ready\\r", flush=True)
    os._exit(0)
os.read(0, 1)
"""


async def test_a_program_that_always_reads_keys_does_not_end_the_wait_for_a_pattern(workspace):
    (workspace.project / "raw.py").write_text(RAW)
    answer = await workspace.terminal("python3 raw.py; stty sane", wait_for="ready", timeout=20)
    assert answer.fact("matched") == '"ready"', answer.text
    await workspace.terminal("q", is_input=True)
