"""A client that was written from the two requirement documents alone, over REST, WebSocket and MCP; only the token is added.

Its requests, parameters and types are the documents' own, with null for what it leaves out. docs/deviations.md has what it
finds different.
"""

import asyncio
import json
import stat
from contextlib import asynccontextmanager
from datetime import datetime

import httpx2
import pytest
from mcp_client import CALL_SECONDS
from test_http import agent_of
from websockets.asyncio.client import connect

# terminal-management.md §3.4.1 and §3.4.2, type by type; `| None` is the documents' `?`.
NUMBER = (int, float)
TERMINAL_SESSION = {
    "id": str, "status": {"creating", "running", "terminated"}, "shell": str, "cwd": str, "env": dict,
    "createdAt": datetime, "lastActivity": datetime, "owner": str, "dimensions": {"cols": int, "rows": int},
    "resourceUsage": {"cpu": NUMBER, "memory": NUMBER, "processes": int},
}  # fmt: skip
COMMAND_EXECUTION = {
    "id": str, "sessionId": str, "command": str, "status": {"running", "completed", "failed", "terminated"},
    "startedAt": datetime, "completedAt?": datetime, "exitCode?": int, "outputSize": int, "error?": str,
}  # fmt: skip


def is_a(model: dict, value: dict) -> dict:
    """The value, whose fields are of the documents' types."""
    for name, wanted in model.items():
        if name.endswith("?") and value.get(name[:-1]) is None:
            continue
        found = value[name.removesuffix("?")]
        if isinstance(wanted, set):
            assert found in wanted, (name, found)
        elif wanted is datetime:
            datetime.fromisoformat(found)
        elif isinstance(wanted, dict):
            is_a(wanted, found)
        else:
            assert isinstance(found, wanted), (name, found)
    return value


class Service:
    """terminal-management.md §3.3.1, endpoint by endpoint."""

    def __init__(self, http: httpx2.AsyncClient):
        self.http = http

    async def ask(self, method: str, path: str, body: dict | None = None) -> dict:
        answer = await self.http.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    async def create(self, shell=None, cwd=None, env=None) -> dict:
        session = await self.ask("POST", "/terminals", {"shell": shell, "cwd": cwd, "env": env})
        assert session["connection"]
        return is_a(TERMINAL_SESSION, session)

    async def show(self, session_id: str) -> dict:
        return is_a(TERMINAL_SESSION, await self.ask("GET", f"/terminals/{session_id}"))

    async def execute(self, session_id: str, command: str, timeout=None, **more) -> str:
        body = {"command": command, "timeout": timeout} | more
        return (await self.ask("POST", f"/terminals/{session_id}/execute", body))["id"]

    async def command(self, session_id: str, command_id: str) -> dict:
        return is_a(COMMAND_EXECUTION, await self.ask("GET", f"/terminals/{session_id}/commands/{command_id}"))

    async def end_of(self, session_id: str, command_id: str) -> dict:
        """Polls, as a client of the document does."""
        async with asyncio.timeout(CALL_SECONDS):
            while (command := await self.command(session_id, command_id))["status"] == "running":
                pass
        return command

    async def run(self, session_id: str, command: str, timeout=None, **more) -> dict:
        return await self.end_of(session_id, await self.execute(session_id, command, timeout, **more))


@asynccontextmanager
async def service_of(machine):
    headers = {"Authorization": f"Bearer {machine.token}"}
    async with httpx2.AsyncClient(base_url=machine.url.removesuffix("/mcp"), headers=headers, timeout=60) as http:
        yield Service(http)


