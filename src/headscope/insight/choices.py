"""Which layers and heads a figure shows when nothing is asked for: those of the paper, scaled to the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from headscope.errors import HeadscopeError
from headscope.wording import ranges

if TYPE_CHECKING:
    from headscope.folder.study_folder import StudyFolder

PAPER_LAYERS = (1, 6, 10, 11)
EARLY_MIDDLE_LAST = (1, 6, 11)
LAST = (11,)
PAPER_DEPTH = 12
FEW_PAIRS = 10
"""High pairs a window: a head with fewer says little about where pairs lie."""


def layers_of(study: StudyFolder, layers: Sequence[int] | None, paper: Sequence[int]) -> list[int]:
    """The layers asked for, or the paper's at the same depth of this model, as far as they were measured."""
    measured: list[int] = study.manifest.layers
    if layers is not None:
        for layer in layers:
            if layer not in measured:
                raise HeadscopeError(
                    f"Layer {layer} was not measured in {study.folder}; there are layers {ranges(measured)}."
                )
        return list(layers)
    depth = study.manifest.model.layers
    wanted = [scaled(layer, depth) for layer in paper]
    return sorted({min(measured, key=lambda layer: abs(layer - goal)) for goal in wanted})


def scaled(layer: int, depth: int) -> int:
    """A layer of the paper's twelve -> the layer at the same depth of a model with `depth` layers; halves go down.

    >>> [scaled(layer, 6) for layer in (1, 6, 10, 11)]
    [0, 2, 4, 5]
    """
    return max(0, math.ceil((layer + 1) * depth / PAPER_DEPTH - 1.5))


def place_of(study: StudyFolder, layer: int) -> int:
    """Where a layer stands in the arrays."""
    place: int = study.manifest.layers.index(layer)
    return place


def heads_of(study: StudyFolder, heads: Sequence[int] | None, default: Sequence[int]) -> list[int]:
    """The heads asked for, or the default ones."""
    count: int = study.manifest.model.heads
    for head in heads or ():
        if not 0 <= head < count:
            raise HeadscopeError(f"There is no head {head} in {study.folder}; heads are numbered 0 to {count - 1}.")
    return list(default if heads is None else heads)


def all_heads(study: StudyFolder) -> range:
    return range(study.manifest.model.heads)


def nearest_and_farthest(study: StudyFolder, layers: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """(layer, head) of the smallest and of the largest mean distance; one where there is but one head with pairs."""
    study.column("heads", "mean_distance")  # Where it is absent, that is said: of images at another threshold.
    table = study.heads if layers is None else study.heads[study.heads.layer.isin(layers)]
    with_pairs = table.dropna(subset="mean_distance")
    enough = with_pairs[with_pairs.pairs_per_window >= FEW_PAIRS]
    table = with_pairs if enough.empty else enough
    if table.empty:
        return []
    distances = table["mean_distance"].to_numpy()
    ends = table.iloc[[int(distances.argmin()), int(distances.argmax())]]
    return list(dict.fromkeys(zip(ends["layer"].tolist(), ends["head"].tolist(), strict=True)))


def is_random(study: StudyFolder) -> bool:
    """Whether the weights were drawn at random."""
    return study.model_name.startswith("random:")


def row_of(study: StudyFolder, layer: int, head: int) -> pd.Series:
    """The row of the table `heads` of one head."""
    table = study.heads
    return table[(table.layer == layer) & (table["head"] == head)].iloc[0]
