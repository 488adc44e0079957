"""The packages that put ptyd under other agents, and what they need of the Python client. `integrations/run-host-tests.sh` runs the
hosts' own tests."""

import asyncio
import importlib.util
import json
import os
import re
import sys
import tomllib
from contextlib import asynccontextmanager

import pytest

from client_packages import PYTHON, import_python, run
from mcp_client import REPOSITORY

ptyd = import_python()
INTEGRATIONS = REPOSITORY / "integrations"
PACKAGES = sorted(path.parent.name for path in INTEGRATIONS.glob("*/pyproject.toml"))
sys.path.append(str(INTEGRATIONS / "swe-rex/src"))


def module(path):
    """A module of a package whose host is not installed here; the module needs nothing of it."""
    spec = importlib.util.spec_from_file_location(path.replace("/", "."), INTEGRATIONS / path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@asynccontextmanager
async def machine_of(served):
    """Programs and files behind a session."""
    from ptyd.machine import Machine

    async with ptyd.AsyncPtyd(served.url.removesuffix("/mcp"), served.token) as client, await client.open() as session:
        yield Machine(session)


@pytest.mark.parametrize("name", PACKAGES)
# promise: client-1
def test_a_package_names_its_differences(name):
    folder = INTEGRATIONS / name
    assert len((folder / "README.md").read_text().splitlines()) <= 45
    [source] = folder.glob("src/*")
    made = tomllib.loads((folder / "pyproject.toml").read_text())
    assert made["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [f"src/{source.name}"] and (source / "py.typed").exists()
    # The README tells each difference that the list has, in the words of the list.
    told = re.sub(r"\s+", " ", (folder / "README.md").read_text())
    for line in (folder / "differences.txt").read_text().splitlines():
        reason = re.fullmatch(r"(?:skips|fails) \S+: (.+)", line)[1]
        assert reason in told, reason


# promise: client-2
async def test_a_command_that_ends_at_once_has_its_output(served):
    async with ptyd.AsyncPtyd(served.url.removesuffix("/mcp"), served.token) as client, await client.open() as session:
        for n in range(20):
            assert (await (await session.start(f"echo {n}")).end()).output == f"{n}\n"
        assert (await session.run("echo limited", timeout=60, on_timeout="kill")).output == "limited\n"


# promise: client-2
async def test_files_go_through_a_terminal_byte_for_byte(served, tmp_path):
    every = bytes(range(256)) * 500 + b"no newline\r\n\x04\x03"
    async with machine_of(served) as machine:
        path = tmp_path / "a folder" / "it's - \\n"
        await machine.write(str(path), every)
        assert path.read_bytes() == every == await machine.read(str(path))
        assert await machine.read(await machine.temporary()) == b""
        with pytest.raises(FileNotFoundError):
            await machine.read(str(tmp_path / "nothing"))
        with pytest.raises(OSError, match="Is a directory"):
            await machine.read(str(tmp_path))


# promise: client-2
async def test_a_write_that_fails_in_its_middle_leaves_the_old_file(served, tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    real.chmod(0o750)
    link.symlink_to(real)
    async with machine_of(served) as machine:
        await machine.write(str(link), b"newer")
        assert (real.read_bytes(), real.stat().st_mode & 0o777, link.is_symlink()) == (b"newer", 0o750, True)
        # As on a full disk: the beginning is written, and then an error comes.
        await machine.must('cat() { command head -c 3 "$1"; return 1; }')
        for path in real, tmp_path / "new":
            with pytest.raises(ptyd.PtydError):
                await machine.write(str(path), b"newest")
        with pytest.raises(ptyd.PtydError, match="directory"):
            await machine.write(str(tmp_path), b"newest")
    assert real.read_bytes() == b"newer" and sorted(tmp_path.iterdir()) == [link, real]


# promise: client-2
async def test_a_program_has_two_streams_and_its_own_environment(served):
    async with machine_of(served) as machine:
        result, output, errors = await machine.execute(["sh", "-c", "printf '\\r\\n\\033'; echo told >&2; exit 7"])
        assert (result.code, output, errors) == (7, b"\r\n\x1b", b"told\n")
        result, output, errors = await machine.execute(["sh", "-c", "echo 1; echo 2 >&2; cat"], merged=True)
        assert (result.code, output, errors) == (0, b"1\n2\n", b"")
        result, output, _ = await machine.execute(["/usr/bin/env"], env={"ONLY": "this one"})
        assert output == b"ONLY=this one\n"
        # The shell is gone, and with it the code.
        with pytest.raises(ptyd.PtydError):
            await machine.execute(["sh", "-c", "kill -9 $PPID"])


def prompts(screen: str) -> list[dict]:
    """The facts in the prompts of a screen, as OpenHands reads them."""
    return [json.loads(text) for text in re.findall(r"^###PS1JSON###\n(.*?)\n###PS1END###", screen, re.DOTALL | re.MULTILINE)]


# promise: client-2
async def test_the_terminal_of_openhands_shows_a_prompt_exactly_when_a_command_has_ended(served, tmp_path):
    only = ["--strict", "--follow-imports=silent", "src/ptyd_openhands/_terminal.py"]
    run(sys.executable, "-m", "mypy", "--cache-dir", tmp_path, *only, cwd=INTEGRATIONS / "openhands", MYPYPATH=str(PYTHON / "src"))
    url, token = served.url.removesuffix("/mcp"), served.token

    def drive():
        terminal = module("openhands/src/ptyd_openhands/_terminal.py").Terminal(str(served.project), None, {}, url, token)
        try:
            shown = []

            def ended() -> list[dict]:
                """Both prompts, once there are two."""
                while terminal.is_running:
                    pass
                shown.append(terminal.read())
                found = prompts(shown[-1])
                terminal.clear()
                assert not terminal.is_running
                return found

            assert [one["exit_code"] for one in prompts(terminal.read())] == [""]
            terminal.send("read -p 'Name? ' n; echo hello $n; (exit 7)", enter=True)
            while "Name?" not in terminal.read():
                assert terminal.is_running and len(prompts(terminal.read())) == 1
            terminal.send("Ada", enter=True)
            assert [one["exit_code"] for one in ended()] == ["", "7"] and "hello Ada" in shown[-1]
            # A program's output is not a prompt.
            terminal.send("cd /; printf '###PS1JSON###\\n{\"exit_code\": \"0\"}\\n###PS1END###\\n'; (exit 3)", enter=True)
            assert [(one["exit_code"], one["working_dir"]) for one in ended()] == [("7", str(served.project)), ("3", "/")]
            # More lines follow, or C-c, and nothing runs twice.
            terminal.send(f"cat <<end >>{served.project}/lines", enter=True)
            assert terminal.is_running
            terminal.send("once", enter=True)
            assert terminal.is_running
            terminal.send("end", enter=True)
            assert [one["exit_code"] for one in ended()] == ["3", "0"]
            terminal.send("echo 'half", enter=True)
            assert terminal.is_running
            terminal.press("C-c")
            assert [one["exit_code"] for one in ended()] == ["0", "130"]
            # Nobody knows the code of a shell's own end, and the next command says that its shell is new.
            terminal.send("kill -9 $$", enter=True)
            assert [one["exit_code"] for one in ended()] == ["130", ""]
            terminal.send("pwd", enter=True)
            assert [one["exit_code"] for one in ended()] == ["", "0"]
            assert f"This is a new one in {served.project}.]\n{served.project}\n" in shown[-1]
        finally:
            terminal.close()

    await asyncio.to_thread(drive)
    assert (served.project / "lines").read_text() == "once\n"


# promise: client-2
async def test_a_runtime_of_swe_rex_tells_codes_and_leaves_no_session(served, tmp_path):
    run(sys.executable, "-m", "mypy", "--cache-dir", tmp_path / "cache", cwd=INTEGRATIONS / "swe-rex", MYPYPATH=str(PYTHON / "src"))
    from ptyd_swerex import PtydRuntime
    from swerex.exceptions import BashIncorrectSyntaxError, CommandTimeoutError, NoExitCodeError, NonZeroExitCodeError, SwerexException
    from swerex.runtime.abstract import BashAction, BashInterruptAction, Command, CreateBashSessionRequest

    os.mkfifo(tmp_path / "fifo")
    url = served.url.removesuffix("/mcp")
    runtime = PtydRuntime(url, served.token)
    assert await runtime.is_alive() and not await PtydRuntime(url, "wrong").is_alive()
    await runtime.create_session(CreateBashSessionRequest())
    ran = await runtime.run_in_session(BashAction(command="cd /; echo hello; (exit 3)", check="silent"))
    assert (ran.output, ran.exit_code) == ("hello\n", 3)
    for command, error in ("false", NonZeroExitCodeError), ("(a", BashIncorrectSyntaxError):
        with pytest.raises(error):
            await runtime.run_in_session(BashAction(command=command))
    with pytest.raises(CommandTimeoutError):
        await runtime.run_in_session(BashAction(command="sh -c \"trap '' INT; read line\"", timeout=0.1))
    interrupted = await runtime.run_in_session(BashInterruptAction(timeout=0.1))
    assert interrupted.exit_code == 137 and "killed" in interrupted.failure_reason
    asked = await runtime.run_in_session(BashAction(command="read -p 'Name? ' n; echo $n", is_interactive_command=True, expect=["N.me"]))
    assert (asked.expect_string, asked.exit_code) == ("N.me", None)
    told = await runtime.run_in_session(BashAction(command="Ada", is_interactive_quit=True))
    assert told.exit_code == 0 and told.output.endswith("Ada\n")
    # A command that outlasts its timeout ends later, and the session is free again, whatever asks next.
    free = BashAction(command="echo free"), BashAction(command="echo free", is_interactive_command=True), BashInterruptAction()
    for action, expected in zip(free, [("free\n", 0), ("free\n", 0), ("", 5)], strict=True):
        with pytest.raises(CommandTimeoutError):
            await runtime.run_in_session(BashAction(command=f"echo >{tmp_path}/fifo; (exit 5)", timeout=0.1))
        with pytest.raises(SwerexException, match="still runs"):
            await runtime.run_in_session(BashAction(command="echo refused"))
        (tmp_path / "fifo").read_text()
        await runtime._found("default").session.wait_end()
        ran = await runtime.run_in_session(action)
        assert (ran.output, ran.exit_code) == expected
    executed = await runtime.execute(Command(command=["sh", "-c", "pwd; echo no >&2; exit 4"], cwd="/"))
    assert (executed.stdout, executed.stderr, executed.exit_code) == ("/\n", "no\n", 4)
    with pytest.raises(NoExitCodeError):
        await runtime.run_in_session(BashAction(command="kill -9 $$"))
    await runtime.close()
    async with ptyd.AsyncPtyd(url, served.token) as client:
        assert await client.sessions() == []
