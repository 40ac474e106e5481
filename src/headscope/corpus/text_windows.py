"""Texts as a source of windows, with all that a study has to say of what it read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headscope.corpus.texts import Reading, Text, Texts
from headscope.corpus.windows import Counts, Cutter, Window, cut_all, refuse_unknown
from headscope.options import Options
from headscope.wording import counted


class TextWindows:
    """The windows of texts, in order (see `run.source`).

    example: the number of the window to keep a hold of, in `example_window`. `sha256` is of all texts read so far.
    Texts of which the tokenizer knows less than half are refused, after the first shard or at the end.
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
    ) -> None:
        self._texts = texts
        self._options = options
        self._cutter = Cutter(tokenizer, options, embedding_rows)
        self._model_name = model_name
        self._hash = hashlib.sha256()
        self._example = example
        self.windows_per_shard = windows_per_shard
        self.example_window: Window | None = None
        self.counts = Counts()

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
    def made(self) -> int:
        return self.counts.windows

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def windows(self, wanted: Callable[[int], bool] | None) -> Iterator[Window]:
        for window in cut_all(self._hashed(), self._cutter, self.counts, self._options.max_windows, wanted):
            if self.counts.windows - 1 == self._example:
                self.example_window = window
            if self.counts.windows == self.windows_per_shard:
                refuse_unknown(self.counts, self._model_name)
            yield window
        refuse_unknown(self.counts, self._model_name)

    @property
    def expected(self) -> int | None:
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
                f"{counted(counts.longest_short, 'token')}, and --length {length} needs {length - specials} beside "
                f"{specials} special ones; "
                "use --short pad, or a smaller --length."
            )
        return f"There is no text to measure: {counted(counts.texts, 'text')} read, and no token found."

    def _hashed(self) -> Iterator[Text]:
        """The texts; what was read of them is hashed, so that parts of one study know each other."""
        for text in self._texts:
            _add(self._hash, text)
            yield text


def texts_hash(texts: Iterable[Text]) -> str:
    """SHA-256 of texts, as a study that read them says it."""
    digest = hashlib.sha256()
    for text in texts:
        _add(digest, text)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, text: Text) -> None:
    content = text.text.encode()
    digest.update(len(content).to_bytes(8, "little"))
    digest.update(content)
