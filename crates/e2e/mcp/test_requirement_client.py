"""A client that was written from the two requirement documents alone, over REST and MCP; only the token is added.

Its requests, parameters and types are the documents' own, with null for what it leaves out. docs/deviations.md has what it
finds different.
"""

import asyncio
import stat
from contextlib import asynccontextmanager
from datetime import datetime

import httpx2
import pytest
from mcp_client import CALL_SECONDS

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
    async with machine.http() as http:
        yield Service(http)


# promise: rest-11
async def test_every_endpoint_accepts_and_returns_the_documented_fields(served):
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


# promise: mcp-2
async def test_the_tools_take_the_documents_parameters_and_null_counts_as_omitted(served):
    async with served.agent_over_http() as agent:
        dimensions = {"cols": 100, "rows": 30}
        session = await agent.session(shell="bash", cwd=str(served.project), env=None, dimensions=dimensions)
        asked = await session.run("read -p 'name? ' name; read -p 'version? ' version; echo made $name $version", timeout=None, wait_for_completion=None)
        assert asked.wants == "input"
        await session.type("my-project\n")
        assert "made my-project 1.0.0" in (await session.type("1.0.0", end_with_newline=True)).output
        await session.run("echo started on port 3000; sleep 600", wait_for_completion=False)
        async with asyncio.timeout(CALL_SECONDS):
            while "started on port" not in (await session.read(since="last", max_lines=None)).output:
                pass
        resized = await agent.call("resize_terminal", session_id=session.id, cols=120, rows=40)
        assert resized.structured["success"] is True
        listed = await agent.call("list_terminal_sessions", filter={"owner": None, "status": "running"}, limit=10, offset=0)
        assert [row["session_id"] for row in listed.structured["sessions"]] == [session.id]
        assert (await session.terminate(force=False, signal="SIGTERM")).structured["status"] == "terminated"


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
