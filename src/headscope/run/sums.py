"""Sums that do not depend on the order in which their parts arrive.

A float sum keeps beside its value the rest that rounding cut off, so it carries about 106 bits. However the shards of
a study are grouped (one run, several workers, parts merged later), the value rounds to the same float64.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError
from headscope.files import Arrays, zeros

Addend = Mapping[str, NDArray[Any]]


class ExactSum:
    """Arrays added up, in float64 and int64 (or int32, see `wide`); `whole` are the values, `rest` what rounding has
    cut off those of them that are floats.

    The arrays that a sum begins with become its own where they are as wide and can be written to: they are large.
    """

    def __init__(self, whole: Addend | None = None, rest: Addend | None = None) -> None:
        self.whole: Arrays = {}
        self.rest: Arrays = {}
        self._nothing_cut_off = True
        if whole is not None:
            self.add(whole, rest)

    def add(self, part: Addend, rest: Addend | None = None) -> None:
        """Add arrays to those of the same names, or begin with them."""
        for name, added in part.items():
            cut_off = rest.get(name) if rest is not None else None
            if name in self.whole:
                self._add(name, added, cut_off)
            else:
                self._begin(name, added, cut_off)

    def _begin(self, name: str, first: NDArray[Any], cut_off: NDArray[Any] | None) -> None:
        whole = self.whole[name] = _own(first)
        if whole.dtype.kind == "f":
            self.rest[name] = zeros(whole.shape, "float64") if cut_off is None else _own(cut_off)
            self._nothing_cut_off &= cut_off is None

    def _add(self, name: str, added: NDArray[Any], cut_off: NDArray[Any] | None) -> None:
        if name not in self.rest:
            self.whole[name] += added
            if self.whole[name].dtype == np.int32 and self.whole[name].min() < 0:
                raise HeadscopeError(
                    f"There are more windows than {name} can count (over two thousand million in one place); study the "
                    "texts in several studies."
                )
            return
        self._nothing_cut_off = False
        _add_rows(self.whole[name], added, self.rest[name])
        if cut_off is not None:
            self.rest[name] += cut_off

    def settle(self) -> None:
        """Make each value the float64 nearest to value + rest."""
        if self._nothing_cut_off:
            return
        for name, rest in self.rest.items():
            for value, cut_off in zip(_rows(self.whole[name]), _rows(rest), strict=True):
                value[:], cut_off[:] = two_sum(value, cut_off)


def _own(array: NDArray[Any]) -> NDArray[Any]:
    dtype = wide(array.dtype.name)
    if array.dtype == dtype:
        return np.require(array, requirements=("C", "W", "A"))
    own = zeros(array.shape, dtype)
    own[...] = array
    return own


def wide(dtype: str) -> str:
    """The type of a sum of such arrays. What is as wide as int32 in a shard stays so: it is large."""
    if np.dtype(dtype).kind == "f":
        return "float64"
    return "int32" if dtype == "int32" else "int64"


def _add_rows(whole: NDArray[Any], part: NDArray[Any], rest: NDArray[Any]) -> None:
    """Row by row: the temporaries of one row stay in the cache."""
    for value, added, cut_off in zip(_rows(whole), _rows(part), _rows(rest), strict=True):
        value[:], more = two_sum(value, added)
        cut_off += more


def two_sum(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """a + b as a float64 and, exactly, what its rounding cut off (Knuth's TwoSum). Both of any one shape.

    >>> two_sum(np.array([1e16]), np.array([1.0]))
    (array([1.e+16]), array([1.]))
    """
    value = a + b
    of_b = value - a
    return value, (a - (value - of_b)) + (b - of_b)


def _rows(array: NDArray[Any]) -> NDArray[Any]:
    """(L, H, ...) -> (L * H, rest), as a view; arrays of less than three dimensions are one row."""
    return array.reshape(array.shape[0] * array.shape[1], -1) if array.ndim > 2 else array.reshape(1, -1)
