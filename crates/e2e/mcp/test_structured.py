"""Structured answers for programs: `ptyd mcp --structured`, and a header or a query at `/mcp`.

Each answer is compared with the schema that its tool declares by `jsonschema`, which comes with the SDK. Without the
request tools with output answer text alone, and the others these same fields.
"""

import asyncio
import hashlib
import http.client
import http.server
import io
import json
import re
import subprocess
import tarfile
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator

from fullscreen import needs
from mcp_client import BOTH, CALL_SECONDS, REPOSITORY, Answer
from raw_client import gated, over_http, over_stdio
from test_other_clients import CLIENTS, NODE, NPM, PROGRAMS, driven
from test_protocol import TOOLS
from test_usage_examples import with_npm

DOORS = pytest.mark.parametrize("door", ["stdio", "header", "query", "query in an MCP session"])
UNKNOWN = "s0-aaaaaaaaaa"


class Program:
    """A client that reads structured answers, and no text."""

    def __init__(self, client, schemas):
        self.client = client
        self.validators = {name: Draft202012Validator(schema) for name, schema in schemas.items()}
        for validator in self.validators.values():
            validator.check_schema(validator.schema)
        self.last = None

    def __getattr__(self, tool):
        async def call(**arguments):
            self.last = await self.client.call_tool(tool, arguments, read_timeout_seconds=CALL_SECONDS)
            self.validators[tool].validate(self.last.structured_content)
            # The text for the model stands beside it as ever, and says the same.
            self.text = Answer.of(self.last)
            told = self.last.structured_content
            if not self.last.is_error and "output" in told:
                shown = told.get("earlier_output", "").removesuffix("\n") + told["output"].removesuffix("\n")
                assert shown.replace("\n", "") == self.text.output.replace("\n", "")
                assert told["facts"] == self.last.content[0].text.rpartition("\n")[2]
            return told

        return call


def connected(machine, door):
    """The SDK's client of a program that asks for structured answers at this door."""
    if door == "stdio":
        return machine.another_agent("--structured")
    query, headers = "?structured=true" if "query" in door else "", {"Ptyd-Structured": "true"} if door == "header" else {}
    return machine.agent_over_http("legacy" if "session" in door else "auto", query=query, **headers)


@pytest.fixture
async def tools(served, door):
    """A program at one of the doors."""
    async with connected(served, door) as agent:
        listed = (await agent.client.list_tools()).tools
        assert sorted(tool.name for tool in listed) == TOOLS
        yield Program(agent.client, {tool.name: tool.output_schema for tool in listed})


def of(told, *names):
    """These fields of an answer; `None` for one that it does not have."""
    return tuple(told.get(name) for name in names)


@pytest.mark.parametrize("door", ["stdio"])
async def test_a_nested_shell_whose_command_has_ended_is_reported_at_its_prompt(served, tools):
    started = await tools.start_terminal_session(shell="bash")
    run = lambda command: tools.execute_in_terminal(session_id=started["session_id"], command=command)
    await run("bash --norc")
    for _ in range(5):
        assert of(await run("true"), "ended_by", "exit_code", "foreground") == ("ended", 0, "input_wanted")
    assert of(await run("exit"), "foreground") == ("idle",)
    replaced = await run("exec bash --norc")
    assert "with exit codes if it is a known shell" in replaced["error"]
    for _ in range(5):
        assert of(await run("true"), "ended_by", "exit_code", "foreground") == ("ended", 0, "idle")


