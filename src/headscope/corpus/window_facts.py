"""Where every window is from, kept in a file while a study runs: there may be millions of them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from headscope.corpus.windows import Window


@dataclass(frozen=True)
class WindowFact:
    """window: its number, from 0; text: the number of its text; origin: the file, line or row of that; start, end: the
    characters of the text that it covers; tokens: special ones included, padding not. meta: what the user keeps of the
    text, by column."""

    window: int
    text: int
    origin: str
    start: int
    end: int
    tokens: int
    meta: tuple[Any, ...] = ()


class WindowFacts:
    """Those of all windows, in their order. meta: the columns that are kept of their texts; kinds: what types of values
    each of them has had."""

    def __init__(self, meta: tuple[str, ...] = ()) -> None:
        self.kinds: dict[str, set[str]] = {name: set() for name in meta}
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115

    def add(self, number: int, window: Window) -> None:
        covered = window.end > window.start
        start, end = (window.start[covered].min(), window.end[covered].max()) if covered.any() else (0, 0)
        facts = (number, window.text_number, window.text.origin, int(start), int(end), int(window.size))
        self._file.write(json.dumps([facts, window.text.meta]) + "\n")
        for kinds, value in zip(self.kinds.values(), window.text.meta, strict=True):
            if value is not None:
                kinds.add(type(value).__name__)

    def __iter__(self) -> Iterator[WindowFact]:
        """To be read once, when all are there."""
        self._file.seek(0)
        for line in self._file:
            (window, text, origin, start, end, tokens), meta = json.loads(line)
            yield WindowFact(window, text, origin, start, end, tokens, tuple(meta))

    def close(self) -> None:
        self._file.close()
