#!/usr/bin/env python3
"""Plays the cases on ptyd's doors and on its peers, and prints a table: see README.md beside this file."""

import argparse
import collections
import datetime
import json
import math
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import MEASURES
from one import all_cases, processes
from page import bench_table, figures, written

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
INSTALLED = Path(os.environ.get("PTYD_CONFORMANCE_DIR") or REPOSITORY / "target/conformance")
PAGE = REPOSITORY / "docs/comparison.md"
REGISTRY = tomllib.loads((HERE / "drivers.toml").read_text())
# The time for the start of a driver, for each case and for each measure; then it hangs.
START_SECONDS, CASE_SECONDS, MEASURE_SECONDS = 120, 90, 30
# Cases are played side by side, because they mostly wait, and have this share of the run; measures are taken one after the other.
SIDE_BY_SIDE, CASES_SHARE, MINUTES = 5, 0.6, 15
# A package that takes longer to install cannot be had.
INSTALL_SECONDS = 900
# Set once the run is to end.
IS_OVER = threading.Event()
CHILDREN: set["Child"] = set()
SIGNS = {"passes": "yes", "fails": "**no**", "hangs": "**no**", "n/a": "–", "not here": "?"}


def interpreter(driver: dict) -> str | None:
    """The Python that runs a driver, if it is there."""
    name = driver.get("python")
    if "needs" in driver and not (INSTALLED / driver["needs"]).exists():
        return None
    if name is None:
        return sys.executable
    path = INSTALLED / name / "bin/python"
    return str(path) if path.exists() else None


def binary() -> str:
    """The ptyd that is driven: `PTYD_BIN`, or the newest build for users, or that for developers."""
    release, debug = (REPOSITORY / "target" / kind / "ptyd" for kind in ("release", "debug"))
    return os.environ.get("PTYD_BIN") or str(release if release.exists() else debug)


