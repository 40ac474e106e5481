"""Where texts come from: files, folders, standard input, the hub, the built-in sample."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from headscope.console import say
from headscope.errors import HeadscopeError
from headscope.wording import named

SAMPLE = "sample"
"""What the built-in texts are called."""
SUFFIXES = (".txt", ".md", ".jsonl", ".parquet")
LONGEST_TEXT = 256 * 2**20
"""Bytes. A single text beyond this is refused: it is a mistake or an attack, and would fill the memory."""


class Text(NamedTuple):
    """One text and where it came from, for messages: a file, or a file and line."""

    origin: str
    text: str


class Bad(NamedTuple):
    """A record that can't be used, and the sentence that says so."""

    reason: str


@dataclass(frozen=True)
class Reading:
    """How `read_texts` was asked: what it takes to read the same texts again."""

    names: list[str]
    lines: bool = False
    field: str = "text"
    skip_bad: bool = False


class Source(ABC):
    """One place that texts come from. `size` and `position` are in any unit, None where unknown. once: what it gives is
    gone when it was read."""

    size: int | None = None
    position: int = 0
    once: bool = False

    @abstractmethod
    def records(self) -> Iterator[Text | Bad]: ...

    def changed(self) -> str | None:
        """The name of the source if it is no longer what `records` began to read."""
        return None


class Texts:
    """Texts in a fixed order.

    Iterating yields `Text`; `read_share` tells how much of the input the newest iteration has read,
    `bad` how many unusable records it passed over (with `skip_bad`). other_files: those in the folders that are no
    texts by their names. reading: how they are read again, where they are of files, the hub or the sample.
    """

    def __init__(self, sources: list[Source], name: str, reading: Reading | None = None, other_files: int = 0) -> None:
        self._sources = sources
        self.name = name
        self.skip_bad = reading is not None and reading.skip_bad
        self.reading = reading
        self.other_files = other_files
        self.bad = 0
        self._done = 0

    def __iter__(self) -> Iterator[Text]:
        self.bad = 0
        self._done = 0
        for source in self._sources:
            for record in source.records():
                if isinstance(record, Text):
                    yield record
                elif self.skip_bad:
                    self.bad += 1
                else:
                    raise HeadscopeError(record.reason)
            self._done += 1

    @property
    def once(self) -> bool:
        """Whether they can be read only once: standard input, or a generator."""
        return any(source.once for source in self._sources)

    def changed(self) -> list[str]:
        """The files that were written to, replaced or removed since the newest iteration opened them."""
        return [name for source in self._sources if (name := source.changed()) is not None]

    @property
    def read_share(self) -> float | None:
        """How much of the input has been read, 0 to 1; None where it can't be told."""
        sizes = [source.size for source in self._sources]
        if any(size is None for size in sizes):
            return None
        known = [size or 0 for size in sizes]
        done = sum(known[: self._done])
        if self._done < len(known):
            done += min(self._sources[self._done].position, known[self._done])
        return done / sum(known) if sum(known) else 1.0


class Strings(Source):
    """Texts given in Python."""

    def __init__(self, texts: Iterable[str], names: list[str] | None = None) -> None:
        self._texts = texts
        self._names = names
        self.size = len(texts) if isinstance(texts, (list, tuple)) else None
        self.once = isinstance(texts, Iterator)

    def records(self) -> Iterator[Text | Bad]:
        for number, text in enumerate(self._texts):
            self.position = number
            origin = self._names[number] if self._names else f"text {number}"
            if not isinstance(text, str):
                raise HeadscopeError(f"{origin} is of type {type(text).__name__}; texts must be strings.")
            yield _checked(origin, text)


