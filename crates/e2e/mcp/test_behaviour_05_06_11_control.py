"""BEHAVIOUR 5, 6 and 11: a busy shell, interrupts, and the end of everything that a session started.

No process may be left that a test asked to have ended; the kernel's list of processes is the witness.
"""

import asyncio
import os
import re
import signal
import statistics
import time

import pytest
from mcp_client import IS_FULL, watched

PYTHON_SLEEPS = "python3 -c 'import signal; signal.pause()'"


# promise: send-5, signal-1
async def test_a_new_command_while_one_runs_is_refused_and_never_typed(workspace):
    running = await workspace.terminal("sleep 60", timeout=0.2)
    refused = await workspace.terminal("echo NEXT")
    assert (refused.is_error, "busy" in refused.text, "sleep 60" in refused.text) == (True, True, True)
    interrupted = await workspace.terminal("C-c")
    assert interrupted.exit == 130
    assert (await workspace.terminal("echo alive")).text == "alive\n[exit 0]"
    assert b"NEXT" not in workspace.journal(running.session_id)


async def test_a_program_that_reads_is_never_fed_a_command(workspace):
    reading = await workspace.terminal("cat > taken")
    assert (reading.is_running, reading.wants) == (True, "input")
    assert (await workspace.terminal("echo NEXT")).is_error
    assert (await workspace.terminal("mine", is_input=True)).is_running
    assert (await workspace.terminal("C-d")).exit == 0
    assert (workspace.project / "taken").read_text() == "mine\n"


# promise: send-4
async def test_input_for_a_program_that_has_ended_unseen_is_not_typed_at_the_prompt(workspace):
    gate = workspace.gate()
    session = await workspace.session()
    assert (await session.run(f"cat {gate}", wait_for_completion=False)).is_running
    await workspace.open_gate()
    await session.idle()
    too_late = f"nothing was typed: command c1 (cat {gate}) has ended, and the shell of session {session.id} is at its prompt; if you send the input again, ptyd types it there"
    refused = await session.type("touch typed", end_with_newline=True)
    assert (refused.is_error, refused.text) == (True, too_late)
    assert not (workspace.project / "typed").exists() and b"touch" not in workspace.journal(session.id)
    # The refusal has told the end.
    typed = await session.type("touch \"$PWD/typed\"", end_with_newline=True)
    assert "typed at the shell's prompt" in typed.facts, typed.text
    assert (await session.run('test -e "$PWD/typed"')).exit == 0


# promise: send-4
async def test_the_answer_says_that_input_was_typed_at_the_prompt_and_not_at_a_program(workspace):
    session = await workspace.session()
    assert (await session.run("read -r line; echo \"got $line\"")).wants == "input"
    assert (await session.type("a", end_with_newline=True)).text == "got a\n[exit 0]"
    typed = await session.type("(exit 3)", end_with_newline=True)
    assert typed.facts[-1] == "typed at the shell's prompt", typed.text
    refused = await session.run("read -r line", timeout=1)
    assert refused.wants == "input"


async def test_execute_runs_any_command_except_the_names_of_three_keys(workspace):
    session = await workspace.session()
    for run in session.run, workspace.terminal:
        for name in ("C-x", "up", "tab", "end", "Enter", "F1"):
            assert (await run(name)).output == f"bash: {name}: command not found"
    for key in ("C-c", "C-d", "C-z"):
        told = await session.run(key)
        call = f'send_input_to_terminal {{"session_id":"{session.id}","keys":["{key}"]}}'
        assert (told.is_error, told.text) == (True, f"not run: {key} is a key; {call} presses it")


# promise: signal-1
async def test_every_interrupt_reports_the_end_of_its_command_as_soon_as_any_command_is_answered(workspace):
    await workspace.terminal("true")
    told, interrupts, plain = [], [], []
    for _ in range(300 if IS_FULL else 60):
        await workspace.terminal("sleep 60", timeout=0.02)
        begun = time.monotonic()
        told.append((await workspace.terminal("C-c")).facts)
        interrupted = time.monotonic()
        assert (await workspace.terminal("true")).exit == 0
        interrupts.append(interrupted - begun)
        plain.append(time.monotonic() - interrupted)
    assert [facts for facts in told if facts != ["exit 130", "INT"]] == []
    # Each of the two is measured beside the other one, so a slow machine is slow for both.
    assert statistics.median(interrupts) <= 10 * statistics.median(plain)


# promise: signal-2
async def test_an_interrupt_does_not_cost_output_that_was_printed(workspace):
    session = await workspace.session()
    await session.run(f"bash -c \"trap 'seq 1 900; exit 5' INT; seq 1 900; {PYTHON_SLEEPS}; :\"", wait_for="^900$")
    await session.press("C-c", timeout=60)
    assert re.findall(r"(\d+)\r\n", workspace.journal(session.id).decode()) == [str(n) for n in range(1, 901)] * 2


@pytest.mark.not_confined("a sandbox numbers its processes itself", "sandbox", "container")
# promise: stop-1
async def test_terminate_ends_a_process_that_ignores_signals_and_has_no_environment(workspace):
    session = await workspace.session()
    workspace.gate()
    begun = await session.run("env -i setsid sh -c 'trap \"\" INT TERM HUP QUIT; echo $$ >gate; exec sleep 600' & cat gate")
    with watched([int(re.search("(?m)^[0-9]+$", begun.output)[0])]) as ends:
        ended = await session.terminate()
        await ends()
    assert (ended.structured["status"], ended.structured["left"], ended.structured["was_over"]) == ("terminated", 0, False)


# promise: crash-4
async def test_a_killed_holder_takes_its_session_and_its_orphans_and_nobody_else(workspace):
    session, neighbour = await workspace.session(), await workspace.session()
    await session.run("sleep 7771 & setsid sleep 7772 & (nohup sleep 7773 >/dev/null 2>&1 &) ; true")

    def orphans():
        return {p: c for p, c in workspace.processes(session.id).items() if c.startswith("sleep 777")}

    await session.until(lambda _: len(orphans()) == 3)
    left = orphans()
    waiting = asyncio.create_task(session.run("echo before; read never", timeout=60, wait_for="never printed"))
    await session.read(wait_for="before", timeout=60)
    with watched(left) as ends:
        os.kill(workspace.holder(session.id), signal.SIGKILL)
        await ends()
    ended = await waiting
    assert "session ended" in ended.facts
    assert ended.output == "before"
    refused = await session.run("true")
    assert (refused.is_error, "has ended" in refused.text) == (True, True)
    assert (await neighbour.run("echo here")).output == "here"


async def test_terminating_twice_is_not_an_error_and_the_output_stays_readable(workspace):
    session = await workspace.session()
    done = await session.run("echo kept")
    assert not (await session.terminate()).is_error
    again = await session.terminate()
    assert (again.is_error, again.structured["was_over"]) == (False, True)
    assert (await session.read(command_id=done.fact("command"))).output == "kept"
