"""What every source of texts gives: a text and where it came from, or the sentence that says why there is none."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError

FIELD = "text"
"""The field, or column, that holds the text unless another is named."""
LONGEST_TEXT = 256 * 2**20
"""Bytes. A single text beyond this is refused: it is a mistake or an attack, and would fill the memory."""


class GivenIds(NamedTuple):
    """Token ids that the user made, (S,), special ones as they were placed. types: (S,), `token_type_ids`; None where
    none were given. masked: padding was told by an attention mask, and is not among them; otherwise some ids at the end
    may be padding."""

    ids: NDArray[np.int64]
    types: NDArray[np.int64] | None = None
    masked: bool = False


class Text(NamedTuple):
    """One text and where it came from, for messages: a file, or a file and line. second: of a pair, the second text.
    given: token ids in place of a text, which is "" then. Such a one is one window, whatever its length. meta: what is
    kept of it beside, a value for each column asked for: strings, numbers, or None."""

    origin: str
    text: str
    second: str | None = None
    given: GivenIds | None = None
    meta: tuple[Any, ...] = ()

    @property
    def is_one_window(self) -> bool:
        """A pair, or token ids: what is not cut into windows."""
        return self.second is not None or self.given is not None

    @property
    def contents(self) -> tuple[bytes, ...]:
        """What tells it from others. The marks are no UTF-8, so that no two texts are a pair."""
        if self.given is not None:
            types = b"" if self.given.types is None else self.given.types.tobytes()
            return b"\xffids", self.given.ids.tobytes(), types
        if self.second is not None:
            return b"\xffpair", self.text.encode(), self.second.encode()
        return (self.text.encode(),)


class Bad(NamedTuple):
    """A record that can't be used, and the sentence that says so."""

    reason: str


class Source(ABC):
    """One place that texts come from. `size` and `position` are in any unit, None where unknown. once: what it gives is
    gone when it was read. meta: columns or fields that are kept of each text. has_fields: texts stand in a field or
    column, which the user names."""

    name: str
    size: int | None = None
    position: int = 0
    once: bool = False
    meta: tuple[str, ...] = ()
    has_fields: bool = False

    @abstractmethod
    def records(self) -> Iterator[Text | Bad]: ...

    def changed(self) -> str | None:
        """The name of the source if it is no longer what `records` began to read."""
        return None


def field_names(field: str | Sequence[str]) -> tuple[str, ...]:
    """The field that holds texts, or the two that hold pairs of them.

    >>> field_names("review"), field_names(["premise", "hypothesis"])
    (('review',), ('premise', 'hypothesis'))
    """
    names = (field,) if isinstance(field, str) else tuple(field)
    if not 1 <= len(names) <= 2 or not all(isinstance(name, str) for name in names):
        raise HeadscopeError(
            f"field is {field!r}; it is the name of one field, or of two that hold the texts of pairs."
        )
    return names


def of_values(origin: str, values: Sequence[str]) -> Text | Bad:
    """A text, or a pair of two."""
    return checked_pair(origin, values[0], values[1]) if len(values) == 2 else checked(origin, values[0])


def checked(origin: str, text: str) -> Text | Bad:
    """A string as a text; a lone surrogate is no character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        return Bad(f"{origin} is not valid Unicode: character {problem.start} is a lone surrogate.")
    return Text(origin, text)


def checked_pair(origin: str, first: str, second: str) -> Text | Bad:
    """Two strings as one window; with one of them alone there is no pair."""
    for place, text in (("first", first), ("second", second)):
        if not text.strip():
            return Bad(f"{origin} is no pair: its {place} text is empty; leave it out.")
        problem = checked(f"The {place} text of {origin}", text)
        if isinstance(problem, Bad):
            return problem
    return Text(origin, first, second)