class File(Source):
    """A text file, JSON lines or Parquet, each perhaps gzipped."""

    def __init__(self, path: Path, lines: bool, field: str) -> None:
        self._path = path
        self._lines = lines
        self._field = field
        self.size = path.stat().st_size
        self._stamp: tuple[int, ...] | None = None

    def changed(self) -> str | None:
        return named(self._path) if self._stamp is not None and self._stamp != _stamp(self._path) else None

    def records(self) -> Iterator[Text | Bad]:
        name = named(self._path)
        self._stamp = _stamp(self._path)
        suffixes = [suffix.lower() for suffix in self._path.suffixes]
        zipped = suffixes[-1:] == [".gz"]
        kind = "".join(suffixes[-2:-1] if zipped else suffixes[-1:])
        try:
            with open(self._path, "rb") as raw, cast(BinaryIO, gzip.open(raw) if zipped else raw) as plain:
                if kind == ".parquet":
                    yield from self._parquet(name, _unpacked(name, plain) if zipped else plain)
                elif kind == ".jsonl" or self._lines:
                    for record in _lines(name, plain, self._field if kind == ".jsonl" else None):
                        self.position = raw.tell()
                        yield record
                else:
                    yield _whole(name, plain)
        except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
            yield Bad(f"{name} is not a whole gzip file ({problem}); fetch or compress it again.")
        except OSError as problem:
            raise HeadscopeError(f"{name} can't be read: {problem.strerror or problem}.") from None

    def _parquet(self, name: str, plain: BinaryIO | Bad) -> Iterator[Text | Bad]:
        import pyarrow
        import pyarrow.parquet

        if isinstance(plain, Bad):
            yield plain
            return
        try:
            table = pyarrow.parquet.ParquetFile(plain)
            columns = table.schema_arrow.names
            if columns.count(self._field) != 1:
                how_many = "several columns" if self._field in columns else "no column"
                yield Bad(
                    f"{name} has {how_many} {self._field!r}, only {', '.join(columns[:8])}; "
                    "name the right one with --field."
                )
                return
            kind = table.schema_arrow.field(self._field).type
            if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
                yield Bad(f"Column {self._field!r} of {name} holds {kind}, not strings; name another with --field.")
                return
            row = 0
            for batch in table.iter_batches(batch_size=64, columns=[self._field]):
                for value in batch.column(0).to_pylist():
                    if value is not None and len(value) > LONGEST_TEXT:
                        yield Bad(f"{name}, row {row} is longer than {LONGEST_TEXT >> 20} MB; cut it.")
                    elif value is not None and value.strip():
                        yield _checked(f"{name}, row {row}", value)
                    row += 1
                self.position = int((self.size or 0) * row / table.metadata.num_rows)
        except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as problem:
            reason = str(problem).partition("\n")[0]
            yield Bad(f"{name} is not a readable Parquet file ({reason}).")


class StandardInput(Source):
    """Standard input: one text, or one a line."""

    once = True

    def __init__(self, lines: bool) -> None:
        self._lines = lines

    def records(self) -> Iterator[Text | Bad]:
        name = "standard input"
        if sys.stdin is None:
            raise HeadscopeError("Standard input is closed; name a file instead of -, or send it a text.")
        if sys.stdin.isatty():
            say("Type the text, and end it with Ctrl-D on a line of its own.", error=True)
        try:
            if self._lines:
                yield from _lines(name, sys.stdin.buffer, None)
            else:
                yield _whole(name, sys.stdin.buffer)
        except OSError as problem:
            raise HeadscopeError(f"Standard input can't be read: {problem.strerror or problem}.") from None


class HubDataset(Source):
    """`hf:NAME`, `hf:NAME:CONFIG` or `hf:NAME:CONFIG:SPLIT`, streamed from the Hugging Face hub."""

    def __init__(self, address: str, field: str) -> None:
        self._address = address
        self._field = field

    def records(self) -> Iterator[Text | Bad]:
        try:
            import datasets
        except ImportError:
            raise HeadscopeError(
                f"hf:{self._address} needs the package datasets; install it with: pip install 'headscope[hub]'"
            ) from None
        name, config, split = (*self._address.split(":"), "", "")[:3]
        try:
            rows = datasets.load_dataset(name, config or None, split=split or "train", streaming=True)
            for number, row in enumerate(rows):
                origin = f"hf:{self._address}, row {number}"
                if isinstance(row.get(self._field), str):
                    yield _checked(origin, row[self._field])
                else:
                    yield Bad(
                        f"{origin} has no text in its field {self._field!r}, only the fields "
                        f"{', '.join(row)}; name the right one with --field."
                    )
        except (OSError, ValueError) as problem:
            reason = (str(problem).strip() or type(problem).__name__).splitlines()[0]
            raise HeadscopeError(f"The data set hf:{self._address} can't be read: {reason}") from None


