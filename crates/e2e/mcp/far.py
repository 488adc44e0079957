"""A machine far away that is this one: an sshd on loopback with keys of its own, for as long as a test needs it."""

import os
import pwd
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcp_client import CALL_SECONDS, LOOPBACK, free_port

needs_sshd = pytest.mark.skipif(
    not all(shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin") for name in ("ssh", "sshd", "ssh-keygen")),
    reason="ssh or sshd is not installed: apt-get install openssh-server openssh-client",
)

# Where Debian's sshd locks its unprivileged part in, when root starts it (sshd(8)). Its service makes this folder. A test
# that makes it leaves it there, because the sshd of another one may be in it.
PRIVILEGE_SEPARATION = Path("/run/sshd")


@contextmanager
def machine(folder: Path):
    """Starts it in this folder; gives the command that goes there."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    if os.getuid() == 0:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
    port = free_port()
    options = {
        "ListenAddress": f"{LOOPBACK}:{port}",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "user.pub",
        "PidFile": "none",
        "StrictModes": "no",
        "UsePAM": "no",
        "PermitRootLogin": "yes",
        "PrintMotd": "no",
        # Not the user's own files, nor a history there.
        "SetEnv": f"HOME={folder}",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    sshd = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")
    with open(folder / "sshd.log", "w") as log:
        server = subprocess.Popen([sshd, "-D", "-e", "-f", "/dev/null", *words], stderr=log)
    try:
        _wait_until_it_listens(server, folder / "sshd.log")
        known = f"-o StrictHostKeyChecking=no -o UserKnownHostsFile={folder / 'known'} -o LogLevel=ERROR"
        user = pwd.getpwuid(os.getuid()).pw_name
        yield f"ssh -F none {known} -o IdentitiesOnly=yes -i {folder / 'user'} -p {port} {user}@{LOOPBACK}"
    finally:
        server.terminate()
        server.wait(CALL_SECONDS)
        print((folder / "sshd.log").read_text())


def _wait_until_it_listens(server: subprocess.Popen, log: Path):
    # A probe would be a connection without a log-in. After one of these a newer sshd refuses its address for a while.
    deadline = time.monotonic() + CALL_SECONDS
    while "Server listening on" not in log.read_text():
        assert server.poll() is None, "sshd ended before it listened"
        assert time.monotonic() < deadline, "sshd does not listen"