# promise: rest-11
async def test_every_endpoint_takes_and_gives_what_the_document_says(served):
    async with service_of(served) as service:
        session = await service.create("bash", str(served.project), {"GREETING": "hello"})
        sid = session["id"]
        assert (session["shell"], session["cwd"], session["env"]) == ("bash", str(served.project), {"GREETING": "hello"})
        done = await service.run(sid, "echo $GREETING")
        assert (done["status"], done["exitCode"], done["output"]) == ("completed", 0, "hello\n")
        # A deviation: `failed` is only what did not run.
        assert [(done["status"], done["exitCode"]) for done in [await service.run(sid, "(exit 3)", 10)]] == [("completed", 3)]
        assert (await service.ask("POST", f"/terminals/{sid}/resize", {"cols": 100, "rows": 30}))["success"] is True
        assert (await service.show(sid))["dimensions"] == {"cols": 100, "rows": 30}
        assert (await service.run(sid, "stty size"))["output"] == "30 100\n"
        await service.execute(sid, "sleep 600", None, waitForCompletion=False)
        # `force` in a JSON body: nothing of it is waited for.
        ended = await service.ask("DELETE", f"/terminals/{sid}", {"force": True})
        assert (ended["status"], ended["session"]["status"], ended["left"]) == ("terminated", "terminated", 0)
        assert (await service.show(sid))["status"] == "terminated"
        other = await service.create()
        ended = await service.ask("DELETE", f"/terminals/{other['id']}", {"force": None})
        assert ended["status"] == "terminated"


# promise: limit-9
async def test_a_timeout_ends_what_the_document_lets_it_end(served):
    async with service_of(served) as service:
        sid = (await service.create("bash"))["id"]
        command_id = await service.execute(sid, "sleep 600", 0.2)
        assert (await service.command(sid, command_id))["status"] == "running"
        await service.ask("POST", f"/terminals/{sid}/signal", {"signal": "SIGTERM"})
        assert (await service.end_of(sid, command_id))["exitCode"] == 143
        for on_timeout in ("interrupt", "kill"):
            done = await service.run(sid, "sleep 600; sleep 600", 0.2, onTimeout=on_timeout)
            assert (done["status"], done["exitCode"]) == ("completed", 130)
        assert (await service.run(sid, "echo alive", 0.2, onTimeout=None))["output"] == "alive\n"
        await service.ask("DELETE", f"/terminals/{sid}")


@pytest.mark.not_confined("the shell of the case is hidden")
# promise: rest-11
async def test_nothing_is_failed_because_the_shell_is_powershell(served):
    # Not PowerShell, but what ptyd can know of it: a program that reads lines behind a prompt.
    stand_in = served.root / "bin/pwsh"
    stand_in.parent.mkdir()
    stand_in.write_text("#!/bin/bash\nwhile IFS= read -erp 'PS /> ' line; do eval \"$line\"; done\n")
    stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)
    async with service_of(served) as service:
        refused = await service.http.post("/terminals", json={"shell": "powershell"})
        assert (refused.status_code, "install" in refused.json()["detail"]) == (422, True)
        session = await service.create("powershell", None, {"PATH": f"{stand_in.parent}:{served.env['PATH']}"})
        assert session["shell"] == "powershell"
        for command in ("echo hi", "false", "no-such-command", "cd /tmp", "echo still here"):
            done = await service.run(session["id"], command, 20)
            assert (done["status"], done.get("exitCode")) == ("completed", None), done
        assert "still here" in done["output"]
        await service.ask("DELETE", f"/terminals/{session['id']}", {"force": True})


# promise: view-6
async def test_a_socket_carries_input_output_and_status_both_ways(served):
    async with service_of(served) as service:
        session = await service.create("bash")
        path = f"{served.url.removesuffix('/mcp').replace('http', 'ws')}/terminals/{session['id']}/socket"
        # The library answers the server's heartbeat, and asks for its own.
        async with connect(path, additional_headers={"Authorization": f"Bearer {served.token}"}) as socket:
            statuses, output = [], ""

            async def until(happened):
                nonlocal output
                async with asyncio.timeout(CALL_SECONDS):
                    while not happened():
                        message = json.loads(await socket.recv())
                        if message["type"] == "status":
                            statuses.append(message["status"])
                        elif message["type"] == "output":
                            output += message["data"]

            await socket.send(json.dumps({"type": "input", "data": "read -p 'name? ' name; echo hello $name\n"}))
            await until(lambda: "\rname? " in output)
            await socket.send(json.dumps({"type": "input", "data": "Zoë\n"}))
            await until(lambda: "\nhello Zoë\r\n" in output)
            async with asyncio.timeout(CALL_SECONDS):
                await (await socket.ping())
            await service.execute(session["id"], "exit 0")
            await until(lambda: statuses[-1] == "terminated")
            assert statuses[0] == "running"


