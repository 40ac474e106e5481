"""Texts as a Python user has them: strings, a column of a table, rows of a data set.

What can't be taken is refused by name. Nothing is iterated because it happens to be iterable: a DataFrame would give
the names of its columns, a dict its keys.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Set, Sized
from typing import Any

from headscope.corpus.records import Bad, Source, Text, checked
from headscope.corpus.tables import column_problem
from headscope.corpus.text_files import SUFFIXES
from headscope.errors import HeadscopeError

FIELD = "text"
"""The field, or column, that holds the text unless another is named."""
HOW = 'field="..."'
GIVEN = "texts given in Python"


class Given(Source):
    """Texts that lie in Python, one after the other. called: what one of them is, for messages; labels: what the user
    calls each, where that is more than its number."""

    def __init__(
        self,
        items: Iterable[Any],
        field: str = FIELD,
        *,
        name: str = GIVEN,
        called: str = "text",
        labels: Iterable[Any] | None = None,
    ) -> None:
        self._items = items
        self._field = field
        self._called = called
        self._labels = labels
        self.name = name
        self.size = len(items) if isinstance(items, Sized) else None
        self.once = isinstance(items, Iterator)

    def records(self) -> Iterator[Text | Bad]:
        labels = iter(self._labels) if self._labels is not None else None
        for number, item in enumerate(self._items):
            self.position = number
            label = number if labels is None else next(labels)
            origin = f"{self._called} {number}" + (f" (index {label!r})" if label != number else "")
            yield _text(origin, item, self._field)


class Articles(Source):
    """Texts that have names."""

    def __init__(self, texts: Mapping[str, str], name: str) -> None:
        self._texts = texts
        self.name = name
        self.size = len(texts)

    def records(self) -> Iterator[Text | Bad]:
        for number, (origin, text) in enumerate(self._texts.items()):
            self.position = number
            yield Text(origin, text)


def given_source(texts: Any, field: str) -> Given:
    """The source of what a Python user gives; what can't be taken is refused."""
    if isinstance(texts, Mapping):
        raise HeadscopeError(_why_no_mapping(texts, field))
    if isinstance(texts, _pandas("DataFrame")):
        problem = column_problem("The DataFrame", _names(texts.columns), field, HOW)
        if problem:
            raise HeadscopeError(problem)
        return Given(texts[field], called="row", labels=texts.index)
    if isinstance(texts, _pandas("Series")):
        return Given(texts, field, labels=texts.index)
    if (
        isinstance(texts, (str, bytes, bytearray, Set))
        or not isinstance(texts, Iterable)
        or getattr(texts, "ndim", 1) == 0
    ):
        raise HeadscopeError(
            f"texts is of type {type(texts).__name__}; give a list of strings, "
            "or headscope.read_texts(['file.txt']) for files."
        )
    if hasattr(texts, "read"):
        raise HeadscopeError("texts is an open file; give its Path, or headscope.read_texts(['file.txt']).")
    columns = getattr(texts, "column_names", None)
    if columns is not None:
        problem = column_problem(f"The {type(texts).__name__}", _names(columns), field, HOW)
        if problem:
            raise HeadscopeError(problem)
        return Given(texts, field, called="row")
    return Given(texts, field)


def _text(origin: str, item: Any, field: str) -> Text | Bad:
    if isinstance(item, str):
        if _names_a_file(item):
            return Bad(f"{origin} is the name of a file, {item}; give headscope.read_texts([{str(item)!r}]) or a Path.")
        return checked(origin, str(item))
    if isinstance(item, Mapping):
        if field in item:
            return _text(f"{origin}, field {field!r},", item[field], field)
        return Bad(column_problem(origin, _names(item), field, HOW, "field") or "")
    if _is_missing(item):
        return Bad(f"{origin} is missing ({item}); leave it out, for example with dropna().")
    return Bad(f"{origin} is of type {type(item).__name__}; texts must be strings.")


def _is_missing(item: Any) -> bool:
    """None, NaN, or what pandas has for them."""
    if item is None or (isinstance(item, float) and math.isnan(item)):
        return True
    return type(item).__name__ in ("NAType", "NaTType")


def _names_a_file(text: str) -> bool:
    """Whether a text is the name of a file that is there: who gives it means what is in the file."""
    names = (*SUFFIXES, ".json")
    return len(text) < 1000 and text.lower().removesuffix(".gz").endswith(names) and os.path.isfile(text)


def _why_no_mapping(texts: Mapping[Any, Any], field: str) -> str:
    kind = type(texts).__name__
    splits = [str(name) for name, part in texts.items() if hasattr(part, "column_names")]
    if splits:
        return f"texts is a {kind} with the splits {', '.join(splits)}; give one of them, as in texts[{splits[0]!r}]."
    return f"texts is of type {kind}; give a list of strings, or a list of dicts with the field {field!r}."


def _names(columns: Iterable[Any]) -> list[str]:
    """Of columns or fields; one whose name is no string can't be asked for by a string."""
    return [column if isinstance(column, str) else f"<{column!r}>" for column in columns]


def _pandas(name: str) -> Any:
    """A class of pandas; none where nobody has imported it, for then nothing is of it."""
    return getattr(sys.modules.get("pandas"), name, ())
