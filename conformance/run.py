#!/usr/bin/env python3
"""Plays the cases on ptyd's doors and on its peers, and prints a table: see README.md beside this file."""

import argparse
import collections
import datetime
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from one import all_cases, processes

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent
INSTALLED = Path(os.environ.get("PTYD_CONFORMANCE_DIR") or REPOSITORY / "target/conformance")
PAGE = REPOSITORY / "docs/comparison.md"
REGISTRY = tomllib.loads((HERE / "drivers.toml").read_text())
# The time for the start of a driver, and for each case; then it hangs.
START_SECONDS, CASE_SECONDS = 120, 90
SIGNS = {"passes": "yes", "fails": "**no**", "hangs": "**no**", "n/a": "–", "not here": "?"}


def interpreter(driver: dict) -> str | None:
    """The Python that runs a driver, if it is there."""
    name = driver.get("python")
    if name is None:
        return sys.executable
    path = INSTALLED / name / "bin/python"
    return str(path) if path.exists() else None


class Child:
    """A process that plays cases on one driver, in a home of its own."""

    def __init__(self, driver: dict, python: str, cases: list[str]) -> None:
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
            "PTYD_BIN": os.environ.get("PTYD_BIN") or str(REPOSITORY / "target/debug/ptyd"),
            "PTYD_CONFORMANCE_DIR": str(INSTALLED),
            "PTYD_STATE_DIR": str(home / "state"),
            "PTYD_RUNTIME_DIR": str(self.root / "run"),
            "PYTHONPATH": str(HERE),
            "PYTHONDONTWRITEBYTECODE": "1",
            "CONFORMANCE_TRACE": os.environ.get("CONFORMANCE_TRACE", ""),
            "CONFORMANCE_SEED": os.environ.get("CONFORMANCE_SEED", ""),
        }
        self.log = open(self.root / "log", "w+b")
        self.process = subprocess.Popen(
            [python, str(HERE / "one.py"), driver["module"], str(self.root), *cases],
            env=self.env, cwd=home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, start_new_session=True,
        )  # fmt: skip
        self.rest = b""

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
        self.process.stdout.close()
        # A process that ends may have started another one meanwhile.
        while left := processes(os.fsencode(str(self.root)), "environ"):
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


def play(driver: dict, cases: list[str], told=lambda answer: None) -> tuple[str, dict[str, dict]]:
    """Plays cases on a driver: its version, and the answer of each case. A hang ends the process from outside, and the next one goes on."""
    known = {case["id"]: case for case in all_cases()}
    if unknown := set(cases) - set(known):
        raise ValueError(f"there is no case {', '.join(sorted(unknown))}")
    answers: dict[str, dict] = {}
    version, left = "", list(cases)

    def note(case: str, verdict: str, why: str, seconds: float | None = None) -> None:
        answers[case] = {"case": case, "verdict": verdict, "why": why, "seconds": seconds, "date": datetime.date.today().isoformat()}
        left.remove(case)
        told(answers[case])

    killing = {name for name, case in known.items() if case.get("server")}
    python = interpreter(driver)
    if python is None:
        for case in cases:
            note(case, "not here", "run.py --install did not install it")
    while left:
        child = Child(driver, python, left[:1] if driver.get("fresh") else left)
        begun, waits, before = None, START_SECONDS, len(left)
        try:
            while left:
                answer = child.line(waits)
                waits = CASE_SECONDS
                if not answer:
                    break
                if "version" in answer:
                    version = answer["version"]
                elif "begins" in answer:
                    begun = answer["begins"]
                else:
                    note(answer["case"], answer["verdict"], answer["why"], answer["seconds"])
                    begun = None
                    # A peer that failed, or whose server was killed, starts the next case afresh, unless its start takes 10 s.
                    is_suspect = answer["verdict"] == "fails" and not driver.get("slow_start")
                    if driver.get("fresh") or (driver.get("peer") and (is_suspect or answer["case"] in killing)):
                        break
        finally:
            log = child.end()
        if begun is not None:
            hangs = answer is None
            note(begun, "hangs" if hangs else "fails", f"no answer in {CASE_SECONDS} s" if hangs else f"it ended: {log[-160:]}")
        elif left and not answers and not version:
            for case in list(left):
                note(case, "not here", f"it does not start: {log[-160:]}")
        elif len(left) == before:
            note(left[0], "fails", f"it does not start again: {log[-160:]}")
    return version, answers


