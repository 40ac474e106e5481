"""Processes that draw beside this one: a figure is made from the study folder alone, so anyone can draw it.

A helper is a fresh Python that runs `helping` and knows nothing else of what is running here. It is not a fork, which
may hang where threads are running, as those of torch are, and not a process of `multiprocessing`, which would run a
script without `if __name__ == "__main__"` a second time.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headscope.folder.study_folder import StudyFolder

MOST = 4
"""Processes in all, this one among them: beyond that the largest figures take as long as all others together, and each
holds the arrays that it draws, some 500 MB for 12 x 12 heads."""

Job = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function of a module, and what it is given after the study. That, and what it returns, can be pickled."""


class Helpers:
    """One for each core but the one that is busy here, as long as a `with` block lasts; outside of one there are none.

    A helper takes a second to start, so it is best made before anything large is imported here. What it can't do, for
    whatever reason, is done here: an error is the one that there is without helpers, and where none can be started all
    goes on without.

    threshold: that of a study which is read at another one than its own.

        with Helpers("wiki") as helpers:
            helpers.begin(study, [(write_figure, ("7",)), (write_figure, ("8",))])
            something_else()
            helpers.finish()
    """

    def __init__(self, folder: str | os.PathLike[str], threshold: float | None = None) -> None:
        self._study_there = (Path(folder).absolute(), threshold)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []
        self._waiting: deque[tuple[int, Job]] = deque()
        self._left: list[tuple[int, Job]] = []
        self._results: dict[int, Any] = {}

    def __enter__(self) -> Helpers:
        with suppress(OSError):
            while len(self._processes) < min(_cores(), MOST) - 1:
                self._processes.append(_started())
                _send(self._processes[-1], self._study_there)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.clear()
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            with suppress(OSError):
                process.communicate()

    def begin(self, study: StudyFolder, jobs: Sequence[Job], done: Callable[[], None] = lambda: None) -> None:
        """Have helpers begin with some jobs. study: the same as theirs, for jobs that are done here. done: called
        after each."""
        self._study, self._done = study, done
        self._results.clear()
        self._waiting.extend(enumerate(jobs))
        self._threads = [threading.Thread(target=self._ask, args=(process,)) for process in self._processes]
        for thread in self._threads:
            thread.start()

    def finish(self) -> list[Any]:
        """Do here what no helper has begun; what all jobs returned, in their order. Of several errors that of the
        first job is raised."""
        try:
            while self._waiting:
                self._take(lambda function, given: function(self._study, *given))
        except Exception:
            if not self._threads:
                raise
            self._left.extend(self._waiting)
            self._waiting.clear()
        for thread in self._threads:
            thread.join()
        left, self._left = sorted(self._left, key=lambda one: one[0]), []
        for place, (function, given) in left:
            self._results[place] = function(self._study, *given)
            self._done()
        return [self._results[place] for place in sorted(self._results)]

    def _ask(self, process: subprocess.Popen[bytes]) -> None:
        """Give one job after the other to a helper, as long as it lives."""
        with suppress(OSError, EOFError, pickle.UnpicklingError):
            while self._waiting:
                with suppress(_Refused):
                    self._take(lambda *job: _answer(process, job))

    def _take(self, do: Callable[[Callable[..., Any], tuple[Any, ...]], Any]) -> None:
        """Do the next job, if there still is one; it is left where that fails."""
        try:
            place, job = self._waiting.popleft()
        except IndexError:
            return
        try:
            self._results[place] = do(*job)
        except Exception:
            self._left.append((place, job))
            raise
        self._done()


class _Refused(Exception):
    """A helper can't do a job."""


def _cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _started() -> subprocess.Popen[bytes]:
    """A helper. In a session of its own, an interrupt from the keyboard does not reach it: it is ended from here."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "headscope.show.helping"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


def _send(process: subprocess.Popen[bytes], what: object) -> None:
    assert process.stdin is not None
    pickle.dump(what, process.stdin)
    process.stdin.flush()


def _answer(process: subprocess.Popen[bytes], job: Job) -> Any:
    assert process.stdout is not None
    _send(process, job)
    done, result = pickle.load(process.stdout)
    if not done:
        raise _Refused
    return result
