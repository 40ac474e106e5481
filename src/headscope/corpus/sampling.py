"""Some of all windows: evenly spread over them, or drawn by seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

_DRAWS = 7
"""Sets these draws apart from others of the same seed."""


@dataclass(frozen=True)
class Spread:
    """So many of all windows, evenly spread over them.

    >>> [window for window in range(10) if Spread(10, 4).holds(window)]
    [2, 4, 7, 9]
    """

    windows: int
    taken: int

    def holds(self, window: int) -> bool:
        return (window + 1) * self.taken // self.windows > window * self.taken // self.windows


@dataclass(frozen=True)
class Sample:
    """So many of all windows, drawn by seed: all are cut into as many runs of like length, and of each run one window
    is drawn. So every part of a corpus is in it, each window is about as likely as any other, and whether one is in it
    depends on nothing but these numbers.

    >>> [window for window in range(12) if Sample(12, 4, seed=0).holds(window)]
    [2, 5, 8, 10]
    """

    windows: int
    taken: int
    seed: int

    def holds(self, window: int) -> bool:
        if window >= self.windows:  # a text whose sentences are in another order may have a window more
            return False
        run = ((window + 1) * self.taken - 1) // self.windows
        return window == _drawn(self, run)


@lru_cache(maxsize=64)
def _drawn(sample: Sample, run: int) -> int:
    """The window that is drawn of a run."""
    begin, end = (number * sample.windows // sample.taken for number in (run, run + 1))
    return begin + int(np.random.default_rng((sample.seed % 2**64, _DRAWS, run)).integers(end - begin))
