"""Rows of the distributions over windows that a study keeps: 50 bins on 0..1 for each head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.figures import choices, style
from headscope.figures.rows import Rows

if TYPE_CHECKING:
    from headscope.results import Study


def share_rows(
    study: Study, layer: int, heads: Sequence[int], histogram: str, mean: str, chance: str | None = None
) -> Rows:
    """A row for each head: the array `histogram` of the study, the columns `mean` and `chance` of its table."""
    counts = study.arrays[histogram][choices.place_of(study, layer)][list(heads)]
    table = study.heads[study.heads.layer == layer].set_index("head").loc[list(heads)]
    return Rows(
        counts=counts,
        edges=np.linspace(0, 1, counts.shape[-1] + 1),
        labels=[f"head {head}" for head in heads],
        colours=[style.head_colour(head) for head in heads],
        means=table[mean].to_numpy(),
        mean_format="{:.2f}",
        chance=None if chance is None else table[chance].to_numpy(),
    )


def occupied(rows: Sequence[Rows]) -> float:
    """The round number up to which there is anything to see."""
    last = [int(np.flatnonzero(each.counts.any(0)).max(initial=0)) for each in rows]
    return max(0.2, float(np.ceil(max(each.edges[end + 1] for each, end in zip(rows, last, strict=True)) * 10) / 10))
