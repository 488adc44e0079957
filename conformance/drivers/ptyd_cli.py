"""ptyd's command line, as a script uses it."""

import json
import subprocess

from driver import Seen

from .ptyd_server import Ptyd, Refused, state_of


class driver(Ptyd):
    """One process for each verb."""

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        self.ask("serve", "--background")

    def ask(self, *words: str, codes: tuple[int, ...] = (0,), text: str | None = None) -> str:
        """What a verb prints, if it ends with one of these codes."""
        code, output, errors = self.ptyd(*words, text=text)
        if code == 5 and "serve" not in words:
            # The server was killed; this verb starts none.
            self.ask("serve", "--background")
            code, output, errors = self.ptyd(*words, text=text)
        if code not in codes:
            raise Refused(str(code), errors.strip())
        return output

    def history(self, session: str) -> list[dict]:
        """The session's commands."""
        return json.loads(self.ask("history", session, "--json"))

    def newest(self, session: str, foreground: str | None = None) -> Seen:
        """The state of the newest command, with its output."""
        command = self.history(session)[-1]
        details = json.loads(self.ask("inspect", session))
        state = state_of(command["status"], details.get("foreground"), False)
        code = details["exit"].get("exitCode") if state == "gone" else command.get("exitCode")
        return Seen(state, code, self.ask("logs", session, "--command", command["id"]), command.get("error", ""))

    def open(self, cwd):
        return self.ask("new", "--cwd", str(cwd)).strip()

    def run(self, session, command, patience):
        code, output, errors = self.ptyd("run", "--session", session, "--timeout", f"{patience * 1000:.0f}ms", "--", command)
        if errors.startswith("ptyd: ") and code != 124:
            if "ended" not in errors:
                return Seen("refused", words=errors)
        return self.newest(session)

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
        more = ["--for", pattern] if pattern else []
        self.ptyd("wait", session, "--timeout", f"{patience * 1000:.0f}ms", *more)
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
