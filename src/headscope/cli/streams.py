"""Standard output and error, watched: what can't be written becomes an exit code and a sentence, never a traceback."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, TextIO, cast

LOST = 74
"""The exit code where something could not be said; no verb gives it another meaning."""
NOBODY_READS = 141
"""That of a process which writes into a pipe that is closed, as every shell knows it."""


class LostOutput(Exception):
    """Standard output can't be written to. Not an OSError: those are of files, and handled as such."""

    def __init__(self, problem: OSError | None) -> None:
        self.reason = "it is closed" if problem is None else problem.strerror or str(problem)
        self.code = NOBODY_READS if isinstance(problem, BrokenPipeError) else LOST
        super().__init__(self.reason)


class Streams:
    """While it is entered, `sys.stdout` raises `LostOutput`, and what `sys.stderr` can't take is lost but noticed."""

    def __enter__(self) -> Streams:
        _fill_closed_handles()
        self._before = sys.stdout, sys.stderr
        self._out = _Watched(sys.stdout, _raise)
        self._error = _Watched(sys.stderr, _ignore)
        sys.stdout, sys.stderr = cast(TextIO, self._out), cast(TextIO, self._error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        sys.stdout, sys.stderr = self._before

    def finish(self) -> None:
        """Write what is still held back."""
        self._out.flush()
        self._error.flush()

    @property
    def error_lost(self) -> bool:
        return self._error.lost


class _Watched:
    """A text stream that may be full or closed."""

    def __init__(self, stream: TextIO | None, failed: Callable[[OSError | None], None]) -> None:
        self._stream = stream
        self._failed = failed
        self.lost = False
        if isinstance(stream, io.TextIOWrapper):
            # Whatever the terminal can't show is shown as its number.
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        if self._stream is None:
            self._failed(None)
        else:
            self._attempt(lambda stream: stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._attempt(lambda stream: stream.flush())

    def isatty(self) -> bool:
        return self._stream is not None and self._stream.isatty()

    def _attempt(self, action: Callable[[TextIO], Any]) -> None:
        if self._stream is None or self.lost:
            return
        try:
            action(self._stream)
        except OSError as problem:
            self.lost = True
            _let_go(self._stream)
            self._failed(problem)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _raise(problem: OSError | None) -> None:
    raise LostOutput(problem)


def _ignore(problem: OSError | None) -> None:
    """There is no third stream to say it on."""


def _let_go(stream: TextIO) -> None:
    """Python writes at its end what a stream still holds, and would fail again."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _fill_closed_handles() -> None:
    """A file opened later would get the number of a closed stream, and all that is meant for that stream."""
    for handle in range(3):
        try:
            os.fstat(handle)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
