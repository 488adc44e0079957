"""node-pty behind socket.io, with the client that Python has for it."""

import json
import subprocess
from pathlib import Path

import socketio

from .framed import Framed, Stream

PROGRAM = Path(__file__).with_name("node_pty_server.mjs")


class Session:
    """One socket."""

    def __init__(self, port: int) -> None:
        self.socket, self.whole = socketio.Client(reconnection=False), ""
        self.stream = Stream(lambda data: self.socket.emit("input", data.decode()))
        self.socket.on("output", self.stream.feed)
        self.socket.on("disconnect", lambda *_: self.stream.feed(None))
        self.socket.connect(f"http://127.0.0.1:{port}", transports=["websocket"])


class driver(Framed):
    """A shell for each socket."""

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        packages = Path(place.env["PTYD_CONFORMANCE_DIR"]) / "node-pty"
        versions = [
            json.loads((packages / f"node_modules/{name}/package.json").read_text())["version"] for name in ("@lydell/node-pty", "socket.io")
        ]
        self.version = f"node-pty {versions[0]} (binaries of @lydell/node-pty), socket.io {versions[1]}"
        self.process = subprocess.Popen(["node", str(PROGRAM), str(packages)], env=place.env, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def open(self, cwd):
        session = Session(self.port)
        session.stream.prepare(cwd)
        return session

    def close(self, session):
        session.socket.disconnect()
