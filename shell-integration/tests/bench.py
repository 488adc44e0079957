"""Measures a round trip of `true`, from the keys to the end marker, against the same typed under a minimal hook.

The kinds run interleaved in blocks, because the floor drifts; compare the ratios, not the times. With `--syscalls` it
also counts the system calls of each (needs strace); with `--megabyte` it times one command of 1 MiB; with `--zsh` or `--fish` it
measures that shell instead of bash.
"""

import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rig import ACCEPT, LOAD, SHORT_LINE, Fish, Shell, Zsh

# The user's file of each shell, its short prompt, and a script with nothing but a hook that prints an end.
SHELLS = {
    Shell: ("bashrc", "PS1='$ '", "PROMPT_COMMAND='printf \"\\e]7337;D;0\\a\"'; PS1='$ '"),
    Zsh: ("zshrc", "PS1='$ '", "precmd() { print -n '\\e]7337;D;0\\a' }; PS1='$ '"),
    Fish: (
        "config",
        "function fish_prompt; echo -n '$ '; end; function fish_title; end",
        "function hook --on-event fish_postexec; printf '\\e]7337;D;0\\a'; end",
    ),
}


def round_trip(shell, keys):
    """Microseconds from writing the keys to reading an end marker."""
    shell.at_prompt()
    shell.output.clear()
    got = b""
    if keys.startswith((LOAD, SHORT_LINE)):
        shell.stage(b"7", shell.body)
    start = time.perf_counter_ns()
    os.write(shell.leader, keys)
    while b"\x1b]7337;D;" not in got:
        select.select([shell.leader], [], [])
        got += os.read(shell.leader, 65536)
    took = time.perf_counter_ns() - start
    shell._drain()
    shell.records.clear()
    return took / 1000


def syscalls(shell, keys, rounds=200):
    """System calls of the shell for one round trip."""
    tracer = subprocess.Popen(["strace", "-qc", "-p", str(shell.pid)], stderr=subprocess.PIPE)
    time.sleep(0.5)  # strace -q tells nobody when it has attached.
    for _ in range(rounds):
        round_trip(shell, keys)
    tracer.send_signal(signal.SIGINT)
    total = tracer.communicate()[1].decode().splitlines()[-1].split()
    return int(total[3]) / rounds


def main(rounds=20, block=50):
    """Prints medians and their ratio."""
    kind = next((kind for kind in (Zsh, Fish) if f"--{kind.__name__.lower()}" in sys.argv), Shell)
    name, quiet, minimal = SHELLS[kind]
    folder = Path(tempfile.mkdtemp())
    (folder / "script").write_text(minimal)
    # fish shows its prompt between the keys and the end, so it is short in both.
    config = {name: quiet} if kind is Fish else {}
    with kind(wait=False, script=folder / "script", **config) as plain, kind(**{name: quiet}) as ours:
        plain.sees(b"$ ")
        ours.body = b"true"
        kinds = {"typed, minimal hook": (plain, b"true\r"), "typed, our hook": (ours, b"true\r")}
        kinds |= {"delivered, short line": (ours, SHORT_LINE)} if kind is Shell else {}
        kinds |= {"delivered": (ours, LOAD + ACCEPT)}
        kinds |= {"delivered, accepted by CR": (ours, LOAD + b"\r")} if kind is not Fish else {}
        times = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, (shell, keys) in kinds.items():
                for _ in range(block):
                    if kind is Fish:
                        shell.reads_keys()
                    times[name].append(round_trip(shell, keys))
        floor = statistics.median(times["typed, minimal hook"])
        for name, all in times.items():
            p = statistics.quantiles(all, n=100)
            calls = f"  {syscalls(*kinds[name]):4.0f} system calls" if "--syscalls" in sys.argv else ""
            print(f"{name:26} p50 {p[49]:5.0f} us  p99 {p[98]:5.0f} us  {p[49] / floor:4.2f} x{calls}")
        if "--megabyte" in sys.argv:
            for body in b"x" * 1048576, b"echo one 'abc' \"d e f\"\n" * 36000:
                ours.body = b": '" + body.replace(b"'", b"") + b"'"
                print(f"1 MiB: {statistics.median(round_trip(ours, LOAD + ACCEPT) for _ in range(5)) / 1000:.0f} ms")


if __name__ == "__main__":
    main()
