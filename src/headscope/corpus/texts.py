"""Where texts come from: files, folders, standard input, the hub, Python, the built-in sample."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any

from headscope.arguments import naming_typos
from headscope.corpus.given import GIVEN, Articles, given_source
from headscope.corpus.hub import HubDataset
from headscope.corpus.meta import check_fields
from headscope.corpus.records import FIELD, Bad, Source, Text, field_names
from headscope.corpus.text_files import SUFFIXES, WITH_FIELDS, File, StandardInput, files_of, inside
from headscope.errors import HeadscopeError
from headscope.speaking import option
from headscope.wording import named

__all__ = ["SAMPLE", "SUFFIXES", "Reading", "Text", "Texts", "as_texts", "only_text", "read_texts", "sample_texts"]

SAMPLE = "sample"
"""What the built-in texts are called."""


@dataclass(frozen=True)
class Reading:
    """How `read_texts` was asked: what it takes to read the same texts again. second: of pairs, the field of the second
    text."""

    names: list[str]
    lines: bool = False
    field: str = FIELD
    skip_bad: bool = False
    second: str | None = None

    def read(self) -> Texts:
        field = self.field if self.second is None else (self.field, self.second)
        return read_texts(self.names, lines=self.lines, field=field, skip_bad=self.skip_bad)


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
        self._newest = 0
        self._meta: tuple[str, ...] = ()
        self._kept: Iterator[tuple[int, Text | Bad]] | None = None

    def __iter__(self) -> Iterator[Text]:
        self.bad = self._newest = 0
        for number, record in self._records():
            self._newest = number
            if isinstance(record, Text):
                check_fields(record, self._meta)
                yield record
            elif self.skip_bad:
                self.bad += 1
            else:
                raise HeadscopeError(record.reason)

    def keep(self, meta: tuple[str, ...]) -> None:
        """Have these columns or fields kept of each text, in `Text.meta`."""
        self._meta = meta
        for source in self._sources:
            source.meta = meta

    def first(self, count: int, characters: int) -> list[Text]:
        """The first texts, until they hold so many characters, or one can't be used: that is told when it is read. What
        can be read only once is kept for the reading to come."""
        records = self._records()
        begun: list[tuple[int, Text | Bad]] = []
        texts: list[Text] = []
        for number, record in records:
            begun.append((number, record))
            if isinstance(record, Text):
                texts.append(record)
                characters -= len(record.text)
            elif not self.skip_bad:
                break
            if len(texts) == count or characters <= 0:
                break
        if self.once:
            self._kept = chain(begun, records)
        return texts

    def _records(self) -> Iterator[tuple[int, Text | Bad]]:
        """With the number of the source that each is from."""
        if self._kept is not None:
            kept, self._kept = self._kept, None
            yield from kept
            return
        self._done = 0
        for number, source in enumerate(self._sources):
            for record in source.records():
                yield number, record
            self._done += 1

    @property
    def newest_source(self) -> tuple[int, str]:
        """The number and the name of the one that the newest text is from."""
        return self._newest, self._sources[self._newest].name

    @property
    def sources_not_reached(self) -> int:
        """Those after the newest text's, if no more are read."""
        return len(self._sources) - 1 - max(self._newest, self._done - 1)

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
        before = self._sizes_before
        if before is None:
            return None
        done = before[self._done]
        if self._done < len(self._sources):
            done = min(done + self._sources[self._done].position, before[self._done + 1])
        return done / before[-1] if before[-1] else 1.0

    @cached_property
    def _sizes_before(self) -> list[int] | None:
        """Of each source, how much is in those before it, and last how much is in all; None where it can't be told."""
        sizes = [source.size for source in self._sources]
        known = [size for size in sizes if size is not None]
        return [0, *accumulate(known)] if len(known) == len(sizes) else None


