"""The chaos in `conformance/`: a short one passes, and each kind of fault of the product fails it."""

import os
import re
import sys

import pytest

from mcp_client import PTYD, REPOSITORY
from prometheus import needed

sys.path.insert(0, str(REPOSITORY / "conformance"))
import chaos  # noqa: E402

pytestmark = pytest.mark.not_confined("it starts servers of its own")
# Five minutes with PTYD_TEST_FULL=1, in which a fault can be longer than a client waits.
LENGTH = ["--minutes", "5"] if os.environ.get("PTYD_TEST_FULL") == "1" else ["--minutes", "0.3", "--longest", "4", "--sessions", "3"]


@pytest.fixture(autouse=True)
def binary(monkeypatch):
    needed("redis-server")
    monkeypatch.setattr(chaos.soak, "PTYD", PTYD)


def played(*words: str, kind: type[chaos.Chaos] = chaos.Chaos) -> dict:
    """The report of a run."""
    return chaos.chaos(chaos.options_of([*words, "--seed", "1"]), kind)


# promise: node-3
def test_nothing_is_lost_or_done_twice_beside_faults_of_nodes_links_and_redis():
    report = played(*LENGTH)
    assert report["broken"] == [], report
    assert report["commands"] and report["views"] and report["directory_true_after_s"] and len(report["faults"]) > 3, report


class Twice(chaos.Chaos):
    """A request whose answer was lost runs again."""

    def ask(self, chance, method, path, body=None, at=None):
        if path.endswith("/execute"):
            body = body | {"command": "{ " + body["command"] + "; } >/dev/null; " + body["command"]}
        return super().ask(chance, method, path, body, at)


class Losing(chaos.Chaos):
    """The last bytes of an output are lost."""

    def read(self, chance, path):
        return super().read(chance, path)[:-1]


class Untrue(chaos.Chaos):
    """The lists lack a session."""

    def listed(self, number):
        found = super().listed(number)
        return found if isinstance(found, str) else dict(list(found.items())[1:])


class Late(chaos.Chaos):
    """One answer comes too late."""

    def allowed(self):
        return 0.001 if self.live and not self.late else super().allowed()


@pytest.mark.parametrize(("kind", "why"), [(Twice, ": ran "), (Losing, "bytes, not"), (Untrue, "is not the truth"), (Late, "no answer within")])
def test_a_fault_fails_it(kind, why, monkeypatch):
    monkeypatch.setattr(chaos, "HEALED", 0.5)
    # On a busy machine a short run may reach no command.
    for minutes in "0.03", "0.1", "0.3", "1":
        broken = played("--minutes", minutes, "--lanes", "0", "--sessions", "1", kind=kind)["broken"]
        if any(re.search(why, found) for found in broken):
            return
    pytest.fail(f"no run found {why!r}, but {broken}")
