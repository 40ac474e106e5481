"""Lanes: the threads of one process, each of which takes whole batches through the model.

Threads that share every matrix product wait for each other at its end, thousands of times a batch. A lane computes with
one thread and waits only for its turn to add what it saw: batches add to the sums of a layer in their order, so the
number of lanes changes no bit of the result. All lanes run the same weights and fill the same sums.
"""

from __future__ import annotations

import queue
import threading
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TypeVar

import torch

from headscope.files import hold_on
from headscope.model.capture import Capture

Item = TypeVar("Item")


class Stopped(Exception):
    """Another lane failed, or the run was ended."""


class Turns:
    """Places that batches pass one at a time, in the order of their numbers."""

    def __init__(self) -> None:
        self._next: dict[Hashable, int] = defaultdict(int)
        self._changed = threading.Condition()
        self._stopped = False

    @contextmanager
    def turn(self, place: Hashable, number: int) -> Iterator[None]:
        """Wait until all batches before this one have passed. One that fails in here lets nobody pass after it."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._next[place] == number)
            if self._stopped:
                raise Stopped
        yield
        with self._changed:
            self._next[place] += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Whoever waits, or comes from now on, is turned away."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()


class Lanes:
    """On a CPU as many as `threads`; another device is busy with one.

    Each lane has a capture of its own, because a network that is captured can only run one batch at a time. Its thread
    lives until the lanes are closed: the memory that the allocator keeps for it is used again, where that of a thread
    that has ended lies idle.
    """

    def __init__(self, capture: Capture, device: torch.device, threads: int) -> None:
        count = threads if device.type == "cpu" else 1
        if device.type == "cpu":
            hold_on()
        self._captures = [capture, *(capture.twin() for _ in range(count - 1))]
        self._threads = ThreadPoolExecutor(count, "lane")

    def run(
        self,
        items: Iterable[Item],
        take: Callable[[Capture, int, Item], None],
        turns: Turns,
        finished: Callable[[Item], None],
    ) -> None:
        """take(capture, number, item) for each item, in all lanes at once; `finished` is told in this thread."""
        numbered = enumerate(items)
        fetching = threading.Lock()
        reports: queue.SimpleQueue[Item | BaseException | None] = queue.SimpleQueue()
        stopped = threading.Event()

        def lane(capture: Capture) -> None:
            try:
                torch.set_num_threads(1)
                while not stopped.is_set():
                    with fetching:
                        found = next(numbered, None)
                    if found is None:
                        break
                    number, item = found
                    take(capture, number, item)
                    reports.put(item)
                reports.put(None)
            except BaseException as problem:
                turns.stop()
                reports.put(problem)

        running: list[Future[None]] = []
        with _one_thread_each():
            try:
                for capture in self._captures:
                    running.append(self._threads.submit(lane, capture))
                _listen(reports, len(running), finished)
            finally:
                stopped.set()
                turns.stop()
                wait(running)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()


def _listen(
    reports: queue.SimpleQueue[Item | BaseException | None], lanes: int, finished: Callable[[Item], None]
) -> None:
    """Until every lane has ended. What made the others stop is raised, not that they were stopped."""
    problems: list[BaseException] = []
    while lanes:
        report = reports.get()
        if report is None:
            lanes -= 1
        elif isinstance(report, BaseException):
            lanes -= 1
            problems.append(report)
        else:
            finished(report)
    for problem in sorted(problems, key=lambda problem: isinstance(problem, Stopped)):
        raise problem


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Part of torch's number of threads belongs to the process, part to each thread: set both, and restore."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
