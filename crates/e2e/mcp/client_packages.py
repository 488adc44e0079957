"""The packages of `clients/`, built once for all workers of a run, and programs that use them."""

import fcntl
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from mcp_client import CALL_SECONDS, REPOSITORY

PYTHON = REPOSITORY / "clients/python"
TYPESCRIPT = REPOSITORY / "clients/typescript"
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


@functools.cache
def built_typescript(shared: Path) -> Path:
    """The TypeScript package with its `dist`, in a folder that the workers of a run share."""
    package = shared / "ptyd-client-typescript"
    with (shared / "ptyd-client-typescript.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (package / "dist/index.js").exists():
            shutil.copytree(TYPESCRIPT, package, ignore=shutil.ignore_patterns("node_modules", "dist"))
            run(node_and_npm()[1] / ".bin/tsc", cwd=package)
    return package


class TypeScript:
    """A folder in which programs find the built package, as after `npm install`."""

    def __init__(self, folder: Path, temporary: Path):
        self.folder = folder
        # Each worker of xdist has a folder of its own there.
        shared = temporary.parent if "PYTEST_XDIST_WORKER" in os.environ else temporary
        (folder / "node_modules/@ptyd").mkdir(parents=True)
        (folder / "node_modules/@ptyd/client").symlink_to(built_typescript(shared))
        (folder / "package.json").write_text('{"type": "module"}')

    def compiled(self, name: str, program: str) -> Path:
        """A program that is checked strictly, as JavaScript that Node runs."""
        (self.folder / f"{name}.ts").write_text(program)
        run(node_and_npm()[1] / ".bin/tsc", *STRICT, f"{name}.ts", cwd=self.folder)
        return self.folder / f"{name}.js"


def python_env(env: dict[str, str]) -> dict[str, str]:
    """An environment in which the Python package is installed."""
    return env | {"PYTHONPATH": str(PYTHON / "src")}


def import_python():
    """The Python package."""
    if str(PYTHON / "src") not in sys.path:
        sys.path.insert(0, str(PYTHON / "src"))
    import ptyd

    return ptyd
