"""The plugin for Claude Code: its server, its skill, and the monitor that tells when a session needs somebody."""

import asyncio
import json
import os
import signal
import subprocess

import pytest

from mcp_client import CALL_SECONDS, PTYD, REPOSITORY

pytestmark = pytest.mark.not_confined("the plugin confines nothing")

PLUGIN = json.loads((REPOSITORY / ".claude-plugin/plugin.json").read_text())


# promise: cli-14
async def test_the_monitor_prints_a_line_when_a_session_needs_somebody(machine):
    programs = machine.root / "bin"
    programs.mkdir()
    (programs / "ptyd").symlink_to(PTYD)
    # The pause between two tries, after which the test goes on.
    tried = machine.gate("tried")
    (programs / "sleep").write_text(f"#!/bin/sh\n[ $1 = 5 ] && echo tried >'{tried}'\n")
    (programs / "sleep").chmod(0o755)
    env = machine.env | {"PATH": f"{programs}:{machine.env['PATH']}"}
    [monitor] = PLUGIN["experimental"]["monitors"]
    # A pipe without a reader would hold up a try.
    reading = os.open(tried, os.O_RDWR)
    process = await asyncio.create_subprocess_exec("sh", "-c", monitor["command"], env=env, stdout=-1, start_new_session=True)
    try:
        # No server runs yet, and the monitor starts none.
        assert await asyncio.to_thread(os.read, reading, len(b"tried\n")) == b"tried\n"
        assert machine.server() is None
        async with machine.another_agent("--detach", "0") as agent, asyncio.timeout(CALL_SECONDS):
            session = await agent.session(name="ask", shell="bash")
            line = asyncio.ensure_future(process.stdout.readline())
            while not line.done():
                assert (await session.run("read -p 'Deploy? ' answer")).wants == "input"
                await asyncio.wait({line}, timeout=0.1)
                await session.type("no\n")
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    finally:
        os.close(reading)
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    assert line.result().decode().split()[1:3] == ["attention", "ask"]


# promise: cli-14
async def test_the_plugin_starts_the_server_of_mcp_and_has_the_skill(machine):
    version = subprocess.run([PTYD, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert PLUGIN["version"] == version
    [listed] = json.loads((REPOSITORY / ".claude-plugin/marketplace.json").read_text())["plugins"]
    assert (listed["name"], listed["source"]) == (PLUGIN["name"], "./")
    [(name, server)] = PLUGIN["mcpServers"].items()
    assert (name, server["command"]) == ("ptyd", "ptyd")
    async with machine.lines("--detach", "0", program=(PTYD,)) as lines:
        assert server["args"] == ["mcp"]
        assert (await lines.initialize())["result"]["serverInfo"]["name"] == "ptyd"
    # Claude Code looks for skills beside the manifest's folder.
    assert machine.ptyd("skill") == (REPOSITORY / "skills/ptyd/SKILL.md").read_text().strip()
