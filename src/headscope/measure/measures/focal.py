"""Focal token (Fig. 11): the value in the most high pairs, its share of them, and how many a layer's heads have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.measure.declaration import Arrays, Column, LayerRatio, Measure, Ratio, State
from headscope.measure.measures import grouped
from headscope.measure.measures.shares import add_shares, share_states

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    add_shares(states, "focal_share", tokens, seen.focal_pairs, seen.pairs)
    unique = unique_focal_tokens(seen.focal)
    states["unique_focal_histogram"].scatter_add_(1, unique, unique.new_ones(unique.shape))
    grouped.add(states, "unique_focal_sum", tokens, unique)


def unique_focal_tokens(focal: Tensor) -> Tensor:
    """(L, B, H) token ids, -1 for none -> (L, B): how many different ones the heads have."""
    ordered = focal.sort(dim=-1).values
    changes = (ordered[..., 1:] != ordered[..., :-1]).sum(-1) + 1
    return changes - (ordered[..., 0] < 0).long()


def _of_histogram(arrays: Arrays) -> NDArray[Any]:
    counts = arrays["unique_focal_histogram"]
    total: NDArray[Any] = counts @ np.arange(counts.shape[1])
    return total


MEASURE = Measure(
    states=share_states("focal_share")
    | {
        "unique_focal_histogram": State("LU", "int64", of_high_pairs=True),
        "unique_focal_sum": State("LG", "int64", of_high_pairs=True, before=_of_histogram),
    },
    columns=(
        Column(
            "focal_share",
            "focal share",
            "share",
            "pairs",
            "The focal token of a window is the token that occurs in the most high pairs (a pair of two equal tokens "
            "counts once; ties go to the lower number in the vocabulary). This is the share of the high pairs that "
            "include it; mean over the windows that have high pairs.",
            lambda arrays: Ratio(arrays["focal_share_share_sum"], arrays["focal_share_windows"]),
            chance="focal_chance",
            of_high_pairs=True,
            profile=True,
            overview=True,
        ),
        Column(
            "unique_focal_tokens",
            "different focal tokens",
            "count",
            "pairs",
            "How many different focal tokens the heads of the layer have in a window; mean over windows.",
            lambda arrays: LayerRatio(arrays["unique_focal_sum"], arrays["windows"][:, 0]),
            chance="unique_focal_chance",
            of_high_pairs=True,
            overview=True,
            heads=False,
        ),
    ),
    update=update,
)
