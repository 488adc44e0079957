"""Clients are generated from the document without a word of warning, and what is generated works."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parents[2] / "schema/openapi.json"
NPM = Path(os.environ.get("PTYD_TEST_NPM", HERE.parents[2] / "target/npm/node_modules"))


def run(*command, cwd, **env):
    done = subprocess.run(command, cwd=cwd, env=os.environ | env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


# promise: rest-1
def test_typescript_is_generated_without_a_warning_and_type_checks(tmp_path):
    if not NPM.is_dir():
        pytest.skip(f"{NPM} is not there: `cargo xtask test` makes it, or name another in PTYD_TEST_NPM")
    shutil.copy(HERE / "client.ts", tmp_path)
    (tmp_path / "node_modules").symlink_to(NPM)
    tools = NPM / ".bin"
    said = run(tools / "openapi-typescript", DOCUMENT, "--output", "schema.d.ts", cwd=tmp_path, NO_COLOR="1")
    assert not [line for line in said.lower().splitlines() if "warn" in line or "error" in line], said
    flags = ["--noEmit", "--strict", "--module", "nodenext", "--lib", "es2023,dom", "--target", "es2023"]
    run(tools / "tsc", *flags, "schema.d.ts", "client.ts", cwd=tmp_path)


PROGRAM = """
import sys
from generated import AuthenticatedClient
from generated.api.commands import execute_command
from generated.api.sessions import create_session, terminate_session
from generated.models import CommandStatus, CreateRequest, ExecuteRequest, SessionStatus

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
session = create_session.sync(client=client, body=CreateRequest(shell="/bin/bash", name="generated"))
done = execute_command.sync(session.id, client=client, body=ExecuteRequest(command="echo hello; false", wait_for_completion=True))
assert (done.status, done.exit_code, done.output) == (CommandStatus.COMPLETED, 1, "hello\\n"), done
ended = terminate_session.sync(session.id, client=client, force=True)
assert ended.session.status == SessionStatus.TERMINATED, ended
refused = execute_command.sync_detailed(session.id, client=client, body=ExecuteRequest(command="true"))
assert (refused.status_code, refused.parsed.code.value) == (410, "session_ended"), refused
print("all is well")
"""


# promise: rest-1
def test_a_python_client_is_generated_without_a_warning_and_works(server, tmp_path):
    python = Path(sys.executable)
    config = HERE / "openapi-python-client.yaml"
    generate = ["generate", "--path", DOCUMENT, "--output-path", tmp_path / "generated", "--meta", "none"]
    said = run(python.with_name("openapi-python-client"), *generate, "--fail-on-warning", "--config", config, cwd=tmp_path)
    assert "warning" not in said.lower(), said
    assert run(python, "-c", PROGRAM, server.url, server.token, cwd=tmp_path).strip() == "all is well"
