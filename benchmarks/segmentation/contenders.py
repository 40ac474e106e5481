"""What people use already to cut a text into topics, each with the same sentences and the same knowledge.

A contender is called with sentences, how many segments there are (or None), and the mean length of a segment in the
whole set, which only those use that know nothing of the text. It gives the lengths of segments.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

Contender = Callable[[Sequence[str], "int | None", float], list[int]]

_STOPWORDS = """
a about above after again against all also am an and any are as at be because been before being below between both
but by can could did do does doing down during each few for from further had has have having he her here hers
herself him himself his how i if in into is it its itself just me more most my myself no nor not now of off on once
only or other our ours out over own same she should so some such than that the their theirs them then there these
they this those through to too under until up very was we were what when where which while who whom why will with
would you your yours
"""
STOPWORDS = frozenset(_STOPWORDS.split())


WORDS_A_RUN = 20
"""Of TextTiling; as nltk has it."""


def lengths_of(cut: Sequence[int], count: int) -> list[int]:
    """First sentences of segments -> their lengths."""
    return [end - start for start, end in pairwise([*cut, count])]


def nothing(sentences: Sequence[str], segments: int | None, mean_length: float) -> list[int]:
    return [len(sentences)]


def by_chance(sentences: Sequence[str], segments: int | None, mean_length: float) -> list[int]:
    """As many boundaries as there are, or each with the probability that one has in the set; seeded by the text."""
    count = len(sentences)
    draw = random.Random(sentences[0])
    if segments is not None:
        return lengths_of([0, *sorted(draw.sample(range(1, count), segments - 1))], count)
    return lengths_of([0, *(place for place in range(1, count) if draw.random() < 1 / mean_length)], count)


def evenly(sentences: Sequence[str], segments: int | None, mean_length: float) -> list[int]:
    count = len(sentences)
    segments = segments or max(1, round(count / mean_length))
    return lengths_of(sorted({round(count * number / segments) for number in range(segments)}), count)


def text_tiling(sentences: Sequence[str], segments: int | None, mean_length: float) -> list[int]:
    """Hearst's, as nltk has it: gaps between runs of 20 words, and how deep the similarity falls there. A gap stands
    for the sentence end nearest to it; of a known number of segments the deepest are taken."""
    found_by_nltk = _tiles("\n\n".join(sentences))
    if found_by_nltk is None:
        return [len(sentences)]
    depths, chosen = found_by_nltk
    # As nltk counts them: without digits and marks.
    words = [len(re.findall(r"\w+", re.sub(r"[^a-z\-' \n\t]", "", sentence.lower()))) for sentence in sentences]
    ends = np.cumsum(words)[:-1]
    found: list[int] = []
    wanted = sum(chosen) if segments is None else segments - 1
    gaps = np.flatnonzero(chosen) if segments is None else np.argsort(-np.array(depths), kind="stable")
    for gap in gaps.tolist():
        place = int(np.abs(ends - (gap + 1) * WORDS_A_RUN).argmin()) + 1
        if place not in found and len(found) < wanted:
            found.append(place)
    return lengths_of([0, *sorted(found)], len(sentences))


@lru_cache(maxsize=1)
def _tiles(text: str) -> tuple[list[float], list[int]] | None:
    """How deep each gap is, and whether nltk makes it a boundary; none for a text that is too short for it."""
    from nltk.tokenize.texttiling import TextTilingTokenizer

    try:
        _, _, depths, chosen = TextTilingTokenizer(w=WORDS_A_RUN, stopwords=STOPWORDS, demo_mode=True).tokenize(
            f"\n\n{text}"
        )
    except ValueError:
        return None
    return depths, chosen


def c99(sentences: Sequence[str], segments: int | None, mean_length: float) -> list[int]:
    """Choi's (2000): stems without stop words, cosine, ranks among 11 x 11 neighbours, divisive clustering; an unknown
    number is where the gain in density falls below its mean and 1.2 standard deviations."""
    count = len(sentences)
    if count < 2:
        return [count]
    total = np.zeros((count + 1, count + 1))
    total[1:, 1:] = _ranked(_cosine(sentences)).cumsum(0).cumsum(1)
    total = (total + total.T) / 2
    corner = np.diag(total)

    def inside(start: np.ndarray, end: np.ndarray) -> np.ndarray:
        return corner[end] - 2 * total[start, end] + corner[start]

    cut, order, gains = [0], [], []
    sums, areas = float(corner[count]), float(count) ** 2
    places = np.arange(1, count)
    for _ in range((segments or count // 2 + 1) - 1):
        borders = np.array([*cut, count])
        which = np.searchsorted(borders, places, side="right") - 1
        start, end = borders[which], borders[np.minimum(which + 1, len(cut))]
        new_sums = sums - inside(start, end) + inside(start, places) + inside(places, end)
        new_areas = areas - (end - start) ** 2 + (places - start) ** 2 + (end - places) ** 2
        density = np.where(np.isin(places, cut), -np.inf, new_sums / new_areas)
        best = int(density.argmax())
        gains.append(density[best] - sums / areas)
        sums, areas = float(new_sums[best]), float(new_areas[best])
        order.append(int(places[best]))
        cut = sorted([*cut, order[-1]])
    if segments is not None:
        return lengths_of(cut, count)
    bell = [1, 2, 4, 8, 4, 2, 1]
    smooth = np.convolve(gains, bell, "same") / np.convolve(np.ones(len(gains)), bell, "same")
    kept = int(np.argmax([*(smooth <= smooth.mean() + 1.2 * smooth.std()), True]))
    return lengths_of([0, *sorted(order[:kept])], count)


def _cosine(sentences: Sequence[str]) -> np.ndarray:
    from nltk.stem import PorterStemmer

    stem = PorterStemmer().stem
    words = [
        [stem(word) for word in re.findall(r"\w+", sentence.lower()) if word not in STOPWORDS] for sentence in sentences
    ]
    places = {word: place for place, word in enumerate(dict.fromkeys(word for some in words for word in some))}
    counts = np.zeros((len(sentences), max(len(places), 1)), np.float32)
    for row, some in enumerate(words):
        for word in some:
            counts[row, places[word]] += 1
    length = np.linalg.norm(counts, axis=1, keepdims=True)
    counts /= np.where(length == 0, 1, length)
    return counts @ counts.T


def _ranked(similarity: np.ndarray, reach: int = 5) -> np.ndarray:
    """The share of the neighbours, up to `reach` away in both directions, that are lower."""
    count = len(similarity)
    padded = np.pad(similarity, reach, constant_values=np.nan)
    lower, there = np.zeros_like(similarity), np.zeros_like(similarity)
    for down in range(2 * reach + 1):
        for across in range(2 * reach + 1):
            if (down, across) != (reach, reach):
                neighbour = padded[down : down + count, across : across + count]
                lower += neighbour < similarity
                there += ~np.isnan(neighbour)
    return lower / np.maximum(there, 1)


WITHOUT_MODEL: dict[str, Contender] = {
    "no boundaries": nothing,
    "at random": by_chance,
    "every k-th sentence": evenly,
    "TextTiling (nltk)": text_tiling,
    "C99": c99,
}
