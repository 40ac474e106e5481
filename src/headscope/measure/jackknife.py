"""How sure a number is: what it would be without one group of texts, then without the next, and so on.

Windows of one text are not independent, so whole texts are left out, in `GROUPS` groups. Everything that columns are
made of is kept for each group; so any number made of columns, a difference of two for example, has its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.traits import TEXT, Traits
from headscope.measure.catalogue import STATES, columns
from headscope.measure.declaration import GROUPS, Arrays, Column, LayerRatio, Total, Unit, Value
from headscope.measure.student import quantile, two_sided

if TYPE_CHECKING:
    import pandas as pd

INTERVALS = "intervals"
INTERVALS_COLUMNS = ("layer", "head", "column", "value", "low", "high", "groups")
FEWEST = 8
"""Groups of texts that an interval takes."""
ROUNDING = 1e-12
"""A share of a number, below which nothing is told from rounding."""
Numbers = NDArray[np.float64]


class NotByGroup(KeyError):
    """A column is made of something that is not kept for each group of texts."""


class SomeGroups(Mapping[str, NDArray[Any]]):
    """States as columns are made from them, over all groups of texts but those `left_out`."""

    def __init__(self, groups: Arrays, totals: Mapping[str, NDArray[Any]], left_out: Sequence[int]) -> None:
        self._groups = groups
        self._totals = totals
        self._left_out = list(left_out)

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._groups:
            raise NotByGroup(name)
        if not self._left_out:
            return self._totals[name]
        taken: NDArray[Any] = self._groups[name].take(self._left_out, STATES[name].shape.index("G"))
        rest: NDArray[Any] = self._totals[name] - STATES[name].total(taken)
        return rest

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)


@dataclass(frozen=True)
class Sure:
    """Numbers with their standard errors, NaN where these are not known. freedom: degrees of freedom; all (N,)."""

    value: Numbers
    error: Numbers
    freedom: NDArray[np.int64]

    def interval(self) -> tuple[Numbers, Numbers]:
        """(N,) each: the ends of 95 % intervals; NaN where there is no error."""
        reach = self.error * np.array([quantile(freedom) for freedom in self.freedom.tolist()])
        return self.value - reach, self.value + reach

    def p_values(self) -> Numbers:
        """(N,): how likely a number as far from 0 is if it were 0; NaN where there is no error."""
        sure = np.where(self.value != 0, np.inf, 0)
        t = np.divide(np.abs(self.value), self.error, out=sure, where=self.error > 0)
        found = np.full(len(t), np.nan)
        there = ~np.isnan(self.error)
        for freedom in set(self.freedom[there].tolist()):
            places = there & (self.freedom == freedom)
            found[places] = two_sided(t[places], freedom)
        return found


@dataclass(frozen=True)
class Estimate:
    """Numbers and how sure they are. value: (N,). left_out: (G, N), the same without each group in turn.
    weight: (G, N), the group's share of what the number is divided by; 0 where it holds nothing that it is made of."""

    value: Numbers
    left_out: Numbers
    weight: Numbers

    def __sub__(self, other: Estimate | float) -> Estimate:
        if isinstance(other, Estimate):
            return self.joined(other, _difference)
        return Estimate(_difference(self.value, other), _difference(self.left_out, other), self.weight)

    def joined(self, other: Estimate, how: Callable[[Numbers, Numbers], Numbers]) -> Estimate:
        """A number made of two."""
        weight = (self.weight + other.weight) / 2
        return Estimate(how(self.value, other.value), how(self.left_out, other.left_out), weight)

    def at(self, places: Any) -> Estimate:
        """Some of the numbers."""
        return Estimate(self.value[places], self.left_out[:, places], self.weight[:, places])

    def mean(self) -> Estimate:
        """Of all numbers that there are; one number."""
        known = ~np.isnan(self.value)
        if not known.any():
            groups = len(self.left_out)
            return Estimate(np.full(1, np.nan), np.full((groups, 1), np.nan), np.zeros((groups, 1)))
        some = self.at(known)
        there = ~np.isnan(some.left_out)  # a number that is made of one group alone is not there without it
        left_out = np.where(there, some.left_out, 0).sum(1, keepdims=True) / there.sum(1, keepdims=True).clip(1)
        return Estimate(some.value.mean(keepdims=True), left_out, some.weight.mean(1, keepdims=True))

    @property
    def counted(self) -> NDArray[np.bool_]:
        """(G, N): whether the group holds anything that the number is made of."""
        return self.weight > 0

    @property
    def groups(self) -> NDArray[np.int64]:
        """(N,): how many hold anything that the number is made of."""
        count: NDArray[np.int64] = self.counted.sum(0)
        return count

    @cached_property
    def freedom(self) -> NDArray[np.int64]:
        """(N,): degrees of freedom, the effective number of groups less one, at least 1.

        As many groups of equal weight would be as unsteady: 1 over the sum of the squared shares. Of ten texts of which
        one is longer than all others together, the error is known about as badly as from two or three.
        """
        square = (self.weight**2).sum(0)
        effective = self.weight.sum(0) ** 2 / np.where(square > 0, square, 1)
        freedom: NDArray[np.int64] = np.maximum(np.rint(effective) - 1, 1).astype(np.int64)
        return freedom

    @cached_property
    def error(self) -> Numbers:
        """(N,): the standard error; NaN where there are fewer than 8 groups."""
        groups = self.groups
        enough = (groups >= FEWEST) & ~np.isnan(self.value)
        apart = np.where(self.counted, self.left_out, 0)
        mean = apart.sum(0) / np.maximum(groups, 1)
        square = (np.where(self.counted, self.left_out - mean, 0) ** 2).sum(0)
        return np.where(enough, np.sqrt(square * (groups - 1) / np.maximum(groups, 1)), np.nan)

    @property
    def sure(self) -> Sure:
        return Sure(self.value, self.error, self.freedom)

    def interval(self) -> tuple[Numbers, Numbers]:
        """(N,) each: the ends of 95 % intervals; NaN where there are fewer than 8 groups."""
        return self.sure.interval()

    def p_values(self) -> Numbers:
        """(N,): how likely a number as far from 0 is if it were 0; NaN where there are fewer than 8 groups."""
        return self.sure.p_values()

    def less_apart(self, other: Estimate) -> Sure:
        """The difference from a number that was measured on other texts: the squares of the errors add up.

        The degrees of freedom are the fewer of the two, which is at most what the rule of Welch gives: intervals are a
        little too wide rather than too narrow. So they are where some texts are the same after all.
        """
        error = np.hypot(self.error, other.error)
        return Sure(_difference(self.value, other.value), error, np.minimum(self.freedom, other.freedom))


