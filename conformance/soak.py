#!/usr/bin/env python3
"""Loads a server of its own with mixed work, lets it rest, and measures how far it has drifted: see README.md beside this file."""

import argparse
import base64
import contextlib
import faulthandler
import http.client
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

PTYD = Path(os.environ.get("PTYD_BIN") or Path(__file__).resolve().parents[1] / "target/debug/ptyd").resolve()
# A call that takes as many seconds hangs. A slow machine takes far less.
PATIENCE = 120
WORKERS, VIEWERS = 8, 4
# The share of each kind of work, out of their sum.
WORK = {"adds": 50, "code": 10, "type": 10, "flood": 5, "wait": 8, "screen": 8, "leave": 4, "end": 5}
# The columns of the table, with their units.
SAMPLED = {
    "pss": "KiB", "holders_pss": "KiB", "fds": "", "threads": "", "ptys": "", "processes": "", "cgroups": "", "disk": "KiB", "sessions": "",
    "cpu": "%", "commands": "/s", "p50": "ms", "p99": "ms",
}  # fmt: skip


class Broken(Exception):
    """The product broke a promise."""


class Cut(Exception):
    """The connection ended before the answer."""


class Server:
    """A server of its own, in a folder of its own, which can be killed and starts again at the same address."""

    def __init__(self) -> None:
        # Short, because a socket's whole path has 107 bytes.
        self.root = Path(tempfile.mkdtemp(prefix="ptyd-"))
        self.state, home = self.root / "state", self.root / "home"
        for folder in self.state, home:
            folder.mkdir(mode=0o700)
        (home / ".bashrc").write_text("PS1='$ '\n")
        self.env = {
            "HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb", "SHELL": "/bin/bash",
            "USER": "tester", "PTYD_STATE_DIR": str(self.state), "PTYD_RUNTIME_DIR": str(self.root / "run"),
        }  # fmt: skip
        self.listen = "127.0.0.1:0"
        self.serves = threading.Event()
        # The ids of all sessions that there have been.
        self.sessions: set[str] = set()
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        """Starts it, and waits until it listens."""
        words = [PTYD, "serve", "--listen", self.listen]
        with open(self.root / "server.log", "a") as log:
            self.process = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        if not self.process.stdout.readline():
            raise Broken(f"the server does not start: {(self.root / 'server.log').read_text()[-500:]}")
        self.listen = (self.state / "listen").read_text().strip().removeprefix("http://")
        self.token = (self.state / "token").read_text().strip()
        self.serves.set()

    def end(self, signo: int) -> None:
        """Ends it."""
        self.serves.clear()
        self.process.send_signal(signo)
        self.process.wait()
        self.process.stdout.close()

    @property
    def host(self) -> str:
        """The host that its clients name."""
        return self.listen

    def processes(self) -> dict[int, str]:
        """The processes of this run, with their command lines: its folder is there or in the environment."""
        found = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{name}/cmdline").read_bytes()
                if os.fsencode(self.root) in command or os.fsencode(self.root) in Path(f"/proc/{name}/environ").read_bytes():
                    found[int(name)] = command.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def remove(self) -> None:
        """Ends every process of this run, and removes its folder."""
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process:
            self.process.wait()
            self.process.stdout.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def measured(self) -> dict[str, int]:
        """The parts of the machine that it takes."""
        processes, pid = self.processes(), self.process.pid
        holders = [other for other, command in processes.items() if command.startswith("ptyd-holder")]
        terminals = set()
        for of in processes:
            with contextlib.suppress(OSError):
                terminals |= {link for fd in os.listdir(f"/proc/{of}/fd") if (link := os.readlink(f"/proc/{of}/fd/{fd}")).startswith("/dev/pts/")}
        # Unlike rglob, this goes on when a folder is removed meanwhile.
        files = [Path(folder, name) for folder, _, names in os.walk(self.state) for name in (".", *names)]
        return {
            "pss": pss(pid),
            "holders_pss": sum(map(pss, holders)),
            "fds": len(os.listdir(f"/proc/{pid}/fd")),
            "threads": len(os.listdir(f"/proc/{pid}/task")),
            "ptys": len({terminal for terminal in terminals if terminal[9:].isdigit()}),
            "processes": len(processes),
            "cgroups": sum(Path(folder).name in self.sessions for folder, _, _ in os.walk("/sys/fs/cgroup")),
            "disk": sum(size_of(path) for path in files) // 1024,
        }


