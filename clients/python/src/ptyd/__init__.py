"""The client of ptyd: real terminals for programs. `Ptyd` blocks, `AsyncPtyd` is for asyncio."""

from . import models
from ._client import AsyncCommand, AsyncPtyd, AsyncSession, Result, RunOptions, Screen
from ._http import Ended, PtydError, Refused, TimedOut, Unreachable
from ._stream import Chunk, Transport
from ._sync import Command, Ptyd, Session

__all__ = [
    "AsyncCommand", "AsyncPtyd", "AsyncSession", "Chunk", "Command", "Ended", "Ptyd", "PtydError", "Refused", "Result",
    "RunOptions", "Screen", "Session", "TimedOut", "Transport", "Unreachable", "models",
]  # fmt: skip
