"""The pages of the documentation: their blocks, and a machine on which the blocks of one page run in their order."""

import asyncio
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from mcp_client import CALL_SECONDS, PTYD, REPOSITORY

PAGES = ["README.md", "CONTRIBUTING.md", *sorted(f"docs/{page.name}" for page in (REPOSITORY / "docs").glob("*.md"))]

# The text between two answers in the output of a script.
_MARK = "\036"
_FENCED = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
# Commands that go on until somebody ends them.
_WAITS = re.compile(r"ptyd serve\b|.*--follow\b")

# Programs of others, as far as the pages use them. A client and ssh run the command that they get, which has to be an MCP server.
# pkill ends only processes of its own HOME, and complains if there are none. A second takes a fifth of itself, so that the loop of
# the README ends within the time that the README gives it, on any machine.
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}}
_INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO})
_TALK = f"""printf '%s\\n' '{_INITIALIZE}' | "$@" | grep -q serverInfo"""
_PKILL = """
signal=$1
shift
ended=
for pid in $(pgrep "$@"); do
  if [ "$pid" != $$ ] && grep -sqz "^HOME=$HOME$" "/proc/$pid/environ"; then kill "$signal" "$pid" && ended=1; fi
done
[ "$ended" ] || echo nothing was killed"""
_PROGRAMS = {
    "claude": f'while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done; [ $# -gt 0 ] || exit 0; shift\n{_TALK}',
    "ssh": f"shift\n{_TALK}",
    "xdg-open": 'exec curl -sf "$1"',
    "pkill": _PKILL,
    "sleep": '[ "$1" = 1 ] && set -- 0.2; exec /bin/sleep "$@"',
}


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: str
    language: str
    text: str

    @property
    def first_line(self) -> str:
        """The line that stands for the block in tables."""
        return self.text.partition("\n")[0]

    @property
    def commands(self) -> list[tuple[str, str | None]]:
        """The commands, each with the output that the page shows, if it shows any."""
        if self.language == "sh":
            return [(line, None) for line in self.text.splitlines() if line]
        shown = re.findall(r"^\$ (.*)\n?((?:(?!\$ ).*\n?)*)", self.text, re.MULTILINE)
        return [(command, output) for command, output in shown]


