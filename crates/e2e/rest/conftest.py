"""A server of the tests' own, to which no request can do harm: an empty home, no programs on its path, and, where the
tests run as root, a user that owns nothing.

Only here a server is started; one that leaves a process behind fails the test.
"""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PTYD = Path(os.environ.get("PTYD_BIN", ROOT / "target/debug/ptyd"))
# Passwd's user of programs that shall own nothing.
NOBODY = 65534


def pytest_configure():
    """One clear sentence instead of a hundred failures."""
    if not PTYD.is_file():
        raise pytest.UsageError(f"{PTYD} is not there: build it (cargo build -p ptyd), or name another in PTYD_BIN")


class Server:
    """A running server, asked as an admin."""

    def __init__(self, home, url, token):
        self.home, self.url, self.token = home, url, token

    def ask(self, method, path, body=None, headers=None):
        """The status, the headers and the text of an answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Authorization": f"Bearer {self.token}"} | (headers or {}), method=method)
        try:
            with urllib.request.urlopen(request, timeout=75) as reply:
                return reply.status, reply.headers, reply.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers, refused.read().decode()


@pytest.fixture(scope="session")
def server():
    home = Path(tempfile.mkdtemp(prefix="ptyd-rest-"))
    drops = os.geteuid() == 0
    program = home / "ptyd"
    if drops:
        # Where the binary lies may be closed to that user.
        shutil.copy(PTYD, program)
        program.chmod(0o755)
        os.chown(home, NOBODY, NOBODY)
    else:
        program.symlink_to(PTYD.resolve())
    # The profile to which a token is bound.
    (home / "config.toml").write_text("[profiles.witness]\n")
    token = secrets.token_urlsafe()
    env = {"HOME": str(home), "PATH": "", "LANG": "C.UTF-8", "PTYD_TOKEN": token}
    env |= {"PTYD_STATE_DIR": str(home / "state"), "PTYD_RUNTIME_DIR": str(home / "run"), "SHELL": "/bin/bash"}
    env["PTYD_CONFIG"] = str(home / "config.toml")
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if drops else {}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0"], cwd=home, env=env, stdout=subprocess.PIPE, stderr=log, **as_nobody
        )
    try:
        # The first line is printed once it listens.
        assert process.stdout.readline(), (home / "log").read_text()
        address = (home / "state/listen").read_text().strip()
        served = Server(home, f"http://{address}", token)
        # The server's own token makes no tokens and manages no secrets over TCP.
        make = [program, "token", "new", "tests", "--scope", "admin"]
        served.token = subprocess.run(make, env=env, check=True, capture_output=True, text=True, **as_nobody).stdout.strip()
        yield served
        end_sessions(served)
        assert left_in(home) == []
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
        print((home / "log").read_text()[-4000:])
        shutil.rmtree(home, ignore_errors=True)


def end_sessions(server):
    """Ends what runs, a page at a time."""
    while rows := json.loads(server.ask("GET", "/terminals?limit=100")[2])["terminals"]:
        for row in rows:
            assert server.ask("DELETE", f"/terminals/{row['id']}?force=true")[0] == 200


def left_in(home):
    """The processes of sessions of this server that are still there."""
    mark = b"PTYD_SESSION="
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if mark in environment and f"HOME={home}".encode() in environment:
            found.append((process.name, (process / "cmdline").read_bytes()))
    return found
