"""ptyd as an agent meets it: `ptyd mcp` on stdio, spoken to by the official SDK, on a machine of its own.

Only this module starts ptyd, reads lines of facts and looks into /proc; the tests read like the product. Nothing here
waits on a clock: every wait is for an event and has a deadline.
"""

import asyncio
import concurrent.futures
import functools
import json
import os
import re
import secrets
import select
import shutil
import signal
import socket
import stat
import statistics
import subprocess
import tempfile
import threading
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpcore2
import httpx2
import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

REPOSITORY = Path(__file__).resolve().parents[3]
PTYD = Path(os.environ.get("PTYD_BIN") or REPOSITORY / "target/debug/ptyd").resolve()
IS_FULL = os.environ.get("PTYD_TEST_FULL") == "1"
# The one bound on real time, far beyond any wait of a test. A call that takes as long hangs; a slow machine fails nothing.
CALL_SECONDS = 300.0

# Each HTTP client would read all certificate authorities of the machine again.
httpcore2.default_ssl_context = functools.cache(httpcore2.default_ssl_context)

# The media types that a client of MCP over HTTP takes.
BOTH = {"Accept": "application/json, text/event-stream"}

# An address of loopback for this process alone (a pid has 22 bits), so that no other one is given a port of it.
LOOPBACK = f"127.{64 + (os.getpid() >> 16)}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"

_FACT = re.compile(r'(?:^| · )((?:(?<= )"(?:\\.|[^"\\])*"(?= · |$)|(?! · ).)+)')


@dataclass(frozen=True)
class Answer:
    """The answer of a tool: the output, and the line of facts taken apart."""

    text: str
    is_error: bool
    structured: dict | None = None
    facts: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, result) -> "Answer":
        """From the SDK's result; the one line of facts is checked wherever there has to be one."""
        [block] = result.content
        text, facts = block.text, []
        if not result.is_error:
            output, newline, line = text.rpartition("\n")
            assert line.startswith("[") and line.endswith("]"), f"no line of facts at the end of {text[-500:]!r}"
            # The time that a command took is told from a second on, which any of them takes on a slow machine.
            line = re.sub(r" · [\d.]+s(?= · |\]$)", "", line, count=1)
            text = output + newline + line
            facts = _FACT.findall(line[1:-1])
        return cls(text, bool(result.is_error), result.structured_content, facts)

    @property
    def output(self) -> str:
        """All above the line of facts, without the newline before it."""
        return self.text.rpartition("\n")[0]

    @property
    def last_line(self) -> str:
        """The output's last line, for where bash's own words about jobs may stand above it."""
        return self.output.rpartition("\n")[2]

    def fact(self, name: str) -> str | None:
        """The value of the first fact of this name: `fact("cwd")`."""
        return next((fact.removeprefix(f"{name} ") for fact in self.facts if fact.startswith(f"{name} ")), None)

    @property
    def exit(self) -> int | None:
        """The exit code of what ended; `None` while it runs."""
        code = self.fact("exit")
        return int(code) if code is not None and code.lstrip("-").isdigit() else None

    @property
    def is_running(self) -> bool:
        """Whether the command goes on."""
        return "still running" in self.facts

    @property
    def is_timed_out(self) -> bool:
        """Whether nothing ended the wait but its own time or a silence."""
        return any(fact == "timeout" or fact.startswith("no new output for") for fact in self.facts)

    @property
    def wants(self) -> str | None:
        """The input that the program waits for: `input`, `a password`."""
        wants = self.fact("wants")
        # Behind a password stands where a person types it.
        return wants and wants.partition(":")[0]

    @property
    def session_id(self) -> str | None:
        """The session, where the answer names it."""
        return self.fact("session")

    @property
    def next(self) -> str:
        """Where to read on."""
        position = self.fact("next")
        assert position is not None, self.text[-500:]
        return position


