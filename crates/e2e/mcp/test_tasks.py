"""Tasks (SEP-2663): a call that still waits after a grace is answered with a task, over stdio and over HTTP.

The grace is a setting, and programs go on when the test opens their gate.
"""

import asyncio
import os
import re
import signal
import statistics
import time

import pytest

from mcp_client import CALL_SECONDS, at_least, stopped, watched
from raw_client import DOORS, GRACE, TASKS, code, gated, over_http, over_stdio, text

pytestmark = pytest.mark.environment(PTYD_TASK_GRACE=GRACE)

# Hosts wait so long to be told what a server is.
IN_TIME = 0.5


@DOORS
# promise: mcp-7
async def test_a_long_call_is_a_task_that_returns_the_ordinary_answer(served, client):
    session, task = await gated(served, client)
    assert task == f"{session}.c2"
    first = await client.get(task)
    assert (first["status"], first["resultType"], "result" in first) == ("working", "complete", False)
    await served.open_gate()
    done = await client.over(task)
    assert (done["status"], done["taskId"], done["createdAt"]) == ("completed", task, first["createdAt"])
    output, _, facts = text(done).rpartition("\n")
    assert output == "opened"
    assert re.fullmatch(
        rf'\[exit 3( · [\d.]+s)? · session {session} · command c2 "\( read line < gate; echo \$line; exit 3 \)"\]', facts
    ), facts
    assert done["result"]["isError"] is False
    # The server does not tell a task's output once more.
    look = await client.call("get_terminal_output", session_id=session, since="last")
    assert "opened" not in text(look)


@DOORS
# promise: limit-9
async def test_a_task_has_the_end_of_the_command_that_is_ended_at_its_timeout(served, client):
    session = await client.session()
    run = {"session_id": session, "command": "sleep 600; sleep 600", "timeout": 1.5}
    for on_timeout in ("interrupt", "kill"):
        done = await client.over(await client.start("execute_in_terminal", on_timeout=on_timeout, **run))
        assert text(done).rpartition("\n")[2].startswith("[exit 130 · INT · "), text(done)
    assert text(await client.call("execute_in_terminal", session_id=session, command="echo alive")).startswith("alive")


@DOORS
# promise: mcp-7
async def test_a_client_without_tasks_gets_the_answers_of_today(served, client):
    session = await client.session()
    run = {"session_id": session, "command": "sleep 1; echo slept"}
    answer = await client.call("execute_in_terminal", capabilities={}, **run)
    assert (answer["resultType"], text(answer).splitlines()[0]) == ("complete", "slept")
    # The declaration of an earlier request does not count, nor does one of an earlier revision.
    old = await client.ask("tools/call", version="2025-11-25", name="execute_in_terminal", arguments=run)
    assert "taskId" not in old["result"] and text(old["result"]).startswith("slept"), old
    old = await client.ask("tasks/get", version="2025-11-25", taskId=f"{session}.c1")
    assert code(old) == -32601


@DOORS
# promise: mcp-7
async def test_a_call_that_ends_in_time_is_not_a_task(served, door):
    # The time has to be enough for a slow machine.
    served.env |= {"PTYD_TASK_GRACE": "30"}
    served.serve_again()
    async with over_stdio(served, "600") if door == "stdio" else over_http(served) as client:
        session = await client.session()
        for arguments in [
            {"command": "true"},
            {"command": "sleep 100", "timeout": 0.1},
            {"command": "read x", "timeout": 100},
            {"command": "sleep 50", "wait_for_completion": False},
        ]:
            answer = await client.call("execute_in_terminal", session_id=session, **arguments)
            assert answer["resultType"] == "complete", answer
            await client.call("send_input_to_terminal", session_id=session, keys=["C-c"])


@DOORS
# promise: mcp-7
async def test_a_repeated_call_gets_the_task_of_the_first_one(served, client):
    session = await client.session()
    run = {"session_id": session, "command": "cat", "wait_for": "never", "timeout": 60, "idempotency_key": "once"}
    first = await client.start("execute_in_terminal", **run)
    assert await client.start("execute_in_terminal", **run) == first == f"{session}.c1"