def pss(pid: int) -> int:
    """The memory of a process in KiB, what it shares counted in part."""
    with contextlib.suppress(OSError):
        return int(re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])
    return 0


def cpu_seconds(pid: int) -> float:
    """The processor time of a process and its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def size_of(path: Path) -> int:
    """The bytes that a file takes on the disk."""
    with contextlib.suppress(OSError):
        return path.lstat().st_blocks * 512
    return 0


class Client:
    """One connection at a time. A request whose connection ends is sent again with its key, once a server is there."""

    def __init__(self, server: Server) -> None:
        self.server, self.connection = server, None

    def once(self, method: str, path: str, body: dict | None, key: str) -> tuple[int, dict]:
        """The status and JSON of an answer."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.server.listen, timeout=PATIENCE)
            headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": "application/json", "Idempotency-Key": key}
            self.connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self.connection.getresponse()
            return answer.status, json.loads(answer.read())
        except TimeoutError as hangs:
            raise Broken(f"{method} {path}: no answer within {PATIENCE} s") from hangs
        except (OSError, http.client.HTTPException) as cut:
            self.close()
            raise Cut from cut

    def ask(self, method: str, path: str, body: dict | None = None, **query) -> dict:
        """The JSON of an answer that is not an error."""
        is_again, key, whole = False, secrets.token_hex(8), f"/terminals{path}" + (f"?{urlencode(query)}" if query else "")
        while True:
            if not self.server.serves.wait(PATIENCE):
                raise Broken("no server came back")
            try:
                status, found = self.once(method, whole, body, key)
            except Cut:
                is_again = True
                continue
            if is_again and method == "DELETE" and status == 404:
                # The server that was killed had removed it.
                return found
            if status >= 400:
                raise Broken(f"{method} {whole}: {status} {found.get('code')}: {found.get('detail')}")
            return found

    def close(self) -> None:
        """Ends its connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class Session:
    """One session, and the number of commands that its shell must have counted."""

    def __init__(self, client: Client) -> None:
        self.id = client.ask("POST", "", {})["id"]
        client.server.sessions.add(self.id)
        self.counted = 0


class Soak:
    """The state of a run."""

    def __init__(self, options: argparse.Namespace, server: Server) -> None:
        self.options, self.server, self.begun = options, server, time.monotonic()
        self.lock = threading.Lock()
        self.done, self.kills, self.latencies = dict.fromkeys(WORK, 0) | {"true": 0, "looks": 0}, 0, []
        self.broken: list[str] = []
        self.is_over = threading.Event()
        self.samples: list[dict] = []
        self.live: dict[str, Session] = {}
        self.random = random.Random(options.seed)
        # The time for what has ended to be gone.
        self.patience = PATIENCE

    # ---- the work ----

    def commands(self) -> int:
        """The commands and typed lines so far."""
        return sum(count for name, count in self.done.items() if name not in ("looks", "end", "leave"))

    def progress(self) -> float:
        """From 0 to 1. The work goes on until the server was killed as often as it should be."""
        if self.options.commands:
            done = self.commands() / self.options.commands
        else:
            done = (time.monotonic() - self.begun) / 60 / self.options.minutes
        return done if self.kills >= self.options.kill_server else min(done, 0.999)

    def count(self, name: str) -> None:
        """Notes that this was done, and holds the rate."""
        with self.lock:
            self.done[name] += 1
            ahead = sum(self.done.values()) / self.options.rate - (time.monotonic() - self.begun) if self.options.rate else 0
        if ahead > 0:
            self.is_over.wait(ahead)

    def guarded(self, work, *arguments) -> None:
        """Runs a thread's work, which ends the run if it fails."""
        client = Client(self.server)
        try:
            work(client, *arguments)
        except Exception as why:
            with self.lock:
                self.broken.append(f"{work.__name__}: {why if isinstance(why, Broken) else repr(why)}")
            self.is_over.set()
        finally:
            client.close()

    def works(self, client: Client, sessions: list[Session], seed: int) -> None:
        """One worker with its sessions."""
        chance = random.Random(seed)
        # Each kind comes at least once.
        first = chance.sample(list(WORK), len(WORK))
        while not self.is_over.is_set():
            slot = chance.randrange(len(sessions))
            name = first.pop() if first else chance.choices(list(WORK), list(WORK.values()))[0]
            if name in ("leave", "end"):
                with self.lock:
                    del self.live[sessions[slot].id]
                getattr(self, name)(client, sessions[slot], chance)
                sessions[slot] = self.opened(client)
            else:
                getattr(self, name)(client, sessions[slot], chance)
            self.count(name)

    def opened(self, client: Client) -> Session:
        """A new session."""
        session = Session(client)
        with self.lock:
            self.live[session.id] = session
        return session

    def ended(self, client: Client, session: Session, command: dict) -> dict:
        """A command once it has ended."""
        while command["status"] == "running":
            client.ask("POST", f"/{session.id}/wait", {"timeout": 10})
            command = client.ask("GET", f"/{session.id}/commands/{command['id']}")
        return command

    def expect(self, session: Session, what: str, found: object, expected: object) -> None:
        """Fails if an answer is another one."""
        if found != expected:
            raise Broken(f"{session.id}: {what}: {str(found)[:300]!r}, not {str(expected)[:300]!r}")

    def runs(self, client: Client, session: Session, command: str, output: str | None, code: int = 0, **more) -> None:
        """Runs a command, whose code and perhaps output are known."""
        answer = self.ended(client, session, client.ask("POST", f"/{session.id}/execute", {"command": command, "timeout": 10} | more))
        found = answer.get("output") if output is not None else None
        self.expect(session, command, (answer["status"], found, answer.get("exitCode")), ("completed", output, code))

    def adds(self, client: Client, session: Session, chance: random.Random) -> None:
        """A count of the shell's own: each command ran once, whatever became of its server."""
        session.counted += 1
        self.runs(client, session, "echo $((count += 1))", f"{session.counted}\n")

    def code(self, client: Client, session: Session, chance: random.Random) -> None:
        """An exit code of a pipe."""
        code = chance.randrange(256)
        self.runs(client, session, f"printf 'to %s\\n' {code} | cat; (exit {code})", f"to {code}\n", code)

    def type(self, client: Client, session: Session, chance: random.Random) -> None:
        """A line for a program that asks."""
        word = f"w{chance.randrange(10**9)}"
        command = client.ask("POST", f"/{session.id}/execute", {"command": 'read -r x; echo "got $x"', "timeout": 10})
        while client.ask("POST", f"/{session.id}/wait", {"inputWanted": True, "timeout": 10})["endedBy"] == "timed_out":
            pass
        client.ask("POST", f"/{session.id}/input", {"input": word, "endWithNewline": True, "timeout": 10})
        answer = self.ended(client, session, client.ask("GET", f"/{session.id}/commands/{command['id']}"))
        self.expect(session, "a typed line", (answer.get("output"), answer.get("exitCode")), (f"{word}\ngot {word}\n", 0))

    def flood(self, client: Client, session: Session, chance: random.Random) -> None:
        """Much output, every byte of which is read back."""
        lines = chance.randrange(1000, 40000)
        more = {"command": f"seq {lines}", "timeout": 10, "maxChars": 1000}
        command = self.ended(client, session, client.ask("POST", f"/{session.id}/execute", more))
        whole, offset = b"", None
        while True:
            part = client.ask("GET", f"/{session.id}/commands/{command['id']}", view="raw", **({} if offset is None else {"since": f"o:{offset}"}))
            whole += base64.b64decode(part.get("outputBase64", ""))
            offset = part["nextOffset"]
            if offset >= part["endOffset"]:
                break
        expected = b"".join(b"%d\r\n" % number for number in range(1, lines + 1))
        self.expect(session, f"seq {lines}", (len(whole), whole == expected, command.get("exitCode")), (len(expected), True, 0))

    def wait(self, client: Client, session: Session, chance: random.Random) -> None:
        """A wait for a pattern, and one for the end."""
        word = f"ready{chance.randrange(10**9)}"
        command = f"sleep 0.0{chance.randrange(1, 9)}; echo {word}; sleep 0.02; echo over"
        self.runs(client, session, command, f"{word}\nover\n", waitFor=f"^{word}")

    def screen(self, client: Client, session: Session, chance: random.Random) -> None:
        """A word on the screen."""
        word = f"shown{chance.randrange(10**9)}"
        self.runs(client, session, f"printf '\\033[H\\033[J\\n\\n    {word}\\n'", None)
        rows = client.ask("GET", f"/{session.id}/screen")["rows"]
        self.expect(session, "the screen's third row", rows[2], f"    {word}")

    def leave(self, client: Client, session: Session, chance: random.Random) -> None:
        """A shell that ends by itself, with a process in the background, and is removed."""
        code = chance.randrange(256)
        self.ended(client, session, client.ask("POST", f"/{session.id}/execute", {"command": f"sleep 1000 & exit {code}", "timeout": 10}))
        while (found := client.ask("GET", f"/{session.id}"))["status"] != "terminated":
            pass
        self.expect(session, "the shell's code", found["exit"].get("exitCode"), code)
        client.ask("DELETE", f"/{session.id}", purge="true")

    def end(self, client: Client, session: Session, chance: random.Random) -> None:
        """A session that is ended while a command runs."""
        client.ask("POST", f"/{session.id}/execute", {"command": "sleep 1000 & sleep 1000", "waitForCompletion": False})
        purge = {"purge": "true"} if chance.random() < 0.75 else {}
        client.ask("DELETE", f"/{session.id}", force="true", **purge)

    # ---- beside the work ----

    def probes(self, client: Client) -> None:
        """Takes the time of a `true`, some five times a second."""
        session = self.opened(client)
        while not self.is_over.wait(0.2):
            kills, begun = self.kills, time.monotonic()
            self.runs(client, session, "true", "")
            # A command that waited for the next server shows its restart.
            if kills == self.kills and self.server.serves.is_set():
                with self.lock:
                    self.latencies.append(1000 * (time.monotonic() - begun))
            self.count("true")

    def looks(self, client: Client, seed: int) -> None:
        """Views one session after the other, each for a while, and misses no byte."""
        chance = random.Random(seed)
        while not self.is_over.is_set():
            with self.lock:
                session = chance.choice([*self.live, None])
            since, rounds = None, chance.randrange(1, 4) if session else 0
            for _ in range(rounds):
                since = self.looks_at(session, since, chance.randrange(5, 40))
                if since is None:
                    break
            self.count("looks")
            self.is_over.wait(0.2)

    def looks_at(self, session: str, since: int | None, most: int) -> int | None:
        """Views a session for so many messages or until it is silent. Answers where to go on, or nothing if it has ended."""
        self.server.serves.wait(PATIENCE)
        path = f"/terminals/{session}/socket" + (f"?since=o:{since}" if since is not None else "")
        with contextlib.suppress(OSError), Viewer(self.server, path) as viewer:
            for _ in range(most):
                message = viewer.next()
                if message is None:
                    return None
                if message.get("type") in ("output", "gap") and not message.get("snapshot"):
                    first = message["fromOffset"]
                    if since is not None and first != since or message["type"] == "gap":
                        raise Broken(f"{session}: a viewer at {since} was sent {message['type']} from {first}")
                    since = message["nextOffset"]
        return since

    def kills_server(self) -> None:
        """Kills the server and starts the next one, in which no session is missing."""
        self.server.end(signal.SIGKILL)
        with self.lock:
            self.kills += 1
            expected = set(self.live)
        self.server.start()
        client = Client(self.server)
        for session in expected:
            status, found = client.once("GET", f"/terminals/{session}", None, "")
            with self.lock:
                # A worker may have ended it since.
                if status >= 400 and session in self.live:
                    raise Broken(f"{session} is lost after kill -9: {found.get('code')}")
        client.close()

    def sample(self, cpu: tuple[float, float, int]) -> tuple[float, float, int]:
        """Notes a row of the table: measured now, or counted since the last one."""
        now = (time.monotonic(), cpu_seconds(self.server.process.pid), self.commands())
        with self.lock:
            times, self.latencies, live = sorted(self.latencies), [], len(self.live)
        seconds = max(now[0] - cpu[0], 0.001)
        counted = {"sessions": live, "commands": round((now[2] - cpu[2]) / seconds, 1)}
        # A new server begins with no processor time.
        counted["cpu"] = round(100 * (now[1] - (cpu[1] if now[1] >= cpu[1] else 0)) / seconds, 1)
        for name, part in ("p50", 0.5), ("p99", 0.99):
            counted[name] = round(times[int(part * (len(times) - 1))], 2) if times else None
        self.samples.append({"minute": round((now[0] - self.begun) / 60, 2)} | self.server.measured() | counted)
        print(row([self.samples[-1]["minute"], *(self.samples[-1][name] for name in SAMPLED)]), flush=True)
        return now

    def play(self) -> dict:
        """The whole run, and its report."""
        client = Client(self.server)
        # The files that the first session makes belong to the start.
        first = Session(client)
        self.runs(client, first, "true", "")
        client.ask("DELETE", f"/{first.id}", force="true", purge="true")
        client.close()
        start = self.rested()
        print(row(["minute", *(f"{name} {unit}".strip() for name, unit in SAMPLED.items())]), flush=True)
        print(row(["start", *(start.get(name) for name in SAMPLED)]), flush=True)
        threads = self.threads()
        try:
            self.guarded(self.conducts)
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()
        return self.report(start)

    def conducts(self, _: Client) -> None:
        """Samples and kills the server until the work is done."""
        last, share = (time.monotonic(), cpu_seconds(self.server.process.pid), 0), 1 / (self.options.kill_server + 1)
        while (progress := self.progress()) < 1 and not self.is_over.wait(0.05):
            if self.kills < self.options.kill_server and progress >= (self.kills + 1) * share:
                self.kills_server()
            if time.monotonic() - last[0] >= self.options.every:
                last = self.sample(last)
        if not self.broken:
            self.sample(last)

    def threads(self) -> list[threading.Thread]:
        """Begins all work."""
        client, most = Client(self.server), min(WORKERS, self.options.sessions)
        sessions = [self.opened(client) for _ in range(self.options.sessions)]
        client.close()
        work = [(self.works, sessions[number::most], self.random.random()) for number in range(most)]
        work += [(self.probes,)] + [(self.looks, self.random.random()) for _ in range(self.options.viewers)]
        threads = [threading.Thread(target=self.guarded, args=arguments) for arguments in work]
        for thread in threads:
            thread.start()
        return threads

    def rested(self, most: int | None = None) -> dict[str, int]:
        """Measures the server without a session, once nothing but it and its spare holder is there, with no more descriptors than `most`."""
        deadline = time.monotonic() + self.patience
        while True:
            left = [command for command in self.server.processes().values() if "serve" not in command and "/spare-" not in command]
            found = self.server.measured()
            if not left and (most is None or found["fds"] <= most):
                return found
            if time.monotonic() > deadline:
                raise Broken(f"processes are left: {left}; {found['fds']} descriptors of the server, {most} at the start")

    def report(self, start: dict[str, int]) -> dict:
        """Ends all sessions, lets the server rest, and compares."""
        idle = None
        try:
            if not self.broken:
                client = Client(self.server)
                for session in self.live:
                    client.ask("DELETE", f"/{session}", force="true", purge="true")
                client.close()
                # The server keeps files of the newest ended sessions open.
                subprocess.run([PTYD, "prune", "--ended"], env=self.server.env, stdout=subprocess.DEVNULL, check=True)
                self.rested(start["fds"])
                # A rest is a time and no event.
                threading.Event().wait(self.options.rest)
                idle = self.rested(start["fds"])
                print(row(["idle", *(idle.get(name) for name in SAMPLED)]), flush=True)
                for name in "ptys", "cgroups":
                    if idle[name] > start[name]:
                        raise Broken(f"{idle[name]} {name} are left, where {start[name]} were")
                self.server.end(signal.SIGTERM)
                self.nothing_is_left()
        except Broken as why:
            self.broken.append(str(why))
        drift = {name: slope(self.samples, name) for name in SAMPLED}
        print(row(["per hour", *(drift[name] for name in SAMPLED)]))
        return {
            "version": subprocess.run([PTYD, "--version"], capture_output=True, text=True).stdout.strip(),
            "seed": self.options.seed, "sessions": self.options.sessions, "minutes": round((time.monotonic() - self.begun) / 60, 2),
            "done": self.done, "commands": self.commands(), "kills": self.kills,
            "start": start, "samples": self.samples, "idle": idle, "drift_per_hour": drift, "broken": self.broken,
        }  # fmt: skip

    def nothing_is_left(self) -> None:
        """No process of the run is left behind the server."""
        deadline = time.monotonic() + self.patience
        while left := self.server.processes():
            if time.monotonic() > deadline:
                raise Broken(f"left behind the server: {left}")


