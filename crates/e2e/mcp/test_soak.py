"""The soak in `conformance/`: a short one passes beside kills of the server, and each kind of fault fails it."""

import re
import sys

import pytest

from mcp_client import PTYD, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "conformance"))
import soak  # noqa: E402

pytestmark = pytest.mark.not_confined("it measures a server of its own")


@pytest.fixture(autouse=True)
def binary(monkeypatch):
    monkeypatch.setattr(soak, "PTYD", PTYD)


def played(*words: str, kind: type[soak.Soak] = soak.Soak) -> dict:
    """The report of a short run."""
    return soak.soak(soak.options_of([*words, "--viewers", "2", "--rest", "0", "--seed", "1"]), kind)


# promise: crash-1
def test_mixed_work_beside_kills_of_the_server_leaves_nothing():
    report = played("--commands", "100", "--sessions", "6", "--every", "1", "--kill-server", "2")
    assert report["broken"] == []
    assert report["kills"] == 2 and report["commands"] >= 100 and all(report["done"].values()), report["done"]
    assert report["samples"] and report["idle"]["fds"] <= report["start"]["fds"], report


class Forgetful(soak.Soak):
    """The shell loses a command."""

    def adds(self, client, session, chance):
        session.counted += session.counted == 1
        super().adds(client, session, chance)


class Losing(soak.Soak):
    """A killed server loses a session."""

    def kills_server(self):
        client = soak.Client(self.server)
        lost = soak.Session(client)
        client.ask("DELETE", f"/{lost.id}", force="true", purge="true")
        self.live[lost.id] = lost
        super().kills_server()


class Leaving(soak.Soak):
    """A session is left behind all others."""

    def report(self, start):
        self.patience = 0
        return super().report(start | {"left": soak.Session(soak.Client(self.server))})


@pytest.mark.parametrize(
    ("kind", "why"),
    [(Forgetful, r"count \+= 1"), (Losing, "is lost after kill -9"), (Leaving, "processes are left: .*holder")],
)
def test_a_fault_fails_it(kind, why):
    report = played("--commands", "60", "--sessions", "2", "--kill-server", "1", kind=kind)
    assert re.search(why, report["broken"][0]), report["broken"]


class Missing(soak.Viewer):
    """A viewer that is not sent each second message."""

    def next(self):
        super().next()
        return super().next()


def test_a_message_that_a_viewer_misses_fails_it(monkeypatch):
    monkeypatch.setattr(soak, "Viewer", Missing)
    report = played("--commands", "10000", "--sessions", "2")
    assert "a viewer at" in report["broken"][0], report["broken"]
