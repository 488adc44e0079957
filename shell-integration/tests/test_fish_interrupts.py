"""Interrupts of a fish at every moment of a command: each command has one end, which says whether it began."""

import fcntl
import os
import random
import select
import signal
import struct
import termios
import time

from rig import Fish as Shell
from rig import same

# The ioctl by which the holder has the terminal send a signal to its foreground.
TIOCSIG = 0x40045436
ROUNDS = 1000 if os.environ.get("PTYD_TEST_FULL") == "1" else 20


def holds(event):
    """A user's handler of an event of fish that waits, while there is a `gate`, until someone writes into it."""
    return f"function hold --on-event {event}; test -p ~/gate; and read <~/gate; end"


def held(sh):
    """Makes the user's handler wait, and gives what waits until it does and what lets it go."""
    gate = sh.home / "gate"
    os.mkfifo(gate)

    def opened():
        try:
            return os.open(gate, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            # A fifo can be opened so when someone reads it.
            return None

    def wait():
        writers = []
        sh.kernel("reader", lambda: writers.append(opened()) or writers[-1] is not None)
        return writers[-1]

    def release(writer):
        gate.unlink()
        os.close(writer)

    return wait, release


def test_a_command_that_is_interrupted_before_it_began_is_not_begun():
    with Shell(config=holds("fish_preexec")) as sh:
        sh.run("sh -c 'exit 38'")
        wait, release = held(sh)
        sh.hand_over("echo x >ran")
        writer = wait()
        os.kill(sh.pid, signal.SIGINT)
        release(writer)
        end = sh.done()
        same((end.id, end.facts), (sh.last_id, (130, [130], "nc")))
        assert not (sh.home / "ran").exists()
        same(sh.prints("echo fine"), "fine\n")


def test_an_interrupt_behind_the_end_of_a_command_changes_nothing():
    with Shell(config=holds("fish_postexec")) as sh:
        wait, release = held(sh)
        sh.start("sh -c 'exit 7'")
        writer = wait()
        os.kill(sh.pid, signal.SIGINT)
        release(writer)
        same(sh.done().facts, (7, [7], ""))
        same(sh.prints("echo fine"), "fine\n")


def test_a_second_interrupt_behind_the_first_hides_no_end():
    for is_typed in False, True:
        with Shell(config=holds("fish_postexec")) as sh:
            wait, release = held(sh)
            if is_typed:
                sh.at_prompt()
                sh.keys(b"sleep 60\r")
            else:
                sh.start("sleep 60")
            sh.foreground("sleep")
            fcntl.ioctl(sh.leader, TIOCSIG, signal.SIGINT)
            writer = wait()
            os.kill(sh.pid, signal.SIGINT)
            release(writer)
            end = sh.done()
            same((is_typed, end.id, end.exit), (is_typed, 0 if is_typed else sh.last_id, 130))
            same(sh.prints("echo fine"), "fine\n")


def is_editing(sh):
    """Whether the line editor has the terminal."""
    return not termios.tcgetattr(sh.leader)[3] & termios.ICANON


def waits_for_keys(sh):
    """Whether the shell has read all keys and waits for more."""
    with open(f"/proc/{sh.pid}/fd/0", "rb", opener=lambda path, flags: os.open(path, flags | os.O_NOCTTY)) as terminal:
        # The kernel delivers keys some time after they are written; poll(2) waits until it has.
        select.select([terminal], [], [], 0)
        unread = struct.unpack("i", fcntl.ioctl(terminal, termios.FIONREAD, bytes(4)))[0]
    if unread or not sh.sleeps_now():
        return False
    # fish also polls, for a bounded time, for its highlighter; for keys it waits as long as it takes.
    with open(f"/proc/{sh.pid}/syscall") as call:
        fields = call.read().split()
    return len(fields) > 3 and int(fields[3], 16) in (0, 2**32 - 1, 2**64 - 1)


def interrupt(sh, is_key):
    """Interrupts the foreground, by the key or as the holder does."""
    if is_key:
        sh.keys(b"\x03")
    else:
        fcntl.ioctl(sh.leader, TIOCSIG, signal.SIGINT)


def told_end(sh):
    """The end that is told of the newest command, or what the report key tells; `None` if there is none yet."""
    ends = [body.split(b";", 5) for kind, body in sh.records if kind == "D"]
    return next((end for end in ends if int(end[1]) == sh.last_id or b"l" in end[4]), None)


def interrupted_end(sh, is_key):
    """The end of the newest command, which is interrupted until it ends; `None` if the shell never took it."""

    def ends():
        if told_end(sh):
            return True
        if not is_editing(sh):
            interrupt(sh, is_key)
            # The interrupt may have come to a shell that just forks, and be lost.
            sh.pump(0.01)
        elif waits_for_keys(sh) and not sh.pump(0):
            # All that it has told was taken in, and no end: the holder asks. An interrupt may end the key, too.
            sh.report()
        return False

    sh.kernel("end", ends)
    return told_end(sh) if int(told_end(sh)[1]) else None


def runs(sh, command, code):
    """Runs a command to its end, behind interrupts that came late."""

    def has_run():
        sh.reads_keys()
        sh.records.clear()
        sh.hand_over(command)
        end = interrupted_end(sh, is_key=False)
        return end and int(end[2]) == code

    sh.kernel("run", has_run)


def interrupts_at_any_moment(is_key):
    chance = random.Random(1)
    with Shell() as sh:
        for n in range(ROUNDS):
            runs(sh, "builtin return 38", 38)
            began = sh.home / f"began{n}"
            sh.reads_keys()
            sh.records.clear()
            mark = len(sh.output)
            nonce = sh.hand_over(f"echo b >{began.name}; {chance.choice(['sleep 60', 'while true; end', 'cat'])}")
            for _ in range(chance.choice([1, 1, 2, 3])):
                moment = time.monotonic() + chance.uniform(0, 0.008)
                while (left := moment - time.monotonic()) > 0:
                    sh.pump(left)
                interrupt(sh, is_key)
            end = interrupted_end(sh, is_key)
            if end is None or b"c" in end[4]:
                assert not began.exists(), (n, end, sh.transcript())
            else:
                same((n, int(end[2])), (n, 130))
                # Where the key is pressed, the kernel throws away what the terminal shows and nobody has read.
                is_shown = b"7337;C;" + nonce in sh.output[mark:]
                assert is_key or is_shown, (n, end, sh.transcript())


def test_a_signal_at_any_moment_leaves_a_true_end():
    interrupts_at_any_moment(is_key=False)


def test_the_key_at_any_moment_leaves_a_true_end():
    interrupts_at_any_moment(is_key=True)
