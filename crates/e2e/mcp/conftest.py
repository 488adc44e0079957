"""The fixtures: for each test a machine of its own with an agent at it, and nothing left of it afterwards.

Only here a workspace is made and cleared; a process that is left behind fails the test that left it.
"""

import asyncio
import faulthandler
import gc
import os
import signal
import socket
import tempfile
from pathlib import Path

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

from containers import Podman
from mcp_client import ENGINE, IMAGE, LOOPBACK, NO_CONTAINER, PTYD, TIER, Workspace
from raw_client import over_http, over_stdio
from reachable import NAME


# The classes of the SDK stay for ever, so the collector looks at them less often.
gc.set_threshold(100_000)


def pytest_configure(config):
    """One clear sentence instead of a hundred failures. For the tier `container`, one engine with one image for all workers."""
    if not PTYD.is_file():
        raise pytest.UsageError(f"{PTYD} is not there: build it (cargo build -p ptyd), or name another in PTYD_BIN")
    if TIER == "container" and not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="ptyd-podman-")
        config.add_cleanup(folder.cleanup)
        try:
            podman = Podman(Path(folder.name))
            config.add_cleanup(podman.end)
            os.environ |= {ENGINE: str(podman.program), IMAGE: podman.imports_links()}
        except pytest.skip.Exception as skipped:
            os.environ[NO_CONTAINER] = str(skipped)


# Parts of the names of the cases that take longest.
LONGEST = (
    "each_package", "_image_", "swe_rex", "openhands", "ratatui", "recipes", "inspector", "only_documented_answers", "one_mebibyte",
    "types_are_made", "every_field",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Skips cases that no session of the tier can pass, if all sessions are in one, and says why. Begins with the cases that take longest,
    for which the other workers would wait at the end."""
    for item in items if TIER else []:
        for mark in item.iter_markers("not_confined"):
            why, *tiers = mark.args
            if TIER in tiers or not tiers:
                item.add_marker(pytest.mark.skip(reason=f"not in the tier {TIER}: {why}"))
    items.sort(key=lambda item: not any(name in item.name for name in LONGEST))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """Ends a worker whose teardown hangs. pytest itself stops its watch over a case that fails."""
    seconds, stderr = item.config.getini("faulthandler_timeout"), item.config.stash[fault_handler_stderr_fd_key]
    faulthandler.dump_traceback_later(float(seconds), file=stderr, exit=True)
    return (yield)


def pytest_terminal_summary(terminalreporter):
    """The rows of the table of whole tasks, as `docs/text-format.md` has it."""
    reports = [report for outcome in ("passed", "failed") for report in terminalreporter.stats.get(outcome, [])]
    rows = [text for report in reports for name, text in report.user_properties if name == "row"]
    if rows:
        terminalreporter.write_line("| task | calls then | looks | tokens | calls now | looks | tokens |")
    for row in rows:
        terminalreporter.write_line(row)


@pytest.fixture
def anyio_backend():
    """The event loop that the SDK's users run it on."""
    return "asyncio"


@pytest.fixture(scope="module")
def host():
    """A machine whose server has the sessions of all cases of a module, one case after the other."""
    host = Workspace()
    with host.serve("--listen", "127.0.0.1:0") as server:
        try:
            yield host
            asyncio.run(host.close())
        finally:
            server.terminate()
            host.remove()


@pytest.fixture
async def machine(request):
    """A machine without an agent, for tests that start theirs in their own way."""
    scale = request.node.get_closest_marker("time_scale")
    shares_server = request.node.get_closest_marker("one_server") and not scale and not TIER
    machine = Workspace(request.getfixturevalue("host") if shares_server else None)
    if scale:
        machine.env["PTYD_TEST_TIME_SCALE"] = str(*scale.args)
    for of_case in request.node.iter_markers("environment"):
        machine.env |= of_case.kwargs
    try:
        yield machine
        await machine.close()
    finally:
        print(machine.logs())
        machine.remove()


@pytest.fixture
async def workspace(machine):
    """A machine with an agent that has said hello and run nothing."""
    async with machine.another_agent() as agent:
        machine.agent = agent
        yield machine
        await machine.end_sessions()


@pytest.fixture
async def served(machine):
    """A server that was started by hand, its address and its token."""

    def end(signo):
        machine.process.send_signal(signo)
        machine.process.wait()
        machine.process.stdout.close()

    def serve_again():
        """Kills the server, and starts the next one at the same address."""
        end(signal.SIGKILL)
        machine.process = machine.serve("--listen", address)

    machine.serve_again = serve_again
    machine.process = machine.serve("--listen", "127.0.0.1:0")
    try:
        address = (machine.state / "listen").read_text().strip().removeprefix("http://")
        machine.url, machine.token = f"http://{address}/mcp", (machine.state / "token").read_text().strip()
        yield machine
        async with machine.another_agent() as machine.agent:
            await machine.end_sessions()
    finally:
        end(signal.SIGTERM)


@pytest.fixture
async def lines(machine):
    """A machine's `ptyd mcp` in raw lines, which leaves nothing behind and says nothing besides."""
    async with machine.lines("--detach", "0", stderr=-1) as lines:
        yield lines
    await machine.detached()
    process = lines.process
    # Standard output carries nothing but the protocol, standard error nothing while all is well.
    assert (process.returncode, await process.stdout.read(), await process.stderr.read()) == (0, b"", b"")


@pytest.fixture
async def client(served, door):
    """A client in raw messages at one of the doors."""
    async with over_stdio(served, "600") if door == "stdio" else over_http(served) as client:
        yield client


@pytest.fixture
def resolved(monkeypatch):
    """The public name is the proxy's."""
    real = socket.getaddrinfo

    def lookup(host, *arguments, **options):
        return real(LOOPBACK if host in (NAME, NAME.encode()) else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
