"""The tokens of a text of any length, in memory that does not grow with it.

Given a whole book, a tokenizer takes some 600 bytes a token. So a text is tokenized in passages that overlap, and where
one ends and the next begins only tokens are believed that both agree on. The result is that of the whole text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

PASSAGE = 2**13
OVERLAP = 2**10
"""Characters."""
CHARACTERS_A_TOKEN = 8
"""At the most, in most texts."""
LONGEST_PASSAGE = 2**18
"""Characters. Where a longer passage would be needed, in a word of a quarter of a million letters, the word is cut."""


class Token(NamedTuple):
    """`start` and `end` are the characters of the text that it covers, as the tokenizer says."""

    id: int
    start: int
    end: int


def tokens_of(tokenizer: Any, text: str) -> Iterator[Token]:
    """The tokens of a text, in order, without those that a tokenizer adds before and after it.

    The start of a passage is not that of a word, so its first tokens may be wrong, and so may the last. Two neighbours
    are joined if their tokens are equal in the middle half of what they share; else the first is made longer, until it
    is too long for the memory: then it ends where it is, and the next begins there.
    """
    begin, stop = 0, PASSAGE
    given = 0
    left = _tokens(tokenizer, text, begin, stop)
    while stop < len(text):
        next_begin, next_stop = stop - OVERLAP, stop - OVERLAP + PASSAGE
        right = _tokens(tokenizer, text, next_begin, next_stop)
        first, last = next_begin + OVERLAP // 4, stop - OVERLAP // 4
        shared = _between(left, first, last)
        if shared and shared == _between(right, first, last):
            yield from _between(left, given, last)
            begin, stop, given, left = next_begin, next_stop, last, right
        elif stop - begin >= LONGEST_PASSAGE:
            yield from _between(left, given, stop)
            begin, stop, given = stop, stop + PASSAGE, stop
            left = _tokens(tokenizer, text, begin, stop)
        else:
            stop += stop - begin
            left = _tokens(tokenizer, text, begin, stop)
    yield from _between(left, given, len(text) + 1)


def count_up_to(tokenizer: Any, text: str, most: int) -> int:
    """Tokens of a text, of which no more than `most` are counted; mostly its first few characters tell."""
    start = CHARACTERS_A_TOKEN * most
    if start + OVERLAP < PASSAGE and len(text) > start + OVERLAP:
        believed = sum(token.start < start for token in _tokens(tokenizer, text, 0, start + OVERLAP))
        if believed >= most:
            return most
    return sum(1 for _ in islice(tokens_of(tokenizer, text), most))


def _tokens(tokenizer: Any, text: str, begin: int, stop: int) -> list[Token]:
    """Those of the characters from `begin` to before `stop`, counted in the whole text."""
    encoded = tokenizer(text[begin:stop], add_special_tokens=False, return_offsets_mapping=True, verbose=False)
    pairs = zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
    return [Token(number, begin + start, begin + end) for number, (start, end) in pairs]


def _between(tokens: list[Token], first: int, last: int) -> list[Token]:
    return [token for token in tokens if first <= token.start < last]


def unknown_ids(tokenizer: Any) -> set[int]:
    """The ids that stand for what a tokenizer does not know; none where it falls back on bytes, as GPT-2's does."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and hasattr(backend.model, "unk_token"):
        unknown = backend.model.unk_token
        found = None if unknown is None else backend.token_to_id(unknown)
    else:
        found = tokenizer.unk_token_id
    if found is None and backend is not None and type(backend.model).__name__ == "Unigram":
        found = json.loads(backend.model.__getstate__())["unk_id"]
    return set() if found is None else {found}
