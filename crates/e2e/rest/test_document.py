"""The OpenAPI document is true: the server does nothing else, on any operation, whatever is asked."""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FULL = bool(os.environ.get("PTYD_TEST_FULL"))
# Enough for each operation to succeed; the long run finds what is rare.
EXAMPLES = 500 if FULL else 10
# The fuzzer cannot do these: it speaks no WebSocket, and has the document from where it would ask for it.
# A stream without an end is not a request for a fuzzer; test_events.py follows them, ../mcp those of MCP's own sessions, of which the fuzzer knows none.
# No session of this server has a policy, so there is no approval to decide on.
STREAMS = ("followEvents", "streamOutput")
DONE_AT_BEST = {"openSocket": {426}, "getOpenapi": None, "getMcp": {404}, "deleteMcp": {404}, "decideApproval": {422}} | dict.fromkeys(STREAMS)


# promise: rest-1
def test_the_document_that_is_served_is_the_committed_one(server):
    status, headers, text = server.ask("GET", "/openapi.json")
    assert (status, headers["content-type"]) == (200, "application/json")
    assert json.loads(text) == json.loads((HERE.parents[2] / "schema/openapi.json").read_text())


def fuzzed(server, folder, seed, operations, phases="examples,coverage,fuzzing"):
    """Fuzzes these operations; gives the statuses that each was answered with."""
    seen = folder / "seen.json"
    fuzz = {"PTYD_FUZZ_URL": server.url, "PTYD_FUZZ_TOKEN": server.token, "PTYD_FUZZ_SEEN": str(seen), "PTYD_FUZZ_SEED": seed}
    fuzz |= {"SCHEMATHESIS_HOOKS": "fuzz_hooks", "PYTHONPATH": str(HERE)}
    command = [
        Path(sys.executable).with_name("schemathesis"), "--config-file", HERE / "schemathesis.toml", "run",
        f"{server.url}/openapi.json", "--header", f"Authorization: Bearer {server.token}", "--url", server.url,
        "--phases", phases, "--checks", "all", "--max-examples", str(EXAMPLES), "--seed", seed,
        "--continue-on-failure", "--warnings", "off", "--no-color", "--request-timeout", "60",
        "--suppress-health-check", "all", *operations,
    ]  # fmt: skip
    run = subprocess.run(command, cwd=folder, env=os.environ | fuzz, capture_output=True, text=True)
    assert run.returncode == 0, (run.stdout + run.stderr)[-20_000:]
    return json.loads(seen.read_text())


# promise: rest-2
def test_the_server_returns_only_documented_answers(server, tmp_path):
    """To repeat a failure of the long run: PTYD_FUZZ_SEED with the seed that it printed."""
    seed = os.environ.get("PTYD_FUZZ_SEED") or (str(int.from_bytes(os.urandom(4))) if FULL else "1")
    print(f"PTYD_FUZZ_SEED={seed}")
    # Its fields have so many combinations that the fuzzer cannot hold them all; it gets random ones.
    wide = "executeCommand"
    seen = fuzzed(server, tmp_path, seed, [word for name in (*STREAMS, wide) for word in ("--exclude-operation-id", name)])
    seen |= fuzzed(server, tmp_path, seed, ["--include-operation-id", wide], "examples,fuzzing")
    assert sum(sum(statuses.values()) for statuses in seen.values()) >= 2_000
    document = json.loads(server.ask("GET", "/openapi.json")[2])
    for operations in document["paths"].values():
        for operation in operations.values():
            name = operation["operationId"]
            statuses = {int(status) for status in seen.get(name, {})}
            done = DONE_AT_BEST.get(name, {int(s) for s in operation["responses"] if s.startswith("2")})
            assert done is None or statuses & done, f"{name} was never done: {statuses}"
    assert server.ask("GET", "/readyz")[0] == 200