class Agent:
    """One MCP client with a `ptyd mcp` of its own."""

    def __init__(self, client: Client, shim: int):
        self.client = client
        self.shim = shim

    async def call(self, tool: str, /, *, on_progress=None, **arguments) -> Answer:
        """Calls any tool."""
        call = self.client.call_tool(
            tool, arguments, progress_callback=on_progress, read_timeout_seconds=CALL_SECONDS
        )
        return Answer.of(await call)

    async def terminal(self, command: str = "", /, **arguments) -> Answer:
        """The one-tool shell."""
        return await self.call("terminal", command=command, **arguments)

    async def session(self, **arguments) -> "Session":
        """Starts a session of the seven other tools."""
        shell = arguments.get("shell") or "sh"
        if "/" not in shell and not shutil.which(shell):
            pytest.skip(f"there is no {shell} on PATH")
        started = await self.call("start_terminal_session", **arguments)
        assert not started.is_error, started.text
        return Session(self, started.structured["session_id"], started)

    def at(self, session_id: str) -> "Session":
        """A session that is there already."""
        return Session(self, session_id, None)


@dataclass(frozen=True)
class Session:
    """One session, through the tools that name it."""

    agent: Agent
    id: str
    started: Answer | None

    async def run(self, command: str, /, **arguments) -> Answer:
        """Executes a command and waits for its end."""
        return await self.agent.call("execute_in_terminal", session_id=self.id, command=command, **arguments)

    async def type(self, text: str, /, **arguments) -> Answer:
        """Types text as it is."""
        return await self.agent.call("send_input_to_terminal", session_id=self.id, input=text, **arguments)

    async def press(self, *keys: str, **arguments) -> Answer:
        """Presses keys by their names."""
        return await self.agent.call("send_input_to_terminal", session_id=self.id, keys=list(keys), **arguments)

    async def read(self, **arguments) -> Answer:
        """Reads output."""
        return await self.agent.call("get_terminal_output", session_id=self.id, **arguments)

    async def to_the_end(self, answer: Answer, command_id: str) -> Answer:
        """The end of a command that a key has told to leave: its screen can rest before, while it writes or asks the terminal."""
        async with asyncio.timeout(CALL_SECONDS):
            while answer.is_running:
                answer = await self.read(command_id=command_id, timeout=1)
        return answer

    async def terminate(self, **arguments) -> Answer:
        """Ends the session."""
        return await self.agent.call("terminate_terminal_session", session_id=self.id, **arguments)

    async def pages(self, since: str, **arguments) -> str:
        """All text from a position on, read page by page as the answers say, until one has nothing more."""
        text = ""
        while True:
            page = await self.read(since=since, **arguments)
            text += page.text[: page.text.rindex("[")]
            if page.next == since:
                return text
            since = page.next

    async def until(self, happened) -> None:
        """Waits until this holds of the session's summary, by asking for nothing else: no output counts as seen."""
        async with asyncio.timeout(CALL_SECONDS):
            while True:
                listed = await self.agent.call("list_terminal_sessions", limit=200)
                if any(happened(t) for t in listed.structured["sessions"] if t["session_id"] == self.id):
                    return

    async def idle(self) -> None:
        """Waits until the shell is at its prompt."""
        await self.until(lambda summary: summary["foreground"] == "idle")


def hello(version: str) -> dict:
    """The first words of a client in raw messages, before the stateless era."""
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


def meta(capabilities: dict, version: str = "2026-07-28") -> dict:
    """The same, which in the stateless era each request has."""
    said = {"protocolVersion": version, "clientCapabilities": capabilities, "clientInfo": hello(version)["clientInfo"]}
    return {f"io.modelcontextprotocol/{name}": value for name, value in said.items()}


def last_message(answer) -> dict:
    """The last message of an answer over HTTP, of which others may be told before."""
    if answer.headers["content-type"] == "application/json":
        return answer.json()
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")][-1]


