"""OpenHands' terminal: the session below its `terminal` tool, with the `tmux` or the `subprocess` backend."""

import errno
import importlib.metadata
import os
import re
import time

os.environ["OPENHANDS_SUPPRESS_BANNER"] = "1"
# A package below it downloads a list of prices otherwise, at each start.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from driver import Driver, NotOffered, Seen  # noqa: E402
from openhands.tools.terminal.definition import TerminalAction  # noqa: E402
from openhands.tools.terminal.terminal import create_terminal_session  # noqa: E402

KEYS = {"Escape": "ESC", "Enter": "ENTER"}
# The shortest wait of a call that should return at once.
MOMENT = 0.3


class driver(Driver):
    """A driver does only what the tool's actions let an agent do."""

    claims = frozenset({"sessions", "shell", "screen", "commands"})

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        self.backend = variant
        self.version = f"openhands-tools {importlib.metadata.version('openhands-tools')}"
        # The end of the newest command that a call has told and no wait has taken, and the command's output.
        self.ends, self.outputs = {}, {}

    def act(self, session, command: str, timeout: float, is_input: bool = False) -> Seen:
        """One action, and its observation."""
        try:
            told = session.execute(TerminalAction(command=command, timeout=timeout, is_input=is_input))
        except OSError as error:
            if error.errno == errno.E2BIG:
                raise NotOffered("an argument of a program has at most 128 KiB") from None
            raise
        words = f"{told.metadata.prefix}{told.metadata.suffix}"
        if told.is_error:
            if "multiple commands at once" in told.text:
                raise NotOffered("one command at a time")
            if "No previous running command" in told.text:
                return Seen("nothing", words=told.text)
            return Seen("gone" if "closed" in told.text else "refused", words=told.text + words)
        # An observation has no newline at its end, and at most 30,000 characters.
        whole = self.outputs.get(id(session), "")
        if len(told.text) > 29_000 or whole is None:
            self.outputs[id(session)] = None
        elif told.text:
            self.outputs[id(session)] = f"{whole}\n{told.text}" if whole else told.text
        is_running = "timed out after" in words or "no new output" in words
        code = told.exit_code if told.exit_code is not None and told.exit_code >= 0 else None
        seen = Seen("running" if is_running else "ended", code, told.text, words)
        self.ends[id(session)] = seen if seen.state == "ended" else None
        return seen

    def open(self, cwd):
        session = create_terminal_session(str(cwd), terminal_type=self.backend)
        session.initialize()
        return session

    def run(self, session, command, patience):
        before = self.outputs.get(id(session))
        self.outputs[id(session)] = ""
        seen = self.act(session, command, patience)
        if seen.state == "refused":
            self.outputs[id(session)] = before
        return seen

    def start(self, session, command):
        self.run(session, command, MOMENT)

    def type(self, session, text):
        if not text.endswith(("\n", "\r")):
            raise NotOffered("input ends with Enter")
        for line in text[:-1].split("\n"):
            self.act(session, line or "ENTER", MOMENT, is_input=True)

    def keys(self, session, *names):
        for name in names:
            self.act(session, KEYS.get(name, name), MOMENT, is_input=True)

    def wait(self, session, patience, pattern=None):
        deadline = time.monotonic() + patience
        while True:
            so_far = self.outputs.get(id(session)) or ""
            if pattern and (found := re.search(pattern, so_far)):
                return Seen("matched", output=so_far)
            if end := self.ends.pop(id(session), None):
                return Seen("ended", end.code, so_far, end.words)
            left = deadline - time.monotonic()
            if left <= 0:
                return Seen("running", output=so_far)
            self.act(session, "", min(left, 1) if pattern else left)

    def output(self, session):
        whole = self.outputs.get(id(session), "")
        if whole is None:
            raise NotOffered("an observation has 30,000 characters")
        return whole

    def screen(self, session):
        # A further observation has only the changes.
        self.act(session, "", MOMENT)
        return self.outputs.get(id(session)) or ""

    def interrupt(self, session):
        self.act(session, "C-c", 5, is_input=True)

    def close(self, session):
        session.close()
