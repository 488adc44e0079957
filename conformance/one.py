"""Runs cases on one driver, and prints one line of JSON for each: `python one.py DRIVER HOME CASE…`.

It is a process of its own, because the drivers' packages exclude each other, and because the one that started it ends it from outside.
"""

import collections
import hashlib
import importlib
import json
import os
import random
import re
import secrets
import select
import signal
import sys
import threading
import time
import tomllib
import traceback
from pathlib import Path

from driver import Driver, NotOffered, Place, SaidNo, Seen

HERE = Path(__file__).resolve().parent
CASES = HERE / "cases"
# The time that a call waits for the end of a command: far more than any of these commands needs.
PATIENCE = 10.0
# The line editor's switches for bracketed paste: two products leave them in every output, which one case is enough to tell.
BRACKETS = re.compile(r"\x1b\[\?2004[hl]\r?")
# The states of a command that goes on.
GOES_ON = {"running", "matched", "asks", "asks_secret", "fullscreen", "stopped"}


class Failed(Exception):
    """The product did something else than the case says."""


class Late(Exception):
    """The product has not answered in time."""


def all_cases() -> list[dict]:
    """The cases of all files, in order."""
    return [case for file in sorted(CASES.glob("*.toml")) for case in tomllib.loads(file.read_text())["case"]]


