"""A call that a policy leaves to a person waits for the decision: in its request, as a task, or with its person sent to a page
(docs/decisions/0062)."""

import asyncio
import os
import re

import httpx2
import pytest
from mcp import Client as SdkClient
from mcp import StdioServerParameters, stdio_client
from mcp.types import ElicitResult

from mcp_client import CALL_SECONDS, PTYD, Answer, through_pipe
from raw_client import ASKS, DOORS, GRACE, TASKS, text
from test_policy import CONFIG, POLICY
from test_secrets import get, page

RUN = "echo ran >> made; cat made"
pytestmark = pytest.mark.environment(PTYD_TASK_GRACE=GRACE)


@pytest.fixture
async def machine(machine):
    """A machine with a policy, and a profile without one."""
    machine.configure(CONFIG + "[profiles.free]\nshell = 'bash'\n", POLICY)
    yield machine


def decide(url, decision="allow", **headers):
    """The page's form."""
    return httpx2.post(url, data={"decision": decision}, headers=headers, timeout=CALL_SECONDS)


async def asked(machine) -> str:
    """The id of the approval that waits."""
    async with asyncio.timeout(CALL_SECONDS):
        while not (found := re.search(r"^(a0-\w{10})  pending", await asyncio.to_thread(machine.ptyd, "approvals"), re.M)):
            pass
    return found[1]


async def begun(client, machine) -> str:
    """A session under the policy, in the project."""
    started = await client.call("start_terminal_session", cwd=str(machine.project))
    return started["structuredContent"]["session_id"]


async def parked(client, session, capabilities, command=RUN) -> str:
    """The task as which a command waits for a person."""
    result = await client.call("execute_in_terminal", capabilities=capabilities, session_id=session, command=command)
    assert (result["resultType"], result["status"]) == ("task", "working"), result
    assert "waiting for approval a0-" in result["statusMessage"], result
    return result["taskId"]


@DOORS
# promise: policy-8
async def test_a_task_sends_its_person_to_a_page_and_continues_with_the_decision(served, client):
    session = await begun(client, served)
    task = await parked(client, session, ASKS)
    assert (await client.get(task))["statusMessage"].endswith(f"waiting for approval {task}")
    at = (await client.question(task))[1]["url"]
    shown = page(get(at).text)
    assert (shown["Command"], shown["Session"].split(" (")[0]) == (RUN, session), shown
    # Other commands of the session run meanwhile.
    other = await client.call("execute_in_terminal", capabilities={}, session_id=session, command="echo other")
    assert text(other).startswith("other\n"), other
    assert decide(at, "maybe").status_code == 422
    assert decide(at).status_code == 200
    done = await client.over(task)
    assert done["status"] == "completed" and text(done).startswith("ran\n[exit 0"), done
    assert decide(at, "deny").status_code in (404, 409)
    assert "ran\nran" not in text(await client.call("get_terminal_output", session_id=session))
    # A denied one is told so.
    task = await parked(client, session, ASKS, "touch denied")
    assert decide((await client.question(task))[1]["url"], "deny").status_code == 200
    assert "has denied approval" in text(await client.over(task))


@DOORS
# promise: policy-8
async def test_a_task_of_a_client_that_sends_nobody_to_pages_waits_for_the_command_line(served, client):
    session = await begun(client, served)
    task = await parked(client, session, TASKS, f"{RUN}; sleep 1")
    served.ptyd("approvals", "allow", task)
    # It takes longer than a request, and stays this one task.
    done = await client.over(task)
    assert (done["status"], done["taskId"]) == ("completed", task) and text(done).startswith("ran\n[exit 0"), done
    task = await parked(client, session, TASKS, "touch cancelled")
    await client.cancel(task)
    assert (await client.over(task))["status"] == "cancelled"
    served.ptyd("approvals", "allow", task)
    # The decision comes too late for it.
    assert [*served.home.rglob("cancelled"), *served.project.rglob("cancelled")] == []


@DOORS
# promise: policy-8
async def test_the_wait_ends_if_a_person_ignores_the_page_and_the_next_server_reports_the_state(served, client, door):
    session = await begun(client, served)
    task = await parked(client, session, ASKS)
    await client.question(task)
    await client.ask("tasks/update", taskId=task, inputResponses={"approval": {"action": "decline"}})
    done = await client.over(task)
    assert done["status"] == "completed" and f"waiting for approval {task}" in text(done), done
    task = await parked(client, session, ASKS, "touch lost")
    await served.kill_server() if door == "stdio" else served.serve_again()
    done = await client.over(task)
    assert done["status"] == "completed" and "no longer known" in text(done), done


