"""The Python client: its types are the document's, its package installs, and no disconnect costs a byte or runs a command twice."""

import asyncio
import os
import random
import shutil
import sys
import sysconfig
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from client_packages import CUTS, KILLS, PYTHON, TRANSPORTS, everything, import_python, python_env, run, shown
from cut_proxy import CutProxy
from mcp_client import PTYD

BIN = Path(sys.executable).parent
ptyd = import_python()


# promise: client-1
def test_the_types_are_made_from_the_document_and_the_package_is_typed(tmp_path):
    run(PYTHON / "make_models.sh", tmp_path / "models.py", PATH=f"{BIN}:{os.environ['PATH']}")
    assert (tmp_path / "models.py").read_text() == (PYTHON / "src/ptyd/models.py").read_text(), "run clients/python/make_models.sh"
    run(BIN / "mypy", "--cache-dir", tmp_path / "cache", cwd=PYTHON)


# promise: client-1
def test_the_wheel_installs_into_an_empty_environment(tmp_path):
    built = "import hatchling.build, sys; print(hatchling.build.build_wheel(sys.argv[1]))"
    wheel = tmp_path / run(sys.executable, "-c", built, tmp_path, cwd=PYTHON).split()[-1]
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    [own] = (tmp_path / "venv/lib").glob("python*/site-packages")
    # To install a wheel of pure Python is to unpack it.
    shutil.unpack_archive(wheel, own, "zip")
    # The packages that it needs are those of the suite: nothing is fetched.
    (own / "suite.pth").write_text(sysconfig.get_path("purelib"))
    told = run(python, "-c", "import ptyd; print(ptyd.__file__, ptyd.Ptyd, ptyd.models.Screen)", cwd=tmp_path)
    assert told.startswith(f"{own}/ptyd/__init__.py ") and (own / "ptyd/py.typed").exists()


async def work(session, folder: Path, is_half, is_enough) -> tuple[list[str], list[str]]:
    """Types lines until it is half enough, and runs commands until it is enough, each with a number of its own."""
    typed, ran = [], []
    listener = await session.start(f"while read -r line && [ $line != end ]; do echo $line >> {folder}/typed; done")
    while not typed or not is_half():
        typed.append(str(len(typed)))
        await listener.type(f"{typed[-1]}\n")
    await listener.type("end\n")
    assert (await listener.end()).code == 0
    while not ran or not is_enough():
        number = len(ran)
        done = await session.run(f"echo {number} >> {folder}/ran; seq {number} {number + 200}; (exit {number % 7})")
        assert (done.code, done.output) == (number % 7, "".join(f"{n}\n" for n in range(number, number + 201)))
        ran.append(str(number))
    return typed, ran


class Watched:
    """A session that works, and a client that watches it."""

    def __init__(self, session, folder):
        self.session, self.folder, self.seen = session, folder, []
        self.watching = asyncio.create_task(self._watch())

    async def _watch(self):
        async for chunk in self.session.output(follow=True):
            assert not chunk.gap
            self.seen.append(chunk.bytes)

    async def works(self, direct, is_half, is_enough):
        """Everything happened once, and every byte came."""
        typed, ran = await work(self.session, self.folder, is_half, is_enough)
        witness = await direct.session(self.session.id)
        await witness.close()
        await self.watching
        assert (self.folder / "typed").read_text().split() == typed
        assert (self.folder / "ran").read_text().split() == ran
        assert shown(b"".join(self.seen)) == shown(await everything(witness))


@pytest.mark.parametrize("transport", TRANSPORTS)
# promise: client-2
async def test_a_thousand_disconnects_cost_no_byte_and_run_nothing_twice(served, transport):
    address, seed = urlsplit(served.url), random.randrange(1 << 32)
    print(f"seed {seed}")
    async with (
        CutProxy(address.hostname, address.port, seed) as proxy,
        ptyd.AsyncPtyd(f"http://{address.netloc}", served.token) as direct,
        ptyd.AsyncPtyd(proxy.url, served.token, silence=0.3, transports=(transport,)) as client,
    ):
        session = await client.open()
        watched = Watched(session, served.root)
        await watched.works(direct, lambda: proxy.faults >= CUTS / 2, lambda: proxy.faults >= CUTS)


