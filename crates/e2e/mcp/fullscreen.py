"""The rules for every program that has taken the whole screen, and for the shell after it has gone.

Only this file asserts them; the tests of the programs say which keys are pressed and what comes of them.
"""

import asyncio
import os
import re
import shutil
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcp_client import CALL_SECONDS, Answer, Session, Workspace

NEVER = "never-typed"


def needs(*programs: str):
    """Marks tests for which programs have to be there, and says so where they are not."""
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root may become another user without a password")


async def shown(session: Session, pattern: str, cursor: str | None = None) -> Answer:
    """The screen, once it is as expected: a program may paint in several strokes, and the cursor comes last."""
    try:
        async with asyncio.timeout(CALL_SECONDS):
            while True:
                screen = await session.read(view="screen", timeout=0.1)
                if re.search(pattern, screen.output, re.MULTILINE) and cursor in (None, screen.fact("cursor")):
                    return screen
    except TimeoutError:
        raise AssertionError(f"no {pattern!r} with the cursor at {cursor}:\n{screen.text}") from None


class Played:
    """A program that runs in a session."""

    def __init__(self, workspace: Workspace, session: Session, begun: Answer):
        self.workspace, self.session, self.command = workspace, session, begun.fact("command")

    async def press(self, *keys: str, until: str, cursor: str | None = None) -> Answer:
        """Presses keys and gives the screen that they lead to."""
        typed = await self.session.press(*keys, wait_for=until, timeout=60)
        assert typed.is_running, typed.text
        return await shown(self.session, until, cursor)

    async def type(self, text: str, until: str, cursor: str | None = None, paste: bool = False) -> Answer:
        """Types or pastes text and gives the screen that it leads to."""
        typed = await self.session.type(text, wait_for=until, timeout=60, paste=paste)
        assert typed.is_running, typed.text
        return await shown(self.session, until, cursor)

    async def takes_no_command(self) -> None:
        """It is said to have the screen, and a command meanwhile is neither run nor typed."""
        state = (await self.session.agent.call("list_terminal_sessions")).structured["sessions"]
        assert [terminal["foreground"] for terminal in state if terminal["session_id"] == self.session.id] == ["fullscreen"]
        refused = await self.session.run(f"touch {NEVER}")
        assert (refused.is_error, "busy" in refused.text) == (True, True), refused.text
        assert NEVER.encode() not in self.workspace.journal(self.session.id)

    async def leave(self, *keys: str, exit: int = 0, paint: str) -> Answer:
        """Presses the last keys: the program ends with this code, and nothing of its paint is in the transcript."""
        # Seen on the screen, so that its absence says something.
        await shown(self.session, paint)
        ended = await self.session.to_the_end(await self.session.press(*keys, timeout=60), self.command)
        assert ended.exit == exit, ended.text
        transcript = await self.session.read(command_id=self.command)
        assert re.search(paint, transcript.output, re.MULTILINE) is None, transcript.text
        assert "\x1b" not in transcript.text
        # The shell is there, with a terminal as it was and with exact codes.
        assert (await self.session.run("(exit 7)")).exit == 7
        usable = await self.session.run("stty -a | grep -cE ' -(icanon|echo|opost)\\b'")
        assert (usable.output, usable.exit) == ("0", 1)
        assert not (self.workspace.project / NEVER).exists()
        return ended


@asynccontextmanager
async def played(workspace: Workspace, command: str, until: str, cursor: str | None = None, before: str = "", **env: str):
    """Starts a program on a screen of 80 by 12, shows that it has it, and gives it for play."""
    session = await workspace.session(dimensions={"cols": 80, "rows": 12}, env=env)
    if before:
        assert (await session.run(before)).exit == 0
    begun = await session.run(command, wait_for=until, timeout=60)
    assert (begun.is_running, "full-screen" in begun.facts) == (True, True), begun.text
    await shown(session, until, cursor)
    program = Played(workspace, session, begun)
    await program.takes_no_command()
    yield program


def lines_of(path: Path) -> list[str]:
    """The lines of a file."""
    return path.read_text().splitlines()
