"""A fleet of machines: each node, the Redis and the load balancer in a network namespace of its own, at the addresses of deploy/.

As a program it plays `one_service` in a network namespace, in which the client is: `fleet.py nginx 1000`.
"""

import asyncio
import contextlib
import ctypes
import itertools
import json
import os
import re
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx2
import websockets
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_client import CALL_SECONDS, Agent, Workspace
from proxies import router
from reachable import NAME, Server, ask, certificate, placed, trusting
from test_requirement_client import Service

NODES = (1, 2, 3)
NODE, REDIS, BALANCER, CLIENT = "10.0.0.{}", "10.0.0.4", "10.0.0.5", "10.0.0.254"
PORT = 7893
NEW_NETWORK = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def check(code: int) -> None:
    """Raises the error of a call of the C library."""
    if code != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def ip(*words: str, **options) -> None:
    """Runs `ip` of Debian's iproute2."""
    subprocess.run([shutil.which("ip", path="/usr/sbin:/sbin:/usr/bin:/bin"), *words], check=True, **options)


class Network:
    """A bridge with this process, and machines on it."""

    def __init__(self):
        self.own, self.machines = os.open("/proc/thread-self/ns/net", os.O_RDONLY), {}
        ip("link", "set", "lo", "up")
        ip("link", "add", "bridge", "type", "bridge")
        ip("address", "add", f"{CLIENT}/24", "dev", "bridge")
        ip("link", "set", "bridge", "up")

    def add(self, address: str) -> None:
        """A machine at this address."""
        check(LIBC.unshare(NEW_NETWORK))
        try:
            self.machines[address] = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            cable = f"cable{len(self.machines)}"
            ip("link", "set", "lo", "up")
            ip("link", "add", "eth0", "type", "veth", "peer", "name", cable, "netns", f"/proc/self/fd/{self.own}", pass_fds=[self.own])
            ip("address", "add", f"{address}/24", "dev", "eth0")
            ip("link", "set", "eth0", "up")
        finally:
            check(LIBC.setns(self.own, NEW_NETWORK))
        ip("link", "set", cable, "master", "bridge", "up")

    @contextlib.contextmanager
    def at(self, address: str):
        """The processes that the block starts are on this machine."""
        check(LIBC.setns(self.machines[address], NEW_NETWORK))
        try:
            yield
        finally:
            check(LIBC.setns(self.own, NEW_NETWORK))


class Fleet:
    """Three nodes that share one Redis and their tokens behind a load balancer, which alone knows the way: the nodes forward nothing."""

    def __init__(self):
        self.network, self.servers, self.redis, self.proxy = Network(), {}, None, None

    def start(self, kind: str, folder: Path) -> None:
        """Starts them: Redis, the nodes, the load balancer."""
        for address in [*map(NODE.format, NODES), REDIS, BALANCER]:
            self.network.add(address)
        with self.network.at(REDIS):
            words = ["redis-server", "--bind", REDIS, "--protected-mode", "no", "--save", "", "--dir", folder]
            self.redis = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        key, files = secrets.token_hex(32), (folder / "tls.pem", folder / "tls.key")
        for node in NODES:
            machine, address = Workspace(), NODE.format(node)
            (machine.state / "fleet-key").write_text(key)
            (machine.state / "fleet-key").chmod(0o600)
            machine.env |= {"PTYD_NODE": str(node), "PTYD_REDIS": f"redis://{REDIS}:6379", "PTYD_FLEET_KEY": str(machine.state / "fleet-key")}
            machine.env |= {"PTYD_PUBLIC_URL": f"https://{NAME}", "PTYD_TRUSTED_PROXY": "10.0.0.0/24"}
            with self.network.at(address):
                self.servers[node] = Server(machine, "--listen", f"{address}:{PORT}")
        placed(certificate(folder, f"DNS:{NAME}"), files)
        self.tls = trusting(files[0])
        with self.network.at(BALANCER):
            self.proxy = router(kind, folder / "proxy", files, {}, (BALANCER, 443))

    def counted(self, node: int) -> tuple[int, int]:
        """The answers of a node about sessions and at the door of MCP, and its answers to requests for other nodes."""
        found = ask((NODE.format(node), PORT), "/metrics", token=self.servers[node].named)[2]
        rows = re.findall(r"^ptyd_http_answer_seconds_count\{(.*)\} (\d+)$", found, re.MULTILINE)
        by_id = sum(int(count) for labels, count in rows if "/terminals/{" in labels or "/mcp" in labels)
        return by_id, sum(int(count) for labels, count in rows if 'status="421"' in labels)

    async def end(self) -> None:
        """Ends everything that it has started."""
        if self.proxy is not None:
            self.proxy.end()
        for node, server in self.servers.items():
            end_sessions(server.machine, node)
            server.end()
            await server.machine.close()
            server.machine.remove()
        if self.redis is not None:
            self.redis.terminate()
            self.redis.wait()


