"""What a finding is: its sentence, its number, what that is made of, and how far it stands over its rivals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.null_kinds import CALLED, Null
from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.choices import Head
from headscope.insight.sureness import CLEARLY, estimate
from headscope.measure.declaration import Unit
from headscope.measure.jackknife import Estimate, within
from headscope.wording import ranged

Name = TypeVar("Name", bound=str)
Ends = tuple[float, float]
"""From where to where an interval of 95 % goes."""


@dataclass(frozen=True)
class Quantity:
    """What a number is made of: the sum of some columns of a table, mean over some of its rows.

    per: columns of which the same is taken, to divide it by. lower_is_more: a finding speaks of how small it is.
    """

    table: Literal["layers", "heads"]
    columns: tuple[str, ...]
    places: tuple[int, ...]
    per: tuple[str, ...] = ()
    lower_is_more: bool = False

    def of(self, study: StudyFolder) -> float | None:
        """The number of any study with the same rows; None where it has none."""
        try:
            value = self._mean(study, self.columns)
            value = value if not self.per else float(_divided(value, self._mean(study, self.per)))
        except AbsentError:
            return None
        return None if math.isnan(value) else value

    def rows(self, study: StudyFolder) -> NDArray[np.float64]:
        """The number of each row of the table by itself."""
        value, *per = (
            np.sum([study.column(self.table, name) for name in names], 0) for names in (self.columns, self.per) if names
        )
        return _divided(value, per[0]) if per else value

    def _mean(self, study: StudyFolder, columns: Sequence[str]) -> float:
        values = np.sum([study.column(self.table, name)[list(self.places)] for name in columns], 0)
        known = values[~np.isnan(values)]
        return float(known.mean()) if len(known) else math.nan

    def estimate(self, study: StudyFolder) -> Estimate | None:
        """The number with what it would be without each group of texts; None where the study does not keep groups."""
        found = self._estimate(study, self.columns)
        if found is None or not self.per:
            return found
        per = self._estimate(study, self.per)
        return per and found.joined(per, _divided)

    def _estimate(self, study: StudyFolder, columns: Sequence[str]) -> Estimate | None:
        found = estimate(study, self.table, *columns)
        return found and found.at(np.array(self.places)).mean()

    def interval(self, study: StudyFolder, unit: Unit) -> Ends | None:
        """Of the number; None where there is none."""
        found = self.estimate(study)
        return None if found is None else _known(*within("count" if self.per else unit, found))

    def told(self, study: StudyFolder, unit: Unit) -> str:
        """The number as a sentence says it, with its interval where there is one: "16 % (14 to 18)"."""
        low, high = self.interval(study, unit) or (None, None)
        return ranged(self.of(study) or 0.0, low, high, unit)


def _divided(one: Any, other: Any) -> NDArray[np.float64]:
    """NaN where there is nothing to divide by."""
    quotient: NDArray[np.float64] = np.full(np.shape(one), np.nan)
    np.divide(one, other, out=quotient, where=np.asarray(other) > 0)
    return quotient


def _known(low: NDArray[np.float64], high: NDArray[np.float64]) -> Ends | None:
    return None if math.isnan(low[0]) else (float(low[0]), float(high[0]))


@dataclass(frozen=True)
class Finding:
    """A sentence, the number that supports it, and what its rivals give: chance, and each null study.

    claim, rest: the sentence; what the strongest null gives is told between them.
    value, what, unit: the number, and what it is. full: the most it could be, for bars.
    chance: what chance gives, None where that has no meaning; beside: what it is called.
    quantity, by_chance: what `value` and `chance` are made of, where they are made of columns.
    layers, heads: those it names; of a range of layers the first, the strongest and the last.
    figure: the one of `figures.FIGURES` that shows it.
    nothing_there: it says no more than that there is nothing.
    learned: what its sentence ends with where no null study with random weights tells what is built in.
    nulls: each null study -> its number; against: those that it must stand over, because they take away what it is
    about. interval, over_chance: of `value`, and of what it has over chance.
    """

    topic: str
    claim: str
    rest: str
    value: float
    what: str
    chance: float | None = None
    unit: Unit = "share"
    full: float = 1.0
    figure: str | None = None
    beside: str = "chance"
    quantity: Quantity | None = None
    by_chance: Quantity | None = None
    layers: tuple[int, ...] = ()
    heads: tuple[Head, ...] = ()
    nothing_there: bool = False
    learned: str = ""
    nulls: Mapping[Null, float] = field(default_factory=dict, hash=False)
    against: tuple[Null, ...] = ("weights",)
    interval: Ends | None = None
    over_chance: Ends | None = None

    @property
    def sentence(self) -> str:
        """All of it. Of the strongest null it tells the number, where the finding stands over that, or that it does
        not."""
        end = self.rest + (self.learned if "weights" not in self.nulls else "")
        rivals = self._rivals
        if not rivals:
            return self.claim + end
        name = self._strongest(rivals)
        null, called = rivals[name], CALLED[name]
        shown = ranged(null, None, None, self.unit)
        if self._stands_over(null, self._over(null)):
            return f"{self.claim}; {called} {shown}{end}"
        how = "Not surely" if self._gain(null) > 0 else "No"
        more = "less" if self._lower_is_more else "more"
        return f"{self.claim}{end} {how} {more} than {called} give ({shown})."

    @property
    def lead(self) -> float | None:
        """How far the number stands over its strongest rival, of chance and the nulls that speak against it; None where
        it has no rival.

        Of shares, counts and distances log2(value / rival), where lower is more log2(rival / value): 1 is twice as
        much, or half. Of differences, which may be 0 and below, log2(1 + value - rival). Never below 0, and 0 where
        the number is not told from the rival: its interval reaches it, or, where there is no interval, it exceeds it
        by less than a tenth.

        >>> Finding("Repeats", "Head 3 repeats", ".", value=0.4, what="repeats", chance=0.1).lead
        2.0
        """
        rivals = dict[str, float](self._rivals.items())
        if self.chance is not None:
            rivals["chance"] = self.chance
        if not rivals:
            return None
        name = self._strongest(rivals)
        rival = rivals[name]
        if not self._stands_over(rival, self.over_chance if name == "chance" else self._over(rival)):
            return 0.0
        return max(self._gain(rival), 0.0)

    @property
    def rank(self) -> tuple[int, float]:
        """By which findings are ordered, the smallest first: those that stand over a rival, the farthest first; those
        without a rival; those that do not stand over one; those that say that nothing is there."""
        if self.nothing_there:
            return 3, 0.0
        lead = self.lead
        return (1, 0.0) if lead is None else (0, -lead) if lead > 0 else (2, 0.0)

    @property
    def _rivals(self) -> dict[Null, float]:
        return {null: value for null, value in self.nulls.items() if null in self.against}

    @property
    def _lower_is_more(self) -> bool:
        return self.quantity is not None and self.quantity.lower_is_more

    def _strongest(self, rivals: Mapping[Name, float]) -> Name:
        return (min if self._lower_is_more else max)(rivals, key=lambda name: rivals[name])

    def _over(self, rival: float) -> Ends | None:
        """The interval of what the number has over a rival that is taken as it is."""
        return self.interval and (self.interval[0] - rival, self.interval[1] - rival)

    def _stands_over(self, rival: float, over: Ends | None) -> bool:
        if over is None:
            more, less = (rival, self.value) if self._lower_is_more else (self.value, rival)
            return more - less > (CLEARLY - 1) * abs(less)
        return over[1] < 0 if self._lower_is_more else over[0] > 0

    def _gain(self, rival: float) -> float:
        """See `lead`; below 0 where the rival is ahead."""
        more, less = (rival, self.value) if self._lower_is_more else (self.value, rival)
        if self.unit == "difference":
            return math.log2(1 + more - less) if more > less - 1 else -math.inf
        if less <= 0 or more <= 0:
            return math.copysign(math.inf, more - less) if more != less else 0.0
        return math.log2(more / less)


def held_against(study: StudyFolder, finding: Finding, nulls: Mapping[Null, StudyFolder]) -> Finding:
    """A finding as it was found in a study, with its intervals and what null studies give."""
    quantity = finding.quantity
    if quantity is None:
        return finding
    given = {null: _of_null(quantity, null, one) for null, one in nulls.items()}
    interval = quantity.interval(study, finding.unit)
    over = None
    if finding.chance is not None and interval is not None:
        over = _apart(study, quantity, finding.by_chance) or (
            interval[0] - finding.chance,
            interval[1] - finding.chance,
        )
    return replace(
        finding,
        nulls={name: value for name, value in given.items() if value is not None},
        interval=interval,
        over_chance=over,
    )


def _of_null(quantity: Quantity, null: Null, study: StudyFolder) -> float | None:
    """No head of random weights is the counterpart of a trained one: the strongest of its layer stands for it."""
    if null != "weights" or quantity.table == "layers":
        return quantity.of(study)
    heads = study.manifest.model.heads
    try:
        values = quantity.rows(study).reshape(-1, heads)[[place // heads for place in quantity.places]]
    except AbsentError:
        return None
    known = values[~np.isnan(values)]
    return float(known.min() if quantity.lower_is_more else known.max()) if len(known) else None


def _apart(study: StudyFolder, quantity: Quantity, chance: Quantity | None) -> Ends | None:
    """The interval of a number less chance, both as they move from text to text; None where chance has no estimate."""
    value, other = quantity.estimate(study), None if chance is None else chance.estimate(study)
    return None if value is None or other is None else _known(*(value - other).interval())


def ordered(found: Sequence[Finding]) -> list[Finding]:
    """The most telling first, see `Finding.rank`; equal ones stay as they are."""
    return sorted(found, key=lambda finding: finding.rank)
