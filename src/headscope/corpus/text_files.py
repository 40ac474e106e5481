"""Files and folders of texts, and standard input."""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from headscope.console import say
from headscope.corpus.records import LONGEST_TEXT, Bad, Source, Text, checked
from headscope.corpus.tables import DELIMITERS, csv_texts, json_texts, of_object, parquet_texts, unpacked
from headscope.errors import HeadscopeError
from headscope.speaking import option
from headscope.wording import named

SUFFIXES = (".txt", ".md", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
"""What is read of a folder. A .json beside texts is mostly about them: it is read where it is named."""
JSON_LINES = (".jsonl", ".ndjson")
WITH_FIELDS = ".jsonl, .ndjson, .json, .csv, .tsv or .parquet"


class File(Source):
    """A text file, JSON, or a table, each perhaps gzipped."""

    def __init__(self, path: Path, lines: bool, fields: tuple[str, ...]) -> None:
        self._path = path
        self._lines = lines
        self._fields = fields
        self.name = named(path)
        self.size = path.stat().st_size
        self.has_fields = self._kind[0] in (*DELIMITERS, *JSON_LINES, ".json", ".parquet")
        self._stamp: tuple[int, ...] | None = None

    def changed(self) -> str | None:
        return self.name if self._stamp is not None and self._stamp != _stamp(self._path) else None

    @property
    def _kind(self) -> tuple[str, bool]:
        """By its name: the suffix, and whether it is gzipped."""
        suffixes = [suffix.lower() for suffix in self._path.suffixes]
        zipped = suffixes[-1:] == [".gz"]
        return "".join(suffixes[-2:-1] if zipped else suffixes[-1:]), zipped

    def records(self) -> Iterator[Text | Bad]:
        name = self.name
        self._stamp = _stamp(self._path)
        kind, zipped = self._kind
        try:
            with open(self._path, "rb") as raw, cast(BinaryIO, gzip.open(raw) if zipped else raw) as plain:
                if kind == ".parquet":
                    yield from self._parquet(unpacked(name, plain) if zipped else plain)
                    return
                for record in self._plain_records(kind, plain):
                    self.position = raw.tell()
                    if record is not None:
                        yield record
        except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
            yield Bad(f"{name} is not a whole gzip file ({problem}); fetch or compress it again.")
        except OSError as problem:
            raise HeadscopeError(f"{name} can't be read: {problem.strerror or problem}.") from None

    def _plain_records(self, kind: str, plain: BinaryIO) -> Iterator[Text | Bad | None]:
        if kind in DELIMITERS:
            yield from csv_texts(self.name, plain, self._fields, DELIMITERS[kind], self.meta)
        elif kind == ".json":
            yield from json_texts(self.name, plain, self._fields, self.meta)
        elif kind in JSON_LINES:
            yield from line_texts(self.name, plain, self._fields, self.meta)
        elif len(self._fields) == 2:
            yield Bad(f"{self.name} has no fields to take pairs from; give {WITH_FIELDS}.")
        elif self._lines:
            yield from line_texts(self.name, plain)
        else:
            yield whole_text(self.name, plain)

    def _parquet(self, plain: BinaryIO | Bad) -> Iterator[Text | Bad]:
        if isinstance(plain, Bad):
            yield plain
            return
        for record, share in parquet_texts(self.name, plain, self._fields, self.meta):
            self.position = int((self.size or 0) * share)
            if record is not None:
                yield record


class StandardInput(Source):
    """Standard input: one text, or one a line."""

    name = "standard input"
    once = True

    def __init__(self, lines: bool) -> None:
        self._lines = lines

    def records(self) -> Iterator[Text | Bad]:
        if sys.stdin is None:
            raise HeadscopeError("Standard input is closed; name a file instead of -, or send it a text.")
        if sys.stdin.isatty():
            say("Type the text, and end it with Ctrl-D on a line of its own.", error=True)
        try:
            if self._lines:
                yield from line_texts(self.name, sys.stdin.buffer)
            else:
                yield whole_text(self.name, sys.stdin.buffer)
        except OSError as problem:
            raise HeadscopeError(f"Standard input can't be read: {problem.strerror or problem}.") from None


def files_of(path: Path) -> list[Path]:
    """The files that hold the texts of a path: itself, or those in a folder and its subfolders, in order."""
    try:
        return _files_at(path)
    except OSError as problem:
        raise HeadscopeError(f"{problem.filename or path} can't be read: {problem.strerror or problem}.") from None


def inside(folder: Path) -> Iterator[Path]:
    """Everything in a folder and its subfolders that is not hidden; linked folders that lie elsewhere too, each once.
    One that may not be read is refused: it would seem to be empty."""

    def refuse(problem: OSError) -> None:
        raise problem

    root = Path(os.path.realpath(folder))
    seen: set[Path] = set()
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and _to_enter(Path(place, name), root, seen)
        )
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _to_enter(folder: Path, root: Path, seen: set[Path]) -> bool:
    """Whether it is no link, or one to what would not be read anyway and was not seen; from now on it is."""
    if not folder.is_symlink():
        return True
    real = Path(os.path.realpath(folder))
    if real in seen or real.is_relative_to(root) or root.is_relative_to(real):
        return False
    seen.add(real)
    return True


