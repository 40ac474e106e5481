"""The tables of the page: every number as it is shown, with the length of its bar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from headscope.corpus.traits import TEXT, Traits
from headscope.measure.catalogue import columns
from headscope.measure.declaration import Column


@dataclass(frozen=True)
class Cell:
    """text: the number as shown. bar, chance: share of the longest bar of the column; None: no bar, no mark."""

    text: str
    bar: float | None = None
    chance: float | None = None


@dataclass(frozen=True)
class ShownColumn:
    name: str
    term: Column
    topics: str
    cells: list[Cell]

    @property
    def label(self) -> str:
        return f"{self.term.label},\u00a0%" if self.term.unit == "share" else self.term.label


def columns_of(table: pd.DataFrame, gives: Traits = TEXT) -> list[ShownColumn]:
    """All columns of `heads` or `layers` that this version knows, in their order."""
    known = columns(gives)
    return [_column(table, known[str(name)]) for name in table.columns if name in known]


def shown(value: float, term: Column) -> str:
    """A number as tables show it: shares in percent, a dash where there is none.

    >>> shown(0.4644, columns()["same_sentence_probability"]), shown(float("nan"), columns()["mean_distance"])
    ('46.4', '–')
    """
    return "–" if np.isnan(value) else _FORMATS[term.unit](value)


_FORMATS: dict[str, Callable[[float], str]] = {
    "share": lambda value: f"{value * 100:.1f}",
    "tokens": lambda value: f"{value:.1f}",
    "count": lambda value: f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:,.1f}",
    "number": lambda value: f"{value:.0f}",
    "difference": lambda value: f"{value:+.3f}",
}


def _column(table: pd.DataFrame, term: Column) -> ShownColumn:
    name = term.name
    topics = " ".join([term.topic.replace(" ", "-"), *(["overview"] if term.overview else [])])
    values = table[name].to_numpy(dtype=np.float64)
    if term.topic == "run":
        return ShownColumn(name, term, topics, [Cell(shown(value, term)) for value in values])
    chances = table[term.chance].to_numpy(dtype=np.float64) if term.chance in table else np.full(len(values), np.nan)
    longest = np.nanmax(np.concatenate([values, chances, [0]]))
    cells = [
        Cell(shown(value, term), _part(value, longest), _part(chance, longest))
        for value, chance in zip(values, chances, strict=True)
    ]
    return ShownColumn(name, term, topics, cells)


def _part(value: float, longest: Any) -> float | None:
    return None if np.isnan(value) or longest <= 0 else round(max(value, 0) / float(longest), 3)