@DOORS
# promise: mcp-9
async def test_every_answer_has_the_field_names_of_the_requirement(served, tools, door):
    started = await tools.start_terminal_session(shell="bash", cwd=str(served.project), dimensions={"cols": 90, "rows": 20})
    assert of(started, "status", "shell", "cwd", "dimensions") == ("running", "bash", str(served.project), {"cols": 90, "rows": 20})
    id = started["session_id"]
    ran = await tools.execute_in_terminal(session_id=id, command="echo one; (exit 3)")
    names = ("session_id", "command_id", "output", "status", "exit_code", "ended_by", "session_status", "foreground")
    assert of(ran, *names) == (id, "c1", "one\n", "completed", 3, "ended", "running", "idle")
    asked = await tools.execute_in_terminal(session_id=id, command="read -p 'Name? ' n; echo got:$n")
    assert of(asked, *names) == (id, "c2", "Name? ", "running", None, "input_wanted", "running", "input_wanted")
    typed = await tools.send_input_to_terminal(session_id=id, input="Ada", end_with_newline=True, timeout=60)
    assert of(typed, "success", *names) == (True, id, "c2", "got:Ada\n", "completed", 0, "ended", "running", "idle")
    behind = await tools.get_terminal_output(session_id=id, since=asked["marker"], command_id="c2")
    assert of(behind, "output", "command_id", "status", "exit_code") == ("Ada\ngot:Ada\n", "c2", "completed", 0)
    # Without the name of a command the prompt is output, too, and the command is the last one.
    newest = await tools.get_terminal_output(session_id=id)
    assert ("got:Ada\n" in newest["output"], *of(newest, "command_id", "status")) == (True, "c2", "completed")
    none = await tools.get_terminal_output(session_id=id, since=behind["marker"], command_id="c2")
    assert of(none, "output", "marker") == ("", behind["marker"])
    whole = await tools.get_terminal_output(session_id=id, command_id="c1")
    assert of(whole, "output", "command_id", "status", "exit_code") == ("one\n", "c1", "completed", 3)
    found = await tools.get_terminal_output(session_id=id, search="got:")
    assert (": got:Ada\n" in found["output"], found["marker"].startswith("o:")) == (True, True)
    screen = await tools.get_terminal_output(session_id=id, view="screen")
    assert "got:Ada\n" in screen["output"]
    raw = await tools.get_terminal_output(session_id=id, view="raw", command_id="c1", since="first")
    assert (raw["output"], raw["command_id"]) == ("one\\r\n", "c1")
    lines = [(await tools.execute_in_terminal(session_id=id, command=text))["output"] for text in ("true", "echo", "printf x")]
    assert lines == ["", "\n", "x"]
    resized = await tools.resize_terminal(session_id=id, cols=100, rows=30)
    assert resized == {"session_id": id, "success": True, "dimensions": {"cols": 100, "rows": 30}}
    late = await tools.execute_in_terminal(session_id=id, command="printf part; sleep 3600", timeout=0.5)
    assert of(late, "status", "exit_code", "ended_by") == ("running", None, "timed_out")
    # On a busy machine the time-out may come before the output.
    assert "part".startswith(late["output"])
    shown = await tools.get_terminal_output(session_id=id, since="o:0", wait_for="part")
    assert shown["output"].endswith("part")
    listed = await tools.list_terminal_sessions(filter={"status": "running"})
    [summary] = listed["sessions"]
    assert of(summary, "session_id", "status", "foreground", "command_id", "command") == (
        id, "running", "running", "c6", "printf part; sleep 3600",
    )
    assert of(listed, "total", "offset") == (1, 0)
    steps = [{"wait_for": "never", "input": "x"}]
    unmatched = await tools.send_input_to_terminal(session_id=id, steps=steps, timeout=0.2)
    assert of(unmatched, "success", "status", "ended_by") == (False, "running", "timed_out")
    one = await tools.terminal(session_id=id, command="C-c")
    assert of(one, "session_id", "command_id", "status", "exit_code") == (id, "c6", "completed", 130)
    ended = await tools.terminate_terminal_session(session_id=id)
    assert of(ended, "session_id", "status", "left", "was_over") == (id, "terminated", 0, False)
    after = await tools.get_terminal_output(session_id=id)
    assert of(after, "session_status", "status", "foreground") == ("terminated", None, None)
    assert "got:Ada\n" in after["output"]


@DOORS
# promise: mcp-9
async def test_a_refusal_has_a_reason_and_a_code(served, tools, door):
    id = (await tools.start_terminal_session())["session_id"]
    await tools.execute_in_terminal(session_id=id, command="sleep 60", wait_for_completion=False)
    for tool, arguments, code in [
        ("execute_in_terminal", {"session_id": UNKNOWN, "command": "true"}, "session_not_found"),
        ("execute_in_terminal", {"session_id": id, "command": "true"}, "session_busy"),
        ("get_terminal_output", {"session_id": id, "command_id": "c9"}, "command_not_found"),
        ("get_terminal_output", {"session_id": id, "since": "yesterday"}, "invalid_field"),
        ("list_terminal_sessions", {"limit": 0}, "invalid_field"),
        ("resize_terminal", {"session_id": id, "cols": 0, "rows": 1}, "invalid_field"),
        ("send_input_to_terminal", {"session_id": id}, "invalid_field"),
        ("start_terminal_session", {"cwd": "/nowhere"}, "invalid_field"),
        ("terminal", {"command": "x", "reset": True, "is_input": True}, "invalid_field"),
        ("terminate_terminal_session", {"session_id": UNKNOWN}, "session_not_found"),
    ]:
        told = await getattr(tools, tool)(**arguments)
        assert (tools.last.is_error, told) == (True, {"error": tools.text.text, "error_code": code}), (tool, arguments)