def _files_at(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(
            file for file in inside(path) if file.name.lower().removesuffix(".gz").endswith(SUFFIXES) and file.is_file()
        )
        if not found:
            raise HeadscopeError(f"The folder {path} holds no texts (files ending in {', '.join(SUFFIXES)}).")
        return found
    if not path.exists():
        raise HeadscopeError(f"There is no file or folder {path}; check the path.")
    if not path.is_file():
        raise HeadscopeError(f"{path} is neither a file nor a folder.")
    if path.stat().st_size == 0:
        raise HeadscopeError(f"The file {path} is empty; there is nothing to measure.")
    return [path]


def _stamp(path: Path) -> tuple[int, ...]:
    """Differs as soon as a file is written to, replaced or removed."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def whole_text(name: str, plain: BinaryIO) -> Text | Bad:
    content = plain.read(LONGEST_TEXT + 1)
    if len(content) > LONGEST_TEXT:
        return Bad(
            f"{name} holds more than {LONGEST_TEXT >> 20} MB in one text; use "
            f"{option('lines', True)}, .jsonl, or cut it."
        )
    text = _decoded(name, content)
    if isinstance(text, str):
        return checked(name, text) if text.strip() else Bad(f"{name} is empty; there is nothing to measure.")
    return text


def line_texts(
    name: str, plain: BinaryIO, fields: tuple[str, ...] = (), meta: tuple[str, ...] = ()
) -> Iterator[Text | Bad]:
    """A text a line, or a JSON object a line with the text in a field; empty lines are passed over."""
    number = 0
    while line := plain.readline(LONGEST_TEXT + 1):
        number += 1
        origin = f"{name}, line {number}"
        if len(line) > LONGEST_TEXT:
            yield Bad(f"{origin} is longer than {LONGEST_TEXT >> 20} MB; cut it.")
            return
        text = _decoded(origin, line)
        if isinstance(text, Bad):
            yield text
        elif text.strip():
            record = _json_text(origin, text, fields, meta) if fields else checked(origin, text.strip("\r\n"))
            if record is not None:
                yield record
    if number == 0:
        yield Bad(f"{name} is empty; there is nothing to measure.")


def _decoded(origin: str, content: bytes) -> str | Bad:
    if b"\0" in content:
        return Bad(f"{origin} is not text: it holds NUL bytes. headscope reads UTF-8 text, .jsonl, .csv and .parquet.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        return Bad(
            f"{origin} is not UTF-8: byte {problem.start} is 0x{content[problem.start]:02x}; "
            f"convert it (for example with iconv) or leave it out with {option('skip_bad', True)}."
        )


def _json_text(origin: str, line: str, fields: tuple[str, ...], meta: tuple[str, ...]) -> Text | Bad | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as problem:
        reason = problem.msg if isinstance(problem, json.JSONDecodeError) else type(problem).__name__
        return Bad(f"{origin} is not JSON ({reason}); mend it or pass over it with {option('skip_bad', True)}.")
    return of_object(origin, value, fields, meta)
