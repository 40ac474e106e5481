"""What every display of a view has in common: the text cut into tokens, short labels, sentences about a head."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headscope.one_text.view import View
from headscope.wording import model_label, percent, visible

LONGEST_LABEL = 24
LONGEST_PIECE = 200
_QUOTED = re.compile("“[^”]*”")


class Segment(NamedTuple):
    """Characters of the text in the order they stand, and the token they belong to; None between tokens."""

    characters: str
    token: int | None
    special: bool = False


def segments(view: View) -> list[Segment]:
    """The whole text, every token in its place. Pieces of one and the same character are shown with the first."""
    found: list[Segment] = []
    place = 0
    for token, label in enumerate(view.labels):
        if view.special[token]:
            found.append(Segment(label, token, True))
            continue
        start, end = max(int(view.start[token]), place), int(view.end[token])
        if end <= start:
            continue
        if start > place:
            found.append(Segment(view.text[place:start], None))
        found.append(Segment(view.text[start:end], token))
        place = end
    return found


def short(label: str, most: int = LONGEST_LABEL) -> str:
    """The beginning of a label, on one line.

    >>> short("constabulary", 8)
    'constab…'
    """
    clean = visible(label).replace("\n", "·").replace("\t", "·")
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def isolated(sentence: str) -> str:
    """With every quoted token closed off, so that one written from right to left does not turn what follows it."""
    return _QUOTED.sub("\u2068\\g<0>\u2069", sentence)


def abridged(characters: str) -> str:
    """A piece of the text where there is no room to scroll: the middle of a very long one is left out."""
    half = LONGEST_PIECE // 2
    return characters if len(characters) <= LONGEST_PIECE else f"{characters[:half]} … {characters[-half:]}"


def pairs_of_token(view: View, layer: int, head: int) -> NDArray[np.int64]:
    """(S,): the high pairs that each token is in."""
    count: NDArray[np.int64] = view.high(layer, head).sum(1)
    return count


def about_view(view: View) -> str:
    """Who looked at what, in one line."""
    sentences = len(set(view.sentence[view.sentence >= 0].tolist()))
    told = [
        model_label(view.model_name),
        f"{view.size} tokens",
        "1 sentence" if sentences == 1 else f"{sentences} sentences",
        f"threshold {view.threshold:g}",
    ]
    return " · ".join(told + ["special tokens left out"] * (view.special_option == "drop"))


def about_head(view: View, layer: int, head: int) -> str:
    """What the high pairs of one head are like, with what chance gives."""
    high = np.triu(view.high(layer, head))
    pairs = int(high.sum())
    if not pairs:
        return "No high pairs: no two outputs of this head point the same way."
    every = np.triu(view.part[:, None] & view.part, 1)
    i, j = np.nonzero(high)
    told = [
        f"{pairs:,} of {int(every.sum()):,} pairs are high, mean distance {(j - i).mean():.1f}",
        f"{_mean(view.together, high)} within one sentence (chance {_mean(view.together, every)})",
        f"{_mean(view.equal, high)} of equal tokens (chance {_mean(view.equal, every)})",
    ]
    focal = view.focal(layer, head)
    if focal is not None:
        told.append(f"focal token “{short(focal.token)}” in {percent(focal.share)}")
    return "; ".join(told) + "."


def about_lines(view: View, layer: int, head: int, most: int = 6) -> str:
    """Which tokens draw the attention of one head, the strongest first."""
    lines = view.lines(layer, head).sort_values("share", ascending=False, kind="stable")
    strongest = lines.head(most)
    told = [f"“{short(token)}” {percent(share)}" for token, share in zip(strongest.token, strongest.share, strict=True)]
    more = f" and {len(lines) - most} more" if len(lines) > most else ""
    return f"Attention lines ({len(lines)}), with their share of all attention: {', '.join(told)}{more}."


def _mean(matrix: NDArray[np.bool_], where: NDArray[np.bool_]) -> str:
    return percent(float(matrix[where].mean()))
