"""Texts as a source of windows, with all that a study has to say of what it read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from headscope.corpus.sampling import Sample
from headscope.corpus.texts import Reading, Text, Texts
from headscope.corpus.used_sources import UsedSources
from headscope.corpus.window_facts import WindowFacts
from headscope.corpus.windows import Counts, Cutter, Window, cut_all, refuse_unknown
from headscope.errors import HeadscopeError
from headscope.options import Options
from headscope.speaking import SAME, option
from headscope.wording import counted


class TextWindows:
    """The windows of texts, in order (see `run.source`).

    example: the number of the window to keep a hold of, in `example_window`. `sha256` is of all texts read so far.
    Texts of which the tokenizer knows less than half are refused, after the first shard or at the end.
    sample: which of all windows these are, numbered anew from 0; None: all. texts_sha256: of the texts that the sample
    was drawn from. facts: told where every window is from.
    """

    unit = "windows"

    def __init__(
        self,
        texts: Texts,
        tokenizer: Any,
        options: Options,
        windows_per_shard: int,
        *,
        example: int = 0,
        model_name: str = "the model",
        embedding_rows: int | None = None,
        sample: Sample | None = None,
        texts_sha256: str | None = None,
        facts: WindowFacts | None = None,
    ) -> None:
        self._texts = texts
        self.facts = facts
        self._options = options
        self._cutter = Cutter(tokenizer, options, embedding_rows)
        self._model_name = model_name
        self._hash = hashlib.sha256()
        self._example = example
        self._sample = sample
        self._texts_sha256 = texts_sha256
        self._numbered = 0
        self.windows_per_shard = windows_per_shard
        self.example_window: Window | None = None
        self.counts = Counts()
        self.used = UsedSources()

    @property
    def name(self) -> str:
        return self._texts.name

    @property
    def reading(self) -> Reading | None:
        """How the texts are read again."""
        return self._texts.reading

    @property
    def unusable(self) -> int:
        """Records that were passed over."""
        return self._texts.bad

    @property
    def other_files(self) -> int:
        """Files in the folders given that are no texts by their names."""
        return self._texts.other_files

    @property
    def not_reached(self) -> int:
        """Sources that no text was read from, because there were windows enough before."""
        return self._texts.sources_not_reached

    @property
    def drawn_from(self) -> int | None:
        """Of a sample: how many windows the texts have in all."""
        return None if self._sample is None else self._sample.windows

    @property
    def made(self) -> int:
        return self._numbered

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def windows(self, wanted: Callable[[int], bool] | None) -> Iterator[Window]:
        def chosen(window: int) -> bool:
            """Asked of every window there is, in order."""
            if self._sample is not None and not self._sample.holds(window):
                return False
            self._numbered += 1
            self.used.add_window()
            return wanted is None or wanted(self._numbered - 1)

        for window in cut_all(self._hashed(), self._cutter, self.counts, self._options.max_windows, chosen):
            if self._numbered - 1 == self._example:
                self.example_window = window
            if self._numbered == self.windows_per_shard:
                refuse_unknown(self.counts, self._model_name)
            if self.facts is not None:
                self.facts.add(self._numbered - 1, window)
            yield window
        refuse_unknown(self.counts, self._model_name)
        if self._texts_sha256 not in (None, self.sha256):
            raise HeadscopeError(
                f"{self.name} changed after its windows were counted, so the sample would be of no one text; run "
                f"{SAME} again."
            )

    @property
    def expected(self) -> int | None:
        if self._sample is not None:
            return self._sample.taken
        share = self._texts.read_share
        estimate = int(self.made / share) if share else None
        most = self._options.max_windows
        return most if most is not None and (estimate is None or estimate > most) else estimate

    def changed(self) -> list[str]:
        return self._texts.changed()

    def why_none(self) -> str:
        counts, length = self.counts, self._options.length
        if counts.short_windows_left_out:
            specials = len(self._cutter.prefix) + len(self._cutter.suffix)
            return (
                f"Every text is shorter than a window: the longest of {counts.texts:,} has "
                f"{counted(counts.longest_short, 'token')}, and {option('length', length)} needs "
                f"{length - specials} beside {specials} special ones; use {option('short', 'pad')}, or a smaller "
                f"{option('length')}."
            )
        return f"There is no text to measure: {counted(counts.texts, 'text')} read, and no token found."

    def _hashed(self) -> Iterator[Text]:
        """The texts; what was read of them is hashed, so that parts of one study know each other."""
        for text in self._texts:
            _add(self._hash, text)
            self.used.add_text(*self._texts.newest_source)
            yield text


@dataclass(frozen=True)
class Counted:
    """What a first reading of texts found: how many windows they have, and their hash."""

    windows: int
    sha256: str


def count_windows(
    texts: Texts, tokenizer: Any, options: Options, embedding_rows: int | None, tick: Callable[[int, int | None], None]
) -> Counted:
    """Read all texts and count their windows. tick: told after each text how many more there are, and how many there
    will be, as far as can be told."""
    cutter, counts, digest = Cutter(tokenizer, options, embedding_rows), Counts(), hashlib.sha256()
    for text in texts:
        before = counts.windows
        _add(digest, text)
        for _ in cutter.cut(text, counts, wanted=lambda window: False):
            pass
        share = texts.read_share
        tick(counts.windows - before, int(counts.windows / share) if share else None)
    return Counted(counts.windows, digest.hexdigest())


def texts_hash(texts: Iterable[Text]) -> str:
    """SHA-256 of texts, as a study that read them says it."""
    digest = hashlib.sha256()
    for text in texts:
        _add(digest, text)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, text: Text) -> None:
    for content in text.contents:
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
