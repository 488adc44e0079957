"""Sessions of the protocol over HTTP, before the stateless era: what they are for, whose they are, and how they end.

In raw messages, because headers and statuses are what is promised.
"""

import asyncio
import json
import signal
from contextlib import asynccontextmanager

import httpx2

from mcp_client import BOTH, CALL_SECONDS, hello, last_message

HELLO = hello("2025-11-25")


class Conversation:
    """A client in a session of the protocol."""

    def __init__(self, http, url):
        self.http, self.url, self.named, self.number = http, url, {}, 0

    async def post(self, method, **params):
        """Sends a request; gives the HTTP answer."""
        self.number += 1
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        return await self.http.post(self.url, json=body, headers=self.named)

    async def ask(self, method, **params):
        """Asks; gives the message with the answer, which is the last one."""
        answer = await self.post(method, **params)
        assert answer.status_code == 200, answer.text
        return last_message(answer)

    async def begin(self):
        """Initializes, anew if need be; gives the capabilities."""
        self.named = {}
        answer = await self.post("initialize", **HELLO)
        self.named = {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": HELLO["protocolVersion"]}
        said = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await self.http.post(self.url, json=said, headers=self.named)).status_code == 202
        return json.loads(answer.text.removeprefix("data: "))["result"]["capabilities"]

    async def call(self, tool, **arguments):
        """Calls a tool."""
        return (await self.ask("tools/call", name=tool, arguments=arguments))["result"]

    async def start(self):
        """A terminal's handle."""
        return (await self.call("start_terminal_session"))["structuredContent"]["session_id"]

    async def run(self, id, command, **arguments):
        """The output of a command there."""
        return (await self.call("execute_in_terminal", session_id=id, command=command, **arguments))["content"][0]["text"].partition("\n")[0]

    @asynccontextmanager
    async def told(self):
        """The messages that the server sends without being asked."""
        async with self.http.stream("GET", self.url, headers=self.named) as stream, asyncio.timeout(CALL_SECONDS):
            assert stream.status_code == 200
            yield (json.loads(line[6:]) async for line in stream.aiter_lines() if line.startswith("data: {"))


@asynccontextmanager
async def client(machine, token=None):
    """A client that has not said hello."""
    async with machine.http(token, **BOTH) as http:
        yield Conversation(http, machine.url)


# promise: mcp-5
async def test_changes_and_log_messages_are_reported_until_the_server_stops(served):
    async with client(served) as one:
        capabilities = await one.begin()
        assert (capabilities["resources"], capabilities["logging"]) == ({"subscribe": True}, {})
        id = await one.start()
        uri = f"ptyd://sessions/{id}/output"
        async with one.told() as told:
            assert (await one.ask("resources/subscribe", uri=uri))["result"] == {}
            assert await one.run(id, "echo one") == "one"
            # No client has asked for log messages yet.
            assert await anext(told) == {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": uri}}
            assert (await one.ask("resources/unsubscribe", uri=uri))["result"] == {}
            assert (await one.ask("logging/setLevel", level="info"))["result"] == {}
            await one.run(id, "(exit 3)")
            while (word := await anext(told))["method"] != "notifications/message":
                pass
            # Its name has the client and the folder.
            assert word["params"]["data"].pop("name").startswith("raw/")
            data = {"event": "command.completed", "sessionId": id, "commandId": "c2", "exitCode": 3}
            assert word["params"] == {"level": "info", "logger": "ptyd", "data": data}
            # Messages below the requested level are not sent.
            assert (await one.ask("logging/setLevel", level="notice"))["result"] == {}
            await one.run(id, "echo three")
            await one.call("terminate_terminal_session", session_id=id, force=True)
            assert (await anext(told))["params"]["data"]["event"] == "session.terminated"
            served.process.send_signal(signal.SIGTERM)
            # A stream that the server cuts off raises an error instead.
            assert [word async for word in told] == []


# promise: mcp-6
async def test_an_mcp_session_belongs_to_the_token_that_began_it(served):
    mine, other = (served.ptyd("token", "new", name, "--unconfined") for name in ("mine", "other"))
    async with client(served, mine) as one, client(served, other) as another:
        await one.begin()
        await another.begin()
        id = await one.start()
        another.named = another.named | {"Mcp-Session-Id": one.named["Mcp-Session-Id"]}
        refused = await another.post("tools/list")
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, -32001)
        assert [(await another.http.request(way, served.url, headers=another.named)).status_code for way in ("GET", "DELETE")] == [404, 404]
        async with one.told() as told:
            served.ptyd("token", "revoke", "mine")
            try:
                assert [word async for word in told] == []
            except httpx2.RemoteProtocolError:
                # It breaks off, so that no client takes it for complete.
                pass
        assert (await one.post("tools/list")).status_code == 401
    # Also for the next token of this name.
    async with client(served, served.ptyd("token", "new", "mine", "--unconfined")) as next:
        next.named = one.named
        assert (await next.post("tools/list")).status_code == 404
        await next.begin()
        assert await next.run(id, "echo on") == "on"


# promise: mcp-6
async def test_a_terminal_outlives_the_session_of_the_protocol(served):
    async with client(served) as one:
        await one.begin()
        id = await one.start()
        assert (await one.run(id, "x=kept; echo x")) == "x"
        assert (await one.http.delete(served.url, headers=one.named)).status_code == 204
        for gone in [await one.post("tools/list"), await one.http.delete(served.url, headers=one.named)]:
            assert (gone.status_code, gone.json()["error"]["code"]) == (404, -32001)
        # The server serves a client that names no session, and one that begins anew.
        one.named = {}
        assert await one.run(id, "echo $x") == "kept"
        await one.begin()
        assert await one.run(id, "echo $x") == "kept"


# promise: mcp-4
async def test_the_next_server_continues_all_mcp_sessions_except_those_with_subscriptions(served):
    async with client(served) as one, client(served) as follower:
        await one.begin()
        await follower.begin()
        id = await one.start()
        await follower.ask("resources/subscribe", uri=f"ptyd://sessions/{id}/output")
        served.serve_again()
        assert await one.run(id, "echo on") == "on"
        # It would wait for word that never comes.
        assert (await follower.post("ping")).status_code == 404
        await follower.begin()
        assert await follower.run(id, "echo on") == "on"
        # The next server finds no session that was ended at this one.
        assert (await one.http.delete(served.url, headers=one.named)).status_code == 204
        served.serve_again()
        assert (await one.post("ping")).status_code == 404


# promise: mcp-1
async def test_a_malformed_message_is_answered_in_the_words_of_json_rpc(served):
    async with served.http(**BOTH) as http:

        async def refused(content, **more):
            answer = await http.post(served.url, content=content, headers={"Content-Type": "application/json"} | more)
            error = answer.json()
            assert (error["jsonrpc"], error["id"], answer.headers["content-type"]) == ("2.0", None, "application/json")
            return answer.status_code, error["error"]["code"]

        assert await refused("{nonsense") == (400, -32700)
        assert await refused(b"\xff\x00") == (400, -32700)
        assert await refused("") == (400, -32700)
        assert await refused("[1, 2]") == (400, -32600)
        assert await refused('{"jsonrpc": "1.0"}') == (400, -32600)
        assert await refused("{}", **{"Content-Type": "text/plain"}) == (415, -32600)
        assert await refused("{}", Accept="text/plain") == (406, -32600)
        assert await refused(b" " * ((8 << 20) + 1)) == (413, -32600)
        assert (await http.put(served.url)).json()["error"]["code"] == -32600
