"""What a user keeps of a text beside it: a label, a year, whatever stands in the same row or object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from headscope.corpus.records import Bad, Text
from headscope.errors import HeadscopeError
from headscope.speaking import option

HOW = option("meta")


Record = TypeVar("Record", Text, Bad, Text | Bad, Text | Bad | None)


def with_meta(record: Record, values: Sequence[Any]) -> Record:
    """The record with these values, where it is a text."""
    return record._replace(meta=tuple(map(plain, values))) if isinstance(record, Text) else record


def plain(value: Any) -> str | int | float | bool | None:
    """A value as it is kept: a string, a number, or nothing; anything else in words. What is no valid Unicode is
    written as an escape, and a whole number of more than 64 bits as a string.

    >>> import datetime
    >>> plain(float("nan")), plain(datetime.date(1999, 3, 1)), plain(["a"]), plain(3)
    (None, '1999-03-01', "['a']", 3)
    >>> plain("K" + chr(0xDCF6) + "ln") == "K" + chr(92) + "udcf6ln", plain(2**64)
    (True, '18446744073709551616')
    """
    value = value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    return str(value).encode("utf-8", "backslashreplace").decode()


def from_cell(cell: str) -> str | int | None:
    """Of a CSV file, where everything is a string: a whole number that is written as one, nothing where it is empty.

    >>> from_cell("1999"), from_cell("007"), from_cell("")
    (1999, '007', None)
    """
    short_number = len(cell) < 19 and cell.removeprefix("-").isdecimal() and cell.isascii()
    return int(cell) if short_number and str(int(cell)) == cell else cell or None


def check_fields(text: Text, names: Sequence[str]) -> None:
    if len(text.meta) != len(names):
        raise HeadscopeError(
            f"{text.origin} has no columns or fields to keep {', '.join(names)} of; give .jsonl, .csv, .tsv, .parquet, "
            f"a DataFrame or dicts, or leave out {HOW}."
        )


def check_first(first: Sequence[Text], names: Sequence[str]) -> None:
    """A name that none of the first texts has a value of is a mistake, told before anything is measured."""
    for text in first:
        check_fields(text, names)
    for place, name in enumerate(names):
        if first and all(text.meta[place] is None for text in first):
            raise HeadscopeError(
                f"None of the first {len(first)} texts has a value of {name!r}; name another column or field with "
                f"{HOW}."
            )