def expanded(value, names: dict[str, str]):
    """A value of a case in which `%{x*100}` repeats x, and `%{name}` is the value of a name."""
    if isinstance(value, dict):
        return {key: expanded(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [expanded(item, names) for item in value]
    if not isinstance(value, str):
        return value
    for name, text in names.items():
        value = value.replace(f"%{{{name}}}", text)
    value = re.sub(r"%\{seq (\d+)\}", lambda m: "\n".join(map(str, range(1, int(m[1]) + 1))), value)
    return re.sub(r"%\{(.+?)\*(\d+)\}", lambda m: m[1] * int(m[2]), value, flags=re.DOTALL)


def processes(needle: bytes, part: str = "cmdline") -> list[int]:
    """The processes that have these bytes in their command line, or in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                if needle in Path(f"/proc/{name}/{part}").read_bytes().replace(b"\0", b" "):
                    found.append(int(name))
            except OSError:
                pass
    return found


def kill(pid: int) -> None:
    """Kills a process, and waits until it has ended."""
    watched = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([watched], [], [], PATIENCE)
    os.close(watched)


def short(text: str) -> str:
    """A text for a report."""
    return repr(text if len(text) <= 160 else f"{text[:80]} … {text[-60:]}")


class Run:
    """One case on one driver."""

    def __init__(self, driver: Driver, case: dict, folder: Path) -> None:
        self.driver, self.case, self.folder, self.sessions = driver, case, folder, {}
        # Programs of the case are found by this text in their environment.
        self.names = {"dir": str(folder), "id": case["id"], "secret": secrets.token_hex(12)}
        # Seconds that the steps with a `clock` took.
        self.clocks: dict[str, float] = collections.defaultdict(float)
        self.seed = os.environ.get("CONFORMANCE_SEED") or secrets.token_hex(4)

    def play(self) -> None:
        """Plays all steps."""
        missing = set(self.case.get("claims", [])) - self.driver.claims
        if missing:
            raise NotOffered(", ".join(sorted(missing)))
        for name, text in self.case.get("files", {}).items():
            (self.folder / name).write_text(expanded(text, self.names))
        for name in self.case.get("gates", []):
            os.mkfifo(self.folder / name)
        for number in range(1, self.case.get("random", 0) + 1):
            dice = random.Random(f"{self.seed}-{number}")
            (self.folder / f"any{number}").write_bytes(dice.randbytes(10_000))
            words = (bytes(dice.choices(range(128, 256), k=dice.randint(1, 9))) + b"<%d-%d>" % (number, word) for word in range(1, 101))
            (self.folder / f"high{number}").write_bytes(b"\n".join(words) + b"\n")
        if self.case.get("server"):
            # Some products have a server for each session.
            self.sessions["a"] = self.driver.open(self.folder)
            if self.driver.server is None:
                raise NotOffered("it lives in its client")
        for step in self.case["steps"]:
            for number in range(1, step.get("each", 1) + 1):
                self.step(expanded({k: v for k, v in step.items() if k != "each"}, self.names | {"n": str(number)}))

    def step(self, step: dict) -> None:
        """Plays one step, and compares."""
        step = dict(step)
        name = step.pop("session", "a")
        verb, argument = next(iter(step.items()))
        del step[verb]
        clock, begun = step.pop("clock", None), time.monotonic()
        if hasattr(self, f"do_{verb}"):
            getattr(self, f"do_{verb}")(argument, **step)
            return
        if verb == "views":
            self.views(self.sessions[name], argument, **step)
            return
        if name not in self.sessions:
            self.sessions[name] = self.driver.open(self.folder)
        session, driver = self.sessions[name], self.driver
        patience = step.pop("patience", PATIENCE)
        what = f"{verb} {short(argument) if isinstance(argument, str) else ''}".strip()
        seen = None
        match verb:
            case "open":
                pass
            case "run":
                seen = driver.run(session, argument, patience)
            case "start":
                driver.start(session, argument)
            case "type":
                reader = step.pop("or_says_no", None)
                try:
                    driver.type(session, argument)
                except SaidNo:
                    if reader is None:
                        raise
                    driver.keys(session, "C-d")
                    nothing = {"state": "ended", "code": 0, "file": {"path": reader, "text": ""}}
                    self.compare("wait after the no", driver.wait(session, patience, None), nothing)
                    raise Accepted from None
            case "keys":
                driver.keys(session, *argument)
            case "wait":
                seen = driver.wait(session, patience, argument or None)
            case "output":
                seen = Seen("", output=driver.output(session))
            case "screen":
                seen = self.screen(session, argument)
            case "interrupt":
                driver.interrupt(session)
            case "close":
                driver.close(session)
                del self.sessions[name]
            case _:
                raise ValueError(f"no such step: {verb}")
        if clock is not None:
            self.clocks[clock] += time.monotonic() - begun
        self.compare(what, seen, step)

    def screen(self, session, pattern: str) -> Seen:
        """The screen, as soon as it has a text."""
        deadline = time.monotonic() + PATIENCE
        while True:
            text = self.driver.screen(session)
            if re.search(pattern, text) or time.monotonic() > deadline:
                return Seen("", output=text)
            # A product without a wait for its screen is asked again.
            threading.Event().wait(0.1)

    def compare(self, what: str, seen: Seen | None, expected: dict) -> None:
        """Fails if something differs."""
        for key, value in expected.items():
            if key in ("alive", "dead", "file"):
                getattr(self, f"is_{key}")(what, value)
                continue
            output = seen.output if self.case.get("exact") else BRACKETS.sub("", seen.output)
            output = output.replace("\r\n", "\n").strip("\n")
            told = f"told {seen.state or 'output'}, code {seen.code}, output {short(output)}{' · ' + short(seen.words) if seen.words else ''}"
            match key:
                case "state":
                    allowed = {value} if isinstance(value, str) else set(value)
                    if "running" in allowed:
                        allowed |= GOES_ON
                    good = seen.state in allowed
                case "code":
                    allowed = value if isinstance(value, list) else [value]
                    good = ("unknown" if seen.code is None else seen.code) in allowed
                case "not_code":
                    good = seen.code != value
                case "prints":
                    good = output == value
                case "has":
                    good = all(text in output for text in value)
                case "lacks":
                    good = not any(text in output for text in value)
                case "sha256":
                    good = hashlib.sha256(output.encode()).hexdigest() == hashlib.sha256(value.encode()).hexdigest()
                    value = f"the same {len(value)} characters (there are {len(output)})"
                case _:
                    raise ValueError(f"no such expectation: {key}")
            if not good:
                raise Failed(f"{what}: {key} {short(value) if isinstance(value, str) else value} expected, {told}")

    def is_alive(self, what: str, needle: str) -> None:
        """Such a program runs; a shell may have forked it, and not executed it yet."""
        deadline = time.monotonic() + 5
        while not self.programs(needle):
            if time.monotonic() > deadline:
                raise Failed(f"{what}: `{needle}` expected to run still")
            threading.Event().wait(0.02)

    def is_dead(self, what: str, needle: str) -> None:
        """All such programs end, or have ended."""
        deadline = time.monotonic() + PATIENCE
        for pid in self.programs(needle):
            try:
                watched = os.pidfd_open(pid)
            except OSError:
                continue
            ended, _, _ = select.select([watched], [], [], max(0, deadline - time.monotonic()))
            os.close(watched)
            if not ended:
                raise Failed(f"{what}: `{needle}` still runs after {PATIENCE:.0f} s")

    def programs(self, needle: str) -> list[int]:
        """Programs of this case with this command line."""
        mine = set(processes(os.fsencode(str(self.folder.parent)), "environ"))
        return [pid for pid in processes(needle.encode()) if pid in mine]

    def is_file(self, what: str, expected: dict) -> None:
        """A file has this text, or one like this expression, as soon as it has been written."""
        path, deadline = self.folder / expected["path"], time.monotonic() + 5
        wanted, like = expected.get("text", "").encode(), expected.get("like", "").encode()
        while True:
            got = path.read_bytes() if path.exists() else b""
            if re.fullmatch(like, got) if like else got == wanted:
                return
            # A reader cannot lose bytes that it has received.
            is_wrong = got and not wanted and not like
            if is_wrong or time.monotonic() > deadline:
                found = f"{len(got)} bytes: {short(got.decode(errors='replace'))}"
                raise Failed(f"{what}: {expected['path']} has {found} instead of {like or f'{len(wanted)} bytes'}")
            threading.Event().wait(0.02)

    def do_gate(self, name: str) -> None:
        """Lets the program that reads a named pipe go on."""
        opened = threading.Thread(target=lambda: (self.folder / name).write_text("opened\n"), daemon=True)
        opened.start()
        opened.join(PATIENCE)
        if opened.is_alive():
            raise Failed(f"nothing reads {name}: the command is not there")

    def do_file(self, path: str, text: str) -> None:
        """Waits until a file has this text."""
        self.is_file("then", {"path": path, "text": text})

    def do_kill_server(self, _) -> None:
        """Kills the product's server, as a crash does."""
        kill(self.driver.server)

    def do_no_file_has(self, text: str, but: str) -> None:
        """No file of the product has this text, but one has another text, which shows that the search finds something."""
        root = self.driver.place.home.parent
        files = [path for path in root.rglob("*") if path.is_file() and not path.is_relative_to(self.folder)]
        if found := [path for path in files if text.encode() in path.read_bytes()]:
            raise Failed(f"{found[0].relative_to(root)} has the text")
        if not any(but.encode() in path.read_bytes() for path in files):
            raise Failed(f"no file has {but!r}, so the product keeps its files elsewhere")

    def do_fast(self, clock: str, **limit) -> None:
        """One clock counted at most so many times as much as another: a ratio of the product's own times."""
        took, other, times = self.clocks[clock], self.clocks[limit["as"]], limit["times"]
        if took > times * other:
            raise Failed(f"{clock} took {took:.2f} s, more than {times} times the {other:.2f} s of {limit['as']}")

    def views(self, session, text: str, hide: str) -> None:
        """Each view of the session has a text, and none has another one."""
        views = self.driver.views(session)
        if not views:
            raise NotOffered("no further view")
        for name, view in views.items():
            if hide in view:
                raise Failed(f"{name} has what was hidden")
            if text not in view:
                raise Failed(f"{name} lacks {text!r}: {short(view)}")

    def end(self) -> None:
        """Ends the sessions of the case."""
        for session in self.sessions.values():
            try:
                self.driver.close(session)
            except Exception:  # noqa: BLE001 - the case has its result
                pass


class Accepted(Exception):
    """The product said no, which the case accepts; the rest of the case needs a yes."""


def verdict_of(play) -> dict:
    """The verdict on what a function does, the reason, and what it returns."""
    begun, more = time.monotonic(), None
    try:
        more, verdict, why = play(), "passes", ""
    except Accepted:
        verdict, why = "passes", "it says no"
    except NotOffered as told:
        verdict, why = "n/a", str(told)
    except Failed as told:
        verdict, why = "fails", str(told)
    except Late as told:
        verdict, why = "hangs", str(told)
    except Exception as error:  # noqa: BLE001 - an error of the product is its result
        verdict, why = "fails", f"{type(error).__name__}: {short(str(error))}"
        if os.environ.get("CONFORMANCE_TRACE"):
            traceback.print_exc()
    return {"verdict": verdict, "why": why, "seconds": round(time.monotonic() - begun, 3)} | (more or {})


def result_of(driver: Driver, case: dict, folder: Path) -> dict:
    """Plays a case."""
    folder.mkdir(parents=True)
    run = Run(driver, case, folder)
    answer = verdict_of(run.play)
    if answer["verdict"] == "fails" and case.get("random"):
        answer["why"] += f" · CONFORMANCE_SEED={run.seed}"
    run.end()
    return answer


def serve(played) -> None:
    """Plays what the arguments name on the driver that they name: `played` yields a name and a function for each."""
    # A run in the background of a script ignores interrupts, and so would all shells of a library.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    name, root, wanted = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    answers = os.fdopen(os.dup(1), "w")
    # The products print, too.
    os.dup2(2, 1)
    module, _, variant = name.partition(":")
    driver = importlib.import_module(f"drivers.{module}").driver(Place(root / "home", dict(os.environ)), variant)
    print(json.dumps({"version": driver.version}), file=answers, flush=True)
    for item, play in played(driver, root, wanted):
        print(json.dumps({"begins": item}), file=answers, flush=True)
        print(json.dumps({"case": item} | play()), file=answers, flush=True)
    # A product may leave threads behind that never end; its processes are ended from outside.
    os._exit(0)


def played(driver: Driver, root: Path, wanted: list[str]):
    """Plays cases."""
    for case in all_cases():
        if case["id"] in wanted:
            yield case["id"], lambda case=case: result_of(driver, case, root / "home" / case["id"])


if __name__ == "__main__":
    serve(played)
