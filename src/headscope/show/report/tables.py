"""The tables of the page: every number as it is shown, with the length of its bar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headscope.corpus.null_kinds import CALLED, Null
from headscope.corpus.traits import TEXT, Traits
from headscope.folder.study_folder import StudyFolder
from headscope.insight.beside import Ends, of_null
from headscope.measure.catalogue import columns
from headscope.measure.declaration import Column
from headscope.show.numbers import shown


@dataclass(frozen=True)
class Cell:
    """text: the number as shown. bar, chance: share of the longest bar of the column; None: no bar, no mark.
    interval: its 95 % interval as shown, where there is one; nulls: what null studies give."""

    text: str
    bar: float | None = None
    chance: float | None = None
    interval: str | None = None
    nulls: str | None = None

    @property
    def says(self) -> str:
        """All that stands beside it, for who points at it."""
        told = [f"95 %: {self.interval}" if self.interval else None, self.nulls]
        return "; ".join(part for part in told if part)


@dataclass(frozen=True)
class ShownColumn:
    name: str
    term: Column
    topics: str
    cells: list[Cell]

    @property
    def label(self) -> str:
        return f"{self.term.label},\u00a0%" if self.term.unit == "share" else self.term.label


OfNulls = Mapping[str, Mapping[Null, NDArray[np.float64]]]
"""A column -> what each null gives in its rows."""


def columns_of(
    table: pd.DataFrame, gives: Traits = TEXT, ends: Ends | None = None, nulls: OfNulls | None = None
) -> list[ShownColumn]:
    """All columns of `heads` or `layers` that this version knows, in their order."""
    known = columns(gives)
    return [_column(table, known[str(name)], ends or {}, nulls or {}) for name in table.columns if name in known]


def nulls_of(study: StudyFolder, table: str) -> OfNulls:
    """Of the columns of `heads` or `layers`; empty where no nulls were measured."""
    if not study.nulls:
        return {}
    measured = (name for name, column in columns(study.manifest.gives).items() if column.value is not None)
    return {
        name: {null: of_null(study, null, table, name) for null in study.nulls}
        for name in measured
        if name in getattr(study, table)
    }


def _column(table: pd.DataFrame, term: Column, ends: Ends, nulls: OfNulls) -> ShownColumn:
    name = term.name
    topics = " ".join([term.topic.replace(" ", "-"), *(["overview"] if term.overview else [])])
    values = table[name].to_numpy(dtype=np.float64)
    if term.topic == "run":
        return ShownColumn(name, term, topics, [Cell(shown(value, term)) for value in values])
    by = term.given_distance if term.given_distance in table else term.chance
    chances = table[by].to_numpy(dtype=np.float64) if by in table else np.full(len(values), np.nan)
    longest = np.nanmax(np.concatenate([values, chances, [0]]))
    nothing = np.full(len(values), np.nan)
    rows = zip(values, chances, *ends.get(name, (nothing, nothing)), strict=True)
    cells = [
        Cell(
            shown(value, term),
            _part(value, longest),
            _part(chance, longest),
            None if np.isnan(low) else f"{shown(low, term)} to {shown(high, term)}",
            _told(nulls.get(name, {}), place, term),
        )
        for place, (value, chance, low, high) in enumerate(rows)
    ]
    return ShownColumn(name, term, topics, cells)


def _told(nulls: Mapping[Null, NDArray[np.float64]], place: int, term: Column) -> str | None:
    return "; ".join(f"{CALLED[null]}: {shown(values[place], term)}" for null, values in nulls.items()) or None


def _part(value: float, longest: Any) -> float | None:
    return None if np.isnan(value) or longest <= 0 else round(max(value, 0) / float(longest), 3)
