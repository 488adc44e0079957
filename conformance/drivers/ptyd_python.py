"""ptyd's client for Python, from `clients/python`."""

import os
import re
import sys
from pathlib import Path

from driver import NotOffered, SaidNo, Seen

from .ptyd_server import STATES, Ptyd

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "clients/python/src"))
import ptyd  # noqa: E402


class driver(Ptyd):
    """`Ptyd`, which blocks."""

    # It has the state of a session as the server's fields, and no call that waits for a question.
    claims = Ptyd.claims

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        os.environ["PTYD_BIN"] = self.binary
        self.client = ptyd.Ptyd()

    def seen(self, session, wait) -> Seen:
        """The result of a wait, or the state if it has timed out."""
        try:
            result = wait()
        except ptyd.TimedOut:
            return Seen(STATES.get(session.info().get("foreground", ""), "running"))
        except ptyd.Refused as told:
            return Seen("gone" if told.code == "session_ended" else "refused", words=str(told))
        state = {"completed": "ended", "terminated": "gone"}.get(result.status, result.status)
        code = session.info()["exit"].get("exitCode") if state == "gone" else result.code
        return Seen(state, code, result.output, result.error or "")

    def open(self, cwd):
        return self.client.open(cwd=str(cwd))

    def run(self, session, command, patience):
        def wait():
            self.newest = session.start(command)
            return self.newest.end(timeout=patience)

        return self.seen(session, wait)

    def start(self, session, command):
        self.newest = session.start(command)

    def type(self, session, text):
        try:
            session.type(text)
        except ptyd.Refused as told:
            raise SaidNo(str(told)) from told

    def keys(self, session, *names):
        session.keys(*names)

    def wait(self, session, patience, pattern=None):
        if pattern is None:
            return self.seen(session, lambda: session.wait_end(timeout=patience))
        found = session.wait_for(re.compile(pattern), timeout=patience)
        return Seen("matched", output=found.string[: found.end()])

    def output(self, session):
        return b"".join(self.newest.bytes()).decode(errors="replace")

    def screen(self, session):
        return session.screen().text

    def interrupt(self, session):
        session.keys("C-c")

    def close(self, session):
        session.close()
