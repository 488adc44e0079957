"""An answer has shown something once it is delivered: a call that is cancelled, or whose client dies, loses nothing.

The clients here speak raw JSON-RPC, because the SDK does not tell which answers came after their cancellation.
"""

import asyncio
import itertools
import json
import os
import random
import re
import signal
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest

from mcp_client import BOTH, CALL_SECONDS, IS_FULL, Lines, hello, stopped, watched

CANCELS = 200
# Without its turn, about one in six would be made twice.
CREATES = 24
KILLS = 1_000 if IS_FULL else 8
VERSION = "2025-06-18"


class Connection(Lines):
    """A client that may give a call up at any moment, over stdio."""

    ids = itertools.count(1)

    async def begin(self, tool, **arguments):
        """Sends a call and returns its id."""
        id = next(self.ids)
        await self.send({"id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
        return id

    async def cancel(self, id):
        """Gives a call up."""
        await self.send({"method": "notifications/cancelled", "params": {"requestId": id}})

    async def answer(self, *ids):
        """The text of the first answer to one of these calls."""
        async with asyncio.timeout(CALL_SECONDS):
            while (message := json.loads(await self.process.stdout.readline())).get("id") not in ids:
                pass
        return message["result"]["content"][0]["text"]

    async def call(self, tool, **arguments):
        """The text of an answer."""
        return await self.answer(await self.begin(tool, **arguments))


@asynccontextmanager
async def over_stdio(machine, **env):
    async with machine.lines(**env) as lines:
        await lines.initialize(VERSION)
        yield Connection(lines.process)


async def a_moment(longest):
    """Lets a random part of this time pass: the moments at which a client gives up are not events."""
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=random.uniform(0, longest))


def numbers(text):
    """The numbered lines in an answer."""
    return [int(number) for number in re.findall(r"line (\d+)", text)]


# It prints a line every few milliseconds until it is told to stop.
PRINTS = "echo begun; n=0; until [ -e stop ]; do n=$((n+1)); echo line $n; read -t 0.003 -r _ <>never; done; echo printed $n"
REST_OF_IT = {"since": "last", "wait_for": "printed", "timeout": 60}


def is_whole(seen, rest):
    """Whether all lines were shown, each once or several times."""
    return sorted(set(seen)) == list(range(1, max(seen) + 1)) and f"printed {max(seen)}" in rest


@pytest.fixture
async def printing(workspace):
    """A client, a session and the command in it that prints."""
    os.mkfifo(workspace.project / "never")
    session = await workspace.session(shell="bash", cwd=str(workspace.project))
    async with over_stdio(workspace) as client:
        begun = await client.call("execute_in_terminal", session_id=session.id, command=PRINTS, wait_for="begun")
        yield client, session, numbers(begun)


async def each_once(workspace, printing):
    """Stops the command, and asserts that the client was shown each line once."""
    client, session, seen = printing
    (workspace.project / "stop").touch()
    rest = await client.call("get_terminal_output", session_id=session.id, **REST_OF_IT)
    seen += numbers(rest)
    assert seen == sorted(set(seen)) and is_whole(seen, rest), (seen, rest)


@pytest.mark.parametrize(
    "tool, arguments",
    [("get_terminal_output", {"since": "last"}), ("terminal", {"command": ""}), ("send_input_to_terminal", {"input": "x"})],
)
# promise: wait-6
async def test_no_line_is_lost_or_repeated_by_readings_that_are_cancelled(workspace, printing, tool, arguments):
    client, session, seen = printing
    arguments = arguments | {"session_id": session.id, "timeout": 0.01}
    for _ in range(CANCELS):
        id = await client.begin(tool, **arguments)
        await a_moment(0.03)
        # Its answer may have been written already. Its client passes over it.
        await client.cancel(id)
        if random.random() < 0.5:
            seen += numbers(await client.call(tool, **arguments))
    await each_once(workspace, printing)


@pytest.mark.parametrize(
    "tool, arguments", [("get_terminal_output", {"since": "last", "wait_for": "never printed"}), ("terminal", {"command": ""})]
)
# promise: crash-1
async def test_reads_lose_and_repeat_no_line_when_servers_are_killed(workspace, printing, tool, arguments):
    client, session, seen = printing
    arguments = arguments | {"session_id": session.id, "timeout": 0.02}
    for _ in range(KILLS):
        seen += numbers(await client.call(tool, **arguments))
        id = await client.begin(tool, **arguments)
        await a_moment(0.06)
        # Its answer may be anywhere between the journal and the shim.
        await workspace.kill_server()
        seen += numbers(await client.answer(id))
    await each_once(workspace, printing)


async def sent(machine, method, path, message, **headers):
    """Sends a request over a connection of its own, which its client can close at any moment."""
    address, body = urlsplit(machine.url), json.dumps(message).encode()
    head = {"Host": address.netloc, "Authorization": f"Bearer {machine.token}", "Content-Type": "application/json"}
    head |= {"Content-Length": len(body)} | headers
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    writer.write("\r\n".join(lines).encode() + body)
    await writer.drain()
    return reader, writer


@pytest.mark.parametrize("is_legacy", [False, True])
# promise: wait-6
async def test_no_line_is_lost_by_connections_that_close(served, is_legacy):
    os.mkfifo(served.project / "never")
    ids = itertools.count(1)
    named = BOTH | {"MCP-Protocol-Version": VERSION}

    async def begin(message):
        return await sent(served, "POST", "/mcp", {"jsonrpc": "2.0"} | message, **named)

    async def answer(reader, writer):
        """The whole text that came on this connection, which the server then closes."""
        writer.write_eof()
        async with asyncio.timeout(CALL_SECONDS):
            came = await reader.read()
        writer.close()
        return came.decode()

    async def ask(message):
        """An answer that is awaited: the client closes its connection as soon as it has it."""
        reader, writer = await begin(message)
        async with asyncio.timeout(CALL_SECONDS):
            came = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", came, re.I)
            if length:
                came += await reader.readexactly(int(length[1]))
            # As many clients do, it does not wait for the stream's end.
            while not length and not came.startswith(b"HTTP/1.1 202") and b'"result"' not in came:
                came += await reader.readline()
        writer.close()
        return came.decode()

    def call(tool, **arguments):
        return {"id": next(ids), "method": "tools/call", "params": {"name": tool, "arguments": arguments}}

    if is_legacy:
        begun = await ask({"id": 0, "method": "initialize", "params": hello(VERSION)})
        named["Mcp-Session-Id"] = re.search(r"mcp-session-id: (\S+)", begun, re.I)[1]
        await ask({"method": "notifications/initialized"})
    started = await ask(call("start_terminal_session", shell="bash", cwd=str(served.project)))
    session = re.search(r"s0-[a-z0-9]+", started)[0]
    seen = numbers(await ask(call("execute_in_terminal", session_id=session, command=PRINTS, wait_for="begun")))
    for _ in range(CANCELS):
        connection = await begin(call("get_terminal_output", session_id=session, since="last", timeout=0.01))
        await a_moment(0.03)
        # The server may have written its answer before it notices.
        seen += numbers(await answer(*connection))
        if random.random() < 0.2:
            seen += numbers(await ask(call("get_terminal_output", session_id=session, since="last")))
    (served.project / "stop").touch()
    rest = await ask(call("get_terminal_output", session_id=session, **REST_OF_IT))
    seen += numbers(rest)
    # A client may call again before the server has noticed that its connection closed; then lines come again.
    assert is_whole(seen, rest), (seen, rest)


# promise: crash-1
async def test_no_line_is_lost_by_a_rest_client_that_closes_and_whose_servers_are_killed(served):
    os.mkfifo(served.project / "never")

    async def begin(method, path, body=None):
        own = {"Ptyd-Client": "one", "Connection": "close"}
        return await sent(served, method, f"/terminals{path}", body or {}, **own)

    async def answer(reader, writer):
        """The answer on this connection; nothing if the connection ended before it, or if a new server takes sessions on still."""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                came = await reader.read()
        except ConnectionError:
            came = b""
        writer.close()
        head, _, body = came.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.I)
        is_complete = length and len(body) == int(length[1])
        return json.loads(body) if is_complete and head.startswith(b"HTTP/1.1 2") else None

    async def ask(method, path, body=None):
        return await answer(*await begin(method, path, body))

    session = (await ask("POST", "", {"shell": "bash", "cwd": str(served.project)}))["id"]
    begun = await ask("POST", f"/{session}/execute", {"command": PRINTS, "waitFor": "begun"})
    seen = numbers(begun["output"])
    reading = f"/{session}/output?since=last&view=text&waitMs=20"
    for round in range(4 * KILLS):
        connection = await begin("GET", reading)
        await a_moment(0.04)
        if round % 4 == 0:
            served.serve_again()
        elif round % 4 == 1:
            # The server may have written its answer before it notices.
            connection[1].write_eof()
        read = await answer(*connection)
        seen += numbers(read["text"]) if read else []
    # A stream moves the position with each event, and leaves it there when its client goes.
    reader, writer = await begin("GET", f"/{session}/output/stream?since=last&view=text")
    followed = []
    async with asyncio.timeout(CALL_SECONDS):
        while len(followed) < 20:
            followed += numbers((await reader.readline()).decode())
    writer.close()
    behind = numbers((await ask("GET", reading))["text"])
    assert not behind or behind[0] > followed[0], (followed, behind)
    seen += list(range(followed[0], (behind or followed)[0])) + followed + behind
    (served.project / "stop").touch()
    rest = ""
    async with asyncio.timeout(CALL_SECONDS):
        while "printed" not in rest:
            rest = (await ask("GET", reading) or {"text": ""})["text"]
            seen += numbers(rest)
    # The server shows an answer again if it does not know whether its client has it.
    assert is_whole(seen, rest), (seen, rest)


