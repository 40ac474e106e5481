"""What safety costs: checkpoints, worker processes and Ray against one process that uses both cores.

    python benchmarks/robustness.py [--model NAME] [--texts FILE] [--windows N] [--rounds K]

Runs alternate, so that a change of the machine's mood touches all alike; what is printed are medians of ratios within a
round. A time counts from the first window measured to the last result written: what a start costs (it is printed too)
does not grow with the texts.
The cost of checkpoints is too small for that: it is found within runs that write those of every other shard, by
comparing the shards during which one is written with their neighbours.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import torch

import headscope
from headscope.progress import Bar
from headscope.run import checkpoints, runner
from headscope.run.shards import WINDOWS_PER_SHARD

FIRST: list[float] = []
"""When the first window of a run was measured."""
ROW = (True, False, True, False, False, True, False, True)
"""Of eight shards, those whose checkpoints are written: half of them, and of the two sums that fall to them one. What
changes slowly touches both halves alike."""


class NotingBar(Bar):
    """Notes when the first windows are done."""

    def advance(self, count: int) -> None:
        if not FIRST:
            FIRST.append(time.perf_counter())
        super().advance(count)


class HalfTheCheckpoints(checkpoints.Checkpoints):
    """Writes those of `ROW`; notes when each shard was done, and the processor time of what is written."""

    done: ClassVar[list[float]] = []
    writing: ClassVar[list[float]] = []
    _writes = True

    def add(self, index: int, *arguments: Any) -> None:
        self.done.append(time.perf_counter())
        super().add(index, *arguments)

    def _keep(self, index: int, *arguments: Any) -> None:
        self._writes = ROW[index % len(ROW)]
        began = time.thread_time()
        super()._keep(index, *arguments)
        if self._writes:
            self.writing.append(time.thread_time() - began)

    def _write(self, kind: str, number: int, pieces: Iterator[Any]) -> Path:
        if self._writes:
            return super()._write(kind, number, pieces)
        deque(pieces, maxlen=0)  # they are added up on their way to the disk
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
        "two workers": {"workers": 2, "threads": 1},
        "ray": {"engine": "ray", "workers": 2, "threads": 1},
    }
    FIRST.clear()
    with tempfile.TemporaryDirectory() as folder, replaced("Bar", NotingBar):
        began = time.perf_counter()
        headscope.study(model, texts, out=Path(folder) / "s", max_windows=windows, progress=False, **kinds[how])
        ended = time.perf_counter()
        return ended - FIRST[0], FIRST[0] - began


def checkpoint_costs(model: headscope.Model, texts: Any, rows: int) -> tuple[list[float], float]:
    """What writing a checkpoint adds to the time of a shard, as a share of it: by the clock, one number for each eight
    shards; and of the processor time."""
    windows = (rows * len(ROW) + 1) * WINDOWS_PER_SHARD
    done = HalfTheCheckpoints.done
    done.clear()
    HalfTheCheckpoints.writing.clear()
    used = time.process_time()
    with tempfile.TemporaryDirectory() as folder, replaced("Checkpoints", HalfTheCheckpoints):
        headscope.study(model, texts, out=Path(folder) / "s", max_windows=windows, progress=False, threads=2)
    share = statistics.mean(HalfTheCheckpoints.writing) / ((time.process_time() - used) / len(done))
    times = [after - before for before, after in pairwise(done)]
    costs = []
    for begin in range(0, len(times) - len(ROW) + 1, len(ROW)):
        row = list(zip(ROW, times[begin : begin + len(ROW)], strict=True))
        costs.append(sum(t for written, t in row if written) / sum(t for written, t in row if not written) - 1)
    return costs, share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--texts", help="a file with enough texts; the sample has some 400 windows")
    parser.add_argument("--windows", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--checkpoint-rows", type=int, default=8, help="times eight shards, for the cost of checkpoints"
    )
    parser.add_argument("--without-ray", action="store_true")
    asked = parser.parse_args()
    if torch.get_num_threads() < 2:
        print("This machine has one core; two workers can't be faster than one here.")
    model = headscope.load(asked.model, device="cpu")
    texts = headscope.read_texts([asked.texts]) if asked.texts else headscope.sample_texts()
    hows = ["one process", "two workers", *([] if asked.without_ray else ["ray"])]
    seconds(model, texts, 64, "one process")
    costs, share = checkpoint_costs(model, texts, asked.checkpoint_rows)
    print("checkpoints, in each eight shards: " + ", ".join(f"{100 * cost:+.1f} %" for cost in costs), flush=True)
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
    error = 100 * statistics.stdev(costs) / len(costs) ** 0.5
    print(f"checkpoints cost           {100 * share:.2f} % of the processor time (to be under 1 %)")
    print(f"  by the clock             {100 * statistics.mean(costs):+.2f} %, give or take {error:.2f}")
    print(f"two workers / two threads  {ratio('two workers', 'one process'):.3f} (to be at most 1)")
    if not asked.without_ray:
        print(f"ray / two workers          {ratio('ray', 'two workers'):.3f} (to be at most 1.1)")


if __name__ == "__main__":
    main()
