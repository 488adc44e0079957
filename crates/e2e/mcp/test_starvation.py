"""A server without a process or a page of memory to be had answers, refuses with the name of the limit, and recovers.

Each case has a control group of its own, so nothing else on the machine starves.
"""

import asyncio
import os
import secrets
from pathlib import Path

import pytest

from mcp_client import CALL_SECONDS, hindrance

ROOT = Path("/sys/fs/cgroup")
# The names of a limit and of what is used, in the second version of control groups and in the first.
FILES = {
    "pids": [("pids.max", "pids.current")] * 2,
    "memory": [("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")],
}

pytestmark = pytest.mark.not_confined("the tiers have no part in it")


class Group:
    """A control group with one limit, for the server of a case and whatever it starts."""

    def __init__(self, controller: str):
        is_second = (ROOT / "cgroup.controllers").exists()
        self.most, self.used = FILES[controller][0 if is_second else 1]
        self.folder = ROOT / ("" if is_second else controller) / f"ptyd-test-{secrets.token_hex(4)}"
        try:
            self.folder.mkdir()
            if not (self.folder / self.most).exists():
                self.folder.rmdir()
                raise FileNotFoundError(self.most)
        except OSError as why:
            pytest.skip(f"no control group can be made here: {why}")

    def take(self, pids) -> None:
        """Moves processes into it."""
        for pid in pids:
            (self.folder / "cgroup.procs").write_text(str(pid))

    def in_use(self) -> int:
        return int((self.folder / self.used).read_text())

    def limit(self, most: int | None) -> None:
        """Sets the limit, or removes it."""
        none = "-1" if self.most == "memory.limit_in_bytes" else "max"
        (self.folder / self.most).write_text(none if most is None else str(most))

    async def close(self) -> None:
        """Gives its processes back, and removes it."""
        self.limit(None)
        async with asyncio.timeout(CALL_SECONDS):
            while pids := (self.folder / "cgroup.procs").read_text().split():
                for pid in pids:
                    try:
                        (self.folder.parent / "cgroup.procs").write_text(pid)
                    except ProcessLookupError:
                        pass
        self.folder.rmdir()


@pytest.fixture
async def group(request):
    group = Group(request.param)
    yield group
    await group.close()


@pytest.fixture
async def rest(served):
    """Asks over REST, and returns status and answer."""
    async with served.http() as http:

        async def ask(method, path, body=None):
            answer = await http.request(method, path, json=body)
            return answer.status_code, answer.json() if "json" in answer.headers["content-type"] else answer.text

        yield ask


async def a_session(rest):
    status, session = await rest("POST", "/terminals", {"shell": "bash"})
    assert status == 201, session
    return f"/terminals/{session['id']}"


@pytest.mark.parametrize("group", ["pids"], indirect=True)
# promise: limit-4
async def test_a_server_without_a_process_to_be_had_answers_and_names_the_limit(served, rest, group):
    one, other, ended = [await a_session(rest) for _ in range(3)]
    await rest("POST", f"{ended}/execute", {"command": "echo ended"})
    await rest("DELETE", f"{ended}?force=true")
    group.take(served.processes())
    group.limit(group.in_use())
    made = []
    # The spare holder is the last process that there is for a session.
    while (answer := await rest("POST", "/terminals", {"shell": "bash"}))[0] == 201:
        made.append(f"/terminals/{answer[1]['id']}")
        assert len(made) < 3
    status, refused = answer
    assert (status, refused["code"]) == (503, "resources_exhausted"), refused
    assert "the control group may have" in refused["detail"], refused
    # The server answers requests that need no further process, also from the disk.
    of_sessions = (f"{ended}/commands/c1", f"{one}/screen", f"{one}/search?q=x")
    for path in ("/terminals", "/terminals?status=terminated", "/audit?limit=1", "/metrics", *of_sessions):
        status, answer = await rest("GET", path)
        assert status == 200, (path, answer)
    status, answer = await rest("POST", f"{one}/execute", {"command": "echo alive"})
    assert (answer["exitCode"], answer["output"]) == (0, "alive\n"), answer
    # An ended session makes room, and all is well once the limit is gone.
    await rest("DELETE", f"{other}?force=true")
    group.limit(None)
    again = await a_session(rest)
    status, answer = await rest("POST", f"{again}/execute", {"command": "/bin/echo again"})
    assert (answer["exitCode"], answer["output"]) == (0, "again\n"), answer
    for at in (one, again, *made):
        await rest("DELETE", f"{at}?force=true")


@pytest.mark.parametrize("group", ["memory"], indirect=True)
async def test_a_program_that_takes_all_memory_ends_and_the_server_answers(served, rest, group):
    one, other = [await a_session(rest) for _ in range(2)]
    group.take(served.processes())
    group.limit(group.in_use() + (64 << 20))
    server = served.server()
    hog = "python3 -c 'b = bytearray(1 << 30)'"
    status, answer = await rest("POST", f"{one}/execute", {"command": hog, "timeout": 60})
    assert (status, answer["exitCode"]) == (200, 137), answer
    for at in (one, other):
        status, answer = await rest("POST", f"{at}/execute", {"command": "/bin/echo alive"})
        assert (answer["exitCode"], answer["output"]) == (0, "alive\n"), answer
    assert served.server() == server
    assert os.path.exists(f"/proc/{server}")
    await rest("DELETE", f"{await a_session(rest)}?force=true")
    for at in (one, other):
        await rest("DELETE", f"{at}?force=true")


# Each program takes less than the server, and all of them together more than there is. As the first one is killed, all end.
HOGS = """
import os, signal
end, open_end = os.pipe()
is_killed = False
while not is_killed:
    if os.fork() == 0:
        os.close(open_end)
        taken = os.urandom(8 << 20)
        os.read(end, 1)
        os._exit(0)
    is_killed = os.waitpid(-1, os.WNOHANG)[0] != 0
os.close(open_end)
try:
    while True:
        os.wait()
except ChildProcessError:
    os.kill(os.getpid(), signal.SIGKILL)
"""


def preference(pid) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


@pytest.mark.parametrize("group", ["memory"], indirect=True)
@pytest.mark.parametrize("tier", [None, "process", "sandbox"])
async def test_many_small_programs_that_take_all_memory_end_before_the_server_and_other_sessions(served, rest, group, tier):
    if tier is not None and (why := hindrance(tier)):
        pytest.skip(why)
    request = {"shell": "bash"}
    if tier is not None:
        served.configure(f'[profiles.confined]\ncwd = "{served.project}"\nconfinement = {{ tier = "{tier}" }}\n')
        request["profile"] = "confined"
    (served.project / "hogs.py").write_text(HOGS)
    status, hungry = await rest("POST", "/terminals", request)
    assert status == 201, hungry
    other = await a_session(rest)
    server = served.server()
    assert preference(hungry["pid"]) == min(preference(server) + 500, 1000)
    group.take(served.processes())
    group.limit(group.in_use() + (256 << 20))
    at = f"/terminals/{hungry['id']}"
    status, answer = await rest("POST", f"{at}/execute", {"command": f"python3 {served.project}/hogs.py", "timeout": 60})
    assert (status, answer["exitCode"]) == (200, 137), answer
    for session in (at, other):
        status, answer = await rest("POST", f"{session}/execute", {"command": "/bin/echo alive"})
        assert (status, answer.get("output")) == (200, "alive\n"), answer
    assert served.server() == server
    for session in (at, other):
        await rest("DELETE", f"{session}?force=true")
