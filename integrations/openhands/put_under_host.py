"""Makes ptyd the terminal of OpenHands' own tests."""

from ptyd_openhands import install

install()
