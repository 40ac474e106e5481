"""What every display of one text has in common: the text cut into tokens, short labels, sentences about a head."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headscope.one_text.view import OneText
from headscope.wording import counted, model_label, percent, short


class Segment(NamedTuple):
    """Characters of the text in the order they stand, and the token they belong to; None between tokens."""

    characters: str
    token: int | None
    special: bool = False


def segments(view: OneText) -> list[Segment]:
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


def pairs_of_token(view: OneText, layer: int, head: int) -> NDArray[np.int64]:
    """(S,): the high pairs that each token is in."""
    count: NDArray[np.int64] = view.high(layer, head).sum(1)
    return count


def about_view(view: OneText) -> str:
    """Who looked at what, in one line."""
    sentences = len(set(view.sentence[view.sentence >= 0].tolist()))
    told = [
        model_label(view.model_name),
        f"{view.size} tokens",
        counted(sentences, "sentence"),
        f"threshold {view.threshold:g}",
    ]
    told += ["special tokens left out"] * (view.special_option == "drop")
    return " · ".join(told + [f"similarity: {view.similarity_option}"] * (view.similarity_option != "dot"))


def about_head(view: OneText, layer: int, head: int) -> str:
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


def about_lines(view: OneText, layer: int, head: int, most: int = 6) -> str:
    """Which tokens draw the attention of one head, the strongest first."""
    lines = view.lines(layer, head).sort_values("share", ascending=False, kind="stable")
    strongest = lines.head(most)
    told = [f"“{short(token)}” {percent(share)}" for token, share in zip(strongest.token, strongest.share, strict=True)]
    more = f" and {len(lines) - most} more" if len(lines) > most else ""
    return f"Attention lines ({len(lines)}), with their share of all attention: {', '.join(told)}{more}."


def _mean(matrix: NDArray[np.bool_], where: NDArray[np.bool_]) -> str:
    return percent(float(matrix[where].mean()))
