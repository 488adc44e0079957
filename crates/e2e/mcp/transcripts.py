"""Whole tasks as a model does them: each call is one that the answer before asks for, and each is counted."""

import asyncio
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from mcp_client import Agent, Answer

LIB = '''\
//! Sums.

/// The sum of two numbers.
pub fn sum(a: i64, b: i64) -> i64 {
\ta - b
}

#[cfg(test)]
mod tests {
\t#[test]
\tfn two_and_two_are_four() {
\t\tassert_eq!(super::sum(2, 2), 4, "sums \\"add\\" up: $HOME !! `id`");
\t}
}
'''
MANIFEST = '[package]\nname = "sums"\nversion = "0.1.0"\nedition = "2021"\n'


@dataclass
class Transcript:
    """The calls of one task, and their answers."""

    agent: Agent
    answers: list[Answer] = field(default_factory=list)
    # Calls that only look whether something has happened.
    polls: int = 0

    async def terminal(self, command: str = "", /, **arguments) -> Answer:
        """A call of the one-tool shell."""
        self.answers.append(await self.agent.terminal(command, **arguments))
        return self.answers[-1]

    async def run(self, command: str, /, **arguments) -> Answer:
        """A command to its end: looks while it goes on, and pages on where a pager asks."""
        answer = await self.terminal(command, **arguments)
        while answer.is_running:
            if answer.wants or ":" in answer.last_line[:1] or "(END)" in answer.text:
                answer = await self.terminal("q" if "(END)" in answer.text else " ", is_input=True)
            else:
                self.polls += 1
                answer = await self.terminal("")
        return answer

    async def keys(self, session: str, **arguments) -> Answer:
        """Keys or text for the program of a session."""
        self.answers.append(await self.agent.call("send_input_to_terminal", session_id=session, **arguments))
        return self.answers[-1]


def toolchain(workspace):
    """Where this machine's Rust is; the home of the test has none."""
    real = Path(os.environ.get("PTYD_REAL_HOME") or os.path.expanduser("~"))
    homes = {name: os.environ.get(name) or str(real / folder) for name, folder in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")]}
    rust = {name: home for name, home in homes.items() if Path(home).is_dir()}
    cargo = str(Path(shutil.which("cargo")).parent)
    return rust | {
        "PATH": f"{cargo}:{workspace.env['PATH']}",
        "CARGO_TARGET_DIR": str(workspace.root / "target"),
        "CARGO_NET_OFFLINE": "true",
        "CARGO_TERM_COLOR": "always",
        "TERM": "xterm-256color",
    }


async def look_around(task: Transcript, workspace):
    """Five small commands."""
    (workspace.project / "notes.txt").write_text("one\ntwo\nthree\n")
    for command in ("pwd", "ls -la", "cat notes.txt", "uname -s", "grep -n two notes.txt"):
        await task.run(command)


async def git(task: Transcript, workspace):
    """A log of 30 commits and a diff of 800 lines, both read to their ends."""
    lines = [f"line {number} of the file that changes\n" for number in range(400)]
    (workspace.project / "f.txt").write_text("".join(lines))
    who = "git -c user.name=Ada -c user.email=ada@example.org"
    prepare = f"git init -q && git add f.txt && for i in $(seq 30); do {who} commit -q --allow-empty -m \"change $i\"; done"
    await workspace.agent.terminal(prepare, timeout=60)
    (workspace.project / "f.txt").write_text("".join(line.replace("changes", "changed") for line in lines))
    await task.run("git log", timeout=60)
    await task.run("git diff", timeout=60)


async def cargo(task: Transcript, workspace):
    """A failing test of a Rust library is read, mended and passes."""
    exports = " ".join(f"{name}='{value}'" for name, value in toolchain(workspace).items())
    await workspace.agent.terminal(f"export {exports}; mkdir src")
    for name, text in {"Cargo.toml": MANIFEST, "src/lib.rs": LIB}.items():
        assert (await workspace.agent.terminal(f"cat > {name} <<'EOF'\n{text}EOF")).exit == 0
    failed = await task.run("cargo test --lib", timeout=60)
    place = re.search(r"panicked at src/lib\.rs:(\d+):\d+:\n(.*)\n\s+left: 0\n\s+right: 4", failed.output)
    assert place and place.groups() == ("12", 'assertion `left == right` failed: sums "add" up: $HOME !! `id`'), failed.output
    assert (failed.exit, "\x1b" in failed.output) == (101, False)
    await task.run("sed -i 's/a - b/a + b/' src/lib.rs")
    assert (await task.run("cargo test --lib", timeout=60)).exit == 0


async def npm(task: Transcript, workspace):
    """The questions of `npm init`, each answered with its default."""
    answer = await task.terminal("npm init")
    while answer.is_running:
        if not answer.wants:
            task.polls += 1
        answer = await task.terminal("", is_input=bool(answer.wants))
    assert (workspace.project / "package.json").exists()


async def server(task: Transcript, workspace):
    """A server is started, asked once and stopped."""
    program = "import http.server as h; s=h.HTTPServer(('127.0.0.1',0),h.SimpleHTTPRequestHandler); s.serve_forever()"
    (workspace.project / "serve.py").write_text(program)
    await task.terminal("python3 serve.py")
    assert (await task.terminal("C-c")).exit == 130


async def repl(task: Transcript, workspace):
    """26 lines of python's REPL."""
    await task.terminal("python3 -q")
    for number in range(26):
        answer = await task.terminal(f"{number} * {number}", is_input=True)
        assert str(number * number) in answer.output
    await task.terminal("exit()", is_input=True)


async def vim(task: Transcript, workspace):
    """Nine keys in an editor."""
    lines = [f"def function_number_{number}(argument): return argument + {number}\n" for number in range(200)]
    (workspace.project / "v.py").write_text("".join(lines))
    session = await workspace.session()
    await session.run("vim -u NONE v.py", wait_for="function_number_38")
    typed = [{"input": "10G"}, {"input": "dd"}, {"keys": ["o"]}, {"input": "x = 1"}, {"keys": ["Escape"]}, {"keys": ["u"]}]
    for one in [*typed, *({"keys": [keys]} for keys in ("/number_50<Enter>", "n", ":w<Enter>"))]:
        await task.keys(session.id, **one)
    await session.press(":q<Enter>", wait_for=r"\$ $")
    assert len((workspace.project / "v.py").read_text().splitlines()) == 199


async def batch(task: Transcript, workspace):
    """Four commands in one turn."""
    await workspace.agent.terminal("true")
    for answer in await asyncio.gather(*(workspace.agent.terminal(f"echo {number}") for number in range(4))):
        task.answers.append(answer)
    for number, answer in enumerate(list(task.answers)):
        if answer.is_error:
            await task.run(f"echo {number}")


TASKS = {
    "look around, 5 commands": look_around,
    "git log and git diff to their ends": git,
    "cargo: test, mend, test": cargo,
    "npm init": npm,
    "start and stop a server": server,
    "26 lines of python": repl,
    "9 keys in vim": vim,
    "4 commands in one turn": batch,
}