@pytest.mark.parametrize("teller", ["terminal", "execute_in_terminal"])
@pytest.mark.parametrize("tool", ["terminal", "execute_in_terminal"])
# promise: wait-6
async def test_the_end_of_a_command_whose_call_was_cancelled_is_reported(workspace, tool, teller):
    gate = workspace.gate()
    session = await workspace.session(shell="bash", cwd=str(workspace.project))
    async with over_stdio(workspace) as client:
        command = f"touch begun; cat {gate}; seq 3; (exit 3)"
        id = await client.begin(tool, session_id=session.id, command=command)
        await session.until(lambda _: (workspace.project / "begun").exists())
        await client.cancel(id)
        await workspace.open_gate()
        await session.idle()
        after = await client.call(teller, session_id=session.id, command="echo next")
        assert after.startswith("opened\n1\n2\n3\nnext\n["), after
        assert '" has ended: exit 3' in after, after
        again = await client.call(teller, session_id=session.id, command="echo again")
        assert again.startswith("again\n[exit 0") and "has ended" not in again, again


@pytest.mark.parametrize("tool", ["terminal", "execute_in_terminal"])
# promise: wait-6
async def test_the_answer_says_that_a_command_continues_after_its_call_was_cancelled(workspace, tool):
    gate = workspace.gate()
    session = await workspace.session(shell="bash", cwd=str(workspace.project))
    async with over_stdio(workspace) as client:
        command = f"touch begun; cat {gate}"
        id = await client.begin(tool, session_id=session.id, command=command)
        await session.until(lambda _: (workspace.project / "begun").exists())
        await client.cancel(id)
        busy = await client.call(tool, session_id=session.id, command="echo next")
        assert f"is busy with command c1 ({command}), whose call was cancelled; wait for it" in busy, busy
        for told in True, False:
            look = await client.call("terminal", session_id=session.id, command="", timeout=0)
            assert ("its call was cancelled: C-c ends it" in look) == told, look
        assert "[exit 130 · INT" in await client.call("terminal", session_id=session.id, command="C-c")


