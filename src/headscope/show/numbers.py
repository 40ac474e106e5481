"""Numbers as tables show them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from headscope.measure.declaration import Column


def shown(value: float, term: Column) -> str:
    """A number as tables show it: shares in percent, a dash where there is none.

    >>> from headscope.measure.catalogue import columns
    >>> shown(0.4644, columns()["same_sentence_probability"]), shown(float("nan"), columns()["mean_distance"])
    ('46.4', '–')
    """
    return all_shown([value], term)[0]


def all_shown(values: Iterable[float], term: Column) -> list[str]:
    """The numbers of a column, likewise."""
    form = _FORMATS[term.unit]
    return ["–" if math.isnan(value) else form(value) for value in values]


_FORMATS: dict[str, Callable[[float], str]] = {
    "share": lambda value: f"{value * 100:.1f}",
    "tokens": lambda value: f"{value:.1f}",
    "count": lambda value: f"{value:,.0f}" if value == int(value) or value >= 1000 else f"{value:,.1f}",
    "number": lambda value: f"{value:.0f}",
    "difference": lambda value: f"{value:+.3f}",
}
