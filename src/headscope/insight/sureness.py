"""How sure the numbers of a study are: estimates with their intervals, and how sentences say them.

A study of an older version, or read at another threshold, keeps no groups of texts: then there are no intervals. With
texts in fewer than eight groups there are none either, and that is said once, among the notices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError
from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.measure.catalogue import columns
from headscope.measure.declaration import Unit
from headscope.measure.jackknife import FEWEST, Estimate, NotByGroup, within
from headscope.wording import counted, ranged

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
CLEARLY = 1.1
"""Times chance: what exceeds it by less is too little to speak of, however sure."""


def estimate(study: StudyFolder, table: str, *names: str) -> Estimate | None:
    """The sum of some columns, a number a row; None where the study does not tell how sure they are."""
    if study.manifest.groups is None:
        return None  # As an error would say too; but at other thresholds this is asked thousands of times.
    try:
        found = [study.jackknife.estimate(table, name) for name in names]
    except (AbsentError, NotByGroup, HeadscopeError):
        return None
    return reduce(lambda one, other: one.joined(other, np.add), found)


def over_chance(study: StudyFolder, table: str, name: str, chance: str, times: float = CLEARLY) -> Estimate | None:
    """By how much a column exceeds so many times the column of what chance gives."""
    value, by_chance = estimate(study, table, name), estimate(study, table, chance)
    if value is None or by_chance is None:
        return None
    return value.joined(by_chance, lambda one, other: one - times * other)


def told(
    study: StudyFolder, table: str, names: str | Sequence[str], places: int | Numbers, value: float, unit: Unit
) -> str:
    """A number as a sentence says it, with its interval where there is one: "16 % (14 to 18)". It is that of a row of
    the table, or the mean of several; of a column, or the sum of several."""
    found = estimate(study, table, *([names] if isinstance(names, str) else names))
    if found is None:
        return ranged(value, None, None, unit)
    low, high = within(unit, found.at(np.atleast_1d(places)).mean())
    return ranged(value, float(low[0]), float(high[0]), unit)


def layer_intervals(study: StudyFolder, name: str) -> tuple[Reals, Reals] | None:
    """The ends of the intervals of a column of the layers, (L,) each; None where there are none."""
    return _intervals(study, "layers", name)


def head_intervals(study: StudyFolder, name: str) -> tuple[Reals, Reals] | None:
    """The same of the heads, (L * H,)."""
    return _intervals(study, "heads", name)


def _intervals(study: StudyFolder, table: str, name: str) -> tuple[Reals, Reals] | None:
    found = estimate(study, table, name)
    if found is None or np.isnan(found.error).all():
        return None
    return within(columns(study.manifest.gives)[name].unit, found)


def too_few_texts(study: StudyFolder) -> str | None:
    """Why there are no intervals, where texts are too few."""
    try:
        holding = len(study.jackknife.holding)
    except (AbsentError, HeadscopeError):
        return None
    if holding >= FEWEST:
        return None
    kind = "text" if study.manifest.kind == "texts" else "image"
    return (
        f"A small sample: {counted(holding, kind)} with windows, too few to say how sure the numbers are; "
        f"from {FEWEST} on there are intervals."
    )
