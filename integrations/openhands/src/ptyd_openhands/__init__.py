"""OpenHands' terminal on ptyd."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping

from openhands.tools.terminal import terminal
from openhands.tools.terminal.env import build_terminal_env, normalize_terminal_env
from openhands.tools.terminal.terminal import TerminalSession, factory, subprocess_terminal
from openhands.tools.terminal.terminal.interface import TerminalInterface, parse_ctrl_key
from ptyd import PtydError

from ._terminal import Terminal

__all__ = ["PtydTerminal", "create_session", "install"]

# OpenHands' names of keys, with those of ptyd.
_KEYS = {
    "ENTER": "Enter", "TAB": "Tab", "BS": "BSpace", "ESC": "Escape", "UP": "Up", "DOWN": "Down", "LEFT": "Left", "RIGHT": "Right",
    "HOME": "Home", "END": "End", "PGUP": "PageUp", "PGDN": "PageDown", "C-L": "C-l", "C-D": "C-d", "C-C": "C-c",
}  # fmt: skip


class PtydTerminal(TerminalInterface):
    """A terminal of ptyd, at PTYD_URL or this user's own server."""

    def __init__(
        self, work_dir: str, username: str | None = None, shell_path: str | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(work_dir, username)
        self.shell_path, self._env = shell_path, normalize_terminal_env(env)
        self._open: Terminal | None = None

    @property
    def _terminal(self) -> Terminal:
        if self._open is None:
            raise RuntimeError("the terminal is not initialized")
        return self._open

    def initialize(self) -> None:
        if self._initialized:
            return
        self.shell_path = _checked(self.shell_path)
        # The server's machine may be another, which has nothing to do with the variables of this one.
        inherited = dict(self._env or {}) if "PTYD_URL" in os.environ else build_terminal_env(self._env)
        env = {"GIT_PAGER": "cat", "PAGER": "cat"} | {name: it for name, it in inherited.items() if not name.startswith("PTYD_")}
        self._open = Terminal(os.path.abspath(self.work_dir), self.shell_path, env)
        self._initialized = True

    def close(self) -> None:
        if not self._closed and self._open is not None:
            self._open.close()
        self._closed = True

    def send_keys(self, text: str, enter: bool = True) -> None:
        key = _KEYS.get(text.strip().upper()) or parse_ctrl_key(text)
        if key is None:
            self._terminal.send(text, enter=enter)
        else:
            self._terminal.press(key)

    def read_screen(self) -> str:
        return self._terminal.read()

    def clear_screen(self) -> None:
        self._terminal.clear()

    def interrupt(self) -> bool:
        if self._open is None:
            return False
        try:
            self._open.press("C-c")
        except PtydError:
            return False
        return True

    def is_running(self) -> bool:
        return self._open is not None and self._open.is_running


def _checked(path: str | None) -> str:
    """The shell, or the error that OpenHands' own backend raises."""
    path = path or shutil.which("bash")
    if path is None:
        raise RuntimeError("Could not find bash in PATH. Please provide an explicit shell_path.")
    if not os.path.isfile(path):
        raise RuntimeError(f"Shell binary not found at: {path}")
    if not os.access(path, os.X_OK):
        raise RuntimeError(f"Shell binary is not executable: {path}")
    return path


def create_session(
    work_dir: str,
    no_change_timeout_seconds: int | None = None,
    shell_path: str | None = None,
    env: Mapping[str, str] | None = None,
) -> TerminalSession:
    """A session of OpenHands on ptyd."""
    return TerminalSession(PtydTerminal(work_dir, None, shell_path, env), no_change_timeout_seconds)


def install() -> None:
    """Makes ptyd the backend `subprocess`; OpenHands has no list to which a further backend could be added."""
    for module in subprocess_terminal, terminal:
        vars(module)["SubprocessTerminal"] = PtydTerminal
    # A reset makes its session without a type, which would mean tmux.
    vars(factory)["_is_tmux_available"] = lambda: False
