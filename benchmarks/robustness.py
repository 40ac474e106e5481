"""What safety costs: checkpoints, worker processes and Ray against one process that uses both cores.

    python benchmarks/robustness.py [--model NAME] [--texts FILE] [--windows N] [--rounds K]

Runs alternate, so that a change of the machine's mood touches all alike; what is printed are medians of ratios within a
round. A time counts from the first window measured to the last result written: what a start costs (it is printed too)
does not grow with the texts.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import headscope
from headscope import checkpoints, runner
from headscope.progress import Bar

FIRST: list[float] = []
"""When the first window of a run was measured."""
WRITING: list[float] = []
"""Seconds of processor time that one checkpoint took, in the thread that writes them."""
SHARES: list[float] = []
"""What part of the processor time of a run in one process that was."""


class NotingBar(Bar):
    """Notes when the first windows are done."""

    def advance(self, count: int) -> None:
        if not FIRST:
            FIRST.append(time.perf_counter())
        super().advance(count)


class TimedCheckpoints(checkpoints.Checkpoints):
    def _keep(self, *arguments: Any) -> None:
        began = time.thread_time()
        super()._keep(*arguments)
        WRITING.append(time.thread_time() - began)


class NoCheckpoints(checkpoints.Checkpoints):
    """Adds shards up in memory and writes nothing."""

    def _write(self, kind: str, number: int, *_: Any) -> Path:
        return self._folder / f"{kind}-{number}"


@contextmanager
def replaced(name: str, value: Any) -> Iterator[None]:
    before = getattr(runner, name)
    setattr(runner, name, value)
    try:
        yield
    finally:
        setattr(runner, name, before)


def seconds(model: headscope.Model, texts: Any, windows: int, how: str) -> tuple[float, float]:
    """How long a study takes once it measures, and how long it took to get there."""
    kinds: dict[str, dict[str, Any]] = {
        "one process": {"threads": 2},
        "no checkpoints": {"threads": 2},
        "two workers": {"workers": 2, "threads": 1},
        "ray": {"engine": "ray", "workers": 2, "threads": 1},
    }
    keeping = NoCheckpoints if how == "no checkpoints" else TimedCheckpoints
    FIRST.clear()
    WRITING.clear()
    used = time.process_time()
    with tempfile.TemporaryDirectory() as folder, replaced("Checkpoints", keeping), replaced("Bar", NotingBar):
        began = time.perf_counter()
        headscope.study(model, texts, out=Path(folder) / "s", max_windows=windows, progress=False, **kinds[how])
        ended = time.perf_counter()
        if how == "one process":
            SHARES.append(sum(WRITING) / (time.process_time() - used))
        return ended - FIRST[0], FIRST[0] - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--texts", help="a file with enough texts; the sample has some 400 windows")
    parser.add_argument("--windows", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-ray", action="store_true")
    asked = parser.parse_args()
    if torch.get_num_threads() < 2:
        print("This machine has one core; two workers can't be faster than one here.")
    model = headscope.load(asked.model, device="cpu")
    texts = headscope.read_texts([asked.texts]) if asked.texts else headscope.sample_texts()
    hows = ["one process", "no checkpoints", "two workers", *([] if asked.without_ray else ["ray"])]
    seconds(model, texts, 64, "one process")
    SHARES.clear()
    rounds: list[dict[str, float]] = []
    for number in range(asked.rounds):
        times: dict[str, float] = {}
        for how in hows if number % 2 == 0 else hows[::-1]:
            times[how], start = seconds(model, texts, asked.windows, how)
            print(f"round {number + 1}, {how}: {times[how]:.1f} s after a start of {start:.1f} s", flush=True)
        rounds.append(times)

    def ratio(one: str, other: str) -> float:
        return statistics.median(times[one] / times[other] for times in rounds)

    print(f"\n{model.name}, {asked.windows} windows, median of {asked.rounds} rounds")
    print(f"checkpoints cost           {100 * statistics.median(SHARES):.2f} % of the processor time (to be under 1 %)")
    clock = 100 * (ratio("one process", "no checkpoints") - 1)
    print(f"  by the clock             {clock:+.2f} %, with its noise")
    print(f"two workers / two threads  {ratio('two workers', 'one process'):.3f} (to be at most 1)")
    if not asked.without_ray:
        print(f"ray / two workers          {ratio('ray', 'two workers'):.3f} (to be at most 1.1)")


if __name__ == "__main__":
    main()
