"""What becomes of texts that are shorter than a window, where nobody has said it: a first look at the texts decides."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.corpus.texts import Texts
from headscope.corpus.windows import Cutter
from headscope.options import Short

LOOKED_AT = 200
"""Texts, the first ones: the same however a study runs."""
CHARACTERS = 2**22
"""Of all of them together: with a few books, no more need be read."""


@dataclass(frozen=True)
class FirstLook:
    """Texts that hold a token, as many as it took to decide, and how many of them are shorter than a window.

    longest: tokens of the longest of all texts, where all were looked at and all are shorter; otherwise None. whole:
    they are pairs or token ids, one window each.
    """

    texts: int
    shorter: int
    longest: int | None = None
    whole: bool = False

    @property
    def short(self) -> Short:
        """Padded where most texts would be left out otherwise, and where each is a window."""
        return "pad" if self.whole or 2 * self.shorter > self.texts else "drop"

    def notice(self, length: int) -> str | None:
        """What is to be said where short windows are padded that could have been left out."""
        if self.short == "drop" or self.whole:
            return None
        first = "" if self.texts < LOOKED_AT else "first "
        which = f"{self.shorter:,} of the {first}{self.texts:,} texts are" if self.texts > 1 else "The text is"
        cut = "" if self.longest is None else ", and windows are as long as the longest text"
        return (
            f"{which} shorter than a window of {length} tokens, so short windows were padded, not left out{cut} "
            "(with short = drop they are left out)."
        )


def first_look(texts: Texts, cutter: Cutter) -> FirstLook:
    first = texts.first(LOOKED_AT, CHARACTERS)
    if any(text.is_one_window for text in first):
        return FirstLook(len(first), 0, whole=True)
    sizes: list[int] = []
    for text in first:
        sizes.append(cutter.size_up_to_a_window(text))
        if 2 * sum(size >= cutter.content for size in sizes) >= len(first):
            break  # whatever the others are, short windows are left out
    every = len(first) < LOOKED_AT and sum(len(text.text) for text in first) < CHARACTERS
    longest = max(sizes) if every and any(sizes) and max(sizes) < cutter.content else None
    return FirstLook(sum(size > 0 for size in sizes), sum(0 < size < cutter.content for size in sizes), longest)
