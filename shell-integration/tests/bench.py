"""Measures a round trip of `true`, from the keys to the end marker, against the same typed under a minimal hook.

Both kinds run interleaved in blocks, because the floor drifts; compare the ratio, not the times.
"""

import os
import select
import statistics
import sys
import termios
import time

from rig import ACCEPT, LOAD, Shell

MINIMAL = "PROMPT_COMMAND='printf \"\\e]7337;D;0\\a\"'; PS1='$ '"


class Bare(Shell):
    """The floor: the same shell, in which only a marker is printed at the prompt."""


def round_trip(shell, keys):
    """Microseconds from writing the keys to reading an end marker."""
    while termios.tcgetattr(shell.leader)[3] & termios.ICANON:
        pass
    shell.output.clear()
    start = time.perf_counter_ns()
    os.write(shell.leader, keys)
    got = b""
    while b"\x1b]7337;D;" not in got:
        select.select([shell.leader], [], [])
        got += os.read(shell.leader, 65536)
    took = time.perf_counter_ns() - start
    shell._drain()
    shell.records.clear()
    return took / 1000


def staged(shell, text):
    """Stages one command for any number of loads."""
    shell.staged.write_bytes(b"7\n" + text)


def main(rounds=20, block=50):
    """Prints medians and their ratio."""
    plain = Shell.__new__(Bare)
    from pathlib import Path
    import tempfile

    rc = Path(tempfile.mkdtemp()) / "rc"
    rc.write_text(MINIMAL)
    plain.__init__(wait=False, script=rc)
    with plain, Shell(bashrc="PS1='$ '") as ours:
        staged(ours, b"true")
        kinds = {
            "typed, minimal hook": lambda: round_trip(plain, b"true\r"),
            "typed, our hook": lambda: round_trip(ours, b"true\r"),
            "delivered": lambda: round_trip(ours, LOAD + ACCEPT),
            "delivered, accepted by CR": lambda: round_trip(ours, LOAD + b"\r"),
        }
        time.sleep(0.2)
        times = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, go in kinds.items():
                for _ in range(block):
                    times[name].append(go())
        floor = statistics.median(times["typed, minimal hook"])
        for name, all in times.items():
            p = statistics.quantiles(all, n=100)
            print(f"{name:28} p50 {p[49]:6.0f} us  p99 {p[98]:6.0f} us  {p[49] / floor:4.2f} x")
        if len(sys.argv) > 1:
            print("pid", ours.pid, plain.pid)
            import subprocess
            for sh, keys in (ours, LOAD + ACCEPT), (plain, b"true\r"):
                tr = subprocess.Popen(["strace", "-c", "-p", str(sh.pid)], stderr=subprocess.PIPE)
                tr.stderr.readline()
                for _ in range(200):
                    round_trip(sh, keys)
                tr.send_signal(2)
                print(tr.communicate()[1].decode())


if __name__ == "__main__":
    main()
