"""Which measures of a study tell what a head is worth: rank correlations with what moved when it was silenced.

Over all heads, by depth (thirds of the layers) and within layers, where the depth of a layer can't make them. How sure:
an interval over texts, from groups left out of the ablation and, apart from it, of the study, whose squared errors add
up; and over heads, how often as many unrelated heads would have such a correlation by luck.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError
from headscope.folder.ablation_folder import AblationFolder
from headscope.folder.study_folder import StudyFolder
from headscope.insight.discoveries import discovered
from headscope.insight.stability import rank_correlation, ranks
from headscope.measure.catalogue import columns
from headscope.measure.jackknife import Estimate, NotByGroup, Sure
from headscope.measure.student import two_sided

if TYPE_CHECKING:
    import pandas as pd

Numbers = NDArray[np.float64]
Correlation = Callable[[Numbers, Numbers], float]
ALL, WITHIN = "all heads", "within layers"
DEPTHS = ("first third", "middle third", "last third")
PREDICTORS_COLUMNS = ("column", "where", "heads", "correlation", "low", "high", "p", "found")
DEPTH = "layer"
"""The number of the layer, beside the columns: how far depth alone goes."""


def predictors(heads: Sequence[tuple[int, int]], importance: Estimate, study: StudyFolder) -> pd.DataFrame:
    """A row per column of `heads` of a study and part of the heads: Spearman's rank correlation with importance.

    heads: (layer, head) that the importance is of. low, high: the 95 % interval over texts. p: how likely so large a
    correlation is over unrelated heads; found: told from 0 at a false discovery rate of 5 % among all columns there.
    The strongest come first.
    """
    import pandas as pd

    places = _places(study, heads)
    layers = np.array([layer for layer, _ in heads])
    rows = []
    for where, chosen, correlation, lost in parts(layers):
        mine = importance.at(chosen)
        found = []
        for name in (DEPTH, *_columns(study)):
            if name == DEPTH and where == WITHIN:
                continue
            told = _told(study, name, places[chosen], mine, correlation)
            low, high = (float(end[0]) for end in told.interval())
            value, count = float(told.value[0]), int(chosen.sum())
            p = _p_value(value, count - 2 - lost)
            found.append((name, where, count, value, max(low, -1.0), min(high, 1.0), p))
        flags = discovered(np.array([row[-1] for row in found]))
        rows += [(*row, bool(flag)) for row, flag in zip(found, flags, strict=True)]
    table = pd.DataFrame(rows, columns=list(PREDICTORS_COLUMNS))
    order = table["where"].map({name: number for number, name in enumerate((ALL, WITHIN, *DEPTHS))})
    keys = pd.DataFrame({"order": order, "size": -table["correlation"].abs().fillna(-1)})
    return table.loc[keys.sort_values(["order", "size"], kind="stable").index].reset_index(drop=True)


def parts(layers: NDArray[np.int64]) -> list[tuple[str, NDArray[np.bool_], Correlation, int]]:
    """Parts of the heads: what it is called, which heads, how they are correlated, and degrees of freedom that this
    takes. layers: (N,), of each head."""
    numbers = np.unique(layers)
    every = np.ones(len(layers), dtype=bool)
    found: list[tuple[str, NDArray[np.bool_], Correlation, int]] = [(ALL, every, rank_correlation, 0)]
    if len(numbers) > 1:
        found.append((WITHIN, every, lambda one, other: correlation_within(one, other, layers), len(numbers) - 1))
    if len(numbers) >= len(DEPTHS):
        for name, some in zip(DEPTHS, np.array_split(numbers, len(DEPTHS)), strict=True):
            found.append((name, np.isin(layers, some), rank_correlation, 0))
    return found


def correlation_within(one: Numbers, other: Numbers, layers: NDArray[np.int64]) -> float:
    """Of the ranks that heads have within their layers, each layer about its mean; NaN where nothing varies.

    >>> correlation_within(np.array([1., 2, 11, 12]), np.array([8., 9, 3, 4]), np.array([0, 0, 1, 1]))
    1.0
    """
    products = squares = others = 0.0
    for layer in np.unique(layers):
        mine = (layers == layer) & ~np.isnan(one) & ~np.isnan(other)
        if mine.any():
            left, right = (ranks(values[mine]) - (mine.sum() + 1) / 2 for values in (one, other))
            products += float((left * right).sum())
            squares += float((left**2).sum())
            others += float((right**2).sum())
    return products / float(np.sqrt(squares * others)) if squares * others > 0 else np.nan


def reliability(importance: Estimate) -> float:
    """The rank correlation of importance between two halves of the groups of texts: what correlations can reach at
    most is limited by it. NaN where there are fewer than 2 groups."""
    if len(importance.left_out) < 2:
        return np.nan
    halves = []
    for odd in (0, 1):
        mine = np.arange(len(importance.left_out)) % 2 == odd
        share = importance.weight[mine]
        # What a group is by itself follows from what is left without it.
        alone = (importance.value - (1 - share) * importance.left_out[mine]) / share
        halves.append((alone * share).sum(0) / share.sum(0))
    return rank_correlation(*halves)


def _told(study: StudyFolder, name: str, places: NDArray[np.int64], importance: Estimate, how: Correlation) -> Sure:
    """The correlation, with the error over texts."""
    if name == DEPTH:
        column = Estimate(study.heads["layer"].to_numpy(dtype=np.float64), np.empty((0, 0)), np.empty((0, 0)))
    else:
        try:
            column = study.jackknife.estimate("heads", name)
        except (NotByGroup, HeadscopeError):
            column = Estimate(study.column("heads", name), np.empty((0, 0)), np.empty((0, 0)))
    values = column.value[places]
    by_texts = _over_groups(importance, lambda without: how(without, values))
    if not len(column.left_out):
        return by_texts
    mine = column.at(places)
    of_study = _over_groups(mine, lambda without: how(importance.value, without))
    error = np.hypot(by_texts.error, of_study.error)
    return Sure(by_texts.value, error, np.minimum(by_texts.freedom, of_study.freedom))


def _over_groups(estimate: Estimate, how: Callable[[Numbers], float]) -> Sure:
    """A number made of all numbers of an estimate, and its error."""
    left_out = np.array([[how(without)] for without in estimate.left_out])
    weight = estimate.weight.mean(1, keepdims=True)
    return Estimate(np.array([how(estimate.value)]), left_out.reshape(-1, 1), weight).sure


def _p_value(correlation: float, freedom: int) -> float:
    if np.isnan(correlation) or freedom < 1:
        return np.nan
    t = abs(correlation) * np.sqrt(freedom / max(1 - correlation**2, 1e-12))
    return float(two_sided(np.array([t]), freedom)[0])


def _columns(study: StudyFolder) -> list[str]:
    declared = columns(study.manifest.gives)
    return [name for name, column in declared.items() if column.value and column.heads and name in study.heads]


def _places(study: StudyFolder, heads: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Where heads stand in the table of a study."""
    there = {key: place for place, key in enumerate(zip(study.heads["layer"], study.heads["head"], strict=True))}
    lacking = next((head for head in heads if head not in there), None)
    if lacking is not None:
        raise HeadscopeError(
            f"{study.folder} did not measure head {lacking[0]}:{lacking[1]}; give a study of the same model and layers."
        )
    return np.array([there[head] for head in heads], dtype=np.int64)


def sentence(ablation: AblationFolder, table: pd.DataFrame) -> str:
    """Which measure tells best what a head is worth, if any does."""
    told = []
    for where in (ALL, WITHIN):
        some = table[(table["where"] == where) & (table["column"] != DEPTH)]
        found = some[some["found"]]
        if found.empty:
            told.append(f"{where}, none of {len(some)} columns is told from 0")
            continue
        best = found.iloc[0]
        told.append(
            f"{where}, {len(found)} of {len(some)} columns are told from 0, {best['column']} most "
            f"({best['correlation']:+.2f}, {best['low']:+.2f} to {best['high']:+.2f} over texts)"
        )
    halves = reliability(ablation.importance)
    return f"Rank correlation with {ablation.worth}: {'; '.join(told)}. Between halves of the texts it is {halves:.2f}."
