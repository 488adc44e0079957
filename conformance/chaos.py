#!/usr/bin/env python3
"""Three nodes with one Redis beside seeded faults of servers, links, Redis and clocks: see README.md beside this file."""

import argparse
import asyncio
import base64
import contextlib
import datetime
import http.client
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import soak
from soak import Broken, Server, Viewer

NODES = (1, 2, 3)
NAME = "terminals.example.com"
# A client gets an answer or an error within as many seconds, and every list is right again as many seconds after the last fault.
ANSWER, HEALED = 10, 30
SKIPS_BACK, DAY = 3600, 86400
REDIS = ("redis-server", "--save", "", "--appendonly", "no", "--protected-mode", "no")


class Relay:
    """Carries TCP from one address to another: at once, late, not at all, or not now."""

    def __init__(self, loop: asyncio.AbstractEventLoop, at: tuple[str, int], to: tuple[str, int]) -> None:
        self.loop, self.at, self.to = loop, at, to
        self.is_cut, self.delay, self.writers = False, 0.0, set()
        # While it is clear, bytes stay where they are, as behind a network that drops packets.
        self.passes = asyncio.Event()
        self.passes.set()

    async def listen(self) -> None:
        """Begins."""
        self.server = await asyncio.start_server(self.accepts, *self.at)

    async def accepts(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.writers.add(writer)
        there = None
        try:
            await self.passes.wait()
            if not self.is_cut:
                back, there = await asyncio.open_connection(*self.to)
                self.writers.add(there)
                await asyncio.gather(self.carries(reader, there), self.carries(back, writer))
        except OSError:
            pass
        finally:
            for one in filter(None, (writer, there)):
                self.writers.discard(one)
                one.transport.abort()

    async def carries(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One direction. The end of one ends the connection, once the other side has closed it, too."""
        while some := await reader.read(1 << 16):
            if self.delay:
                await asyncio.wait([self.loop.create_future()], timeout=self.delay)
            await self.passes.wait()
            writer.write(some)
            await writer.drain()
        await self.passes.wait()
        if writer.can_write_eof():
            writer.write_eof()

    def becomes(self, how: str, delay: float = 0.0) -> None:
        """Changes it from another thread, and waits until it is so."""
        done = threading.Event()

        def change() -> None:
            self.is_cut, self.delay = how == "cut", delay
            (self.passes.clear if how == "hole" else self.passes.set)()
            if self.is_cut:
                for writer in list(self.writers):
                    writer.transport.abort()
            done.set()

        self.loop.call_soon_threadsafe(change)
        done.wait()


class Node(Server):
    """A server that reaches the others and Redis by relays alone, as its clients reach it."""

    def __init__(self, number: int, fleet: "Fleet") -> None:
        super().__init__()
        self.number, self.door = number, fleet.address(100, number)
        self.clock = self.root / "clock"
        key = self.root / "fleet-key"
        key.write_text(fleet.key)
        key.chmod(0o600)
        self.listen = "{}:{}".format(*fleet.address(0, number))
        self.env |= {
            "PTYD_NODE": str(number), "PTYD_FLEET_KEY": str(key), "PTYD_PUBLIC_URL": f"https://{NAME}",
            "PTYD_REDIS": "redis://{}:{}".format(*fleet.address(number, 100)),
            "PTYD_PEERS": "http://{}.{{node}}:{}".format(fleet.address(number, 0)[0].rpartition(".")[0], fleet.port),
            "PTYD_TEST_WALL_CLOCK": str(self.clock),
        }  # fmt: skip
        # Whether a client that asks at its door is answered, and since when.
        self.is_well, self.since = True, time.monotonic()

    def changes(self, is_well: bool) -> None:
        """Its door or its server is disturbed, or is not."""
        self.is_well, self.since = is_well, time.monotonic()

    def signal(self, signo: int) -> None:
        """Sends its server a signal."""
        self.process.send_signal(signo)


class Door:
    """A node as a client of the public address sees it."""

    host = NAME

    def __init__(self, node: Node, token: str) -> None:
        self.listen, self.token = "{}:{}".format(*node.door), token


class Fleet:
    """The nodes, Redis, and the relays between all of them."""

    def __init__(self) -> None:
        self.key, self.net = secrets.token_hex(32), f"127.{1 + os.getpid() % 60}"
        with socket.create_server((f"{self.net}.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.folder = Path(tempfile.mkdtemp(prefix="ptyd-"))
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.nodes = {number: Node(number, self) for number in NODES}
        ends = [(100, node) for node in NODES] + [(node, other) for node in NODES for other in (*NODES, 100) if other != node]
        # Of a client (100), to Redis (100).
        self.links = {(of, to): Relay(self.loop, self.address(of, to), self.address(0, to)) for of, to in ends}
        self.redis = self.tokens = None

    def address(self, of: int, to: int) -> tuple[str, int]:
        """The address at which one reaches another; of 0, its own."""
        return f"{self.net}.{of}.{to}", self.port

    def of(self, number: int) -> list[Relay]:
        """All links of a node."""
        return [relay for ends, relay in self.links.items() if number in ends]

    def start(self) -> None:
        """Starts everything, and lets each node learn the token of the clients."""
        for relay in self.links.values():
            asyncio.run_coroutine_threadsafe(relay.listen(), self.loop).result()
        self.start_redis()
        for node in self.nodes.values():
            node.start()
        made = subprocess.run([soak.PTYD, "token", "new", "chaos", "--unconfined"], env=self.nodes[1].env, check=True, capture_output=True, text=True)
        self.token = made.stdout.strip()
        self.doors = {number: Door(node, self.token) for number, node in self.nodes.items()}

    def start_redis(self) -> None:
        """Starts an empty Redis."""
        host, port = self.address(0, 100)
        words = [*REDIS, "--bind", host, "--port", str(port), "--dir", str(self.folder)]
        self.redis = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if not any(b"eady to accept connections" in line for line in self.redis.stdout):
            raise Broken("redis-server does not start")
        threading.Thread(target=self.redis.stdout.read, daemon=True).start()

    def end(self) -> None:
        """Ends every process of the run, and removes its folders."""
        for node in self.nodes.values():
            node.remove()
        if self.redis:
            self.redis.kill()
            self.redis.wait()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        shutil.rmtree(self.folder, ignore_errors=True)


class View:
    """The lines of a session that a viewer was sent. Each follows the one before it, also over a reconnection."""

    def __init__(self, session: str, ran: dict[str, int]) -> None:
        self.session, self.ran, self.since, self.rest, self.last = session, ran, None, b"", None

    def takes(self, message: dict) -> None:
        """One more message."""
        first = message["fromOffset"]
        if message["type"] == "gap" or self.since is not None and first != self.since:
            raise Broken(f"{self.session}: a viewer at {self.since} was sent {message['type']} from {first}")
        self.since = message["nextOffset"]
        self.rest += base64.b64decode(message["dataBase64"]) if "dataBase64" in message else message["data"].encode()
        whole, _, self.rest = self.rest.rpartition(b"\n")
        for token, line in re.findall(r"(t\d+x\d+) (\d+)\r", whole.decode(errors="replace")):
            now, last = (token, int(line)), self.last
            is_next = last is None or now == (last[0], last[1] + 1) or now[1] == 1 and self.ran[last[0]] == last[1]
            if not is_next:
                raise Broken(f"{self.session}: a viewer saw the line {now} behind {last}")
            self.last = now


class Chaos:
    """The state of a run."""

    def __init__(self, options: argparse.Namespace, fleet: Fleet) -> None:
        self.options, self.fleet, self.begun = options, fleet, time.monotonic()
        self.lock, self.is_over, self.works = threading.Lock(), threading.Event(), threading.Event()
        self.busy = set()
        self.broken: list[str] = []
        self.faults, self.counts = {}, dict.fromkeys(("requests", "errors", "commands", "lines", "views", "sessions"), 0)
        self.longest, self.slowest_spawn, self.directory = 0.0, 0.0, []
        # Requests without an answer in time, which do not end the run.
        self.late: list[str] = []
        # The sessions that live, each with the tokens of its commands and their numbers of lines.
        self.live: dict[str, dict[str, int]] = {}
        self.resting = 0

    # ---- requests ----

    def allowed(self) -> float:
        """The time for an answer: what is promised, and what this machine takes beyond it to start ten programs."""
        return ANSWER + 10 * self.slowest_spawn

    def spawns(self) -> None:
        """Takes the time of this machine's own work now and then."""
        while not self.is_over.wait(0.5):
            begun = time.monotonic()
            subprocess.run(["true"], check=True)
            self.slowest_spawn = max(self.slowest_spawn, time.monotonic() - begun)

    def once(self, number: int, method: str, path: str, body: dict | None, key: str) -> tuple[int, dict]:
        """One request at the door of a node. An answer that does not come is a fault of the product only if nothing disturbed the door."""
        node, begun = self.fleet.nodes[number], time.monotonic()
        connection = http.client.HTTPConnection(*node.door, timeout=self.allowed())
        headers = {"Host": NAME, "Authorization": f"Bearer {self.fleet.token}", "Content-Type": "application/json"}
        headers |= {"Idempotency-Key": key} if key else {}
        was_well = node.is_well and node.since < begun
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as why:
            # A client that has waited for so long has no answer yet.
            is_well = was_well and node.is_well and node.since < begun
            if isinstance(why, TimeoutError) and is_well:
                with self.lock:
                    self.late.append(f"{method} {path} at node {number}: no answer within {time.monotonic() - begun:.1f} s")
            return 0, {"code": "cut", "detail": repr(why)}
        finally:
            connection.close()
            with self.lock:
                self.counts["requests"] += 1
                if was_well and node.is_well and node.since < begun:
                    self.longest = max(self.longest, time.monotonic() - begun)

    def ask(self, chance: random.Random, method: str, path: str, body: dict | None = None, at: int | None = None) -> dict:
        """The answer to a request, which is repeated with its key at any door until there is one."""
        key = f"{chance.getrandbits(64):x}" if method == "POST" else ""
        while True:
            status, found = self.once(at or chance.choice(NODES), method, path, body, key)
            if 200 <= status < 300 or method == "DELETE" and status == 404:
                return found
            with self.lock:
                self.counts["errors"] += 1
            if status not in (0, 502, 503):
                raise Broken(f"{method} {path}: {status} {found.get('code')}: {found.get('detail')}")
            if self.is_over.wait(0.1 + 0.4 * chance.random()):
                raise EOFError

    # ---- work ----

    def guarded(self, work, *arguments) -> None:
        """Runs a thread's work, which ends the run if it fails."""
        try:
            work(*arguments)
        except EOFError:
            pass
        except Exception as why:
            with self.lock:
                self.broken.append(f"{work.__name__}: {why if isinstance(why, Broken) else repr(why)}")
            self.is_over.set()

    def pauses(self) -> None:
        """Rests while the directory is compared."""
        if not self.works.is_set():
            with self.lock:
                self.resting += 1
            while not self.works.wait(0.1):
                if self.is_over.is_set():
                    raise EOFError
            with self.lock:
                self.resting -= 1
        if self.is_over.is_set():
            raise EOFError

    def opened(self, chance: random.Random, number: int) -> str:
        """A new session on a node."""
        session = self.ask(chance, "POST", "/terminals", {"shell": "bash"}, at=number)["id"]
        with self.lock:
            self.live[session] = {}
            self.counts["sessions"] += 1
        return session

    def works_in(self, number: int, seed: int) -> None:
        """Runs numbered commands in one session, each with a random number of lines, and reads every byte back."""
        chance = random.Random(seed)
        session = self.opened(chance, number)
        file = self.fleet.nodes[number].root / f"ran-{session}"
        tokens = self.live[session]
        while True:
            self.pauses()
            token, lines, code = f"t{number}x{len(tokens)}", chance.choice((1, 7, 200, 5000)), chance.randrange(100)
            tokens[token] = lines
            command = f"echo {token} >>{file}; seq -f '{token} %.0f' {lines}; (exit {code})"
            done = self.ask(chance, "POST", f"/terminals/{session}/execute", {"command": command, "timeout": 2, "maxChars": 1000})
            path = f"/terminals/{session}/commands/{done['id']}"
            while done["status"] == "running":
                self.ask(chance, "POST", f"/terminals/{session}/wait", {"timeout": 2})
                done = self.ask(chance, "GET", path)
            expected = b"".join(b"%s %d\r\n" % (token.encode(), line) for line in range(1, lines + 1))
            found = self.read(chance, path)
            if (done["status"], done.get("exitCode"), found) != ("completed", code, expected):
                raise Broken(f"{session} {done['id']}: {done['status']} with {done.get('exitCode')}, not {code}; {differs(found, expected)}; {done.get('error')}")
            ran = file.read_text().split()
            if ran != [*tokens]:
                raise Broken(f"{session}: ran {ran[-3:]} ({len(ran)}), not {[*tokens][-3:]} ({len(tokens)})")
            with self.lock:
                self.counts["commands"] += 1
                self.counts["lines"] += lines

    def read(self, chance: random.Random, path: str) -> bytes:
        """The whole output of a command, part by part."""
        whole, offset = b"", None
        while True:
            part = self.ask(chance, "GET", f"{path}?view=raw" + ("" if offset is None else f"&since=o:{offset}"))
            whole += base64.b64decode(part.get("outputBase64", ""))
            offset = part["nextOffset"]
            if offset >= part["endOffset"]:
                return whole

    def comes_and_goes(self, seed: int) -> None:
        """Starts sessions, and ends them."""
        chance, open_now = random.Random(seed), []
        while True:
            self.pauses()
            if len(open_now) < 3 or chance.random() < 0.5 and len(open_now) < 8:
                open_now.append(self.opened(chance, chance.choice(NODES)))
            else:
                session = open_now.pop(chance.randrange(len(open_now)))
                self.ask(chance, "DELETE", f"/terminals/{session}?force=true")
                with self.lock:
                    del self.live[session]
            self.is_over.wait(0.2)

    def views(self, seed: int) -> None:
        """Views sessions through any door, each from where it was left, and misses no byte and no line."""
        chance = random.Random(seed)
        views: dict[str, View] = {}
        while not self.is_over.wait(0.05):
            with self.lock:
                sessions = [session for session, ran in self.live.items() if ran]
            if not sessions:
                continue
            session = chance.choice(sessions)
            view = views.setdefault(session, View(session, self.live[session]))
            path = f"/terminals/{session}/socket" + (f"?since=o:{view.since}" if view.since is not None else "")
            with contextlib.suppress(OSError), Viewer(self.fleet.doors[chance.choice(NODES)], path) as viewer:
                for _ in range(chance.randrange(5, 60)):
                    message = viewer.next()
                    if message is None:
                        break
                    if message.get("type") in ("output", "gap") and not message.get("snapshot"):
                        view.takes(message)
            with self.lock:
                self.counts["views"] += 1

    # ---- faults ----

    def disturbs(self, seed: int, until: float) -> None:
        """One fault after the other, each of which is over at the end."""
        chance = random.Random(seed)
        kinds = [kind for kind in FAULTS if kind != "clock" or self.heeds_clock]
        first = chance.sample(kinds, len(kinds))
        while time.monotonic() < until and not self.is_over.is_set():
            kind = first.pop() if first else chance.choice(kinds)
            target = "redis" if kind.startswith("redis") else chance.choice(NODES)
            lasts, number = chance.uniform(0.3, self.options.longest), chance.random()
            with self.lock:
                is_free = target not in self.busy
                if is_free:
                    self.busy.add(target)
                    self.faults[kind] = self.faults.get(kind, 0) + 1
            if is_free:
                if self.options.verbose:
                    print(f"{time.monotonic() - self.begun:7.2f} {kind} {target} for {lasts:.1f} s", flush=True)
                try:
                    FAULTS[kind](self, target, min(lasts, max(0.3, until - time.monotonic())), number)
                finally:
                    with self.lock:
                        self.busy.discard(target)
            self.is_over.wait(chance.uniform(0.1, 1.5))

    def lasts(self, seconds: float) -> None:
        """The fault goes on."""
        self.is_over.wait(seconds)

    def kill(self, number: int, lasts: float, _: float) -> None:
        """The server of a node is killed, and another one starts."""
        node = self.fleet.nodes[number]
        node.changes(False)
        node.end(signal.SIGKILL)
        self.lasts(lasts)
        node.start()
        node.changes(True)

    def stop(self, number: int, lasts: float, _: float) -> None:
        """The server of a node stands still."""
        node = self.fleet.nodes[number]
        node.changes(False)
        node.signal(signal.SIGSTOP)
        self.lasts(lasts)
        node.signal(signal.SIGCONT)
        node.changes(True)

    def links(self, relays: list[Relay], how: str, lasts: float, delay: float = 0.0) -> None:
        """Links are cut, swallow bytes, or are slow."""
        doors = [node for node in self.fleet.nodes.values() if any(relay.at == node.door for relay in relays)]
        for node in doors:
            node.changes(False)
        for relay in relays:
            relay.becomes(how, delay)
        self.lasts(lasts)
        for relay in relays:
            relay.becomes("open")
        for node in doors:
            node.changes(True)

    def redis_signals(self, lasts: float) -> None:
        """Redis stands still."""
        self.fleet.redis.send_signal(signal.SIGSTOP)
        self.lasts(lasts)
        self.fleet.redis.send_signal(signal.SIGCONT)

    def redis_dies(self, lasts: float) -> None:
        """Redis is killed, and an empty one starts."""
        self.fleet.redis.kill()
        self.fleet.redis.wait()
        self.lasts(lasts)
        self.fleet.start_redis()

    def flush(self) -> None:
        """Redis forgets everything."""
        with socket.create_connection(self.fleet.address(0, 100), timeout=ANSWER) as redis:
            redis.sendall(b"FLUSHALL\r\n")
            if redis.recv(100) != b"+OK\r\n":
                raise Broken("Redis does not flush")

    def step(self, number: int, lasts: float, part: float) -> None:
        """The clock of a node is set, and later set back."""
        clock = self.fleet.nodes[number].clock
        clock.write_text(str((SKIPS_BACK, -SKIPS_BACK, DAY, -DAY)[int(4 * part)]))
        self.lasts(lasts)
        clock.write_text("0")

    def to_redis(self, part: float) -> list[Relay]:
        """The links of all nodes to Redis, or of one."""
        chosen = NODES if part < 0.5 else NODES[int(6 * part) - 3 :][:1]
        return [self.fleet.links[number, 100] for number in chosen]

    # ---- the directory ----

    def listed(self, number: int) -> dict[str, tuple] | str:
        """The sessions in the list of a node, or why it is not whole."""
        rows, offset = {}, 0
        while True:
            status, found = self.once(number, "GET", f"/terminals?limit=200&offset={offset}", None, "")
            if status != 200 or found.get("degraded"):
                return f"node {number}: {status}, degraded: {found.get('degraded')}"
            rows |= {row["id"]: facts(row) for row in found["terminals"]}
            offset += len(found["terminals"])
            if offset >= found["total"] or not found["terminals"]:
                return rows

    def is_healed(self) -> None:
        """Every node lists what lives and what each of them says of its own, soon after the last fault."""
        begun = time.monotonic()
        bound = HEALED + 10 * self.slowest_spawn
        while True:
            lists = {number: self.listed(number) for number in NODES}
            with self.lock:
                live = set(self.live)
            why = next((f"{found}" for found in lists.values() if isinstance(found, str)), None)
            if why is None:
                truth = {session: lists[int(session[1])].get(session) for session in live}
                wrong = {number: differing(found, truth) for number, found in lists.items() if found != truth}
                if not wrong:
                    self.directory.append(round(time.monotonic() - begun, 2))
                    return
                why = f"{wrong}"
            if time.monotonic() - begun > bound:
                raise Broken(f"the directory is not the truth {bound:.0f} s after healing: {why[:1500]}")
            if self.is_over.wait(0.1):
                raise EOFError

    # ---- the run ----

    def rounds(self) -> None:
        """Faults for a while, then none until the directory was compared."""
        chance, seconds = random.Random(self.options.seed), 60 * self.options.minutes
        rounds = max(1, round(seconds / self.options.round))
        while len(self.live) < self.options.sessions and not self.is_over.wait(0.05):
            pass
        for _ in range(rounds):
            if self.is_over.is_set():
                return
            until = time.monotonic() + seconds / rounds
            lanes = [self.started(self.disturbs, chance.getrandbits(32), until) for _ in range(self.options.lanes)]
            for lane in lanes:
                lane.join()
            # A create whose answer was lost is known to its client once that was repeated.
            self.works.clear()
            self.guarded(self.goes_on)
            self.guarded(self.is_healed)
            self.works.set()
        self.is_over.set()

    def goes_on(self) -> None:
        """All work comes to its next pause, now that nothing is disturbed."""
        begun = time.monotonic()
        while self.resting < self.options.sessions + 1:
            if time.monotonic() - begun > soak.PATIENCE:
                raise Broken(f"only {self.resting} of {self.options.sessions + 1} threads go on {soak.PATIENCE} s after healing")
            if self.is_over.wait(0.02):
                raise EOFError

    def started(self, work, *arguments) -> threading.Thread:
        """A thread with this work."""
        thread = threading.Thread(target=self.guarded, args=(work, *arguments), daemon=True)
        thread.start()
        return thread

    def play(self) -> dict:
        """Everything."""
        chance = random.Random(self.options.seed + 1)
        for number in NODES:
            self.ask(chance, "GET", "/terminals", at=number)
        self.heeds_clock = self.finds_clock(chance)
        self.works.set()
        threads = [self.started(self.works_in, 1 + place % len(NODES), chance.getrandbits(32)) for place in range(self.options.sessions)]
        threads += [self.started(self.comes_and_goes, chance.getrandbits(32)), self.started(self.spawns)]
        threads += [self.started(self.views, chance.getrandbits(32)) for _ in range(2)]
        self.guarded(self.rounds)
        self.is_over.set()
        for thread in threads:
            thread.join()
        return {
            "version": subprocess.run([soak.PTYD, "--version"], capture_output=True, text=True).stdout.strip(), "seed": self.options.seed,
            "minutes": round((time.monotonic() - self.begun) / 60, 2), "faults": dict(sorted(self.faults.items())), **self.counts,
            "clock_steps": self.heeds_clock, "longest_answer_s": round(self.longest, 2), "slowest_true_s": round(self.slowest_spawn, 3),
            "directory_true_after_s": self.directory, "broken": self.broken + self.late,
        }  # fmt: skip

    def finds_clock(self, chance: random.Random) -> bool:
        """Whether this build heeds a clock that tests set: a release does not."""
        self.fleet.nodes[1].clock.write_text(str(DAY))
        made = self.ask(chance, "POST", "/terminals", {"shell": "cat"}, at=1)
        self.fleet.nodes[1].clock.write_text("0")
        self.ask(chance, "DELETE", f"/terminals/{made['id']}?force=true")
        ahead = datetime.datetime.fromisoformat(made["createdAt"]) - datetime.datetime.now(datetime.timezone.utc)
        return ahead.total_seconds() > DAY / 2


FAULTS = {
    "kill": Chaos.kill,
    "stop": Chaos.stop,
    "partition": lambda run, node, lasts, _: run.links(run.fleet.of(node), "cut", lasts),
    "hole": lambda run, node, lasts, _: run.links(run.fleet.of(node), "hole", lasts),
    "hole_of_a_link": lambda run, node, lasts, part: run.links([run.fleet.of(node)[int(part * len(run.fleet.of(node)))]], "hole", lasts),
    "delay": lambda run, node, lasts, part: run.links(run.fleet.of(node), "open", lasts, 0.02 + 0.2 * part),
    "clock": Chaos.step,
    "redis_partition": lambda run, _, lasts, part: run.links(run.to_redis(part), "cut", lasts),
    "redis_hole": lambda run, _, lasts, part: run.links(run.to_redis(part), "hole", lasts),
    "redis_stop": lambda run, _, lasts, part: run.redis_signals(lasts),
    "redis_kill": lambda run, _, lasts, part: run.redis_dies(lasts),
    "redis_flush": lambda run, _, lasts, part: run.flush(),
}


def facts(row: dict) -> tuple:
    """The facts of a session that every node knows."""
    names = ("id", "name", "status", "shell", "cwd", "createdAt", "owner", "dimensions", "foreground", "currentCommand", "unreachable")
    return tuple(json.dumps(row.get(name)) for name in names)


def differing(found: dict, truth: dict) -> dict:
    """The sessions of a list that are not as they should be."""
    return {session: (found.get(session), truth.get(session)) for session in found.keys() | truth.keys() if found.get(session) != truth.get(session)}


def differs(found: bytes, expected: bytes) -> str:
    """How an output differs."""
    at = next((place for place, (one, other) in enumerate(zip(found, expected)) if one != other), min(len(found), len(expected)))
    return f"{len(found)} bytes, not {len(expected)}, from {at}: {found[at : at + 60]!r}" if found != expected else "the right output"


def chaos(options: argparse.Namespace, kind: type[Chaos] = Chaos) -> dict:
    """Runs it with a fleet of its own, of which nothing is left."""
    fleet = Fleet()
    try:
        fleet.start()
        run = kind(options, fleet)
        report = run.play()
        if report["broken"] and options.verbose:
            for node in fleet.nodes.values():
                print(f"node {node.number}: {(node.root / 'server.log').read_text()[-3000:]}")
        return report
    finally:
        fleet.end()


def options_of(words: list[str] | None = None) -> argparse.Namespace:
    """The options of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5, help="the length of the faults")
    parser.add_argument("--round", type=float, default=45, metavar="SECONDS", help="how often everything heals, and the lists are compared")
    parser.add_argument("--longest", type=float, default=15, metavar="SECONDS", help="the length of the longest fault")
    parser.add_argument("--lanes", type=int, default=2, help="the faults at once")
    parser.add_argument("--sessions", type=int, default=9, help="the sessions with commands")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31), help="repeats the order of faults and work")
    parser.add_argument("--json", type=Path, help="writes the report to this file")
    parser.add_argument("--verbose", action="store_true", help="prints each fault, and the logs of the nodes if something broke")
    return parser.parse_args(words)


def main() -> int:
    """The command."""
    options = options_of()
    for signo in signal.SIGINT, signal.SIGTERM:
        signal.signal(signo, lambda *_: sys.exit("stopped"))
    print(f"seed {options.seed}", flush=True)
    report = chaos(options)
    print(json.dumps(report, indent=1))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if report["broken"] else 0


if __name__ == "__main__":
    sys.exit(main())
