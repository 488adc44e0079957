"""Clients elsewhere: TLS whose certificate changes, web pages of other origins, and everything through Debian's nginx."""

import asyncio
import json
import os
import socket
import subprocess
from contextlib import suppress
from urllib.parse import urlsplit

import httpx2
import pytest
import websockets
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_client import CALL_SECONDS, LOOPBACK, PTYD, Agent
from proxies import Nginx, block_of
from reachable import NAME, Server, ask, certificate, code, in_a_network, placed, trusting


@pytest.fixture
async def serve(machine):
    """Starts servers at this workspace; ends them and their sessions."""
    servers = []

    def start(*options):
        servers.append(Server(machine, *map(str, options)))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            async with machine.another_agent() as machine.agent:
                await machine.end_sessions()
            server.end()


@pytest.fixture
def files(machine):
    """A certificate of the public name, and its key."""
    to = (machine.root / "tls.pem", machine.root / "tls.key")
    return placed(certificate(machine.root, f"DNS:{NAME}", "DNS:localhost"), to)


# promise: access-14
async def test_a_new_certificate_is_used_and_a_broken_one_is_not(serve, files, machine):
    server = serve("--listen", "127.0.0.1:0", "--tls-cert", files[0], "--tls-key", files[1])
    here = ("127.0.0.1", server.port)

    def works(tls):
        return ask(here, "/terminals", token=server.own, tls=tls, host=f"localhost:{server.port}")[0] == 200

    first = trusting(files[0])
    assert works(first)
    files[1].write_text("no key\n")
    log = machine.state / "serve.log"
    while "cannot be used" not in log.read_text():
        assert works(first)
    assert works(first)
    placed(certificate(machine.root, "DNS:localhost"), files)
    second = trusting(files[0])
    while True:
        try:
            assert works(second)
            break
        except OSError as refused:
            assert "CERTIFICATE_VERIFY_FAILED" in str(refused)
    connection = json.loads(
        ask(here, "/terminals", token=server.own, tls=second, host="localhost", method="POST", body={"shell": "cat"})[2]
    )["connection"]
    assert [urlsplit(connection[name]).scheme for name in ("url", "socket", "mcp")] == ["https", "wss", "https"]


@pytest.mark.parametrize("options, missing", [
    (["--listen", "0.0.0.0:0"], ["--public-url", "--tls-cert", "--trusted-proxy"]),
    (["--listen", "[::]:0", "--public-url", "https://a.example"], ["--tls-cert", "--trusted-proxy"]),
    (["--listen", "0.0.0.0:0", "--trusted-proxy", "10.0.0.0/8"], ["--public-url"]),
    (["--public-url", "https://a.example/ptyd"], ["it cannot have a path"]),
    (["--trusted-proxy", "10.0.0.0/33"], ["an address or a network"]),
    (["--tls-cert", "/nowhere.pem"], ["--tls-key"]),
    (["--tls-cert", "/nowhere.pem", "--tls-key", "/nowhere.key"], ["/nowhere.pem"]),
    (["--tls-cert", "/dev/null", "--tls-key", "/dev/null"], ["not a regular file"]),
])  # fmt: skip
# promise: access-14
async def test_a_server_that_others_could_reach_unprotected_does_not_start(machine, options, missing):
    refused = subprocess.run([PTYD, "serve", *options], env=machine.env, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0
    for word in missing:
        assert word in refused.stderr


# promise: access-14
async def test_at_an_address_that_others_reach_tls_or_a_trusted_proxy_and_a_named_token_are_needed():
    played = in_a_network()
    if "unshare failed" in played.stderr:
        pytest.skip("the kernel gives this user no network namespace")
    assert (played.stdout, played.returncode) == ("others reach it as documented\n", 0), played.stderr


# promise: access-14
async def test_pages_of_an_allowed_origin_get_cors_headers_and_others_do_not(serve):
    server = serve("--listen", "127.0.0.1:0", "--allow-origin", "https://web.example,https://other.example")
    here, host = ("127.0.0.1", server.port), f"localhost:{server.port}"
    asked = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "authorization,content-type"}
    status, headers, _ = ask(here, "/terminals", host=host, method="OPTIONS", Origin="https://web.example", **asked)
    assert (status, headers["access-control-allow-origin"]) == (200, "https://web.example")
    assert headers["access-control-allow-headers"] == "authorization,content-type"
    assert "POST" in headers["access-control-allow-methods"]
    assert headers["access-control-allow-credentials"] is None
    for origin in ("https://evil.example", "http://web.example", "null"):
        headers = ask(here, "/terminals", host=host, method="OPTIONS", Origin=origin, **asked)[1]
        assert headers["access-control-allow-origin"] is None
        refused = ask(here, "/terminals", host=host, token=server.own, Origin=origin)
        assert (code(refused), refused[1]["access-control-allow-origin"]) == ("origin_refused", None)
    status, headers, _ = ask(here, "/terminals", host=host, token=server.own, Origin="https://other.example")
    assert (status, headers["access-control-allow-origin"]) == (200, "https://other.example")
    # A refusal can be read, too.
    status, headers, _ = ask(here, "/terminals", host=host, Origin="https://other.example")
    assert (status, headers["access-control-allow-origin"]) == (401, "https://other.example")


