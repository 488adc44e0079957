"""Products that carry bytes, and have no word for a command. The suite frames commands as their users do: a nonce and `$?` in the prompt."""

import re
import secrets
import shlex
import threading
import time

from driver import Driver, Seen, bytes_of


class Stream:
    """A shell behind a stream of bytes."""

    def __init__(self, send) -> None:
        self.send, self.nonce = send, secrets.token_hex(8)
        self.buffer, self.changed, self.is_over = bytearray(), threading.Condition(), False
        # Where the output of the newest command begins.
        self.begins = 0
        self.mark = b"\x1eb" + self.nonce.encode() + b"\x1e"
        self.ends = re.compile(rb"\x1ee%b:(\d+)\x1e" % self.nonce.encode())

    def feed(self, data: bytes | None) -> None:
        """Takes what the product brings; None at its end."""
        with self.changed:
            if data is None:
                self.is_over = True
            else:
                self.buffer += data
            self.changed.notify_all()

    def until(self, expression: re.Pattern[bytes], patience: float) -> re.Match[bytes] | None:
        """The first match behind the beginning of the newest command."""
        deadline, at = time.monotonic() + patience, self.begins
        with self.changed:
            while True:
                # A mark has at most 64 bytes, and a pattern of a case is short.
                if found := expression.search(self.buffer, at):
                    return found
                at = max(at, len(self.buffer) - 4096)
                left = deadline - time.monotonic()
                if left <= 0 or self.is_over:
                    return None
                self.changed.wait(left)

    def prepare(self, cwd) -> None:
        """Puts the nonce into the prompt."""
        quiet = "bind 'set enable-bracketed-paste off'; bind 'set disable-completion on'"
        self.send(f"{quiet}; cd {shlex.quote(str(cwd))}; PS2=; PS1=$'\\036e'{self.nonce}':$?'$'\\036'\n".encode())
        if self.until(self.ends, 20) is None:
            raise ConnectionError("no prompt comes")

    def begin(self, command: str) -> None:
        """Sends a command behind a mark."""
        self.begins = len(self.buffer)
        self.send(f" printf '\\036b%s\\036' {self.nonce}; eval {shlex.quote(command)}\n".encode())

    def output(self, end: int) -> str:
        """The output of the newest command up to there."""
        begins = self.buffer.find(self.mark, self.begins)
        return self.buffer[begins + len(self.mark) if begins >= 0 else self.begins : end].decode(errors="replace")


class Framed(Driver):
    """The methods, on such a stream. A session has it as `stream`."""

    def run(self, session, command, patience):
        self.start(session, command)
        return self.wait(session, patience)

    def start(self, session, command):
        session.stream.begin(command)

    def type(self, session, text):
        session.stream.send(text.encode())

    def keys(self, session, *names):
        session.stream.send(bytes_of(names).encode())

    def wait(self, session, patience, pattern=None):
        stream = session.stream
        # The shell's echo of the command has the pattern, too.
        if begun := stream.until(re.compile(re.escape(stream.mark)), patience):
            stream.begins = begun.start()
        ends = stream.ends.pattern
        expression = re.compile(ends + (b"|" + pattern.encode() if pattern else b""))
        found = stream.until(expression, patience)
        if found is None:
            return Seen("gone" if stream.is_over else "running", output=stream.output(len(stream.buffer)))
        if found[1] is None:
            return Seen("matched", output=stream.output(found.end()))
        session.whole = stream.output(found.start())
        return Seen("ended", int(found[1]), session.whole)

    def output(self, session):
        return session.whole

    def interrupt(self, session):
        session.stream.send(b"\x03")
