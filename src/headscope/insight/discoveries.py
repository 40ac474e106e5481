"""Which heads are over chance, when many are asked: 144 intervals of 95 % miss seven times by themselves.

Each head has a two-sided test of its number against chance, by leaving out groups of texts (`measure.jackknife`). Of
the heads that come out other than chance, at most a share `rate` does so by luck, on average: the false discovery rate,
held by the rule of Benjamini and Hochberg. Those found are over or below chance by the sign of the difference; to be
below is a discovery too, so both sides are tested, and the rate is that of both together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.measure.catalogue import columns
from headscope.measure.jackknife import Estimate, NotByGroup
from headscope.wording import counted

RATE = 0.05
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Discoveries:
    """Of heads, as they stand in the table `heads`, which are told from chance; all (N,).

    difference: the number less chance. told: it can be said, there are groups of texts enough. called: what chance is.
    """

    difference: NDArray[np.float64]
    found: Flags
    told: Flags
    called: str
    rate: float = RATE

    @property
    def over(self) -> Flags:
        return self.found & (self.difference > 0)

    @property
    def below(self) -> Flags:
        return self.found & (self.difference < 0)

    @property
    def verdicts(self) -> list[str]:
        """A word or two a head: over, below, not told from chance, can't be said."""
        each = zip(self.told, self.over, self.below, strict=True)
        return [
            "can't be said" if not told else "over" if over else "below" if below else "not told from chance"
            for told, over, below in each
        ]

    def __str__(self) -> str:
        """As a part of a sentence.

        >>> print(Discoveries(np.array([0.1, -0.2, 0.1]), np.array([True, True, False]), np.ones(3, bool), "chance"))
        1 of 3 heads over chance (false discovery rate 5 %)
        """
        heads = counted(int(self.told.sum()), "head")
        return f"{int(self.over.sum())} of {heads} over {self.called} (false discovery rate {self.rate * 100:.0f} %)"


def heads_over(
    study: StudyFolder, column: str, chance: str | float | None = None, *, rate: float = RATE
) -> Discoveries:
    """Which heads have more of a column of `heads` than chance gives.

    chance: the column that holds it, or a number (0.5 for an AUC, 0 for signal to noise); by default the column of
    chance given distance, or that of chance where there is none. AbsentError: the study does not say how sure it is.

    >>> import headscope
    >>> print(heads_over(headscope.read("wiki"), "same_sentence_probability"))  # doctest: +SKIP
    30 of 144 heads over chance given distance (false discovery rate 5 %)
    """
    declared = columns(study.manifest.gives).get(column)
    if chance is None and declared is not None:
        chance = declared.given_distance or declared.chance
    if chance is None:
        raise ValueError(f"Nothing is known of what chance gives for {column}; say which number or column it is.")
    difference = _estimate(study, column) - (_estimate(study, chance) if isinstance(chance, str) else chance)
    called = "chance" if isinstance(chance, str) else f"{chance:g}"
    if declared is not None and chance == declared.given_distance:
        called = "chance given distance"
    return told_from_chance(difference, called, rate)


def told_from_chance(difference: Estimate, called: str = "chance", rate: float = RATE) -> Discoveries:
    """Of numbers less chance, one a head."""
    p_values = difference.p_values()
    return Discoveries(difference.value, discovered(p_values, rate), ~np.isnan(p_values), called, rate)


def discovered(p_values: NDArray[np.float64], rate: float = RATE) -> Flags:
    """Benjamini and Hochberg: the k smallest of n, k as large as it can be with the k-th at most k / n times the rate.
    NaN is no test.

    >>> discovered(np.array([0.01, 0.04, 0.03, np.nan, 0.9]))
    array([ True, False, False, False, False])
    >>> discovered(np.array([0.01, 0.04, 0.03, np.nan, 0.02]))
    array([ True,  True,  True, False,  True])
    """
    ordered = np.sort(p_values[~np.isnan(p_values)])
    passing = np.flatnonzero(ordered <= rate * np.arange(1, len(ordered) + 1) / max(len(ordered), 1))
    largest = ordered[passing[-1]] if len(passing) else -1.0
    return p_values <= largest


def _estimate(study: StudyFolder, column: str) -> Estimate:
    study.column("heads", column)  # says so where it is absent
    try:
        return study.jackknife.estimate("heads", column)
    except NotByGroup:
        raise AbsentError(
            f"{study.folder} does not keep {column} for each group of texts; run the study again to see how sure it is."
        ) from None
