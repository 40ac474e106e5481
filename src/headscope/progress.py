"""Progress bars, with rate and time left, for anything that may take over two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType

from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.table import Column
from rich.text import Text

from headscope.console import console


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.1f}/s" if speed else "", style="dim")


class _Count(ProgressColumn):
    """Done of all; a `~` where the total is still an estimate."""

    def render(self, task: Task) -> Text:
        return Text(_count(task))


def _count(task: Task) -> str:
    last = task.completed if task.total is None else task.total
    unit = task.fields["unit"].removesuffix("s") if last == 1 else task.fields["unit"]
    if task.total is None:
        return f"{int(task.completed):,} {unit}"
    about = "~" if task.fields["estimated"] else ""
    return f"{int(task.completed):,} of {about}{int(task.total):,} {unit}"


FIRST_LINE, NEXT_LINE = 5.0, 30.0
"""Seconds until the first line, and from line to line, where there is no terminal."""


class Bar:
    """A progress bar on standard error; where that is no terminal (a file, a notebook), a plain line now and then. Does
    nothing when `shown` is false."""

    def __init__(self, title: str, unit: str, shown: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        shown_on = console(stderr=True)
        self._clock = clock
        self._lines = shown and not shown_on.is_terminal
        self._next_line = clock() + FIRST_LINE
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            _Count(Column(no_wrap=True)),
            _Rate(Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True, min_width=7)),
            TextColumn("left"),
            console=shown_on,
            transient=True,
            disable=not (shown and shown_on.is_terminal),
        )
        self._task = self._progress.add_task(title, total=None, unit=unit, estimated=True)

    def advance(self, count: int) -> None:
        self._progress.advance(self._task, count)
        if self._lines and self._clock() >= self._next_line:
            self._next_line = self._clock() + NEXT_LINE
            self.say(self._line())

    def expect(self, total: int | None, exact: bool) -> None:
        self._progress.update(self._task, total=total, estimated=not exact)

    def name(self, title: str) -> None:
        """Say what is done from now on."""
        self._progress.update(self._task, description=title)

    def _line(self) -> str:
        """What the bar would show.

        >>> bar = Bar("Measuring minilm", "windows", shown=False)
        >>> bar.expect(380, exact=False)
        >>> bar._line()
        'Measuring minilm: 0 of ~380 windows'
        >>> bar.expect(1, exact=True)
        >>> bar._line()
        'Measuring minilm: 0 of 1 window'
        """
        [task] = self._progress.tasks
        speed, left = task.finished_speed or task.speed, task.time_remaining
        rate = f", {speed:.1f}/s" if speed else ""
        remaining = f", {timedelta(seconds=int(left))} left" if left else ""
        return f"{task.description}: {_count(task)}{rate}{remaining}"

    def say(self, sentence: str) -> None:
        self._progress.console.print(sentence, markup=False, soft_wrap=True)

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