@DOORS
# promise: mcp-9
async def test_outputs_read_one_after_the_other_are_the_output(served, tools, door):
    served.gate()
    id = (await tools.start_terminal_session(cwd=str(served.project)))["session_id"]
    parts = [await tools.execute_in_terminal(session_id=id, command="printf 'a\\nb'; cat gate; printf 'd\\n'", wait_for="b")]
    await served.open_gate("c")
    while parts[-1]["status"] == "running":
        parts.append(await tools.get_terminal_output(session_id=id, since="last", timeout=60))
    # The prompt follows.
    assert ("".join(part["output"] for part in parts).startswith("a\nbcd\n"), parts[-1]["exit_code"]) == (True, 0)


@DOORS
# promise: mcp-9
async def test_the_connection_details_are_addresses_that_answer(served, tools, door):
    started = await tools.start_terminal_session(name="mine")
    connection, headers = started["connection"], {"Authorization": f"Bearer {served.token}"}
    async with served.http() as http_client:
        session = (await http_client.get(connection["url"])).json()
    assert of(session, "id", "name", "connection") == (started["session_id"], "mine", connection)
    socket = urlsplit(connection["socket"])
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": "ptyd.v1"}
    there = http.client.HTTPConnection(socket.netloc, timeout=60)
    there.request("GET", socket.path, headers=headers | upgrade | {"Sec-WebSocket-Key": "x3JJHMbDL1EzLkh9GBhXDw=="})
    assert (socket.scheme, there.getresponse().status) == ("ws", 101)
    there.close()
    assert connection["mcp"] == served.url
    assert connection["attach"] == f"ptyd attach {started['session_id']}"


# promise: mcp-9
async def test_a_killed_servers_successor_answers_the_open_call_as_structured(machine):
    machine.gate()
    async with machine.another_agent("--structured") as agent:
        tools = Program(agent.client, {tool.name: tool.output_schema for tool in (await agent.client.list_tools()).tools})
        id = (await tools.start_terminal_session(cwd=str(machine.project)))["session_id"]
        run = {"session_id": id, "command": "cat gate; (exit 4)", "timeout": 60}
        call = asyncio.create_task(tools.execute_in_terminal(**run))
        async with asyncio.timeout(CALL_SECONDS):
            while (await agent.client.call_tool("get_terminal_output", {"session_id": id})).structured_content.get("status") != "running":
                pass
        await machine.kill_server()
        await machine.open_gate()
        told = await call
        assert of(told, "output", "status", "exit_code", "session_status") == ("opened\n", "completed", 4, "running")
        schemas = {tool.name: tool.output_schema for tool in (await agent.client.list_tools()).tools}
        assert schemas == {name: validator.schema for name, validator in tools.validators.items()}
        await tools.terminate_terminal_session(session_id=id)


@pytest.mark.parametrize("door", ["stdio", "http"])
# promise: mcp-9
async def test_the_result_of_a_task_is_structured_and_the_same_each_time(served, door):
    served.env |= {"PTYD_TASK_GRACE": "0.3"}
    served.serve_again()
    served.url += "?structured=true"
    over = over_stdio(served, "600", "--structured") if door == "stdio" else over_http(served)
    async with over as client:
        client.session = lambda: start(client)
        schemas = {tool["name"]: tool["outputSchema"] for tool in (await client.ask("tools/list"))["result"]["tools"]}
        session, task = await gated(served, client)
        await served.open_gate()
        done = (await client.over(task))["result"]
        told = done["structuredContent"]
        Draft202012Validator(schemas["execute_in_terminal"]).validate(told)
        assert of(told, "session_id", "command_id", "output", "status", "exit_code", "session_status") == (
            session, "c2", "opened\n", "completed", 3, "running",
        )
        assert done["content"][0]["text"] == told["output"] + told["facts"]
        await client.call("terminate_terminal_session", session_id=session)
        assert (await client.get(task))["result"] == done
        await served.kill_server() if door == "stdio" else served.serve_again()
        assert (await client.get(task))["result"] == done
    served.url = served.url.removesuffix("?structured=true")


async def start(client):
    """A session, by the name that its id has in a structured answer."""
    return (await client.call("start_terminal_session"))["structuredContent"]["session_id"]


