"""Progress bars, with rate and time left, for anything that may take over two seconds."""

from __future__ import annotations

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
        if task.total is None:
            return Text(f"{int(task.completed):,} {task.fields['unit']}")
        about = "~" if task.fields["estimated"] else ""
        return Text(f"{int(task.completed):,} of {about}{int(task.total):,} {task.fields['unit']}")


class Bar:
    """A progress bar on standard error. Does nothing when `shown` is false."""

    def __init__(self, title: str, unit: str, shown: bool = True) -> None:
        shown_on = console(stderr=True)
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

    def expect(self, total: int | None, exact: bool) -> None:
        self._progress.update(self._task, total=total, estimated=not exact)

    def name(self, title: str) -> None:
        """Say what is done from now on."""
        self._progress.update(self._task, description=title)

    def say(self, sentence: str) -> None:
        self._progress.console.print(sentence, markup=False, soft_wrap=True)

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
