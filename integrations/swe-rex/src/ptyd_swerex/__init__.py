"""A runtime of SWE-ReX whose sessions and commands run in terminals of ptyd."""

from __future__ import annotations

import asyncio
import io
import logging
import math
import re
import tarfile
import time
from pathlib import Path, PurePosixPath

from ptyd import AsyncCommand, AsyncPtyd, AsyncSession, Ended, PtydError, Result, TimedOut
from ptyd.machine import Machine
from swerex.exceptions import (
    BashIncorrectSyntaxError,
    CommandTimeoutError,
    NoExitCodeError,
    NonZeroExitCodeError,
    SessionDoesNotExistError,
    SessionExistsError,
    SwerexException,
)
from swerex.runtime.abstract import (
    AbstractRuntime,
    Action,
    BashAction,
    BashInterruptAction,
    BashObservation,
    CloseBashSessionResponse,
    CloseResponse,
    CloseSessionRequest,
    CloseSessionResponse,
    Command,
    CommandResponse,
    CreateBashSessionResponse,
    CreateSessionRequest,
    CreateSessionResponse,
    IsAliveResponse,
    Observation,
    ReadFileRequest,
    ReadFileResponse,
    UploadRequest,
    UploadResponse,
    WriteFileRequest,
    WriteFileResponse,
)

__all__ = ["PtydRuntime"]


class PtydRuntime(AbstractRuntime):
    """The machine of the server at `url`, or of this user's own."""

    def __init__(self, url: str | None = None, token: str | None = None, *, logger: logging.Logger | None = None) -> None:
        self.logger = logger or logging.getLogger("ptyd-swerex")
        self._address = (url, token)
        self._ptyd: AsyncPtyd | None = None
        self._sessions: dict[str, Bash] = {}

    async def _connected(self) -> AsyncPtyd:
        if self._ptyd is None:
            ptyd = AsyncPtyd(*self._address)
            await ptyd.__aenter__()
            self._ptyd = ptyd
        return self._ptyd

    async def is_alive(self, *, timeout: float | None = None) -> IsAliveResponse:
        try:
            await asyncio.wait_for((await self._connected()).sessions(), timeout)
        except (PtydError, TimeoutError) as error:
            return IsAliveResponse(is_alive=False, message=str(error) or type(error).__name__)
        return IsAliveResponse(is_alive=True)

    async def create_session(self, request: CreateSessionRequest) -> CreateSessionResponse:
        if request.session in self._sessions:
            raise SessionExistsError(f"session {request.session} already exists")
        bash = Bash(await (await self._connected()).open(shell="bash"))
        self._sessions[request.session] = bash
        output = ""
        for path in request.startup_source:
            output += await bash.source(path, request.startup_timeout)
        return CreateBashSessionResponse(output=output)

    async def run_in_session(self, action: Action) -> Observation:
        bash = self._found(action.session)
        return await (bash.interrupt(action) if isinstance(action, BashInterruptAction) else bash.run(action))

    async def close_session(self, request: CloseSessionRequest) -> CloseSessionResponse:
        await self._found(request.session).session.close()
        del self._sessions[request.session]
        return CloseBashSessionResponse()

    def _found(self, session: str) -> Bash:
        if session not in self._sessions:
            raise SessionDoesNotExistError(f"session {session!r} does not exist")
        return self._sessions[session]

    async def execute(self, command: Command) -> CommandResponse:
        async with await (await self._connected()).open(cwd=command.cwd, shell="bash") as session:
            return await _executed(Machine(session), command)

    async def read_file(self, request: ReadFileRequest) -> ReadFileResponse:
        async with await (await self._connected()).open(shell="bash") as session:
            content = await Machine(session).read(request.path)
        # The same decoder as `Path.read_text`.
        with io.TextIOWrapper(io.BytesIO(content), encoding=request.encoding or "utf-8", errors=request.errors) as text:
            return ReadFileResponse(content=text.read())

    async def write_file(self, request: WriteFileRequest) -> WriteFileResponse:
        async with await (await self._connected()).open(shell="bash") as session:
            await Machine(session).write(request.path, request.content.encode())
        return WriteFileResponse()

    async def upload(self, request: UploadRequest) -> UploadResponse:
        source = Path(request.source_path)
        async with await (await self._connected()).open(shell="bash") as session:
            machine = Machine(session)
            if source.is_dir():
                packed = io.BytesIO()
                with tarfile.open(fileobj=packed, mode="w") as tar:
                    tar.add(source, arcname=".")
                await machine.unpack(packed.getvalue(), request.target_path)
            else:
                target = PurePosixPath(request.target_path)
                if await machine.is_folder(request.target_path):
                    target /= source.name
                await machine.write(str(target), source.read_bytes())
        return UploadResponse()

    async def close(self) -> CloseResponse:
        sessions, self._sessions = self._sessions, {}
        for bash in sessions.values():
            await bash.session.close()
        if self._ptyd is not None:
            await self._ptyd.__aexit__()
            self._ptyd = None
        return CloseResponse()


