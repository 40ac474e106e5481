"""Distance of high pairs (Figs. 7 and 13): j - i in a text, steps on the grid of patches in an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.traits import ORDER, PATCHES
from headscope.measure.declaration import Arrays, Column, Measure, Ratio, State
from headscope.measure.measures import grouped

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen

GRID_DISTANCE = "grid_distance"
"""Of images, handed to the columns beside the states: (S, S), how far apart two patches are; NaN where one is none."""


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """`distance_histogram` is added to where it arises."""
    grouped.add(states, "distance_sum", tokens, seen.distance)


def _summed(histogram: NDArray[Any]) -> NDArray[Any]:
    """(L, H, S) -> (L, H): the sum of the distances."""
    total: NDArray[Any] = histogram @ np.arange(histogram.shape[-1])
    return total


def _of_histogram(arrays: Arrays) -> NDArray[Any]:
    return _summed(arrays["distance_histogram"])


def _in_patches(arrays: Arrays) -> Ratio:
    apart = arrays[GRID_DISTANCE]
    between_patches = np.triu(arrays["high_count"]) * np.isfinite(apart)
    return Ratio((between_patches * np.nan_to_num(apart)).sum((2, 3)), between_patches.sum((2, 3)))


MEASURE = Measure(
    states={
        "distance_histogram": State("LHS", "int64", needs=ORDER, of_high_pairs=True),
        "distance_sum": State("LHG", "int64", needs=ORDER, of_high_pairs=True, before=_of_histogram),
    },
    columns=(
        Column(
            "mean_distance",
            "distance",
            "tokens",
            "pairs",
            "Mean of j - i over all high pairs: how many tokens apart the two tokens are.",
            lambda arrays: Ratio(arrays["distance_sum"], arrays["pairs"]),
            of_high_pairs=True,
            pooled=lambda high: Ratio(_summed(high.distances), high.count),
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
            of_high_pairs=True,
            needs=PATCHES,
            profile=True,
            overview=True,
        ),
    ),
    update=update,
)
