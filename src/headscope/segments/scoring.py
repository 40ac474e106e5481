"""How far a segmentation is from a reference, as the field measures it. Segmentations are lists of segment lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError


class Scores(NamedTuple):
    """pk, window_diff: 0 is best; f1: of boundaries at the very place, 1 is best."""

    pk: float
    window_diff: float
    f1: float


def scores_of(lengths: Sequence[int], reference: Sequence[int]) -> Scores:
    """Of a segmentation, against its reference.

    >>> scores_of([5, 6], [2, 3, 6])
    Scores(pk=0.2222222222222222, window_diff=0.2222222222222222, f1=0.6666666666666666)
    """
    if sum(lengths) != sum(reference):
        raise HeadscopeError(
            f"A segmentation of {sum(lengths)} sentences can't be held against one of {sum(reference)}."
        )
    size = window_size(reference)
    ours, theirs = (_labels(masses) for masses in (lengths, reference))
    boundaries = [boundaries_between(masses, size) for masses in (ours, theirs)]
    pk = _mean((boundaries[0] > 0) != (boundaries[1] > 0))
    return Scores(pk, _mean(boundaries[0] != boundaries[1]), _f1(lengths, reference))


def window_size(reference: Sequence[int]) -> int:
    """Half the mean length of a segment of the reference, rounded, at least 2: as segeval has it."""
    return max(2, round(sum(reference) / len(reference) / 2))


def boundaries_between(labels: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """How many boundaries lie between each sentence and the one `size` after it."""
    return labels[size:] - labels[:-size]


def _labels(lengths: Sequence[int]) -> NDArray[np.int64]:
    """The number of the segment of each sentence."""
    return np.repeat(np.arange(len(lengths)), lengths)


def _mean(wrong: NDArray[np.bool_]) -> float:
    return float(wrong.mean()) if wrong.size else 0.0


def _f1(lengths: Sequence[int], reference: Sequence[int]) -> float:
    ours, theirs = ({*np.cumsum(masses)[:-1].tolist()} for masses in (lengths, reference))
    return 2 * len(ours & theirs) / (len(ours) + len(theirs)) if ours or theirs else 1.0
