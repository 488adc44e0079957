"""ptyd's REST, with a bearer token over TCP."""

import base64
import http.client
import json
from urllib.parse import urlencode

from driver import Seen

from .ptyd_server import Ptyd, Refused, state_of


class driver(Ptyd):
    """One connection for each request."""

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        self.serve()
        self.newest = {}

    def ask(self, method: str, path: str, body: dict | None = None, **query) -> dict:
        """The JSON of an answer."""
        if self.server is None:
            # The server was killed; the administrator starts the next one.
            self.serve()
        connection = http.client.HTTPConnection(self.listen)
        try:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            connection.request(method, f"/terminals{path}?{urlencode(query)}", None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            found = json.loads(answer.read())
            if answer.status >= 400:
                raise Refused(found["code"], found["detail"])
            return found
        finally:
            connection.close()

    def seen(self, session: str, command: dict) -> Seen:
        """The state of a command."""
        self.newest[session] = command["id"]
        state = state_of(command["status"], command.get("foreground"), False)
        code = command.get("exitCode")
        if state == "gone":
            # It ended with its shell, whose code the session has.
            code = self.ask("GET", f"/{session}")["exit"].get("exitCode")
        return Seen(state, code, command.get("output", ""), command.get("error", ""))

    def open(self, cwd):
        return self.ask("POST", "", {"cwd": str(cwd)})["id"]

    def run(self, session, command, patience):
        try:
            return self.seen(session, self.ask("POST", f"/{session}/execute", {"command": command, "timeout": patience}))
        except Refused as told:
            return told.seen()

    def start(self, session, command):
        self.seen(session, self.ask("POST", f"/{session}/execute", {"command": command, "waitForCompletion": False}))

    def type(self, session, text):
        self.ask("POST", f"/{session}/input", {"input": text})

    def keys(self, session, *names):
        self.ask("POST", f"/{session}/input", {"keys": names})

    def wait(self, session, patience, pattern=None):
        more = {"waitFor": pattern} if pattern else {}
        try:
            told = self.ask("POST", f"/{session}/wait", {"timeout": patience} | more)
            if told["endedBy"] == "matched":
                return Seen("matched", output=told["output"])
        except Refused as told:
            if told.code not in ("session_ended", "nothing_runs"):
                raise
        command = self.ask("GET", f"/{session}/commands/{self.newest[session]}")
        foreground = self.ask("GET", f"/{session}").get("foreground")
        return self.seen(session, command | {"foreground": foreground})

    def output(self, session):
        whole, offset = b"", 0
        while True:
            part = self.ask("GET", f"/{session}/commands/{self.newest[session]}", view="raw", **({"since": f"o:{offset}"} if offset else {}))
            whole += base64.b64decode(part.get("outputBase64", ""))
            offset = part.get("nextOffset", offset)
            if offset >= part.get("endOffset", offset):
                return whole.decode(errors="replace")

    def screen(self, session):
        return "\n".join(self.ask("GET", f"/{session}/screen")["rows"])

    def interrupt(self, session):
        self.keys(session, "C-c")

    def close(self, session):
        self.ask("DELETE", f"/{session}", {"force": True})
