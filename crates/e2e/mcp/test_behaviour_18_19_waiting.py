"""BEHAVIOUR 18 and 19: waits that end when they should, clients that go, calls that come twice, a server that dies.

Nothing is lost by a wait that is over, a client that is killed or a server that is: whoever asks again gets the rest.
"""

import asyncio
import os
import re
import signal
import statistics
import time

import pytest
from mcp_client import CALL_SECONDS, IS_FULL, at_least, watched

SERVER = """
import select, socket, sys, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print("listening on", s.getsockname()[1], flush=True)
print("press h for help ", end="", flush=True)
while True:
    ready, _, _ = select.select([s, sys.stdin], [], [])
    if sys.stdin in ready: print("key", repr(sys.stdin.readline()), time.time(), flush=True)
    else: s.accept()[0].close()
"""


@pytest.mark.parametrize("seconds, timeout", [(45, 48)] if IS_FULL else [(6, 20)])
async def test_a_long_silent_command_is_one_call_with_progress_messages(workspace, seconds, timeout):
    told = []

    async def hear(progress, total, message):
        told.append((progress, message))

    with at_least(seconds):
        answer = await workspace.agent.call("terminal", command=f"sleep {seconds}; echo done", timeout=timeout, on_progress=hear)
    assert (answer.output, answer.exit) == ("done", 0)
    assert told[0] == (0, "started")
    times = [progress for progress, _ in told]
    assert times == sorted(times) and len(times) >= 1 + seconds // 10


# promise: wait-2
async def test_a_pattern_ends_the_wait_when_its_line_comes_and_a_server_that_reads_keys_is_running(workspace):
    (workspace.project / "server.py").write_text(SERVER)
    started = await workspace.terminal("python3 server.py", wait_for=r"listening on \d+\n", timeout=60)
    assert (started.is_running, started.is_timed_out) == (True, False), started.text
    running = await workspace.terminal("", timeout=0.7)
    assert (running.is_running, running.wants, "timeout" in running.facts) == (True, None, True)
    late, plain = [], [await workspace.plain_call()]
    for _ in range(9):
        keyed = await workspace.terminal("h", is_input=True, wait_for=r"key 'h\\n' [\d.]+\n", timeout=60)
        late.append(time.time() - float(keyed.output.split()[-1]))
        assert keyed.is_running
        plain.append(await workspace.plain_call(1))
    # Each of the two is measured beside the other one, so a slow machine is slow for both.
    assert statistics.median(late) <= 5 * statistics.median(plain)
    assert (await workspace.terminal("C-c")).exit == 130


async def test_a_program_reads_typed_ahead_input_before_it_counts_as_waiting(workspace):
    for _ in range(5):
        await workspace.terminal("sh -c 'sleep 0.3; read a; echo got:$a'", timeout=0.1)
        answer = await workspace.terminal("early", is_input=True, timeout=60)
        assert (answer.last_line, answer.exit) == ("got:early", 0)


@pytest.mark.parametrize("ask", ["read -n 1 -t 1 -s a", "read -t 1 -s -d R a", "read -n 1 -t 1 -p 'any key? ' a", "read -e -t 1 a"])
async def test_a_shell_that_asks_with_a_time_limit_is_never_typed_at_by_us(workspace, ask):
    # Longer than the moment after which the shell would be asked for its hooks.
    asked = await workspace.terminal(f"{ask}; printf '<%q>\\n' $? \"$a\"", wait_for="<.*>\\n<.*>", timeout=60)
    assert asked.output.endswith("<142>\n<''>"), asked.text


# promise: output-6
async def test_a_client_that_is_killed_loses_nothing_and_another_reads_on_from_its_offset(workspace):
    # Half-way the program waits for a tick, so that the client surely dies in the middle.
    async with workspace.another_agent("--detach", "keep") as watcher:
        mine = await watcher.session()
        workspace.gate()
        await mine.run("seq -f 'L%g' 1 30000; cat gate; seq -f 'L%g' 30001 60000", wait_for="L20000")
        seen = await mine.read(since="o:0")
        with watched([watcher.shim]) as ends:
            os.kill(watcher.shim, signal.SIGKILL)
            await ends()
    await workspace.open_gate()
    session = workspace.agent.at(mine.id)
    await session.until(lambda summary: summary["foreground"] == "idle")
    text = seen.text[: seen.text.rindex("[")] + await session.pages(seen.next)
    assert re.findall(r"(?m)^L(\d+)$", text) == [str(n) for n in range(1, 60_001)]