@pytest.fixture
async def proxied(serve, files, machine, resolved):
    """A server behind nginx, with the block of the documentation, and a client that trusts its certificate."""
    server = serve("--listen", "127.0.0.1:0", "--public-url", f"https://{NAME}")
    nginx = Nginx(machine.root / "nginx", block_of("proxy.md"), files, {"127.0.0.1:7893": f"127.0.0.1:{server.port}"})
    try:
        await nginx.listens()
        server.nginx, server.tls = nginx.port, trusting(files[0])
        yield server
    finally:
        nginx.end()


# promise: access-14
async def test_behind_nginx_rest_events_sockets_and_mcp_work_with_a_named_token(proxied):
    base, headers = f"https://{NAME}:{proxied.nginx}", {"Authorization": f"Bearer {proxied.named}"}
    # The port of the test's nginx is not the public one.
    as_public = headers | {"Host": NAME}
    async with httpx2.AsyncClient(base_url=base, headers=as_public, verify=proxied.tls, timeout=60) as http:
        made = (await http.post("/terminals", json={"shell": "bash"})).json()
        at = f"/terminals/{made['id']}"
        assert made["connection"]["url"] == f"https://{NAME}{at}"
        assert made["connection"]["socket"] == f"wss://{NAME}{at}/socket"
        done = (await http.post(f"{at}/execute", json={"waitForCompletion": True, "command": "echo through; exit 3 | false"})).json()
        assert (done["exitCode"], done["output"].strip()) == (1, "through")
        # Each event comes while the stream stays open.
        async with http.stream("GET", f"{at}/output/stream") as events:
            assert events.headers["content-type"].startswith("text/event-stream")
            lines = events.aiter_lines()
            typed = "".join(["mar", "ker"])
            assert (await http.post(f"{at}/execute", json={"waitForCompletion": True, "command": "echo mar''ker"})).json()["exitCode"] == 0
            async with asyncio.timeout(CALL_SECONDS):
                async for line in lines:
                    if typed in line:
                        break
        # A command of 1 MiB passes.
        long = (await http.post(f"{at}/execute", json={"waitForCompletion": True, "command": "#" + "x" * 1_000_000})).json()
        assert long["exitCode"] == 0

        uri = f"wss://{NAME}{at}/socket"
        async with websockets.connect(
            uri, ssl=proxied.tls, host=LOOPBACK, port=proxied.nginx, additional_headers=headers
        ) as peer:
            await peer.send(json.dumps({"type": "input", "data": "echo so''cket\n"}))
            async with asyncio.timeout(CALL_SECONDS):
                while "socket" not in await peer.recv():
                    pass

        async with Client(streamable_http_client(f"{base}/mcp", http_client=http)) as client:
            session = await Agent(client, 0).session()
            assert (await session.run("echo by mcp; false")).exit == 1

        # The server's own token and its user's page are for its machine.
        own = {"Authorization": f"Bearer {proxied.own}"}
        refused = await http.get("/terminals", headers=own)
        assert (refused.status_code, "only on its machine" in refused.json()["detail"]) == (401, True)
        page = await http.get("/ask/AbCdEf", headers={"Authorization": ""})
        assert (page.status_code, "Basic" in page.headers["www-authenticate"]) == (401, True)
        foreign = await http.get("/terminals", headers={"Host": "evil.example"})
        assert (foreign.status_code, foreign.json()["code"]) == (403, "host_refused")


