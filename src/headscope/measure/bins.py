"""Into which bins values of N are counted: fine ones, of which all others are made.

The value spectrum has 200 equal bins on -1..1. Each is cut into five, for `auc`; the last, from 0.99 on, into more and
more narrow ones towards 1, because in some heads all outputs are nearly alike.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

VALUE_BINS = 200
"""Bins of the value spectrum, equal ones on -1..1."""
CUT = 5
"""Fine bins in one of the value spectrum, but for the last."""
EQUAL_BINS = CUT * (VALUE_BINS - 1)
"""Fine bins of equal width: 0.002."""
OCTAVE_BITS = 3
"""From 0.99 on, 1 - N is cut into eight each time it halves: by its exponent and this many bits after it."""
SHIFT = 23 - OCTAVE_BITS
NEAR_ONE = int(np.float32(0.01).view(np.int32))
"""The bits of 1 - 0.99."""
FINE_BINS = EQUAL_BINS + 140
"""The last of them holds 1 - N below 2^-24, nothing but 1 itself."""

THRESHOLDS = np.arange(5, 96) / 100
"""At which a study can be read afterwards."""

_ABOUT_0 = (4, 8, 12, 16, 22, 30, 40, 52, 66, 82, 100, 130, 164, 200)
_EDGES = (
    *(-500, -250, -120, -60, -30, -16, -8, -4, 0, *_ABOUT_0),
    *range(250, 850, 50),
    *(840, 880, 910, 940, 960, 980),
)
"""Of coarse bins, in thousandths: narrow about 0, where most values of many heads lie. 0.1 and 0.6, between which the
paper finds few, are among them."""
_HALF_OCTAVES = EQUAL_BINS + (4 << OCTAVE_BITS)
"""From 0.99 on coarse bins are half an octave each, so far; from there on, two."""
_COARSE_EDGES = (
    0,
    *sorted((edge + 1000) * VALUE_BINS * CUT // 2000 for edge in _EDGES),
    *range(EQUAL_BINS, _HALF_OCTAVES, 1 << OCTAVE_BITS - 1),
    *range(_HALF_OCTAVES, FINE_BINS, 2 << OCTAVE_BITS),
    FINE_BINS,
)
COARSE_EDGES: NDArray[np.int64] = np.array(_COARSE_EDGES, dtype=np.int64)
"""Where coarse bins begin and end among the fine ones; in coarse ones values are kept for each group of texts. Where
all values of a head lie in one or two of them, its AUC would seem surer than it is."""
COARSE_BINS = len(COARSE_EDGES) - 1


def value_spectrum(fine: NDArray[Any]) -> NDArray[Any]:
    """Counts in fine bins -> in the bins of the value spectrum: (..., FINE_BINS) -> (..., 200)."""
    equal = fine[..., :EQUAL_BINS].reshape(*fine.shape[:-1], VALUE_BINS - 1, CUT).sum(-1)
    last = fine[..., EQUAL_BINS:].sum(-1, keepdims=True)
    return np.concatenate([equal, last], -1)


def coarse(fine: NDArray[Any]) -> NDArray[Any]:
    """Counts in fine bins -> in coarse ones: (..., FINE_BINS) -> (..., COARSE_BINS)."""
    return np.add.reduceat(fine, COARSE_EDGES[:-1], -1)


def above(spectrum: NDArray[Any], threshold: float) -> NDArray[Any]:
    """Of counts in fine bins, how many lie at a threshold or above: (..., FINE_BINS) -> (...)."""
    count: NDArray[Any] = spectrum[..., threshold_place(threshold) * CUT :].sum(-1)
    return count


def threshold_place(threshold: float) -> int:
    """The first bin of the value spectrum that lies above a threshold.

    >>> threshold_place(0.3)
    130
    """
    return round((threshold + 1) * VALUE_BINS / 2)
