"""The packages of `clients/`, built once for all workers of a run, and programs that use them."""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

from mcp_client import CALL_SECONDS, IS_FULL, REPOSITORY

PYTHON = REPOSITORY / "clients/python"
TYPESCRIPT = REPOSITORY / "clients/typescript"
# Disconnects that each transport suffers, and the kills of a server.
CUTS, KILLS = (1000, 20) if IS_FULL else (12, 2)
TRANSPORTS = ("websocket", "sse", "poll")
STRICT = ("--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom,dom.asynciterable,esnext.disposable")


def run(*command, cwd=None, **env) -> str:
    """The output of a program that succeeds."""
    done = subprocess.run(command, cwd=cwd, env=os.environ | env, capture_output=True, text=True, timeout=CALL_SECONDS)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout


def node_and_npm() -> tuple[str, Path]:
    """Node and the npm packages; skips the test where they are not."""
    from test_other_clients import NODE, NPM

    return NODE, NPM


class TypeScript:
    """A folder in which programs find the built package, as after `npm install`. The workers of a run share it."""

    def __init__(self, temporary: Path):
        # Each worker of xdist has a folder of its own there.
        shared = temporary.parent if "PYTEST_XDIST_WORKER" in os.environ else temporary
        self.folder, self.tsc = shared / "typescript", node_and_npm()[1] / ".bin/tsc"
        self.package = self.folder / "node_modules/@ptyd/client"
        self.folder.mkdir(exist_ok=True)
        with self._alone():
            if not (self.package / "dist/index.js").exists():
                shutil.copytree(TYPESCRIPT, self.package, ignore=shutil.ignore_patterns("node_modules", "dist"))
                (self.folder / "package.json").write_text('{"type": "module"}')
                run(self.tsc, cwd=self.package)

    def compiled(self, **programs: str) -> list[Path]:
        """Programs that are checked strictly, as JavaScript that Node runs."""
        files = [self.folder / f"{name}.js" for name in programs]
        with self._alone():
            if not files[-1].exists():
                for name, program in programs.items():
                    (self.folder / f"{name}.ts").write_text(program)
                run(self.tsc, *STRICT, *(f"{name}.ts" for name in programs), cwd=self.folder)
        return files

    @contextlib.contextmanager
    def _alone(self):
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def python_env(env: dict[str, str]) -> dict[str, str]:
    """An environment in which the Python package is installed."""
    return env | {"PYTHONPATH": str(PYTHON / "src")}


def import_python():
    """The Python package."""
    if str(PYTHON / "src") not in sys.path:
        sys.path.insert(0, str(PYTHON / "src"))
    import ptyd

    return ptyd


def shown(output: bytes) -> bytes:
    """The output without ptyd's own markers. The server removes only the newest 512 of them from what it has sent before."""
    return re.sub(rb"\x1b\]7337;[^\x07\x1b]*(\x07|\x1b\\)", b"", output)


async def everything(session, since=0) -> bytes:
    """The output from an offset on, by one plain request after the other."""
    output = b""
    while True:
        page = await session.call("GET", f"output?view=stream&since=o:{since}")
        output, since = output + b64decode(page["dataBase64"]), page["nextOffset"]
        if page["nextOffset"] == page["endOffset"]:
            return output
