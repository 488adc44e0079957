"""Other processes at the shell's terminal: some take its keys, and some set the terminal's modes."""

import asyncio
import os
import re
import signal

import pytest
from mcp_client import CALL_SECONDS, through_pipe, watched


async def first_failed(session):
    """The first command whose keys another process has taken, behind those that the shell was quicker to read."""
    async with asyncio.timeout(CALL_SECONDS):
        while (answer := await session.run("true")).exit == 0:
            pass
    return answer


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash"])
# promise: end-2
async def test_a_command_whose_keys_other_processes_take_fails_and_names_them(workspace, shell):
    session = await workspace.session(shell=shell)
    tty = "(tty)" if shell == "fish" else "$(tty)"
    assert (await session.run("; ".join([f"setsid -f cat <{tty} >/dev/null"] * 4))).exit == 0
    failed = await first_failed(session)
    [fact] = [fact for fact in failed.facts if fact.startswith("failed: ")]
    assert fact.startswith("failed: it is unknown whether it ran: other processes read the terminal"), failed.text
    named = [int(pid) for pid in re.findall(r"cat \(pid (\d+)\)", fact)]
    rivals = [pid for pid, command in workspace.processes().items() if command == "cat"]
    # One that takes keys at the moment of the sample does not wait for them.
    assert 1 <= len(named) <= 3 and set(named) <= set(rivals), failed.text
    with watched(rivals) as ends:
        for pid in rivals:
            os.kill(pid, signal.SIGKILL)
        await ends()
    # As the error says. The hooks are there as before.
    assert "send C-c" in fact
    await session.press("C-c")
    after = await session.run("sh -c 'exit 7'")
    assert (after.exit, after.fact("boundary")) == (7, None), after.text


async def set_sane(workspace, session, typed=""):
    """Has another process set the terminal to read lines while the line editor waits for a key."""
    workspace.gate()
    done = workspace.gate("done")
    other = "trap '' TTOU; read x <gate; stty sane; echo set >done"
    assert (await session.run(f'sh -c "{other}" &')).exit == 0
    # The editor has the terminal once it has painted its prompt behind the end of that command.
    painted = re.compile(rb"7337;D;.*[$#%>] (\x1b\[K|$)", re.DOTALL)
    await session.until(lambda _: painted.search(workspace.journal(session.id).rpartition(b"7337;C;")[2]))
    if typed:
        await session.type(typed)
    await workspace.open_gate()
    assert await through_pipe(done.read_text) == "set\n"
    for name in "gate", "done":
        (workspace.project / name).unlink()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_a_command_runs_although_another_process_has_set_the_terminals_modes(workspace, shell):
    session = await workspace.session(shell=shell)
    for number in "12":
        await set_sane(workspace, session)
        answer = await session.run(f"echo x{number}", timeout=60)
        assert (answer.exit, answer.last_line) == (0, f"x{number}"), answer.text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_an_unfinished_line_is_not_run_to_wake_an_editor(workspace, shell):
    session = await workspace.session(shell=shell)
    await set_sane(workspace, session, "touch ran")
    answer = await session.run("true", timeout=0.5)
    if answer.is_error:
        # zsh alone sets its modes when a job ends.
        assert "if another process has changed the terminal's modes, send C-c and then Enter" in answer.text, answer.text
        await session.press("C-c")
        await session.press("Enter")
    assert (await session.run("true")).exit == 0
    assert not (workspace.project / "ran").exists()


@pytest.mark.parametrize("mode", ["raw", "sane"])
@pytest.mark.parametrize("shell", ["bash", "dash"])
# promise: end-2
async def test_no_command_that_a_rival_has_taken_is_reported_as_completed(workspace, shell, mode):
    session = await workspace.session(shell=shell)
    tty = "(tty)" if shell == "fish" else "$(tty)"
    await session.run(f"stty {mode} -echo")
    # It takes one line, and ends.
    await session.run(f"setsid sh -c 'head -n1 >/dev/null' <{tty} &")
    ran = workspace.project / "ran"
    ran.touch()
    for number in range(4):
        answer = await session.run(f"echo r{number} >>{ran}", timeout=4)
        has_ended = any(re.match(r"exit |ended", fact) for fact in answer.facts)
        assert not has_ended or f"r{number}\n" in ran.read_text(), (number, answer.text, ran.read_text())
        if "C-c" in answer.text:
            await session.press("C-c")
