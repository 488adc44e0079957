"""A terminal that shows each command between two prompts, as OpenHands reads it. It needs nothing of OpenHands."""

from __future__ import annotations

import json
import weakref
from contextlib import ExitStack

from ptyd import Command, Ptyd, Refused, Session, TimedOut
from ptyd.models import CommandExecution, CreateRequest

BEGIN, END = "###PS1JSON###", "###PS1END###"
# A program may print the marks of a prompt. A word joiner in them keeps the reader from taking its output for a prompt.
_MARK, _HARMLESS = "###PS1", "###\u2060PS1"
# Seconds that the first look after an input waits for the end; the reader looks again after half a second.
_FIRST_LOOK = 0.4


class Terminal:
    """One shell of ptyd. Its screen ends with a prompt exactly when ptyd attests that no command runs."""

    def __init__(self, work_dir: str, shell: str | None, env: dict[str, str], url: str | None = None, token: str | None = None) -> None:
        self._stack = ExitStack()
        self._ptyd = self._stack.enter_context(Ptyd(url, token))
        self._made: CreateRequest = {"cwd": work_dir, "env": env, "dimensions": {"cols": 256, "rows": 200}}
        if shell is not None:
            self._made["shell"] = shell
        # A client that is never closed would wait for its own thread while Python ends.
        self._finalizer = weakref.finalize(self, self._stack.close)
        self._session = self._open()
        self._user, self._host = self._session.run("id -un; uname -n").output.splitlines()
        self._command: Command | None = None
        # A text to which the shell needs more lines, or whose Enter has not come.
        self._held = ""
        self._code: int | None = None
        # The text before the output, and the text behind it.
        self._before, self._after, self._may_wait = self._prompt(None, work_dir), "", False

    def _open(self) -> Session:
        return self._stack.enter_context(self._ptyd.open(self._made))

    def close(self) -> None:
        """Ends the session and what runs in it."""
        self._finalizer()

    @property
    def is_running(self) -> bool:
        """Whether a command runs, or waits for more lines."""
        self.read()
        return self._command is not None or bool(self._held)

    def send(self, text: str, *, enter: bool) -> None:
        """Types into the program that runs, or runs the text as a command."""
        self.read()
        if enter and not text.endswith("\n"):
            text += "\n"
        if self._command is not None:
            self._session.type(text)
        elif text.endswith("\n"):
            self._start(self._held + text.removesuffix("\n"))
        else:
            self._held += text
        self._may_wait = True

    def press(self, key: str) -> None:
        """Presses a key in the program that runs. At the prompt it gives a new prompt, and no key reaches the shell."""
        self.read()
        if self._command is not None:
            self._session.keys(key)
        elif key == "Enter" and self._held:
            self._start(self._held)
        else:
            if key == "C-c":
                self._held, self._code = "", 130
            self._after += "\n" + self._prompt(self._code, self._session.info()["cwd"])
        self._may_wait = True

    def read(self) -> str:
        """All that is shown since the last `clear`."""
        if self._command is None:
            return self._before + _harmless(self._held) + self._after
        if self._may_wait:
            self._may_wait = False
            try:
                self._command.end(timeout=_FIRST_LOOK)
            except TimedOut:
                pass
        seen = self._command.look()
        output = _harmless(seen.get("output", ""))
        if seen["status"] == "running":
            return self._before + output
        self._command = None
        if seen.get("error", "").startswith("incomplete command"):
            self._held = seen["command"] + "\n"
            return self.read()
        self._held = ""
        self._before += output + ("" if output.endswith("\n") or not output else "\n") + _told(seen)
        self._code = seen.get("exitCode") if seen["status"] == "completed" else None
        self._after = self._prompt(self._code, seen.get("cwd", ""))
        return self._before + self._after

    def clear(self) -> None:
        """Forgets all but the newest prompt."""
        self.read()
        if self._after:
            self._before, self._after = self._after[self._after.rindex(BEGIN) :], ""

    def _start(self, text: str) -> None:
        shown = _harmless(text) + "\n"
        try:
            self._command = self._session.start(text)
        except Refused:
            if self._session.info()["status"] == "running":
                raise
            self._session = self._open()
            self._command = self._session.start(text)
            shown += f"[The shell had ended. This is a new one in {self._made['cwd']}.]\n"
        self._before, self._after, self._held = self._before + self._after + shown, "", ""

    def _prompt(self, code: int | None, cwd: str) -> str:
        facts = {
            "pid": "",
            # The reader takes a code that is not a number for -1.
            "exit_code": "" if code is None else str(code),
            "username": self._user,
            "hostname": self._host,
            "working_dir": cwd,
            "py_interpreter_path": self._session.info().get("python", "") if code is not None else "",
        }
        return f"{BEGIN}\n{json.dumps(facts, indent=2)}\n{END}\n"


def _harmless(text: str) -> str:
    return text.replace(_MARK, _HARMLESS)


def _told(seen: CommandExecution) -> str:
    """Why the code is not known."""
    return f"[{seen['error']}]\n" if "error" in seen else ""