class Elsewhere:
    """The command line of a user on another machine, who has a URL and a token."""

    def __init__(self, home, url: str, authority, token: str | None):
        self.home = home
        home.mkdir(exist_ok=True)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "PTYD_URL": url, "SSL_CERT_FILE": str(authority), "LANG": "C.UTF-8"}
        if token is not None:
            self.env["PTYD_TOKEN"] = token

    def ptyd(self, *words: str, input: str | None = None) -> subprocess.CompletedProcess:
        stdin = {"input": input} if input is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run(
            [PTYD, *words], env=self.env, cwd=self.home, capture_output=True, text=True, timeout=CALL_SECONDS, **stdin
        )

    def says(self, *words: str) -> tuple[int, str]:
        """The exit code and the output."""
        done = self.ptyd(*words)
        return done.returncode, done.stdout + done.stderr

    def attached(self, session: str, keys: bytes, until: bytes) -> bytes:
        """The output of `attach` at a terminal until a text comes; then it is detached."""
        master, slave = os.openpty()
        with subprocess.Popen(
            [PTYD, "attach", session], env=self.env | {"TERM": "xterm"}, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        ) as process:
            os.close(slave)
            os.write(master, keys)
            shown = b""
            while until not in shown:
                shown += os.read(master, 4096)
            os.write(master, b"\x1c\x1c")
            with suppress(OSError):
                while piece := os.read(master, 4096):
                    shown += piece
            assert process.wait() == 0
        os.close(master)
        return shown


# promise: cli-13
async def test_the_command_line_uses_a_server_elsewhere_like_its_own(serve, files, machine):
    server = serve("--listen", "127.0.0.1:0", "--tls-cert", files[0], "--tls-key", files[1])
    url = f"https://localhost:{server.port}"
    direct = Elsewhere(machine.root / "elsewhere", url, files[0], server.named)
    session = direct.ptyd("new", "--name", "far").stdout.strip()
    assert direct.says("run", "-s", session, "echo far-$((40+2)); (exit 7)") == (7, "far-42\n")
    assert direct.says("ls", "-q") == (0, f"{session}\n")
    assert "far-42" in direct.says("logs", session)[1]
    assert direct.says("approvals")[0] == 0
    assert url in direct.says("status")[1]
    assert b"over-42" in direct.attached(session, b"echo over-$((40+2))\r", b"over-42")
    # A command of its own begins where the server's sessions do, and ends its session.
    assert direct.says("run", "exit 3")[0] == 3
    assert direct.says("ls", "-q") == (0, f"{session}\n")
    code, said = direct.says("stop")
    assert code == 2 and "on this machine only" in said
    refused = direct.ptyd("run", "cat", input="data")
    assert refused.returncode == 2 and "another machine" in refused.stderr


# promise: cli-13
async def test_a_token_is_sent_only_where_nobody_can_read_it_on_the_way(serve, files, machine):
    server = serve("--listen", "127.0.0.1:0", "--tls-cert", files[0], "--tls-key", files[1])
    url = f"https://localhost:{server.port}"
    person = Elsewhere(machine.root / "person", url, files[0], None)
    code, said = person.says("ls")
    assert code == 2 and "ptyd login" in said
    assert person.ptyd("login", url, input="wrong\n").returncode == 4
    assert person.says("ls")[0] == 2
    assert person.ptyd("login", input=server.named + "\n").returncode == 0
    kept = person.home / ".config/ptyd/logins.json"
    assert kept.stat().st_mode & 0o777 == 0o600 and server.named in kept.read_text()
    assert person.says("ls")[0] == 0
    assert person.says("logout")[0] == 0 and person.says("ls")[0] == 2
    # Plain HTTP to another machine, a certificate of an unknown authority, a name that is not the certificate's.
    person.env["PTYD_TOKEN"] = server.named
    code, said = person.says("--url", "http://ptyd.example:7893", "ls")
    assert code == 2 and "https" in said
    code, said = person.says("--url", f"https://127.0.0.1:{server.port}", "ls")
    assert code == 5 and "certificate" in said
    person.env["SSL_CERT_FILE"] = str(certificate(machine.root, "DNS:localhost")[0])
    code, said = person.says("ls")
    assert code == 5 and "certificate" in said


# promise: access-14
async def test_a_token_has_the_same_rights_from_outside(proxied):
    here, there = ("127.0.0.1", proxied.port), (LOOPBACK, proxied.nginx)
    reader = proxied.token("eye", "--scope", "read")
    for address, options in ((here, {"host": "localhost"}), (there, {"tls": proxied.tls})):
        refused = ask(address, "/terminals", token=reader, method="POST", body={}, **options)
        assert (refused[0], code(refused)) == (403, "forbidden")
        assert ask(address, "/terminals", token=reader, **options)[0] == 200
        assert ask(address, "/tokens", token=proxied.named, **options)[0] == 403


# promise: access-14
async def test_a_proxy_in_front_of_the_socket_is_refused(serve, machine):
    serve("--listen", "127.0.0.1:0")
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(machine.root / "run/ptyd.sock"))
        peer.sendall(b"GET /terminals HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 10.0.0.9\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: peer.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 403") and b"and not its Unix socket" in answer
