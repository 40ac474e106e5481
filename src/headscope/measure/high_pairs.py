"""The high pairs at any threshold, made afterwards from the spectra that a study keeps.

They are pooled: all pairs of all windows together. How many of which window there were is not known, so shares made of
them are shares of all high pairs, not means over windows.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError
from headscope.measure.bins import THRESHOLDS, above
from headscope.measure.declaration import RELATIONS, SETS, Arrays

SPECTRA = ("spectrum", "distance_spectrum", "pairs_by_distance")
"""The states that they are made of."""


class HighPairs:
    """The pairs with N at a threshold or above, over all windows. arrays: the `SPECTRA` and `windows`."""

    def __init__(self, arrays: Arrays, threshold: float) -> None:
        self._arrays = arrays
        self._place = place_among_thresholds(threshold)
        self.threshold = float(THRESHOLDS[self._place])

    @property
    def windows(self) -> NDArray[Any]:
        """(L, H)"""
        return self._arrays["windows"]

    @cached_property
    def relations(self) -> NDArray[Any]:
        """(L, H, R): high pairs, by the relation of their two tokens."""
        return above(self._arrays["spectrum"], self.threshold)

    @cached_property
    def all_relations(self) -> NDArray[Any]:
        """(L, H, R): all pairs, high or not, of the windows that have high pairs: at thresholds below 1 these are all
        with a positive similarity, because their largest N is 1."""
        count: NDArray[Any] = self._arrays["spectrum"].sum(-1)
        return count

    @cached_property
    def distances(self) -> NDArray[Any]:
        """(L, H, S): high pairs, by distance."""
        count: NDArray[Any] = self._arrays["distance_spectrum"][..., self._place :].sum(-1, dtype=np.int64)
        return count

    @property
    def count(self) -> NDArray[Any]:
        """(L, H)"""
        return self.of("all")

    def of(self, name: str) -> NDArray[Any]:
        """(L, H): how many are of a set of pairs (see `SETS`), or of equal tokens in one sentence ("both")."""
        return _of_set(self.relations, name)

    def of_all_pairs(self, name: str) -> NDArray[Any]:
        """(L, H): the same among all pairs, high or not."""
        return _of_set(self.all_relations, name)

    def expected(self, name: str) -> NDArray[Any]:
        """(L, H): how many would be of a set of pairs if, at each distance, they were drawn at random from all pairs of
        that distance."""
        pairs = self._arrays["pairs_by_distance"].astype(np.float64)
        shares = pairs[SETS.index(name)] / np.maximum(pairs[SETS.index("all")], 1)
        expected: NDArray[Any] = self.distances @ shares
        return expected


def _of_set(relations: NDArray[Any], name: str) -> NDArray[Any]:
    """(..., R) -> (...)"""
    names = {"all": RELATIONS, "both": ("both",)}.get(name, (name, "both"))
    count: NDArray[Any] = relations[..., [RELATIONS.index(relation) for relation in names]].sum(-1)
    return count


def place_among_thresholds(threshold: float) -> int:
    """Its number among `THRESHOLDS`.

    >>> place_among_thresholds(0.3)
    25
    """
    first, last = THRESHOLDS[0], THRESHOLDS[-1]
    steps = f"A study can be read at thresholds from {first:.2f} to {last:.2f}, in steps of 0.01"
    if not isinstance(threshold, int | float | np.number) or not math.isfinite(threshold):
        raise HeadscopeError(f"{steps}, not at {threshold!r}.")
    place = int(np.abs(THRESHOLDS - min(max(threshold, first), last)).argmin())
    if abs(THRESHOLDS[place] - threshold) > 1e-9:
        raise HeadscopeError(f"{steps}, not at {threshold:g}; the nearest is {THRESHOLDS[place]:.2f}.")
    return place
