"""A machine far away that is this one: an sshd on loopback with keys of its own, for as long as a test needs it."""

import os
import pwd
import shutil
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

needs_sshd = pytest.mark.skipif(
    not all(shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin") for name in ("ssh", "sshd", "ssh-keygen")),
    reason="ssh or sshd is not installed: apt-get install openssh-server openssh-client",
)

# Where Debian's sshd locks its unprivileged part in, when root starts it (sshd(8)).
PRIVILEGE_SEPARATION = Path("/run/sshd")


@contextmanager
def machine(folder: Path):
    """Starts it in this folder; gives the command that goes there."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    is_made = os.getuid() == 0 and not PRIVILEGE_SEPARATION.exists()
    if is_made:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = {
        "ListenAddress": f"127.0.0.1:{port}",
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
        _wait_until_it_listens(server, port)
        known = f"-o StrictHostKeyChecking=no -o UserKnownHostsFile={folder / 'known'} -o LogLevel=ERROR"
        user = pwd.getpwuid(os.getuid()).pw_name
        yield f"ssh -F none {known} -o IdentitiesOnly=yes -i {folder / 'user'} -p {port} {user}@127.0.0.1"
    finally:
        server.terminate()
        server.wait(10)
        print((folder / "sshd.log").read_text())
        if is_made:
            PRIVILEGE_SEPARATION.rmdir()


def _wait_until_it_listens(server: subprocess.Popen, port: int):
    while server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
    raise AssertionError("sshd ended before it listened")
