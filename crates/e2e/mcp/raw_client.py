"""A client in raw JSON-RPC, over stdio and over HTTP, because the SDK has no tasks.

Each request declares the client's abilities: it has tasks, or it sends its person to a page.
"""

import asyncio
import itertools
import json
from contextlib import asynccontextmanager

import pytest

from mcp_client import BOTH, CALL_SECONDS, last_message, meta

TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
ASKS = TASKS | {"elicitation": {"form": {}, "url": {}}}
GRACE = "0.5"
DOORS = pytest.mark.parametrize("door", ["stdio", "http"])


class Client:
    """A client that declares its abilities in each request, over either door."""

    def __init__(self, send):
        self.send = send
        self.ids = itertools.count(1)
        # Answers to nothing that was asked, or to the same thing twice.
        self.unasked = []

    async def ask(self, method, capabilities=TASKS, version="2026-07-28", **params):
        """The whole answer to a request."""
        params["_meta"] = meta(capabilities, version)
        return await self.send({"jsonrpc": "2.0", "id": next(self.ids), "method": method, "params": params})

    async def call(self, tool, capabilities=TASKS, **arguments):
        """The result of a tool's call."""
        answer = await self.ask("tools/call", capabilities, name=tool, arguments=arguments)
        return answer["result"]

    async def start(self, tool, **arguments):
        """The id of the task as which a call goes on."""
        result = await self.call(tool, **arguments)
        assert (result["resultType"], result["status"], result["ttlMs"]) == ("task", "working", None), result
        return result["taskId"]

    async def get(self, task):
        """The present state of a task."""
        return (await self.ask("tasks/get", taskId=task))["result"]

    async def cancel(self, task):
        """Cancels a task; the answer is empty."""
        assert (await self.ask("tasks/cancel", taskId=task))["result"] == {"resultType": "complete"}

    async def over(self, task):
        """The state of a task once it is no longer working."""
        async with asyncio.timeout(CALL_SECONDS):
            while (state := await self.get(task))["status"] == "working":
                pass
        return state

    async def question(self, task) -> tuple[str, dict]:
        """The key and the parameters of a task's only question, for which its person goes to a page."""
        state = await self.over(task)
        assert state["status"] == "input_required", state
        [(key, request)] = state["inputRequests"].items()
        assert (request["method"], request["params"]["mode"]) == ("elicitation/create", "url"), request
        return key, request["params"]

    async def session(self):
        """A session of its own."""
        started = await self.call("start_terminal_session")
        return started["structuredContent"]["session_id"]


def text(result) -> str:
    """The text for the model of a call's result, or of a completed task's."""
    return result.get("result", result)["content"][0]["text"]


def code(answer) -> int:
    """The number of a JSON-RPC error."""
    return answer["error"]["code"]


@asynccontextmanager
async def over_stdio(machine, detach="0", *options):
    async with machine.lines("--detach", detach, *options) as lines:
        waiting = {}

        async def read():
            while line := await lines.process.stdout.readline():
                answer = json.loads(line)
                if "id" not in answer:
                    continue
                if asked := waiting.pop(answer["id"], None):
                    asked.set_result(answer)
                else:
                    client.unasked.append(answer)

        async def send(message):
            waiting[message["id"]] = answered = asyncio.get_running_loop().create_future()
            await lines.send(message)
            async with asyncio.timeout(CALL_SECONDS):
                return await answered

        client = Client(send)
        reading = asyncio.create_task(read())
        yield client
    await reading


@asynccontextmanager
async def over_http(machine, token=None):
    async with machine.http(token, **BOTH) as http:

        async def send(message):
            params, method = message["params"], message["method"]
            name = params.get("taskId") or params.get("name") or ""
            version = params["_meta"]["io.modelcontextprotocol/protocolVersion"]
            headers = {"MCP-Protocol-Version": version, "Mcp-Method": method} | ({"Mcp-Name": name} if name else {})
            if session := params.get("arguments", {}).get("session_id"):
                # The schemas of the tools name it.
                headers["Mcp-Param-Session"] = session
            return last_message(await http.post(machine.url, json=message, headers=headers))

        yield Client(send)


async def gated(machine, client, command="read line < gate; echo $line; exit 3"):
    """A task whose command waits for the gate, in a session at the project's folder."""
    machine.gate()
    session = await client.session()
    await client.call("execute_in_terminal", session_id=session, command=f"cd {machine.project}")
    return session, await client.start("execute_in_terminal", session_id=session, command=f"( {command} )")
