"""A Prometheus of the tests' own."""

import asyncio
import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from mcp_client import CALL_SECONDS, LOOPBACK, free_port


def needed(program: str) -> str:
    """Skips a test where a program is not installed."""
    if shutil.which(program) is None:
        pytest.skip(f"not installed: {program}")
    return program


class Prometheus:
    """A Prometheus of its own with these files, which looks often."""

    def __init__(self, folder: Path, texts: dict[str, str]):
        folder.mkdir()
        for name, text in texts.items():
            # Each of the two intervals.
            assert name != "prometheus.yml" or text.count(": 15s") == 2
            (folder / name).write_text(text.replace(": 15s", ": 100ms") if name == "prometheus.yml" else text)
        self.address, self.folder = f"{LOOPBACK}:{free_port()}", folder
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [needed("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={self.address}"],
                cwd=folder, stdout=log, stderr=log,
            )  # fmt: skip

    async def ask(self, path: str):
        """The data of an answer, once it answers."""
        while self.process.poll() is None:
            try:
                with await asyncio.to_thread(urllib.request.urlopen, f"http://{self.address}/api/v1/{path}") as answer:
                    return json.load(answer)["data"]
            except OSError:
                await asyncio.to_thread(self._wait)
        raise AssertionError((self.folder / "log").read_text())

    def _wait(self) -> None:
        # Nothing tells that it listens now; its end is told at once.
        try:
            self.process.wait(0.02)
        except subprocess.TimeoutExpired:
            pass

    async def samples(self, query: str) -> list:
        """The samples of a query that has some."""
        async with asyncio.timeout(CALL_SECONDS):
            while not (found := (await self.ask(f"query?query={urllib.parse.quote(query)}"))["result"]):
                await asyncio.to_thread(self._wait)
        return found

    async def alerts(self) -> set[str]:
        """The alerts that fire, or will do so soon, after all of them were evaluated twice from now on."""
        async def evaluated() -> list[str]:
            rules = (await self.ask("rules"))["groups"][0]["rules"]
            assert all(rule["health"] in ("ok", "unknown") for rule in rules), rules
            return [rule["lastEvaluation"] for rule in rules]

        before = await evaluated()
        async with asyncio.timeout(CALL_SECONDS):
            for _ in range(2):
                while set(before) & set(now := await evaluated()):
                    await asyncio.to_thread(self._wait)
                before = now
        return {alert["labels"]["alertname"] for alert in (await self.ask("alerts"))["alerts"]}

    def end(self) -> None:
        """Ends it."""
        self.process.terminate()
        self.process.wait()
