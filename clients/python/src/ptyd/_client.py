"""Sessions and commands, for asyncio."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import httpx
from typing_extensions import TypedDict, Unpack

from . import models
from ._http import Ended, Http, PtydError, Refused, TimedOut, Unreachable, backoff, pause
from ._stream import Chunk, Transport, chunks_of, events
from ._stream import follow as follow_output

# Keys of later requests by which a holder forgets an earlier one; fewer than it keeps, because other clients send some.
_KEYS_KEPT = 128
# The time that the end of a session takes at most, in seconds.
_ENDING = 20.0
# The most characters that an answer has.
_CHARS_MAX = 1_000_000


@dataclass(frozen=True)
class Result:
    """How a command ended. `code` is None if nobody knows it, and `ok` is true only for a code of 0."""

    code: int | None
    output: str
    # Whether `output` lacks a part; `Command.bytes()` has all of it.
    truncated: bool
    # Seconds.
    duration: float
    status: models.CommandStatus
    signal: str | None
    error: str | None
    id: str

    @property
    def ok(self) -> bool:
        """Whether it succeeded, for certain."""
        return self.code == 0


class RunOptions(TypedDict, total=False):
    """How to run a command."""

    # Seconds to wait at most. The wait ends with `TimedOut`, and the command continues, unless `on_timeout` says otherwise.
    timeout: float
    on_timeout: models.OnTimeout
    # Seconds to wait for a person's decision, if the policy asks for one.
    approval_timeout: float
    # Run it in the shell that reads there now: after `ssh`, `su` or `docker exec -it`.
    inside: bool


@dataclass(frozen=True)
class Screen:
    """The screen as a person sees it."""

    text: str
    details: models.Screen


class AsyncPtyd:
    """One server: the one at `url`, or this user's own, which is started if there is none."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        socket: str | None = None,
        patience: float = 60,
        silence: float = 20,
        transports: tuple[Transport, ...] = ("websocket", "sse", "poll"),
    ) -> None:
        self.http = Http(url, token, socket, patience, silence)
        self.transports = transports

    async def __aenter__(self) -> AsyncPtyd:
        await self.http.call("GET", "/terminals?limit=1")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.client.aclose()

    async def open(self, request: models.CreateRequest | None = None, *, cwd: str | None = None, **more: Any) -> AsyncSession:
        """A new session, which ends with this handle. Further fields are those of `models.CreateRequest`."""
        body: dict[str, Any] = {**(request or {}), **more}
        if cwd is not None:
            body["cwd"] = str(Path.cwd() / cwd) if self.http.socket else cwd
        elif self.http.socket:
            body.setdefault("fallbackCwd", os.getcwd())
        made = await self.http.call("POST", "/terminals", body, key=str(uuid.uuid4()), waits=1)
        return AsyncSession(self, cast(models.TerminalSession, made), is_own=True)

    async def session(self, session: str) -> AsyncSession:
        """A session that exists, by its id or name. It outlives the handle."""
        found = await self.http.call("GET", f"/terminals/{quote(session, safe='')}")
        return AsyncSession(self, cast(models.TerminalSession, found), is_own=False)

    async def sessions(self) -> list[models.TerminalSession]:
        """The sessions that live."""
        return cast(models.SessionList, await self.http.call("GET", "/terminals?limit=1000"))["terminals"]

    async def approvals(self) -> list[models.Approval]:
        """The requests that wait for a person."""
        return cast(models.ApprovalList, await self.http.call("GET", "/approvals"))["approvals"]

    async def decide(self, approval: str, decision: models.Decision) -> models.Approval:
        """Decides one of them."""
        decided = await self.http.call("POST", f"/approvals/{quote(approval, safe='')}", {"decision": decision}, repeatable=True)
        return cast(models.Approval, decided)

    async def events(self) -> AsyncIterator[models.Event]:
        """The events of all sessions from now on. An event `gap` stands for those that the server no longer has."""
        last, attempt, deadline = None, 0, time.monotonic() + self.http.patience
        while True:
            failure = "the connection ended"
            try:
                async for event in events(self.http, "/events", last):
                    attempt, deadline = 0, time.monotonic() + self.http.patience
                    last = event.get("id", last)
                    if "data" in event:
                        yield cast(models.Event, json.loads(event["data"]))
            except (httpx.HTTPError, OSError, ValueError) as error:
                failure = str(error) or type(error).__name__
            if time.monotonic() > deadline:
                raise Unreachable(f"no events in {self.http.patience} s ({failure})", False)
            await pause(backoff(attempt))
            attempt += 1


