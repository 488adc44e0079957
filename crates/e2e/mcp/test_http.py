"""The same tools over streamable HTTP, with the official SDK, in both eras of the protocol."""

import json

import httpx2
import pytest

from mcp_client import BOTH

ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@ERAS
# promise: mcp-3
async def test_an_agent_works_over_http_as_over_stdio(served, mode):
    async with served.agent_over_http(mode) as agent:
        session = await agent.session(cwd=str(served.project))
        assert (await session.run("cd /tmp; false")).exit == 1
        assert (await session.run("pwd")).output == "/tmp"
        asked = await session.run("read -p 'name? ' n; echo got:$n")
        assert (asked.is_running, asked.wants) == (True, "input")
        assert (await session.type("John\n")).last_line == "got:John"


@ERAS
async def test_the_one_tool_shell_over_http_names_the_way_to_a_session(served, mode):
    async with served.agent_over_http(mode) as agent:
        refused = await agent.terminal("true")
        assert (refused.is_error, "start_terminal_session" in refused.text) == (True, True)
        session = await agent.session()
        assert (await agent.terminal("echo hi", session_id=session.id)).output == "hi"


@ERAS
# promise: access-4
async def test_a_named_token_has_a_shell_of_its_own_until_it_is_revoked(served, mode):
    tokens = [served.ptyd("token", "new", name, "--unconfined") for name in ("one", "two")]
    for token in tokens:
        async with served.agent_over_http(mode, token) as agent:
            assert (await agent.terminal(f"x={token[-4:]}")).exit == 0
    for token in tokens:
        async with served.agent_over_http(mode, token) as agent:
            assert (await agent.terminal("echo $x")).output == token[-4:]
    served.ptyd("token", "revoke", "one")
    # The SDK reports a refusal in its own words, so it is requested by hand.
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for token, is_let_in in zip(tokens, (False, True), strict=True):
        async with served.http(token, **BOTH) as http:
            answer = await http.post(served.url, json=ping)
            assert (answer.status_code != 401) == is_let_in, (answer.status_code, answer.text)
    # A new token of this name finds its shell again.
    async with served.agent_over_http(mode, served.ptyd("token", "new", "one", "--unconfined")) as agent:
        assert (await agent.terminal("echo $x")).output == tokens[0][-4:]


# promise: mcp-3
async def test_a_session_outlives_the_client_that_started_it(served):
    async with served.agent_over_http() as agent:
        id = (await agent.session()).id
        assert (await agent.at(id).run("x=kept")).exit == 0
    async with served.agent_over_http() as agent:
        assert (await agent.at(id).run("echo $x")).output == "kept"


async def test_progress_comes_while_a_call_waits(served):
    told = []

    async def on_progress(*progress):
        told.append(progress)

    async with served.agent_over_http() as agent:
        session = await agent.session()
        answer = await agent.call(
            "execute_in_terminal", session_id=session.id, command="read -t 1 </dev/zero -N 1; echo done", on_progress=on_progress
        )
        assert (answer.output, len(told) >= 1) == ("done", True)


# promise: mcp-3
async def test_a_caller_without_permission_is_refused(served):
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    right = {"Authorization": f"Bearer {served.token}"} | BOTH
    async with httpx2.AsyncClient() as http:

        async def status(**headers):
            return (await http.post(served.url, content=json.dumps(hello), headers={"Content-Type": "application/json"} | headers)).status_code

        assert await status(**right) == 200
        assert await status(**right | {"Authorization": "Bearer wrong"}) == 401
        assert await status(**BOTH) == 401
        assert await status(**right | {"Origin": "https://example.com"}) == 403
        assert await status(**right | {"Host": "example.com"}) == 403
        assert await status(**right | {"Origin": "http://localhost:3000"}) == 200


# promise: mcp-3
async def test_a_wait_whose_client_goes_leaves_the_program_running(served):
    async with served.agent_over_http() as agent:
        session = await agent.session()
        await session.run("trap 'echo interrupted' INT; read -p 'go? ' x; echo $x", timeout=60)
    async with served.http(**BOTH) as http:
        call = {"name": "get_terminal_output", "arguments": {"session_id": session.id, "wait_for": "never", "timeout": 50}}
        body = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call}
        with pytest.raises(httpx2.ReadTimeout):
            await http.post(served.url, json=body, timeout=httpx2.Timeout(60, read=0.5))
    async with served.agent_over_http() as agent:
        assert (await agent.at(session.id).type("on\n")).last_line == "on"


@ERAS
# promise: limit-1
async def test_a_session_is_started_with_limits(served, mode):
    async with served.agent_over_http(mode) as agent:
        session = await agent.session(limits={"commandSeconds": 2, "openFiles": 64})
        ended = await session.run("ulimit -n; sleep 60")
        assert (ended.output.partition("\n")[0], "commandSeconds" in ended.text) == ("64", True)
        refused = await agent.call("start_terminal_session", limits={"openFiles": 3})
        assert (refused.is_error, refused.text) == (True, "limits.openFiles: 3 is not between 32 and 1048576")
        refused = await agent.call("start_terminal_session", limits={"cpu": 3})
        assert (refused.is_error, "unknown field `cpu`" in refused.text) == (True, True)
