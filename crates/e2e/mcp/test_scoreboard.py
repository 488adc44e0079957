"""The scoreboard in `conformance/`: each door of ptyd passes its cases, and a peer shows that they can fail."""

import os
import sys

import pytest

from mcp_client import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "conformance"))
import one  # noqa: E402
import run as scoreboard  # noqa: E402
from driver import Driver, Place, SaidNo, Seen  # noqa: E402

CASES = [case["id"] for case in scoreboard.all_cases()]
DRIVERS = {driver["name"]: driver for driver in scoreboard.REGISTRY["driver"]}
DOORS = [name for name, driver in DRIVERS.items() if not driver.get("peer")]
# Linux limits the arguments of a program to 128 KiB.
NOT_OFFERED = {"ptyd-cli": {"long-command"}}

pytestmark = pytest.mark.not_confined("the cases look at other processes, and kill the server")


# A run in small plays each case at one door, a full one every case at every door.
@pytest.mark.parametrize("door", DOORS)
# promise: end-1, end-2, end-3, end-5, end-6, send-1, send-3, send-5, send-6
def test_cases_pass_at_each_door(door):
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

    [case] = [case for case in one.all_cases() if case["id"] == "long-input"]
    answer = one.result_of(Shy(Place(tmp_path, {})), case, tmp_path / "case")
    assert answer["verdict"] == expected[0] and expected[1] in answer["why"], answer


def test_a_product_that_hangs_is_ended_and_the_next_case_goes_on(monkeypatch):
    # The time after which a product hangs is the subject here.
    monkeypatch.setattr(scoreboard, "CASE_SECONDS", 2)
    version, answers = scoreboard.play({"module": "sleeper"}, ["exit-codes", "pattern"])
    assert version == "sleeper 1"
    assert [answer["verdict"] for answer in answers.values()] == ["hangs", "n/a"], answers