@DOORS
# promise: mcp-7
async def test_an_ended_task_returns_the_same_bytes_a_hundred_times(served, client):
    session, task = await gated(served, client, "read line < gate; seq 9000; cat")
    await served.open_gate()
    done = await client.over(task)
    assert "wants input" in text(done) and "bytes" in text(done)
    # Later input and commands change nothing.
    await client.call("send_input_to_terminal", session_id=session, input="more\n")
    await client.call("send_input_to_terminal", session_id=session, keys=["C-d"])
    await client.call("execute_in_terminal", session_id=session, command="cd /; stty cols 40")
    again = [await client.get(task) for _ in range(100)]
    assert [state for state in again if state != done] == []


@DOORS
# promise: mcp-7
async def test_a_task_survives_the_death_of_the_server(served, client, door):
    async def next_server():
        # Over stdio `ptyd mcp` starts it.
        await served.kill_server() if door == "stdio" else served.serve_again()

    session, task = await gated(served, client)
    await next_server()
    state = await client.get(task)
    assert state["status"] == "working", state
    await served.open_gate()
    done = await client.over(task)
    assert (done["status"], text(done).splitlines()[0]) == ("completed", "opened")
    await next_server()
    assert await client.get(task) == done


@DOORS
# promise: mcp-7
async def test_an_end_while_no_server_ran_is_reported(served, client):
    session, task = await gated(served, client, "read line < gate; kill -9 $PPID")
    await served.open_gate()
    done = await client.over(task)
    assert (done["status"], "session ended" in text(done)) == ("completed", True)


COUNTS = "trap 'n=$((n+1)); echo caught $n' INT; n=0; echo ready; while [ ! -e stop ]; do sleep 0.05; done; exit $n"


@DOORS
# promise: mcp-8
async def test_two_cancellations_interrupt_once(served, client):
    session = await client.session()
    await client.call("execute_in_terminal", session_id=session, command=f"cd {served.project}")
    command = f"bash -c '{COUNTS.replace(chr(39), chr(34))}'"
    task = await client.start("execute_in_terminal", session_id=session, command=command)
    await asyncio.gather(client.cancel(task), client.cancel(task))
    await client.call("get_terminal_output", session_id=session, wait_for="caught", timeout=0.4)
    await client.cancel(task)
    (served.project / "stop").touch()
    ended = await client.over(task)
    assert (ended["status"], "result" in ended) == ("cancelled", False)
    assert ended["statusMessage"].startswith("exit 1 · "), ended
    await client.cancel(task)
    assert await client.get(task) == ended


@DOORS
@pytest.mark.time_scale(0.1)
# promise: mcp-8
async def test_a_command_that_continues_after_a_cancellation_is_completed(served, client):
    session = await client.session()
    command = "bash -c 'trap \"\" INT; while :; do read -t 0.1 < <(:); done'"
    task = await client.start("execute_in_terminal", session_id=session, command=command)
    await client.cancel(task)
    done = await client.over(task)
    assert done["status"] == "completed"
    assert re.search(r"\[still running · .* · C-c was sent", text(done)), text(done)


@DOORS
# promise: mcp-7
async def test_unknown_tasks_and_undeclared_requests_are_refused(served, client):
    session, task = await gated(served, client)
    for method in ("tasks/get", "tasks/cancel", "tasks/update"):
        more = {"inputResponses": {}} if method == "tasks/update" else {}
        for made_up in (f"{session}.c3", f"{session}.c2.2", f"{session}", "s0-aaaaaaaaaa.c1", "../../etc", "x"):
            assert code(await client.ask(method, taskId=made_up, **more)) == -32602, (method, made_up)
        undeclared = await client.ask(method, capabilities={}, taskId=task, **more)
        assert code(undeclared) == -32021
        assert undeclared["error"]["data"]["requiredCapabilities"] == TASKS
    for method in ("tasks/list", "tasks/result"):
        assert code(await client.ask(method, taskId=task)) == -32601
    assert (await client.ask("tasks/update", taskId=task, inputResponses={"p1": {}}))["result"] == {"resultType": "complete"}
    assert (await client.get(task))["status"] == "working"
    await served.open_gate()
    await client.over(task)


