"""Clients that others wrote drive the eight tools, over stdio and over HTTP, and each gets the same whole answers.

A client is a program of its own in `crates/e2e/clients`: the SDKs exclude each other in one interpreter. The Inspector
is asked from its command line, one process for each call.
"""

import json
import os
import re
import select
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcp_client import CALL_SECONDS, PTYD, REPOSITORY
from test_protocol import TOOLS

CLIENTS = REPOSITORY / "crates/e2e/clients"
TARGET = PTYD.parents[1]
PYTHON_OF_MCP_1 = os.environ.get("PTYD_TEST_MCP1") or str(TARGET / "venv-mcp1/bin/python")
NPM = Path(os.environ.get("PTYD_TEST_NPM") or TARGET / "npm/node_modules")
NODE = next((str(node) for node in NPM.glob("node-linux-*/bin/node")), "node")
INSPECTOR = NPM / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"

if not NPM.is_dir():
    pytest.skip(f"{NPM} is not there: `cargo xtask test` makes it, or name another in PTYD_TEST_NPM", allow_module_level=True)

PROGRAMS = {
    "python SDK 1": [PYTHON_OF_MCP_1, CLIENTS / "mcp1.py"],
    "python SDK 2": [sys.executable, CLIENTS / "mcp2.py"],
    "fastmcp": [sys.executable, CLIENTS / "fast.py"],
    "typescript SDK": [NODE, CLIENTS / "typescript.cjs"],
}

SOON = pytest.mark.environment(PTYD_TASK_GRACE="0.5")

# Those that take tasks.
WITH_TASKS = {"python SDK 2": [sys.executable, CLIENTS / "tasks.py"], "typescript SDK 2": [NODE, CLIENTS / "tasks.cjs"]}


