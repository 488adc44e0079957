"""The demands of terminal-mcp.md on the one-tool shell: its own tests (§3.4) and the flows of its part 4.

Where a figure of the requirement is not the shell's truth, the truth is asserted; docs/deviations.md says why.
"""

import hashlib
import os
import re
import socket

import pytest
from mcp_client import IS_FULL, at_least


@pytest.mark.not_confined("the case has profiles of its own")
async def test_every_shell_of_an_agent_is_started_by_a_profile(workspace):
    workspace.configure(
        "[profiles.default]\nenv = { FROM = 'default' }\nstartup = ['false']\n[profiles.web]\nenv = { FROM = 'web' }\ncwd = '/usr'\n"
    )
    first = await workspace.terminal("echo $FROM")
    assert (first.output, first.fact("cwd")) == ("default", str(workspace.project))
    assert 'startup failed: "false": it exited with 1' in first.facts
    again = await workspace.terminal("", reset=True)
    assert 'startup failed: "false": it exited with 1' in again.facts
    web = await workspace.session(profile="web")
    assert (await web.run("echo $FROM; pwd")).output == "web\n/usr"


async def test_a_virtual_environment_stays_and_its_python_is_reported(workspace):
    await workspace.terminal("python3 -m venv --without-pip .venv", timeout=60)
    entered = await workspace.terminal("source .venv/bin/activate")
    python = str(workspace.project / ".venv/bin/python")
    assert (entered.exit, entered.fact("python")) == (0, python)
    assert (await workspace.terminal("which python")).output == python


# promise: wait-1
async def test_a_timeout_ends_the_wait_and_says_still_running(workspace):
    with at_least(1):
        late = await workspace.terminal("sleep 60", timeout=1)
    # Otherwise the silence of 30 s would have ended it, and the answer would say so.
    assert (late.is_running, late.exit, "timeout" in late.facts) == (True, None, True)


async def test_a_silent_command_is_waited_for_again_interrupted_or_given_more_time(workspace):
    workspace.gate()
    begun = await workspace.terminal("echo begun; cat gate; echo over", wait_for="begun", timeout=60)
    assert (begun.is_running, begun.fact("matched")) == (True, '"begun"')
    looked = await workspace.terminal("", timeout=0.2)
    assert (looked.is_running, "timeout" in looked.facts) == (True, True)
    await workspace.open_gate()
    await workspace.agent.at(begun.session_id).idle()
    over = await workspace.terminal("", timeout=60)
    assert (over.output, over.facts[:2]) == ("opened\nover", ["idle", "last exit 0"])


@pytest.mark.skipif(not IS_FULL, reason="the soft time-out is 30 s: PTYD_TEST_FULL=1")
async def test_thirty_silent_seconds_end_the_wait_and_say_so(workspace):
    quiet = await workspace.terminal("sleep 60")
    assert (quiet.is_running, "no new output for 30s" in quiet.facts) == (True, True)


# promise: wait-1
async def test_the_silence_that_ends_a_wait_can_be_chosen(machine):
    async with machine.another_agent(PTYD_SOFT_TIMEOUT="0.5") as agent:
        machine.agent = agent
        quiet = await agent.terminal("sleep 60")
        assert (quiet.is_running, "no new output for 0.5s" in quiet.facts) == (True, True), quiet.text
        await machine.end_sessions()


# promise: signal-3
async def test_a_stop_leaves_a_job_that_continues_later(workspace):
    await workspace.terminal("sleep 60", timeout=0.2)
    stopped = await workspace.terminal("C-z")
    assert stopped.facts[:2] == ["exit 148", "TSTP"]
    assert re.search(r"\[1\]\+\s+Stopped\s+sleep 60", (await workspace.terminal("jobs")).output)
    assert (await workspace.terminal("fg", timeout=0.2)).is_running
    assert (await workspace.terminal("C-c")).exit == 130


@pytest.mark.parametrize("key", ["C-c", "C-z", "C-d"])
@pytest.mark.not_confined("a sandbox numbers its processes itself", "sandbox", "container")
async def test_a_key_for_an_idle_shell_is_not_sent_and_the_shell_lives(workspace, key):
    first = await workspace.terminal("true")
    answer = await workspace.terminal(key)
    assert (answer.is_error, answer.facts[0]) == (False, "nothing runs; nothing was sent")
    assert (await workspace.terminal("echo $$")).output == first.fact("pid")


async def test_reset_cannot_be_combined_with_is_input(workspace):
    await workspace.terminal("export KEPT=yes")
    refused = await workspace.terminal("x", reset=True, is_input=True)
    assert (refused.is_error, "reset and is_input" in refused.text) == (True, True)
    assert (await workspace.terminal("echo $KEPT")).output == "yes"


