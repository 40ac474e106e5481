"""What every source of texts gives: a text and where it came from, or the sentence that says why there is none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

LONGEST_TEXT = 256 * 2**20
"""Bytes. A single text beyond this is refused: it is a mistake or an attack, and would fill the memory."""


class Text(NamedTuple):
    """One text and where it came from, for messages: a file, or a file and line. meta: what is kept of it beside, a
    value for each column asked for: strings, numbers, or None."""

    origin: str
    text: str
    meta: tuple[Any, ...] = ()


class Bad(NamedTuple):
    """A record that can't be used, and the sentence that says so."""

    reason: str


class Source(ABC):
    """One place that texts come from. `size` and `position` are in any unit, None where unknown. once: what it gives is
    gone when it was read."""

    name: str
    size: int | None = None
    position: int = 0
    once: bool = False

    @abstractmethod
    def records(self) -> Iterator[Text | Bad]: ...

    def changed(self) -> str | None:
        """The name of the source if it is no longer what `records` began to read."""
        return None


def checked(origin: str, text: str) -> Text | Bad:
    """A string as a text; a lone surrogate is no character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        return Bad(f"{origin} is not valid Unicode: character {problem.start} is a lone surrogate.")
    return Text(origin, text)