class AsyncSession:
    """One session: a shell at a terminal."""

    def __init__(self, ptyd: AsyncPtyd, made: models.TerminalSession, *, is_own: bool) -> None:
        self.ptyd, self.id, self._is_own = ptyd, made["id"], is_own
        # The longest wait that one request asks for: a stalled connection is noticed after twice that time.
        self.slice, self._keys = ptyd.http.silence, 0
        # The newest command, whose end also ends a wait.
        self._last: AsyncCommand | None = None
        # The text that no wait has taken yet, and the offset behind it.
        self._text, self._at = "", made["journal"]["endOffset"]

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._is_own:
            await self.close()

    async def run(self, command: str, **options: Unpack[RunOptions]) -> Result:
        """Runs a command to its end. A code other than 0 is a value and no exception."""
        begun = await self._begin(command, options, waits=True)
        return await begun.end(timeout=None if options.get("on_timeout") else options.get("timeout"))

    async def start(self, command: str, **options: Unpack[RunOptions]) -> AsyncCommand:
        """Starts a command, and returns at once."""
        return await self._begin(command, options, waits=False)

    async def _begin(self, command: str, options: RunOptions, *, waits: bool) -> AsyncCommand:
        body: dict[str, Any] = {"command": command, "maxChars": _CHARS_MAX, "waitForCompletion": waits}
        timeout, on_timeout = options.get("timeout"), options.get("on_timeout")
        if options.get("inside"):
            body["inside"] = True
        if on_timeout:
            body |= {"onTimeout": on_timeout, "timeout": timeout, "waitForCompletion": False}
        elif waits:
            body["timeout"] = self.slice if timeout is None else min(timeout, self.slice)
        begun = cast(models.CommandExecution, await self._keyed("execute", body, options.get("approval_timeout", 0), self.slice))
        self._text, self._at = "", begun["startOffset"]
        self._last = AsyncCommand(self, begun)
        return self._last

    async def type(self, text: str, *, secret: bool = False, paste: bool = False, approval_timeout: float = 0) -> None:
        """Types text as a person would; a line ends with `\\r` or `\\n`. A secret is kept out of every record."""
        await self._keyed("input", {"input": text, "secret": secret, "paste": paste}, approval_timeout)

    async def keys(self, *keys: str) -> None:
        """Presses keys: `C-c`, `Enter`, `Down*3`, `<Esc>:wq<Enter>`."""
        await self._keyed("input", {"keys": keys})

    async def _keyed(self, route: str, body: dict[str, Any], approval_timeout: float = 0, waits: float = 0) -> Any:
        """The answer to a request that the server performs once, however often it is sent."""
        self._keys += 1
        number = self._keys
        if approval_timeout:
            body["approvalTimeout"] = approval_timeout
        waits, key = waits + approval_timeout, str(uuid.uuid4())
        return await self.call("POST", route, body, key=key, waits=waits, key_holds=lambda: self._keys - number < _KEYS_KEPT)

    async def wait_for(self, pattern: str | re.Pattern[str], *, timeout: float = 30) -> re.Match[str]:
        """Waits for a text or an expression in the output behind the last match; the command's end also ends the wait."""
        expression = re.compile(re.escape(pattern)) if isinstance(pattern, str) else pattern
        deadline, command, waits, is_over = time.monotonic() + timeout, self._last, 0.0, False
        if command is not None and command.is_taken:
            command = None
        while True:
            page = await self._page(self._at, "text", waits, 200_000)
            self._text = (self._text + page.get("text", ""))[-_CHARS_MAX:]
            self._at = page["nextOffset"]
            if match := expression.search(self._text):
                self._text = self._text[match.end() :]
                return match
            if page["nextOffset"] < page["endOffset"]:
                continue
            if is_over or page["final"]:
                raise Ended(f"it ended, and {expression.pattern!r} had not come")
            # A read after the end is complete.
            if command is not None and (await command.look(0))["status"] != "running":
                waits, is_over = 0, True
                continue
            waits = min(deadline - time.monotonic(), self.slice)
            if waits <= 0:
                raise TimedOut(f"{expression.pattern!r} has not come")

    async def screen(self) -> Screen:
        """The screen as a person sees it."""
        details = cast(models.Screen, await self.call("GET", "screen"))
        return Screen("\n".join(details["rows"]).rstrip("\n"), details)

    async def output(self, since: int = 0, *, follow: bool = False) -> AsyncIterator[Chunk]:
        """The bytes of the terminal, in order and without a loss; a gap is a value.

        It ends when no command runs. With `follow`, it continues until the session ends.
        """
        if follow:
            async for chunk in follow_output(self.ptyd.http, self.id, since, self.ptyd.transports):
                yield chunk
            return
        while True:
            # A read after the end of the command is complete.
            is_busy = "currentCommand" in await self.info()
            page = await self._page(since, "stream", self.slice if is_busy else 0)
            for chunk in chunks_of(since, page):
                yield chunk
            since = page["nextOffset"]
            if page["final"] or (not is_busy and since == page["endOffset"]):
                return

    async def _page(self, since: int, view: models.OutputView, waits: float, limit: int = 1 << 20) -> models.Output:
        query = f"view={view}&since=o:{since}&waitMs={waits * 1000:.0f}&maxBytes={limit}&maxChars={_CHARS_MAX}"
        return cast(models.Output, await self.call("GET", f"output?{query}", waits=waits))

    async def wait_end(self, *, timeout: float | None = None) -> Result:
        """Waits for the end of the newest command of this handle."""
        if self._last is None:
            raise PtydError("no command was started here")
        return await self._last.end(timeout=timeout)

    async def info(self) -> models.TerminalSession:
        """The session as the server knows it."""
        return cast(models.TerminalSession, await self.call("GET"))

    async def resize(self, cols: int, rows: int) -> None:
        """Sets the size of the terminal."""
        await self.call("POST", "resize", {"cols": cols, "rows": rows}, repeatable=True)

    async def signal(self, signal: str, target: str | int | None = None) -> None:
        """Sends a signal, such as `INT`. It has no key, so a lost answer is an error and not a second signal."""
        await self.call("POST", "signal", {"signal": signal} | ({"target": target} if target else {}))

    async def ticket(self, scope: models.TicketScope = "read") -> str:
        """A ticket with which a page opens this session's socket once."""
        made = await self.ptyd.http.call("POST", "/tickets", {"session": self.id, "scope": scope}, repeatable=True)
        return cast(models.Ticket, made)["ticket"]

    async def close(self) -> None:
        """Ends the session and what runs in it."""
        await self.call("DELETE", "?force=true", waits=_ENDING)

    async def call(self, method: str, route: str = "", body: object = None, **more: Any) -> Any:
        """Any request about this session."""
        slash = "/" if route and not route.startswith("?") else ""
        return await self.ptyd.http.call(method, f"/terminals/{self.id}{slash}{route}", body, **more)


