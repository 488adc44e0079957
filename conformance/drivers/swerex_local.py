"""SWE-ReX: its local runtime, which runs in the sandboxes of its deployments."""

import asyncio
import importlib.metadata

import pexpect
from driver import Driver, NotOffered, Seen
from swerex.exceptions import BashIncorrectSyntaxError, CommandTimeoutError
from swerex.runtime.abstract import BashAction, BashInterruptAction, CloseBashSessionRequest, CreateBashSessionRequest
from swerex.runtime.local import LocalRuntime

MOMENT = 0.3


class driver(Driver):
    """Commands by `check="silent"`, and programs that ask as interactive commands."""

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        self.version = f"swe-rex {importlib.metadata.version('swe-rex')}"
        self.runtime, self.count, self.ends, self.outputs = LocalRuntime(), 0, {}, {}
        self.loop = asyncio.new_event_loop()

    def act(self, action):
        """One action, and its observation."""
        return self.loop.run_until_complete(self.runtime.run_in_session(action))

    def open(self, cwd):
        self.count += 1
        session = f"s{self.count}"
        self.loop.run_until_complete(self.runtime.create_session(CreateBashSessionRequest(session=session)))
        self.run(session, f"cd '{cwd}'", 10)
        return session

    def run(self, session, command, patience):
        self.outputs[session] = ""
        try:
            told = self.act(BashAction(command=command, session=session, timeout=patience, check="silent"))
        except CommandTimeoutError:
            return Seen("running")
        except BashIncorrectSyntaxError as error:
            return Seen("refused", words=str(error)[:200])
        except (pexpect.EOF, OSError) as error:
            return Seen("gone", words=type(error).__name__)
        self.outputs[session] = told.output
        return Seen("ended", told.exit_code, told.output)

    def interact(self, session, text, patience, expect=()) -> Seen:
        """A line for the program that runs."""
        action = BashAction(command=text, session=session, timeout=patience, is_interactive_command=True, expect=list(expect))
        try:
            told = self.act(action)
        except CommandTimeoutError:
            return Seen("running")
        except (pexpect.EOF, OSError) as error:
            self.ends[session] = Seen("gone", words=type(error).__name__)
            return self.ends[session]
        self.outputs[session] = self.outputs.get(session, "") + told.output
        if told.expect_string in expect:
            return Seen("matched", output=told.output)
        self.ends[session] = self.ended(session)
        return self.ends[session]

    def ended(self, session) -> Seen:
        """The end of an interactive command, whose code the shell has."""
        code = self.act(BashAction(command="(exit $?)", session=session, timeout=5, check="silent")).exit_code
        return Seen("ended", code, self.outputs.get(session, ""))

    def start(self, session, command):
        self.outputs[session] = ""
        self.interact(session, command, MOMENT)

    def type(self, session, text):
        if not text.endswith(("\n", "\r")):
            raise NotOffered("input ends with Enter")
        for line in text[:-1].split("\n"):
            self.interact(session, line, MOMENT)

    def keys(self, session, *names):
        raise NotOffered("keys")

    def wait(self, session, patience, pattern=None):
        if session in self.ends:
            return self.ends.pop(session)
        seen = self.interact(session, "", patience, [pattern] if pattern else [])
        self.ends.pop(session, None)
        return seen

    def output(self, session):
        return self.outputs.get(session, "")

    def interrupt(self, session):
        told = self.act(BashInterruptAction(session=session, timeout=1))
        self.outputs[session] = self.outputs.get(session, "") + told.output
        self.ends[session] = self.ended(session)

    def close(self, session):
        self.loop.run_until_complete(self.runtime.close_session(CloseBashSessionRequest(session=session)))