class Lines:
    """`ptyd mcp` in raw JSON lines."""

    def __init__(self, process):
        self.process = process

    async def send(self, message):
        """Sends a message."""
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        await self.process.stdin.drain()

    async def next(self):
        """The next message, whatever it is."""
        async with asyncio.timeout(CALL_SECONDS):
            return json.loads(await self.process.stdout.readline())

    async def ask(self, method, params=None, id=1):
        """Sends a request and takes the next message for its answer."""
        await self.send({"id": id, "method": method} | ({} if params is None else {"params": params}))
        return await self.next()

    async def initialize(self, version="2025-06-18"):
        """Shakes hands."""
        answer = await self.ask("initialize", hello(version), id=0)
        await self.send({"method": "notifications/initialized"})
        return answer


# With PTYD_TEST_TIER every session is in that tier of confinement.
TIER = os.environ.get("PTYD_TEST_TIER")
# In the tier `container`, all workers use one engine and its image, or say why there is none.
ENGINE, IMAGE, NO_CONTAINER = "PTYD_TEST_ENGINE", "PTYD_TEST_IMAGE", "PTYD_TEST_NO_CONTAINER"


@functools.cache
def hindrance(tier: str) -> str | None:
    """Why this machine cannot confine sessions so, in the words of `ptyd doctor`."""
    with tempfile.TemporaryDirectory(prefix="ptyd-") as home:
        env = {"HOME": home, "PTYD_STATE_DIR": f"{home}/state", "PTYD_RUNTIME_DIR": f"{home}/run", "PATH": os.environ["PATH"]}
        doctor = subprocess.run([PTYD, "doctor", "--json"], env=env, capture_output=True, timeout=CALL_SECONDS)
    if tier == "container" and (why := os.environ.get(NO_CONTAINER)):
        return why
    names = ["landlock"] if tier == "process" else ["landlock", "sandbox"]
    problems = [check["found"] for check in json.loads(doctor.stdout) if check["name"] in names and check["state"] != "ok"]
    return problems[0] if problems else None