async def test_a_reset_kills_and_names_the_running_program_and_runs_the_command_afresh(workspace):
    old = await workspace.terminal("export TEST_VAR=hello; cd /tmp; sleep 4321", timeout=0.2)
    reset = await workspace.terminal("echo \"<$TEST_VAR>\"; pwd", reset=True)
    assert (reset.output, reset.exit) == (f"<>\n{workspace.project}", 0)
    assert "sleep 4321" in reset.fact("killed") and "terminal reset: all previous state is lost" in reset.facts, reset.text
    assert reset.session_id not in (None, old.session_id) and "has ended" not in reset.text, reset.text
    assert workspace.processes(old.session_id) == {}


async def test_input_without_a_program_is_an_error(workspace):
    refused = await workspace.terminal("yes", is_input=True)
    assert (refused.is_error, "no program that could read input runs" in refused.text) == (True, True)


@pytest.mark.not_confined("the directory cannot be a workspace")
async def test_the_shell_starts_where_its_client_is_with_its_environment_and_mask(machine):
    elsewhere = machine.root / "else where"
    elsewhere.mkdir()
    before = os.umask(0o027)
    try:
        async with machine.another_agent() as agent, machine.another_agent(cwd=elsewhere, COLOUR="blue") as other:
            machine.agent = agent
            assert (await agent.terminal("pwd; echo ${COLOUR-none}")).output == f"{machine.project}\nnone"
            assert (await other.terminal("pwd; echo $COLOUR; umask")).output == f"{elsewhere}\nblue\n0027"
            await machine.end_sessions()
    finally:
        os.umask(before)


@pytest.mark.not_confined("a sandbox numbers its processes itself", "sandbox", "container")
async def test_the_metadata_comes_whole_at_first_and_later_only_what_changed(workspace):
    first = await workspace.terminal("true")
    names = ["session", "pid", "user", "host", "cwd", "python"]
    told = {name: first.fact(name) for name in names}
    python = (await workspace.terminal("command -v python || command -v python3")).output
    assert told | {"session": "", "pid": ""} == {
        "session": "",
        "pid": "",
        "user": "root" if os.getuid() == 0 else told["user"],
        "host": socket.gethostname(),
        "cwd": str(workspace.project),
        "python": python,
    }
    assert (await workspace.terminal("echo $$")).output == told["pid"]
    assert (await workspace.terminal("true")).facts == ["exit 0"]
    assert (await workspace.terminal("cd /")).facts == ["exit 0", "cwd /"]
    again = await workspace.agent.at(told["session"]).read()
    assert {name: again.fact(name) for name in names} == dict.fromkeys(names)
    # Another client of the same user has been told nothing yet.
    async with workspace.another_agent() as other:
        whole = await other.at(told["session"]).read()
    assert {name: whole.fact(name) for name in names} == told | {"cwd": "/"}


@pytest.mark.parametrize("tier", ["sandbox", "process"])
async def test_a_confined_shell_begins_again_only_in_a_directory_that_it_could_change(workspace, tier):
    workspace.confine(tier)
    await workspace.terminal("mkdir -p one; ln -s /root one/link")
    # A hidden directory cannot be entered, and the shell's own word for it is not believed.
    for command, kept in [("cd one", "one"), ("cd /usr", ""), (f"PWD={workspace.home}", ""), (f"PWD={workspace.project}/one/link", "")]:
        await workspace.terminal(command)
        await workspace.terminal("exit 1")
        fresh = await workspace.terminal("pwd -P")
        assert fresh.output == str(workspace.project / kept), fresh.text


@pytest.mark.not_confined("the log file is hidden, and the answer says so")
async def test_without_the_reading_tool_the_cut_names_the_log_file_and_the_bytes(machine):
    async with machine.another_agent("--tools", "terminal") as agent:
        machine.agent = agent
        [tool] = (await agent.client.list_tools()).tools
        assert "start_terminal_session" not in tool.description, tool.description
        cut = await agent.terminal("seq 1 20000")
        first, end, file = re.search(r"; bytes (\d+)–(\d+) of (\S+)\]\n", cut.text).groups()
        read = await agent.terminal(f"tail -c +{int(first) + 1} {file} | head -c {int(end) - int(first)} | sha256sum")
        with open(file, "rb") as journal:
            missing = journal.read()[int(first) : int(end)]
        assert read.output == hashlib.sha256(missing).hexdigest() + "  -"
        await agent.terminal("exit")


async def test_the_directory_is_the_shells_own_while_a_command_runs(workspace):
    (workspace.project / "deep").mkdir()
    workspace.gate()
    await workspace.terminal("true")
    running = await workspace.terminal("cd deep; echo moved; cat ../gate", wait_for="moved")
    assert (running.is_running, running.fact("cwd")) == (True, str(workspace.project / "deep"))
    [listed] = (await workspace.agent.call("list_terminal_sessions")).structured["sessions"]
    assert listed["cwd"] == str(workspace.project / "deep")
    await workspace.open_gate("x\n")
    assert (await workspace.terminal("", timeout=60)).fact("cwd") is None
