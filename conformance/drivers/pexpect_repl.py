"""pexpect, as its documentation advises for shells: `REPLWrapper`."""

import os

import pexpect
from driver import Driver, Seen, bytes_of
from pexpect.replwrap import REPLWrapper

BASHRC = os.path.join(os.path.dirname(pexpect.__file__), "bashrc.sh")


class driver(Driver):
    """The shell that `pexpect.replwrap.bash` makes, with replacements for bytes that are not UTF-8."""

    claims = Driver.claims | {"exits"}

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)
        self.version = f"pexpect {pexpect.__version__}"
        self.outputs = {}

    def open(self, cwd):
        child = pexpect.spawn("bash", ["--rcfile", BASHRC], echo=False, encoding="utf-8", codec_errors="replace", cwd=str(cwd))
        change = "PS1='{0}' PS2='{1}' PROMPT_COMMAND='' INPUTRC=/dev/null"
        options = "bind 'set enable-bracketed-paste off'; bind 'set disable-completion on'"
        # 50 ms before each line, for programs that are slow to turn the echo off.
        child.delaybeforesend = None
        return REPLWrapper(child, "\\$", change, extra_init_cmd=f"export PAGER=cat; {options}")

    def code(self, session) -> int | None:
        """The code of the last command."""
        try:
            told = session.run_command("echo $?", timeout=5).strip()
        except pexpect.TIMEOUT:
            return None
        return int(told) if told.isdigit() else None

    def run(self, session, command, patience):
        try:
            output = session.run_command(command, timeout=patience)
            self.outputs[id(session)] = output
            return Seen("ended", self.code(session), output)
        except pexpect.TIMEOUT:
            return Seen("running")
        except pexpect.EOF:
            return self.gone(session)
        except ValueError as told:
            return Seen("refused", words=str(told))

    def gone(self, session) -> Seen:
        """The end of the shell, whose status pexpect has."""
        session.child.wait()
        return Seen("gone", session.child.exitstatus, session.child.before)

    def start(self, session, command):
        session.child.sendline(command)

    def type(self, session, text):
        session.child.send(text)

    def keys(self, session, *names):
        session.child.send(bytes_of(names))

    def wait(self, session, patience, pattern=None):
        try:
            which = session.child.expect([session.prompt.replace("[", r"\[")] + ([pattern] if pattern else []), timeout=patience)
        except pexpect.TIMEOUT:
            return Seen("running", output=session.child.before or "")
        except pexpect.EOF:
            return self.gone(session)
        output = session.child.before
        if which == 1:
            return Seen("matched", output=output + session.child.after)
        self.outputs[id(session)] = output
        return Seen("ended", self.code(session), output)

    def output(self, session):
        return self.outputs[id(session)]

    def interrupt(self, session):
        session.child.sendintr()

    def close(self, session):
        session.child.close(force=True)
