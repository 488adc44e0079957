"""A task whose program reads a password asks its client to send a person to the page for it (docs/decisions/0044)."""

import json
import re

import pytest

from raw_client import ASKS, DOORS, GRACE, TASKS, text
from test_secrets import READS, SECRET, get, post

pytestmark = pytest.mark.environment(PTYD_TASK_GRACE=GRACE, PTYD_LOG="trace")


@pytest.fixture
async def client(client):
    """A client that sends people to pages, and all that it was told."""
    client.heard, send = [], client.send

    async def noted(message):
        client.heard.append(answer := await send(message))
        return answer

    client.send = noted
    yield client


async def started(client, command, session=None, **arguments):
    """A session, and the task of a command in it whose program asks."""
    session = session or await client.session()
    run = {"session_id": session, "command": command} | arguments
    result = await client.call("execute_in_terminal", capabilities=ASKS, **run)
    assert (result["resultType"], result["status"]) == ("task", "working"), result
    return session, result["taskId"]


async def reply(client, task, key, action):
    """A person's reply, as a host reports it."""
    answer = await client.ask("tasks/update", taskId=task, inputResponses={key: {"action": action}})
    assert answer["result"] == {"resultType": "complete"}


async def end(client, task) -> str:
    """The text that the model reads at the end of a task."""
    done = await client.over(task)
    assert done["status"] == "completed", done
    return text(done)


@DOORS
# promise: mcp-8
async def test_a_task_sends_a_person_to_the_page(served, client):
    fake = "python3 -c 'import getpass; print(len(getpass.getpass(\"[sudo] password for root: \")))'; sleep 1; echo more"
    session, task = await started(client, f"( {fake} )")
    key, asked = await client.question(task)
    assert key == "p1"
    # It is named as what it is.
    said = re.fullmatch(
        rf'(\S+), which runs as (\S+), reads a secret in {session} \("(.*)"\)\. Its own words: "\[sudo\] password for root: "\. '
        rf"Type it at the page, or run: ptyd send --secret {session}",
        asked["message"],
    )
    assert said and "python3" in said[1], asked["message"]
    assert [await client.question(task) for _ in range(3)] == [(key, asked)] * 3
    assert post(asked["url"]).status_code == 200
    done = await end(client, task)
    assert [str(len(SECRET)), "more"] == done.splitlines()[-3:-1] and "[exit 0" in done, done
    # A late reply changes nothing.
    await reply(client, task, key, "decline")
    assert await end(client, task) == done
    assert SECRET not in json.dumps(client.heard, ensure_ascii=False)
    assert served.files_holding(SECRET.encode()) == []


@DOORS
# promise: mcp-8
async def test_each_prompt_and_each_repetition_has_a_key_of_its_own(served, client):
    session, task = await started(client, "read -sp 'Same? ' a; echo; read -sp 'Same? ' b; echo; echo $a-$b")
    first, asked = await client.question(task)
    # They said that they were there, and were not.
    await reply(client, task, first, "accept")
    second, again = await client.question(task)
    assert (first, second, again) == ("p1", "p2", asked)
    await reply(client, task, first, "decline")
    assert post(asked["url"], "one").status_code == 200
    third, other = await client.question(task)
    assert third == "p3" and other["url"] != asked["url"]
    assert get(asked["url"]).status_code in (404, 409)
    assert post(other["url"], "two").status_code == 200
    assert "one-two" in (await end(client, task)).splitlines()
    # It is the model's again where nobody types it.
    for action, why in (("decline", "a person declined"), ("cancel", "nobody answered"), ("accept", "nobody answered")):
        _, task = await started(client, READS, session)
        for key in ("p1", "p2", "p3") if action == "accept" else ("p1",):
            assert (await client.question(task))[0] == key
            await reply(client, task, key, action)
        done = await end(client, task)
        assert re.search(rf"wants a password · .*{why}", done), done
        await client.call("send_input_to_terminal", session_id=session, keys=["C-c"])


@DOORS
# promise: mcp-8
async def test_a_question_ends_when_somebody_else_answers_or_the_task_is_cancelled(served, client):
    session, task = await started(client, READS)
    await client.question(task)
    typed = await client.call("send_input_to_terminal", session_id=session, input="four\n")
    assert "got 4" in text(typed) + (done := await end(client, task)) and "[exit 0" in done, done
    _, task = await started(client, READS, session)
    _, asked = await client.question(task)
    await client.cancel(task)
    assert (await client.over(task))["status"] == "cancelled"
    assert post(asked["url"]).status_code in (404, 409)
    assert "idle" in text(await client.call("get_terminal_output", session_id=session))


@DOORS
# promise: mcp-8
async def test_the_next_server_asks_again(served, client, door):
    session, task = await started(client, READS)
    key, asked = await client.question(task)
    await served.kill_server() if door == "stdio" else served.serve_again()
    state = await client.get(task)
    assert state["status"] in ("working", "input_required"), state
    again, other = await client.question(task)
    assert (key, again, other["url"] != asked["url"]) == ("p1", "p2", True)
    assert post(other["url"], "fünf!").status_code == 200
    assert "got 5" in (await end(client, task)).splitlines()


@DOORS
# promise: mcp-8
async def test_a_request_that_sends_nobody_to_pages_is_answered_at_once(served, client):
    session = await client.session()
    run = {"session_id": session, "command": READS}
    for capabilities in (TASKS, TASKS | {"elicitation": {"form": {}}}, {"elicitation": {"url": {}}}):
        answer = await client.call("execute_in_terminal", capabilities=capabilities, **run)
        assert "wants a password" in text(answer), answer
        await client.call("send_input_to_terminal", session_id=session, keys=["C-c"])
    # Nor is one that wants its answer sooner.
    answer = await client.call("execute_in_terminal", capabilities=ASKS, timeout=0.3, **run)
    assert "wants a password" in text(answer), answer
