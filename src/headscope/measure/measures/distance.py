"""Distance of high pairs (Figs. 7 and 13): j - i in a text, steps on the grid of patches in an image.

The location map already holds it: no state of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.traits import ORDER, PATCHES
from headscope.measure.declaration import Arrays, Column, Derived, Measure, Ratio

GRID_DISTANCE = "grid_distance"
"""Of images, handed to the columns beside the states: (S, S), how far apart two patches are; NaN where one is none."""


def distance_histogram(high_count: NDArray[Any]) -> NDArray[np.int64]:
    """(..., S, S) -> (..., S): how many high pairs have each distance; index = distance."""
    length = high_count.shape[-1]
    histogram = np.zeros(high_count.shape[:-1], dtype=np.int64)
    for distance in range(1, length):
        histogram[..., distance] = np.diagonal(high_count, distance, -2, -1).sum(-1)
    return histogram


def _in_tokens(arrays: Arrays) -> Ratio:
    histogram = distance_histogram(arrays["high_count"])
    distances = np.arange(histogram.shape[-1])
    return Ratio(histogram @ distances, histogram.sum(-1))


def _in_patches(arrays: Arrays) -> Ratio:
    apart = arrays[GRID_DISTANCE]
    between_patches = np.triu(arrays["high_count"]) * np.isfinite(apart)
    return Ratio((between_patches * np.nan_to_num(apart)).sum((2, 3)), between_patches.sum((2, 3)))


MEASURE = Measure(
    columns=(
        Column(
            "mean_distance",
            "distance",
            "tokens",
            "pairs",
            "Mean of j - i over all high pairs: how many tokens apart the two tokens are.",
            _in_tokens,
            needs=ORDER,
            profile=True,
            overview=True,
        ),
        Column(
            "mean_distance",
            "distance, patches",
            "tokens",
            "pairs",
            "Mean distance on the grid of patches over all high pairs of two patches; neighbours are 1 apart.",
            _in_patches,
            needs=PATCHES,
            profile=True,
            overview=True,
        ),
    ),
    derived={
        "distance_histogram": Derived("LHS", "int64", lambda arrays: distance_histogram(arrays["high_count"]), ORDER)
    },
)