class Viewer:
    """A WebSocket that receives, in plain JSON."""

    def __init__(self, server: Server, path: str) -> None:
        host, port = server.listen.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE)
        self.file = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        head = [f"GET {path} HTTP/1.1", f"Host: {server.host}", f"Authorization: Bearer {server.token}"]
        head += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", "", ""]
        self.socket.sendall("\r\n".join(head).encode())
        self.is_open = b" 101 " in self.file.readline()
        while self.is_open and self.file.readline() not in (b"\r\n", b""):
            pass
        # A session can be silent.
        self.socket.settimeout(1)

    def __enter__(self) -> "Viewer":
        return self

    def __exit__(self, *_) -> None:
        self.file.close()
        self.socket.close()

    def next(self) -> dict | None:
        """The next message, or nothing if the session has ended. Raises an OSError when the connection ends or is silent."""
        while self.is_open:
            kind, length = self.takes(2)
            if length == 126:
                length = struct.unpack("!H", self.takes(2))[0]
            elif length == 127:
                length = struct.unpack("!Q", self.takes(8))[0]
            content = self.takes(length)
            if kind == 0x81:
                return json.loads(content)
            if kind == 0x88:
                return None
        return None

    def takes(self, length: int) -> bytes:
        """So many bytes."""
        content = self.file.read(length) if length else b""
        if len(content) < length:
            raise ConnectionResetError
        return content


