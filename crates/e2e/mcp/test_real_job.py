"""A day's work through the door: a Rust project from nothing, npm's questions, a served folder.

These are not conditions but jobs: each does with the tools what an agent does, and looks at the result on disk.
"""

import json
import os
import re
import shutil
import textwrap
from pathlib import Path

import pytest

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


@pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not in the PATH: install Rust (rustup.rs)")
async def test_a_failing_test_is_written_read_mended_and_passes(workspace):
    for name, value in toolchain(workspace).items():
        await workspace.terminal(f"export {name}='{value}'")
    await workspace.terminal("mkdir -p sums/src && cd sums")
    assert (await workspace.terminal(f"cat > Cargo.toml <<'EOF'\n{MANIFEST}EOF")).exit == 0
    assert (await workspace.terminal(f"cat > src/lib.rs <<'EOF'\n{LIB}EOF")).exit == 0
    assert (workspace.project / "sums/src/lib.rs").read_text() == LIB
    failed = await workspace.terminal("cargo test --lib", timeout=70)
    assert failed.exit == 101
    place = re.search(r"panicked at src/lib\.rs:(\d+):\d+:\n(.*)\n\s+left: 0\n\s+right: 4", failed.output)
    assert place is not None, failed.output
    assert place.groups() == ("12", 'assertion `left == right` failed: sums "add" up: $HOME !! `id`')
    assert "\x1b" not in failed.output
    await workspace.terminal("sed -i 's/a - b/a + b/' src/lib.rs")
    passed = await workspace.terminal("cargo test --lib", wait_for=r"test result: ok\. 1 passed; 0 failed;", timeout=70)
    assert "matched" in passed.text
    # The line that was waited for is not the last one.
    await workspace.terminal("", timeout=60)
    assert (await workspace.terminal("cargo test --lib -q | cat; echo ${PIPESTATUS[0]}", timeout=70)).last_line == "0"


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed: apt-get install npm")
async def test_npms_questions_are_answered_one_by_one(workspace):
    session = await workspace.session(env={"npm_config_update_notifier": "false", "PATH": f"{Path(shutil.which('npm')).parent}:{workspace.env['PATH']}"})
    asked = await session.run("npm init", wait_for=r"package name: \(project\) $", timeout=60)
    assert asked.is_running
    answers = {
        "my-project": r"version: \(1\.0\.0\) $",
        "1.2.3": "description: $",
        'It says "hi"': r"entry point: \(index\.js\) $",
        "": "test command: $",
        "true": "git repository: $",
    }
    for answer, question in answers.items():
        asked = await session.type(answer, end_with_newline=True, wait_for=question, timeout=60)
        assert asked.fact("matched") is not None, asked.text
    steps = [
        {"input": "\r"},
        {"wait_for": "keywords: $", "input": "a b\r"},
        {"wait_for": "author: $", "input": "\r"},
        {"wait_for": "license: .*$", "input": "MIT\r"},
    ]
    asked = await session.agent.call("send_input_to_terminal", session_id=session.id, steps=steps, timeout=60)
    if asked.is_running:
        # Newer versions ask for the kind of modules first.
        asked = await session.read(wait_for=r"type: .*$|Is this OK\? .*$", timeout=60)
        if "type:" in asked.last_line:
            await session.type("", end_with_newline=True, wait_for="Is this OK", timeout=60)
    ended = await session.type("yes", end_with_newline=True, timeout=60)
    assert ended.exit == 0, ended.text
    made = json.loads((workspace.project / "package.json").read_text())
    told = {name: made[name] for name in ("name", "version", "description", "scripts", "keywords", "license")}
    assert told == {
        "name": "my-project",
        "version": "1.2.3",
        "description": 'It says "hi"',
        "scripts": {"test": "true"},
        "keywords": ["a", "b"],
        "license": "MIT",
    }


async def test_a_development_server_is_started_watched_and_ended(workspace):
    (workspace.project / "index.html").write_text("<h1>served</h1>\n")
    session, other = await workspace.session(), await workspace.session()
    started = await session.run("python3 -u -m http.server 0 --bind 127.0.0.1", wait_for=r"http://127\.0\.0\.1:(\d+)/", timeout=60)
    port = re.search(r":(\d+)/", started.fact("matched")).group(1)
    fetch = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:{port}/').read().decode(), end='')"
    assert (await other.run(f'python3 -c "{fetch}"')).output == "<h1>served</h1>"
    seen = await session.read(wait_for='"GET / HTTP/1.1" 200', timeout=60)
    assert '"GET / HTTP/1.1" 200' in seen.output
    ended = await session.terminate()
    assert ended.structured["left"] == 0
    refused = await other.run(f'python3 -c "{fetch}"')
    assert (refused.exit, "Connection refused" in refused.output) == (1, True)


async def test_a_program_is_written_and_debugged_in_a_python_dialogue(workspace):
    program = textwrap.dedent(
        """\
        def mean(numbers):
            return sum(numbers) / len(numbers)
        """
    )
    await workspace.terminal(f"cat > mean.py <<'EOF'\n{program}EOF")
    assert (await workspace.terminal("python3 -q -i mean.py")).wants == "input"
    failed = await workspace.terminal("mean([])", is_input=True)
    assert "ZeroDivisionError: division by zero" in failed.output.splitlines()
    assert (await workspace.terminal("mean([1, 2])", is_input=True)).output.splitlines()[-2:] == ["1.5", ">>> "]
    assert (await workspace.terminal("C-d")).exit == 0
