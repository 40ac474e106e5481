"""Sentences as a model reads them one by one: each with its own special tokens, and nothing before or after it.

What a model makes of a sentence then depends on that sentence alone, not on where a window happened to begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.sentences import sentence_starts
from headscope.corpus.tokenizing import unknown_ids
from headscope.corpus.windows import Counts, Cutter
from headscope.errors import HeadscopeError
from headscope.options import Options, Sentences

CHARACTERS_A_TOKEN = 32
"""A sentence is tokenized up to so many characters for each token there is room for: one without an end, of a whole
file, would fill the memory, and all but its beginning is cut anyway."""
TOKENS_AT_ONCE = 1024
"""In a batch, padding included."""


class Span(NamedTuple):
    """Characters of a text, from `start` to before `end`."""

    start: int
    end: int


def sentence_spans(text: str, how: Sentences) -> list[Span]:
    """The sentences of a text, one after the other: together they are the text. None where it holds no word.

    >>> [text[a:b] for text in ["One. Two.\\n"] for a, b in sentence_spans(text, "english")]
    ['One. ', 'Two.\\n']
    """
    if not text.strip():
        return []
    starts = [*sentence_starts(text, how), len(text)]
    return [Span(start, end) for start, end in pairwise(starts) if end > start]


@dataclass(frozen=True)
class Group:
    """Sentences of about one length, to run together. which: (B,), their numbers; ids, mask: (B, S)."""

    which: NDArray[np.int64]
    ids: NDArray[np.int64]
    mask: NDArray[np.int64]


class Alone:
    """Tokenizes sentences one by one, for a model that takes at most `longest` tokens.

    `counts` has tokens and unknown ones; `cut`, how many sentences were longer and lost their ends; `empty`, how many
    held no token at all.
    """

    def __init__(self, tokenizer: Any, longest: int, rows: int | None) -> None:
        self._cutter = Cutter(tokenizer, Options(length=longest), rows)
        self._tokenizer = tokenizer
        self._unknown = unknown_ids(tokenizer)
        self._rows = rows
        self._room = longest - len(self._cutter.prefix) - len(self._cutter.suffix)
        pad = tokenizer.pad_token_id
        self._pad = pad if pad is not None and (rows is None or pad < rows) else 0
        self.reset()

    def reset(self) -> None:
        """Begin to count anew."""
        self.counts = Counts()
        self.cut = 0
        self.empty = 0

    def ids(self, sentences: Sequence[str]) -> list[list[int]]:
        """The tokens of each sentence, special ones included; none for a sentence in which the tokenizer sees none."""
        most = self._room * CHARACTERS_A_TOKEN
        given = [sentence.strip()[:most] for sentence in sentences]
        encoded = self._tokenizer(given, add_special_tokens=False, verbose=False)["input_ids"] if given else []
        found = []
        for sentence, short, tokens in zip(sentences, given, encoded, strict=True):
            self.cut += len(tokens) > self._room or len(short) < len(sentence.strip())
            tokens = tokens[: self._room]
            self._count(tokens)
            self.empty += not tokens
            found.append([*self._cutter.prefix, *tokens, *self._cutter.suffix] if tokens else [])
        return found

    def groups(self, ids: Sequence[Sequence[int]]) -> Iterator[Group]:
        """Batches of like length, the short ones first; sentences without a token are in none."""
        order = sorted((place for place in range(len(ids)) if ids[place]), key=lambda place: len(ids[place]))
        while order:
            which: list[int] = []
            for place in order:
                if which and (len(which) + 1) * len(ids[place]) > TOKENS_AT_ONCE:
                    break
                which.append(place)
            order = order[len(which) :]
            yield self.group(ids, which)

    def group(self, ids: Sequence[Sequence[int]], which: Sequence[int]) -> Group:
        length = max(len(ids[place]) for place in which)
        padded = np.full((len(which), length), self._pad, np.int64)
        mask = np.zeros((len(which), length), np.int64)
        for row, place in enumerate(which):
            size = len(ids[place])
            padded[row, :size], mask[row, :size] = ids[place], 1
        return Group(np.array(which, np.int64), padded, mask)

    def _count(self, tokens: list[int]) -> None:
        self.counts.tokens += len(tokens)
        self.counts.unknown_tokens += sum(token in self._unknown for token in tokens) if self._unknown else 0
        if self._rows is not None and tokens and (beyond := max(tokens)) >= self._rows:
            raise HeadscopeError(
                f"The text holds {self._tokenizer.convert_ids_to_tokens(beyond)}, a token (id {beyond}) that the "
                f"network has no row for in its embedding of {self._rows:,}; take it out of the text."
            )