# promise: mcp-7
async def test_a_task_of_another_token_is_unknown(served):
    other = served.ptyd("token", "new", "other", "--unconfined")
    async with over_http(served) as client, over_http(served, other) as stranger:
        _, task = await gated(served, client)
        assert code(await stranger.ask("tasks/get", taskId=task)) == -32602
        assert code(await stranger.ask("tasks/cancel", taskId=task)) == -32602
        assert (await client.get(task))["status"] == "working"
        await served.open_gate()
        assert (await client.over(task))["status"] == "completed"


@DOORS
# promise: mcp-7
async def test_reads_during_a_task_and_its_end_return_each_byte_once(served, client):
    session, task = await gated(served, client, "echo before; read line < gate; echo $line")
    look = await client.call("get_terminal_output", session_id=session, since="last", timeout=60)
    assert (look["resultType"], text(look).splitlines()[-2:-1]) == ("complete", ["before"])
    assert "its end will be reported" in text(look)
    await served.open_gate()
    done = text(await client.over(task))
    assert ("before" in done.splitlines(), done.splitlines()[0]) == (False, "opened")
    assert re.search(r"\d+ bytes reported before", done)


async def interrupt(client, session):
    """Interrupts the command of a session, and waits for its end."""
    await client.call("send_input_to_terminal", session_id=session, keys=["C-c"])
    # A client without tasks is answered with the end itself, however long that takes.
    ended = await client.call("terminal", capabilities={}, session_id=session, command="", timeout=60)
    assert "still running" not in text(ended)


@DOORS
# promise: mcp-8
async def test_a_pattern_a_port_and_silence_complete_a_task(served, client):
    session, task = await gated(served, client, "read line < gate; echo now $line; sleep 99")
    again = {"session_id": session, "command": ""}
    await served.open_gate()
    assert "still running" in text(await client.call("terminal", **again))
    await client.cancel(task)
    assert (await client.over(task))["status"] == "cancelled"
    waits = {"session_id": session, "timeout": 60}
    # One program: while bash starts a program, it loses one of a thousand interrupts itself.
    reads = "sh -c 'read line < gate; echo $line; exec sleep 99'"
    task = await client.start("execute_in_terminal", command=reads, wait_for="opened", **waits)
    await served.open_gate()
    done = text(await client.over(task))
    assert 'matched "opened"' in done and "still running" in done
    await interrupt(client, session)
    listens = "import socket; open('gate').read(); s = socket.create_server(('127.0.0.1', 0)); print('up'); s.accept()"
    task = await client.start("execute_in_terminal", session_id=session, command=f'python3 -uc "{listens}"')
    await served.open_gate()
    assert re.search(r'listens on \d+', text(await client.over(task)))
    await interrupt(client, session)
    task = await client.start("execute_in_terminal", session_id=session, command="sleep 99", until=["quiet:1500"], timeout=60)
    assert "quiet" in text(await client.over(task))
    await interrupt(client, session)
    task = await client.start("execute_in_terminal", session_id=session, command="sleep 99", timeout=1.5)
    assert "timeout" in text(await client.over(task))


# promise: mcp-7
async def test_the_terminal_tool_has_tasks_and_reports_an_end_once(machine):
    async with over_stdio(machine) as client:
        machine.gate()
        task = await client.start("terminal", command="echo begun; read line < gate; echo $line")
        busy = await client.call("terminal", command="echo no")
        assert "busy" in text(busy)
        await machine.open_gate()
        done = text(await client.over(task))
        assert done.splitlines()[:2] == ["begun", "opened"] and f"session {task.split('.')[0]}" in done
        assert "has ended" not in text(await client.call("terminal", capabilities={}, command="true"))
        # Nobody asks for the end of what was cancelled, so the next answer has it.
        task = await client.start("terminal", command="sleep 99")
        await client.cancel(task)
        await client.over(task)
        assert 'command c3 "sleep 99" has ended: exit 130' in text(await client.call("terminal", capabilities={}, command="true"))
    await machine.detached()


