"""A wall clock that is set by an hour or a day changes nothing that takes time: waits, time limits, tasks, positions, the order of logs.

The file behind `PTYD_TEST_WALL_CLOCK` sets the clock of the case's processes alone. Each case waits for events, and measures with a clock
that nobody sets.
"""

import asyncio
import json
import time
from datetime import datetime, timedelta, timezone

import pytest

from mcp_client import CALL_SECONDS, at_least
from raw_client import GRACE, gated, over_http, text

HOUR, DAY = 3600, 86400
STEPS = pytest.mark.parametrize("step", [HOUR, -HOUR, DAY, -DAY], ids=["hour", "hour_back", "day", "day_back"])

pytestmark = pytest.mark.environment(PTYD_TASK_GRACE=GRACE)


@pytest.fixture
def machine(machine):
    """A machine whose clock the case sets by writing seconds to a file."""
    clock = machine.root / "clock"
    machine.env["PTYD_TEST_WALL_CLOCK"] = str(clock)
    machine.set_clock = lambda step: clock.write_text(str(step))
    return machine


@pytest.fixture
async def rest(served):
    """Asks over REST, and returns status and JSON."""
    async with served.http() as http:

        async def ask(method, path, body=None, **headers):
            answer = await http.request(method, path, json=body, headers=headers)
            return answer.status_code, answer.json()

        yield ask


async def a_session(rest, **fields):
    status, session = await rest("POST", "/terminals", {"shell": "bash"} | fields)
    assert status == 201, session
    return f"/terminals/{session['id']}"


async def is_over(rest, at):
    """The end of a session, once it has one."""
    async with asyncio.timeout(CALL_SECONDS):
        while (session := (await rest("GET", at))[1])["status"] != "terminated":
            await rest("POST", f"{at}/wait", {"timeout": 0.2, "quietMs": 60_000})
    return session


async def runs(rest, at):
    """The command of a session is on record."""
    async with asyncio.timeout(CALL_SECONDS):
        while not (await rest("GET", at))[1].get("currentCommand"):
            pass


async def events(served, last=None):
    """The events of all sessions as they come, with their numbers."""
    async with served.http(**({} if last is None else {"Last-Event-ID": last})) as http:
        async with http.stream("GET", "/events") as answer:
            number = None
            async for line in answer.aiter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    number = value
                elif name == "data":
                    yield number, json.loads(value)


@STEPS
# promise: limit-9
async def test_a_step_of_the_clock_ends_no_wait_early_or_late(served, rest, step):
    at = await a_session(rest)
    with at_least(2):
        wait = asyncio.create_task(rest("POST", f"{at}/execute", {"command": "sleep 600", "timeout": 2, "onTimeout": "interrupt"}))
        await runs(rest, at)
        served.set_clock(step)
        status, ended = await wait
    assert (status, ended["exitCode"]) == (200, 130), ended


@STEPS
async def test_a_step_of_the_clock_ends_no_session_and_delays_the_end_of_none(served, rest, step):
    lives = [await a_session(rest, **{limit: 1800}) for limit in ("maxAge", "inactivityTimeout")]
    ends = [await a_session(rest, **{limit: 4}) for limit in ("maxAge", "inactivityTimeout")]
    served.set_clock(step)
    reasons = [(await is_over(rest, at))["exit"]["reason"] for at in ends]
    assert [("maxAge" in reasons[0]), ("inactivityTimeout" in reasons[1])] == [True, True], reasons
    for at in lives:
        status, answer = await rest("POST", f"{at}/execute", {"command": "echo alive"})
        assert answer["output"] == "alive\n", answer


@STEPS
async def test_a_step_of_the_clock_is_in_no_duration(served, rest, step):
    at, gate = await a_session(rest), served.gate()
    begun = time.monotonic()
    run = asyncio.create_task(rest("POST", f"{at}/execute", {"command": f"cat {gate}", "timeout": CALL_SECONDS}))
    await runs(rest, at)
    served.set_clock(step)
    await served.open_gate()
    status, ended = await run
    took = (time.monotonic() - begun) * 1000
    assert status == 200 and 0 < ended["durationMs"] <= took, ended
    # The next server reads the same from the events, and the history keeps it when the session has ended.
    served.serve_again()
    status, again = await rest("GET", f"{at}/commands/{ended['id']}")
    await rest("DELETE", f"{at}?force=true")
    status, listed = await rest("GET", f"{at}/commands")
    assert [again["durationMs"], listed["commands"][0]["durationMs"]] == [ended["durationMs"]] * 2


@STEPS
async def test_the_next_server_takes_no_session_for_old_after_a_step(served, rest, step):
    sessions = [await a_session(rest, **{limit: 1800}) for limit in ("maxAge", "inactivityTimeout")]
    short = await a_session(rest, maxAge=6)
    limited = await a_session(rest, limits={"commandSeconds": 1800})
    await rest("POST", f"{limited}/execute", {"command": "sleep 600", "waitForCompletion": False})
    served.set_clock(step)
    served.serve_again()
    for at in sessions:
        status, answer = await rest("POST", f"{at}/execute", {"command": "echo alive"})
        assert (status, answer.get("output")) == (200, "alive\n"), answer
    assert "maxAge" in (await is_over(rest, short))["exit"]["reason"]
    status, session = await rest("GET", limited)
    assert session["currentCommand"], session
    assert (await rest("GET", f"{limited}/signals"))[1] == {"signals": []}


@STEPS
async def test_a_command_has_its_time_limit_over_a_step(served, rest, step):
    at = await a_session(rest, limits={"commandSeconds": 3})
    with at_least(3):
        run = asyncio.create_task(rest("POST", f"{at}/execute", {"command": "sleep 600", "timeout": 60, "waitForCompletion": True}))
        await runs(rest, at)
        served.set_clock(step)
        status, ended = await run
    assert (status, ended["exitCode"]) == (200, 130), ended