class Bash:
    """One session."""

    def __init__(self, session: AsyncSession) -> None:
        self.session = session
        # The newest command, until its end is told.
        self._command: AsyncCommand | None = None

    async def _is_busy(self) -> bool:
        """Whether that command runs still, as ptyd knows it."""
        return self._command is not None and (await self._command.look(0))["status"] == "running"

    async def source(self, path: str, timeout: float) -> str:
        """Reads a file of commands into the shell."""
        return (await self._ended(f"source {path}", timeout)).output

    async def run(self, action: BashAction) -> BashObservation:
        """Runs a command, or types it into the program that runs."""
        if action.is_interactive_command or action.is_interactive_quit:
            return await self._converse(action)
        if await self._is_busy():
            raise SwerexException("a command still runs in this session; interrupt it first")
        if action.expect:
            observation = await self._converse(action)
        else:
            result = await self._ended(action.command, action.timeout)
            observation = BashObservation(output=result.output, exit_code=result.code)
        if action.check == "ignore":
            observation.exit_code = None
        elif action.check == "raise" and not observation.expect_string and observation.exit_code != 0:
            about = f"{action.error_msg}: " if action.error_msg else ""
            kind = NoExitCodeError if observation.exit_code is None else NonZeroExitCodeError
            raise kind(f"{about}{action.command!r} ended with the code {observation.exit_code}: {observation.output!r}")
        return observation

    async def interrupt(self, action: BashInterruptAction) -> BashObservation:
        """Interrupts what runs, and kills it if it does not end."""
        if self._command is None:
            return BashObservation()
        if not await self._is_busy():
            return self._observed(await self._command.end())
        for _ in range(action.n_retry):
            await self.session.keys("C-c")
            try:
                return self._observed(await self.session.wait_end(timeout=action.timeout))
            except TimedOut:
                continue
        # The shell itself stays, also if it is the program that ignores the interrupts.
        shell = (await self.session.info()).get("pid")
        for process in (await self.session.call("GET", "processes"))["processes"]:
            if process["isForeground"] and process["pid"] != shell:
                await self.session.signal("KILL", process["pid"])
        try:
            observation = self._observed(await self.session.wait_end(timeout=max(action.timeout, 5)))
        except TimedOut as error:
            raise CommandTimeoutError("neither an interrupt nor a kill ended the command") from error
        observation.failure_reason = "the program ignored the interrupts, and was killed"
        return observation

    async def _converse(self, action: BashAction) -> BashObservation:
        """Waits for one of the texts that are expected, or for the end of the program."""
        deadline = math.inf if action.timeout is None else time.monotonic() + action.timeout
        if await self._is_busy():
            await self.session.type(action.command.removesuffix("\n") + "\n")
        else:
            self._command = await self.session.start(action.command)
        try:
            if not action.is_interactive_quit and action.expect:
                either = re.compile("|".join(f"(?:{one})" for one in action.expect))
                match = await self.session.wait_for(either, timeout=deadline - time.monotonic())
                expected = next((one for one in action.expect if re.fullmatch(one, match[0])), match[0])
                output = match.string[: match.start()].lstrip().removeprefix(action.command).strip()
                return BashObservation(output=output, expect_string=expected)
        except TimedOut as error:
            raise _late(action) from error
        except Ended:
            pass
        try:
            left = None if action.timeout is None else deadline - time.monotonic()
            return self._observed(await self.session.wait_end(timeout=left))
        except TimedOut as error:
            raise _late(action) from error

    async def _ended(self, command: str, timeout: float | None) -> Result:
        self._command = await self.session.start(command)
        try:
            result = await self._command.end(timeout=timeout)
        except TimedOut as error:
            raise CommandTimeoutError(f"timeout after {timeout} seconds while running command {command!r}") from error
        self._command = None
        if result.error and result.error.startswith("incomplete command"):
            raise BashIncorrectSyntaxError(f"{command!r}: {result.error}", extra_info={"bash_stdout": "", "bash_stderr": result.output})
        return result

    def _observed(self, result: Result) -> BashObservation:
        self._command = None
        return BashObservation(output=result.output, exit_code=result.code)


def _late(action: BashAction) -> CommandTimeoutError:
    return CommandTimeoutError(f"timeout after {action.timeout} seconds while running command {action.command!r}")


async def _executed(machine: Machine, command: Command) -> CommandResponse:
    words = [command.command] if isinstance(command.command, str) else command.command
    if command.shell:
        words = ["/bin/sh", "-c", *words]
    try:
        merged = command.merge_output_streams
        result, output, errors = await machine.execute(words, env=command.env, merged=merged, timeout=command.timeout)
    except TimedOut as error:
        raise CommandTimeoutError(f"Timeout ({command.timeout}s) exceeded while running command") from error
    told = {"stdout": output.decode(errors="backslashreplace"), "stderr": errors.decode(errors="backslashreplace")}
    if command.check and result.code != 0:
        about = f"{command.error_msg}: " if command.error_msg else ""
        kind = NoExitCodeError if result.code is None else NonZeroExitCodeError
        raise kind(f"{about}{command.command!r} ended with the code {result.code}: {told}")
    return CommandResponse(exit_code=result.code, **told)
