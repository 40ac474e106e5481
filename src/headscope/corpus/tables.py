"""Tables in files, a text a row: Parquet, CSV and TSV, and arrays of JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from headscope.corpus.meta import HOW, from_cell, with_meta
from headscope.corpus.records import LONGEST_TEXT, Bad, Text, of_values
from headscope.speaking import option
from headscope.wording import counted

DELIMITERS = {".csv": ",", ".tsv": "\t"}
FIELD_OPTION = option("field")
SHOWN_COLUMNS = 8
"""Names of columns in a message."""


def columns_problem(
    name: str, columns: Sequence[str], fields: Sequence[str], called: str = "column", how: str = FIELD_OPTION
) -> str | None:
    """The same for all of the fields that are asked for."""
    problems = (column_problem(name, columns, field, called, how) for field in fields)
    return next((problem for problem in problems if problem), None)


def column_problem(
    name: str, columns: Sequence[str], field: str, called: str = "column", how: str = FIELD_OPTION
) -> str | None:
    """What is wrong where `field` is not exactly one of the columns, with those that there are.

    >>> from headscope.speaking import for_commands
    >>> for_commands(column_problem("a.csv", ["id", "body"], "text"))
    "a.csv has no column 'text', only id, body; name the right one with --field."
    """
    if list(columns).count(field) == 1:
        return None
    how_many = f"several {called}s" if field in columns else f"no {called}"
    shown = ", ".join(columns[:SHOWN_COLUMNS]) + (", ..." if len(columns) > SHOWN_COLUMNS else "")
    return f"{name} has {how_many} {field!r}, only {shown or 'none at all'}; name the right one with {how}."


def parquet_texts(
    name: str, file: BinaryIO, fields: tuple[str, ...], meta: tuple[str, ...] = ()
) -> Iterator[tuple[Text | Bad | None, float]]:
    """Each row's text, None where it has none, and the share of the rows that were read. fields: one, or the two of a
    pair, here and in all of these; meta: what is kept beside."""
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.ParquetFile(file)
        names = table.schema_arrow.names
        problem = columns_problem(name, names, fields) or columns_problem(name, names, meta, how=HOW)
        if problem:
            yield Bad(problem), 1
            return
        for field in fields:
            kind = table.schema_arrow.field(field).type
            if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
                yield (
                    Bad(f"Column {field!r} of {name} holds {kind}, not strings; name another with {option('field')}."),
                    1,
                )
                return
        row = 0
        for batch in table.iter_batches(batch_size=64, columns=[*{*fields, *meta}]):
            for values in zip(*(batch.column(field).to_pylist() for field in (*fields, *meta)), strict=True):
                record = of_cells(f"{name}, row {row}", values[: len(fields)])
                yield with_meta(record, values[len(fields) :]), row / table.metadata.num_rows
                row += 1
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as unreadable:
        reason = str(unreadable).partition("\n")[0]
        yield Bad(f"{name} is not a readable Parquet file ({reason})."), 1


def csv_texts(
    name: str, plain: BinaryIO, fields: tuple[str, ...], delimiter: str, meta: tuple[str, ...] = ()
) -> Iterator[Text | Bad | None]:
    """Each row's text, None where it has none. The first line names the columns; what is quoted may hold new lines.

    Quotes that do not fit are an error, never guessed at: one that is not closed would swallow the rows that follow.
    """
    lines = _Lines(name, plain)
    if delimiter == "," and b"," not in lines.first and b";" in lines.first:
        delimiter = ";"  # as where a comma stands in numbers
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] = []
    while True:
        origin = f"{name}, line {lines.number + 1}"
        try:
            row = _next_row(rows)
        except StopIteration:
            break
        except csv.Error as problem:
            yield Bad(lines.told() or _quoting_problem(origin, problem))
            if lines.ended or not header:
                return
            continue
        if header:
            record = _of_row(origin, row, len(header), [header.index(field) for field in fields])
            kept = [from_cell(row[header.index(field)]) for field in meta] if isinstance(record, Text) else ()
            yield with_meta(record, kept)
        elif row:
            header = [column.strip() for column in row]
            where = f"The first line of {name}"
            if missing := columns_problem(where, header, fields) or columns_problem(where, header, meta, how=HOW):
                yield Bad(missing)
                return
    if not header:
        yield Bad(f"{name} is empty; there is nothing to measure.")


def json_texts(
    name: str, plain: BinaryIO, fields: tuple[str, ...], meta: tuple[str, ...] = ()
) -> Iterator[Text | Bad | None]:
    """A text for each element of an array: a string, or an object with the text in a field. None where it is empty."""
    content = plain.read(LONGEST_TEXT + 1)
    if len(content) > LONGEST_TEXT:
        yield Bad(f"{name} holds more than {LONGEST_TEXT >> 20} MB; write it as .jsonl, an object a line.")
        return
    try:
        rows = json.loads(content)
    except (ValueError, RecursionError) as problem:
        reason = problem.msg if isinstance(problem, json.JSONDecodeError) else type(problem).__name__
        yield Bad(f"{name} is not one JSON array ({reason}); if it holds an object a line, call it .jsonl.")
        return
    if not isinstance(rows, list):
        yield Bad(f"{name} holds no JSON array; give a list of strings, or of objects with the field {fields[0]!r}.")
        return
    if not rows:
        yield Bad(f"{name} is empty; there is nothing to measure.")
    for number, row in enumerate(rows):
        origin = f"{name}, element {number}"
        is_text = isinstance(row, str) and len(fields) == 1
        yield of_cells(origin, [row]) if is_text else of_object(origin, row, fields, meta)


def of_object(origin: str, value: Any, fields: tuple[str, ...], meta: tuple[str, ...] = ()) -> Text | Bad | None:
    """The text in a field of a JSON object, or the pair in two; what is kept beside may be missing. None where the text
    is empty."""
    fitting = [field for field in fields if isinstance(value, dict) and isinstance(value.get(field), str)]
    field = next((field for field in fields if field not in fitting), None)
    if field is None:
        return with_meta(of_cells(origin, [value[field] for field in fields]), [value.get(name) for name in meta])
    names = f", only {', '.join(map(str, [*value][:SHOWN_COLUMNS]))}" if isinstance(value, dict) and value else ""
    if isinstance(value, dict) and field in value:
        names = ""
    return Bad(
        f"{origin} has no string field {field!r}{names}; name another with {option('field')}, or "
        f"use {option('skip_bad', True)}."
    )


def of_cells(origin: str, values: Sequence[str | None]) -> Text | Bad | None:
    """The text in the cells of a row: none where they are empty."""
    texts = [value or "" for value in values]
    if not any(text.strip() for text in texts):
        return None
    if max(map(len, texts)) > LONGEST_TEXT:
        return Bad(f"{origin} is longer than {LONGEST_TEXT >> 20} MB; cut it.")
    return of_values(origin, texts)


def _of_row(origin: str, row: list[str], width: int, places: Sequence[int]) -> Text | Bad | None:
    """Of a row of CSV, as `_Lines` decodes it; an empty line is none."""
    if not row:
        return None
    if len(row) != width:
        return Bad(
            f"{origin} has {counted(len(row), 'field')} where the first line has {width}; mend it, or pass over it "
            f"with {option('skip_bad', True)}."
        )
    cells = [row[place] for place in places]
    undecoded = next((letter for cell in cells for letter in cell if "\udc80" <= letter <= "\udcff"), None)
    if undecoded is None:
        return of_cells(origin, cells)
    return Bad(
        f"{origin} is not UTF-8: it holds the byte 0x{ord(undecoded) - 0xDC00:02x}; convert it (for example with "
        f"iconv) or leave it out with {option('skip_bad', True)}."
    )


class _Lines:
    """The lines of a CSV file, none longer than a text may be. A byte that is not UTF-8 becomes a lone surrogate, so
    that only its own row is lost. ended: nothing more can be read."""

    def __init__(self, name: str, plain: BinaryIO) -> None:
        self._name = name
        self._plain = plain
        self.number = 0
        self.first = plain.readline(LONGEST_TEXT + 1)
        self._problem: str | None = None
        self.ended = False

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._plain.readline(LONGEST_TEXT + 1) if self.number else self.first
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) > LONGEST_TEXT:
            self.ended = True  # in the middle of a line
            self._refuse(f"is longer than {LONGEST_TEXT >> 20} MB; cut it.")
        if b"\0" in line:
            self._refuse("is not text: it holds NUL bytes. Save the table as UTF-8.")
        return line.decode("utf-8-sig" if self.number == 1 else "utf-8", "surrogateescape")

    def told(self) -> str | None:
        """What was wrong with the line read last, once."""
        problem, self._problem = self._problem, None
        return problem

    def _refuse(self, reason: str) -> None:
        self._problem = f"{self._name}, line {self.number} {reason}"
        raise csv.Error(self._problem)


def _next_row(rows: Iterator[list[str]]) -> list[str]:
    """The module's own limit, 128 KB a field, is for all of a process: it is put back at once."""
    limit = csv.field_size_limit(LONGEST_TEXT)
    try:
        return next(rows)
    finally:
        csv.field_size_limit(limit)


def _quoting_problem(origin: str, problem: csv.Error) -> str:
    return (
        f"{origin} is not a row of CSV ({problem}); write a quote within quotes twice, or pass over the row with "
        f"{option('skip_bad', True)}."
    )


def unpacked(name: str, plain: BinaryIO) -> BinaryIO | Bad:
    """All that a gzip file holds: Parquet is read from its end."""
    most = 4 * LONGEST_TEXT
    content = plain.read(most + 1)
    if len(content) > most:
        return Bad(f"{name} unpacks to more than {most >> 20} MB; unpack it to a file first.")
    return io.BytesIO(content)
