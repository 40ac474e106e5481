"""What heads are named by: numbers made of columns, with how sure they are, of a study and of its nulls alike."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.windows import SEPARATORS
from headscope.folder.study_folder import StudyFolder
from headscope.insight.chance import distance_chance, kind_chance
from headscope.measure.declaration import Unit
from headscope.measure.jackknife import Estimate, NotByGroup

Numbers = NDArray[np.float64]


class Columns(Protocol):
    """The columns of `heads`, each as an estimate, (L * H,)."""

    def __call__(self, name: str) -> Estimate: ...


@dataclass(frozen=True)
class Quantity:
    """A number a head. of: makes it from the columns of a study; less: the smaller, the more there is of it."""

    label: str
    unit: Unit
    of: Callable[[StudyFolder, Columns], Estimate]
    less: bool = False


def estimated(study: StudyFolder, quantity: Quantity) -> Estimate:
    """Of all heads, (L * H,), with a place for every group of texts, so that it can be joined with that of a null.

    AbsentError: the study lacks a column, or does not say how sure it is.
    """
    return quantity.of(study, lambda name: _everywhere(study, name))


def over_groups(study: StudyFolder, quantity: Quantity, groups: Collection[int]) -> Numbers:
    """The same as some groups of texts alone would make it, (L * H,)."""

    def column(name: str) -> Estimate:
        value = study.jackknife.over("heads", name, groups)
        return Estimate(value, np.empty((0, len(value))), np.empty((0, len(value))))

    return quantity.of(study, column).value


def _everywhere(study: StudyFolder, name: str) -> Estimate:
    study.column("heads", name)
    try:
        return study.jackknife.everywhere("heads", name)
    except NotByGroup:
        raise ValueError(f"{name} is not kept for each group of texts") from None


def _column(label: str, unit: Unit, name: str) -> Quantity:
    return Quantity(label, unit, lambda study, column: column(name))


def _lift(label: str, name: str, chance: str) -> Quantity:
    def of(study: StudyFolder, column: Columns) -> Estimate:
        return column(name).joined(column(chance), _quotient)

    return Quantity(label, "number", of)


def _summed(label: str, what: str) -> Quantity:
    def of(study: StudyFolder, column: Columns) -> Estimate:
        first, *others = (column(f"{what}_to_{kind}") for kind in SEPARATORS)
        for other in others:
            first = first.joined(other, np.add)
        return first

    return Quantity(label, "share", of)


def _quotient(one: Numbers, other: Numbers) -> Numbers:
    quotient: Numbers = np.divide(one, other, out=np.full(np.shape(one), np.nan), where=other > 0)
    return quotient


def scaled(found: Estimate, by: float) -> Estimate:
    return Estimate(found.value * by, found.left_out * by, found.weight)


def _of_separators_in_the_text(study: StudyFolder, column: Columns) -> Estimate:
    chance = kind_chance(study, SEPARATORS)
    return scaled(ON_SEPARATORS.of(study, column), 1 / chance if chance else np.nan)


def _carried(study: StudyFolder, column: Columns) -> Estimate:
    return _summed("", "carried").of(study, column).joined(ON_SEPARATORS.of(study, column), _quotient)


def _of_random_distance(study: StudyFolder, column: Columns) -> Estimate:
    return scaled(column("mean_distance"), 1 / (distance_chance(study) or np.nan))


def _of_all_pairs(study: StudyFolder, column: Columns) -> Estimate:
    counts = study.arrays["similarity_histogram"]
    possible = counts.sum() / counts.shape[0] / counts.shape[1] / max(study.windows, 1)
    return scaled(column("pairs_per_window"), 1 / possible if possible else np.nan)


ON_PREVIOUS = _column("attention on the previous token", "share", "attention_previous")
ON_NEXT = _column("attention on the next token", "share", "attention_next")
ON_ITSELF = _column("attention on itself", "share", "attention_self")
ON_SEPARATORS = _summed("attention on separators", "attention")
SEPARATORS_LIFT = Quantity("that, as a multiple of their share of the tokens", "number", _of_separators_in_the_text)
CARRIED = Quantity("what they bring, as a multiple of the attention on them", "number", _carried)
REPEATS = _lift("equal tokens, as a multiple of what distance gives", "repeat_probability", "repeat_chance_by_distance")
IN_ONE_SENTENCE = _lift(
    "pairs in one sentence, as a multiple of what distance gives",
    "same_sentence_probability",
    "same_sentence_chance_by_distance",
)
SENTENCE_SIGNAL = _column("signal over noise of one sentence", "difference", "signal_to_noise_sentence")
REPEAT_SIGNAL = _column("signal over noise of equal tokens", "difference", "signal_to_noise_repeat")
FOCAL = _column("pairs with the focal token", "share", "focal_share")
FOCAL_LIFT = _lift("that, as a multiple of what random pairs have", "focal_share", "focal_chance")
DISTANCE = Quantity("mean distance, as a multiple of that of random pairs", "number", _of_random_distance, less=True)
HIGH_SHARE = Quantity("pairs that are high", "share", _of_all_pairs)