@pytest.mark.time_scale(0.1)
# promise: mcp-7
async def test_a_session_with_an_open_task_outlives_its_client_and_no_longer(machine):
    machine.gate()
    async with over_stdio(machine) as client:
        task = await client.start("terminal", command="read line < gate; echo $line")
    await machine.kill_server()
    async with over_stdio(machine) as client:
        assert (await client.get(task))["status"] == "working"
        with watched([machine.holder(task.split(".")[0])]) as ends:
            await machine.open_gate()
            done = await client.over(task)
            assert text(done).splitlines()[0] == "opened"
            await ends()
        assert await client.get(task) == done


async def test_tasks_are_offered_from_the_revision_on_that_has_them(machine):
    async with over_stdio(machine) as client:
        offered = (await client.ask("server/discover"))["result"]["capabilities"]
        assert offered["extensions"] == {"io.modelcontextprotocol/tasks": {}}
    async with machine.another_agent("--detach", "0", mode="legacy") as agent:
        assert not getattr(agent.client.server_capabilities, "extensions", None)


@DOORS
# promise: mcp-7
async def test_a_task_of_a_removed_session_has_a_definite_state(served, client, door):
    session = await client.session()
    await client.call("execute_in_terminal", session_id=session, command=f"cd {served.project}")
    command = f"bash -c '{COUNTS.replace(chr(39), chr(34))}'"
    cancelled = await client.start("execute_in_terminal", session_id=session, command=command)
    await client.cancel(cancelled)
    (served.project / "stop").touch()
    assert (await client.over(cancelled))["status"] == "cancelled"
    secret = "hunter2-of-a-command"
    done = await client.start("execute_in_terminal", session_id=session, command=f"cat # {secret}", wait_for="never", timeout=0.8)
    assert (await client.over(done))["status"] == "completed"
    await client.call("send_input_to_terminal", session_id=session, keys=["C-d"])
    open_ = await client.start("execute_in_terminal", session_id=session, command="cat", wait_for="never", timeout=60)
    await served.purge(session)
    # The audit log keeps the request; the purge leaves nothing else.
    audit_log = str((served.state / "audit.jsonl").relative_to(served.root))
    assert served.files_holding(secret.encode()) == [audit_log]

    async def states():
        assert (await client.get(cancelled))["status"] == "cancelled"
        for task in (done, open_):
            state = await client.get(task)
            command = task.split(".")[1]
            why = f"session {session} was removed, and with it the output and the end of command {command}"
            assert (state["status"], state["result"]["isError"], text(state)) == ("completed", True, why), state
            assert await client.get(task) == state
            # A task that is over is not cancelled again, and asks for nothing.
            await client.cancel(task)
            assert (await client.ask("tasks/update", taskId=task, inputResponses={}))["result"] == {"resultType": "complete"}
            assert await client.get(task) == state
        for made_up in (f"{session}.c1", f"{session}.c2.2", "s0-aaaaaaaaaa.c1"):
            for method in ("tasks/get", "tasks/cancel"):
                assert code(await client.ask(method, taskId=made_up)) == -32602

    await states()
    await served.kill_server() if door == "stdio" else served.serve_again()
    await states()


# promise: mcp-7
async def test_a_task_of_another_token_is_unknown_also_when_its_session_was_removed(served):
    other = served.ptyd("token", "new", "other", "--unconfined")
    async with over_http(served) as client, over_http(served, other) as stranger:
        session, task = await gated(served, client)
        await served.purge(session)
        assert (await client.get(task))["status"] == "completed"
        unknown = await stranger.ask("tasks/get", taskId="s0-aaaaaaaaaa.c1")
        for method in ("tasks/get", "tasks/cancel"):
            refused = await stranger.ask(method, taskId=task)
            assert (refused["error"], code(refused)) == (unknown["error"], -32602)