# terminal-management.md §5.3 has npm and a server; here they are what the examples see of them.
NPM = r"""#!/bin/bash
case "$1" in
init) read -p 'package name: (project) ' name; read -p 'version: (1.0.0) ' version; echo "made $name $version" ;;
install) echo "added 1 package: $2" ;;
run) echo 'starting'; sleep 0.3; echo 'Server started on port 3000'; exec sleep 600 ;;
esac
"""


class Tools:
    """terminal-management.md §5.1: the tools by their names, each with its parameters as the document has them.

    Of tools with output an answer is text by default; what the document destructures is read out of it.
    """

    def __init__(self, agent):
        self.agent = agent

    def __getattr__(self, name):
        async def call(**arguments):
            answer = await self.agent.call(name, **arguments)
            assert not answer.is_error, answer.text
            return answer.structured or {"output": answer.output, "text": answer.text, "exit": answer.exit}

        return call


@pytest.fixture
def npm(served):
    program = served.root / "bin/npm"
    program.parent.mkdir(exist_ok=True)
    program.write_text(NPM)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{program.parent}:{served.env['PATH']}"}


@pytest.mark.not_confined("the program of the case is hidden")
# promise: mcp-2
async def test_example_1_answers_a_programs_questions(served, npm):
    async with agent_of(served) as agent:
        tools = Tools(agent)
        started = await tools.start_terminal_session(shell="bash", cwd=str(served.project), env=npm, dimensions=None)
        session_id = started["session_id"]
        await tools.execute_in_terminal(session_id=session_id, command="npm init", timeout=None, wait_for_completion=None)
        await tools.send_input_to_terminal(session_id=session_id, input="my-project\n")
        answered = await tools.send_input_to_terminal(session_id=session_id, input="1.0.0", end_with_newline=True)
        assert "made my-project 1.0.0" in answered["output"]
        await tools.execute_in_terminal(session_id=session_id, command="npm install express --save")
        output = (await tools.get_terminal_output(session_id=session_id))["output"]
        assert "added 1 package: express" in output
        await tools.terminate_terminal_session(session_id=session_id)


@pytest.mark.not_confined("the program of the case is hidden")
# promise: mcp-2
async def test_example_2_watches_a_server_by_what_is_new(served, npm):
    async with agent_of(served) as agent:
        tools = Tools(agent)
        dimensions = {"cols": 100, "rows": 30}
        started = await tools.start_terminal_session(shell="bash", cwd=str(served.project), env=npm, dimensions=dimensions)
        session_id = started["session_id"]
        await tools.execute_in_terminal(session_id=session_id, command="npm run dev", wait_for_completion=False)
        async with asyncio.timeout(CALL_SECONDS):
            while "Server started on port" not in (
                await tools.get_terminal_output(session_id=session_id, since="last", max_lines=None)
            )["output"]:
                pass
        assert (await tools.resize_terminal(session_id=session_id, cols=120, rows=40))["success"] is True
        listed = await tools.list_terminal_sessions(filter={"owner": None, "status": "running"}, limit=10, offset=0)
        assert [session["session_id"] for session in listed["sessions"]] == [session_id]
        ended = await tools.terminate_terminal_session(session_id=session_id, force=False, signal="SIGTERM")
        assert ended["status"] == "terminated"


# promise: mcp-2
async def test_the_one_tool_takes_its_four_parameters_as_the_document_has_them(workspace):
    call = workspace.agent.call
    first = await call("terminal", command="export A=1; cd /tmp", is_input=False, timeout=None, reset=False)
    assert (first.exit, first.is_error) == (0, False)
    assert (await call("terminal", command="echo $A; pwd")).output == "1\n/tmp"
    late = await call("terminal", command="cat", timeout=0.2)
    assert late.is_running
    assert "typed" in (await call("terminal", command="typed", is_input=True, timeout=60)).output
    # An empty command looks at what runs, C-d ends what reads.
    assert (await call("terminal", command="", timeout=0.2)).is_running
    assert (await call("terminal", command="C-d")).exit == 0
    reset = await call("terminal", command="", reset=True)
    assert reset.facts[0].startswith("terminal reset")
    assert (await call("terminal", command="echo \"<$A>\"")).output == "<>"