def end_sessions(machine: Workspace, node: int) -> None:
    """Ends the sessions of a node, whose list may have those of all nodes."""
    own = [row["id"] for row in json.loads(machine.ptyd("ls", "--json")) if row["id"].startswith(f"s{node}-")]
    if own:
        machine.ptyd("kill", "--force", *own)


class Socket:
    """terminal-management.md §3.3.2, at the address that the create has returned: input, output, status updates and a heartbeat."""

    def __init__(self, connection: websockets.ClientConnection):
        self.connection, self.output, self.statuses = connection, "", []

    async def next(self) -> dict:
        """The next message."""
        message = json.loads(await self.connection.recv())
        if message["type"] == "output" and not message.get("snapshot"):
            self.output += message["data"]
        elif message["type"] == "status":
            self.statuses.append((message["status"], message.get("event")))
        return message

    async def types(self, text: str, awaited: str) -> None:
        """Sends input, and waits for this output."""
        await self.connection.send(json.dumps({"type": "input", "data": text}))
        self.output = ""
        while awaited not in self.output:
            await self.next()

    async def beats(self) -> None:
        """Both heartbeats are answered: WebSocket's own, and the one for pages."""
        await (await self.connection.ping())
        await self.connection.send(json.dumps({"type": "ping"}))
        while (await self.next())["type"] != "pong":
            pass


class Followed:
    """The ends of commands on all nodes, by one stream of events at one address."""

    def __init__(self, http: httpx2.AsyncClient):
        self.http, self.ended, self.is_open = http, [], asyncio.Event()

    async def follows(self) -> None:
        """Reads the stream."""
        async with self.http.stream("GET", "/events") as answer:
            assert answer.status_code == 200
            self.is_open.set()
            async for line in answer.aiter_lines():
                event = json.loads(line[6:]) if line.startswith("data: ") else {}
                assert event.get("event") != "gap", event
                if event.get("event") == "command.completed":
                    self.ended.append((event["sessionId"], event["commandId"]))


async def until(holds) -> None:
    """Asks until this holds."""
    async with asyncio.timeout(CALL_SECONDS):
        while not await holds():
            pass


async def requests(http: httpx2.AsyncClient, tls: ssl.SSLContext, sessions: list[str], sockets: dict[str, str], count: int) -> tuple[int, list]:
    """So many requests by id, of each kind, to each session in turn. Each answer shows that it is from the session. Gives their number and
    the commands."""
    service, commands = Service(http), []
    async with Client(streamable_http_client(f"https://{NAME}/mcp", http_client=http)) as client:
        # The schemas tell the client which header to send.
        await client.list_tools()
        agent, done = Agent(client, 0), 0
        kinds = itertools.cycle(["show", "execute", "resize", "mcp", "show", "socket", "mcp"])
        for session, kind in zip(itertools.cycle(sessions), kinds):
            if done >= count:
                break
            word = f"{session}-{done}"
            done += 1
            if kind == "show":
                assert (await service.show(session))["id"] == session
            elif kind == "resize":
                assert (await service.ask("POST", f"/terminals/{session}/resize", {"cols": 80 + done % 50, "rows": 24}))["success"] is True
            elif kind == "execute":
                command = await service.execute(session, f"echo {word}; exit 3 | false")
                commands.append((session, command))
                ended = await service.end_of(session, command)
                assert (ended["sessionId"], ended["exitCode"], ended["output"]) == (session, 1, f"{word}\n"), ended
                done += 1
            elif kind == "mcp":
                ran = await agent.at(session).run(f"echo {word}; (exit 4)")
                assert (ran.exit, ran.output) == (4, word), ran
            else:
                async with websockets.connect(sockets[session], ssl=tls, additional_headers={"Authorization": http.headers["Authorization"]}) as one:
                    await Socket(one).types(f"echo {word[:4]}''{word[4:]}\n", word)
    return done, commands


