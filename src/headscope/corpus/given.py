"""Texts as a Python user has them: strings, pairs of them, a column of a table, rows of a data set, token ids.

What can't be taken is refused by name. Nothing is iterated because it happens to be iterable: a DataFrame would give
the names of its columns, a dict its keys.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from typing import Any

from headscope.corpus.given_ids import IDS, MASK, TYPES, is_row, row_text, rows_of
from headscope.corpus.meta import HOW as META
from headscope.corpus.meta import with_meta
from headscope.corpus.records import FIELD, Bad, Source, Text, checked, checked_pair
from headscope.corpus.tables import columns_problem
from headscope.corpus.text_files import SUFFIXES
from headscope.errors import HeadscopeError

GIVEN = "texts given in Python"
Fields = tuple[str, ...]
"""The field that holds the text, or the two that hold a pair."""


class Given(Source):
    """Texts that lie in Python, one after the other. called: what one of them is, for messages; labels: what the user
    calls each, where that is more than its number. table: the DataFrame that the items are a column of."""

    def __init__(
        self,
        items: Iterable[Any],
        fields: Fields = (FIELD,),
        *,
        name: str = GIVEN,
        called: str = "text",
        labels: Iterable[Any] | None = None,
        table: Any = None,
    ) -> None:
        self._items = items
        self._fields = fields
        self._called = called
        self._labels = labels
        self._table = table
        self.name = name
        self.size = len(items) if isinstance(items, Sized) else None
        self.once = isinstance(items, Iterator)

    def records(self) -> Iterator[Text | Bad]:
        labels = iter(self._labels) if self._labels is not None else None
        before: str | None = None
        if self._table is not None:
            problem = columns_problem("The DataFrame", _names(self._table.columns), self.meta, how=META)
            if problem:
                raise HeadscopeError(problem)
        for number, item in enumerate(self._items):
            self.position = number
            label = number if labels is None else next(labels)
            origin = f"{self._called} {number}" + (f" (index {label!r})" if label != number else "")
            record = _record(origin, item, self._fields)
            kind = before if isinstance(record, Bad) else _kind(record)
            if before not in (None, kind):
                record = Bad(f"{origin} is {kind}, and those before it are {before}; give all of one kind.")
            before = before or kind
            yield with_meta(record, self._beside(number, item))

    def _beside(self, number: int, item: Any) -> list[Any]:
        """What is kept of an item, where it is of a table or an object; a list of texts has nothing beside."""
        if self._table is not None:
            return [self._table[name].iat[number] for name in self.meta]
        return [item.get(name) for name in self.meta] if isinstance(item, Mapping) else []


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


def given_source(texts: Any, fields: Fields) -> Given:
    """The source of what a Python user gives; what can't be taken is refused."""
    rows = rows_of(texts)
    if rows is not None:
        return Given(rows, called="row")
    if isinstance(texts, Mapping):
        raise HeadscopeError(_why_no_mapping(texts, fields[0]))
    if isinstance(texts, _pandas("DataFrame")):
        fields = _present("The DataFrame", _names(texts.columns), fields)
        return Given(_of_frame(texts, fields), fields, called="row", labels=texts.index, table=texts)
    if isinstance(texts, _pandas("Series")):
        return Given(texts, fields, labels=texts.index)
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
        return Given(texts, _present(f"The {type(texts).__name__}", _names(columns), fields), called="row")
    return Given(texts, fields)


def _present(name: str, columns: Sequence[str], fields: Fields) -> Fields:
    """The fields to take of a table; one of token ids needs no text."""
    fields = (IDS,) if _means_ids(columns, fields) else fields
    problem = columns_problem(name, columns, fields)
    if problem:
        raise HeadscopeError(problem)
    return fields


def _means_ids(columns: Iterable[Any], fields: Fields) -> bool:
    return fields == (IDS,) or (fields == (FIELD,) and IDS in columns and FIELD not in columns)


def _of_frame(frame: Any, fields: Fields) -> Any:
    if fields == (IDS,):
        return frame[[name for name in (IDS, MASK, TYPES) if name in frame.columns]].to_dict("records")
    return frame[fields[0]] if len(fields) == 1 else list(zip(*(frame[field] for field in fields), strict=True))


def _record(origin: str, item: Any, fields: Fields) -> Text | Bad:
    if isinstance(item, str):
        if _names_a_file(item):
            return Bad(f"{origin} is the name of a file, {item}; give headscope.read_texts([{str(item)!r}]) or a Path.")
        return checked(origin, str(item))
    if isinstance(item, Mapping):
        return _of_mapping(origin, item, fields)
    if isinstance(item, (list, tuple)) and any(isinstance(part, str) for part in item):
        if len(item) != 2:
            return Bad(f"{origin} is a {type(item).__name__} of {len(item)}; a pair is two strings, a text is one.")
        return _pair(origin, ("first", "second"), item)
    if is_row(item):
        return row_text(origin, item)
    if _is_missing(item):
        return Bad(f"{origin} is missing ({item}); leave it out, for example with dropna().")
    return Bad(
        f"{origin} is of type {type(item).__name__}; texts must be strings, and token ids a list of rows, as in [ids]."
    )


def _of_mapping(origin: str, item: Mapping[Any, Any], fields: Fields) -> Text | Bad:
    if _means_ids(item, fields) and IDS in item:
        return row_text(origin, item)
    problem = columns_problem(origin, _names(item), fields, "field")
    if problem:
        return Bad(problem)
    if len(fields) == 2:
        return _pair(origin, fields, [item[field] for field in fields])
    value = item[fields[0]]
    return _record(f"{origin}, field {fields[0]!r},", None if isinstance(value, Mapping) else value, fields)


def _pair(origin: str, names: Sequence[str], texts: Sequence[Any]) -> Text | Bad:
    for name, text in zip(names, texts, strict=True):
        if _is_missing(text):
            return Bad(f"The {name} text of {origin} is missing ({text}); leave it out, for example with dropna().")
        if not isinstance(text, str):
            return Bad(f"The {name} text of {origin} is of type {type(text).__name__}; texts must be strings.")
    return checked_pair(origin, str(texts[0]), str(texts[1]))


def _kind(text: Text) -> str:
    return "token ids" if text.given is not None else "pairs" if text.second is not None else "texts"


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