async def posted(machine, method, query="", params=None, **headers):
    """The status and the text of an answer over HTTP."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    async with machine.http(**BOTH | headers) as client:
        answer = await client.post(machine.url + query, json=message)
        return answer.status_code, answer.text


def takes_session(tool) -> bool:
    """Whether a tool has the parameter that names a session."""
    return "session_id" in tool["inputSchema"]["properties"]


# promise: mcp-9
async def test_without_the_request_nothing_changes(served):
    published = json.loads((REPOSITORY / "schema/mcp-tools.json").read_text())["tools"]
    for query, headers in [("", {}), ("?structured=false", {}), ("?x=structured", {}), ("", {"Ptyd-Structured": "false"})]:
        _, listed = await posted(served, "tools/list", query, **headers)
        tools = json.loads(listed)["result"]["tools"]
        # Only load balancers read it, so only a client over HTTP is told.
        headers = {tool["inputSchema"]["properties"]["session_id"].pop("x-mcp-header") for tool in tools if takes_session(tool)}
        assert (tools, headers) == (published, {"Session"})
    async with served.another_agent() as agent:
        assert [tool.output_schema for tool in (await agent.client.list_tools()).tools] == [None] * 8
        session = await agent.session()
        assert set(session.started.structured) >= {"session_id", "status", "connection", "facts"}
        assert [(await session.run("echo hi")).structured, (await session.read()).structured] == [None, None]
        assert (await agent.at(UNKNOWN).run("true")).structured is None
    asked, _ = await posted(served, "tools/list", "?structured=true")
    assert asked == 200


# promise: mcp-9
async def test_a_tool_without_output_gives_every_client_the_same_fields(served):
    schemas = json.loads((REPOSITORY / "schema/mcp-tools-structured.json").read_text())["tools"]
    validators = {tool["name"]: Draft202012Validator(tool["outputSchema"]) for tool in schemas}
    given = {}
    for options in ([], ["--structured"]):
        async with served.another_agent(*options) as agent:
            started = (await agent.call("start_terminal_session", cwd=str(served.project), name="mine")).structured
            one, answers = {"session_id": started["session_id"]}, {"start_terminal_session": started}
            for tool, arguments in [
                ("resize_terminal", one | {"cols": 90, "rows": 20}),
                ("list_terminal_sessions", {"filter": {"status": "running"}}),
                ("terminate_terminal_session", one),
            ]:
                answers[tool] = (await agent.call(tool, **arguments)).structured
            for tool, told in answers.items():
                validators[tool].validate(told)
            given[bool(options)] = {tool: sorted(told) for tool, told in answers.items()}
    assert given[False] == given[True]


# promise: mcp-9
async def test_another_word_than_true_or_false_is_refused(served):
    for query, headers in [("?structured=yes", {}), ("", {"Ptyd-Structured": "1"})]:
        status, text = await posted(served, "tools/list", query, **headers)
        assert (status, "ptyd-structured" in json.loads(text)["error"]["message"]) == (400, True)
    for asks in ("?structured", "?a=b&structured=true"):
        assert '"outputSchema"' in (await posted(served, "tools/list", asks))[1]


@pytest.mark.parametrize("client", PROGRAMS)
# promise: mcp-9
async def test_other_clients_take_structured_answers_and_refusals(served, client):
    with driven(client, served.way("stdio", "--structured"), served) as ask:
        assert ask() == TOOLS
        id = ask("start_terminal_session")["structuredContent"]["session_id"]
        ran = ask("execute_in_terminal", session_id=id, command="echo hi")
        assert of(ran["structuredContent"], "command_id", "output", "exit_code") == ("c1", "hi\n", 0)
        refused = ask("execute_in_terminal", session_id=UNKNOWN, command="true")
        assert (refused["isError"], refused["structuredContent"]["error_code"]) == (True, "session_not_found")


# ---- terminal-management.md §5.3, verbatim but for the directory ----

PACKAGE_INSTALLATION = """
// Create a new terminal session
const { session_id } = await tools.start_terminal_session({
  shell: "bash",
  cwd: "/project/directory"
});

// Execute npm init
await tools.execute_in_terminal({
  session_id,
  command: "npm init"
});

// Send responses to prompts
await tools.send_input_to_terminal({
  session_id,
  input: "my-project\\n"  // Package name
});

await tools.send_input_to_terminal({
  session_id,
  input: "1.0.0\\n"  // Version
});

// Continue with other prompts...

// Install dependencies
await tools.execute_in_terminal({
  session_id,
  command: "npm install express --save"
});

// Get terminal output
const { output } = await tools.get_terminal_output({
  session_id
});

