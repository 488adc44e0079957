"""Measures one driver, and prints one line of JSON for each measure: `python bench.py DRIVER HOME MEASURE…`.

The times are those that the driver's user sees. Processor time and memory are the product's own: its processes, and with a library the
process that uses it. Shells and their programs are counted apart; they are the same for every product.
"""

import os
import random
import resource
import statistics
import threading
import time
from pathlib import Path

from driver import Driver, NotOffered
from one import GOES_ON, Failed, Late, kill, processes, serve, short, verdict_of

# The seconds after which a measure takes no further sample, the fewest and the most samples, and the time of a flood.
SECONDS, FEWEST, MOST = 1.5, 5, 1_000
FLOOD_SECONDS = 25
SESSIONS = 5
FLOOD, READ = 100_000_000, 10_000_000
LINE = "0123456789" * 9 + "abcdefghi"
PROGRAMS = {"bash", "sh", "cat", "date", "yes", "head", "sleep", "true"}
TICK = os.sysconf("SC_CLK_TCK")


def percentile(values: list[float], share: float) -> float:
    """The value below which this share of the values is; of few values, the largest."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def spread(seconds: list[float]) -> dict:
    """The median and the 99th percentile in milliseconds, of so many values."""
    return {"n": len(seconds), "p50_ms": round(statistics.median(seconds) * 1e3, 3), "p99_ms": round(percentile(seconds, 0.99) * 1e3, 3)}


class Costs:
    """The processes of a product and of its shells."""

    def __init__(self, root: str, is_library: bool) -> None:
        self.root, self.is_library = os.fsencode(root), is_library

    def pids(self) -> tuple[list[int], list[int]]:
        """The product's own processes, and its shells with their programs."""
        own: list[int] = [os.getpid()] if self.is_library else []
        shells: list[int] = []
        # A process that gives itself a title may overwrite its environment.
        for pid in {*processes(self.root, "environ"), *processes(self.root)}:
            try:
                name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
            except OSError:
                continue
            has_terminal = rest.split()[4] != "0"
            (shells if has_terminal or name.partition("(")[2] in PROGRAMS else own).append(pid)
        return own, shells

    def processor(self) -> float:
        """The processor time of the product so far, in seconds. Clients that have ended are children of this process."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        ticks = 0
        for pid in self.pids()[0]:
            try:
                ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))
            except OSError:
                pass
        return ticks / TICK + ended.ru_utime + ended.ru_stime

    def memory(self) -> tuple[int, int]:
        """The proportional memory of the product and of its shells, in KiB."""
        sums = []
        for pids in self.pids():
            kib = 0
            for pid in pids:
                try:
                    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
                    kib += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
                except (OSError, StopIteration):
                    pass
            sums.append(kib)
        return sums[0], sums[1]


class Bench:
    """The measures of one driver."""

    def __init__(self, driver: Driver, root: Path, is_library: bool) -> None:
        self.driver, self.costs, self.folder = driver, Costs(str(root), is_library), root / "home"

    def take(self, name: str) -> dict:
        """The figures of a measure."""
        return getattr(self, f"take_{name}")()

    def ended(self, seen, code: int = 0) -> str:
        """The output of a command that has ended with this code."""
        if seen.state in GOES_ON:
            raise Late("the command has not ended")
        if seen.state != "ended" or seen.code != code:
            raise Failed(f"ended with {code} expected, told {seen.state}, code {seen.code} · {short(seen.words)}")
        return seen.output.replace("\r\n", "\n").strip("\n")

    def repeated(self, work, seconds: float = SECONDS, fewest: int = FEWEST) -> list[float]:
        """The seconds of each repetition."""
        times, deadline = [], time.monotonic() + seconds
        while len(times) < fewest or (time.monotonic() < deadline and len(times) < MOST):
            begun = time.perf_counter()
            work()
            times.append(time.perf_counter() - begun)
        return times

    def commands(self, command: str, is_right) -> dict:
        """A command again and again in one session."""
        session = self.driver.open(self.folder)

        def once():
            output = self.ended(self.driver.run(session, command, 10))
            if not is_right(output):
                raise Failed(f"`{command}` printed {short(output)}")

        for _ in range(2):
            once()
        before = self.costs.processor()
        times = self.repeated(once)
        own = self.costs.processor() - before
        self.driver.close(session)
        return spread(times) | {"per_second": round(len(times) / sum(times), 1), "processor_ms": round(own / len(times) * 1e3, 3)}

    def take_true(self) -> dict:
        """The smallest command, which the shell itself performs."""
        return self.commands("true", lambda output: output == "")

    def take_program(self) -> dict:
        """A real program, whose output is another one each time."""
        told = set()

        def is_right(output: str) -> bool:
            is_new = output.isdigit() and output not in told
            told.add(output)
            return is_new

        return self.commands("date +%s%N", is_right)

    def take_create(self) -> dict:
        """A new session, until its first command has ended."""
        sessions = []

        def once():
            sessions.append(self.driver.open(self.folder))
            self.ended(self.driver.run(sessions[-1], "true", 10))

        times = self.repeated(once, fewest=3)
        for session in sessions:
            self.driver.close(session)
        return spread(times)

    def take_memory(self) -> dict:
        """Measures the cost of five more sessions with a command each."""
        sessions = []

        def add(count: int):
            for _ in range(count):
                sessions.append(self.driver.open(self.folder))
                self.ended(self.driver.run(sessions[-1], "true", 10))

        add(1)
        before, processes_before = self.costs.memory(), self.costs.pids()
        add(SESSIONS)
        after, processes_after = self.costs.memory(), self.costs.pids()
        for session in sessions:
            self.driver.close(session)
        own, shells = (max(0, after[at] - before[at]) / SESSIONS / 1024 for at in (0, 1))
        return {
            "n": SESSIONS, "whole_mib": round(own + shells, 2), "shell_mib": round(shells, 2), "base_mib": round(before[0] / 1024, 1),
            "product_processes": len(processes_after[0]) - len(processes_before[0]),
        }  # fmt: skip

    def take_wait(self) -> dict:
        """From a text that a program prints to the return of the call that waits for it."""
        gates = [self.folder / "gate", self.folder / "behind"]
        for gate in gates:
            os.mkfifo(gate)
        session, times = self.driver.open(self.folder), []
        deadline = time.monotonic() + 2 * SECONDS
        while len(times) < FEWEST or (time.monotonic() < deadline and len(times) < 20):
            opened = []

            def open_gate():
                # A product that asks again and again is not to be asked in step.
                threading.Event().wait(random.uniform(0.1, 0.3))
                with gates[0].open("w") as gate:
                    opened.append(time.perf_counter())
                    gate.write(f"ready-{len(times)}.\n")

            self.driver.start(session, "cat gate behind")
            thread = threading.Thread(target=open_gate, daemon=True)
            thread.start()
            seen = self.driver.wait(session, 10, rf"ready-{len(times)}\.")
            returned = time.perf_counter()
            if seen.state != "matched":
                raise Failed(f"the text expected, told {seen.state}")
            thread.join()
            times.append(returned - opened[0])
            gates[1].write_text("end\n")
            self.ended(self.driver.wait(session, 10))
        self.driver.close(session)
        return spread(times)

    def take_lines(self) -> dict:
        """100 MB of lines, and then the screen with the last one."""
        session = self.driver.open(self.folder)
        self.ended(self.driver.run(session, "true", 10))
        processor, begun = self.costs.processor(), time.perf_counter()
        seen = self.driver.run(session, f"yes {LINE} | head -c {FLOOD}; echo the-last-line", FLOOD_SECONDS)
        seconds = time.perf_counter() - begun
        self.ended(seen)
        figures = {"seconds": round(seconds, 2), "processor_s": round(self.costs.processor() - processor, 2)}
        begun = time.perf_counter()
        try:
            while "the-last-line" not in self.driver.screen(session):
                if time.perf_counter() - begun > 10:
                    raise Late("the screen has not the last line after 10 s")
        except NotOffered:
            return figures
        return figures | {"screen_ms": round((time.perf_counter() - begun) * 1e3, 1)}

    def take_kept(self) -> dict:
        """The share of 10 MB of lines that can be read after their command has ended."""
        session = self.driver.open(self.folder)
        self.ended(self.driver.run(session, f"yes {LINE} | head -c {READ}", FLOOD_SECONDS))
        text = self.driver.output(session).replace("\r\n", "\n")
        # Lines alone: some products put words of their own around them.
        return {"kept_percent": round(text.count(LINE) / (READ // (len(LINE) + 1)) * 100, 2)}

    def take_restart(self) -> dict:
        """From the kill of the server to the right end of a command that ran meanwhile."""
        if "survives" not in self.driver.claims:
            raise NotOffered("survives")
        gate, times = self.folder / "later", []
        os.mkfifo(gate)
        for _ in range(FEWEST):
            session = self.driver.open(self.folder)
            self.driver.start(session, "cat later; (exit 7)")
            with gate.open("w") as opened:
                begun = time.perf_counter()
                kill(self.driver.server)
                opened.write("later\n")
            if self.ended(self.driver.wait(session, 10), 7) != "later":
                raise Failed("the output is not whole")
            times.append(time.perf_counter() - begun)
            self.driver.close(session)
        return spread(times)


MEASURES = tuple(name.removeprefix("take_") for name in vars(Bench) if name.startswith("take_"))


def played(driver: Driver, root: Path, wanted: list[str]):
    """Takes measures: the name of each, and a function that takes it."""
    bench = Bench(driver, root, bool(os.environ["CONFORMANCE_LIBRARY"]))
    for name in wanted:
        yield name, lambda name=name: verdict_of(lambda: {"figures": bench.take(name)})


if __name__ == "__main__":
    serve(played)