class AsyncCommand:
    """A command that was started."""

    def __init__(self, session: AsyncSession, begun: models.CommandExecution) -> None:
        self.session, self.id, self.is_taken = session, begun["id"], False
        self._begun = begun

    async def wait_for(self, pattern: str | re.Pattern[str], *, timeout: float = 30) -> re.Match[str]:
        """Waits for a text or an expression in its output."""
        return await self.session.wait_for(pattern, timeout=timeout)

    async def type(self, text: str, *, secret: bool = False, paste: bool = False, approval_timeout: float = 0) -> None:
        """Types text as a person would."""
        await self.session.type(text, secret=secret, paste=paste, approval_timeout=approval_timeout)

    async def keys(self, *keys: str) -> None:
        """Presses keys."""
        await self.session.keys(*keys)

    async def look(self, max_chars: int = _CHARS_MAX) -> models.CommandExecution:
        """The command as the server knows it."""
        return cast(models.CommandExecution, await self.session.call("GET", f"commands/{self.id}?maxChars={max_chars}"))

    async def end(self, *, timeout: float | None = None) -> Result:
        """Waits until it has ended; its output is complete by then."""
        deadline = None if timeout is None else time.monotonic() + timeout
        # The answer to `start` shows no output, though a short command has ended by then.
        seen = await self.look() if self._begun.get("endedBy") == "accepted" else self._begun
        while seen["status"] == "running":
            left = self.session.slice if deadline is None else min(deadline - time.monotonic(), self.session.slice)
            if left <= 0:
                raise TimedOut(f"{seen['command']!r} still runs")
            await self._wait(left)
            seen = await self.look()
        self.is_taken = True
        code = seen.get("exitCode") if seen["status"] == "completed" else None
        duration = seen.get("durationMs", 0) / 1000
        told = (seen.get("signal"), seen.get("error"))
        return Result(code, seen.get("output", ""), seen["truncated"], duration, seen["status"], *told, seen["id"])

    async def _wait(self, waits: float) -> None:
        answer = await self.session.call("POST", "wait", {"timeout": waits}, repeatable=True, waits=waits)
        if answer["endedBy"] not in ("ended", "exited", "timed_out"):
            # A program that a signal has stopped would end every wait at once; whatever it does next, it prints or ends.
            await self.session._page(answer["nextOffset"], "raw", waits, 1)

    async def bytes(self) -> AsyncIterator[bytes]:
        """All bytes of its output, exactly as it wrote them."""
        offset = self._begun["startOffset"]
        while True:
            answer = await self.session.call("GET", f"commands/{self.id}?view=raw&since=o:{offset}")
            part = cast(models.CommandExecution, answer)
            yield b64decode(part.get("outputBase64", ""))
            offset = part.get("nextOffset", offset)
            if "endOffset" in part and offset >= part["endOffset"]:
                return
            if part["status"] == "running":
                # Output, or the end of the command, whose prompt follows.
                await self.session._page(offset, "raw", self.session.slice, 1)


