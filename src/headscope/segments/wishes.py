"""What is asked of a segmentation, checked at the door."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from headscope.errors import HeadscopeError
from headscope.options import Options, Sentences, Stack
from headscope.speaking import option

Level = Literal["topics", "sentences"]
Using = Literal["heads", "pooled", "both"]


@dataclass(frozen=True)
class Wishes:
    """What is asked for; what can't be is refused."""

    level: Level = "topics"
    segments: int | None = None
    granularity: float = 1.0
    using: Using = "both"
    sentences: Sentences = "auto"
    layers: tuple[int, ...] | None = None
    stack: Stack | None = None

    def __post_init__(self) -> None:
        for name, choice, kinds in (("level", self.level, Level), ("using", self.using, Using)):
            if choice not in get_args(kinds):
                raise HeadscopeError(f"{option(name)} is {choice!r}; it must be {' or '.join(get_args(kinds))}.")
        number = self.segments
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
            raise HeadscopeError(f"{option('segments')} is {number}; it must be a whole number of at least 1.")
        if not 0.01 <= self.granularity <= 100:
            raise HeadscopeError(f"{option('granularity')} is {self.granularity:g}; it must be from 0.01 to 100.")
        Options(sentences=self.sentences, layers=self.layers, stack=self.stack)

    @property
    def threshold(self) -> float:
        """The score above which a boundary is one."""
        return 1 / (1 + self.granularity)
