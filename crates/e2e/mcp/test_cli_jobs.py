"""Five jobs of an agent by the command line alone, by the MCP tool and by `bash -c`: the calls, and the tokens of what they print.

The table of docs/clients.md holds these figures; `-s` prints it.
"""

import re
import subprocess

import pytest

from mcp_client import CALL_SECONDS, PTYD, REPOSITORY, free_port
from test_tokens import tokens

MODULE = "def inc(x):\n    return x\n"
TEST = "import unittest\nfrom m import inc\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertEqual(inc(1), 2)\n"
UNITTEST = "python3 -B -m unittest -q test_m"
MEND = f"sed -i 's/return x/return x + 1/' m.py && {UNITTEST}"
STEPS = "for i in 1 2 3; do echo step $i; read -t 0.3 <> <(:); done; echo DONE"


class Job:
    """One way to do jobs: each call is one that a model makes."""

    def __init__(self, workspace):
        self.workspace, self.printed = workspace, []

    def command_line(self, *words: str, stdin: str | None = None) -> str:
        """A call of ptyd's command line, as a host's shell tool shows it."""
        given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
        done = subprocess.run(
            [PTYD, *words], env=self.workspace.env, cwd=self.workspace.project, text=True, timeout=CALL_SECONDS,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **given,
        )  # fmt: skip
        code = f"Exit code {done.returncode}\n" if done.returncode else ""
        self.printed.append(code + done.stdout.rstrip("\n"))
        return self.printed[-1]

    def bash(self, line: str) -> str:
        """A call of a host's shell tool without a terminal."""
        done = subprocess.run(
            ["bash", "-c", line], env=self.workspace.env, cwd=self.workspace.project, text=True, timeout=CALL_SECONDS,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        code = f"Exit code {done.returncode}\n" if done.returncode else ""
        self.printed.append(code + done.stdout.rstrip("\n"))
        return self.printed[-1]

    async def tool(self, command: str = "", **arguments):
        """A call of the MCP tool."""
        answer = await self.workspace.agent.terminal(command, **arguments)
        self.printed.append(answer.text)
        return answer

    def exec(self, line: str, *options: str) -> str:
        """A command in the session of the job."""
        return self.command_line("exec", *options, "work", line)


async def failing_test(by: str, job: Job):
    for line, ends in ((UNITTEST, "FAILED"), (MEND, "OK")):
        if by == "command line":
            assert ends in job.exec(line)
        elif by == "MCP":
            assert ends in (await job.tool(line)).text
        else:
            assert ends in job.bash(line)


async def debugger(by: str, job: Job):
    if by == "command line":
        assert "(Pdb)" in job.command_line("send", "--wait", "work", "python3 -m pdb m.py")
        assert "42" in job.command_line("send", "--wait", "work", "p 6*7")
        assert "[ended 0]" in job.command_line("send", "--wait", "work", "q")
    elif by == "MCP":
        assert "(Pdb)" in (await job.tool("python3 -m pdb m.py")).text
        assert "42" in (await job.tool("p 6*7", is_input=True)).text
        assert (await job.tool("q", is_input=True)).exit == 0
    else:
        assert "42" in job.bash("printf 'p 6*7\nq\n' | python3 -m pdb m.py")


async def server(by: str, job: Job):
    port = free_port()
    serve, ask = f"python3 -m http.server {port} --bind 127.0.0.1", f"curl -sI 127.0.0.1:{port} | head -1"
    if by == "command line":
        job.command_line("new", "server", "--", serve)
        assert "matched" in job.command_line("wait", "server", "--until", f"listening:{port}")
        assert "200 OK" in job.exec(ask)
        job.command_line("kill", "server")
    elif by == "MCP":
        await job.tool(f"{serve} &")
        assert "200 OK" in (await job.tool(f"until {ask} | grep 200; do :; done")).text
        await job.tool("kill %1; wait")
    else:
        job.bash(f"{serve} >log 2>&1 & echo $! >pid")
        assert "200 OK" in job.bash(f"until {ask} | grep 200; do :; done")
        job.bash("kill $(cat pid)")


async def editor(by: str, job: Job):
    keys = "<Esc>Go# end<Esc>:wq<Enter>"
    if by == "command line":
        assert "return x" in job.command_line("send", "--wait", "work", "vim -u NONE m.py")
        assert "[ended 0]" in job.command_line("keys", "--wait", "work", keys)
        assert "# end" in job.exec("tail -1 m.py")
    elif by == "MCP":
        answer = await job.tool("vim -u NONE m.py")
        assert "return x" in answer.text
        [session] = re.findall(r"session (s0-\w+)", answer.text)
        typed = await job.workspace.agent.call("send_input_to_terminal", session_id=session, keys=[keys], wait_for="\\$ $")
        job.printed.append(typed.text)
        assert "# end" in (await job.tool("tail -1 m.py")).text
    else:
        job.bash("vim -u NONE -es -c 'normal Go# end' -c wq m.py")
        assert "# end" in job.bash("tail -1 m.py")


async def long_job(by: str, job: Job):
    if by == "command line":
        assert "Exit code 124" in job.exec(STEPS, "--timeout", "0.1s")
        assert "ended" in job.command_line("wait", "work")
        assert "DONE" in job.command_line("logs", "--tail", "2", "work")
    elif by == "MCP":
        answer = await job.tool(STEPS, timeout=0.1)
        assert "DONE" in (answer.text if not answer.is_running else (await job.tool("", timeout=60)).text)
    else:
        job.bash(f"{{ {STEPS}; }} >log 2>&1 & echo $! >pid")
        job.bash("tail --pid=$(cat pid) -f /dev/null")
        assert "DONE" in job.bash("tail -1 log")


JOBS = {"fix a failing test": failing_test, "a debugger": debugger, "a server, and a request": server, "vim": editor, "a long job": long_job}
WAYS = ["command line", "MCP", "bash -c"]


@pytest.mark.parametrize("name", JOBS)
# promise: cli-11
async def test_a_job_by_the_command_line_costs_the_documented_calls_and_tokens(workspace, name):
    cells = []
    for by in WAYS:
        (workspace.project / "m.py").write_text(MODULE)
        (workspace.project / "test_m.py").write_text(TEST)
        job = Job(workspace)
        if by == "command line":
            # All five share it.
            workspace.ptyd("new", "work", "--cwd", str(workspace.project), "--shell", "bash")
        await JOBS[name](by, job)
        cells.append((len(job.printed), sum(tokens(*job.printed))))
    print(f"| {name} | " + " | ".join(f"{calls} / {cost}" for calls, cost in cells) + " |")
    rows = [row.split(" | ") for row in (REPOSITORY / "docs/clients.md").read_text().splitlines()]
    [row] = [row for row in rows if row[0] == f"| {name}"]
    for (calls, cost), cell in zip(cells, row[1:], strict=True):
        documented = [int(number) for number in cell.strip(" |").split(" / ")]
        assert calls == documented[0]
        # Paths and durations differ between machines.
        assert cost <= 1.3 * documented[1] + 10
