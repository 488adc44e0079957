"""Proxies of others, each with the configuration that ptyd's pages and `deploy/` give for it."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from mcp_client import LOOPBACK, REPOSITORY, free_port

DEPLOY = REPOSITORY / "deploy"
PATH = "/usr/sbin:/usr/bin"


class Proxy:
    """A proxy of its own. Texts of its configuration, such as addresses, are replaced by those of this machine."""

    def __init__(self, folder: Path, text: str, files: tuple[Path, Path], backends: dict[str, str], place: tuple[str, int] | None = None):
        folder.mkdir()
        self.folder, (self.host, self.port) = folder, place or (LOOPBACK, free_port())
        for here, there in {**self.replaced(files), **backends}.items():
            assert here in text, here
            text = text.replace(here, there)
        (folder / "configuration").write_text(self.whole(text))
        program = shutil.which(self.command[0], path=PATH) or pytest.skip(f"not installed: {self.command[0]}")
        with (folder / "error.log").open("wb") as log:
            command = [word.replace("FOLDER", str(folder)) for word in self.command[1:]]
            # Caddy writes what it keeps into HOME.
            environment = os.environ | {"HOME": str(folder), "XDG_DATA_HOME": "", "XDG_CONFIG_HOME": ""}
            self.process = subprocess.Popen([program, *command], cwd=folder, stdout=log, stderr=log, env=environment)

    async def listens(self) -> None:
        """Waits until it takes connections."""
        while self.process.poll() is None:
            try:
                socket.create_connection((self.host, self.port)).close()
                return
            except ConnectionRefusedError:
                await asyncio.to_thread(self._wait)
        raise AssertionError((self.folder / "error.log").read_text())

    def _wait(self):
        # Nothing tells that a program listens now; its end is told at once.
        try:
            self.process.wait(0.02)
        except subprocess.TimeoutExpired:
            pass

    def end(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait()


class Nginx(Proxy):
    """nginx, with text for its `http` block."""

    command = ("nginx", "-p", "FOLDER", "-c", "FOLDER/configuration", "-e", "FOLDER/error.log")

    def replaced(self, files):
        """The certificate, its key and the port."""
        return {
            "listen 443 ssl": f"listen {self.host}:{self.port} ssl",
            "/etc/ssl/terminals.example.com.pem": str(files[0]),
            "/etc/ssl/terminals.example.com.key": str(files[1]),
        }

    def whole(self, text):
        """A configuration that writes into its folder only."""
        paths = "".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        # Workers of another user could not enter the folder of a test that root runs.
        user = "user root;" if os.geteuid() == 0 else ""
        return (
            f"daemon off; master_process off; pid {self.folder}/pid; {user} error_log {self.folder}/error.log;"
            f"events {{}} http {{ access_log off; {paths} {text} }}"
        )


class Haproxy(Proxy):
    """HAProxy, with its whole file."""

    command = ("haproxy", "-db", "-f", "FOLDER/configuration")

    def replaced(self, files):
        """The certificate with its key, and the port."""
        together = self.folder / "tls.pem"
        together.write_text("".join(file.read_text() for file in files))
        return {"bind :443": f"bind {self.host}:{self.port}", "/etc/ssl/terminals.example.com.pem": str(together)}

    def whole(self, text):
        """The file as it is."""
        return text


class Caddy(Proxy):
    """Caddy, with its whole file."""

    command = ("caddy", "run", "--adapter", "caddyfile", "--config", "FOLDER/configuration")

    def replaced(self, files):
        """The certificate, its key and the port."""
        return {
            "terminals.example.com {": f"https://terminals.example.com:{self.port} {{\n\tbind {self.host}",
            "/etc/ssl/terminals.example.com.pem": str(files[0]),
            "/etc/ssl/terminals.example.com.key": str(files[1]),
        }

    def whole(self, text):
        """The file, without the ports that Caddy takes for all of its sites."""
        return "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + text


def block_of(page: str) -> str:
    """The first block for nginx of a page."""
    return re.search(r"```nginx\n(.*?)```", (REPOSITORY / "docs" / page).read_text(), re.DOTALL)[1]


# The files of `deploy/` that make each of them route by the id.
ROUTERS = {
    "nginx": (Nginx, ("nginx-nodes.conf", "nginx.conf")),
    "haproxy": (Haproxy, ("haproxy.cfg",)),
    "caddy": (Caddy, ("Caddyfile",)),
}


def router(name: str, folder: Path, files: tuple[Path, Path], backends: dict[str, str], place: tuple[str, int] | None = None) -> Proxy:
    """A proxy that routes by the id, as its files say."""
    kind, parts = ROUTERS[name]
    return kind(folder, "\n".join((DEPLOY / part).read_text() for part in parts), files, backends, place)
