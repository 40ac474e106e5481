"""How much a boundary must save to be one: the penalty, from the text itself.

Two things speak: how far sentences lie apart, and how slowly they become unlike each other with distance. If topics
are long, similarity fades slowly, and a boundary between two of them saves much; what saves far less lies within one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST = 1.6
"""Of the mean squared distance of a sentence from the centre: what a boundary must save in any text."""
SHARE = 0.31
"""Of the mean of that distance, counted twice, and of what a boundary between two topics saves: the geometric mean, for
each unit of the logarithm of the number of sentences. The more places there are, the more a boundary saves by chance in
one of them."""
FARTHEST = 1024
"""Sentences, of which a longer text counts no more: no segment is longer."""


def penalty_of(runs: Sequence[Array], count: int) -> float:
    """Of vectors of sentences that follow each other, in one run (n, D) or several; count: sentences of the whole text.

    If topics had one length m and two of them the squared distance Δ² between their means, the similarity of sentences
    would fall from Δ²/2 above that of far ones to 0 over m sentences: the area below it is mΔ²/4, and the boundary
    between two of them saves mΔ²/2, twice the area.
    """
    every = np.concatenate(runs)
    spread = float((every**2).sum(1).mean() - (every.mean(0) ** 2).sum())
    typical = np.cbrt(spread**2 * 2 * fading(runs))
    return float(max(LEAST * spread, SHARE * np.log(min(max(count, 2), FARTHEST)) * typical))


def fading(runs: Sequence[Array]) -> float:
    """The area between the similarity of sentences and that of far ones, over their distance, until they meet.

    Far ones are more than a third of the run apart, or in different runs.
    """
    longest = max(map(len, runs))
    sums, counts = np.zeros(longest), np.zeros(longest)
    for run in runs:
        similarity = run @ run.T
        for distance in range(len(run)):
            sums[distance] += np.trace(similarity, distance)
            counts[distance] += len(run) - distance
    if longest < 3:
        return 0.0
    if len(runs) == 1:
        apart = slice(longest // 3, None)
        far = sums[apart].sum() / counts[apart].sum()
    else:
        totals = [run.sum(0) for run in runs]
        whole, sizes = np.sum(totals, 0), [len(run) for run in runs]
        across = whole @ whole - sum(total @ total for total in totals)
        far = across / (sum(sizes) ** 2 - sum(size**2 for size in sizes))
    above = sums[1:] / counts[1:] - far
    met = np.flatnonzero(above <= 0)
    return float(above[: met[0] if len(met) else len(above)].sum())