@DOORS
# promise: mcp-8
async def test_a_task_whose_holder_does_not_answer_says_so_and_ends_by_its_timeout(served, client, door):
    session = await client.session()
    holder = served.holder(session)
    run = {"session_id": session, "command": "echo begun; cat", "wait_for": "never"}
    task = await client.start("execute_in_terminal", timeout=8, **run)
    with stopped(holder):
        await served.kill_server() if door == "stdio" else served.serve_again()
        async with asyncio.timeout(CALL_SECONDS):
            while "does not answer" not in (state := await client.get(task))["statusMessage"]:
                assert state["status"] == "working", state
        assert f"process {holder}" in state["statusMessage"]
        done = await client.over(task)
        assert (done["status"], text(done).splitlines()[0]) == ("completed", "begun")
        assert re.search(r"\[still running · .*timeout.* · trouble: its holder \(process \d+\) does not answer", text(done)), text(done)
    assert await client.get(task) == done
    assert "still running" in text(await client.call("get_terminal_output", session_id=session))


@pytest.mark.time_scale(0.1)
# promise: mcp-8
async def test_the_cancellation_of_a_task_whose_holder_does_not_answer_ends_it(served):
    async with over_http(served) as client:
        session = await client.session()
        task = await client.start("execute_in_terminal", session_id=session, command="cat", wait_for="never", timeout=3000)
        with stopped(served.holder(session)):
            served.serve_again()
            await client.cancel(task)
            done = await client.over(task)
            assert (done["status"], "C-c was sent" in text(done)) == ("completed", False)
            assert "does not answer" in text(done)


@DOORS
# promise: mcp-7
async def test_a_wait_while_nothing_runs_has_the_same_timeout_with_tasks_as_without(served, client):
    served.gate()
    session = await client.session()
    # A job in the background prints; no command runs whose end a task could tell.
    job = f"(read line < {served.project}/gate; echo the $line) &"
    await client.call("execute_in_terminal", session_id=session, command=job)
    wait = {"session_id": session, "since": "last", "wait_for": "the opened"}
    with at_least(2):
        short = await client.call("get_terminal_output", timeout=2, **wait)
    assert (short["resultType"], "timeout" in text(short)) == ("complete", True)
    waiting = asyncio.create_task(client.call("get_terminal_output", **wait))
    # Longer than the grace, which is not a timeout.
    done, _ = await asyncio.wait([waiting], timeout=4 * float(GRACE))
    assert not done, text(waiting.result())
    await served.open_gate()
    answer = await waiting
    assert (answer["resultType"], 'matched "the opened"' in text(answer)) == ("complete", True), text(answer)


# promise: mcp-1
async def test_a_host_discovers_the_server_within_half_a_second_also_while_it_does_not_answer(served):
    async def discovered(client):
        begun = time.monotonic()
        answer = (await client.ask("server/discover"))["result"]
        return answer, time.monotonic() - begun

    async with over_stdio(served) as before:
        real, _ = await discovered(before)
        assert [*real["capabilities"]["extensions"]] == ["io.modelcontextprotocol/tasks"]
        # A slow machine is slow for the server's own answers, too.
        patience = IN_TIME + 100 * statistics.median([(await discovered(before))[1] for _ in range(9)])
        with stopped(served.process.pid):
            # One that is connected, and one that comes while nobody answers.
            told, took = await discovered(before)
            assert (told, took < patience) == (real, True)
            async with over_stdio(served) as after:
                told, took = await discovered(after)
                assert (told, took < patience) == (real, True)
                os.kill(served.process.pid, signal.SIGCONT)
                # The server's own answer is not another one, and both go on.
                for client in (before, after):
                    assert (await client.ask("tools/list"))["result"]["tools"]
    assert (before.unasked, after.unasked) == ([], [])