// Terminate the session when done
await tools.terminate_terminal_session({
  session_id
});
"""

# The example leaves this to its reader.
OTHER_PROMPTS = """
for (let told = { status: "running" }; told.status === "running" || /\\[still running/.test(told.output); ) {
  told = await tools.send_input_to_terminal({ session_id, input: "\\n" });
}
"""

DEVELOPMENT_SERVER = """
// Create a new terminal session
const { session_id } = await tools.start_terminal_session({
  shell: "bash",
  cwd: "/project/directory"
});

// Start development server
await tools.execute_in_terminal({
  session_id,
  command: "npm run dev",
  wait_for_completion: false  // Don't wait as this is a long-running process
});

// Wait for server to start by monitoring output
let serverStarted = false;
while (!serverStarted) {
  const { output } = await tools.get_terminal_output({
    session_id,
    since: "last"
  });

  if (output.includes("Server started on port")) {
    serverStarted = true;
  }

  // Avoid tight polling
  await new Promise(resolve => setTimeout(resolve, 500));
}

// Server is now running, perform other operations...

// When done, terminate the server
await tools.terminate_terminal_session({
  session_id
});
"""


@pytest.fixture
async def machine(machine):
    """A machine on which npm is there, for every shell that a server starts."""
    machine.env |= with_npm(machine) | {"npm_config_audit": "false", "npm_config_fund": "false"}
    yield machine


@contextmanager
def registry():
    """A registry of npm packages on loopback that has one, `express`."""
    file, text = io.BytesIO(), json.dumps({"name": "express", "version": "5.1.0", "main": "index.js"}).encode()
    with tarfile.open(fileobj=file, mode="w:gz") as packed:
        member = tarfile.TarInfo("package/package.json")
        member.size = len(text)
        packed.addfile(member, io.BytesIO(text))
    tarball = file.getvalue()

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            dist = {"tarball": f"{url}/express.tgz", "shasum": hashlib.sha1(tarball).hexdigest()}
            version = {"name": "express", "version": "5.1.0", "dist": dist}
            about = {"name": "express", "dist-tags": {"latest": "5.1.0"}, "versions": {"5.1.0": version}}
            body = tarball if self.path.endswith(".tgz") else json.dumps(about).encode()
            self.send_response(200 if "express" in self.path else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever).start()
        yield url
        server.shutdown()


async def played(machine, door, script):
    """The calls of an example and their answers: structured ones but at the plain door, where output is text."""
    script = script.replace("/project/directory", str(machine.project))
    way = machine.way(door, *["--structured"] * (door == "stdio"))
    if door == "http":
        way["url"] += "?structured=true"
    env = machine.env | {"NODE_PATH": str(NPM)}
    words = [NODE, CLIENTS / "usage_example.cjs", json.dumps(way), script]
    done = await asyncio.to_thread(subprocess.run, words, env=env, text=True, capture_output=True, timeout=600)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


@needs("npm")
@pytest.mark.parametrize("door", ["plain", "stdio", "http"])
# promise: mcp-9
async def test_the_example_of_an_interactive_installation_runs_verbatim(served, door):
    with registry() as url:
        served.env["npm_config_registry"] = url
        served.serve_again()
        script = PACKAGE_INSTALLATION.replace("// Continue with other prompts...", f"// Continue with other prompts...{OTHER_PROMPTS}")
        calls = await played(served, door, script)
    assert [told for _, _, told in calls if "error" in told] == []
    made = json.loads((served.project / "package.json").read_text())
    assert (made["name"], made["version"], made["dependencies"]) == ("my-project", "1.0.0", {"express": "^5.1.0"})
    (_, _, installed), (_, _, read), (_, _, ended) = calls[-3:]
    if door == "plain":
        assert "[exit 0 · " in installed["output"]
    else:
        assert of(installed, "status", "exit_code") == ("completed", 0)
    assert "added 1 package" in installed["output"] and "added 1 package" in read["output"]
    assert ended["status"] == "terminated"


@needs("npm")
@pytest.mark.parametrize("door", ["plain", "stdio", "http"])
# promise: mcp-9
async def test_the_example_of_a_development_server_runs_verbatim(served, door):
    listen = "const s = require('http').createServer().listen(0, () => console.log('Server started on port', s.address().port))"
    (served.project / "server.js").write_text(listen)
    (served.project / "package.json").write_text(json.dumps({"name": "shop", "scripts": {"dev": "node server.js"}}))
    calls = await played(served, door, DEVELOPMENT_SERVER)
    (_, _, begun), *_, (_, _, ready), (_, _, ended) = calls[1:]
    if door == "plain":
        assert re.match(r"\[still running · .* · command c1\]", begun["output"])
    else:
        assert of(begun, "command_id", "status", "ended_by") == ("c1", "running", "accepted")
    assert "Server started on port" in ready["output"]
    assert of(ended, "status", "left") == ("terminated", 0)
