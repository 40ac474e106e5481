"""The kind of a token: what its characters are in Unicode, whatever the script."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import regex

KINDS = ("first", "special", "sentence_end", "comma", "punctuation", "word")
"""Every token is of exactly one kind; `Window.kind` holds the index into this tuple."""
FIRST, SPECIAL, SENTENCE_END, COMMA, PUNCTUATION, WORD = range(6)
SEPARATORS = KINDS[:WORD]

LONGEST_MARK = 64
"""Characters. A token of more is looked at anew each time: a few thousand long ones would fill the memory."""
_SENTENCE_ENDS = regex.compile(r"\p{Sentence_Terminal}+")
_MARKS = regex.compile(r"[\p{P}\p{S}]+")


def kind_of(piece: str) -> int:
    """The kind of a token that is neither first nor special, from the characters it covers.

    >>> [KINDS[kind_of(piece)] for piece in (".", "。", "؟", ",", "、", "--", "€", "cat")]
    ['sentence_end', 'sentence_end', 'sentence_end', 'comma', 'comma', 'punctuation', 'punctuation', 'word']
    """
    return _remembered(piece) if len(piece) <= LONGEST_MARK else _kind(piece)


def _kind(piece: str) -> int:
    if not _MARKS.fullmatch(piece):
        return WORD
    if _SENTENCE_ENDS.fullmatch(piece):
        return SENTENCE_END
    # Unicode has no property of commas, but every script's is called one.
    return COMMA if len(piece) == 1 and unicodedata.name(piece, "").endswith("COMMA") else PUNCTUATION


_remembered = lru_cache(maxsize=8192)(_kind)