async def lifecycle(service: Service, tls: ssl.SSLContext) -> None:
    """terminal-management.md §4.2, from the creation to the end, with the WebSocket open."""
    session = await service.create("bash")
    async with websockets.connect(session["connection"]["socket"], ssl=tls, additional_headers={"Authorization": service.http.headers["Authorization"]}) as one:
        viewer = Socket(one)
        await viewer.beats()
        await viewer.types("read -p 'name? ' name; echo hello $name\n", "name? ")
        await viewer.types("wo''rld\n", "hello wo''rld")
        assert (await service.run(session["id"], "echo $name"))["output"] == "wo''rld\n"
        ended = await service.ask("DELETE", f"/terminals/{session['id']}", {"force": True})
        assert ended["status"] == "terminated"
        with contextlib.suppress(websockets.ConnectionClosed):
            while True:
                await viewer.next()
        assert viewer.statuses[-1] == ("terminated", "exit") and one.close_code == 4410, (viewer.statuses, one.close_code)
    assert (await service.show(session["id"]))["status"] == "terminated"


async def one_service(kind: str, count: int) -> None:
    """The client of the requirement, and one of MCP, use three machines as one service."""
    with tempfile.TemporaryDirectory(prefix="ptyd-") as folder:
        fleet = Fleet()
        try:
            fleet.start(kind, Path(folder))
            await fleet.proxy.listens()
            headers = {"Authorization": f"Bearer {fleet.servers[2].named}"}
            async with httpx2.AsyncClient(base_url=f"https://{NAME}", headers=headers, verify=fleet.tls, timeout=CALL_SECONDS) as http:
                await used(fleet, http, count)
        finally:
            await fleet.end()


async def used(fleet: Fleet, http: httpx2.AsyncClient, count: int) -> None:
    """Uses the fleet by its one address."""
    service, sockets = Service(http), {}
    while len({name[:3] for name in sockets}) < len(NODES) or len(sockets) < 2 * len(NODES):
        session = await service.create("bash")
        sockets[session["id"]] = session["connection"]["socket"]
    followed = Followed(http)
    follower = asyncio.create_task(followed.follows())
    await followed.is_open.wait()
    await lifecycle(service, fleet.tls)
    before = [fleet.counted(node)[0] for node in NODES]
    done, commands = await requests(http, fleet.tls, list(sockets), sockets, count)
    after = [fleet.counted(node) for node in NODES]
    # Whichever node lists, and at either door, it lists all.
    for _ in range(4 * len(NODES)):
        async def lists_all():
            listed = await service.ask("GET", "/terminals")
            assert not listed.get("degraded"), listed
            return {row["id"] for row in listed["terminals"]} == set(sockets)

        await until(lists_all)
    async with Client(streamable_http_client(f"https://{NAME}/mcp", http_client=http)) as client:
        listed = await Agent(client, 0).call("list_terminal_sessions", limit=200)
        assert {row["session_id"] for row in listed.structured["sessions"]} >= set(sockets), listed

    async def tells_all():
        if follower.done():
            await follower
        await asyncio.wait([follower], timeout=0.1)
        return set(commands) <= set(followed.ended)

    await until(tells_all)
    follower.cancel()
    once = [end for end in followed.ended if end in set(commands)]
    assert len(once) == len(commands), "an event came twice"
    by_node = [now[0] - then for now, then in zip(after, before)]
    wrong = sum(found[1] for found in after)
    assert wrong == 0 and min(by_node) > 0 and sum(by_node) >= done >= count, (wrong, by_node, done)
    print(f"{done} requests by id, {wrong} to a wrong node")


def main() -> None:
    """The command."""
    LIBC.prctl(1, signal.SIGKILL)
    real = socket.getaddrinfo
    socket.getaddrinfo = lambda host, *rest, **more: real(BALANCER if host in (NAME, NAME.encode()) else host, *rest, **more)
    asyncio.run(one_service(sys.argv[1], int(sys.argv[2])))


if __name__ == "__main__":
    main()
