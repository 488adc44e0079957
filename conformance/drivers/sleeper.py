"""A product that never answers, for the test of the run itself."""

import signal

from driver import Driver


class driver(Driver):
    """It sleeps."""

    version = "sleeper 1"

    def __init__(self, place, variant: str) -> None:
        super().__init__(place)

    def open(self, cwd):
        return cwd

    def run(self, session, command, patience):
        signal.pause()
