"""tmux in control mode, one server for all sessions."""

import re
import subprocess
import threading

from .framed import Framed, Stream


class Session:
    """One client in control mode, with a session of its own."""

    def __init__(self, words: list[str], cwd) -> None:
        self.process = subprocess.Popen(words, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.whole, self.pane, self.has_pane = "", "", threading.Event()
        self.answers, self.answered = [], threading.Condition()
        self.stream = Stream(self.send)
        threading.Thread(target=self._read, daemon=True).start()
        # The session's own prompt comes before it.
        if not self.has_pane.wait(20):
            raise ConnectionError("tmux shows no pane")

    def command(self, text: str) -> None:
        """Sends a command of tmux."""
        self.process.stdin.write(text.encode() + b"\n")

    def send(self, data: bytes) -> None:
        """Types bytes."""
        for at in range(0, len(data), 512):
            self.command(f"send-keys -t {self.pane} -H {data[at : at + 512].hex(' ')}")

    def ask(self, text: str) -> str:
        """The answer to a command of tmux."""
        with self.answered:
            before = len(self.answers)
            self.command(text)
            self.command("display-message -p conformance-answered")
            self.answered.wait_for(lambda: "conformance-answered" in "\n".join(self.answers[before:]), 10)
            return "\n".join(self.answers[before:]).partition("conformance-answered")[0]

    def _read(self) -> None:
        for line in iter(self.process.stdout.readline, b""):
            line = line.rstrip(b"\n")
            if line.startswith(b"%output "):
                _, pane, data = line.split(b" ", 2)
                self.pane = pane.decode()
                self.has_pane.set()
                self.stream.feed(re.sub(rb"\\(\d{3})", lambda m: bytes([int(m[1], 8)]), data))
            elif line.startswith(b"%exit"):
                break
            elif not line.startswith(b"%"):
                with self.answered:
                    self.answers.append(line.decode(errors="replace"))
                    self.answered.notify_all()
        self.stream.feed(None)


class driver(Framed):
    """The screen is tmux's own."""

    claims = Framed.claims | {"screen", "queries"}

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        self.version = subprocess.run(["tmux", "-V"], capture_output=True, text=True).stdout.strip()
        self.words = ["tmux", "-S", str(place.home / "tmux"), "-f", "/dev/null"]
        # A server without a session would end.
        subprocess.run([*self.words, "new-session", "-d", "-s", "kept"], check=True)

    @property
    def server(self):
        told = subprocess.run([*self.words, "display-message", "-p", "#{pid}"], capture_output=True, text=True)
        return int(told.stdout) if told.returncode == 0 and told.stdout.strip() else 0

    def open(self, cwd):
        session = Session([*self.words, "-C", "new-session", "-x", "200", "-y", "50", "bash"], cwd)
        session.stream.prepare(cwd)
        return session

    def screen(self, session):
        return session.ask(f"capture-pane -p -t {session.pane}")

    def close(self, session):
        session.command("kill-session")
        session.process.stdin.close()
        session.process.wait()
