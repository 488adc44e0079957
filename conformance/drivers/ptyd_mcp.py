"""ptyd's MCP: `stdio` with `ptyd mcp`, or `http` with `/mcp`."""

import re

from driver import Seen

from . import rpc
from .ptyd_server import Ptyd, Refused, state_of


class driver(Ptyd):
    """The tools that name their session."""

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        if variant == "stdio":
            self.mcp = rpc.Stdio([self.binary, "mcp", "--structured"], place.env, place.home)
        else:
            self.serve()
            self.mcp = rpc.Http(f"http://{self.listen}/mcp", self.token, **{"Ptyd-Structured": "true"})
        self.variant, self.newest = variant, {}

    def call(self, tool: str, **arguments) -> dict:
        """The fields of an answer."""
        try:
            result = self.mcp.call(tool, **arguments)
        except ConnectionError:
            if self.variant == "stdio":
                raise
            # The server was killed. `ptyd mcp` starts the next one by itself; over HTTP, the administrator does.
            self.serve()
            result = self.mcp.call(tool, **arguments)
        fields = result.get("structuredContent") or {}
        if result.get("isError"):
            raise Refused(fields.get("error_code", "error"), fields.get("error") or rpc.text_of(result))
        return fields

    def seen(self, session: str, fields: dict) -> Seen:
        """An answer about a command."""
        self.newest[session] = fields.get("command_id", self.newest.get(session))
        status = fields.get("status", "terminated" if fields["session_status"] == "terminated" else "running")
        if fields.get("ended_by") == "matched":
            return Seen("matched", None, fields["output"], fields["facts"])
        state = state_of(status, fields.get("foreground"), fields["session_status"] == "terminated")
        code = fields.get("exit_code")
        if state == "gone":
            # The shell's own code is in the line of facts.
            told = re.search(r"session ended · exit (\d+)", fields["facts"])
            code = int(told[1]) if told else None
        return Seen(state, code, fields["output"], fields["facts"])

    def open(self, cwd):
        return self.call("start_terminal_session", cwd=str(cwd))["session_id"]

    def run(self, session, command, patience):
        try:
            fields = self.call("execute_in_terminal", session_id=session, command=command, timeout=patience)
        except Refused as told:
            return told.seen()
        return self.seen(session, fields)

    def start(self, session, command):
        self.seen(session, self.call("execute_in_terminal", session_id=session, command=command, wait_for_completion=False))

    def type(self, session, text):
        self.call("send_input_to_terminal", session_id=session, input=text, timeout=0)

    def keys(self, session, *names):
        self.call("send_input_to_terminal", session_id=session, keys=list(names), timeout=0)

    def wait(self, session, patience, pattern=None):
        more = {"wait_for": pattern} if pattern else {}
        fields = self.call("get_terminal_output", session_id=session, command_id=self.newest[session], timeout=patience, **more)
        return self.seen(session, fields)

    def output(self, session):
        fields = self.call("get_terminal_output", session_id=session, command_id=self.newest[session], max_lines=0)
        whole, omitted = fields["output"], fields.get("omitted")
        if omitted is None:
            return whole
        # The head, and then page by page the rest.
        whole, since = whole[: omitted["after"]], omitted["since"]
        while True:
            page = self.call("get_terminal_output", session_id=session, command_id=self.newest[session], since=since, max_lines=0)
            if page["marker"] == since:
                return whole
            whole, since = whole + page["output"], page["marker"]

    def screen(self, session):
        return self.call("get_terminal_output", session_id=session, view="screen")["output"]

    def interrupt(self, session):
        self.keys(session, "C-c")

    def close(self, session):
        self.call("terminate_terminal_session", session_id=session, force=True)
