"""ptyd's client for TypeScript, from `clients/typescript`: a process of Node speaks lines of JSON to this driver."""

import json
import subprocess
from pathlib import Path

from driver import SaidNo, Seen

from .ptyd_server import Ptyd

PROGRAM = Path(__file__).with_suffix(".mjs")


class driver(Ptyd):
    """`Ptyd` of the built package."""

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        package = Path(place.env["PTYD_CONFORMANCE_DIR"]) / "typescript/client/dist/index.js"
        words = ["node", str(PROGRAM), str(package)]
        self.node = subprocess.Popen(words, env=place.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, method: str, session: str | None, *words):
        """The answer of a method of the program."""
        self.node.stdin.write(json.dumps([method, session, *words]) + "\n")
        self.node.stdin.flush()
        line = self.node.stdout.readline()
        if not line:
            raise ConnectionError("the program has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise SaidNo(answer["error"]) if answer["isRefused"] else RuntimeError(answer["error"])
        return answer["value"]

    def open(self, cwd):
        return self.ask("open", None, str(cwd))

    def run(self, session, command, patience):
        return Seen(**self.ask("run", session, command, patience))

    def start(self, session, command):
        self.ask("start", session, command)

    def type(self, session, text):
        self.ask("type", session, text)

    def keys(self, session, *names):
        self.ask("keys", session, *names)

    def wait(self, session, patience, pattern=None):
        return Seen(**self.ask("wait", session, patience, pattern))

    def output(self, session):
        return self.ask("output", session)

    def screen(self, session):
        return self.ask("screen", session)

    def interrupt(self, session):
        self.keys(session, "C-c")

    def close(self, session):
        self.ask("close", session)