def read_texts(
    paths: str | Path | Iterable[str | Path], *, lines: bool = False, skip_bad: bool = False, field: str = "text"
) -> Texts:
    """Texts from files, folders, `-` (standard input) and `hf:DATASET`, in the order given.

    A file is one text; with `lines` each of its lines is one. `.jsonl` and `.parquet` hold a text a row, in `field`.
    Any of them may be gzipped. A folder is read with all its subfolders, in alphabetical order.
    """
    sources: list[Source] = []
    others = 0
    names = [str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    for name in names:
        if name == "-":
            sources.append(StandardInput(lines))
        elif name.startswith("hf:"):
            sources.append(HubDataset(name[3:], field))
        else:
            found = _files(Path(name))
            sources.extend(File(path, lines, field) for path in found)
            others += sum(1 for _ in _inside(Path(name))) - len(found) if Path(name).is_dir() else 0
    if not sources:
        raise HeadscopeError("No texts were named; give files, folders, - for standard input, or hf:DATASET.")
    return Texts(sources, named(" ".join(names)), Reading(names, lines, field, skip_bad), others)


def sample_texts() -> Texts:
    """The built-in texts, written for headscope: encyclopaedia-style articles, and some of other shapes and lengths."""
    folder = resources.files("headscope") / "data" / "texts"
    articles = sorted((item for item in folder.iterdir() if item.name.endswith(".txt")), key=lambda i: i.name)
    texts = [article.read_text("utf-8") for article in articles]
    return Texts([Strings(texts, [f"sample/{article.name}" for article in articles])], SAMPLE)


def as_texts(texts: Any) -> Texts:
    """Whatever a Python user passes as texts: `Texts`, strings, a `Path` or paths; None is the sample."""
    if texts is None:
        return sample_texts()
    if isinstance(texts, Texts):
        return texts
    if isinstance(texts, Path):
        return read_texts([texts])
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise HeadscopeError(
            f"texts is of type {type(texts).__name__}; give a list of strings, "
            "or headscope.read_texts(['file.txt']) for files."
        )
    if isinstance(texts, (list, tuple)) and texts and all(isinstance(text, Path) for text in texts):
        return read_texts(texts)
    return Texts([Strings(texts)], "texts given in Python")


def _files(path: Path) -> list[Path]:
    try:
        return _files_at(path)
    except OSError as problem:
        raise HeadscopeError(f"{problem.filename or path} can't be read: {problem.strerror or problem}.") from None


def _files_at(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(
            inside
            for inside in _inside(path)
            if inside.name.lower().removesuffix(".gz").endswith(SUFFIXES) and inside.is_file()
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


def _inside(folder: Path) -> Iterator[Path]:
    """Everything in a folder and its subfolders that is not hidden. One that may not be read is refused: it would seem
    to be empty."""

    def refuse(problem: OSError) -> None:
        raise problem

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _stamp(path: Path) -> tuple[int, ...]:
    """Differs as soon as a file is written to, replaced or removed."""
    try:
        status = path.stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _whole(name: str, plain: BinaryIO) -> Text | Bad:
    content = plain.read(LONGEST_TEXT + 1)
    if len(content) > LONGEST_TEXT:
        return Bad(f"{name} holds more than {LONGEST_TEXT >> 20} MB in one text; use --lines, .jsonl, or cut it.")
    text = _decoded(name, content)
    if isinstance(text, str):
        return _checked(name, text) if text.strip() else Bad(f"{name} is empty; there is nothing to measure.")
    return text


def _lines(name: str, plain: BinaryIO, field: str | None) -> Iterator[Text | Bad]:
    """A text a line, or a JSON object a line with the text in `field`; empty lines are passed over."""
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
            yield _checked(origin, text.strip("\r\n")) if field is None else _json_text(origin, text, field)
    if number == 0:
        yield Bad(f"{name} is empty; there is nothing to measure.")


def _decoded(origin: str, content: bytes) -> str | Bad:
    if b"\0" in content:
        return Bad(f"{origin} is not text: it holds NUL bytes. headscope reads UTF-8 text, .jsonl and .parquet.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        return Bad(
            f"{origin} is not UTF-8: byte {problem.start} is 0x{content[problem.start]:02x}; "
            "convert it (for example with iconv) or leave it out with --skip-bad."
        )


def _json_text(origin: str, line: str, field: str) -> Text | Bad:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as problem:
        reason = problem.msg if isinstance(problem, json.JSONDecodeError) else type(problem).__name__
        return Bad(f"{origin} is not JSON ({reason}); mend it or pass over it with --skip-bad.")
    if not isinstance(value, dict) or not isinstance(value.get(field), str):
        return Bad(f"{origin} has no string field {field!r}; name another with --field, or use --skip-bad.")
    return _checked(origin, value[field])


def _checked(origin: str, text: str) -> Text | Bad:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as problem:
        return Bad(f"{origin} is not valid Unicode: character {problem.start} is a lone surrogate.")
    return Text(origin, text)


def _unpacked(name: str, plain: BinaryIO) -> BinaryIO | Bad:
    most = 4 * LONGEST_TEXT
    content = plain.read(most + 1)
    if len(content) > most:
        return Bad(f"{name} unpacks to more than {most >> 20} MB; unpack it to a file first.")
    return io.BytesIO(content)
