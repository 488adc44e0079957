"""A real bash, zsh or fish on a real PTY, driven exactly as the holder drives it.

Only this module opens terminals, reads the attestation socket and decides which records count; the tests say what a
shell did and never look at raw records. Every wait has a deadline and wakes on an event, never on a clock.
"""

import atexit
import fcntl
import mmap
import os
import pty
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

INTEGRATION = Path(__file__).resolve().parent.parent
# The options that the product is built with, too (crates/core/build.rs).
BUILTINS_OPTIONS = "-shared -fPIC -O2 -nostdlib -fno-stack-protector -U_FORTIFY_SOURCE -Wl,-z,now,-z,noseparate-code,-z,nodelete -s".split()


# bash without its builtins, as where it cannot load them.
HAS_BUILTINS = os.environ.get("PTYD_TEST_BUILTINS") != "0"


def installed_script():
    """bash's script as a server installs it, with its builtins beside it."""
    if not HAS_BUILTINS:
        return INTEGRATION / "bash.sh"
    folder = Path(tempfile.mkdtemp(prefix="ptyd-bash-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copy(INTEGRATION / "bash.sh", folder)
    source, module = INTEGRATION / "bash_builtins.c", folder / "bash_builtins.so"
    subprocess.run(["cc", *BUILTINS_OPTIONS, "-o", module, source], check=True)
    return folder / "bash.sh"


SCRIPT = installed_script()
# Another version of bash than the one in the PATH.
BASH = os.environ.get("PTYD_TEST_BASH", "bash")
ZSH_SCRIPT = INTEGRATION / "zsh.zsh"
ZSH = os.environ.get("PTYD_TEST_ZSH", "zsh")
FISH_SCRIPT = INTEGRATION / "fish.fish"
FISH = os.environ.get("PTYD_TEST_FISH", "fish")
# The queries of fish to the terminal at its start, and the answer of the holder's server.
DEVICE_QUERIES = b"\x1b[c", b"\x1b[0c"
DEVICE_ANSWER = b"\x1b[?62;22c"
COMMAND_FD, ATTEST_FD = 96, 97
LOAD, REPORT, ACCEPT = b"\x1b\x1f", b"\x1b\x0e", b"\x1b\x1e"
SHORT_LINE, RUN, RUN_EXAMINED = b"__ptyd" + ACCEPT, b"\x1b\x14", b"\x1b\x10"
# bash reads so many bytes at once, with the id and the nonce.
PLAIN_BYTES_MAX = 4000
ABORT = b"\x07"
# A staged command, and what the kernel then allows nobody: the first four of fcntl(2), and F_SEAL_FUTURE_WRITE.
CAPACITY = 8 << 20
HEAD_BYTES = 48
F_ADD_SEALS, SEALS = 1033, 0x1 | 0x2 | 0x4 | 0x10
# Far beyond any wait of a test. A shell that takes as long hangs; a slow machine fails nothing.
DEADLINE_SECONDS = 300.0
# Where the kernel lets a line editor wait for a key: bash polls, zsh reads. A shell that writes can wait in the last of these, too.
SLEEPS = "select", "poll", "schedule_hrtimeout", "wait_woken"
# write(2) of x86-64 and arm64, as /proc shows it.
WRITES = "1", "64"

_CREDENTIALS = struct.Struct("iii")
# For a child of the shell: moves the offset of the staged command, which it shares, to places in the head and in the text.
MOVES = "import itertools, os; [os.lseek(96, at, 0) for at in itertools.cycle([3, 30, 42, 48, 50, 99999, 1 << 23])]"


class Missed(AssertionError):
    """The shell did not do in time what the test waits for."""


@dataclass(frozen=True)
class Done:
    """One attested end of a command."""

    id: int
    exit: int
    pipestatus: list
    flags: str
    cwd: bytes
    nonce: bytes

    @property
    def facts(self):
        """The facts that most tests assert: exit code, pipeline status and flags."""
        return self.exit, self.pipestatus, self.flags


@dataclass
class Shell:
    """A running bash. `bashrc` is the user's own file; `files` are further ones in the home directory."""

    bashrc: str = ""
    login: bool = False
    env: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)
    wait: bool = True
    script: Path = SCRIPT
    # Whether commands are only handed over with the load key.
    only_load_key: bool = False
    # Whether the modes of the terminal do not prove that the line editor reads keys.
    takes_terminal_early: bool = False

    def __post_init__(self):
        self.home = Path(tempfile.mkdtemp(prefix="ptyd-shell-"))
        memory = os.memfd_create("command", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(memory, CAPACITY)
        self.command, self.command_bytes = mmap.mmap(memory, CAPACITY), 0
        fcntl.fcntl(memory, F_ADD_SEALS, SEALS)
        self.rewound = os.open(f"/proc/self/fd/{memory}", os.O_RDONLY)
        os.close(memory)
        # The holder's knowledge of the shell: the keys that take a plain text in its present state, whether input came since the
        # last command, whether that command was handed over with those keys, and whether they have failed.
        self.short_keys, self.is_touched, self.is_short, self.has_failed = SHORT_LINE, False, False, False
        (self.home / ".bashrc").write_text(self.bashrc)
        for name, text in self.files.items():
            (self.home / name).write_text(text)
        self.secret = secrets.token_hex(16)
        self.output = bytearray()
        self.records = []
        self.rejected = []
        self.path = None
        self.last_id = 0
        self.status = None
        self._half = {}
        self._seen = 0
        self._spawn()
        if self.wait:
            self.first = self.done()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        for fd in self.leader, self.rewound:
            os.close(fd)
        self.command.close()
        self.socket.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def _spawn(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        ours.setblocking(False)
        # bash's `read` takes one byte at a time from what it cannot seek, and SEQPACKET drops the rest of a datagram.
        lines = [self.secret, f"/proc/self/fd/{COMMAND_FD}"] if self.only_load_key else [self.secret]
        for byte in "".join(f"{line}\n" for line in lines).encode():
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
        program, argv = self._start(env)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.setsid()
                fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
                for fd in 0, 1, 2:
                    os.dup2(follower, fd)
                os.dup2(theirs.fileno(), ATTEST_FD)
                os.dup2(self.rewound, COMMAND_FD)
                os.closerange(3, COMMAND_FD)
                os.chdir(self.home)
                # Python ignores SIGPIPE, `nohup` SIGHUP, a script's `&` SIGINT and SIGQUIT, and an ignored signal would
                # stay ignored in the shell.
                for number in signal.SIGPIPE, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
                    signal.signal(number, signal.SIG_DFL)
                os.execvpe(program, argv, env)
            finally:
                os._exit(126)
        os.close(follower)
        theirs.close()
        self.socket = ours
        self._sockets = [ours]

    def _start(self, env):
        """The program and its argv, after what the holder adds to the environment."""
        if not self.login:
            return BASH, ["bash", "--rcfile", str(self.script)]
        if "ENV" in env:
            env["PTYD_ENV"] = env["ENV"]
        env["ENV"] = str(self.script)
        return BASH, ["bash", "--posix", "-l"]

    # Input from the shell.

    def pump(self, seconds):
        """Takes in what there is, waiting at most so long for the first of it; tells whether anything came."""
        ready, _, _ = select.select([self.leader, *self._sockets], [], [], max(0.0, seconds))
        if self.socket in ready:
            self._drain()
        if self.leader in ready:
            try:
                self.output += os.read(self.leader, 65536)
            except OSError:
                # EIO: nobody has the terminal open any more.
                self._reap()
                self._drain()
        return bool(ready)

    def _reap(self):
        """Waits for the end of the shell."""
        fd = os.pidfd_open(self.pid)
        try:
            if not select.select([fd], [], [], DEADLINE_SECONDS)[0]:
                raise Missed(f"the shell left its terminal and did not end:\n{self.transcript()}")
        finally:
            os.close(fd)
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)

    def _drain(self):
        while True:
            try:
                data, anc, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(_CREDENTIALS.size))
            except (BlockingIOError, ConnectionResetError):
                # A reset says that the shell ended without having read what we sent.
                return
            if not data:
                self._sockets = []
                return
            pid = next(_CREDENTIALS.unpack(d)[0] for _, kind, d in anc if kind == socket.SCM_CREDENTIALS)
            *whole, rest = (self._half.pop(pid, b"") + data).split(b"\0")
            self._half[pid] = rest
            for record in whole:
                kind, _, body = record.partition(b";")
                given, _, body = body.partition(b";")
                if pid != self.pid or given != self.secret.encode():
                    self.rejected.append((pid, record))
                elif kind == b"P":
                    self.path = body
                else:
                    has_failed = self.is_short and kind == b"D" and int(body.split(b";")[1]) != self.last_id
                    self.is_short = self.is_short and kind != b"D"
                    if has_failed:
                        # The end of the short line, which has not taken the command.
                        self.has_failed = True
                        self.at_prompt()
                        os.write(self.leader, LOAD + ACCEPT)
                    else:
                        self.records.append((kind.decode(), body))

    def until(self, what, condition):
        """Waits until `condition` gives something true, and gives that back."""
        end = time.monotonic() + DEADLINE_SECONDS
        while not (found := condition()):
            if self.status is not None:
                raise Missed(f"the shell ended with {self.status} before {what}:\n{self.transcript()}")
            if time.monotonic() >= end:
                raise Missed(f"no {what} in {DEADLINE_SECONDS} s:\n{self.transcript()}")
            self.pump(end - time.monotonic())
        return found

    def transcript(self):
        """Everything so far, for a failed assertion's reader."""
        return f"{bytes(self.output[-2000:])!r}\nrecords {self.records[-5:]!r}\nrejected {self.rejected[-5:]!r}"

    def marker(self, kind, nonce):
        """Waits for the in-band marker and gives the position before and after it."""
        text = f"\x1b]7337;{kind};{nonce.decode()}\x07".encode()
        at = self.until(f"marker {kind}", lambda: self.output.find(text, self._seen) + 1) - 1
        return at, at + len(text)

    def record(self, kind):
        """Waits for the next record of a kind; an earlier record of another kind is an error."""
        got, body = self.until(f"record {kind}", lambda: self.records and [self.records.pop(0)])[0]
        if got != kind:
            raise Missed(f"expected record {kind}, got {got};{body!r}")
        return body

    def done(self):
        """Waits for a D record and its marker."""
        body = self.record("D")
        nonce, id, exit, pipestatus, flags, cwd = body.split(b";", 5)
        before, after = self.marker("D", nonce)
        self.before_end, self._seen = before, after
        # After some syntax errors bash does not expand an alias.
        self.short_keys = RUN if b"k" in flags else b"" if flags else SHORT_LINE
        self.has_errexit = b"e" in flags
        flags = flags.translate(None, b"uek").decode()
        return Done(int(id), int(exit), [int(n) for n in pipestatus.split()], flags, cwd, nonce)

    def ended(self):
        """Waits for the shell's own end and gives its status (negative: the signal)."""
        end = time.monotonic() + DEADLINE_SECONDS
        while self.status is None:
            self.pump(end - time.monotonic())
            if time.monotonic() >= end:
                raise Missed(f"the shell did not end:\n{self.transcript()}")
        return self.status

    def sees(self, text):
        """Waits until the terminal showed this after the last end."""
        self.until(f"output {text!r}", lambda: self.output.find(text, self._seen) >= 0)

    # Output to the shell.

    def keys(self, data):
        """Presses keys, all of them, while taking in what they cause."""
        self.is_touched = True
        end = time.monotonic() + DEADLINE_SECONDS
        while data:
            # A terminal that is full of input takes none until its program reads.
            if select.select([], [self.leader], [], 0)[1]:
                data = data[os.write(self.leader, data[:64]) :]
            elif time.monotonic() > end:
                raise Missed(f"the shell does not read its input:\n{self.transcript()}")
            if data:
                self.pump(0.001)

    def kernel(self, what, condition):
        """Waits for a kernel state, whose change is not an event that could be awaited."""
        end = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            if time.monotonic() > end:
                raise Missed(f"no {what}:\n{self.transcript()}")
            self.pump(0.0005)

    def at_prompt(self):
        """Waits until the line editor has the terminal."""
        self.kernel("line editor", lambda: not termios.tcgetattr(self.leader)[3] & termios.ICANON)

    def reads_keys(self):
        """Waits until the line editor sleeps for a key. A signal between taking the terminal and this sleep may be lost."""
        self.at_prompt()
        self.sleeps()

    def sleeps(self):
        """Waits until the shell itself sleeps for input."""
        self.kernel("sleep", self.sleeps_now)

    def sleeps_now(self):
        """Whether the shell itself sleeps for input."""
        process = Path(f"/proc/{self.pid}")
        call, wchan = (process / "syscall").read_text().split()[0], (process / "wchan").read_text()
        is_asleep = (process / "stat").read_text().rpartition(")")[2].split()[0] == "S"
        return is_asleep and call not in WRITES and any(w in wchan for w in SLEEPS)

    def foreground(self, name):
        """Waits until a program of that name has the terminal, and gives its process group."""

        def has_it():
            group = os.tcgetpgrp(self.leader)
            try:
                return Path(f"/proc/{group}/comm").read_text() == name + "\n"
            except (FileNotFoundError, ProcessLookupError):
                # It ended, before the file was opened or (ESRCH) between opening and reading it.
                return False

        self.kernel(name, has_it)
        return os.tcgetpgrp(self.leader)

    def stage(self, nonce, text):
        """Stages the next command."""
        self.last_id += 1
        numbers = b"\0%d\0%b\0" % (self.last_id, nonce)
        staged = b"ptyd" + (b"%d" % len(text)).rjust(HEAD_BYTES - len(numbers) - 4) + numbers + text
        self.write_staged(staged)

    def write_staged(self, staged):
        """Writes whatever it is in the place of the staged command, and zeros behind it."""
        zeros = bytes(max(0, self.command_bytes - len(staged)))
        self.command[: len(staged) + len(zeros)] = staged + zeros
        self.command_bytes = len(staged)
        os.lseek(self.rewound, 0, os.SEEK_SET)

    def hand_over(self, command):
        """Stages one command and presses the keys; gives the nonce of its start."""
        # zsh and fish take the terminal before they read keys, and may discard the keys that come between.
        (self.reads_keys if self.takes_terminal_early else self.at_prompt)()
        text = command if isinstance(command, bytes) else command.encode()
        nonce = b"%d" % secrets.randbits(64)
        may_be_short = self.short_keys and not (self.is_touched or self.has_failed or self.only_load_key)
        short_keys = self.short_keys if is_plain(text) else RUN_EXAMINED if self.short_keys == RUN else b""
        self.is_short = bool(may_be_short and short_keys)
        self.stage(nonce, text)
        self.keys(short_keys if self.is_short else LOAD + ACCEPT)
        self.is_touched = False
        return nonce

    def start(self, command):
        """Hands over one command as data and returns once the shell took it and its output begins."""
        _, self.begin = self.marker("C", self.hand_over(command))
        self._seen = self.begin
        return self

    def run(self, command):
        """Runs one command to its attested end."""
        self.start(command)
        end = self.done()
        assert end.id == self.last_id, (end, self.last_id)
        return end

    def prints(self, command):
        """The output of a command that succeeds, with the terminal's line ends undone."""
        end = self.run(command)
        assert end.facts == (0, [0], ""), (end, self.transcript())
        return self.printed()

    def printed(self):
        """The output of the last command, with the terminal's line ends undone."""
        return bytes(self.output[self.begin : self.before_end]).replace(b"\r\n", b"\n").decode()

    def type(self, line):
        """A person types a line at the prompt."""
        self.at_prompt()
        self.keys(line.encode() + b"\r")
        return self.done()

    def report(self):
        """Presses the report key."""
        self.keys(REPORT)


def is_plain(text):
    """Whether a text cannot make the code behind it a part of itself, and does not ask for the pipeline before it."""
    end = text.rstrip(b" \t\r\n\v\f")
    is_open = not end or end[-1] in b"|&)\\" or b"#" in end.rpartition(b"\n")[2]
    heads = (b"for ", b"done"), (b"for ((", b"done"), (b"select ", b"done"), (b"case ", b"esac"), (b"=(", b")")
    lacks_end = any(head in text and end not in text.rpartition(head)[2] for head, end in heads)
    parts = b"<<", b"function", b"PIPESTATUS"
    return len(text) <= PLAIN_BYTES_MAX and not is_open and not lacks_end and not any(part in text for part in parts)


@dataclass
class Zsh(Shell):
    """A running zsh. `zshrc` is the user's own file."""

    zshrc: str = ""
    script: Path = ZSH_SCRIPT
    only_load_key: bool = True
    takes_terminal_early: bool = True
    options: list = field(default_factory=list)

    def __post_init__(self):
        # Without a file of the user's, zsh would ask whether to make one.
        self.files = {".zshrc": self.zshrc, **self.files}
        super().__post_init__()

    def _start(self, env):
        folder = self.home / ".ptyd"
        folder.mkdir()
        shutil.copy(self.script, folder / ".zshenv")
        if "ZDOTDIR" in env:
            env["PTYD_ZDOTDIR"] = env["ZDOTDIR"]
        env["ZDOTDIR"] = str(folder)
        return ZSH, ["zsh", *(["-l"] if self.login else []), *self.options]


def quoted(path):
    """The path as a fish string: only these two are special between single quotes."""
    return "'" + str(path).replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass
class Fish(Shell):
    """A running fish. `config` is the user's own config.fish."""

    config: str = ""
    script: Path = FISH_SCRIPT
    only_load_key: bool = True
    takes_terminal_early: bool = True

    def _start(self, env):
        folder = self.home / ".config/fish"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.fish").write_text(self.config)
        # Without it fish starts a program in the background that reads all manual pages.
        for cache in ".local/share", ".cache":
            (self.home / cache / "fish/generated_completions").mkdir(parents=True, exist_ok=True)
        self._answered = 0
        return FISH, ["fish", *(["-l"] if self.login else []), "-i", "-C", f"source {quoted(self.script)}"]

    def pump(self, seconds):
        """Takes in what there is, and answers what the shell asks the terminal."""
        came = super().pump(seconds)
        asked = sum(self.output.count(query) for query in DEVICE_QUERIES)
        while self._answered < asked and self.status is None:
            self._answered += 1
            os.write(self.leader, DEVICE_ANSWER)
        return came


def ordinary(argv, question, home):
    """The answer of a plain shell to a question about its state."""
    answer = tempfile.mktemp(prefix="ptyd-shell-")
    pid, leader = pty.fork()
    if pid == 0:
        os.chdir(home)
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", "USER": "tester"}
        os.execvpe(argv[0], [os.path.basename(argv[0]), *argv[1:]], env)
    os.write(leader, f"{question} >{answer}; exit\r".encode())
    end = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < end and select.select([leader], [], [], end - time.monotonic())[0]:
        try:
            os.read(leader, 65536)
        except OSError:
            break
    os.waitpid(pid, 0)
    os.close(leader)
    text = Path(answer).read_text()
    os.unlink(answer)
    return text


def plain_seconds(program, script, home):
    """The time in which a shell without us runs a script."""
    (home / "script").write_bytes(script)
    began = time.monotonic()
    subprocess.run([program, "script"], cwd=home, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def same(got, want):
    """Asserts whole values and shows what differs."""
    if isinstance(got, dict) and isinstance(want, dict):
        differing = {k: (got.get(k), want.get(k)) for k in {*got, *want} if got.get(k) != want.get(k)}
        assert not differing, f"(got, wanted) {differing!r}"
    assert got == want, f"got {got!r}, wanted {want!r}"


sys.dont_write_bytecode = True
