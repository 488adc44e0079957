"""A real fish on a real PTY, driven as the holder drives it; `rig` has the parts shared with other shells."""

import os
from dataclasses import dataclass
from pathlib import Path

import rig

SCRIPT = Path(__file__).resolve().parent.parent / "fish.fish"
# Another version of fish than the one in the PATH.
FISH = os.environ.get("PTYD_TEST_FISH", "fish")
# The queries of fish to the terminal at its start, and the answer of the holder's server.
DEVICE_QUERIES = b"\x1b[c", b"\x1b[0c"
DEVICE_ANSWER = b"\x1b[?62;22c"


def quoted(path):
    """The path as a fish string: only these two are special between single quotes."""
    return "'" + str(path).replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass
class Shell(rig.Shell):
    """A running fish. `config` is the user's own config.fish."""

    config: str = ""
    script: Path = SCRIPT
    only_load_key: bool = True

    def _start(self, env):
        folder = self.home / ".config/fish"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.fish").write_text(self.config)
        # Without it fish starts a program in the background that reads all manual pages.
        for cache in ".local/share", ".cache":
            (self.home / cache / "fish/generated_completions").mkdir(parents=True, exist_ok=True)
        self._answered = 0
        return FISH, ["fish", *(["-l"] if self.login else []), "-i", "-C", f"source {quoted(self.script)}"]

    def pump(self, seconds):
        """Takes in what there is, and answers what the shell asks the terminal."""
        came = super().pump(seconds)
        asked = sum(self.output.count(query) for query in DEVICE_QUERIES)
        while self._answered < asked and self.status is None:
            self._answered += 1
            os.write(self.leader, DEVICE_ANSWER)
        return came
