"""Files and programs of the machine on which a session runs, exactly, though a terminal changes bytes."""

from __future__ import annotations

import base64
import shlex
from pathlib import PurePosixPath
from shlex import quote

from ._client import AsyncSession, Result
from ._http import PtydError

# The most bytes that one command carries, as a policy allows 64 KiB of text.
_PART = 36_000
# The code with which a check fails; the programs that follow have codes of their own.
_MISSING = 44

# Puts the file `t` in the place of the file `p`, whose mode and links stay. The new file is whole before it has the name, as a full disk
# ends a write in its middle. A pipe or a device has no content to keep.
_REPLACE = (
    '[ ! -L "$p" ] || p=$(readlink -f -- "$p") || exit; '
    'if [ -e "$p" ] && [ ! -f "$p" ]; then cat "$t" > "$p"; exit; fi; '
    'n=$(mktemp -- "$(dirname -- "$p")/.ptyd-XXXXXX") || exit; '
    '{ if [ -e "$p" ]; then cp -p -- "$p" "$n"; else chmod =rw -- "$n"; fi && cat "$t" > "$n" && mv -f -- "$n" "$p"; } '
    '|| { rm -f -- "$n"; exit 1; }'
)


class Machine:
    """Files and programs behind a session that runs nothing else."""

    def __init__(self, session: AsyncSession) -> None:
        self.session = session

    async def read(self, path: str) -> bytes:
        """The bytes of a file, as base64 through the terminal, which would change line ends."""
        return await self._sent(quote(path), path)

    async def _sent(self, word: str, path: str) -> bytes:
        command = await self.session.start(f"( [ -e {word} ] || exit {_MISSING}; base64 -w 0 -- {word} )")
        sent = b"".join([part async for part in command.bytes()])
        result = await command.end()
        if result.code == _MISSING:
            raise FileNotFoundError(f"No such file or directory: {path!r}")
        if result.code != 0:
            raise OSError(f"{path}: {result.error or result.output.strip() or result.code}")
        return base64.b64decode(sent, validate=True)

    async def execute(
        self, words: list[str], *, env: dict[str, str] | None = None, merged: bool = False, timeout: float | None = None
    ) -> tuple[Result, bytes, bytes]:
        """How a program ended that reads nothing, with its output and its errors. `env` is all of its environment."""
        # A terminal has one stream. The files have no name, so that nothing is left, however it ends.
        await self.must('o=$(mktemp) && e=$(mktemp) && exec {out}<>"$o" {err}<>"$e" && rm "$o" "$e"')
        words = ["env", "--", *words] if env is None else ["env", "-i", "--", *(f"{name}={value}" for name, value in env.items()), *words]
        command = f"{shlex.join(words)} </dev/null >&$out 2>&{'$out' if merged else '$err'} {{out}}>&- {{err}}>&-"
        result = await (await self.session.start(command)).end(timeout=timeout)
        output, errors = await self._sent("/dev/fd/$out", "output"), await self._sent("/dev/fd/$err", "errors")
        await self.must("exec {out}>&- {err}>&-")
        return result, output, errors

    async def write(self, path: str, content: bytes) -> None:
        """Writes a file and the folders above it. The file is there whole or, if it fails, with its old content."""
        temporary = await self.temporary()
        try:
            for start in range(0, len(content), _PART):
                part = base64.b64encode(content[start : start + _PART]).decode()
                await self.must(f"printf %s {part} | base64 -d >> {temporary}")
            await self.must(f"mkdir -p -- {quote(str(PurePosixPath(path).parent))} && ( p={quote(path)}; t={temporary}; {_REPLACE} )")
        finally:
            await self.session.run(f"rm -f {temporary}")

    async def unpack(self, tar: bytes, folder: str, *, into: bool = False) -> None:
        """Makes a folder of an archive, or unpacks it into one that may exist."""
        temporary, name, make = await self.temporary(), quote(folder), "mkdir -p" if into else "mkdir"
        try:
            await self.write(temporary, tar)
            await self.must(f"mkdir -p -- {quote(str(PurePosixPath(folder).parent))} && {make} -- {name} && tar -xf {temporary} -C {name}")
        finally:
            await self.session.run(f"rm -f {temporary}")

    async def is_folder(self, path: str) -> bool:
        """Whether it is a folder."""
        return (await self.session.run(f"[ -d {quote(path)} ]")).ok

    async def temporary(self) -> str:
        """The name of a new file, quoted."""
        return quote((await self.must("mktemp")).strip())

    async def must(self, command: str) -> str:
        """The output of a command that succeeds."""
        result = await self.session.run(command)
        if not result.ok:
            raise PtydError(f"{command[:200]!r}: {result.error or result.code}: {result.output}")
        return result.output
