"""What a measure says of itself: its states, how a batch adds to them, and everything that is known of its columns.

Nothing here or in `measures` imports torch: a study is read, drawn and compared by what is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.traits import Traits
from headscope.corpus.windows import KINDS

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Seen, Tokens

Arrays = Mapping[str, NDArray[Any]]
Specs = dict[str, tuple[str, tuple[int, ...]]]
"""Name -> dtype and shape."""

Unit = Literal["share", "tokens", "count", "number", "difference"]
Group = Literal["run", "pairs", "repeats and sentences", "attention", "lines and blocks"]

VALUE_BINS = 200
"""Bins of the value spectrum, equal ones on -1..1."""
SHARE_BINS = 50
"""Bins of a distribution of shares, equal ones on 0..1; the last one is closed."""
MOST_WINDOWS_IN_A_SHARD = 256
"""A count of windows up to this many fits into NARROW, in which a shard counts them."""
NARROW = "int16"
assert np.iinfo(NARROW).max >= MOST_WINDOWS_IN_A_SHARD


@dataclass(frozen=True)
class _Shaped:
    """An array. shape: one letter a dimension, see `sizes`."""

    shape: str
    dtype: Literal["int64", "float64"]

    def size(self, layers: int, heads: int, length: int) -> tuple[int, ...]:
        known = sizes(layers, heads, length)
        return tuple(known[letter] for letter in self.shape)


@dataclass(frozen=True)
class State(_Shaped):
    """An array that adds up; of a symmetric one only i < j.

    dtype: in the end. needs: without them it says nothing and is not kept.
    """

    symmetric: bool = False
    needs: Traits = frozenset()

    @property
    def shard_dtype(self) -> str:
        """Of the sum over one shard. A map that counts windows is narrower there: it is touched for every window."""
        return NARROW if self.shape == "LHSS" and self.dtype == "int64" else self.dtype


def sizes(layers: int, heads: int, length: int) -> dict[str, int]:
    """What the letters of a state's shape stand for; U counts unique focal tokens, 0 to H."""
    return {
        "L": layers,
        "H": heads,
        "S": length,
        "U": heads + 1,
        "P": SHARE_BINS,
        "V": VALUE_BINS,
        "K": len(KINDS),
    }


@dataclass(frozen=True)
class Derived(_Shaped):
    """An array of a study folder that is no state: `of` makes it from the states, (L, H, ...)."""

    of: Callable[[Arrays], NDArray[Any]]
    needs: Traits = frozenset()


@dataclass(frozen=True)
class Ratio:
    """part / whole, both (L, H). Over the heads of a layer both are summed first."""

    part: NDArray[Any]
    whole: NDArray[Any]

    def of_heads(self) -> NDArray[np.float64]:
        return _divided(self.part, self.whole)

    def of_layers(self) -> NDArray[np.float64]:
        return _divided(self.part.sum(1), self.whole.sum(1))


@dataclass(frozen=True)
class Total:
    """A count, (L, H); a layer has the sum of its heads."""

    count: NDArray[np.int64]

    def of_heads(self) -> NDArray[np.int64]:
        return self.count

    def of_layers(self) -> NDArray[np.int64]:
        total: NDArray[np.int64] = self.count.sum(1)
        return total


@dataclass(frozen=True)
class LayerRatio:
    """part / whole, both (L,), of something that only a whole layer has."""

    part: NDArray[Any]
    whole: NDArray[Any]

    def of_layers(self) -> NDArray[np.float64]:
        return _divided(self.part, self.whole)


@dataclass(frozen=True)
class Column:
    """Everything that is known of a column of the tables `heads` and `layers`.

    label: what a table calls it. definition: in sentences that need no other page. value: made from the states; None
    for layer, head and windows, which say what a row is about.
    chance: the column of what chance gives. needs: without them the column is absent. profile: it says what a head
    does, so heads of different models are matched by it. overview: among the columns that are shown first.
    heads: false where only a whole layer has it.
    """

    name: str
    label: str
    unit: Unit
    group: Group
    definition: str
    value: Callable[[Arrays], Ratio | Total | LayerRatio] | None = None
    chance: str | None = None
    needs: Traits = frozenset()
    profile: bool = False
    overview: bool = False
    heads: bool = True


Update = Callable[[Mapping[str, "Tensor"], "Tokens", "Seen"], None]
"""Adds what was seen of one batch to the states."""


@dataclass(frozen=True)
class Measure:
    """One measure. update: None where its states are added to where they arise, or where it has none of its own."""

    states: Mapping[str, State] = field(default_factory=dict)
    columns: tuple[Column, ...] = ()
    update: Update | None = None
    derived: Mapping[str, Derived] = field(default_factory=dict)


def _divided(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    """part / whole in float64, NaN where there is nothing to divide by."""
    quotient: NDArray[np.float64] = np.full(part.shape, np.nan)
    np.divide(part, whole, out=quotient, where=whole != 0, dtype=np.float64)
    return quotient