def _difference(one: Numbers, other: Numbers | float) -> Numbers:
    """Nothing where there is nothing but rounding: as sure as rounding is, it would be told from 0."""
    difference = one - other
    return np.where(np.abs(difference) <= ROUNDING * np.abs(one), 0, difference)


class Jackknife:
    """Estimates of columns. groups: states (with G) as they are kept for each group; total: all that columns are made
    of, over all groups."""

    def __init__(self, groups: Arrays, total: Arrays, gives: Traits = TEXT) -> None:
        self._groups = {name: groups[name] for name in groups}
        self._summed = {name: STATES[name].total(array) for name, array in self._groups.items()}
        self._total = total
        self._columns = columns(gives)
        self.holding: list[int] = np.flatnonzero(groups["windows"][0, 0]).tolist()
        """The groups that hold texts."""
        self._without = [self.without([group]) for group in self.holding]
        self._estimates: dict[tuple[str, str], Estimate] = {}

    def without(self, left_out: Sequence[int]) -> SomeGroups:
        """What columns are made of, over all other groups."""
        return SomeGroups(self._groups, self._summed, left_out)

    def over(self, table: str, name: str, groups: Collection[int]) -> Numbers:
        """A column of `heads` or `layers`, a number a row, as these groups alone would make it."""
        column = self._columns[name]
        make = column.resampled or column.value
        if make is None:
            raise NotByGroup(name)
        return _of(make(self.without([group for group in self.holding if group not in groups])), table, None)

    def estimate(self, table: str, name: str) -> Estimate:
        """Of a column of `heads` or `layers`, a number a row. NotByGroup: it is made of what is not kept by group."""
        if (table, name) not in self._estimates:
            self._estimates[table, name] = self._estimate(table, name)
        return self._estimates[table, name]

    def everywhere(self, table: str, name: str) -> Estimate:
        """The same with a place for each of the 64 groups, so that it can be joined with one of another study of the
        same texts. A group that holds no text changes nothing when it is left out."""
        found = self.estimate(table, name)
        left_out = np.tile(found.value, (GROUPS, 1))
        weight = np.zeros_like(left_out)
        left_out[self.holding], weight[self.holding] = found.left_out, found.weight
        return Estimate(found.value, left_out, weight)

    def _estimate(self, table: str, name: str) -> Estimate:
        column = self._columns.get(name)
        if column is None or column.value is None:
            raise NotByGroup(name)
        found = self.made(table, column.resampled or column.value)
        if column.resampled is None:
            return found
        return replace(found, value=_of(column.value(self._total), table, None))

    def made(self, table: str, made: Callable[[Arrays], Value]) -> Estimate:
        """Of anything that is made from states as columns are."""
        whole = made(self.without([]))
        value = _of(whole, table, None)
        left_out, weight = np.empty((2, len(self._without), len(value)))
        every = _weight(whole, table)
        for place, others in enumerate(map(made, self._without)):
            left_out[place] = _of(others, table, whole)
            weight[place] = (every - _weight(others, table)) / np.where(every > 0, every, 1)
        return Estimate(value, left_out, np.where(weight > ROUNDING, weight, 0))


