"""ptyd's command line, as a script uses it."""

import json
import re
import subprocess
import time
from dataclasses import replace

from driver import NotOffered, Seen

from .ptyd_server import Ptyd, Refused, state_of


# The longest argument that Linux gives to a program.
ARGUMENT_MAX = 128 * 1024 - 1


class driver(Ptyd):
    """One process for each verb."""

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        self.serve_background()

    def serve_background(self) -> None:
        """Starts a server, unless another process has started one meanwhile."""
        # Drivers play side by side, so none takes the usual port.
        code, _, errors = self.ptyd("serve", "--background", "--listen", "127.0.0.1:0")
        if code != 0 and "already runs" not in errors:
            raise Refused(str(code), errors.strip())

    def ask(self, *words: str, codes: tuple[int, ...] = (0,), text: str | None = None) -> str:
        """A verb's output, if it ends with one of these codes."""
        code, output, errors = self.ptyd(*words, text=text)
        if code == 5:
            # The server was killed; this verb starts none.
            self.serve_background()
            code, output, errors = self.ptyd(*words, text=text)
        if code not in codes:
            raise Refused(str(code), errors.strip())
        return output

    def history(self, session: str) -> list[dict]:
        """The session's commands."""
        return json.loads(self.ask("history", session, "--json"))

    def seen(self, session: str, command: dict) -> Seen:
        """The state of a command."""
        details = json.loads(self.ask("inspect", session))
        state = state_of(command["status"], details.get("foreground"), False)
        code = details["exit"].get("exitCode") if state == "gone" else command.get("exitCode")
        return Seen(state, code, command["output"], command.get("error", ""))

    def beginning(self, session: str, command: str) -> str:
        """The beginning of a command's output, as `ptyd logs … | head` gives it."""
        words = [self.binary, "logs", session, "--command", command]
        with subprocess.Popen(words, env=self.place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as logs:
            text = logs.stdout.read(1 << 20).decode(errors="replace")
            logs.stdout.close()
        return text

    def newest(self, session: str) -> Seen:
        """The state of the newest command, with its output."""
        command = self.history(session)[-1]
        return self.seen(session, command | {"output": self.beginning(session, command["id"])})

    def open(self, cwd):
        return self.ask("new", "--cwd", str(cwd)).strip()

    def run(self, session, command, patience):
        words = ["run", "--session", session, "--timeout", f"{patience * 1000:.0f}ms", "--json", "--", command]
        if len(command) > ARGUMENT_MAX:
            raise NotOffered("an argument of a program has at most 128 KiB")
        before = len(self.history(session))
        code, output, errors = self.ptyd(*words)
        if output:
            return self.seen(session, json.loads(output))
        # If nobody knows its code, it prints no JSON.
        if code == 124 or len(self.history(session)) > before:
            return self.newest(session)
        return Seen("gone" if "ended" in errors else "refused", words=errors)

    def start(self, session, command):
        # As `ptyd run … &` in a script.
        before = len(self.history(session))
        words = [self.binary, "run", "--session", session, "--", command]
        quiet = {name: subprocess.DEVNULL for name in ("stdin", "stdout", "stderr")}
        process = subprocess.Popen(words, env=self.place.env, **quiet)
        while len(self.history(session)) == before and process.poll() is None:
            pass

    def type(self, session, text):
        self.ask("send", "--no-newline", session, "--", text)

    def keys(self, session, *names):
        self.ask("keys", session, "--", *names)

    def wait(self, session, patience, pattern=None):
        # The text that `ptyd run` has shown counts as seen, so `ptyd wait --for` does not find it again.
        deadline = time.monotonic() + patience
        while pattern and time.monotonic() < deadline:
            seen = self.newest(session)
            if re.search(pattern, seen.output):
                return replace(seen, state="matched")
        self.ptyd("wait", session, "--timeout", f"{patience * 1000:.0f}ms")
        return self.newest(session)

    def output(self, session):
        command = self.history(session)[-1]
        return self.ask("logs", session, "--command", command["id"], "--raw")

    def screen(self, session):
        return self.ask("screen", session)

    def interrupt(self, session):
        self.keys(session, "C-c")

    def close(self, session):
        self.ask("kill", session, "--force")
