"""DesktopCommander, over MCP: a process for each command."""

import json
import re
import shlex
import time
from pathlib import Path

from driver import Driver, NotOffered, Seen

from . import rpc


class Session:
    """A directory, and the newest process."""

    def __init__(self, cwd) -> None:
        self.cwd, self.pid = cwd, None


class driver(Driver):
    """`start_process`, and then `read_process_output` until it says that the process has completed."""

    # It detects programs that wait for input. It has no shell that stays.
    claims = frozenset({"sessions", "asks"})

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        package = Path(place.env["PTYD_CONFORMANCE_DIR"]) / "desktop-commander/node_modules/@wonderwhy-er/desktop-commander"
        self.version = f"desktop-commander {json.loads((package / 'package.json').read_text())['version']}"
        env = place.env | {"DESKTOP_COMMANDER_DISABLE_TELEMETRY": "1"}
        self.mcp = rpc.Stdio(["node", str(package / "dist/index.js"), "--no-onboarding"], env, place.home)
        self.mcp.call("set_config_value", key="defaultShell", value="/bin/bash")

    @property
    def server(self):
        return self.mcp.process.pid

    def call(self, tool: str, **arguments) -> str:
        """The text of an answer."""
        result = self.mcp.call(tool, **arguments)
        text = rpc.text_of(result)
        if result.get("isError"):
            raise RuntimeError(text)
        return text

    def open(self, cwd):
        return Session(cwd)

    def run(self, session, command, patience):
        self.begin(session, command, patience)
        return self.wait(session, patience)

    def begin(self, session, command, patience) -> None:
        """Starts a process in the session's directory."""
        # The product runs each command in its own directory.
        command = f"cd {shlex.quote(str(session.cwd))}\n{command}"
        try:
            told = self.call("start_process", command=command, timeout_ms=patience * 1000, shell="/bin/bash")
        except RuntimeError as error:
            if "E2BIG" in str(error):
                raise NotOffered("an argument of a program has at most 128 KiB") from None
            raise
        session.pid = int(re.search(r"PID (-?\d+)", told)[1])

    def start(self, session, command):
        self.begin(session, command, 0.1)

    def read(self, session, lines: int = 2_000) -> tuple[str, str]:
        """The last lines, and the words about the state."""
        told = self.call("read_process_output", pid=session.pid, offset=-lines, length=lines, timeout_ms=100)
        _, _, rest = told.partition("\n\n")
        match = re.search(r"\n(✅ Process completed with exit code [^\n]*|🔄[^\n]*)$", rest)
        output, words = (rest[: match.start()], match[1]) if match else (rest, "")
        return "" if output == "(No output in requested range)" else output, words

    def wait(self, session, patience, pattern=None):
        deadline = time.monotonic() + patience
        while True:
            output, words = self.read(session)
            if done := re.search(r"exit code (-?\d+|null)", words):
                return Seen("ended", int(done[1]) if done[1] != "null" else None, output, words)
            if pattern and re.search(pattern, output):
                return Seen("matched", output=output)
            if words.startswith("🔄") and not pattern:
                return Seen("asks", output=output, words=words)
            if time.monotonic() > deadline:
                return Seen("running", output=output)
            # Waits on the server's side for new output.
            self.call("read_process_output", pid=session.pid, offset=0, timeout_ms=100)

    def type(self, session, text):
        if not text.endswith(("\n", "\r")):
            raise NotOffered("input ends with Enter")
        self.call("interact_with_process", pid=session.pid, input=text[:-1], wait_for_prompt=False, timeout_ms=1000)

    def keys(self, session, *names):
        raise NotOffered("keys")

    def output(self, session):
        return self.read(session, 10_000_000)[0]

    def interrupt(self, session):
        raise NotOffered("it only kills")

    def close(self, session):
        if session.pid is not None and not self.read(session)[1].startswith("✅"):
            self.call("force_terminate", pid=session.pid)