# promise: once-1, once-2
async def test_the_same_idempotency_key_runs_once_and_another_text_with_it_is_refused(workspace):
    session = await workspace.session()
    first = await session.run("echo x >> runs; echo ran", idempotency_key="k1")
    again = await session.run("echo x >> runs; echo ran", idempotency_key="k1")
    assert (again.exit, again.output, again.fact("command")) == (0, "ran", first.fact("command"))
    assert (workspace.project / "runs").read_text() == "x\n"
    other = await session.run("echo y >> runs", idempotency_key="k1")
    assert (other.is_error, "idempotency key" in other.text) == (True, True)
    assert (await session.run("cat runs", idempotency_key="k2")).output == "x"


# promise: send-5
async def test_of_two_clients_commands_at_once_one_is_refused(workspace):
    session = await workspace.session()
    async with workspace.another_agent() as other:
        both = ((1, session), (2, other.at(session.id)))
        answers = await asyncio.gather(*(of.run(f"sleep 0.5; echo {n} >> ran; echo {n}") for n, of in both))
    [refused] = [a for a in answers if a.is_error]
    [done] = [a for a in answers if not a.is_error]
    assert "busy" in refused.text
    assert (done.exit, (workspace.project / "ran").read_text().strip()) == (0, done.output)


@pytest.mark.not_confined("a sandbox numbers its processes itself", "sandbox", "container")
async def test_two_agents_have_two_shells(workspace):
    async with workspace.another_agent() as other:
        assert (await workspace.terminal("export MINE=1; echo $$")).output != (await other.terminal("echo $$")).output
        assert (await other.terminal("echo \"<$MINE>\"")).output == "<>"


# promise: crash-1
async def test_a_killed_server_loses_no_call_no_shell_and_no_byte(workspace):
    workspace.gate()
    first = await workspace.terminal("export STATE=kept; echo $$")
    session = first.session_id
    for life in range(10 if IS_FULL else 2):
        waiting = asyncio.create_task(workspace.terminal(f"echo begun {life}; cat gate; echo $STATE; (exit 7)", timeout=60))
        async with asyncio.timeout(CALL_SECONDS):
            while f"begun {life}\r\n".encode() not in workspace.journal(session):
                await workspace.agent.call("list_terminal_sessions")
        old = workspace.server()
        await workspace.kill_server()
        await workspace.open_gate()
        answer = await waiting
        assert (answer.output, answer.exit) == (f"begun {life}\nopened\nkept", 7)
        assert workspace.server() not in (None, old)
    assert (await workspace.terminal("echo $$ $STATE")).output == f"{first.output} kept"


# promise: crash-1
async def test_a_killed_server_ends_no_session_of_a_client_that_is_still_there(workspace):
    async with workspace.another_agent("--detach", "0") as agent:
        await agent.terminal("state=kept")
        for _ in range(30 if IS_FULL else 3):
            await workspace.kill_server()
            assert (await agent.terminal("echo $state")).output == "kept"


@pytest.mark.parametrize(
    "shell, enter, inside, command",
    [
        ("bash", None, False, "echo ran >>ran; cat gate"),
        ("dash", None, False, "echo ran >>ran; cat gate"),
        ("bash", "env PS1='in$ ' dash", True, "echo ran >>ran; cat gate"),
        ("bash", "exec bash --norc", False, "echo ran >>ran; cat gate"),
        ("python3", None, False, "import os; _ = os.system('echo ran >>ran; cat gate')"),
        ("sqlite3", None, False, ".shell echo ran >>ran; cat gate"),
    ],
)
# promise: once-1
async def test_a_call_that_is_sent_again_to_the_next_server_runs_its_command_once(workspace, shell, enter, inside, command):
    session = await workspace.session(shell=shell)
    if enter:
        await session.run(enter, timeout=60)
    workspace.gate()
    call = asyncio.create_task(session.run(command, inside=inside, timeout=60))
    ran = workspace.project / "ran"
    async with asyncio.timeout(CALL_SECONDS):
        while not ran.exists():
            await workspace.agent.call("list_terminal_sessions")
    await workspace.kill_server()
    await workspace.open_gate()
    answer = await call
    assert not answer.is_error, answer
    assert not answer.is_running, answer
    assert "opened" in answer.output
    assert ran.read_text() == "ran\n"
