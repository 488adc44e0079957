"""The scoreboard in `conformance/`: each door of ptyd passes its cases, and a peer shows that they can fail."""

import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from client_packages import TypeScript
from mcp_client import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "conformance"))
import bench  # noqa: E402
import one  # noqa: E402
import run as scoreboard  # noqa: E402
from driver import Driver, Place, SaidNo, Seen  # noqa: E402

CASES = [case["id"] for case in scoreboard.all_cases()]
DRIVERS = {driver["name"]: driver for driver in scoreboard.REGISTRY["driver"]}
DOORS = [name for name, driver in DRIVERS.items() if not driver.get("peer")]
# Linux limits the arguments of a program to 128 KiB.
NOT_OFFERED = {"ptyd-cli": {"long-command"}}



@pytest.fixture
def typescript(tmp_path_factory, tmp_path, monkeypatch):
    """The built client, where an installation puts it."""
    (tmp_path / "typescript").mkdir()
    (tmp_path / "typescript/client").symlink_to(TypeScript(tmp_path_factory.getbasetemp()).package)
    monkeypatch.setattr(scoreboard, "INSTALLED", tmp_path)


pytestmark = pytest.mark.not_confined("the cases look at other processes, and kill the server")


# A run in small plays each case at one door, a full one every case at every door.
@pytest.mark.parametrize("door", DOORS)
# promise: end-1, end-2, end-3, end-5, end-6, send-1, send-3, send-5, send-6
def test_cases_pass_at_each_door(door, request):
    if "needs" in DRIVERS[door]:
        request.getfixturevalue("typescript")
    cases = CASES if os.environ.get("PTYD_TEST_FULL") else CASES[DOORS.index(door) :: len(DOORS)]
    version, answers = scoreboard.play(DRIVERS[door], cases)
    assert version.startswith("ptyd ") and list(answers) == cases
    others = {case: answer for case, answer in answers.items() if answer["verdict"] != "passes"}
    expected = NOT_OFFERED.get(door, set()).intersection(cases)
    assert {case: answer["verdict"] for case, answer in others.items()} == dict.fromkeys(expected, "n/a"), others


def test_a_case_passes_fails_and_is_not_claimed_at_a_peer():
    # ipython brings pexpect.
    peer = {key: value for key, value in DRIVERS["pexpect"].items() if key != "python"}
    version, answers = scoreboard.play(peer, ["exit-codes", "forged-marks", "question-is-told"])
    assert version.startswith("pexpect ")
    verdicts = {case: answer["verdict"] for case, answer in answers.items()}
    assert verdicts == {"exit-codes": "passes", "forged-marks": "fails", "question-is-told": "n/a"}, answers


def test_a_product_that_does_not_start_again_fails_and_the_run_ends(monkeypatch):
    modules = iter(["sleeper", "absent"])

    class Child(scoreboard.Child):
        def __init__(self, driver, *more):
            super().__init__(driver | {"module": next(modules)}, *more)

    monkeypatch.setattr(scoreboard, "Child", Child)
    _, answers = scoreboard.play({"fresh": True}, ["pattern", "question-is-told"])
    assert [answer["verdict"] for answer in answers.values()] == ["n/a", "fails"], answers
    with pytest.raises(ValueError, match="no case nothing"):
        scoreboard.play({"module": "sleeper"}, ["nothing"])


class Product(Driver):
    """A product in this process, with the answers that a test gives it."""

    claims = Driver.claims | {"secrets"}

    def __init__(self, folder, took=(0, 0), **views):
        super().__init__(Place(folder / "home", {}))
        self.took, self.shown, self.files, self.clock = took, views, folder, SimpleNamespace(now=0)
        (folder / "home").mkdir()

    def open(self, cwd):
        return cwd

    def run(self, session, command, patience):
        told = re.findall(r"shown-[\w-]+|exit 3|first|fresh|asks", command)[0]
        self.clock.now += self.took[told == "exit 3"]
        return Seen("asks_secret" if "Password" in command else "ended", 3 if told == "exit 3" else 0, told)

    def type(self, session, text):
        self.secret = text.strip()

    def wait(self, session, patience, pattern=None):
        return Seen("ended", 0, "length 24")

    def output(self, session):
        return "shown-password-unseen"

    def views(self, session):
        (self.files / "log").write_text("shown-password-unseen")
        return {name: text.format(secret=self.secret) for name, text in self.shown.items()}

    def close(self, session):
        pass


def case_of(name: str) -> dict:
    """A case."""
    return next(case for case in one.all_cases() if case["id"] == name)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("shown-password-unseen", ("passes", "")),
        ("shown-password-unseen {secret}", ("fails", "list has what was hidden")),
        ("an empty list", ("fails", "list lacks 'shown-password-unseen'")),
    ],
)
def test_a_secret_in_a_view_fails_and_an_empty_view_shows_nothing(view, expected, tmp_path):
    answer = one.result_of(Product(tmp_path, log="shown-password-unseen", list=view), case_of("password-unseen"), tmp_path / "home/case")
    assert answer["verdict"] == expected[0] and answer["why"].startswith(expected[1]), answer


