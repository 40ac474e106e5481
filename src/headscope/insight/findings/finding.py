"""What a finding is."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.measure.declaration import Unit


@dataclass(frozen=True)
class Finding:
    """A sentence, the number that supports it, and what chance gives (None where chance has no meaning).

    what: what `value` is. full: the most it could be, for bars. figure: the one of `figures.FIGURES` that shows it.
    beside: what `chance` is called.
    """

    topic: str
    sentence: str
    value: float
    what: str
    chance: float | None = None
    unit: Unit = "share"
    full: float = 1.0
    figure: str | None = None
    beside: str = "chance"
