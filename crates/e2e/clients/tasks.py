"""The official Python SDK 2.x at a server, with tasks: the SDK has the extension point, and this is the extension.

A line of JSON in is a call, a line out is its whole answer, which came as a task if the server made one of it.
"""

import asyncio
import json
import sys
from typing import Any, Literal

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict, Field

from mcp2 import main


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
    """The name of a task."""

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


asyncio.run(main(json.loads(sys.argv[1]), extensions=[Tasks()]))
