"""The programs of one sandbox."""

from __future__ import annotations

import asyncio
import shlex
from collections import deque
from urllib.parse import urlsplit

from agents.sandbox.session.pty_output import collect_pty_output
from agents.sandbox.session.pty_types import PtyExecUpdate, allocate_pty_process_id, clamp_pty_yield_time_ms, resolve_pty_write_yield_time_ms
from ptyd import AsyncCommand, AsyncPtyd, AsyncSession
from ptyd.machine import Machine

# The most programs that a sandbox leaves running.
_MAX = 64


class Process:
    """A program that goes on between two calls."""

    def __init__(self, session: AsyncSession, command: AsyncCommand, tty: bool) -> None:
        self.session, self.command, self.tty = session, command, tty
        self.chunks: deque[bytes] = deque()
        self.lock, self.told, self.is_done = asyncio.Lock(), asyncio.Event(), False
        self.code: int | None = None
        self.error: Exception | None = None
        self.following = asyncio.create_task(self._follow())

    async def _follow(self) -> None:
        try:
            async for part in self.command.bytes():
                if part:
                    self.chunks.append(part)
                    self.told.set()
            result = await self.command.end()
            self.code = result.code
            if result.code is None:
                self.chunks.append(f"\r\n[{result.error or 'nobody knows the exit code'}]\r\n".encode())
        except Exception as error:
            self.error = error
        self.is_done = True
        self.told.set()


class Processes:
    """All programs of a sandbox. Each that goes on has a session of its own; the others use idle ones."""

    def __init__(self, url: str | None, token: str | None) -> None:
        self.host = urlsplit(url or "http://127.0.0.1").hostname or "127.0.0.1"
        self._address = (url, token)
        self._ptyd: AsyncPtyd | None = None
        self._idle: list[AsyncSession] = []
        self.running: dict[int, Process] = {}

    async def _open(self) -> AsyncSession:
        if self._ptyd is None:
            ptyd = AsyncPtyd(*self._address)
            await ptyd.__aenter__()
            self._ptyd = ptyd
        return await self._ptyd.open(shell="bash")

    async def execute(self, words: list[str], *, timeout: float | None) -> tuple[int | None, bytes, bytes]:
        """The code, output and errors of a program."""
        async with _Used(self) as machine:
            result, output, errors = await machine.execute(words, timeout=timeout)
            return result.code, output, errors

    async def read(self, path: str) -> bytes:
        """The bytes of a file."""
        async with _Used(self) as machine:
            return await machine.read(path)

    async def write_file(self, path: str, content: bytes) -> None:
        """Writes a file."""
        async with _Used(self) as machine:
            await machine.write(path, content)

    async def unpack(self, tar: bytes, folder: str) -> None:
        """Unpacks an archive into a folder that may exist."""
        async with _Used(self) as machine:
            await machine.unpack(tar, folder, into=True)

    async def start(self, words: list[str], *, tty: bool, seconds: float | None, max_tokens: int | None) -> PtyExecUpdate:
        """Starts a program that may go on."""
        if len(self.running) >= _MAX:
            raise RuntimeError(f"{_MAX} programs run in this sandbox")
        session = await self._open()
        command = shlex.join(words)
        if not tty:
            # Both streams without a terminal, as a pipe has them; the code is that of the program.
            await session.run("stty -opost; set -o pipefail")
            command = f"{command} </dev/null 2>&1 | cat"
        process = Process(session, await session.start(command), tty)
        number = allocate_pty_process_id(set(self.running))
        self.running[number] = process
        milliseconds = clamp_pty_yield_time_ms(10_000 if seconds is None else int(seconds * 1000))
        return await self._told(number, process, milliseconds, max_tokens)

    async def write(self, number: int, process: Process, chars: str, *, seconds: float | None, max_tokens: int | None) -> PtyExecUpdate:
        """Types into a program that was started."""
        if chars and not process.tty:
            raise RuntimeError("stdin is not available for this process")
        if chars and not process.is_done:
            await process.session.type(chars)
        asked = 250 if seconds is None else int(seconds * 1000)
        milliseconds = resolve_pty_write_yield_time_ms(yield_time_ms=asked, input_empty=not chars)
        return await self._told(number, process, milliseconds, max_tokens)

    async def _told(self, number: int, process: Process, milliseconds: int, max_tokens: int | None) -> PtyExecUpdate:
        output, tokens, is_over = await collect_pty_output(
            output_chunks=process.chunks,
            output_lock=process.lock,
            output_notify=process.told,
            is_done=lambda: process.is_done,
            yield_time_ms=milliseconds,
            max_output_tokens=max_tokens,
        )
        if not is_over:
            return PtyExecUpdate(process_id=number, output=output, exit_code=None, original_token_count=tokens)
        self.running.pop(number, None)
        await process.session.close()
        if process.error is not None:
            raise process.error
        return PtyExecUpdate(process_id=None, output=output, exit_code=process.code, original_token_count=tokens)

    async def terminate_all(self) -> None:
        """Ends the programs that go on."""
        running, self.running = self.running, {}
        for process in running.values():
            process.following.cancel()
            await process.session.close()

    async def close(self) -> None:
        """Ends all programs and the connection."""
        await self.terminate_all()
        idle, self._idle = self._idle, []
        for session in idle:
            await session.close()
        if self._ptyd is not None:
            await self._ptyd.__aexit__()
            self._ptyd = None


class _Used:
    """A session for one use. A use that fails may leave a program behind, so that its session ends."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    async def __aenter__(self) -> Machine:
        idle = self._processes._idle
        self._session = idle.pop() if idle else await self._processes._open()
        return Machine(self._session)

    async def __aexit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if error is None or isinstance(error, FileNotFoundError):
            self._processes._idle.append(self._session)
        else:
            await self._session.close()