@contextmanager
def driven(client: str, way: dict, machine, programs=PROGRAMS):
    """A client at this server; gives the function that asks it."""
    env = machine.env | {"NODE_PATH": str(NPM), "PYTHONPYCACHEPREFIX": str(TARGET / "pycache")}
    if client == "inspector":
        yield lambda tool=None, /, **arguments: _inspected(way, env, tool, arguments)
        return
    with subprocess.Popen(
        [*programs[client], json.dumps(way)], env=env, cwd=machine.project, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:

        def ask(tool=None, /, **arguments):
            call = {"tool": tool, "arguments": arguments} if tool else {}
            print(json.dumps(call), file=program.stdin, flush=True)
            # One line for each call, so nothing of an earlier one is left in the buffer.
            assert select.select([program.stdout], [], [], CALL_SECONDS)[0], f"{client} hangs at {call}"
            line = program.stdout.readline()
            assert line, f"{client} has ended at {call}"
            return json.loads(line)

        yield ask
        program.stdin.close()
        assert program.wait(CALL_SECONDS) == 0


def _inspected(way: dict, env: dict, tool: str | None, arguments: dict):
    call = ["--method", "tools/call", "--tool-name", tool, *way.get("options", [])] if tool else ["--method", "tools/list"]
    for name, value in arguments.items():
        call += ["--tool-arg", f"{name}={value if isinstance(value, str) else json.dumps(value)}"]
    if "url" in way:
        call += ["--transport", "http", "--server-url", way["url"], "--header", f"Authorization: Bearer {way['token']}"]
    else:
        words = [word for pair in way["env"].items() for word in ("-e", "=".join(pair))]
        call += ["--transport", "stdio", *words, "--cwd", way["cwd"], "--", way["command"], *way["args"]]
    done = subprocess.run([NODE, INSPECTOR, "--cli", *call], env=env, text=True, capture_output=True, timeout=CALL_SECONDS)
    assert done.returncode in (0, 5), (done.returncode, done.stdout, done.stderr)
    answer = json.loads(done.stdout)
    return answer if tool else sorted(tool["name"] for tool in answer["tools"])


# The parts that differ between sessions, machines and runs; a client that connects anew for each call gets the place each time.
_OF_THIS_RUN = re.compile(r" · (session|pid|user|host|cwd|python|next|attach:) [^·\]]*[^·\] ]| · [\d.]+s(?= ·|\])")


def shown(answer: dict) -> tuple[bool, str]:
    """A whole answer as a model reads it, without what differs from run to run."""
    [block] = answer["content"]
    output, newline, facts = block["text"].rpartition("\n")
    facts = re.sub(r"\bs0-\w{10}\b", "SESSION", _OF_THIS_RUN.sub("", facts))
    return bool(answer.get("isError")), output + newline + facts


# Each call to the session that was started, and the answer. A time is given where a busy machine could be taken for
# silence.
DIALOGUE = [
    ("execute_in_terminal", {"command": "echo one; (exit 3)"}, "one\n[exit 3 · command c1]"),
    ("execute_in_terminal", {"command": "read -p 'Name? ' n; echo got:$n"}, "Name? \n[still running · command c2 · wants input]"),
    ("send_input_to_terminal", {"input": "Ada\n", "timeout": 20}, "got:Ada\n[exit 0]"),
    ("resize_terminal", {"cols": 100, "rows": 30}, "[resized · 100×30]"),
    # It handles the interrupt at any time: between two programs no process would.
    (
        "execute_in_terminal",
        {"command": "sh -c 'trap \"exit 130\" INT; stty size; while sleep 1; do :; done'", "wait_for": "30 100"},
        '30 100\n[still running · command c3 · matched "30 100"]',
    ),
    ("send_input_to_terminal", {"keys": ["C-c"], "timeout": 20}, "[exit 130 · INT]"),
    ("get_terminal_output", {"command_id": "c1"}, "one\n[exit 3 · command c1]"),
    ("terminal", {"command": "cd / && false | true"}, "[exit 0 · pipestatus 1|0]"),
    ("terminal", {"command": "pwd"}, "/\n[exit 0]"),
    ("terminate_terminal_session", {"force": True}, "[terminated · 1 process ended]"),
]

# Over stdio a client has a shell of its own, which `terminal` needs no name for.
OWN_SHELL = [({"command": "cd /; x=kept"}, "[exit 0]"), ({"command": "echo $PWD $x"}, "/ kept\n[exit 0]")]


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("client", [*PROGRAMS, "inspector"])
# promise: mcp-4
async def test_other_clients_get_the_same_whole_answers(served, client, way):
    machine = served
    server = machine.way(way)
    with driven(client, server, machine) as ask:
        assert ask() == TOOLS
        started = ask("start_terminal_session", cwd=str(machine.project), name="work")
        id = started["structuredContent"]["session_id"]
        assert shown(started) == (False, "[running · bash · 120×40]")
        # Each call of the Inspector takes two processes over stdio. A few show that way, and the whole dialogue goes over HTTP.
        calls = [*DIALOGUE[:3], DIALOGUE[-1]] if (client, way) == ("inspector", "stdio") else DIALOGUE
        for tool, arguments, expected in calls:
            assert (tool, *shown(ask(tool, session_id=id, **arguments))) == (tool, False, expected)
            if tool == "resize_terminal":
                listed = ask("list_terminal_sessions")["structuredContent"]["sessions"]
                assert [(t["session_id"], t["name"], t["status"]) for t in listed] == [(id, "work", "running")]
        is_error, why = shown(ask("execute_in_terminal", session_id=id, command="echo never"))
        assert (is_error, why.partition(";")[0]) == (True, "session SESSION has ended (terminated on request")
        if way == "stdio" and client != "inspector":
            for arguments, expected in OWN_SHELL:
                assert shown(ask("terminal", **arguments)) == (False, expected)


@pytest.mark.parametrize("client", PROGRAMS)
# promise: mcp-4
async def test_other_clients_continue_over_http_when_the_server_was_killed_and_started_again(served, client):
    with driven(client, served.way("http"), served) as ask:
        id = ask("start_terminal_session")["structuredContent"]["session_id"]
        ask("execute_in_terminal", session_id=id, command="x=kept")
        served.serve_again()
        is_error, answer = shown(ask("execute_in_terminal", session_id=id, command="echo $x"))
        assert (is_error, answer.partition("\n")[0]) == (False, "kept")


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("client", [*WITH_TASKS, "inspector"])
@SOON
# promise: mcp-7
async def test_other_clients_with_tasks_get_the_answer_of_a_call_that_takes_long(served, client, way):
    machine = served
    server = machine.way(way)
    if client == "inspector":
        server["options"] = ["--protocol-era", "modern"]
    with driven(client, server, machine, WITH_TASKS) as ask:
        id = ask("start_terminal_session")["structuredContent"]["session_id"]
        records = machine.state / "sessions" / id / "tasks"
        # A call that is over in time is not a task, for a client that takes them, too.
        short = ask("execute_in_terminal", session_id=id, command="echo short")
        assert (shown(short), records.exists()) == ((False, "short\n[exit 0 · command c1]"), False)
        long = ask("execute_in_terminal", session_id=id, command="(echo begun; sleep 2; echo done; exit 3)")
        is_error, answer = shown(long)
        assert (is_error, answer) == (False, 'begun\ndone\n[exit 3 · command c2 "(echo begun; sleep 2; echo done; exit 3)"]')
        # It was told by the task.
        kinds = [next(iter(json.loads(line))) for line in records.read_text().splitlines() if line]
        assert kinds == ["opened", "over", "told"]
        if client != "inspector" or way == "http":
            # To the Inspector over stdio each call is a client of its own.
            again = ask("get_terminal_output", session_id=id, since="last")
            assert "done" not in again["content"][0]["text"]


@pytest.mark.parametrize("way", ["stdio", "http"])
@pytest.mark.parametrize("client", WITH_TASKS)
@SOON
# promise: mcp-8
async def test_other_clients_send_their_person_to_the_page_for_a_password(served, client, way):
    machine, secret = served, "hunter2 cörrect"
    server = machine.way(way)
    with driven(client, server | {"secret": secret}, machine, WITH_TASKS) as ask:
        id = ask("start_terminal_session")["structuredContent"]["session_id"]
        answer = ask("execute_in_terminal", session_id=id, command="read -sp 'Word? ' x; echo; echo got ${#x}")
        is_error, text = shown(answer)
        assert (is_error, f"got {len(secret)}" in text.splitlines(), secret in json.dumps(answer)) == (False, True, False), text
    assert machine.files_holding(secret.encode()) == []