async def test_an_answer_that_crosses_its_cancellation_is_returned_again(workspace):
    session = await workspace.session(shell="bash", cwd=str(workspace.project))
    async with over_stdio(workspace) as client:
        id = await client.begin("terminal", session_id=session.id, command="seq 3; cd /; (exit 3)")
        # The client has not read it when it gives the call up.
        assert "exit 3" in await client.answer(id)
        await client.cancel(id)
        after = await client.call("terminal", session_id=session.id, command="echo next")
        assert after.startswith("1\n2\n3\nnext\n[") and '" has ended: exit 3' in after and "cwd /" in after, after
        assert "has ended" not in await client.call("terminal", session_id=session.id, command="true")


async def test_the_end_of_a_command_is_reported_although_its_client_was_killed(machine):
    conversation = {"CLAUDE_CODE_SESSION_ID": "7d1c3c1e-95a8-4d52-9a3e-2f1c6a7b8d90"}
    gate = machine.gate()
    async with machine.another_agent() as machine.agent:
        async with over_stdio(machine, **conversation) as client:
            first = await client.call("terminal", command="true")
            session = machine.agent.at(re.search(r"s0-[a-z0-9]+", first)[0])
            await client.begin("terminal", command=f"touch begun; cat {gate}; seq 3; (exit 3)")
            await session.until(lambda _: (machine.project / "begun").exists())
            with watched([client.process.pid]) as ends:
                client.process.send_signal(signal.SIGKILL)
                await ends()
        await machine.open_gate()
        await session.idle()
        async with over_stdio(machine, **conversation) as client:
            after = await client.call("terminal", command="echo next")
            assert after.startswith("opened\n1\n2\n3\nnext\n[") and '" has ended: exit 3' in after, after
            assert "has ended" not in await client.call("terminal", command="true")
        await machine.end_sessions()


# promise: once-1
async def test_a_create_whose_client_has_gone_and_its_repetition_make_one_session(served):
    host, body = urlsplit(served.url).netloc, json.dumps({"shell": "cat"})
    made = set()
    async with served.http() as http:
        for number in range(CREATES):
            head = f"POST /terminals HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {served.token}\r\nIdempotency-Key: create-{number}\r\n"
            request = f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            # The server finds both requests, and the end of the first one's client, when it goes on.
            with stopped(served.process.pid):
                _, gone = await asyncio.open_connection(*host.split(":"))
                gone.write(request)
                await gone.drain()
                gone.close()
                await gone.wait_closed()
                key = {"Content-Type": "application/json", "Idempotency-Key": f"create-{number}"}
                again = asyncio.create_task(http.post("/terminals", content=body, headers=key))
                await asyncio.wait([again], timeout=0.01)
            made.add((await again).json()["id"])
        # A session of the first request would be here by the time when a later one is.
        listed = {row["id"] for row in (await http.get("/terminals?limit=500")).json()["terminals"]}
    assert listed == made and len(made) == CREATES
