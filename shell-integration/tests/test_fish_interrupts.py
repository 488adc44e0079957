"""Interrupts of a fish around a command: each command has one end, which says whether it began.

`shell_ends.rs` of the end-to-end tests interrupts every shell at random moments.
"""

import fcntl
import os
import signal

from rig import Fish as Shell
from rig import same

# The ioctl by which the holder has the terminal send a signal to its foreground.
TIOCSIG = 0x40045436
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


def test_a_second_interrupt_does_not_hide_the_end():
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