@pytest.mark.parametrize("door", ["http"])
# promise: policy-8
async def test_no_program_in_a_session_decides_at_the_page(served, client):
    session = await begun(client, served)
    task = await parked(client, session, ASKS)
    at = (await client.question(task))[1]["url"]
    # It is in a session that nothing confines, of the same user, and has the server's own token.
    started = await client.call("start_terminal_session", profile="free")
    free = started["structuredContent"]["session_id"]
    for head, code in (("", "401"), (f"--user x:{served.token}", "403")):
        curl = f"curl -s -o /dev/null -w '%{{http_code}}' {head} -d decision=allow {at}"
        answer = text(await client.call("execute_in_terminal", capabilities={}, session_id=free, command=curl))
        assert answer.startswith(f"{code}\n"), answer
    assert f"{task}  pending" in served.ptyd("approvals")
    # Nor does the token alone: whoever shows it may be such a program. A named admin token is a person's.
    assert decide(at.replace("/a0-", "/a0-x")).status_code == 404
    assert decide(at).status_code == 200
    assert text(await client.over(task)).startswith("ran\n")


@pytest.mark.parametrize("door", ["http"])
# promise: policy-8
async def test_a_process_that_an_ended_session_has_left_decides_at_no_page(served, client):
    session = await begun(client, served)
    task = await parked(client, session, ASKS)
    at = (await client.question(task))[1]["url"]
    request = {"profile": "free", "onEnd": "keep", "cwd": str(served.project)}
    async with served.http() as http:
        free = (await http.post("/terminals", json=request)).json()["id"]
    curl = f"curl -s -o /dev/null -w '%{{http_code}}' -d decision=allow {at} > answer"
    # The daemon's environment has the session's tag, and curl's has none.
    daemon = f"until [ -e gone ]; do sleep 0.1; done; env -i PATH=$PATH sh -c \"{curl}\""
    (served.project / "daemon").write_text(daemon)
    os.mkfifo(served.project / "answer")
    left = await client.call("execute_in_terminal", session_id=free, command="(setsid sh daemon </dev/null >/dev/null 2>&1 &)")
    assert "[exit 0" in text(left), left
    await asyncio.to_thread(served.ptyd, "kill", free)
    (served.project / "gone").touch()
    assert await through_pipe((served.project / "answer").read_text) == "401"
    assert f"{task}  pending" in served.ptyd("approvals")


async def agent(machine, callback):
    """The official SDK's client, with an answer to elicitations or without."""
    server = StdioServerParameters(command=str(PTYD), args=["mcp", "--detach", "0"], env=machine.env, cwd=machine.project)
    return SdkClient(stdio_client(server), elicitation_callback=callback)


@pytest.mark.parametrize("decision", ["allow", "deny", "decline"])
# promise: policy-8
async def test_the_sdks_client_sends_its_person_to_the_page(machine, decision):
    seen = []

    async def callback(_context, params):
        seen.append(params)
        if decision == "decline":
            return ElicitResult(action="decline")
        assert (await asyncio.to_thread(decide, params.url, decision)).status_code == 200
        return ElicitResult(action="accept")

    async with await agent(machine, callback) as client:
        answer = Answer.of(await client.call_tool("terminal", {"command": RUN}))
    [params] = seen
    assert params.mode == "url" and "ptyd approvals" in params.message, params
    wanted = {"allow": "ran\n[exit 0", "deny": "has denied approval", "decline": "waiting for approval a0-"}[decision]
    assert wanted in answer.text, answer.text


# promise: policy-8
async def test_a_client_without_elicitation_and_tasks_waits_in_its_call(machine):
    told = []

    async def note(_progress, _total, message):
        told.append(message)

    async with await agent(machine, None) as client:
        call = asyncio.create_task(client.call_tool("terminal", {"command": RUN}, progress_callback=note))
        approval = await asked(machine)
        machine.ptyd("approvals", "allow", approval)
        assert Answer.of(await call).output == "ran"
        assert f"waiting for approval {approval}" in told, told
        # A later call of the session does not wait behind a person.
        first = asyncio.create_task(client.call_tool("terminal", {"command": "touch first"}))
        await asked(machine)
        second = Answer.of(await client.call_tool("terminal", {"command": "echo second", "timeout": 0.1}))
        assert "needs approval" in Answer.of(await first).text
        assert "needs approval" in second.text, "the session has run something unproven"
