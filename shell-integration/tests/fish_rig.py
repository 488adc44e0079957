"""A real fish on a real PTY, driven as the holder drives it; what it shares with the other shells is in `rig`."""

import fcntl
import os
import pty
import signal
import socket
import struct
import termios
from dataclasses import dataclass
from pathlib import Path

import rig

SCRIPT = Path(__file__).resolve().parent.parent / "fish.fish"
# Another version of fish than the one in the PATH.
FISH = os.environ.get("PTYD_TEST_FISH", "fish")
# What fish asks the terminal at its start, and what the holder's server answers.
DEVICE_QUERIES = b"\x1b[c", b"\x1b[0c"
DEVICE_ANSWER = b"\x1b[?62;22c"


def quoted(path):
    """The path as a fish string: only these two are special between single quotes."""
    return "'" + str(path).replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass
class Shell(rig.Shell):
    """A running fish. `config` is the user's own config.fish."""

    config: str = ""
    script: Path = SCRIPT

    def _spawn(self):
        folder = self.home / ".config/fish"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.fish").write_text(self.config)
        # Without it fish starts a program in the background that reads all manual pages.
        for cache in ".local/share", ".cache":
            (self.home / cache / "fish/generated_completions").mkdir(parents=True, exist_ok=True)
        self._answered = 0
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        ours.setblocking(False)
        for byte in f"{self.secret}\n{self.staged}\n".encode():
            ours.send(bytes([byte]))
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        env = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "USER": "tester",
            **self.env,
        }
        argv = ["fish", *(["-l"] if self.login else []), "-i", "-C", f"source {quoted(self.script)}"]
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
                for fd in 0, 1, 2:
                    os.dup2(follower, fd)
                os.dup2(theirs.fileno(), rig.ATTEST_FD)
                os.closerange(3, rig.ATTEST_FD)
                os.chdir(self.home)
                signal.signal(signal.SIGPIPE, signal.SIG_DFL)
                os.execvpe(FISH, argv, env)
            finally:
                os._exit(126)
        os.close(follower)
        theirs.close()
        self.socket = ours
        self._sockets = [ours]

    def pump(self, seconds):
        """Takes in what there is, and answers what the shell asks the terminal."""
        came = super().pump(seconds)
        asked = sum(self.output.count(query) for query in DEVICE_QUERIES)
        while self._answered < asked and self.status is None:
            self._answered += 1
            os.write(self.leader, DEVICE_ANSWER)
        return came
