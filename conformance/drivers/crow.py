"""crow-mcp, over MCP: one terminal for each server."""

import importlib.metadata
import re
import sys
import time
from pathlib import Path

from driver import Driver, NotOffered, Seen

from . import rpc

MOMENT = 0.5


class Session:
    """A server in the directory."""

    def __init__(self, env, cwd) -> None:
        self.mcp = rpc.Stdio([str(Path(sys.executable).parent / "crow-mcp")], env, cwd)
        self.output, self.end = "", None


class driver(Driver):
    """The tool `terminal`, whose own description says that no state stays between commands."""

    claims = frozenset({"sessions"})

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        self.version = f"crow-mcp {importlib.metadata.version('crow-mcp')}"
        self.newest = None

    @property
    def server(self):
        return self.newest.mcp.process.pid if self.newest else None

    def act(self, session, command: str, timeout: float, is_input: bool = False) -> Seen:
        """One call."""
        text = rpc.text_of(session.mcp.call("terminal", command=command, timeout=timeout, is_input=is_input))
        if text.startswith("Error"):
            return Seen("refused", words=text)
        told = re.search(r"\n\[(?:Command (?:completed|failed) with exit code (-?\d+)|Process still running[^\]]*)\]$", text)
        output = re.split(r"\n\[Current working directory: |\n\[(?:Command |Process still)", text)[0]
        session.output += output
        code = int(told[1]) if told and told[1] else None
        session.end = Seen("ended", code, output, text[-120:]) if code is not None else None
        return session.end or Seen("running", None, output, text[-120:])

    def open(self, cwd):
        self.newest = Session(self.place.env, cwd)
        return self.newest

    def run(self, session, command, patience):
        session.output = ""
        return self.act(session, command, patience)

    def start(self, session, command):
        self.run(session, command, MOMENT)

    def type(self, session, text):
        if not text.endswith(("\n", "\r")):
            raise NotOffered("input ends with Enter")
        for line in text[:-1].split("\n"):
            self.act(session, line, MOMENT, is_input=True)

    def keys(self, session, *names):
        for name in names:
            if not name.startswith("C-"):
                raise NotOffered("keys beyond C-c, C-d and C-z")
            self.act(session, name, MOMENT, is_input=True)

    def wait(self, session, patience, pattern=None):
        deadline = time.monotonic() + patience
        while True:
            if pattern and re.search(pattern, session.output):
                return Seen("matched", output=session.output)
            if session.end:
                return Seen("ended", session.end.code, session.output, session.end.words)
            left = deadline - time.monotonic()
            if left <= 0:
                return Seen("running", output=session.output)
            self.act(session, "", min(left, 1) if pattern else left)

    def output(self, session):
        return session.output

    def interrupt(self, session):
        self.act(session, "C-c", 5)

    def close(self, session):
        session.mcp.process.terminate()
        session.mcp.process.wait()