def install() -> int:
    """Installs the peers, each in an environment of its own; one that cannot be had costs only its row."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, wanted in REGISTRY["python"].items():
        python = python_at_least(wanted["at_least"])
        if python is None:
            print(f"{name}: there is no Python {wanted['at_least']} or newer", file=sys.stderr)
            failed += 1
            continue
        made = subprocess.run([python, "-m", "venv", INSTALLED / name]).returncode
        pip = [INSTALLED / name / "bin/pip", "install", "--quiet", *wanted.get("options", []), *wanted["packages"]]
        failed += bool(made or subprocess.run(pip).returncode)
    folder = INSTALLED / "npm"
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"private": True, "overrides": REGISTRY["npm"]["overrides"]}))
    npm = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *REGISTRY["npm"]["packages"]]
    failed += bool(subprocess.run(npm, cwd=folder).returncode)
    print(f"installed in {INSTALLED}" + (f"; {failed} could not be had" if failed else ""))
    return 1 if failed else 0


def python_at_least(version: str) -> str | None:
    """The oldest Python on this machine that is new enough, but no newer than 3.13."""
    wanted = tuple(map(int, version.split(".")))
    for minor in range(wanted[1], 14):
        found = [shutil.which(f"python3.{minor}"), *map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))]
        for python in filter(None, found):
            if subprocess.run([python, "-c", "import venv"], capture_output=True).returncode == 0:
                return python
    return sys.executable if sys.version_info[:2] >= wanted else None


def summary(answers: dict[str, dict]) -> str:
    """How many cases passed, of those that the product claims."""
    counted = collections.Counter(answer["verdict"] for answer in answers.values())
    claimed = counted["passes"] + counted["fails"] + counted["hangs"]
    return f"{counted['passes']}/{claimed}" if claimed else "–"


def table(cases: list[dict], drivers: list[dict], results: dict) -> list[str]:
    """The table in Markdown."""
    lines = [f"| case | {' | '.join(driver['name'] for driver in drivers)} |", "| --- |" + " --- |" * len(drivers)]
    for case in cases:
        cells = [SIGNS[results[driver["name"]][1][case["id"]]["verdict"]] for driver in drivers]
        lines.append(f"| {case['id']} | {' | '.join(cells)} |")
    counts = [summary(results[driver["name"]][1]) for driver in drivers]
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
    parser.add_argument("--write", action="store_true", help="write docs/comparison.md")
    parser.add_argument("--install", action="store_true", help="install the peers, and end")
    parser.add_argument("--list", action="store_true", help="list drivers and cases, and end")
    parser.add_argument("--json", type=Path, help="write the results to this file, and continue those that it has")
    options = parser.parse_args()
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
    for driver in drivers:
        version, answers = results.get(driver["name"], ("", {}))
        missing = [case["id"] for case in cases if case["id"] not in answers]
        if not missing:
            continue

        def told(answer, name=driver["name"]):
            print(f"{name}: {answer['case']}: {answer['verdict']}{' · ' + answer['why'] if answer['why'] else ''}", file=sys.stderr)

        newer, more = play(driver, missing, told)
        if not driver.get("peer"):
            newer += f" of {commit()}"
        results[driver["name"]] = (", ".join(dict.fromkeys(filter(None, (version, newer)))), answers | more)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1))
    print("\n".join(table(cases, drivers, results)))
    if options.write:
        from page import written

        counts = [summary(results[driver["name"]][1]) for driver in drivers]
        PAGE.write_text(written(cases, drivers, results, table(cases, drivers, results), counts, CASE_SECONDS))
    bad = [a for d in drivers if not d.get("peer") for a in results[d["name"]][1].values() if a["verdict"] != "passes" and a["verdict"] != "n/a"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
