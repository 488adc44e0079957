"""Three nodes as one service: behind Debian's nginx, HAProxy and Caddy with the files of deploy/, and by --peers without any rule."""

import asyncio
import json
import re
import shutil
import signal
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
import websockets
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

import fleet as machines
from mcp_client import CALL_SECONDS, IS_FULL, LOOPBACK, PTYD, Agent, Workspace, free_port, stopped
from prometheus import needed
from proxies import PATH, ROUTERS, Caddy, Haproxy, router
from reachable import NAME, Server, certificate, in_a_network, placed, trusting

NODES = (1, 2, 3)
# Requests by id: through the balancer, and through a node that forwards.
REQUESTS = 1_000

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
    "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}}  # fmt: skip


ACCEPT = {"Accept": "application/json, text/event-stream"}


def called(tool: str, **arguments) -> dict:
    """A call of a tool."""
    return {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


class Fleet:
    """Three servers on one port of three loopback addresses, with the same named token."""

    def __init__(self):
        self.port, self.servers = free_port(), {}

    def start(self, node: int, *options: str) -> None:
        machine = Workspace()
        if self.servers:
            # Until the nodes share their tokens, an operator copies the file.
            shutil.copy(self.servers[1].machine.state / "tokens.json", machine.state / "tokens.json")
        self.servers[node] = Server(
            machine, "--node", str(node), "--listen", f"127.0.0.{node}:{self.port}",
            "--public-url", f"https://{NAME}", *options,
        )  # fmt: skip

    @property
    def headers(self) -> dict[str, str]:
        """Those of a client of the public address."""
        return {"Authorization": f"Bearer {self.servers[1].named}", "Host": NAME}

    def url(self, node: int) -> str:
        """A node's own address."""
        return f"http://127.0.0.{node}:{self.port}"

    async def end(self) -> None:
        for node, server in self.servers.items():
            if server.process.poll() is None:
                machines.end_sessions(server.machine, node)
                server.end()
            server.machine.remove()


async def fleet_of(*options):
    fleet = Fleet()
    try:
        for node in NODES:
            fleet.start(node, *(option.replace("PORT", str(fleet.port)) for option in options))
        yield fleet
    finally:
        await fleet.end()


@pytest.fixture
async def fleet():
    async for one in fleet_of("--peers", "http://127.0.0.{node}:PORT"):
        yield one


@pytest.fixture
async def alone():
    """The same without --peers."""
    async for one in fleet_of():
        yield one


@pytest.fixture(params=ROUTERS)
async def balanced(alone, tmp_path, resolved, request):
    """Nodes that forward nothing behind a load balancer that routes by the id."""
    files = placed(certificate(tmp_path, f"DNS:{NAME}"), (tmp_path / "tls.pem", tmp_path / "tls.key"))
    # Caddy takes each address apart.
    addresses = {f"10.0.0.{n}:7893": f"127.0.0.{n}:{alone.port}" for n in NODES}
    if request.param == "caddy":
        addresses = {"10.0.0.": "127.0.0.", ":7893": f":{alone.port}"}
    proxy = router(request.param, tmp_path / "proxy", files, addresses)
    try:
        await proxy.listens()
        alone.base, alone.tls, alone.proxy = f"https://{NAME}:{proxy.port}", trusting(files[0]), proxy
        yield alone
    finally:
        proxy.end()


async def made_on_each(fleet) -> dict[int, str]:
    """A session on each node."""
    made = {}
    for node in NODES:
        async with httpx2.AsyncClient(base_url=fleet.url(node), headers=fleet.headers, timeout=60) as http:
            made[node] = (await http.post("/terminals", json={"shell": "bash"})).json()["id"]
            assert made[node].startswith(f"s{node}-")
    return made


async def uses_all(http, base, fleet, sessions, connect):
    """Uses the sessions of all nodes through one address, over REST, SSE, WebSocket and MCP."""
    for node, session in sessions.items():
        at = f"/terminals/{session}"
        done = (await http.post(f"{at}/execute", json={"waitForCompletion": True, "command": f"echo on-{node}; exit 3 | false"})).json()
        assert (done.get("exitCode"), done.get("output", "").strip()) == (1, f"on-{node}"), done
        async with http.stream("GET", f"{at}/output/stream") as events:
            assert events.headers["content-type"].startswith("text/event-stream")
            lines = events.aiter_lines()
            await http.post(f"{at}/execute", json={"waitForCompletion": True, "command": "echo mar''ker"})
            async with asyncio.timeout(CALL_SECONDS):
                async for line in lines:
                    if "marker" in line:
                        break
        async with connect(f"{at}/socket") as peer:
            await peer.send(json.dumps({"type": "input", "data": "echo so''cket\n"}))
            async with asyncio.timeout(CALL_SECONDS):
                while "socket" not in await peer.recv():
                    pass
    async with Client(streamable_http_client(f"{base}/mcp", http_client=http)) as client:
        # The schemas tell the client which header to send.
        await client.list_tools()
        for node, session in sessions.items():
            said = await client.call_tool("execute_in_terminal", {"session_id": session, "command": f"echo mcp-{node}"})
            assert f"mcp-{node}" in said.content[0].text, said
        # A conversation's own session, wherever it is.
        assert (await (await Agent(client, 0).session()).run("echo by mcp; false")).exit == 1


async def none_is_wrong(http, sessions):
    """Every request by id gets to its node."""
    async def once(number):
        node = NODES[number % len(NODES)]
        answer = await http.get(f"/terminals/{sessions[node]}")
        return (answer.status_code, answer.json().get("id")) != (200, sessions[node])

    wrong = [await once(number) for number in range(REQUESTS)]
    assert sum(wrong) == 0


async def none_is_wrong_by_header(http, sessions):
    """Every header of MCP with an id routes, and the first of several in the order of the page decides."""
    conversations = {}
    while len(conversations) < len(NODES):
        talk = (await http.post("/mcp", json=HELLO, headers=ACCEPT)).headers["mcp-session-id"]
        conversations[int(talk[1])] = talk
    for node, other in zip(NODES, NODES[1:] + NODES[:1], strict=True):
        by_header = [
            {"Mcp-Session-Id": conversations[node]},
            {"Mcp-Name": f"ptyd://sessions/{sessions[node]}", "Mcp-Session-Id": conversations[other]},
            {"Mcp-Name": f"{sessions[node]}.c1"},
            {"Mcp-Name": f"a{node}-aaaaaaaaaa"},
            {"Mcp-Param-Session": sessions[node], "Mcp-Name": f"{sessions[other]}.c1", "Mcp-Session-Id": conversations[other]},
        ]
        for headers in by_header:
            call = called("get_terminal_output", session_id=sessions[node])
            said = await http.post("/mcp", json=call, headers=ACCEPT | headers)
            assert (said.status_code, '"isError":true' in said.text) == (200, False), (headers, said.text)
        # The path decides before all headers.
        answer = await http.get(f"/terminals/{sessions[node]}", headers={"Mcp-Param-Session": sessions[other]})
        assert answer.status_code == 200, answer.text
        for path in f"/approvals/a{node}-aaaaaaaaaa", f"/ask/p{node}-AbC", f"/ask/a{node}-AbC":
            answer = await http.get(path)
            assert answer.status_code not in (421, 502, 503), (path, answer.text)


async def test_a_load_balancer_routes_every_id_to_its_node(balanced):
    sessions = await made_on_each(balanced)
    own = {"Authorization": balanced.headers["Authorization"]}

    def connect(path):
        return websockets.connect(
            f"wss://{NAME}{path}", ssl=balanced.tls, host=LOOPBACK, port=balanced.proxy.port, additional_headers=own
        )

    async with httpx2.AsyncClient(base_url=balanced.base, headers=balanced.headers, verify=balanced.tls, timeout=60) as http:
        await uses_all(http, balanced.base, balanced, sessions, connect)
        await none_is_wrong(http, sessions)
        await none_is_wrong_by_header(http, sessions)
        # The largest command passes.
        long = await http.post(f"/terminals/{sessions[1]}/execute", json={"waitForCompletion": True, "command": "#" + "x" * 1_000_000})
        assert long.json()["exitCode"] == 0
        # No node has this number, so one of the others answers or the proxy does, and neither says that there is no such session.
        nowhere = await http.get("/terminals/s9-aaaaaaaaaa")
        assert nowhere.status_code in (421, 502), nowhere.text
        # A node that has ended is not replaced by another one in silence. HAProxy asks another node once its checks have failed.
        server = balanced.servers[3]
        async with server.machine.another_agent() as server.machine.agent:
            await server.machine.end_sessions()
        server.end()
        gone = await http.get(f"/terminals/{sessions[3]}")
        async with asyncio.timeout(CALL_SECONDS):
            while isinstance(balanced.proxy, Haproxy) and gone.status_code == 503:
                gone = await http.get(f"/terminals/{sessions[3]}")
        if isinstance(balanced.proxy, Haproxy):
            assert (gone.status_code, gone.json()["code"], "node 3" in gone.json()["detail"]) == (421, "other_node", True)
        else:
            assert gone.status_code == 502, gone.text
        # A request without a node goes on. Caddy may send one over a connection that the node has closed, and does not repeat it.
        made = []
        async with asyncio.timeout(CALL_SECONDS):
            while made[-4:] != [201] * 4:
                made.append((await http.post("/terminals", json={"shell": "cat"})).status_code)
        assert set(made) <= ({201, 502} if isinstance(balanced.proxy, Caddy) else {201}), made


@pytest.mark.parametrize("balanced", ["haproxy", "caddy"], indirect=True)
async def test_a_node_that_drains_gets_no_new_sessions_and_keeps_its_own(balanced):
    sessions = await made_on_each(balanced)
    machine = balanced.servers[3].machine
    drain = await asyncio.create_subprocess_exec(PTYD, "drain", env=machine.env)
    async with httpx2.AsyncClient(base_url=balanced.base, headers=balanced.headers, verify=balanced.tls, timeout=60) as http:
        made = []
        # The load balancer learns it by its next check.
        async with asyncio.timeout(CALL_SECONDS):
            while len(made) < 60 or 503 in made[-60:]:
                made.append((await http.post("/terminals", json={"shell": "cat"})).status_code)
        assert set(made) <= {201, 503}, made
        assert {(await http.post("/terminals", json={"shell": "cat"})).json()["id"][:3] for _ in range(12)} <= {"s1-", "s2-"}
        done = (await http.post(f"/terminals/{sessions[3]}/execute", json={"waitForCompletion": True, "command": "echo still"})).json()
        assert done["output"].strip() == "still"
    machine.ptyd("drain", "--cancel")
    await drain.wait()


async def test_a_node_forwards_requests_for_another_node(fleet):
    sessions = await made_on_each(fleet)
    base = fleet.url(1)
    own = {"Authorization": fleet.headers["Authorization"]}

    def connect(path, headers=own):
        return websockets.connect(f"ws://{NAME}{path}", host="127.0.0.1", port=fleet.port, additional_headers=headers)

    async with httpx2.AsyncClient(base_url=base, headers=fleet.headers, timeout=60) as http:
        await uses_all(http, base, fleet, sessions, connect)
        await none_is_wrong(http, sessions)
        # A client that knows no header for it names the terminal in the body only, also within a conversation.
        accept = ACCEPT
        talk = (await http.post("/mcp", json=HELLO, headers=accept)).headers["mcp-session-id"]
        call = called("execute_in_terminal", session_id=sessions[2], command="echo by-body")
        said = await http.post("/mcp", json=call, headers=accept | {"Mcp-Session-Id": talk})
        assert (said.status_code, "by-body" in said.text, '"isError":true' in said.text) == (200, True, False), said.text
        # A ticket is redeemed by the node that has issued it.
        async with httpx2.AsyncClient(base_url=fleet.url(2), headers=fleet.headers, timeout=60) as there:
            ticket = (await there.post("/tickets", json={"session": sessions[2], "scope": "read"})).json()["ticket"]
        assert ticket.startswith("t2-")
        async with connect(f"/terminals/{sessions[2]}/socket?ticket={ticket}", {}) as peer:
            await peer.recv()
        # Without a credential the other node asks for one.
        async with connect(f"/terminals/{sessions[2]}/socket", {}) as peer:
            await peer.send(json.dumps({"type": "auth", "token": fleet.servers[1].named}))
            await peer.recv()
        # One that a node has forwarded stays where it is.
        again = await http.get(f"/terminals/{sessions[2]}", headers={"Via": "1.1 ptyd-3"})
        assert (again.status_code, again.json()["code"]) == (421, "other_node"), again.text
        unknown = await http.get(f"/terminals/{sessions[2]}", headers={"Authorization": "Bearer " + "x" * 40})
        assert unknown.status_code == 401
        # A node that stands still is named, although its kernel accepts connections.
        with stopped(fleet.servers[3].process.pid):
            gone = await http.get(f"/terminals/{sessions[3]}", timeout=CALL_SECONDS)
        assert (gone.status_code, gone.json()["code"], "node 3" in gone.json()["detail"]) == (503, "node_unreachable", True), gone.text
        # A node that ends is named.
        server = fleet.servers[3]
        async with server.machine.another_agent() as server.machine.agent:
            await server.machine.end_sessions()
        server.end()
        gone = await http.get(f"/terminals/{sessions[3]}")
        said = gone.json()
        assert (gone.status_code, said["code"], "node 3" in said["detail"]) == (503, "node_unreachable", True), said


async def test_a_node_that_does_not_forward_names_the_node_of_each_id(alone):
    sessions = await made_on_each(alone)
    accept = ACCEPT
    async with (
        httpx2.AsyncClient(base_url=alone.url(1), headers=alone.headers | accept, timeout=60) as one,
        httpx2.AsyncClient(base_url=alone.url(2), headers=alone.headers | accept, timeout=60) as two,
    ):
        talk = (await two.post("/mcp", json=HELLO)).headers["mcp-session-id"]
        assert talk.startswith("m2-")
        listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        answers = {
            "session": await one.get(f"/terminals/{sessions[2]}"),
            "events": await one.get(f"/terminals/{sessions[2]}/output/stream"),
            "approval": await one.post("/approvals/a2-aaaaaaaaaa", json={"decision": "allow"}),
            "page": await one.get("/ask/p2-AbC"),
            "page of an approval": await one.get("/ask/a2-AbC"),
            "conversation": await one.post("/mcp", json=listed, headers={"Mcp-Session-Id": talk}),
            "its end": await one.delete("/mcp", headers={"Mcp-Session-Id": talk}),
            "terminal of a call": await one.post("/mcp", json=listed, headers={"Mcp-Param-Session": sessions[2]}),
            "ticket": await one.get(f"/terminals/{sessions[2]}/socket?ticket=t2-AbC", headers={"Authorization": ""}),
        }
        for what, answer in answers.items():
            assert (answer.status_code, answer.json()["code"]) == (421, "other_node"), (what, answer.text)
            assert "node 2" in answer.json()["detail"], what
        # It works where it is, and tells clients over HTTP which header to send.
        tools = (await two.post("/mcp", json=listed, headers={"Mcp-Session-Id": talk})).text
        assert '"x-mcp-header":"Session"' in tools
        # The id of a conversation of another node does not keep a call from its terminal.
        call = called("get_terminal_output", session_id=sessions[1])
        mixed = {"Mcp-Session-Id": talk, "Mcp-Param-Session": sessions[1]}
        assert (await one.post("/mcp", json=call, headers=mixed)).status_code == 200


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
# promise: node-2, node-5
def test_the_clients_of_the_requirement_use_three_machines_with_one_redis_as_one_service(kind):
    for program in "redis-server", "ip", kind:
        _ = shutil.which(program, path=PATH) or pytest.skip(f"not installed: {program}")
    played = in_a_network(kind, str(REQUESTS if IS_FULL else 150), program=machines.__file__)
    if "unshare failed" in played.stderr:
        pytest.skip("the kernel gives this user no network namespace")
    assert re.fullmatch(r"\d+ requests by id, 0 to a wrong node\n", played.stdout) and played.returncode == 0, played.stderr


@contextmanager
def redis_with_tls(folder: Path, files: tuple[Path, Path]):
    """A Redis that takes nothing but TLS. Gives its port, and what it answers to a trusting client."""
    port = free_port()
    words = ["--port", "0", "--tls-port", port, "--bind", LOOPBACK, "--save", "", "--tls-auth-clients", "no", "--dir", folder]
    words += ["--tls-cert-file", files[0], "--tls-key-file", files[1], "--tls-ca-cert-file", files[0]]
    process = subprocess.Popen([needed("redis-server"), *map(str, words)], stdout=subprocess.PIPE)

    def asks(*command: str) -> str:
        tls = ["redis-cli", "--tls", "--cacert", files[0], "-h", LOOPBACK, "-p", str(port)]
        return subprocess.run([*tls, *command], check=True, capture_output=True, text=True).stdout

    try:
        assert any(b"eady to accept connections" in line for line in process.stdout)
        yield port, asks
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# promise: node-2
async def test_redis_with_tls_is_used_if_its_certificate_is_trusted_and_told_nothing_if_not(tmp_path):
    folders = [tmp_path / name for name in ("right", "authority", "name")]
    for folder in folders:
        folder.mkdir()
    right, authority = (certificate(folder, f"IP:{LOOPBACK}") for folder in folders[:2])
    name = certificate(folders[2], "DNS:redis.example")
    told = {}
    with redis_with_tls(tmp_path, right) as (port, asks), redis_with_tls(tmp_path, name) as (other_port, asks_other):
        cases = {"one": (1, port, right), "two": (2, port, right), "authority": (3, port, authority), "name": (4, other_port, name)}
        fleet = Fleet()
        try:
            for case, (node, at, trusted) in cases.items():
                machine = Workspace()
                machine.env |= {"PTYD_REDIS": f"rediss://{LOOPBACK}:{at}", "SSL_CERT_FILE": str(trusted[0])}
                server = fleet.servers[node] = Server(machine, "--node", str(node), "--listen", f"{LOOPBACK}:0")
                machine.url, machine.token = f"http://{LOOPBACK}:{server.port}/mcp", server.own
                async with machine.http() as http:
                    made = (await http.post("/terminals", json={"shell": "cat"})).json()["id"]
                    told[case] = made, (machine.state / "serve.log").read_text()

            async def listed(node):
                async with fleet.servers[node].machine.http() as http:
                    found = (await http.get("/terminals")).json()
                return {row["id"] for row in found["terminals"]}, bool(found.get("degraded"))

            both = {told["one"][0], told["two"][0]}
            async with asyncio.timeout(CALL_SECONDS):
                while (await listed(1), await listed(2)) != ((both, False),) * 2:
                    pass
            for case, why in ("authority", "invalid peer certificate: (BadSignature|UnknownIssuer)"), ("name", "certificate not valid for name"):
                assert re.search(f"the directory does not answer.*{why}", told[case][1]), told[case][1]
                assert await listed(cases[case][0]) == ({told[case][0]}, True)
            assert asks("SMEMBERS", "ptyd:nodes").split() == ["1", "2"] and asks_other("DBSIZE") == "0\n"
        finally:
            await fleet.end()
