"""Measures a round trip of `true` in fish as `bench` does in bash; the prompt is short, for fish shows it in between.

`python3 fish_bench.py`; the kinds run interleaved in blocks, because the floor drifts; compare the ratios.
"""

import statistics
import tempfile
from pathlib import Path

from bench import round_trip
from fish_rig import Shell
from rig import ACCEPT, LOAD

CONFIG = "function fish_prompt; echo -n '$ '; end; function fish_title; end"
MINIMAL = "function hook --on-event fish_postexec; printf '\\e]7337;D;0\\a'; end"


def minimal_script(folder):
    """A file with nothing but a hook that prints an end."""
    script = Path(folder) / "minimal.fish"
    script.write_text(MINIMAL)
    return script


def main(rounds=10, block=50):
    """Prints medians and their ratio."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Shell(wait=False, script=minimal_script(folder), config=CONFIG) as plain,
        Shell(config=CONFIG) as ours,
    ):
        plain.sees(b"$ ")
        ours.body = b"true"
        kinds = {
            "typed, minimal hook": (plain, b"true\r"),
            "typed, our hook": (ours, b"true\r"),
            "delivered": (ours, LOAD + ACCEPT),
        }
        times = {name: [] for name in kinds}
        for _ in range(rounds):
            for name, (shell, keys) in kinds.items():
                for _ in range(block):
                    shell.reads_keys()
                    times[name].append(round_trip(shell, keys))
        floor = statistics.median(times["typed, minimal hook"])
        for name, all in times.items():
            p = statistics.quantiles(all, n=100)
            print(f"{name:26} p50 {p[49]:5.0f} us  p99 {p[98]:5.0f} us  {p[49] / floor:4.2f} x")
        for body in b"x" * 1048576, b"echo (math 1+1) 'abc' \"d e f\"\n" * 34000:
            ours.body = b": '" + body.replace(b"'", b"") + b"'"
            print(f"1 MiB: {statistics.median(round_trip(ours, LOAD + ACCEPT) for _ in range(5)) / 1000:.0f} ms")


if __name__ == "__main__":
    main()