def _of(value: Value, table: str, whole: Value | None) -> Numbers:
    """The numbers of a table, in a row. Of a total: as many windows as there are in `whole`, if that is given."""
    found = value.of_layers() if table == "layers" or isinstance(value, LayerRatio) else value.of_heads()
    numbers = found.reshape(-1).astype(np.float64)
    if isinstance(value, Total) and isinstance(whole, Total):
        numbers = numbers * _weight(whole, table) / np.maximum(_weight(value, table), 1)
    return numbers


def _weight(value: Value, table: str) -> Numbers:
    """What the numbers are divided by: 0 where they are made of nothing."""
    weight = value.weight
    return (weight.sum(1) if table == "layers" and weight.ndim > 1 else weight).reshape(-1).astype(np.float64)


def intervals_table(
    jackknife: Jackknife, layers: list[int], gives: Traits = TEXT, only: Mapping[str, Collection[str]] | None = None
) -> pd.DataFrame:
    """A row per layer, head (-1: the layer) and column: its value, and the ends of its 95 % interval.

    groups: of texts, that it is made of; with fewer than 8 there is no interval. only: table -> the columns it has.
    Columns that are not kept for each group are left out.
    """
    import pandas as pd

    found = []
    for table in ("heads", "layers"):
        for name, column in columns(gives).items():
            if column.value is None or (table == "heads" and not column.heads):
                continue
            if only is not None and name not in only[table]:
                continue
            try:
                estimate = jackknife.estimate(table, name)
            except NotByGroup:
                continue
            found.append(_rows(estimate, column, table, layers))
    return pd.DataFrame({name: np.concatenate([rows[name] for rows in found]) for name in INTERVALS_COLUMNS})


def _rows(estimate: Estimate, column: Column, table: str, layers: list[int]) -> dict[str, NDArray[Any]]:
    low, high = within(column.unit, estimate)
    count = len(estimate.value)
    heads = count // len(layers)
    return {
        "layer": np.repeat(layers, heads),
        "head": np.tile(np.arange(heads), len(layers)) if table == "heads" else np.full(count, -1),
        "column": np.full(count, column.name, object),
        "value": estimate.value,
        "low": low,
        "high": high,
        "groups": estimate.groups,
    }


def within(unit: Unit, estimate: Estimate) -> tuple[Numbers, Numbers]:
    """(N,) each: the ends of 95 % intervals, no lower or higher than numbers of this unit can be.

    Those of a share lie evenly about it in the logarithm of its odds: a share that is next to nothing in most texts and
    large in a few is more often far too low than far too high.
    """
    low, high = estimate.interval()
    if unit == "difference":
        return low, high
    if unit != "share":
        return np.maximum(low, 0), high
    value = estimate.value
    between = (value > 0) & (value < 1)
    inside = np.where(between, value, 0.5)
    odds, reach = np.log(inside / (1 - inside)), (high - value) / (inside * (1 - inside))
    below, above = (0.5 + 0.5 * np.tanh((odds + side * reach) / 2) for side in (-1, 1))
    return np.where(between, below, np.maximum(low, 0)), np.where(between, above, np.minimum(high, 1))
