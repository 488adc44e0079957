"""The official Python SDK 2.x at a server, with tasks: the SDK has the extension point, and this is the extension.

A line of JSON in is a call, a line out is its whole answer, which came as a task if the server made one of it.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any, Literal

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict, Field


class Task(Result):
    """A call that goes on."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")


class TaskState(Result):
    """The present state of a task."""

    model_config = ConfigDict(extra="allow")
    status: str
    result: dict[str, Any] | None = None


class TaskParams(RequestParams):
    """Which task."""

    task_id: str = Field(serialization_alias="taskId")


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    """Asks for the state; over HTTP a header names the task, too."""

    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams
    name_param = "taskId"


class Tasks(ClientExtension):
    """Takes tasks for answers, and waits for their ends."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self):
        """The one further form of an answer."""
        return [ResultClaim(result_type="task", model=Task, resolve=self.end)]

    async def end(self, task: Task, context: ClaimContext) -> CallToolResult:
        """Polls, as the server holds an answer until there is news."""
        while True:
            state = await context.session.send_request(GetTask(params=TaskParams(task_id=task.task_id)), TaskState)
            if state.status != "working":
                assert state.status == "completed", state
                answer = CallToolResult.model_validate(state.result, by_name=False)
                answer.meta = {"task": task.task_id}
                return answer


async def main(server: dict):
    """Drives it until the lines end."""
    async with AsyncExitStack() as stack:
        if "url" in server:
            headers = {"Authorization": f"Bearer {server['token']}"}
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
            streams = streamable_http_client(server["url"], http_client=http)
        else:
            streams = stdio_client(StdioServerParameters(**server))
        client = await stack.enter_async_context(Client(streams, extensions=[Tasks()]))
        while line := await asyncio.to_thread(sys.stdin.readline):
            call = json.loads(line)
            result = await client.call_tool(call["tool"], call["arguments"])
            print(json.dumps(result.model_dump(mode="json", by_alias=True, exclude_none=True)), flush=True)


asyncio.run(main(json.loads(sys.argv[1])))
