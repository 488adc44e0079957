"""The official Python SDK 2.x at a server, with tasks: the SDK has the extension point, and this is the extension.

A line of JSON in is a call, a line out is its whole answer, which came as a task if the server made one of it. With a `secret`
its person opens the pages to which a task sends them.
"""

import asyncio
import json
import sys
from typing import Any, Literal

import httpx2
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, ElicitRequestURLParams, ElicitResult, Request, RequestParams, Result
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
    input_requests: dict[str, Any] = Field(default={}, alias="inputRequests")


class TaskParams(RequestParams):
    """The name of a task."""

    task_id: str = Field(serialization_alias="taskId")


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    """Asks for the state; over HTTP a header names the task, too."""

    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams
    name_param = "taskId"


class Replies(RequestParams):
    """The replies of people to the questions of a task."""

    task_id: str = Field(serialization_alias="taskId")
    input_responses: dict[str, Any] = Field(serialization_alias="inputResponses")


class UpdateTask(Request[Replies, Literal["tasks/update"]]):
    """Hands replies over."""

    method: Literal["tasks/update"] = "tasks/update"
    params: Replies
    name_param = "taskId"


class Person:
    """Opens each page that it is sent to, and types what it knows."""

    def __init__(self, secret: str):
        self.secret = secret

    async def __call__(self, _, asked) -> ElicitResult:
        assert isinstance(asked, ElicitRequestURLParams), asked
        async with httpx2.AsyncClient() as browser:
            typed = await browser.post(asked.url, data={"secret": self.secret})
            assert typed.status_code == 200, typed.text
        return ElicitResult(action="accept")


class Tasks(ClientExtension):
    """Takes tasks for answers, and waits for their ends."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, person: Person | None):
        self.person = person

    def claims(self):
        """The one further form of an answer."""
        return [ResultClaim(result_type="task", model=Task, resolve=self.end)]

    async def end(self, task: Task, context: ClaimContext) -> CallToolResult:
        """Polls, as the server holds an answer until there is news."""
        while True:
            state = await context.session.send_request(GetTask(params=TaskParams(task_id=task.task_id)), TaskState)
            for key, question in state.input_requests.items():
                asked = ElicitRequestURLParams.model_validate(question["params"], by_name=False)
                reply = (await self.person(None, asked)).model_dump(mode="json", by_alias=True, exclude_none=True)
                replies = Replies(task_id=task.task_id, input_responses={key: reply})
                await context.session.send_request(UpdateTask(params=replies), Result)
            if state.status not in ("working", "input_required"):
                assert state.status == "completed", state
                answer = CallToolResult.model_validate(state.result, by_name=False)
                answer.meta = {"task": task.task_id}
                return answer


server = json.loads(sys.argv[1])
secret = server.pop("secret", None)
person = Person(secret) if secret else None
asyncio.run(main(server, extensions=[Tasks(person)], elicitation_callback=person))
