"""A pytest plugin: puts ptyd under the host that PTYD_HOST names, and expects its listed differences, and no others.

A line of `differences.txt` is `skips PATTERN: reason` for a test of another backend, or `fails PATTERN: reason`.
"""

import fnmatch
import os
import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / os.environ["PTYD_HOST"]
runpy.run_path(str(FOLDER / "put_under_host.py"))
LINES = [line for line in (FOLDER / "differences.txt").read_text().splitlines() if line and not line.startswith("#")]
DIFFERENCES = [re.fullmatch(r"(skips|fails) (\S+): (.+)", line).groups() for line in LINES]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that differ. One that passes although it is listed fails."""
    for item in items:
        for kind, pattern, reason in DIFFERENCES:
            if fnmatch.fnmatchcase(item.nodeid.replace("[", "(").replace("]", ")"), f"*{pattern}"):
                item.add_marker(pytest.mark.skip(reason) if kind == "skips" else pytest.mark.xfail(reason=reason, strict=True))
                break