def text_of(page: str) -> str:
    """The whole page."""
    return (REPOSITORY / page).read_text()


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page in their order."""
    return [Block(page, language, text.removesuffix("\n")) for language, text in _FENCED.findall(text_of(page))]


def prose_of(page: str) -> str:
    """A page without its blocks."""
    return _FENCED.sub("", text_of(page))


def spans_of(text: str) -> list[str]:
    """The texts between backticks."""
    spans = re.findall(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", text, re.DOTALL)
    return [re.sub(r"\s+", " ", span).strip().replace("\\|", "|") for _, span in spans]


def shape_of(text: str) -> str:
    """A text without what differs from run to run: ids, times, and the names of this machine."""
    for pattern, same in (
        (r"\b(s0|a)-[a-z0-9]{10}\b", r"\1-…"),
        (r"(?<=· )(pid|user|host) [^ ·\]]+", r"\1 …"),
        (r"\(\d+ s\)", "(… s)"),
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "…Z"),
        (r" +$", ""),
    ):
        text = re.sub(pattern, same, text, flags=re.MULTILINE)
    return text.strip("\n")


def put_programs(folder: Path) -> None:
    """Puts ptyd and the programs of others into a folder. ptyd is not a symbolic link: the README looks for `ptyd serve` in
    command lines, where a server has the name of its file."""
    try:
        os.link(PTYD, folder / "ptyd")
    except OSError:
        shutil.copy2(PTYD, folder / "ptyd")
    for name, script in _PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)


def _takes_interrupts() -> None:
    """Lets C-c end a program, also if the tests run in the background of a shell that ignores it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Page:
    """A page whose blocks run one after the other, in a HOME, a state directory and a server of its own."""

    def __init__(self, name: str, machine, programs: Path, not_run: dict[str, str]):
        self.name, self.machine, self.not_run = name, machine, not_run
        self.blocks = blocks_of(name)
        # Texts of the page, each with its replacement on this machine.
        self.replaced: dict[str, str] = {}
        self.serving: subprocess.Popen | None = None
        # The pages mean the default directories.
        for variable in "PTYD_STATE_DIR", "PTYD_RUNTIME_DIR":
            del machine.env[variable]
        machine.env |= {"PATH": f"{programs}:{machine.env['PATH']}", "PTYD_LISTEN": "127.0.0.1:0"}
        machine.state = machine.home / ".local/state/ptyd"
        self.home = machine.home
        self.config = machine.home / ".config/ptyd"
        self.config.mkdir(parents=True)
        (machine.home / ".bashrc").write_text("PS1='ada@box:\\w$ '\n")

    # ---- what the page has ----

    def next(self, language: str) -> Block:
        """Takes the next block."""
        assert self.blocks, f"{self.name} has no further block"
        block = self.blocks.pop(0)
        assert block.language == language, f"{self.name}: {block.first_line!r} is {block.language!r}, not {language!r}"
        return block

    def leave(self, language: str) -> None:
        """Leaves the next block out, for a reason that the table gives."""
        block = self.next(language)
        assert block.first_line in self.not_run, f"{self.name}: {block.first_line!r} is neither run nor in the table"

    async def run(self, language: str = "sh") -> list[str]:
        """Runs the commands of the next block, and gives their outputs. Each prints what the page shows, and exits with the code
        that its comment names, else with 0."""
        outputs, together = [], []
        for command, shown in self.next(language).commands:
            if command in self.not_run:
                continue
            if not _WAITS.match(command):
                together.append((command, shown))
                continue
            outputs += self._run(together)
            together = []
            outputs.append(await self._wait(self.here(command)))
        return outputs + self._run(together)

    def toml(self, name: str) -> str:
        """Makes the next block a configuration file of this name, which the binary reads, and gives its text."""
        text = self.here(self.next("toml").text)
        # Settings without a table are those of a profile.
        if not text.startswith("[") and name == "config.toml":
            text = f"[profiles.default]\n{text}"
        (self.config / name).write_text(f"{text}\n")
        self.ptyd(*(["config", "show"] if name == "config.toml" else ["policy", "check"]))
        return text

    # ---- what a test adds ----

    def ptyd(self, *words: str, stdin: str = "", code: int = 0) -> str:
        """Runs ptyd, and gives what it prints."""
        given = {"input": stdin} if stdin else {"stdin": subprocess.DEVNULL}
        place = {"env": self.machine.env, "cwd": self.home, "text": True}
        done = subprocess.run(["ptyd", *words], capture_output=True, timeout=CALL_SECONDS, **place, **given)
        assert done.returncode == code, f"ptyd {' '.join(words)}: {done.returncode}, not {code}: {done.stderr}"
        return done.stdout.strip()

    @property
    def address(self) -> str:
        """Where the server listens: `http://127.0.0.1:PORT`."""
        return f"http://{(self.machine.state / 'listen').read_text().strip().removeprefix('http://')}"

    def ask(self, route: str, body: dict, token: str | None = None) -> tuple[int, dict]:
        """Posts JSON, and gives the status and the JSON of the answer."""
        token = token or (self.machine.state / "token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.address + route, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    async def end(self) -> None:
        """Ends the sessions and the server."""
        if self.machine.server() is not None:
            self.ptyd("kill", "--all", "--force")
        await self._end_server()

    # ---- how ----

    def here(self, text: str) -> str:
        """A text of the page with its replacements."""
        for there, here in self.replaced.items():
            text = text.replace(there, here)
        return text

    def _start(self, text: str, **options) -> subprocess.Popen:
        """Starts a script. Its text is not in its command line, where pkill would find it."""
        with tempfile.NamedTemporaryFile("w", dir=self.machine.root, delete=False) as script:
            script.write(text)
        env, cwd = self.machine.env, self.home
        return subprocess.Popen(["bash", script.name], env=env, cwd=cwd, stdin=subprocess.DEVNULL, text=True, **options)

    def _run(self, commands: list[tuple[str, str | None]]) -> list[str]:
        """Runs commands in one shell."""
        if not commands:
            return []
        lines = [f"{self.here(command)}\nprintf '{_MARK}%s{_MARK}' $?\n" for command, _ in commands]
        # A server that begins here would keep a pipe open.
        with tempfile.TemporaryFile("w+", dir=self.machine.root) as printed:
            self._start("".join(lines), stdout=printed, stderr=printed).wait(CALL_SECONDS)
            printed.seek(0)
            parts = printed.read().split(_MARK)
        outputs, codes = parts[:-1:2], parts[1::2]
        for (command, shown), output, code in zip(commands, outputs, codes, strict=True):
            told = re.search(r" # .*exits with (\d+)", command)
            assert code == (told[1] if told else "0"), f"{self.name}: {command!r} exits with {code}: {output}"
            if shown is not None:
                assert shape_of(output) == shape_of(self.here(shown)), f"{self.name}: {command!r} printed {output}"
        return outputs

    async def _wait(self, command: str) -> str:
        """Starts a command that goes on, waits until it prints, and ends it. A server serves until the next one or the end."""
        is_server = command.startswith("ptyd serve")
        if is_server:
            await self._end_server()
        process = self._start(command, stdout=subprocess.PIPE, start_new_session=True, preexec_fn=_takes_interrupts)
        if is_server:
            self.serving = process
            line = process.stdout.readline()
            assert line, f"{self.name}: {command!r} does not listen"
            return line
        try:
            # Each of these commands adds lines to the log, of which the program prints those that come after its start.
            async with asyncio.timeout(CALL_SECONDS):
                while not select.select([process.stdout], [], [], 0)[0]:
                    await asyncio.to_thread(self.ptyd, "run", "true")
            # The log has no end, and the output of a session has one.
            is_log = command.startswith("ptyd audit")
            if is_log:
                os.killpg(process.pid, signal.SIGINT)
            else:
                self.ptyd("kill", "--all")
            output = process.communicate(timeout=CALL_SECONDS)[0]
            code = process.returncode
            assert code == (-signal.SIGINT if is_log else 0), f"{self.name}: {command!r} exits with {code}: {output}"
            return output
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()

    async def _end_server(self) -> None:
        """Ends the server as the pages say, by C-c if a command of the page started it."""
        if self.serving is None:
            if self.machine.server() is not None:
                await self.machine.kill_server(signal.SIGTERM)
            return
        os.killpg(self.serving.pid, signal.SIGINT)
        self.serving.communicate(timeout=CALL_SECONDS)
        code, self.serving = self.serving.returncode, None
        assert code == 0, f"{self.name}: C-c ends the server with {code}"