def test_a_secret_in_a_file_fails(tmp_path):
    product = Product(tmp_path, log="shown-password-unseen")
    product.type = lambda session, text: (setattr(product, "secret", text), (tmp_path / "kept").write_text(f"a {text}"))
    answer = one.result_of(product, case_of("password-unseen"), tmp_path / "home/case")
    assert answer["verdict"] == "fails" and answer["why"] == "kept has the text", answer


@pytest.mark.parametrize(("exit_takes", "verdict"), [(9, "passes"), (11, "fails")])
def test_an_exit_is_compared_with_new_sessions_of_the_same_product(exit_takes, verdict, tmp_path, monkeypatch):
    # A clock that only the product moves: two sessions take 1 s each.
    monkeypatch.setattr(one, "time", SimpleNamespace(monotonic=lambda: product.clock.now))
    product = Product(tmp_path, took=(1, exit_takes))
    answer = one.result_of(product, case_of("exit"), tmp_path / "home/case")
    assert answer["verdict"] == verdict, answer


def test_measures_have_figures_and_count_only_the_products_own_processes():
    _, ours = scoreboard.play(DRIVERS["ptyd-rest"], ["true", "memory"], script="bench.py")
    peer = {key: value for key, value in DRIVERS["pexpect"].items() if key != "python"}
    _, theirs = scoreboard.play(peer, ["memory", "restart"], script="bench.py")
    assert [answer["verdict"] for answer in [*ours.values(), *theirs.values()]] == ["passes"] * 3 + ["n/a"], (ours, theirs)
    figures = ours["true"]["figures"]
    assert 0 < figures["p50_ms"] <= figures["p99_ms"] and figures["n"] >= 5 and figures["processor_ms"] > 0, ours
    # A session of ptyd has a process beside its shell, and one of pexpect has not.
    assert ours["memory"]["figures"]["product_processes"] == bench.SESSIONS and theirs["memory"]["figures"]["product_processes"] == 0, (ours, theirs)
    assert all(answers["memory"]["figures"]["shell_mib"] > 0 for answers in (ours, theirs)), (ours, theirs)


def test_an_ignored_interrupt_of_the_run_is_not_a_products_own():
    # A library forks its shells itself; they would inherit it.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        peer = {key: value for key, value in DRIVERS["pexpect"].items() if key != "python"}
        _, answers = scoreboard.play(peer, ["interrupt"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert answers["interrupt"]["verdict"] == "passes", answers


def test_a_terminated_run_leaves_nothing(tmp_path):
    # More drivers than are played side by side: those that have not begun do not begin.
    words, waiting = [sys.executable, scoreboard.__file__, "--ptyd"], tuple(DOORS[scoreboard.SIDE_BY_SIDE :])
    env = os.environ | {"TMPDIR": str(tmp_path), "PTYD_CONFORMANCE_DIR": str(tmp_path)}
    with subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        # After the first answer, each driver that has begun has many cases left.
        assert ": passes" in run.stderr.readline()
        run.terminate()
        lines = run.stderr.read().splitlines()
    assert run.returncode == 1 and list(tmp_path.iterdir()) == [], list(tmp_path.iterdir())
    assert one.processes(os.fsencode(str(tmp_path)), "environ") == []
    assert waiting and not [line for line in lines if line.startswith(waiting)], lines


def test_a_run_ends_in_its_time_and_says_what_it_did_not_play():
    _, answers = scoreboard.play({"module": "sleeper"}, ["exit-codes", "pattern"], ends=time.monotonic())
    # A measure is kept beside the cases, under its own name.
    assert not set(scoreboard.MEASURES).intersection(CASES)
    assert {answer["why"] for answer in answers.values()} == {"the time of the run was over"}, answers


@pytest.mark.parametrize(
    ("error", "received", "expected"),
    [(SaidNo, "", ("passes", "it says no")), (SaidNo, "x", ("fails", "got has 1 bytes")), (OSError, "", ("fails", "OSError"))],
)
def test_only_a_products_own_no_that_leaves_nothing_is_a_no(error, received, expected, tmp_path):
    class Shy(Driver):
        def open(self, cwd):
            (cwd / "here").write_text("\n")
            (cwd / "got").write_text(received)

        def start(self, session, command):
            pass

        def type(self, session, text):
            raise error

        def keys(self, session, *names):
            pass

        def wait(self, session, patience, pattern=None):
            return Seen("ended", 0)

    answer = one.result_of(Shy(Place(tmp_path, {})), case_of("long-input"), tmp_path / "case")
    assert answer["verdict"] == expected[0] and expected[1] in answer["why"], answer


def test_a_product_that_hangs_is_ended_and_the_next_case_goes_on(monkeypatch):
    # The time after which a product hangs is the subject here.
    monkeypatch.setattr(scoreboard, "CASE_SECONDS", 2)
    version, answers = scoreboard.play({"module": "sleeper"}, ["exit-codes", "pattern"])
    assert version == "sleeper 1"
    assert [answer["verdict"] for answer in answers.values()] == ["hangs", "n/a"], answers