@STEPS
async def test_a_task_ends_at_its_timeout_over_a_step_and_over_a_restart(served, step):
    async with over_http(served) as client:
        session = await client.session()
        task = await client.start("execute_in_terminal", session_id=session, command="sleep 600", timeout=3, on_timeout="interrupt")
        kept = await client.session()
        long = await client.start("execute_in_terminal", session_id=kept, command="sleep 600", timeout=1200)
        served.set_clock(step)
        done = await client.over(task)
        assert text(done).rpartition("\n")[2].startswith("[exit 130 · INT · "), text(done)
        served.serve_again()
        assert (await client.get(long))["status"] == "working"
        assert text(await client.get(task)) == text(done)


@STEPS
async def test_a_step_hides_no_output_and_a_key_runs_once(served, rest, step):
    at = await a_session(rest)
    keyed = {"Idempotency-Key": "once"}
    status, first = await rest("POST", f"{at}/execute", {"command": "echo first"}, **keyed)
    # A command whose keys the shell has not read yet, and which has no echo for as long.
    await rest("POST", f"{at}/input", {"input": "sleep 600", "endWithNewline": True, "timeout": 0})
    served.set_clock(step)
    await rest("POST", f"{at}/signal", {"signal": "INT"})
    async with asyncio.timeout(CALL_SECONDS):
        while (answer := await rest("POST", f"{at}/execute", {"command": "echo second"}))[0] != 200:
            pass
    assert answer[1]["output"] == "second\n"
    status, again = await rest("POST", f"{at}/execute", {"command": "echo first"}, **keyed)
    assert (again["id"], again["output"]) == (first["id"], "first\n")
    status, shown = await rest("GET", f"{at}/output?since=last&view=text")
    status, commands = await rest("GET", f"{at}/commands")
    numbers = [int(command["id"].lstrip("c")) for command in commands["commands"]]
    assert numbers in (sorted(numbers), sorted(numbers, reverse=True)), numbers
    status, recording = await rest("GET", f"{at}/output?since=0&view=text")
    assert "second" in recording["text"]


@STEPS
async def test_positions_by_time_and_by_number_skip_nothing_over_a_step(served, rest, step):
    at = await a_session(rest)
    begun = datetime.now(timezone.utc) - timedelta(seconds=1)
    for word, clock in (("one", step), ("two", 0), ("three", step)):
        await rest("POST", f"{at}/execute", {"command": f"echo {word}"})
        served.set_clock(clock)
    # Output since a time begins no later than what was printed then.
    status, shown = await rest("GET", f"{at}/output?since={begun.strftime('%Y-%m-%dT%H:%M:%SZ')}&view=text")
    assert [word for word in ("one", "two", "three") if f"\n{word}" in shown["text"]] == ["one", "two", "three"], shown
    # A recording has all of it, and its times do not run backward.
    async with served.http() as http:
        recording = [json.loads(line) for line in (await http.get(f"{at}/recording?version=2")).text.splitlines()[1:]]
    times = [line[0] for line in recording]
    assert times == sorted(times)
    assert all(word in "".join(line[2] for line in recording) for word in ("one", "two", "three"))
    # The events of all sessions have numbers that rise by one.
    await rest("DELETE", f"{at}?force=true")
    numbers = []
    async for number, event in events(served, "00000000-7"):
        if event["event"] == "gap":
            continue
        numbers.append(int(number.rpartition("-")[2]))
        if event["event"] == "session.terminated":
            break
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), numbers


@STEPS
async def test_the_audit_log_keeps_its_order_and_misses_no_end_over_a_step(served, rest, step):
    at = await a_session(rest)
    for number in range(3):
        await rest("POST", f"{at}/execute", {"command": f"echo {number}"})
        served.set_clock(step)
    gate = served.gate()
    await rest("POST", f"{at}/execute", {"command": f"cat {gate}", "waitForCompletion": False})
    await runs(rest, at)
    # The command ends while there is no server, and the next one finds another time.
    served.process.kill()
    served.process.wait()
    served.set_clock(0)
    await served.open_gate()
    served.serve_again()
    await rest("POST", f"{at}/wait", {"timeout": 60})
    await rest("POST", f"{at}/execute", {"command": "echo last"})
    session = at.rpartition("/")[2]
    async with asyncio.timeout(CALL_SECONDS):
        ends = []
        while "c5" not in ends:
            lines = (await rest("GET", f"/audit?session={session}&limit=500"))[1]["lines"]
            ends = [line["command"] for line in reversed(lines) if line["event"] == "end"]
    # A server that is killed may have written the last end before it.
    assert list(dict.fromkeys(ends)) == ["c1", "c2", "c3", "c4", "c5"], ends
    await rest("DELETE", f"{at}?force=true")


@STEPS
async def test_ended_sessions_stay_and_are_found_over_a_step(served, rest, step):
    ended = {}
    for word in ("old", "new"):
        at = await a_session(rest)
        ended[at] = word
        await rest("POST", f"{at}/execute", {"command": f"echo {word}"})
        await rest("DELETE", f"{at}?force=true")
        served.set_clock(step)
    served.serve_again()
    status, found = await rest("GET", "/terminals?status=terminated")
    assert {f"/terminals/{session['id']}" for session in found["terminals"]} == set(ended)
    for at, word in ended.items():
        status, command = await rest("GET", f"{at}/commands/c1")
        assert (command["exitCode"], command["output"]) == (0, f"{word}\n"), command
