"""Output that survives every disconnect: each way to follow it continues at an offset, and none skips a byte in silence."""

from __future__ import annotations

import builtins
import json
import time
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

import httpx
from websockets.asyncio.client import connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from . import models
from ._http import Http, PtydError, Refused, Unreachable, backoff, pause

Transport = Literal["websocket", "sse", "poll"]

# Close codes after which a reconnection fails in the same way.
_REFUSED: dict[int, models.ErrorCode] = {
    4401: "unauthorized",
    4403: "forbidden",
    4404: "session_not_found",
    4409: "invalid_field",
}
_ENDED = 4410


@dataclass(frozen=True)
class Chunk:
    """A part of the output: `bytes`, or a gap, whose bytes the server no longer has. The offsets are of the session's journal."""

    bytes: builtins.bytes
    start: int
    end: int
    gap: bool = False


# A chunk, the end of the session, or (None) a sign of life.
Received = Chunk | Literal["end"] | None
Source = Callable[[int], AsyncIterator[Received]]


def chunks_of(at: int, output: models.Output) -> Iterator[Chunk]:
    """The chunks of one answer."""
    start, end = output["fromOffset"], output["nextOffset"]
    if start > at:
        yield Chunk(b"", at, start, gap=True)
    if end > start:
        yield Chunk(b64decode(output.get("dataBase64", "")), start, end)


def _refusal(status: int, content: builtins.bytes) -> Exception:
    """The server's refusal; one of something between here and the server is only a failure of the connection."""
    problem = json.loads(content)
    if isinstance(problem, dict) and "code" in problem:
        return Refused(cast(models.Problem, problem))
    return ValueError(f"status {status} without a problem document")


async def follow(http: Http, session: str, since: int, transports: tuple[Transport, ...]) -> AsyncIterator[Chunk]:
    """Follows from an offset to the session's end, by the first transport that works, and reconnects."""
    every: dict[Transport, Source] = {
        "websocket": lambda at: _by_socket(http, session, at),
        "sse": lambda at: _by_events(http, session, at),
        "poll": lambda at: _by_polls(http, session, at),
    }
    at, source, attempt, deadline = since, 0, 0, time.monotonic() + http.patience
    while True:
        is_alive, failure = False, "the connection ended"
        try:
            async for received in every[transports[source]](at):
                is_alive, deadline = True, time.monotonic() + http.patience
                if received == "end":
                    return
                if received is not None:
                    if received.start != at:
                        raise PtydError(f"output of {received.start} came where {at} was to follow")
                    at, attempt = received.end, 0
                    yield received
        except (httpx.HTTPError, WebSocketException, OSError, ValueError, Unreachable) as error:
            failure = str(error) or type(error).__name__
        if not is_alive:
            # It never delivered anything: perhaps something on the way does not let it pass.
            source = (source + 1) % len(transports)
            if source:
                continue
        if time.monotonic() > deadline:
            raise Unreachable(f"no output in {http.patience} s ({failure})", False)
        await pause(backoff(attempt))
        attempt += 1


async def _by_polls(http: Http, session: str, at: int) -> AsyncIterator[Received]:
    while True:
        query = f"view=stream&since=o:{at}&waitMs={http.silence * 1000:.0f}"
        answer = await http.call("GET", f"/terminals/{session}/output?{query}", waits=http.silence)
        output = cast(models.Output, answer)
        for chunk in chunks_of(at, output):
            yield chunk
        at = output["nextOffset"]
        yield "end" if output["final"] else None


async def _by_events(http: Http, session: str, at: int) -> AsyncIterator[Received]:
    query = f"view=stream&since=o:{at}&waitMs={min(http.silence * 500, 15_000):.0f}"
    async for event in events(http, f"/terminals/{session}/output/stream?{query}"):
        if "data" in event:
            output = cast(models.Output, json.loads(event["data"]))
            for chunk in chunks_of(at, output):
                yield chunk
            at = output["nextOffset"]
        yield "end" if event.get("event") == "end" else None


async def events(http: Http, path: str, last: str | None = None) -> AsyncIterator[dict[str, str]]:
    """Server-sent events of one connection; one without data is a sign of life. Ends with the connection."""
    http.check_owner()
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
    async with http.client.stream("GET", path, headers=headers, timeout=httpx.Timeout(http.silence)) as answer:
        if answer.status_code == 204:
            yield {"event": "end"}
            return
        if not answer.is_success:
            content = await answer.aread()
            if answer.status_code < 429:
                raise _refusal(answer.status_code, content)
            raise ValueError(f"status {answer.status_code}")
        event: dict[str, str] = {}
        text = ""
        async for part in answer.aiter_text():
            # Not `aiter_lines`, which takes other separators than the newline for the end of a line.
            *lines, text = (text + part).split("\n")
            for line in lines:
                name, _, value = line.partition(":")
                if line:
                    event[name] = value.removeprefix(" ")
                else:
                    yield event
                    event = {}


async def _by_socket(http: Http, session: str, at: int) -> AsyncIterator[Received]:
    uri = http.socket_address(f"/terminals/{session}/socket?since=o:{at}")
    beat = http.silence / 2
    options: dict[str, Any] = {"additional_headers": http.headers, "max_size": None, "open_timeout": http.silence}
    options |= {"ping_interval": beat, "ping_timeout": beat, "close_timeout": beat}
    http.check_owner()
    opened = unix_connect(str(http.socket), uri, **options) if http.socket else connect(uri, **options)
    try:
        async with opened as socket:
            async for text in socket:
                message = json.loads(text)
                if message["type"] == "output":
                    data = message.get("dataBase64")
                    content = b64decode(data) if data else message["data"].encode()
                    yield Chunk(content, message["fromOffset"], message["nextOffset"])
                elif message["type"] == "gap":
                    yield Chunk(b"", at, message["nextOffset"], gap=True)
                else:
                    yield None
                at = message.get("nextOffset", at)
            raise ConnectionClosed(socket.protocol.close_rcvd, None)
    except InvalidStatus as refused:
        if refused.response.status_code < 426:
            raise _refusal(refused.response.status_code, refused.response.body or b"") from refused
        raise
    except ConnectionClosed as closed:
        code = closed.rcvd.code if closed.rcvd else 1006
        if code == _ENDED:
            yield "end"
        elif code in _REFUSED:
            detail = f"the socket was closed with {code}"
            problem = {"type": "about:blank", "title": detail, "status": 0, "detail": detail, "code": _REFUSED[code], "requestId": ""}
            raise Refused(cast(models.Problem, problem)) from closed
