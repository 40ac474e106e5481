"""Distance of high pairs, j - i (Figs. 7 and 13). The location map already holds it: no state of its own."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from headscope.measure.measures.base import Arrays, Column, Ratio, State
from headscope.measure.observation import Seen, Tokens

STATES: Mapping[str, State] = {}


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """Nothing to add: see `distance_histogram`."""


def distance_histogram(high_count: NDArray[Any]) -> NDArray[np.int64]:
    """(..., S, S) -> (..., S): how many high pairs have each distance; index = distance."""
    length = high_count.shape[-1]
    histogram = np.zeros(high_count.shape[:-1], dtype=np.int64)
    for distance in range(1, length):
        histogram[..., distance] = np.diagonal(high_count, distance, -2, -1).sum(-1)
    return histogram


def columns(arrays: Arrays) -> Mapping[str, Column]:
    histogram = distance_histogram(arrays["high_count"])
    distances = np.arange(histogram.shape[-1])
    return {"mean_distance": Ratio(histogram @ distances, histogram.sum(-1))}