def slope(samples: list[dict], name: str) -> float | None:
    """The drift of a value per hour, by least squares. The first quarter of a run is its warm-up."""
    points = [(sample["minute"] / 60, sample[name]) for sample in samples[len(samples) // 4 :] if sample[name] is not None]
    if len(points) < 3:
        return None
    middle_x, middle_y = (sum(values) / len(points) for values in zip(*points))
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    return round(sum((x - middle_x) * (y - middle_y) for x, y in points) / spread, 2) if spread else None


def row(values: list) -> str:
    """A row of the table."""
    return "".join(f"{'-' if value is None else value!s:>{14 if number == 2 else 12}}" for number, value in enumerate(values))


def soak(options: argparse.Namespace, kind: type[Soak] = Soak) -> dict:
    """Runs it with a server of its own, of which nothing is left."""
    server = Server()
    try:
        server.start()
        return kind(options, server).play()
    finally:
        server.remove()


def options_of(words: list[str] | None = None) -> argparse.Namespace:
    """The options of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=20, help="the length of the load")
    length.add_argument("--commands", type=int, help="its length in commands and typed lines")
    parser.add_argument("--sessions", type=int, default=50, help="the sessions that live at once")
    parser.add_argument("--viewers", type=int, default=VIEWERS, help="the viewers at once")
    parser.add_argument("--kill-server", type=int, default=0, metavar="N", help="kills the server so often, and starts it again")
    parser.add_argument("--rate", type=float, default=0, help="the pieces of work per second; as fast as possible without it")
    parser.add_argument("--every", type=float, default=60, metavar="SECONDS", help="the time between two samples")
    parser.add_argument("--rest", type=float, default=10, metavar="SECONDS", help="the rest before the last look")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31), help="repeats the order of the work")
    parser.add_argument("--json", type=Path, help="writes the report to this file")
    return parser.parse_args(words)


def main() -> int:
    """The command."""
    options = options_of()
    # Shows where a run stands that seems to hang.
    faulthandler.register(signal.SIGUSR1)
    for signo in signal.SIGINT, signal.SIGTERM:
        signal.signal(signo, lambda *_: sys.exit("stopped"))
    report = soak(options)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    print(f"seed {options.seed}: {report['commands']} commands, {report['done']}, {report['kills']} kills of the server")
    for why in report["broken"]:
        print(f"broken: {why}")
    return 1 if report["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
