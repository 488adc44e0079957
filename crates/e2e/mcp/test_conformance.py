"""MCP's own conformance suite (npm `@modelcontextprotocol/conformance`) against `/mcp`, for both eras of the protocol.

Most of its scenarios ask for tools, resources and prompts of its own reference server, which ptyd has none of. The
failures stand in docs/mcp-conformance.md with the reason, and nothing else may fail: that page is checked here, both ways.
"""

import json
import re
import subprocess
from collections import defaultdict

import pytest

from mcp_client import REPOSITORY
from test_other_clients import CLIENTS, NODE, NPM

SUITE = NPM / "@modelcontextprotocol/conformance/dist/index.js"
PAGE = REPOSITORY / "docs/mcp-conformance.md"


def explained(revision: str) -> dict[str, int]:
    """The scenarios of the page that do not pass for a revision, each with the number of checks that fail."""
    rows = re.findall(r"^\| (\S+) \| `([\w-]+)` \| (\d+) \| \d+ \| .+ \|$", PAGE.read_text(), re.MULTILINE)
    return {scenario: int(checks) for of, scenario, checks in rows if of == revision}


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
# promise: mcp-1
async def test_the_conformance_suite_passes_except_for_what_the_page_explains(served, revision, tmp_path):
    # A session, so that there are resources to look at.
    async with served.another_agent() as agent:
        await agent.session()
    with subprocess.Popen([NODE, CLIENTS / "doorkeeper.cjs", json.dumps(served.way("http"))], stdout=subprocess.PIPE, text=True) as door:
        try:
            url = f"http://127.0.0.1:{door.stdout.readline().strip()}/mcp"
            suite = [NODE, SUITE, "server", "--url", url, "--requirements", revision, "-o", tmp_path]
            subprocess.run(suite, env=served.env, cwd=tmp_path, capture_output=True, timeout=600)
        finally:
            door.terminate()
    told, passed = defaultdict(int), 0
    for result in tmp_path.glob("server-*/checks.json"):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", result.parent.name).removeprefix("server-")
        for check in json.loads(result.read_text()):
            passed += check["status"] == "SUCCESS"
            if check["status"] == "FAILURE":
                told[scenario] += 1
    assert dict(told) == explained(revision)
    assert passed >= {"2025-11-25": 38, "2026-07-28": 100}[revision]
