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
from headscope.measure.bins import COARSE_BINS, FINE_BINS, THRESHOLDS, VALUE_BINS

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.high_pairs import HighPairs
    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen

Arrays = Mapping[str, NDArray[Any]]
Specs = dict[str, tuple[str, tuple[int, ...]]]
"""Name -> dtype and shape."""

Unit = Literal["share", "tokens", "count", "number", "difference"]
Topic = Literal["run", "pairs", "repeats and sentences", "signal and noise", "attention", "lines and blocks"]

SHARE_BINS = 50
"""Bins of a distribution of shares, equal ones on 0..1; the last one is closed."""
GROUPS = 64
"""A text belongs to the group (its number mod 64), with all its windows: leaving out one group after the other tells
how sure a number is."""
DIAGONALS = ("self", "previous", "next")
"""Of A: [i, i], [i, i-1], [i, i+1]."""
RELATIONS = ("neither", "equal", "together", "both")
"""Of the two tokens of a pair: equal ones, in one sentence."""
SETS = ("all", "equal", "together")
"""Of pairs: all of them, those of equal tokens, those within one sentence."""
MOST_WINDOWS_IN_A_SHARD = 256
"""A count of windows up to this many fits into NARROW, in which a shard counts them."""
NARROW = "int16"
assert np.iinfo(NARROW).max >= MOST_WINDOWS_IN_A_SHARD


@dataclass(frozen=True)
class _Shaped:
    """An array. shape: one letter a dimension, see `sizes`."""

    shape: str
    dtype: Literal["int64", "int32", "float64"]

    def size(self, layers: int, heads: int, length: int) -> tuple[int, ...]:
        known = sizes(layers, heads, length)
        return tuple(known[letter] for letter in self.shape)


@dataclass(frozen=True)
class State(_Shaped):
    """An array that adds up; of a symmetric one only i < j. With a letter G it is kept for each group of texts.

    dtype: in the end; int32 where the array is large and no count can reach two thousand million before the windows do.
    needs: without them it says nothing and is not kept. before: what makes its total from the other arrays of a
    version that did not keep it. of_high_pairs: so it is known at the threshold of the study alone.
    """

    symmetric: bool = False
    needs: Traits = frozenset()
    of_high_pairs: bool = False
    before: Callable[[Arrays], NDArray[Any]] | None = None

    @property
    def grouped(self) -> bool:
        return "G" in self.shape

    def total(self, array: NDArray[Any]) -> NDArray[Any]:
        """Over all groups of texts."""
        total: NDArray[Any] = array.sum(self.shape.index("G")) if self.grouped else array
        return total

    @property
    def of_windows(self) -> bool:
        """Whether it is small enough to be kept for every window and head."""
        return self.shape.startswith("LHG") and not {"M", "C"} & {*self.shape}

    @property
    def shape_of_total(self) -> str:
        return self.shape.replace("G", "")

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
        "G": GROUPS,
        "U": heads + 1,
        "P": SHARE_BINS,
        "V": VALUE_BINS,
        "F": FINE_BINS,
        "C": COARSE_BINS,
        "T": len(THRESHOLDS),
        "R": len(RELATIONS),
        "M": len(SETS),
        "D": len(DIAGONALS),
        "K": len(KINDS),
    }


@dataclass(frozen=True)
class Derived(_Shaped):
    """An array of a study folder that is no state: `of` makes it from the states named in `made_of`."""

    of: Callable[[Arrays], NDArray[Any]]
    made_of: tuple[str, ...]
    needs: Traits = frozenset()


@dataclass(frozen=True)
class Ratio:
    """part / whole, both (L, H). Over the heads of a layer both are summed first."""

    part: NDArray[Any]
    whole: NDArray[Any]

    @property
    def weight(self) -> NDArray[Any]:
        """What it is divided by."""
        return self.whole

    def of_heads(self) -> NDArray[np.float64]:
        return _divided(self.part, self.whole)

    def of_layers(self) -> NDArray[np.float64]:
        return _divided(self.part.sum(1), self.whole.sum(1))


@dataclass(frozen=True)
class Total:
    """A count over all windows, (L, H), and how many windows there are; a layer has the sum of its heads."""

    count: NDArray[np.int64]
    windows: NDArray[np.int64]

    @property
    def weight(self) -> NDArray[Any]:
        return self.windows

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

    @property
    def weight(self) -> NDArray[Any]:
        return self.whole

    def of_layers(self) -> NDArray[np.float64]:
        return _divided(self.part, self.whole)


@dataclass(frozen=True)
class SignalToNoise:
    """Mean of r over the pairs of a relation, over its root mean square over all pairs; all (L, H), sums and counts.
    Over the heads of a layer all are summed first."""

    signal: NDArray[Any]
    pairs: NDArray[Any]
    square: NDArray[Any]
    all_pairs: NDArray[Any]

    @property
    def weight(self) -> NDArray[Any]:
        return self.pairs

    def of_heads(self) -> NDArray[np.float64]:
        """Where r is 0 everywhere, so is this."""
        noise = np.sqrt(_divided(self.square, self.all_pairs))
        signal = _divided(self.signal, self.pairs)
        return np.divide(signal, noise, out=signal * 0, where=noise > 0)

    def of_layers(self) -> NDArray[np.float64]:
        summed = (array.sum(1) for array in (self.signal, self.pairs, self.square, self.all_pairs))
        return SignalToNoise(*summed).of_heads()


@dataclass(frozen=True)
class Auc:
    """How often a pair of the relation has a larger N than one without; equal ones count half. Both (L, H, bins), the
    counts of pairs by N, bins from low to high."""

    related: NDArray[Any]
    others: NDArray[Any]

    @property
    def weight(self) -> NDArray[Any]:
        weight: NDArray[Any] = self.related.sum(-1)
        return weight

    def of_heads(self) -> NDArray[np.float64]:
        related, others = self.related.astype(np.float64), self.others.astype(np.float64)
        lower = np.cumsum(others, -1) - others / 2
        return _divided((related * lower).sum(-1), related.sum(-1) * others.sum(-1))

    def of_layers(self) -> NDArray[np.float64]:
        return Auc(self.related.sum(1), self.others.sum(1)).of_heads()


Value = Ratio | Total | LayerRatio | SignalToNoise | Auc


@dataclass(frozen=True)
class Column:
    """Everything that is known of a column of the tables `heads` and `layers`.

    label: what a table calls it. definition: in sentences that need no other page. value: made from the states; None
    for layer, head and windows, which say what a row is about.
    chance: the column of what chance gives; given_distance: the column of what chance gives for pairs as far apart.
    resampled: the value as it is made where groups of texts are left out, if it is made otherwise there.
    of_high_pairs: the threshold enters it. pooled: the value at any threshold, made of all high pairs there; None where
    it is known at the threshold of the study alone.
    needs: without them the column is absent. profile: it says what a head does, so heads of different models are
    matched by it. overview: among the columns that are shown first.
    heads: false where only a whole layer has it.
    """

    name: str
    label: str
    unit: Unit
    topic: Topic
    definition: str
    value: Callable[[Arrays], Value] | None = None
    chance: str | None = None
    given_distance: str | None = None
    resampled: Callable[[Arrays], Value] | None = None
    of_high_pairs: bool = False
    pooled: Callable[[HighPairs], Ratio | Total] | None = None
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
