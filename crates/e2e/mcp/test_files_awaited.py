"""A wait for a file sees what the session's programs see, in each tier: nothing of the server by a link in `/proc`."""

import os
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp_client import hindrance

pytestmark = pytest.mark.not_confined("each case has its own tier")


@asynccontextmanager
async def a_session(served, http, tier):
    """A session of a tier, or an unconfined one: a function that waits for a file, and one that runs a command."""
    if tier is not None:
        if why := hindrance(tier):
            pytest.skip(why)
        served.configure(f'[profiles.confined]\ncwd = "{served.project}"\nconfinement = {{ tier = "{tier}" }}\n')
    profile = {} if tier is None else {"profile": "confined"}
    answer = await http.post("/terminals", json={"shell": "bash", "cwd": str(served.project), **profile})
    assert answer.status_code == 201, answer.text
    at = f"/terminals/{answer.json()['id']}"

    async def is_seen(path, seconds=0.3) -> bool:
        body = {"until": [f"file:{path}"], "timeout": seconds}
        answer = await http.post(f"{at}/wait", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["endedBy"] == "matched"

    async def run(command) -> str:
        answer = await http.post(f"{at}/execute", json={"command": command})
        return answer.json()["output"].strip()

    yield is_seen, run
    await http.delete(f"{at}?force=true")


@pytest.mark.parametrize("tier", [None, "process", "sandbox"])
# promise: wait-5
async def test_a_wait_for_a_file_of_proc_self_is_about_the_shell(served, tier):
    async with served.http() as http, a_session(served, http, tier) as (is_seen, run):
        of_server = {int(name) for name in os.listdir(f"/proc/{served.server()}/fd")}
        of_shell = {int(name) for name in (await run("echo /proc/$$/fd/*")).replace(f"/fd/", " ").split() if name.isdigit()}
        only_server = max(of_server - of_shell)
        (served.project / "descriptors").symlink_to("/dev/fd")
        for way in ("/proc/self/fd", "/proc/thread-self/fd", "/proc/../proc/self/fd", "/dev/fd", "descriptors"):
            assert not await is_seen(f"{way}/{only_server}"), way
        assert await is_seen("/proc/self/stat", 30)
        if tier is None:
            assert await is_seen("/dev/stdin", 30)
        link = Path(served.project) / "link"
        link.symlink_to("/proc/self/root/etc/passwd")
        assert await is_seen("link") == (tier is None)
        (served.project / "made").write_text("")
        assert await is_seen("made", 30)
