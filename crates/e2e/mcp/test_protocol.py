"""The Model Context Protocol itself: both eras, the tools as a model sees them, progress, cancellation, resources.

The tests speak through the SDK, and speak revisions that it no longer offers in raw lines.
"""

import asyncio
import json

import pytest
from mcp import MCPError

TOOLS = [
    "execute_in_terminal",
    "get_terminal_output",
    "list_terminal_sessions",
    "resize_terminal",
    "send_input_to_terminal",
    "start_terminal_session",
    "terminal",
    "terminate_terminal_session",
]
PARAMETERS = {
    "terminal": ["command", "inside", "is_input", "max_output", "on_timeout", "reset", "session_id", "timeout", "wait_for"],
    "start_terminal_session": ["cwd", "dimensions", "env", "limits", "name", "owner", "profile", "shell"],
    "execute_in_terminal": [
        "command",
        "idempotency_key",
        "inside",
        "max_output",
        "on_timeout",
        "session_id",
        "timeout",
        "until",
        "wait_for",
        "wait_for_completion",
    ],
    "send_input_to_terminal": ["end_with_newline", "input", "keys", "paste", "session_id", "steps", "timeout", "until", "wait_for"],
    "get_terminal_output": [
        "command_id",
        "max_lines",
        "other_sessions",
        "search",
        "session_id",
        "since",
        "timeout",
        "until",
        "view",
        "wait_for",
        "wait_for_all",
    ],
    "resize_terminal": ["cols", "rows", "session_id"],
    "terminate_terminal_session": ["force", "session_id", "signal"],
    "list_terminal_sessions": ["filter", "limit", "offset"],
}


