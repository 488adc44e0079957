"""The methods that a terminal for agents offers. A driver speaks to one product and adds nothing that the product lacks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any


class NotOffered(Exception):
    """The product does not claim to do this. The case is `n/a` for it."""


class SaidNo(Exception):
    """The product refused, in its own words. Any other exception is a failure of the product or its driver."""


@dataclass(frozen=True)
class Seen:
    """The product's answer about a command."""

    # ended; running; matched: the pattern of a wait has come; asks, asks_secret, fullscreen, stopped: it runs, and the product says why it waits; refused: the product did not
    # pass it on; gone: the session has ended.
    state: str
    # The exit code, if the product told one: of the command, or of the shell if that has ended.
    code: int | None = None
    output: str = ""
    # The product's own words, for the report.
    words: str = ""


@dataclass(frozen=True)
class Place:
    """Where a driver works: a case changes nothing outside of it."""

    home: Path
    env: dict[str, str]


class Driver:
    """One product behind one of its doors. Each method answers, or raises `NotOffered`."""

    # Versions of what is driven, for the table.
    version = ""
    # Claims that some cases need: `asks` (it says that a program wants input), `secrets` (it keeps passwords out of its records), `text`
    # (output is text without control sequences), `screen`, `queries` (programs that ask the terminal get an answer), `sessions` (several
    # at once), `shell` (commands of a session share one shell), `exits` (it tells the code of a shell that has ended), `commands` (it knows
    # whether a command runs, and refuses another one meanwhile), `survives` (commands outlive its server).
    claims: frozenset[str] = frozenset({"sessions", "shell"})
    # The process that a crash of the product kills. None: it lives in the client, and a crash of it is the client's own.
    server: int | None = None

    def __init__(self, place: Place) -> None:
        self.place = place

    def open(self, cwd: Path) -> Any:
        """A new session, which the other methods take."""
        raise NotOffered

    def run(self, session: Any, command: str, patience: float) -> Seen:
        """Runs a command until it ends, until it asks, or for so many seconds."""
        raise NotOffered

    def start(self, session: Any, command: str) -> None:
        """Starts a command, and does not wait for its end."""
        raise NotOffered

    def type(self, session: Any, text: str) -> None:
        """Types text as it is."""
        raise NotOffered

    def keys(self, session: Any, *names: str) -> None:
        """Presses keys: `C-d`, `C-z`, `Enter`, `Escape`, or one character."""
        raise NotOffered

    def wait(self, session: Any, patience: float, pattern: str | None = None) -> Seen:
        """Waits for the end of the newest command, for a question, or for a pattern in its output."""
        raise NotOffered

    def output(self, session: Any) -> str:
        """The whole output of the newest command."""
        raise NotOffered

    def screen(self, session: Any) -> str:
        """The screen as text."""
        raise NotOffered

    def views(self, session: Any) -> dict[str, str]:
        """Every other text that the product shows of a session or its newest command: logs, lists, recordings."""
        return {}

    def interrupt(self, session: Any) -> None:
        """Interrupts what runs."""
        raise NotOffered

    def close(self, session: Any) -> None:
        """Ends a session and what runs in it."""
        raise NotOffered


# The bytes of keys, for products that have no names for them.
BYTES = {"Enter": "\r", "Escape": "\x1b", "C-c": "\x03", "C-d": "\x04", "C-z": "\x1a"}


def bytes_of(names: tuple[str, ...]) -> str:
    """The text that these keys send."""
    return "".join(BYTES.get(name, name) for name in names)