class Workspace:
    """A user's machine with one agent at work: its own home, state, runtime folder and server, or the server of a host."""

    def __init__(self, host: "Workspace | None" = None):
        # Short, because a socket's whole path has 107 bytes.
        self.root = Path(tempfile.mkdtemp(prefix="ptyd-"))
        self.home, self.project = self.root / "home", self.root / "project"
        self.state = (host or self).root / "state"
        for folder in (self.home, self.project, self.root / "run", *([] if host else [self.state])):
            folder.mkdir(mode=0o700)
        # Without it fish starts a program in the background that reads all manual pages.
        for cache in ".local/share", ".cache":
            (self.home / cache / "fish/generated_completions").mkdir(parents=True, exist_ok=True)
        self.agent: Agent = None
        # The session of plain calls, once there is one.
        self.plain: Session | None = None
        self.env = {
            "HOME": str(self.home),
            "PATH": os.pathsep.join(["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "USER": "tester",
            "LOGNAME": "tester",
            "SHELL": "/bin/bash",
            "XDG_STATE_HOME": str(self.home / ".local/state"),
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "XDG_CACHE_HOME": str(self.home / ".cache"),
            "XDG_DATA_HOME": str(self.home / ".local/share"),
            "XDG_RUNTIME_DIR": str(self.root / "run"),
            "PTYD_STATE_DIR": str(self.state),
            "PTYD_RUNTIME_DIR": str((host or self).root / "run"),
        }
        if TIER:
            self.confine(TIER)

    def confine(self, tier: str) -> None:
        """Confines every session to the project's folder. A machine that cannot do that skips the case."""
        if why := hindrance(tier):
            pytest.skip(why)
        settings, env = f'tier = "{tier}", network = true, writable = ["{self.project}"], project_settings = true', ""
        if tier == "container":
            # Not the whole home, which holds ptyd's own files.
            files = [self.home / file for file in (".bashrc", ".config/fish/config.fish")]
            for file in files:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.touch()
            files += [self.home / cache / "fish/generated_completions" for cache in (".local/share", ".cache")]
            readable = json.dumps(["/usr", *map(str, files)])
            settings += f', engine = "{os.environ[ENGINE]}", image = "{os.environ[IMAGE]}", readable = {readable}'
            env = f'env = {{ HOME = "{self.home}" }}\n'
        self.configure(f'[profiles.default]\ncwd = "{self.project}"\n{env}confinement = {{ {settings} }}\n')

    def configure(self, config: str, policy: str | None = None) -> None:
        """Writes the user's configuration, and a policy."""
        folder = self.home / ".config/ptyd"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in {"config.toml": config, "policy.toml": policy}.items():
            if text is not None:
                (folder / name).write_text(text)

    async def terminal(self, command: str = "", /, **arguments) -> Answer:
        """The one-tool shell of the agent at this workspace."""
        return await self.agent.terminal(command, **arguments)

    async def session(self, **arguments) -> Session:
        """A further session of the agent at this workspace."""
        return await self.agent.session(**arguments)

    @asynccontextmanager
    async def another_agent(self, *options: str, mode: str = "auto", cwd: Path | None = None, **env: str):
        """A further client, with a `ptyd mcp` of its own."""
        # The SDK does not tell the process that it starts.
        note = self.root / f"shim-{secrets.token_hex(4)}"
        words = ["-c", 'echo $$ >"$0"; exec "$@"', str(note), str(PTYD), "mcp", *options]
        server = StdioServerParameters(command="/bin/sh", args=words, env=self.env | env, cwd=cwd or self.project)
        with open(self.root / "shim.log", "a") as log:
            async with Client(stdio_client(server, errlog=log), mode=mode) as client:
                # Without a handshake only an answer shows that it is there.
                await client.list_tools()
                yield Agent(client, int(note.read_text()))
        if "0" in options:
            await self.detached()

    @asynccontextmanager
    async def lines(self, *options: str, stderr=None, program=(PTYD,), **env: str):
        """A `ptyd mcp` in raw lines."""
        process = await asyncio.create_subprocess_exec(
            *program, "mcp", *options, env=self.env | env, cwd=self.project, stdin=-1, stdout=-1, stderr=stderr, limit=1 << 24
        )
        try:
            yield Lines(process)
        finally:
            process.stdin.close()
            async with asyncio.timeout(CALL_SECONDS):
                await process.wait()

    def http(self, token: str | None = None, **headers: str) -> httpx2.AsyncClient:
        """An HTTP client with the token of the server that was started by hand, or with another one."""
        headers = {"Authorization": f"Bearer {token or self.token}"} | headers
        return httpx2.AsyncClient(base_url=self.url.removesuffix("/mcp"), headers=headers, timeout=CALL_SECONDS)

    @asynccontextmanager
    async def agent_over_http(self, mode: str = "auto", token: str | None = None, query: str = "", **headers: str):
        """A client of that server, over HTTP."""
        async with self.http(token, **headers) as http:
            async with Client(streamable_http_client(self.url + query, http_client=http), mode=mode) as client:
                yield Agent(client, 0)

    def way(self, door: str, *options: str) -> dict:
        """The way to ptyd for a client that is a program of its own."""
        if door == "http":
            return {"url": self.url, "token": self.token}
        return {"command": str(PTYD), "args": ["mcp", *options], "env": self.env, "cwd": str(self.project)}

    def ptyd(self, *words: str) -> str:
        """The text that a command of ptyd prints for the user of this machine."""
        return subprocess.run(
            [PTYD, *words], env=self.env, check=True, capture_output=True, text=True, timeout=CALL_SECONDS
        ).stdout.strip()

    def serve(self, *options: str, stderr=subprocess.DEVNULL) -> subprocess.Popen:
        """Starts a server by hand, which listens."""
        process = subprocess.Popen([PTYD, "serve", *options], env=self.env, stdout=subprocess.PIPE, stderr=stderr)
        # The first line is printed once it listens.
        assert process.stdout.readline(), self.logs()
        return process

    # ---- time ----

    async def plain_call(self, times_measured: int = 9) -> float:
        """The median time of a call that waits for nothing, on this machine at this moment."""
        self.plain = self.plain or await self.session()
        times = []
        for _ in range(times_measured):
            begun = time.monotonic()
            assert (await self.plain.run("true")).exit == 0
            times.append(time.monotonic() - begun)
        return statistics.median(times)

    @asynccontextmanager
    async def promised(self, seconds: float):
        """Fails when the block takes longer than promised for a quiet machine and a hundred plain calls on this one."""
        before = await self.plain_call()
        begun = time.monotonic()
        yield
        took = time.monotonic() - begun
        # A machine that became slow within the block is slow behind it, too.
        slower = before if took <= seconds + 100 * before else max(before, await self.plain_call())
        assert took <= seconds + 100 * slower, f"took {took:.3f} s, a plain call {slower:.3f} s, and {seconds} s are promised"

    # ---- processes ----

    def processes(self, needle: str | None = None) -> dict[int, str]:
        """Processes that belong to this workspace: its folder (or the needle) is in their command line or environment. The spare holder
        belongs to the server, and ends with it."""
        needle = (needle or str(self.root)).encode()
        commands = ((int(name), command_if_of(name, needle)) for name in os.listdir("/proc") if name.isdigit())
        return {pid: command for pid, command in commands if command is not None and "/spare-" not in command}

    def shims(self) -> list[int]:
        """The `ptyd mcp` of this workspace."""
        return [pid for pid, command in self.processes().items() if command.startswith(f"{PTYD} mcp")]

    def holder(self, session_id: str) -> int:
        """The holder of a session."""
        [pid] = [p for p, c in self.processes(session_id).items() if c.startswith("ptyd-holder")]
        return pid

    def server(self) -> int | None:
        """The server's process, as its lock file tells."""
        try:
            pid = int((self.state / "lock").read_text())
        except (OSError, ValueError):
            return None
        return pid if command_if_of(pid, str(self.root).encode()) is not None else None

    async def kill_server(self, signo: int = signal.SIGKILL) -> None:
        """Sends the server a signal and waits for its end."""
        server = self.server()
        assert server is not None, "no server runs"
        with watched([server]) as ends:
            os.kill(server, signo)
            await ends()

    async def purge(self, session_id: str) -> None:
        """Ends a session, and removes it with all of its output."""
        remove = await asyncio.create_subprocess_exec(PTYD, "rm", "--force", session_id, env=self.env, stdout=-3)
        async with asyncio.timeout(CALL_SECONDS):
            assert await remove.wait() == 0

    def gate(self, name: str = "gate") -> Path:
        """A named pipe in the project's folder: a program that reads it goes on when the test opens it."""
        gate = self.project / name
        os.mkfifo(gate)
        return gate

    async def open_gate(self, text: str = "opened\n", name: str = "gate") -> None:
        """Lets the program that reads the gate go on, once it reads."""
        await through_pipe((self.project / name).write_text, text)

    def journal(self, session_id: str) -> bytes:
        """Every byte that a session printed."""
        return (self.state / "sessions" / session_id / "journal").read_bytes()

    def files_holding(self, secret: bytes) -> list[str]:
        """The files of this workspace in which these bytes stand."""
        files = [p for p in self.root.rglob("*") if stat.S_ISREG(p.lstat().st_mode)]
        return sorted(str(p.relative_to(self.root)) for p in files if secret in p.read_bytes())

    # ---- the end ----

    async def detached(self) -> None:
        """Waits until nothing but the server is left, for clients that leave with `--detach 0`."""
        processes = self.processes()
        # The server's spare holder has the server's command line until it executes its own program.
        of_server = processes.get(self.server())
        left = {pid for pid, command in processes.items() if command != of_server}
        with watched(left.difference(self.shims())) as ends:
            await ends()

    async def end_sessions(self) -> None:
        """Ends every session, with the agent at the workspace."""
        listed = await self.agent.call("list_terminal_sessions", limit=200)
        for terminal in listed.structured["sessions"]:
            ended = await self.agent.at(terminal["session_id"]).terminate(force=True)
            assert not ended.is_error, ended.text

    async def close(self) -> None:
        """Ends the server, and fails if any process of this workspace is left."""
        if self.server() is not None:
            # A session that ends with its client needs the server for that.
            with watched([pid for pid, command in self.processes().items() if command.startswith("ptyd-holder")]) as ends:
                await ends(is_strict=False)
            await self.kill_server(signal.SIGTERM)
        left = self.processes()
        with watched(left) as ends:
            left = {pid: left[pid] for pid in await ends(is_strict=False)}
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            await ends()
        assert left == {}, "processes are left"

    def remove(self) -> None:
        """Takes the machine's folder away."""
        shutil.rmtree(self.root, ignore_errors=True)

    def logs(self) -> str:
        """The logs of ptyd, for a failed test's report."""
        logs = [*self.state.glob("*.log"), self.root / "shim.log", *self.state.glob("sessions/*/holder.log")]
        return "\n".join(f"--- {p.name}\n{p.read_text(errors='replace')[-4000:]}" for p in logs if p.is_file())


async def through_pipe(function, *arguments):
    """Runs a function that blocks until another process opens the pipe. Nothing waits for its thread: the end of an event loop does for
    those of `to_thread`, and never ends if no process comes."""
    done = concurrent.futures.Future()
    done.set_running_or_notify_cancel()

    def run():
        try:
            done.set_result(function(*arguments))
        except OSError as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    async with asyncio.timeout(CALL_SECONDS):
        return await asyncio.wrap_future(done)


def free_port() -> int:
    """A port for a program that cannot choose one itself."""
    with socket.create_server((LOOPBACK, 0)) as free:
        return free.getsockname()[1]


def command_if_of(pid: int | str, needle: bytes) -> str | None:
    """The command line of a process that has this text there or in its environment. A zombie has neither."""
    try:
        # Without `open`, which takes ten times as long: each workspace looks at all processes of the machine.
        command = contents(f"/proc/{pid}/cmdline")
        if needle in command or needle in contents(f"/proc/{pid}/environ"):
            return command.replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        pass
    return None


def contents(path: str) -> bytes:
    """The bytes of a file, whose size the kernel does not tell."""
    pieces, fd = [], os.open(path, os.O_RDONLY)
    try:
        while piece := os.read(fd, 1 << 16):
            pieces.append(piece)
    finally:
        os.close(fd)
    return b"".join(pieces)


@contextmanager
def stopped(pid: int):
    """A process that stands still until the end of the block, as in a frozen control group."""
    os.kill(pid, signal.SIGSTOP)
    try:
        deadline = time.monotonic() + CALL_SECONDS
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            assert time.monotonic() < deadline, f"{pid} does not stop"
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def watched(pids):
    """Gives a wait for the end of all these processes, which answers with those that are still there."""
    open_fds = {}
    for pid in pids:
        try:
            open_fds[pid] = os.pidfd_open(pid)
        except ProcessLookupError:
            continue

    async def ends(is_strict: bool = True) -> list[int]:
        left = dict(open_fds)
        deadline = time.monotonic() + CALL_SECONDS
        while left and (patience := deadline - time.monotonic()) > 0:
            poll = select.poll()
            for fd in left.values():
                poll.register(fd, select.POLLIN)
            ready = {fd for fd, _ in await asyncio.to_thread(poll.poll, patience * 1000)}
            left = {pid: fd for pid, fd in left.items() if fd not in ready}
        assert not (is_strict and left), f"{sorted(left)} did not end"
        return sorted(left)

    try:
        yield ends
    finally:
        for fd in open_fds.values():
            os.close(fd)


@contextmanager
def at_least(seconds: float):
    """Fails when the block is over too early."""
    begun = time.monotonic()
    yield
    took = time.monotonic() - begun
    assert took >= seconds, f"over after {took:.3f} s, before {seconds} s had passed"
