"""The common part of ptyd's doors: the binary, the server, and the words for states."""

import subprocess

from driver import Driver, SaidNo, Seen

STATES = {"input_wanted": "asks", "password_wanted": "asks_secret", "fullscreen": "fullscreen", "stopped": "stopped"}
CLAIMS = frozenset({"asks", "secrets", "text", "screen", "queries", "sessions", "shell", "exits", "commands", "survives"})


class Refused(SaidNo):
    """ptyd did not do it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code

    def seen(self) -> Seen:
        """The refusal of a command."""
        return Seen("gone" if self.code in ("session_ended", "session_not_found") else "refused", words=str(self))


class Ptyd(Driver):
    """A door of ptyd, with a server of its own."""

    claims = CLAIMS

    def __init__(self, place, variant: str = "") -> None:
        super().__init__(place)
        self.binary = place.env["PTYD_BIN"]
        self.version = self.ptyd("--version")[1].strip()
        self.state = place.home / "state"
        self.state.mkdir(mode=0o700)

    def ptyd(self, *words: str, text: str | None = None) -> tuple[int, str, str]:
        """The code, output and errors of a command of ptyd."""
        given = {"input": text} if text is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run([self.binary, *words], env=self.place.env, capture_output=True, text=True, errors="replace", **given)
        return done.returncode, done.stdout, done.stderr

    def views(self, session) -> dict[str, str]:
        """The output of the command line, for each door: all doors are windows on one server."""
        name = session if isinstance(session, str) else session.id
        recording = self.place.home / f"{name}.cast"
        self.must("record", name, "--output", str(recording))
        views = {
            "the raw log": self.must("logs", name, "--raw"),
            "the log": self.must("logs", name),
            "the history": self.must("history", name, "--json"),
            "the screen": self.must("screen", name),
            "the audit log": self.must("audit", "--json", "--lines", "10000"),
            "the recording": recording.read_text(),
        }
        recording.unlink()
        return views

    def must(self, *words: str) -> str:
        """The output of a command that succeeds."""
        code, output, errors = self.ptyd(*words)
        if code != 0:
            raise Refused(str(code), errors.strip())
        return output

    def serve(self) -> None:
        """Starts a server that listens, if none runs."""
        if self.server is None:
            self.listen = getattr(self, "listen", "127.0.0.1:0")
            serving = subprocess.Popen([self.binary, "serve", "--listen", self.listen], env=self.place.env, stdout=subprocess.PIPE)
            if not serving.stdout.readline():
                raise ConnectionError("the server does not start")
            self.listen = (self.state / "listen").read_text().strip().removeprefix("http://")

    @property
    def server(self) -> int | None:
        """The process of the server, as its lock file tells."""
        try:
            pid = int((self.state / "lock").read_text())
            with open(f"/proc/{pid}/cmdline", "rb") as line:
                return pid if b"serve" in line.read() else None
        except (OSError, ValueError):
            return None

    @property
    def token(self) -> str:
        """The token of the server."""
        return (self.state / "token").read_text().strip()


def state_of(status: str, foreground: str | None, is_over: bool) -> str:
    """The state of a command, in the words of the cases."""
    if status == "terminated" or (is_over and status != "completed"):
        return "gone"
    if status == "running":
        return STATES.get(foreground or "", "running")
    return {"completed": "ended"}.get(status, status)
