"""Which layers and heads a figure shows: those asked for, or those of the paper, scaled to the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

import pandas as pd

from headscope.errors import HeadscopeError
from headscope.wording import head_name, in_words, ranges

if TYPE_CHECKING:
    from headscope.folder.study_folder import StudyFolder

Head = tuple[int, int]
"""A layer and a head of it, by their numbers."""
Heads = Sequence[int] | Sequence[Head]
"""Heads by their numbers, the same in each layer shown; or single ones."""

PAPER_LAYERS = (1, 6, 10, 11)
EARLY_MIDDLE_LAST = (1, 6, 11)
LAST = (11,)
PAPER_DEPTH = 12
FEW_PAIRS = 10
"""High pairs a window: a head with fewer says little about where pairs lie."""


@dataclass(frozen=True)
class Shown:
    """What a figure draws. layers: as a whole, by the sum over their heads, or a row for each. heads: single ones.
    every_head: of the layers, not only their sum.

    >>> print(Shown((1, 6, 11))), print(Shown((3,), ((3, 4), (3, 5))))
    layers 1, 6 and 11
    layer 3, head 4; layer 3, head 5
    (None, None)
    """

    layers: tuple[int, ...] = ()
    heads: tuple[Head, ...] = ()
    every_head: bool = False

    def draws(self, layers: Sequence[int], heads: Sequence[Head]) -> bool:
        """Whether all of these are there to see."""
        return set(layers) <= set(self.layers) and all(
            head in self.heads or (self.every_head and head[0] in self.layers) for head in heads
        )

    def __str__(self) -> str:
        return "; ".join(map(head_name, self.heads)) if self.heads else in_words(self.layers) if self.layers else ""


def rows_shown(study: StudyFolder, layers: Sequence[int] | None, heads: Heads | None, paper: Sequence[int]) -> Shown:
    """Of a figure with a row for each head of some layers: all of them, or those asked for."""
    chosen = tuple(layers_of(study, layers, paper))
    if heads is None:
        return Shown(chosen, every_head=True)
    return Shown(chosen, tuple((layer, head) for layer in chosen for head in heads_of(study, heads, ())))


def couples_shown(study: StudyFolder, layers: Sequence[int] | None, heads: Heads | None, paper: Sequence[int]) -> Shown:
    """Of a figure with a head beside the sum of its layer. Of heads by number the first stands beside each layer, by
    default head 0; single ones stand beside their own, head 0 beside other layers."""
    if are_single(heads):
        couples = single_heads(study, heads)
        others = layers_of(study, layers or (), paper)
        couples = sorted(couples + [(layer, 0) for layer in others if layer not in {layer for layer, _ in couples}])
    else:
        couples = [(layer, heads_of(study, heads, [0])[0]) for layer in layers_of(study, layers, paper)]
    return Shown(tuple(dict.fromkeys(layer for layer, _ in couples)), tuple(couples))


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


def head_at(study: StudyFolder, place: int) -> Head:
    """The layer and the head in a row of the heads' table."""
    row, head = divmod(place, study.manifest.model.heads)
    return study.manifest.layers[row], head


def place_of_head(study: StudyFolder, head: Head) -> int:
    """The row of a head in the heads' table."""
    return study.manifest.layers.index(head[0]) * study.manifest.model.heads + head[1]


def heads_of(study: StudyFolder, heads: Heads | None, default: Sequence[int]) -> list[int]:
    """The heads asked for by their numbers, or the default ones."""
    count: int = study.manifest.model.heads
    chosen = []
    for head in default if heads is None else heads:
        if isinstance(head, tuple) or not 0 <= head < count:
            raise HeadscopeError(f"There is no head {head} in {study.folder}; heads are numbered 0 to {count - 1}.")
        chosen.append(head)
    return chosen


def are_single(heads: Heads | None) -> TypeGuard[Sequence[Head]]:
    """Whether heads are given with their layers."""
    return bool(heads) and all(isinstance(head, tuple) for head in heads or ())


def single_heads(study: StudyFolder, heads: Sequence[Head]) -> list[Head]:
    """Single heads that were asked for, all of them measured."""
    layers_of(study, [layer for layer, _ in heads], ())
    heads_of(study, [head for _, head in heads], ())
    return list(heads)


def all_heads(study: StudyFolder) -> range:
    return range(study.manifest.model.heads)


def nearest_and_farthest(study: StudyFolder, layers: Sequence[int] | None = None) -> list[Head]:
    """(layer, head) of the smallest and of the largest mean distance; one where there is but one head with pairs."""
    study.column("heads", "mean_distance")  # Where it is absent, that is said: of images at another threshold.
    table = study.heads if layers is None else study.heads[study.heads.layer.isin(layers)]
    with_pairs = table[table["mean_distance"].notna()]
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