@pytest.mark.parametrize("mode, version", [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")])
# promise: mcp-1
async def test_both_eras_are_spoken(machine, mode, version):
    async with machine.another_agent("--detach", "0", mode=mode) as agent:
        assert agent.client.protocol_version == version
        assert [tool.name for tool in (await agent.client.list_tools()).tools] == TOOLS
        assert (await agent.terminal("echo hi")).output == "hi"
        if mode != "2026-07-28":
            # A pinned version is taken without a word from the server.
            assert agent.client.server_info.name == "ptyd"
            assert "[exit 0]" in agent.client.instructions


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
# promise: mcp-1
async def test_every_revision_since_the_first_is_agreed_to(lines, version):
    agreed = await lines.initialize(version)
    assert (agreed["result"]["protocolVersion"], agreed["result"]["serverInfo"]["name"]) == (version, "ptyd")
    called = await lines.ask("tools/call", {"name": "terminal", "arguments": {"command": "echo hi"}})
    [block] = called["result"]["content"]
    assert (block["type"], block["text"].splitlines()[0], called["result"].get("isError", False)) == ("text", "hi", False)


async def test_an_unknown_revision_is_answered_with_one_that_is_known(lines):
    agreed = await lines.initialize("1999-01-01")
    assert agreed["result"]["protocolVersion"] in ("2025-11-25", "2025-06-18")


async def test_a_ping_is_answered(lines):
    await lines.initialize("2025-06-18")
    assert (await lines.ask("ping"))["result"] == {}


async def test_an_unknown_method_is_a_protocol_error_and_the_connection_continues(lines):
    await lines.initialize("2025-06-18")
    assert (await lines.ask("tools/nothing", {}))["error"]["code"] == -32601
    assert len((await lines.ask("tools/list", {}, id=2))["result"]["tools"]) == 8


# promise: mcp-2
async def test_the_tools_are_the_requirements_with_all_annotations(workspace):
    tools = {tool.name: tool for tool in (await workspace.agent.client.list_tools()).tools}
    assert list(tools) == TOOLS
    assert {name: sorted(tool.input_schema["properties"]) for name, tool in tools.items()} == PARAMETERS
    hints = ("read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint")
    for tool in tools.values():
        assert tool.title
        assert all(isinstance(getattr(tool.annotations, hint), bool) for hint in hints), tool.name
    assert {n for n, t in tools.items() if t.annotations.read_only_hint} == {"get_terminal_output", "list_terminal_sessions"}


# promise: mcp-2
async def test_the_descriptions_are_for_a_model_and_fit_every_host(workspace):
    for tool in (await workspace.agent.client.list_tools()).tools:
        assert 100 <= len(tool.description) <= 1000, tool.name
        assert "Example" in tool.description, tool.name
        for name, parameter in tool.input_schema["properties"].items():
            assert parameter.get("description"), f"{tool.name}.{name}"


def schemas(node):
    """A schema and all schemas in it."""
    if isinstance(node, dict):
        yield node
        for child in node.values():
            yield from schemas(child)
    elif isinstance(node, list):
        for child in node:
            yield from schemas(child)


async def test_the_schemas_hold_nothing_that_a_provider_refuses(workspace):
    for tool in (await workspace.agent.client.list_tools()).tools:
        assert (tool.input_schema["type"], tool.output_schema) == ("object", None), tool.name
        for schema in schemas(tool.input_schema):
            assert not {"$schema", "$ref", "$defs", "format", "anyOf", "oneOf", "allOf", "nullable"} & schema.keys(), tool.name
            assert schema.get("type") != "null" and not isinstance(schema.get("type"), list), tool.name
            assert None not in schema.get("enum", []) and schema.get("default", "") is not None, tool.name


async def test_a_tool_that_bears_output_answers_text_only_and_a_list_both(workspace):
    ran = await workspace.terminal("echo hi")
    assert ran.structured is None
    listed = await workspace.agent.call("list_terminal_sessions")
    [summary] = listed.structured["sessions"]
    assert (summary["session_id"], summary["status"], summary["foreground"], summary["shell"]) == (ran.session_id, "running", "idle", "bash")
    assert summary["cwd"] == str(workspace.project)
    assert ran.session_id in listed.output


async def test_sessions_are_listed_by_status_in_pages(workspace):
    ids = [(await workspace.session(name=f"n{i}")).id for i in range(3)]
    await workspace.agent.at(ids[1]).terminate()

    async def listed(**arguments):
        answer = await workspace.agent.call("list_terminal_sessions", **arguments)
        return [t["session_id"] for t in answer.structured["sessions"]], answer.structured["total"]

    assert await listed() == ([ids[0], ids[2]], 2)
    assert await listed(limit=1, offset=1) == ([ids[2]], 2)
    assert await listed(filter={"status": "terminated"}) == ([ids[1]], 1)
    refused = await workspace.agent.call("list_terminal_sessions", limit=0)
    assert (refused.is_error, "limit" in refused.text) == (True, True)


async def test_a_cancelled_call_ends_the_wait_and_the_program_continues(workspace):
    begun = asyncio.Event()

    async def hear(progress, total, message):
        begun.set()

    session = await workspace.session()
    call = asyncio.create_task(
        workspace.agent.call(
            "execute_in_terminal", session_id=session.id, command="echo begun; read x; echo got:$x", wait_for="never",
            timeout=3600, on_progress=hear,
        )
    )
    await session.read(since="o:0", wait_for="^begun", timeout=60)
    assert begun.is_set()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    ended = await session.type("on", end_with_newline=True, timeout=60)
    assert (ended.last_line, ended.exit) == ("got:on", 0)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_unknown_tool_is_a_protocol_error_that_names_the_tools(machine, mode):
    async with machine.another_agent(mode=mode) as agent:
        with pytest.raises(MCPError) as refused:
            await agent.client.call_tool("bash", {"command": "true"})
    assert refused.value.error.code == -32602
    assert all(name in refused.value.error.message for name in ["unknown tool bash", *TOOLS])


@pytest.mark.parametrize(
    "tool, arguments, words",
    [
        ("terminal", {}, ["terminal: command is required, a string"]),
        ("terminal", {"command": 5}, ["terminal: command must be a string, not 5"]),
        ("terminal", {"command": "true", "cwd": "/"}, ['has no argument "cwd"', "cd DIR"]),
        ("terminal", {"command": "true", "timeout": -1}, ["timeout: -1", "between 0 and 3600"]),
        ("terminal", {"command": "true", "wait_for": "("}, ["wait_for: not a regular expression"]),
        ("execute_in_terminal", {"session_id": "s0-nothing000", "command": "true"}, ["no session s0-nothing000; live: "]),
        ("execute_in_terminal", {"session_id": "../..", "command": "true"}, ["session"]),
        ("get_terminal_output", {"session_id": "THERE", "since": "yesterday"}, ["since", '"last"', "o:"]),
        ("get_terminal_output", {"session_id": "THERE", "view": "html"}, ["unknown variant `html`", "text", "screen", "raw"]),
        ("send_input_to_terminal", {"session_id": "THERE"}, ["nothing to type", "keys"]),
        ("send_input_to_terminal", {"session_id": "THERE", "keys": ["Entre"]}, ["Entre", "Enter"]),
        ("resize_terminal", {"session_id": "THERE", "cols": 0, "rows": 5}, ["cols: 0 is not between 1 and 1000"]),
        ("resize_terminal", {"session_id": "THERE", "cols": 100000, "rows": 5}, ["cols: 100000"]),
        ("start_terminal_session", {"cwd": "/nonexistent"}, ["cwd", "/nonexistent", "does not exist"]),
        ("start_terminal_session", {"shell": "nosuchshell"}, ["shell", "nosuchshell"]),
        ("start_terminal_session", {"env": {"1A": "x"}}, ["env", "1A"]),
        ("terminate_terminal_session", {"session_id": "THERE", "signal": "SIGNOTHING"}, ["signal", "SIGTERM"]),
    ],
)
async def test_the_error_for_wrong_arguments_names_the_right_ones(workspace, tool, arguments, words):
    session = await workspace.session()
    refused = await workspace.agent.call(tool, **{k: session.id if v == "THERE" else v for k, v in arguments.items()})
    assert refused.is_error
    assert [word for word in words if word not in refused.text] == [], refused.text


async def test_null_is_as_good_as_omitted(workspace):
    answer = await workspace.terminal("echo hi", timeout=None, wait_for=None, is_input=None)
    assert (answer.output, answer.exit) == ("hi", 0)


async def test_transcript_and_screen_are_resources(workspace):
    session = await workspace.session(name="build")
    await session.run("echo hello from the transcript")
    client = workspace.agent.client
    resources = {str(r.uri): r for r in (await client.list_resources()).resources}
    assert list(resources) == [f"ptyd://sessions/{session.id}/output", f"ptyd://sessions/{session.id}/screen"]
    for uri in resources:
        [content] = (await client.read_resource(uri)).contents
        assert (content.mime_type, "hello from the transcript" in content.text) == ("text/plain", True), uri
    templates = [t.uri_template for t in (await client.list_resource_templates()).resource_templates]
    assert templates == ["ptyd://sessions/{session_id}/output", "ptyd://sessions/{session_id}/screen"]
    with pytest.raises(MCPError):
        await client.read_resource("ptyd://sessions/s0-nothing000/output")


CODING = ["get_terminal_output", "send_input_to_terminal", "start_terminal_session", "terminal"]


@pytest.mark.parametrize("choice, names", [("terminal", ["terminal"]), ("sessions", [t for t in TOOLS if t != "terminal"]), ("coding", CODING), ("all", TOOLS)])
async def test_a_client_sees_the_tools_that_it_chose(machine, choice, names):
    async with machine.another_agent("--tools", choice) as agent:
        tools = (await agent.client.list_tools()).tools
        assert [tool.name for tool in tools] == names
        shown = json.dumps([tool.model_dump(mode="json") for tool in tools])
        # `terminal` is a word, too.
        called = {name: name if name != "terminal" else "terminal has" for name in TOOLS if name not in names}
        assert [name for name, words in called.items() if words in shown] == [], "a tool refers to one that is not offered"
        hidden = next((tool for tool in TOOLS if tool not in names), None)
        if hidden:
            with pytest.raises(MCPError):
                await agent.client.call_tool(hidden, {})


async def test_a_client_that_leaves_while_a_call_waits_leaves_at_once(lines):
    await lines.initialize("2025-06-18")
    params = {"name": "terminal", "arguments": {"command": "sleep 3600", "timeout": 3600}, "_meta": {"progressToken": 1}}
    told = await lines.ask("tools/call", params)
    assert told["method"] == "notifications/progress"


async def test_a_line_that_is_not_json_does_not_end_the_connection(lines):
    await lines.initialize("2025-06-18")
    lines.process.stdin.write(b"this is no json\n")
    answer = await lines.ask("ping", id=7)
    if answer.get("id") != 7:
        assert answer["error"]["code"] == -32700
        answer = await lines.next()
    assert (answer["id"], answer["result"]) == (7, {})


async def test_many_calls_at_once_are_answered_each_with_its_own(workspace):
    sessions = await asyncio.gather(*(workspace.session() for _ in range(8)))
    for i, session in enumerate(sessions):
        await session.run(f"echo first of {i}")
    # Of each session one command and three reads of what was there before, all in flight together.
    commands = [session.run(f"sleep 0.2; echo {i}") for i, session in enumerate(sessions)]
    reads = [session.read(command_id="c1") for session in sessions for _ in range(3)]
    answers = await asyncio.gather(*commands, *reads)
    assert [a.output for a in answers[:8]] == [str(i) for i in range(8)]
    assert [a.output for a in answers[8:]] == [f"first of {i}" for i in range(8) for _ in range(3)]


async def test_a_server_that_was_started_for_one_client_serves_the_next(machine):
    async with machine.another_agent() as first:
        server = machine.server()
        session = await first.session()
    async with machine.another_agent() as second:
        machine.agent = second
        assert machine.server() == server
        assert (await second.at(session.id).run("echo still here")).output == "still here"
        await machine.end_sessions()


async def test_a_server_that_cannot_start_is_an_answer_that_says_why(machine):
    machine.state.rmdir()
    machine.state.write_text("not a folder")
    async with machine.lines(stderr=-1) as lines:
        answer = await lines.ask("ping")
        assert str(machine.state) in answer["error"]["message"]
    machine.state.unlink()


# promise: mcp-1
async def test_a_second_call_with_the_id_of_an_open_one_is_refused(lines):
    await lines.initialize("2025-06-18")
    call = lambda command: {"id": 7, "method": "tools/call", "params": {"name": "terminal", "arguments": {"command": command}}}
    # In one write: the first call is answered as soon as its program wants input.
    both = [json.dumps({"jsonrpc": "2.0"} | call(command)) for command in ("read word; echo got:$word", "echo second")]
    lines.process.stdin.write("".join(line + "\n" for line in both).encode())
    await lines.process.stdin.drain()
    answers = [await lines.next(), await lines.next()]
    [refused] = [answer["error"] for answer in answers if "error" in answer]
    assert refused == {"code": -32600, "message": "a call with this id is not answered yet"}
    [answered] = [answer["result"] for answer in answers if "result" in answer]
    assert "second" not in str(answered), answered
    # The id is free again.
    await lines.send({"id": 7, "method": "tools/call", "params": {"name": "terminal", "arguments": {"command": "word", "is_input": True}}})
    assert "got:word" in str((await lines.next())["result"])
