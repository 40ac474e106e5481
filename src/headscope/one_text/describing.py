"""What every display of one text has in common: the text cut into tokens, short labels, sentences about a head."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headscope.one_text.view import OneText
from headscope.wording import counted, in_words, model_label, percent, short, times


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
    told = [
        model_label(view.model_name),
        f"{view.size} tokens",
        counted(view.sentences, "sentence"),
        f"threshold {view.threshold:g}",
    ]
    told += ["special tokens left out"] * (view.special_option == "drop")
    return " · ".join(told + [f"similarity: {view.similarity_option}"] * (view.similarity_option != "dot"))


def nothing_singled_out(view: OneText) -> str | None:
    """One sentence where no head singles out more than luck may, since the text is short or most pairs are high."""
    found = view.singled_out.values()
    if any(what.step == 0 for what in found):
        return None
    crowded = sum(what.crowded for what in found)
    where = f" of layer {view.layers[0]}" if len(view.layers) == 1 else ""
    if crowded == len(found):
        told = f"In every head{where} most pairs are high: none singles anything out."
    else:
        told = f"No head{where} singles out more than luck may"
        told += f"; in {crowded} of {len(found)} most pairs are high." if crowded else "."
    centred = "" if view.similarity_option == "centred" else ", or the similarity centred,"
    return f"{told} A longer text{centred} may tell more."


def about_choice(view: OneText, layer: int | None) -> str:
    """From how many heads the most telling were chosen, and how many of them are crowded; of one layer or of all."""
    layers = view.layers if layer is None else [view.layers[view.attention.place(layer)]]
    found = [what for (place, _), what in view.singled_out.items() if place in layers]
    crowded = sum(what.crowded for what in found)
    told = f"Shown are the most telling of {counted(len(found), 'head')} in {in_words(layers)}"
    return told + (f"; in {crowded} of them most pairs are high." if crowded else ".")


def stands_out(view: OneText, layer: int, head: int) -> str | None:
    """Why to look at a head: what its high pairs have in common. None where most pairs are high, or none is."""
    what = view.singled_out[layer, head]
    if what.step > 1:
        return None
    if what.trait is None:
        return "Its high pairs have no more in common than distance gives."
    focal = view.focal(layer, head)
    assert focal is not None
    called = {
        "equal": "as many equal tokens",
        "sentence": "as many pairs within one sentence",
        "focal": f"as many pairs with “{short(focal.token)}”",
    }[what.trait]
    share, chance = percent(what.holding / what.pairs), percent(what.expected / what.pairs)
    luck = "" if what.sure else "; it may be luck"
    return f"{times(what.holding / what.expected)} {called} as distance gives ({share}, not {chance}){luck}."


def about_head(view: OneText, layer: int, head: int) -> str:
    """What the high pairs of one head are like, with what chance gives; said first where most pairs are high."""
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
    crowded = "Most pairs are high: this head singles nothing out. " if view.singled_out[layer, head].crowded else ""
    return crowded + "; ".join(told) + "."


def about_lines(view: OneText, layer: int, head: int, most: int = 6) -> str:
    """Which tokens draw the attention of one head, the strongest first."""
    lines = view.lines(layer, head).sort_values("share", ascending=False, kind="stable")
    strongest = lines.head(most)
    told = [f"“{short(token)}” {percent(share)}" for token, share in zip(strongest.token, strongest.share, strict=True)]
    more = f" and {len(lines) - most} more" if len(lines) > most else ""
    return f"Attention lines ({len(lines)}), with their share of all attention: {', '.join(told)}{more}."


def _mean(matrix: NDArray[np.bool_], where: NDArray[np.bool_]) -> str:
    return percent(float(matrix[where].mean()))
