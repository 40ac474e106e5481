"""What a measure is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.corpus.windows import KINDS
from headscope.files import zeros
from headscope.measure.definitions import SHARE_BINS, VALUE_BINS, share_bin
from headscope.measure.observation import Seen, Tokens

Arrays = Mapping[str, NDArray[Any]]

WINDOWS_PER_SHARD = 256
"""Part of what fixes the result to the last bit: shards are added up in order, so their bounds may not vary."""
SHARD_COUNT = "int16"
"""Of a map of counts, summed over one shard: as narrow as it may be, for it is touched for every window."""
# A window adds at most 1 to each element of such a map.
assert np.iinfo(SHARD_COUNT).max >= WINDOWS_PER_SHARD, "A map of counts would overflow within a shard."


@dataclass(frozen=True)
class State:
    """An array that adds up; of a symmetric one only i < j. `shape`: one letter a dimension, see `sizes`; `dtype`: in
    the end."""

    shape: str
    dtype: Literal["int64", "float64"]
    symmetric: bool = False

    @property
    def shard_dtype(self) -> str:
        """Of the sum over one shard, where a map of counts is narrower."""
        return SHARD_COUNT if self.shape == "LHSS" and self.dtype == "int64" else self.dtype

    def zeros(self, layers: int, heads: int, length: int, device: torch.device) -> Tensor:
        """To add one shard to."""
        known = sizes(layers, heads, length)
        return torch.from_numpy(zeros(tuple(known[letter] for letter in self.shape), self.shard_dtype)).to(device)


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
class Ratio:
    """A column: part / whole, both (L, H). Over the heads of a layer both are summed first."""

    part: NDArray[Any]
    whole: NDArray[Any]

    def of_heads(self) -> NDArray[np.float64]:
        return _divided(self.part, self.whole)

    def of_layers(self) -> NDArray[np.float64]:
        return _divided(self.part.sum(1), self.whole.sum(1))


@dataclass(frozen=True)
class Total:
    """A column that counts, (L, H); a layer has the sum of its heads."""

    count: NDArray[np.int64]

    def of_heads(self) -> NDArray[np.int64]:
        return self.count

    def of_layers(self) -> NDArray[np.int64]:
        total: NDArray[np.int64] = self.count.sum(1)
        return total


Column = Ratio | Total


class Measure(Protocol):
    """A module of this package."""

    @property
    def STATES(self) -> Mapping[str, State]:
        """Name -> what it keeps."""

    def update(self, states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
        """Add what was seen of one batch."""

    def columns(self, arrays: Arrays) -> Mapping[str, Column]:
        """Name -> column of the tables."""


def add_shares(
    states: Mapping[str, Tensor], name: str, part: Tensor, whole: Tensor, chance: Tensor | None = None
) -> None:
    """Add the windows' shares part / whole, (L, B, H); a window with nothing to divide by is left out.

    States NAME_share_sum and NAME_windows (L, H), NAME_histogram (L, H, 50), and NAME_chance_sum where `chance` (B,)
    gives the share among all pairs of each window.
    """
    counted = whole > 0
    divisor = whole.clamp(min=1)
    states[f"{name}_share_sum"].add_((part.double() / divisor).mul(counted).sum(1))
    states[f"{name}_windows"].add_(counted.sum(1))
    if chance is not None:
        states[f"{name}_chance_sum"].add_((chance[None, :, None] * counted).sum(1))
    bins = share_bin(part, divisor).transpose(1, 2)
    states[f"{name}_histogram"].scatter_add_(2, bins, counted.transpose(1, 2).long())


def share_states(name: str, chance: bool = False) -> dict[str, State]:
    """The states that `add_shares` adds to."""
    states = {
        f"{name}_share_sum": State("LH", "float64"),
        f"{name}_windows": State("LH", "int64"),
        f"{name}_histogram": State("LHP", "int64"),
    }
    if chance:
        states[f"{name}_chance_sum"] = State("LH", "float64")
    return states


def _divided(part: NDArray[Any], whole: NDArray[Any]) -> NDArray[np.float64]:
    """part / whole in float64, NaN where there is nothing to divide by."""
    quotient: NDArray[np.float64] = np.full(part.shape, np.nan)
    np.divide(part, whole, out=quotient, where=whole != 0, dtype=np.float64)
    return quotient
