"""Word of changes of transcripts and screens: `resources/subscribe` before the stateless era, `subscriptions/listen` in it.

In raw lines, because what is on the wire, and when, is what is promised.
"""

import asyncio
import json
import signal

import pytest

from mcp_client import BOTH, CALL_SECONDS, meta

LEGACY, MODERN = "2025-11-25", "2026-07-28"
META = meta({}, MODERN)


class Follower:
    """A client of one era that follows resources."""

    def __init__(self, lines, era):
        self.lines, self.era, self.id = lines, era, 0

    async def send(self, method, **params):
        """Sends a request; gives its id."""
        self.id += 1
        meta = {"_meta": META} if self.era == MODERN else {}
        await self.lines.send({"id": self.id, "method": method, "params": params | meta})
        return self.id

    async def ask(self, method, **params):
        """Asks; gives the answer, and the resources of which there was word before it."""
        id, told = await self.send(method, **params), []
        while (message := await self.lines.next()).get("id") != id:
            told.append(message["params"]["uri"])
        return message["result"], told

    async def call(self, tool, **arguments):
        """Calls a tool; gives the structured answer, and the resources of which there was word before it."""
        result, told = await self.ask("tools/call", name=tool, arguments=arguments)
        assert not result["isError"], result
        return result.get("structuredContent"), told

    async def follow(self, uri):
        """Follows a resource; gives the request that ends with it."""
        if self.era == LEGACY:
            assert await self.ask("resources/subscribe", uri=uri) == ({}, [])
            return None
        id = await self.send("subscriptions/listen", notifications={"resourceSubscriptions": [uri]})
        await self.acknowledged(id, uri)
        return id

    async def acknowledged(self, id, uri):
        """The first word of a request that stays open."""
        self.is_acknowledged(await self.lines.next(), id, uri)

    async def acknowledged_again(self, id, uri):
        """The same of the next server, behind word of earlier changes."""
        while (said := await self.lines.next())["method"] == "notifications/resources/updated":
            assert said["params"]["uri"] == uri
        self.is_acknowledged(said, id, uri)

    def is_acknowledged(self, said, id, uri):
        """Asserts that this is such a word."""
        assert (said["method"], said["params"]["notifications"]) == (
            "notifications/subscriptions/acknowledged",
            {"resourceSubscriptions": [uri]},
        )
        assert said["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == id

    async def leave(self, id, uri):
        """Follows it no more."""
        if id is None:
            await self.ask("resources/unsubscribe", uri=uri)
        else:
            await self.lines.send({"method": "notifications/cancelled", "params": {"requestId": id}})

    async def word(self, told, uri):
        """Waits for word of a resource, if there was none."""
        told = told or [(await self.lines.next())["params"]["uri"]]
        assert set(told) == {uri}


@pytest.fixture
async def shim(machine):
    """A client that keeps its sessions when its server dies."""
    async with machine.lines() as shim:
        yield shim
    assert shim.process.returncode == 0
    async with machine.another_agent() as machine.agent:
        await machine.end_sessions()


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize("part", ["output", "screen"])
# promise: mcp-5
async def test_subscribers_over_stdio_learn_of_changes_also_from_the_next_server(machine, shim, era, part):
    if era == LEGACY:
        capabilities = (await shim.initialize(era))["result"]["capabilities"]
        assert capabilities["resources"] == {"subscribe": True}
    follower = Follower(shim, era)
    started, _ = await follower.call("start_terminal_session")
    other, _ = await follower.call("start_terminal_session")
    id, uri = started["session_id"], f"ptyd://sessions/{started['session_id']}/{part}"
    request = await follower.follow(uri)
    # Of another session there is no word, however often it prints. The first prompt of this one may still come.
    async with asyncio.timeout(CALL_SECONDS):
        words = [uri]
        while words:
            _, words = await follower.call("execute_in_terminal", session_id=other["session_id"], command="sleep 0.3; echo other")
            assert set(words) <= {uri}
    _, told = await follower.call("execute_in_terminal", session_id=id, command="echo one")
    await follower.word(told, uri)

    await machine.kill_server()
    if request is not None:
        await follower.acknowledged_again(request, uri)
    told = []
    while not told:
        _, told = await follower.call("execute_in_terminal", session_id=id, command="echo two")
    assert set(told) == {uri}

    await follower.leave(request, uri)
    await follower.call("list_terminal_sessions")
    assert (await follower.call("execute_in_terminal", session_id=id, command="echo three"))[1] == []


async def test_an_unknown_resource_cannot_be_followed(lines):
    await lines.initialize(LEGACY)
    for uri in ["ptyd://sessions/s0-nothing000/output", "ptyd://sessions/s0-aaaaaaaaaa/output", "file:///etc/passwd"]:
        refused = await lines.ask("resources/subscribe", {"uri": uri}, id=uri)
        assert (refused["error"]["code"], refused["error"]["data"]) == (-32002, {"uri": uri})


# promise: mcp-5
async def test_subscribers_over_http_learn_of_changes_until_the_session_or_the_server_ends(served):
    async with served.http(**BOTH | {"MCP-Protocol-Version": MODERN}) as http:

        def message(id, method, **params):
            named = {"Mcp-Name": params["name"]} if "name" in params else {}
            body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params | {"_meta": META}}
            session = params.get("arguments", {}).get("session_id")
            named |= {"Mcp-Param-Session": session} if session else {}
            return {"json": body, "headers": {"Mcp-Method": method} | named}

        async def call(tool, **arguments):
            answer = await http.post(served.url, **message(1, "tools/call", name=tool, arguments=arguments))
            return answer.json()["result"]

        id, other = [(await call("start_terminal_session"))["structuredContent"]["session_id"] for _ in range(2)]
        uri, uris = f"ptyd://sessions/{id}/output", [f"ptyd://sessions/{of}/output" for of in (id, other)]
        listening = message(7, "subscriptions/listen", notifications={"resourceSubscriptions": uris, "toolsListChanged": True})
        async with http.stream("POST", served.url, **listening) as stream, asyncio.timeout(CALL_SECONDS):
            events = (json.loads(line.removeprefix("data: ")) async for line in stream.aiter_lines() if line.startswith("data: {"))
            # The server promises no news of the tools, which never change.
            acknowledged = await anext(events)
            assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": uris}
            await call("execute_in_terminal", session_id=id, command="echo one")
            # The other one's first prompt may still come.
            while (updated := await anext(events))["params"]["uri"] != uri:
                pass
            assert updated["method"] == "notifications/resources/updated"
            assert updated["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7
            await call("terminate_terminal_session", session_id=id, force=True)
            while (await anext(events))["params"]["uri"] != uri:
                pass
            # A server that stops says that this was all; the client asks the next one.
            served.process.send_signal(signal.SIGTERM)
            while "id" not in (last := await anext(events)):
                assert last["params"]["uri"] in uris
            assert (last["id"], last["result"]["resultType"]) == (7, "complete")


# promise: mcp-5
async def test_a_client_over_http_without_an_mcp_session_is_promised_no_changes(served):
    async with served.http(**BOTH) as http:

        async def ask(method, params):
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return (await http.post(served.url, json=body)).json()

        refused = await ask("resources/subscribe", {"uri": "ptyd://sessions/s0-aaaaaaaaaa/output"})
        assert refused["error"]["code"] == -32601
