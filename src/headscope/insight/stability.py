"""Would other texts give the same picture? Parts of the corpus, set side by side head by head.

The parts are made of the groups of texts that intervals are made of: halves of even and odd groups, fifths by the
number of the group mod 5. A column is stable if heads come in the same order in every part.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.measure.catalogue import columns
from headscope.measure.jackknife import Jackknife, NotByGroup
from headscope.wording import counted

if TYPE_CHECKING:
    import pandas as pd

FEWEST = 10
"""Groups of texts that it takes: two in each fifth."""
HALVES, FIFTHS = 2, 5
Numbers = NDArray[np.float64]


def stability(study: StudyFolder) -> pd.DataFrame:
    """A row per column of `heads`: whether its order of heads is the same in parts of the texts.

    halves: the rank correlation (Spearman's) over heads between two halves; fifths: its mean over the pairs of fifths.
    top_tenth: how many heads are the top tenth of all; top_tenth_kept: the share of them that is in the top tenth in
    every fifth, and heads_kept which these are, as (layer, head), the highest first. NaN: nothing to compare, as where
    all heads have the same number. AbsentError: there are fewer than 10 groups of texts, or none are kept.
    """
    import pandas as pd

    jackknife = study.jackknife
    if len(jackknife.holding) < FEWEST:
        raise AbsentError(
            f"{study.folder} has {counted(len(jackknife.holding), 'group')} of texts; whether others would give the "
            f"same order of heads can be said from {FEWEST} on."
        )
    names = list(zip(study.heads["layer"].tolist(), study.heads["head"].tolist(), strict=True))
    rows = []
    for name, column in columns(study.manifest.gives).items():
        if column.value is None or not column.heads or name not in study.heads:
            continue
        try:
            halves, fifths = (in_parts(jackknife, name, parts) for parts in (HALVES, FIFTHS))
        except NotByGroup:
            continue
        value = study.column("heads", name)
        top = top_tenth(value)
        kept = np.logical_and.reduce([top, *map(top_tenth, fifths)])
        best_first = np.argsort(-value, kind="stable")
        rows.append(
            {
                "column": name,
                "halves": rank_correlation(*halves),
                "fifths": float(np.mean([rank_correlation(*two) for two in combinations(fifths, 2)])),
                "top_tenth": int(top.sum()),
                "top_tenth_kept": kept.sum() / top.sum() if top.any() else np.nan,
                "heads_kept": [names[place] for place in best_first if kept[place]],
            }
        )
    return pd.DataFrame(rows)


def in_parts(jackknife: Jackknife, column: str, parts: int) -> list[Numbers]:
    """A column of `heads` from each part of the texts alone: the groups whose number mod `parts` is 0, 1, ..."""
    return [
        jackknife.over("heads", column, [group for group in jackknife.holding if group % parts == part])
        for part in range(parts)
    ]


def ranks(values: Numbers) -> Numbers:
    """1 for the smallest; equal ones share the mean of theirs.

    >>> ranks(np.array([5.0, 2.0, 5.0, 9.0]))
    array([2.5, 1. , 2.5, 4. ])
    """
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranked: Numbers = (np.cumsum(count) - (count - 1) / 2)[place]
    return ranked


def rank_correlation(one: Numbers, other: Numbers) -> float:
    """Spearman's, over what both have; NaN where either is the same everywhere.

    >>> rank_correlation(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 4.0, 9.0, np.nan]))
    1.0
    """
    both = ~np.isnan(one) & ~np.isnan(other)
    one, other = (ranks(values[both]) - (both.sum() + 1) / 2 for values in (one, other))
    spread = np.sqrt((one**2).sum() * (other**2).sum())
    return float((one * other).sum() / spread) if spread > 0 else np.nan


def top_tenth(values: Numbers) -> NDArray[np.bool_]:
    """Those whose rank from the top is within a tenth of all, but at least the first; of equal ones all or none.

    >>> top_tenth(np.array([0.1, 0.9, 0.9, np.nan])), top_tenth(np.array([0.1, 0.9, 0.8]))
    (array([False, False, False, False]), array([False,  True, False]))
    """
    known = ~np.isnan(values)
    top = np.zeros(len(values), dtype=np.bool_)
    top[known] = ranks(-values[known]) <= max(1, round(known.sum() / 10))
    return top
