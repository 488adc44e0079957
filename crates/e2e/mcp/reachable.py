"""Servers that clients elsewhere reach: certificates, nginx with the block of docs/proxy.md, and a network of one's own.

As a program it plays `others_reach` in a network namespace, where an address that is not loopback belongs to nobody else.
"""

import asyncio
import ctypes
import fcntl
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
from pathlib import Path

from mcp_client import LOOPBACK, Workspace, free_port

NAME = "terminals.example.com"


def certificate(folder: Path, *names: str) -> tuple[Path, Path]:
    """A new certificate of its own authority, and its key."""
    files = folder / "new.pem", folder / "new.key"
    alternatives = "subjectAltName=" + ",".join(names)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=ptyd test", "-addext", alternatives, "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", files[1], "-out", files[0]],
        check=True, capture_output=True,
    )  # fmt: skip
    return files


def placed(files, to):
    """Puts a certificate and its key where a server reads them; each of the two at once."""
    for new, old in zip(files, to, strict=True):
        os.replace(new, old)
    return to


def trusting(certificate: Path) -> ssl.SSLContext:
    """A client's trust in the server with this certificate."""
    return ssl.create_default_context(cafile=certificate)


class Server:
    """A `ptyd serve` with these options, and its own token and a named one."""

    def __init__(self, machine: Workspace, *options: str):
        self.machine = machine
        machine.process = self.process = machine.serve(*options, stderr=(machine.state / "serve.log").open("a"))
        self.greeting = [self.process.stdout.readline().decode() for _ in range(3)]
        self.port = int((machine.state / "listen").read_text().strip().rpartition(":")[2])
        self.own = (machine.state / "token").read_text().strip()
        self.named = self.token(f"ann-{self.process.pid}", "--unconfined")

    def token(self, name: str, *options: str) -> str:
        """A new named token."""
        return self.machine.ptyd("token", "new", name, *options)

    def end(self) -> None:
        """Ends the server, and not its sessions."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.process.stdout.close()


def ask(address, path, *, token=None, tls=None, host=NAME, method="GET", body=None, sni=None, source=None, **headers):
    """The status, the headers and the text of an answer."""
    connection = http.client.HTTPConnection(*address, timeout=60, source_address=source and (source, 0))
    connection.connect()
    if tls is not None:
        connection.sock = tls.wrap_socket(connection.sock, server_hostname=sni or host.rpartition(":")[0] or host)
    headers = {"Host": host} | {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if body is not None:
        headers["Content-Type"] = "application/json"
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def code(answer) -> str | None:
    """The stable code of a refusal; none where it is none."""
    status, _, text = answer
    return json.loads(text)["code"] if status >= 400 else None


def in_a_network(*words: str, program: str = __file__) -> subprocess.CompletedProcess:
    """Runs a file, such as this one, in a network namespace of its own, as root or, where the kernel lets them, as anybody."""
    unshare = ["unshare", "--net", "--kill-child", "--fork"] + ([] if os.geteuid() == 0 else ["--map-root-user"])
    return subprocess.run([*unshare, sys.executable, program, *words], capture_output=True, text=True, timeout=600)


OURS, OTHER = "10.77.0.1", "10.77.0.2"


def make_network() -> None:
    """Loopback, and two addresses that are none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, address in (("lo", "127.0.0.1"), ("lo:1", OURS), ("lo:2", OTHER)):
            family = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton(address))
            fcntl.ioctl(control, 0x8916, struct.pack("=16s16s8x", name.encode(), family))  # SIOCSIFADDR
        fcntl.ioctl(control, 0x8914, struct.pack("=16sH22x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running


def others_reach() -> None:
    """A server at an address that others reach: with TLS, and behind a proxy that it trusts."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
    make_network()
    machine = Workspace()
    try:
        files = placed(certificate(machine.root, f"DNS:{NAME}"), (machine.root / "tls.pem", machine.root / "tls.key"))
        public = f"https://{NAME}"
        tls = trusting(files[0])
        server = Server(
            machine, "--listen", "0.0.0.0:0", "--public-url", public, "--tls-cert", files[0], "--tls-key", files[1]
        )
        ours = (OURS, server.port)
        for token, status in ((server.named, 200), (server.own, 401), ("x" * 40, 401), (None, 401)):
            assert ask(ours, "/terminals", token=token, tls=tls)[0] == status, token
        assert ask(("127.0.0.1", server.port), "/terminals", token=server.own, tls=tls, host="localhost", sni=NAME)[0] == 200
        # The name of a loopback does not make a request local.
        assert ask(ours, "/terminals", token=server.own, tls=tls, host="localhost", sni=NAME)[0] == 401
        assert code(ask(ours, "/terminals", token=server.named, tls=tls, host="evil.example", sni=NAME)) == "host_refused"
        try:
            status = ask(ours, "/terminals", token=server.named)[0]
            raise AssertionError(f"plain HTTP was answered with {status}")
        except (http.client.BadStatusLine, ConnectionError):
            pass
        server.end()

        server = Server(machine, "--listen", f"{OURS}:0", "--public-url", public, "--trusted-proxy", OTHER)
        ours = (OURS, server.port)
        proxy = {"token": server.named, "source": OTHER}
        assert ask(ours, "/terminals", **proxy)[0] == 200
        assert ask(ours, "/terminals", **proxy | {"token": server.own})[0] == 401
        made = json.loads(ask(ours, "/terminals", method="POST", body={"shell": "cat"}, **proxy)[2])
        assert made["connection"]["url"] == f"{public}/terminals/{made['id']}"
        assert ask(ours, f"/terminals/{made['id']}?force=true", method="DELETE", **proxy)[0] == 200
        assert code(ask(ours, "/terminals", token=server.named, source=OURS)) == "forbidden"
        assert ask(ours, "/livez", host=f"{OURS}:{server.port}")[0] == 200
        server.end()
        print("others reach it as documented")
    finally:
        # A failed assertion leaves one.
        if (process := getattr(machine, "process", None)) and process.poll() is None:
            process.kill()
            process.wait()
        print(machine.logs(), file=sys.stderr)
        machine.remove()


if __name__ == "__main__":
    others_reach()