# promise: client-2
async def test_a_command_runs_once_and_its_output_is_whole_though_the_server_is_killed(served):
    url = served.url.removesuffix("/mcp")
    async with ptyd.AsyncPtyd(url, served.token, silence=5) as direct, ptyd.AsyncPtyd(url, served.token, silence=5) as client:
        killed = 0

        async def kill():
            nonlocal killed
            while killed < 2 * KILLS:
                await asyncio.to_thread(served.serve_again)
                killed += 1
                # The next one lives until the client has met it.
                await direct.sessions()

        watched = Watched(await client.open(), served.root)
        killing = asyncio.create_task(kill())
        await watched.works(direct, lambda: killed >= KILLS, lambda: killing.done())
        await killing


HAPPY = """
import os, sys
from ptyd import Ptyd

with Ptyd() as p, p.open(cwd="app") as sh:
    r = sh.run("pwd; (exit 3)", timeout=300)
    assert (r.code, r.ok, r.output) == (3, False, os.path.realpath("app") + "\\n"), r
    assert sh.start("echo quick").end().output == "quick\\n"
    sh.start("read -p 'Name? ' n; echo hi $n")
    sh.wait_for("Name?"); sh.type("Ada\\n")
    assert sh.wait_end().code == 0 and "hi Ada" in sh.screen().text
    sh.start("sleep 600")
    sh.keys("C-c")
    whole = b"".join(c.bytes for c in sh.output(since=0))
    assert b"hi Ada" in whole and sh.wait_end().code == 130
    # Its session is gone: nobody knows its code.
    assert sh.run("kill -9 $$").code is None
"""


@pytest.mark.parametrize("transport", TRANSPORTS)
# promise: client-2
async def test_a_refusal_of_a_proxy_is_a_lost_connection(transport):
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        head = "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: 16\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + b'{"message":"no"}')
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        address = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
        http = ptyd.AsyncPtyd(address, "token", patience=0.1).http
        with pytest.raises(ptyd.Unreachable, match="without a problem document"):
            await anext(ptyd._stream.follow(http, "s0-aaaaaaaaaa", 0, (transport,)))
        await http.client.aclose()


HANDLES = """
import sys
from ptyd import Ptyd, Refused

p = Ptyd(sys.argv[1], sys.argv[2], silence=3600)
with p.open() as sh:
    for name in f"{sh.id}?z", f"{sh.id}/output":
        try:
            p.session(name)
        except Refused as refused:
            assert refused.code == "session_not_found", refused
        else:
            raise AssertionError(name)
    sh.start("echo seen; read -r line")
    following = sh.output(follow=True)
    next(following)
    sh.type("\\n")
    sh.wait_end()
    # Output comes at once, however long one request may wait.
    started = sh.start("printf zero; sleep 0.2; printf one; read -r line; printf two")
    parts = started.bytes()
    whole = b""
    while b"one" not in whole:
        whole += next(parts)
    assert started.look()["status"] == "running"
    sh.type("\\n")
    assert (whole + b"".join(parts)).endswith(b"two")
p.close()
p.close()
following.close()
print("closed")
"""


# promise: client-1
async def test_an_id_is_never_a_query_and_a_closed_client_may_be_closed_again(served):
    url, env = served.url.removesuffix("/mcp"), python_env({})
    said = await asyncio.to_thread(run, sys.executable, "-W", "error", "-c", HANDLES, url, served.token, **env)
    assert said == "closed\n"


# promise: client-1
async def test_the_first_program_finds_the_server_of_the_command_line_and_starts_it(machine):
    (machine.project / "app").mkdir()
    env = python_env(machine.env) | {"PTYD_BIN": str(PTYD)}
    await asyncio.to_thread(run, sys.executable, "-c", HAPPY, cwd=machine.project, **env)