@naming_typos()
def read_texts(
    paths: str | Path | Iterable[str | Path],
    *,
    lines: bool = False,
    skip_bad: bool = False,
    field: str | Sequence[str] = FIELD,
) -> Texts:
    """Texts from files, folders, `-` (standard input) and `hf:DATASET`, in the order given.

    A file is one text; with `lines` each of its lines is one. `.jsonl`, `.json` (an array), `.csv`, `.tsv` (the first
    line names the columns) and `.parquet` hold a text a row, in `field`. Any of them may be gzipped. A folder is read
    with all its subfolders, in alphabetical order, but for `.json`. skip_bad: what can't be used is counted. Two fields
    hold pairs of texts, each pair one window.

    >>> import headscope
    >>> texts = headscope.read_texts(["reviews.csv", "notes/"], field="review")  # doctest: +SKIP
    >>> pairs = headscope.read_texts("nli.jsonl", field=("premise", "hypothesis"))  # doctest: +SKIP
    """
    fields = field_names(field)
    sources: list[Source] = []
    others = 0
    names = [str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
    for name in names:
        if not name.strip():
            raise HeadscopeError("The name of a file or folder is empty; give - for standard input, or hf:DATASET.")
        if name == "-":
            if len(fields) == 2:
                raise HeadscopeError("Standard input has no fields to take pairs from; give a file.")
            if fields != (FIELD,):
                raise HeadscopeError(f"Standard input has no fields; give a file, or leave out {option('field')}.")
            sources.append(StandardInput(lines))
        elif name.startswith("hf:"):
            sources.append(HubDataset(name[3:], fields))
        else:
            if (Path(name) / "study.json").is_file():
                raise HeadscopeError(f"{name} is a study folder; give the texts to be read.")
            found = files_of(Path(name))
            sources.extend(File(path, lines, fields) for path in found)
            others += sum(1 for _ in inside(Path(name))) - len(found) if Path(name).is_dir() else 0
    if sources and fields != (FIELD,) and len(fields) == 1 and not any(source.has_fields for source in sources):
        raise HeadscopeError(
            f"{named(' '.join(names))} has no field {fields[0]!r}, for it is text; give {WITH_FIELDS}, or leave out "
            f"{option('field')}."
        )
    if not sources:
        raise HeadscopeError("No texts were named; give files, folders, - for standard input, or hf:DATASET.")
    return Texts(sources, named(" ".join(names)), Reading(names, lines, fields[0], skip_bad, *fields[1:]), others)


def sample_texts() -> Texts:
    """The built-in texts, written for headscope: encyclopaedia-style articles, and some of other shapes and lengths.

    >>> import headscope
    >>> next(iter(headscope.sample_texts())).origin
    'sample/ada-lovelace.txt'
    """
    folder = resources.files("headscope") / "data" / "texts"
    articles = sorted((item for item in folder.iterdir() if item.name.endswith(".txt")), key=lambda i: i.name)
    texts = {f"sample/{article.name}": article.read_text("utf-8") for article in articles}
    return Texts([Articles(texts, SAMPLE)], SAMPLE)


def as_texts(texts: Any, field: str | Sequence[str] | None = None) -> Texts:
    """Whatever a Python user passes as texts; None is the sample.

    `Texts`, a `Path` or paths; strings; a pandas Series of strings; a pandas DataFrame, a `datasets.Dataset` or dicts,
    with the text in `field`, by default `text`, or pairs in two fields; pairs of strings; token ids, a row a window.
    """
    if isinstance(texts, Texts) or texts is None:
        if field is not None:
            raise HeadscopeError(
                "field is for tables and dicts; of files it is named as in headscope.read_texts(['a.csv'], field=...)."
            )
        return sample_texts() if texts is None else texts
    if isinstance(texts, Path):
        return read_texts([texts], field=field or FIELD)
    if isinstance(texts, (list, tuple)) and texts and all(isinstance(text, Path) for text in texts):
        return read_texts(texts, field=field or FIELD)
    return Texts([given_source(texts, field_names(field or FIELD))], GIVEN)


def only_text(texts: Texts) -> Text | None:
    """The one text there is, None where there is none; several are refused, for only one of them would be seen."""
    found = list(islice(texts, 2))
    if len(found) > 1:
        raise HeadscopeError(f"More than one text was given ({texts.name}), and only one is taken; give one of them.")
    return found[0] if found else None
