"""`on_timeout`: a tool's call ends its command when its timeout is over, and the session's shell stays."""

import pytest

# It ignores what may be ignored.
STUBBORN = "bash -c 'trap \"\" INT TERM; echo deaf; exec sleep 600'"
BOTH = pytest.mark.parametrize("tool", ["terminal", "execute_in_terminal"])


@pytest.fixture
async def run(workspace, tool):
    """Runs a command by the tool, in one session."""
    if tool == "terminal":
        await workspace.terminal("true")
        return workspace.terminal
    return (await workspace.session()).run


@BOTH
# promise: limit-9
async def test_a_command_is_interrupted_or_killed_at_its_timeout_and_the_shell_stays(run):
    await run("X=kept")
    for on_timeout, fact in [("interrupt", "interrupted at its timeout"), ("kill", "killed at its timeout")]:
        ended = await run("echo begun; sleep 600; sleep 600", timeout=0.5, on_timeout=on_timeout)
        assert (ended.exit, fact in ended.facts) == (130, True), ended.text
    deaf = await run(STUBBORN, timeout=0.5, on_timeout="kill")
    assert (deaf.exit, deaf.is_running) == (137, False), deaf.text
    assert (await run("echo $X", timeout=60, on_timeout="kill")).output == "kept"


@BOTH
# promise: limit-9
async def test_a_command_that_continues_is_not_said_to_be_interrupted(run):
    deaf = await run(STUBBORN, timeout=0.5, on_timeout="interrupt")
    said = "C-c was sent at its timeout, and it continues" in deaf.facts
    assert (deaf.is_running, said, "interrupted" in deaf.text) == (True, True, False), deaf.text


@BOTH
# promise: limit-9
async def test_a_timeout_only_ends_the_wait_unless_it_is_said_otherwise(run):
    running = await run("sleep 600", timeout=0.2, on_timeout="continue")
    assert (running.is_running, "timeout" in running.facts) == (True, True), running.text


@BOTH
# promise: limit-9
async def test_a_command_that_is_to_be_ended_needs_a_timeout(run, tool):
    refused = await run("touch never", on_timeout="kill")
    assert (refused.is_error, refused.text) == (True, "timeout: is needed with on_timeout interrupt or kill")
    if tool == "terminal":
        refused = await run("C-c", timeout=1, on_timeout="kill")
        assert (refused.is_error, refused.text.startswith("on_timeout: is for a command")) == (True, True)
