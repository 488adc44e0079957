"""MCP for drivers, with the standard library alone: the drivers' interpreters have no package in common."""

import http.client
import itertools
import json
import queue
import subprocess
import threading
from urllib.parse import urlsplit

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "conformance", "version": "1"}}


class Stdio:
    """A server of MCP that is a child process."""

    def __init__(self, words: list[str], env: dict[str, str], cwd) -> None:
        self.process = subprocess.Popen(words, env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.answers: queue.Queue[dict | None] = queue.Queue()
        self.ids = itertools.count(1)
        threading.Thread(target=self._read, daemon=True).start()
        self.hello = self.ask("initialize", HELLO)
        self._send({"method": "notifications/initialized"})

    def _read(self) -> None:
        for line in self.process.stdout:
            if line.startswith(b"{"):
                self.answers.put(json.loads(line))
        self.answers.put(None)

    def _send(self, message: dict) -> None:
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict) -> dict:
        """The result of a request."""
        number = next(self.ids)
        self._send({"id": number, "method": method, "params": params})
        while True:
            answer = self.answers.get()
            if answer is None:
                raise ConnectionError("the server of MCP has ended")
            if answer.get("id") == number and "method" not in answer:
                return result_of(answer)

    def call(self, tool: str, **arguments) -> dict:
        """Calls a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


class Http:
    """A server of MCP behind HTTP."""

    def __init__(self, url: str, token: str, **headers: str) -> None:
        self.url, self.ids, self.session = urlsplit(url), itertools.count(1), None
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"} | headers
        self.headers["Accept"] = "application/json, text/event-stream"
        self.hello = self.ask("initialize", HELLO)
        self._post({"method": "notifications/initialized"})

    def _post(self, message: dict) -> list[dict]:
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port)
        try:
            headers = self.headers | ({"Mcp-Session-Id": self.session} if self.session else {})
            connection.request("POST", self.url.path, json.dumps({"jsonrpc": "2.0"} | message), headers)
            answer = connection.getresponse()
            self.session = answer.headers.get("Mcp-Session-Id", self.session)
            body = answer.read().decode()
            if answer.status >= 400:
                raise ConnectionError(f"{answer.status}: {body[:200]}")
            if "event-stream" in answer.headers.get("Content-Type", ""):
                # A text in it may have other ends of lines.
                return [json.loads(line[6:]) for line in body.split("\n") if line.startswith("data: {")]
            return [json.loads(body)] if body else []
        finally:
            connection.close()

    def ask(self, method: str, params: dict) -> dict:
        """The result of a request."""
        return result_of(self._post({"id": next(self.ids), "method": method, "params": params})[-1])

    def call(self, tool: str, **arguments) -> dict:
        """Calls a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


def result_of(answer: dict) -> dict:
    """The result of an answer, which an error has not."""
    if "error" in answer:
        raise RuntimeError(answer["error"].get("message", str(answer["error"])))
    return answer["result"]


def text_of(result: dict) -> str:
    """The text of a tool's answer."""
    return "".join(block.get("text", "") for block in result.get("content", []))