class Child:
    """A process that plays cases on one driver, in a home of its own."""

    def __init__(self, driver: dict, python: str, script: str, wanted: list[str]) -> None:
        # Short, because a socket's whole path has 107 bytes.
        self.root = Path(tempfile.mkdtemp(prefix="ptyd-"))
        home = self.root / "home"
        home.mkdir()
        (home / ".bashrc").write_text("PS1='\\w$ '\n")
        self.env = {
            "HOME": str(home),
            "PATH": f"{Path(python).parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "SHELL": "/bin/bash",
            "USER": "tester",
            "TMPDIR": str(self.root),
            "TMUX_TMPDIR": str(self.root),
            "PTYD_BIN": binary(),
            "PTYD_CONFORMANCE_DIR": str(INSTALLED),
            "PTYD_STATE_DIR": str(home / "state"),
            "PTYD_RUNTIME_DIR": str(self.root / "run"),
            "PYTHONPATH": str(HERE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CONFORMANCE_TRACE": os.environ.get("CONFORMANCE_TRACE", ""),
            "CONFORMANCE_SEED": os.environ.get("CONFORMANCE_SEED", ""),
            "CONFORMANCE_LIBRARY": "1" if driver.get("library") else "",
        }
        self.log = open(self.root / "log", "w+b")
        self.process = subprocess.Popen(
            [python, str(HERE / script), driver["module"], str(self.root), *wanted],
            env=self.env, cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True,
        )  # fmt: skip
        self.rest = b""
        CHILDREN.add(self)
        if IS_OVER.is_set():
            self.process.kill()

    def line(self, seconds: float) -> dict | None:
        """The next answer; None if none comes in time, or ever."""
        while b"\n" not in self.rest:
            if not select.select([self.process.stdout], [], [], seconds)[0]:
                return None
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                return {}
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def end(self) -> str:
        """Ends the process and all that it left, and gives the end of its log."""
        if os.getpgid(self.process.pid) == self.process.pid and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        CHILDREN.discard(self)
        self.process.stdout.close()
        # A process that ends may have started another one meanwhile.
        root = os.fsencode(str(self.root))
        while left := {*processes(root, "environ"), *processes(root)}:
            for pid in left:
                try:
                    watched = os.pidfd_open(pid)
                    os.kill(pid, signal.SIGKILL)
                    select.select([watched], [], [], 5)
                    os.close(watched)
                except OSError:
                    pass
        self.log.seek(0)
        log = self.log.read().decode(errors="replace").strip()
        self.log.close()
        if os.environ.get("CONFORMANCE_TRACE"):
            print(log, file=sys.stderr)
        shutil.rmtree(self.root, ignore_errors=True)
        return log[-400:]


def play(driver: dict, wanted: list[str], told=lambda answer: None, script: str = "one.py", ends: float = math.inf) -> tuple[str, dict]:
    """Plays cases on a driver, or takes measures: its version, and the answer of each. A hang ends the process from outside, and the next
    one goes on. Cases that have not begun when the time is over are not played."""
    known = {case["id"]: case for case in all_cases()} if script == "one.py" else dict.fromkeys(MEASURES, {})
    if unknown := set(wanted) - set(known):
        raise ValueError(f"there is no case {', '.join(sorted(unknown))}")
    seconds = CASE_SECONDS if script == "one.py" else MEASURE_SECONDS
    answers: dict[str, dict] = {}
    version, left = "", list(wanted)

    def note(answer: dict) -> None:
        answers[answer["case"]] = answer | {"date": datetime.date.today().isoformat()}
        left.remove(answer["case"])
        told(answer)

    def note_all(why: str) -> None:
        for case in list(left):
            note({"case": case, "verdict": "not here", "why": why, "seconds": None})

    killing = {name for name, case in known.items() if case.get("server")} | {"restart"}
    python, answer = interpreter(driver), None
    if python is None:
        note_all("run.py --install did not install it")
    while left:
        if time.monotonic() > ends or IS_OVER.is_set():
            note_all("the time of the run was over")
            break
        child = Child(driver, python, script, left[:1] if driver.get("fresh") else left)
        begun, waits, before = None, START_SECONDS, len(left)
        try:
            while left:
                answer = child.line(min(waits, max(1, ends - time.monotonic())))
                waits = seconds
                if not answer:
                    break
                if "version" in answer:
                    version = answer["version"]
                elif "begins" in answer:
                    begun = answer["begins"]
                else:
                    note(answer)
                    begun = None
                    # A peer that failed, or whose server was killed, starts the next case afresh, unless its start takes 10 s.
                    is_suspect = answer["verdict"] == "fails" and not driver.get("slow_start")
                    if driver.get("fresh") or (driver.get("peer") and (is_suspect or answer["case"] in killing)):
                        break
        finally:
            log = child.end()
        if left and (time.monotonic() > ends or IS_OVER.is_set()):
            continue
        if begun is not None:
            hangs = answer is None
            why = f"no answer in {seconds} s" if hangs else f"it ended: {log[-160:]}"
            note({"case": begun, "verdict": "hangs" if hangs else "fails", "why": why, "seconds": None})
        elif left and not answers and not version:
            note_all(f"it does not start{'' if answer is not None else f' in {START_SECONDS} s'}: {log[-160:]}")
        elif len(left) == before:
            note({"case": left[0], "verdict": "fails", "why": f"it does not start again: {log[-160:]}", "seconds": None})
    return version, answers


def succeeds(*words, cwd=None) -> bool:
    """Whether a program succeeds in the time that an installation has."""
    try:
        return subprocess.run(words, cwd=cwd, timeout=INSTALL_SECONDS).returncode == 0
    except (OSError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return False


def install() -> int:
    """Installs the peers, each in an environment of its own, and builds the client for TypeScript; what cannot be had costs only its rows."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    missing = []
    for name, wanted in REGISTRY["python"].items():
        python = python_at_least(wanted["at_least"])
        pip = [INSTALLED / name / "bin/pip", "install", "--quiet", *wanted.get("options", []), *wanted["packages"]]
        if python is None or not succeeds(python, "-m", "venv", INSTALLED / name) or not succeeds(*pip):
            # Half of it is not what the table says.
            shutil.rmtree(INSTALLED / name, ignore_errors=True)
            missing.append(name)
    for name, wanted in REGISTRY["npm"].items():
        folder = INSTALLED / name
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text(json.dumps({"private": True, "overrides": wanted.get("overrides", {})}))
        if not succeeds("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *wanted["packages"], cwd=folder):
            shutil.rmtree(folder)
            missing.append(name)
    client = INSTALLED / "typescript/client"
    shutil.rmtree(client, ignore_errors=True)
    if (INSTALLED / "typescript").exists():
        shutil.copytree(REPOSITORY / "clients/typescript", client, ignore=shutil.ignore_patterns("node_modules", "dist"))
        if not succeeds(INSTALLED / "typescript/node_modules/.bin/tsc", cwd=client):
            missing.append("the client for TypeScript")
    print(f"installed in {INSTALLED}" + (f"; could not be had: {', '.join(missing)}" if missing else ""))
    return 1 if missing else 0


def python_at_least(version: str) -> str | None:
    """The oldest Python on this machine that is new enough, but no newer than 3.13."""
    wanted = tuple(map(int, version.split(".")))
    for minor in range(wanted[1], 14):
        found = [shutil.which(f"python3.{minor}"), *map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))]
        for python in filter(None, found):
            if subprocess.run([python, "-c", "import venv"], capture_output=True).returncode == 0:
                return python
    return sys.executable if sys.version_info[:2] >= wanted else None


def summary(answers: dict[str, dict], cases: list[str]) -> str:
    """How many cases passed, of those that the product claims."""
    counted = collections.Counter(answers[case]["verdict"] for case in cases)
    claimed = counted["passes"] + counted["fails"] + counted["hangs"]
    return f"{counted['passes']}/{claimed}" if claimed else "–"


def table(cases: list[dict], drivers: list[dict], results: dict) -> list[str]:
    """The table in Markdown."""
    lines = [f"| case | {' | '.join(driver['name'] for driver in drivers)} |", "| --- |" + " --- |" * len(drivers)]
    for case in cases:
        cells = [SIGNS[results[driver["name"]][1][case["id"]]["verdict"]] for driver in drivers]
        lines.append(f"| {case['id']} | {' | '.join(cells)} |")
    counts = [summary(results[driver["name"]][1], [case["id"] for case in cases]) for driver in drivers]
    lines.append(f"| **passed, of the claimed** | {' | '.join(counts)} |")
    return lines


def commit() -> str:
    """The newest commit of ptyd itself in this tree, of which the binary is expected to be."""
    ours = ["--", "crates", "Cargo.lock", ":!crates/e2e"]

    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(REPOSITORY), *words, *ours], capture_output=True, text=True).stdout.strip()

    return (git("log", "-1", "--format=%h") or "an unknown commit") + (" and changes" if git("status", "--porcelain") else "")


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", action="append", help="only this driver; repeat it for several")
    parser.add_argument("--case", action="append", help="only this case; repeat it for several")
    parser.add_argument("--ptyd", action="store_true", help="only the doors of ptyd")
    parser.add_argument("--bench", action="store_true", help="only the measures")
    parser.add_argument("--measure", action="append", choices=MEASURES, help="only this measure; repeat it for several")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="end after so long, and say what was not played [%(default)s]")
    parser.add_argument("--write", action="store_true", help="the cases and the measures, and write docs/comparison.md")
    parser.add_argument("--install", action="store_true", help="install the peers, and end")
    parser.add_argument("--list", action="store_true", help="list drivers and cases, and end")
    parser.add_argument("--json", type=Path, help="write the results to this file, and continue those that it has")
    options = parser.parse_args()
    if options.write and (options.driver or options.case or options.ptyd):
        parser.error("--write makes the page of all drivers and cases; omit --driver, --case and --ptyd")
    # The end of the run is the end of all that it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if options.install:
        return install()
    cases = [case for case in all_cases() if not options.case or case["id"] in options.case]
    drivers = [d for d in REGISTRY["driver"] if not options.driver or d["name"] in options.driver]
    drivers = [d for d in drivers if not (options.ptyd and d.get("peer"))]
    if options.list:
        print("\n".join([*(d["name"] for d in drivers), "", *(f"{case['id']}: {case['claim']}" for case in cases)]))
        return 0
    if not cases or not drivers:
        parser.error("there is no such case, or no such driver: --list")
    results = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    lock = threading.Lock()

    def complete(driver: dict, wanted: list[str], script: str, ends: float) -> None:
        """Plays what the results of a driver lack."""
        name = driver["name"]
        _, answers = results.get(name, ("", {}))
        missing = [item for item in wanted if answers.get(item, {"verdict": "not here"})["verdict"] == "not here"]
        if not missing:
            return

        def told(answer):
            more = json.dumps(answer["figures"]) if "figures" in answer else answer["why"]
            print(f"{name}: {answer['case']}: {answer['verdict']}{' · ' + more if more else ''}", file=sys.stderr)

        newer, more = play(driver, missing, told, script, ends)
        if newer and not driver.get("peer"):
            newer += f" of {commit()}"
        with lock:
            version, answers = results.get(name, ("", {}))
            results[name] = (", ".join(dict.fromkeys(filter(None, (version, newer)))), answers | more)
            if options.json:
                options.json.write_text(json.dumps(results, indent=1))

    ids = [] if options.bench or (options.measure and not options.case) else [case["id"] for case in cases]
    measures = list(options.measure or MEASURES) if options.bench or options.write or options.measure else []
    begins = time.monotonic()
    # The slowest ones begin first.
    ordered = sorted(drivers, key=lambda driver: -driver.get("weight", 0))
    with ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        ends = begins + options.minutes * 60 * CASES_SHARE
        # One that starts for each case anyway is played twice at a time.
        parts = [(driver, ids[part::2]) for driver in ordered for part in (0, 1) if driver.get("fresh")]
        parts += [(driver, ids) for driver in ordered if not driver.get("fresh")]
        played = [threads.submit(complete, *part, "one.py", ends) for part in parts]
        try:
            for done in played:
                done.result()
        except BaseException:
            IS_OVER.set()
            threads.shutdown(wait=False, cancel_futures=True)
            for child in list(CHILDREN):
                child.process.kill()
            raise
    # The slowest ones are last, so that a run which is too short lacks them alone.
    for driver in reversed(ordered) if measures else []:
        complete(driver, measures, "bench.py", begins + options.minutes * 60)
    if ids:
        print("\n".join(table(cases, drivers, results)))
    if measures:
        print("\n".join(bench_table(drivers, results)))
    if options.write:
        counts = [summary(results[driver["name"]][1], ids) for driver in drivers]
        PAGE.write_text(written(cases, drivers, results, table(cases, drivers, results), counts, CASE_SECONDS, MEASURE_SECONDS))
        PAGE.with_suffix(".json").write_text(json.dumps(figures(drivers, results), indent=1) + "\n")
    bad = [a for d in drivers if not d.get("peer") for a in results[d["name"]][1].values() if a["verdict"] not in ("passes", "n/a")]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
