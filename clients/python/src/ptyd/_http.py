"""Requests: each is repeated only where a repetition cannot do a thing twice."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import httpx

from . import models

# The server may have performed the request before it answered so.
_LOST = ("session_unreachable", "server_restarting", "node_unreachable")
# It has not, and soon will. A body of this client is malformed only if something on the way cut it off.
_EARLY = ("session_not_ready", "body_late", "malformed_body", "rate_limited", "server_draining", "resources_exhausted")


class PtydError(Exception):
    """The base of all errors of this package."""


class Refused(PtydError):
    """The server has refused."""

    def __init__(self, problem: models.Problem) -> None:
        super().__init__(f"{problem['code']}: {problem.get('detail', problem)}")
        self.problem, self.code = problem, problem["code"]


class Unreachable(PtydError):
    """No answer came. `may_have_happened` says whether the server may have performed the request."""

    def __init__(self, message: str, may_have_happened: bool) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened


class TimedOut(PtydError, TimeoutError):
    """The time was up before the command ended, or the text came. The command continues."""


class Ended(PtydError):
    """The command or session ended, and the text had not come."""


def socket_path() -> Path:
    """The socket that the command line uses."""
    env = os.environ
    xdg = env.get("XDG_STATE_HOME", "")
    state = Path(xdg) if xdg.startswith("/") else Path.home() / ".local/state"
    return Path(env.get("PTYD_RUNTIME_DIR") or env.get("PTYD_STATE_DIR") or state / "ptyd") / "ptyd.sock"


def backoff(attempt: int) -> float:
    """Seconds between two attempts: few at first, because a restart takes half a second."""
    return float(min(0.05 * 2**attempt, 2)) * random.uniform(0.5, 1)


async def pause(seconds: float) -> None:
    """Lets time pass."""
    await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=seconds)


class Http:
    """The connection to one server."""

    def __init__(self, url: str | None, token: str | None, socket: str | None, patience: float, silence: float) -> None:
        url = url or (None if socket else os.environ.get("PTYD_URL"))
        self.socket = None if url else Path(socket) if socket else socket_path()
        self.may_start = not url and not socket
        self.base = (url or "http://localhost").rstrip("/")
        token = token or (os.environ.get("PTYD_TOKEN") if url else None)
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.patience, self.silence = patience, silence
        transport = httpx.AsyncHTTPTransport(uds=str(self.socket)) if self.socket else None
        self.client = httpx.AsyncClient(transport=transport, base_url=self.base, headers=self.headers)

    def check_owner(self) -> None:
        """Another user who can write to the folder could have put a socket of theirs there."""
        if self.socket and (found := os.stat(self.socket)) and found.st_uid not in (os.geteuid(), 0):
            raise PtydError(f"{self.socket} belongs to user {found.st_uid}; nothing was sent")
        if self.socket and not stat.S_ISSOCK(found.st_mode):
            raise PtydError(f"{self.socket} is not a socket")

    async def start_server(self) -> None:
        """Runs the command of an agent without an agent: it starts a server if there is none, as the command line does."""
        if not self.may_start:
            return
        program = os.environ.get("PTYD_BIN") or shutil.which("ptyd")
        if program is None:
            raise PtydError("no server runs, and `ptyd` is not on the PATH to start one")
        null = asyncio.subprocess.DEVNULL
        started = await asyncio.create_subprocess_exec(program, "mcp", stdin=null, stdout=null, stderr=asyncio.subprocess.PIPE)
        said = (await started.communicate())[1]
        if started.returncode:
            raise PtydError(f"no server runs, and none can be started: {said.decode(errors='replace').strip()}")

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        waits: float = 0,
        repeatable: bool = False,
        key_holds: Callable[[], bool] = lambda: True,
    ) -> Any:
        """The answer to a request, which is repeated until it comes, if a repetition does nothing twice."""
        may_repeat = repeatable or key is not None or method in ("GET", "DELETE")
        deadline = time.monotonic() + self.patience
        may_have_happened = False
        for attempt in range(1_000_000):
            after, failure = backoff(attempt), cast(Exception, None)
            try:
                self.check_owner()
                headers = {"Idempotency-Key": key} if key else {}
                timeout = httpx.Timeout(waits + self.silence)
                answer = await self.client.request(method, path, json=body, headers=headers, timeout=timeout)
                content = answer.json() if answer.content else None
                if answer.is_success:
                    return content
                if not isinstance(content, dict) or "code" not in content:
                    raise ValueError(f"status {answer.status_code} without a problem document")
                failure = Refused(cast(models.Problem, content))
                is_lost = failure.code in _LOST
                if not is_lost and failure.code not in _EARLY or is_lost and not may_repeat:
                    raise failure
                may_have_happened |= is_lost
                after = max(after, float(answer.headers.get("Retry-After", 0)))
            except (httpx.ConnectError, httpx.PoolTimeout, FileNotFoundError) as error:
                failure = error
                await self.start_server()
            except (httpx.HTTPError, ValueError) as error:
                failure, may_have_happened = error, True
            why = f"{method} {path}: no answer ({failure or type(failure).__name__})"
            if may_have_happened and not may_repeat:
                raise Unreachable(f"{why}; it may have been performed", True) from failure
            if may_have_happened and not key_holds():
                raise Unreachable(f"{why}, and its key is too old to ask again", True) from failure
            if time.monotonic() + after > deadline:
                if isinstance(failure, Refused):
                    raise failure
                maybe = "; it may have been performed" if may_have_happened and method != "GET" else ""
                raise Unreachable(f"{why} in {self.patience} s{maybe}", may_have_happened) from failure
            await pause(after)
        raise AssertionError("the deadline comes first")

    def socket_address(self, path: str) -> str:
        """The address of a WebSocket."""
        parts = urlsplit(self.base)
        return parts._replace(scheme="wss" if parts.scheme == "https" else "ws").geturl() + path
