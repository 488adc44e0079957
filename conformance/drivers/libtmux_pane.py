"""libtmux: it types into panes of tmux and reads them. The prompt has a number and `$?`, by which this driver finds ends, as users do."""

import importlib.metadata
import re
import secrets
import shlex
import threading
import time

import libtmux
from driver import Driver, Seen

# The lines that a look for an end reads, and the lines that tmux keeps.
TAIL, HISTORY = 1_000, 250_000
# The longest text that one `send-keys` takes is 16 KB, with all that belongs to it.
PIECE = 2_000


class Session:
    """A pane."""

    def __init__(self, session) -> None:
        self.session, self.pane = session, session.active_pane
        self.nonce = secrets.token_hex(6)
        # The number of the newest command, and of the newest one whose end was seen.
        self.count, self.ended = 0, 0

    def lines(self, start: str) -> str:
        """The text from a line on; a line that was too wide for the pane is one line."""
        return "\n".join(self.pane.capture_pane(start=start, join_wrapped=True))

    def newest(self, start: str) -> str:
        """The text behind the line that precedes the output of the newest command which has begun."""
        return re.split(rf"{self.nonce}-begin-\d+\n", self.lines(start))[-1]

    def code_of_shell(self) -> int | None | bool:
        """The code of the shell, or False while it lives."""
        dead, _, code = "".join(self.pane.display_message("#{pane_dead} #{pane_dead_status}", get_text=True)).partition(" ")
        return (int(code) if code.isdigit() else None) if dead == "1" else False


class driver(Driver):
    """One server, which keeps panes whose shell has ended."""

    claims = Driver.claims | {"screen", "queries", "exits"}

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        self.tmux = libtmux.Server(socket_path=str(place.home / "tmux"), config_file="/dev/null")
        self.version = f"libtmux {importlib.metadata.version('libtmux')}"
        self.tmux.new_session("kept")
        self.tmux.cmd("set-option", "-g", "history-limit", str(HISTORY))
        self.tmux.cmd("set-option", "-g", "remain-on-exit", "on")

    def open(self, cwd):
        session = Session(self.tmux.new_session(start_directory=str(cwd), window_command="bash", x=200, y=50))
        quiet = "bind 'set enable-bracketed-paste off'; bind 'set disable-completion on'"
        self.send(session, f"{quiet}; __n=0; PS2=; PS1='{session.nonce}:$__n:$?>'\n")
        self.until(session, 20, [re.escape(session.nonce) + r":0:\d+>"])
        return session

    def send(self, session, text: str) -> None:
        """Types a text."""
        for at in range(0, len(text), PIECE):
            session.pane.send_keys(text[at : at + PIECE], enter=False, literal=True)

    def until(self, session, patience: float, expressions: list[str]) -> re.Match | None:
        """The first match in the last lines, or None if the shell or the patience ends."""
        deadline = time.monotonic() + patience
        while True:
            is_over = session.code_of_shell() is not False
            if found := re.search("|".join(expressions), session.newest(f"-{TAIL}")):
                return found
            if is_over or time.monotonic() > deadline:
                return None
            # libtmux has no wait: its own `retry_until` asks 20 times per second.
            threading.Event().wait(0.05)

    def run(self, session, command, patience):
        self.start(session, command)
        return self.wait(session, patience)

    def start(self, session, command):
        session.count += 1
        self.send(session, f" __n={session.count}; printf '%s-begin-%d\\n' {session.nonce} {session.count}; eval {shlex.quote(command)}\n")

    def type(self, session, text):
        self.send(session, text)

    def keys(self, session, *names):
        for name in names:
            session.pane.send_keys(name, enter=False)

    def wait(self, session, patience, pattern=None):
        # A command that was typed ahead of an interrupt never begins.
        numbers = "|".join(map(str, range(session.ended + 1, session.count + 1)))
        end = f"{session.nonce}:(?:{numbers}):(\\d+)>" if numbers else "(?!)()"
        found = self.until(session, patience, [end, *([pattern] if pattern else [])])
        if found is None:
            code = session.code_of_shell()
            return Seen("running", output=self.output(session)) if code is False else Seen("gone", code, self.output(session))
        if found[1] is None:
            return Seen("matched", output=self.output(session))
        session.ended = int(found[0].split(":")[1])
        return Seen("ended", int(found[1]), self.output(session))

    def output(self, session):
        text = session.newest("-")
        return re.split(f"{session.nonce}:\\d+:\\d+>", text)[0]

    def screen(self, session):
        return "\n".join(session.pane.capture_pane())

    def interrupt(self, session):
        self.keys(session, "C-c")

    def close(self, session):
        session.session.kill()
