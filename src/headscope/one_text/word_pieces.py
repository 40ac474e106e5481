"""Which tokens are the pieces of one word."""

from __future__ import annotations

import unicodedata

import numpy as np
from numpy.typing import NDArray

UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")
"""Scripts that put no spaces between words, as the names of their characters begin."""


def word_groups(
    text: str, start: NDArray[np.int64], end: NDArray[np.int64], special: NDArray[np.bool_]
) -> list[list[int]]:
    """The tokens of each word, in order."""
    groups: list[list[int]] = []
    for token in range(len(start)):
        if token and not special[token - 1 : token + 1].any() and _one_word(text, start, end, token):
            groups[-1].append(token)
        else:
            groups.append([token])
    return groups


def _one_word(text: str, start: NDArray[np.int64], end: NDArray[np.int64], token: int) -> bool:
    """The token goes on with the word of the one before it. Pieces of one character overlap."""
    left, right = int(end[token - 1]), int(start[token])
    if left > right:
        return True
    return 0 < left == right < len(text) and _in_word(text[left - 1]) and _in_word(text[right])


def _in_word(character: str) -> bool:
    """A letter, mark or digit, of a script that puts spaces between words."""
    return unicodedata.category(character)[0] in "LMN" and not unicodedata.name(character, "").startswith(UNSPACED)
