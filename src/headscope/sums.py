"""Sums that do not depend on the order in which their parts arrive.

A float sum keeps beside its value the rest that rounding cut off, so it carries about 106 bits. However the shards of
a study are grouped (one run, several workers, parts merged later), the value rounds to the same float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.storage import Arrays

Part = Mapping[str, NDArray[Any]]


class Sum:
    """Arrays added up; `whole` are the values, `rest` what rounding has cut off those of them that are floats."""

    def __init__(self, whole: Part, rest: Part | None = None) -> None:
        self.whole: Arrays = {name: np.array(array, order="C") for name, array in whole.items()}
        self.rest: Arrays = {
            name: np.array(rest[name], order="C") if rest is not None else np.zeros(array.shape)
            for name, array in self.whole.items()
            if array.dtype.kind == "f"
        }

    def add(self, part: Part, rest: Part | None = None) -> None:
        for name, whole in self.whole.items():
            if name not in self.rest:
                np.add(whole, part[name], out=whole)
                continue
            # Row by row: the temporaries of one row stay in the cache.
            added, kept = (_rows(array) for array in (part[name], self.rest[name]))
            for index, row in enumerate(_rows(whole)):
                value, cut_off = two_sum(row, added[index])
                kept[index] += cut_off
                row[:] = value
            if rest is not None:
                self.rest[name] += rest[name]

    def settled(self) -> Sum:
        """The same sum with each value the float64 nearest to value + rest."""
        settled = Sum(self.whole, self.rest)
        for name, rest in self.rest.items():
            settled.whole[name], settled.rest[name] = two_sum(self.whole[name], rest)
        return settled


def two_sum(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """a + b as a float64 and, exactly, what its rounding cut off (Knuth's TwoSum). Both of any one shape.

    >>> two_sum(np.array([1e16]), np.array([1.0]))
    (array([1.e+16]), array([1.]))
    """
    value = a + b
    of_b = value - a
    return value, (a - (value - of_b)) + (b - of_b)


def _rows(array: NDArray[Any]) -> NDArray[Any]:
    """(..., S, S) -> (rows, S * S), as a view; smaller arrays are one row."""
    return array.reshape(-1, array.shape[-1] * array.shape[-2]) if array.ndim > 2 else array.reshape(1, -1)
