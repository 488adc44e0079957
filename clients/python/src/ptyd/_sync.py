"""The same without `await`: each call runs on a thread of its own event loop."""

from __future__ import annotations

import asyncio
import builtins
import re
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from typing_extensions import Unpack

from . import models
from ._client import AsyncCommand, AsyncPtyd, AsyncSession, Result, RunOptions, Screen
from ._stream import Chunk, Transport

T = TypeVar("T")


class _Loop:
    """An event loop on a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="ptyd", daemon=True)
        self.thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The result. An interrupt, such as C-c, also ends the call on the thread."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """The items of an asynchronous iterator."""

        async def following() -> list[T]:
            async for item in items:
                return [item]
            return []

        async def close() -> None:
            if hasattr(items, "aclose"):
                await items.aclose()

        try:
            while found := self.run(following()):
                yield found[0]
        finally:
            # Nothing can be closed on a loop that has ended, and nothing is open there.
            if not self.loop.is_closed():
                self.run(close())

    def end(self) -> None:
        """Ends the thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Ptyd:
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
        self._loop = _Loop()
        try:
            self._ptyd = AsyncPtyd(url, token, socket=socket, patience=patience, silence=silence, transports=transports)
            self._loop.run(self._ptyd.__aenter__())
        except BaseException:
            self._loop.end()
            raise

    def __enter__(self) -> Ptyd:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection. A second call does nothing."""
        if self._loop.loop.is_closed():
            return
        self._loop.run(self._ptyd.__aexit__())
        self._loop.end()

    def open(self, request: models.CreateRequest | None = None, *, cwd: str | None = None, **more: Any) -> Session:
        """A new session, which ends with this handle. Further fields are those of `models.CreateRequest`."""
        return Session(self._loop, self._loop.run(self._ptyd.open(request, cwd=cwd, **more)))

    def session(self, session: str) -> Session:
        """A session that exists, by its id or name. It outlives the handle."""
        return Session(self._loop, self._loop.run(self._ptyd.session(session)))

    def sessions(self) -> list[models.TerminalSession]:
        """The sessions that live."""
        return self._loop.run(self._ptyd.sessions())

    def approvals(self) -> list[models.Approval]:
        """The requests that wait for a person."""
        return self._loop.run(self._ptyd.approvals())

    def decide(self, approval: str, decision: models.Decision) -> models.Approval:
        """Decides one of them."""
        return self._loop.run(self._ptyd.decide(approval, decision))

    def events(self) -> Iterator[models.Event]:
        """The events of all sessions from now on."""
        return self._loop.iterate(self._ptyd.events())


class _Terminal:
    """The common part of a session and a command."""

    def __init__(self, loop: _Loop, terminal: AsyncSession | AsyncCommand) -> None:
        self._loop, self._terminal, self.id = loop, terminal, terminal.id

    def wait_for(self, pattern: str | re.Pattern[str], *, timeout: float = 30) -> re.Match[str]:
        """Waits for a text or an expression in the output behind the last match."""
        return self._loop.run(self._terminal.wait_for(pattern, timeout=timeout))

    def type(self, text: str, *, secret: bool = False, paste: bool = False, approval_timeout: float = 0) -> None:
        """Types text as a person would; a line ends with `\\r` or `\\n`."""
        self._loop.run(self._terminal.type(text, secret=secret, paste=paste, approval_timeout=approval_timeout))

    def keys(self, *keys: str) -> None:
        """Presses keys: `C-c`, `Enter`, `Down*3`, `<Esc>:wq<Enter>`."""
        self._loop.run(self._terminal.keys(*keys))


class Command(_Terminal):
    """A command that was started."""

    def __init__(self, loop: _Loop, command: AsyncCommand) -> None:
        super().__init__(loop, command)
        self._command = command

    def look(self) -> models.CommandExecution:
        """The command as the server knows it."""
        return self._loop.run(self._command.look())

    def end(self, *, timeout: float | None = None) -> Result:
        """Waits until it has ended; its output is complete by then."""
        return self._loop.run(self._command.end(timeout=timeout))

    def bytes(self) -> Iterator[builtins.bytes]:
        """All bytes of its output, exactly as it wrote them."""
        return self._loop.iterate(self._command.bytes())


class Session(_Terminal):
    """One session: a shell at a terminal."""

    def __init__(self, loop: _Loop, session: AsyncSession) -> None:
        super().__init__(loop, session)
        self._session = session

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self._session.__aexit__())

    def run(self, command: str, **options: Unpack[RunOptions]) -> Result:
        """Runs a command to its end, with the options of `AsyncSession.run`. A code other than 0 is a value."""
        return self._loop.run(self._session.run(command, **options))

    def start(self, command: str, **options: Unpack[RunOptions]) -> Command:
        """Starts a command, and returns at once."""
        return Command(self._loop, self._loop.run(self._session.start(command, **options)))

    def wait_end(self, *, timeout: float | None = None) -> Result:
        """Waits for the end of the newest command of this handle."""
        return self._loop.run(self._session.wait_end(timeout=timeout))

    def screen(self) -> Screen:
        """The screen as a person sees it."""
        return self._loop.run(self._session.screen())

    def output(self, since: int = 0, *, follow: bool = False) -> Iterator[Chunk]:
        """The bytes of the terminal, until no command runs or, with `follow`, until the session ends; a gap is a value."""
        return self._loop.iterate(self._session.output(since, follow=follow))

    def info(self) -> models.TerminalSession:
        """The session as the server knows it."""
        return self._loop.run(self._session.info())

    def resize(self, cols: int, rows: int) -> None:
        """Sets the size of the terminal."""
        self._loop.run(self._session.resize(cols, rows))

    def signal(self, signal: str, target: str | int | None = None) -> None:
        """Sends a signal, such as `INT`, to the foreground, the session or a process."""
        self._loop.run(self._session.signal(signal, target))

    def ticket(self, scope: models.TicketScope = "read") -> str:
        """A ticket with which a page opens this session's socket once."""
        return self._loop.run(self._session.ticket(scope))

    def close(self) -> None:
        """Ends the session and what runs in it."""
        self._loop.run(self._session.close())
