"""What people use already to cut a text into topics, each with the same sentences and the same knowledge.

A contender is called with sentences, how many segments there are (or None), and the mean length of a segment in the
whole set, which only those use that know nothing of the text. It gives the lengths of segments.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
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
    """Hearst's, as nltk has it; each sentence is a paragraph. Of a known number the deepest gaps are taken."""
    from nltk.tokenize.texttiling import TextTilingTokenizer

    class Known(TextTilingTokenizer):
        deepest = 0

        def _identify_boundaries(self, depth_scores):
            if segments is None:
                return super()._identify_boundaries(depth_scores)
            best = sorted(range(len(depth_scores)), key=lambda gap: -depth_scores[gap])[: self.deepest]
            return [int(gap in best) for gap in range(len(depth_scores))]

    tiles = Known(stopwords=STOPWORDS)
    joined = "\n\n" + "\n\n".join(sentences)
    tiles.deepest = (segments or 1) - 1
    while True:
        try:
            pieces = tiles.tokenize(joined)
        except ValueError:  # too short a text
            return [len(sentences)]
        ends = np.cumsum([len(re.findall(r"\S[^\n]*", piece)) for piece in pieces]).tolist()
        # Several gaps may fall on one sentence end; then deeper ones are tried until there are enough.
        if segments is None or len(ends) >= segments or tiles.deepest > len(sentences):
            return lengths_of([0, *ends[:-1]], len(sentences))
        tiles.deepest += segments - len(ends)


def c99(sentences: Sequence[str], segments: int | None, mean_length: float) -> list[int]:
    """Choi's (2000): stems without stop words, cosine, ranks among 11 x 11 neighbours, divisive clustering; an unknown
    number is where the gain in density falls below its mean and 1.2 standard deviations."""
    count = len(sentences)
    if count < 2:
        return [count]
    total = np.zeros((count + 1, count + 1))
    total[1:, 1:] = _ranked(_cosine(sentences)).cumsum(0).cumsum(1)

    def inside(start: int, end: int) -> float:
        return float(total[end, end] - total[start, end] - total[end, start] + total[start, start])

    cut, sums, areas = [0], inside(0, count), float(count) ** 2
    gains, density = [], sums / areas
    order: list[int] = []
    most = segments if segments is not None else count
    while len(cut) < most:
        best = None
        for start, end in pairwise([*cut, count]):
            for place in range(start + 1, end):
                new_sum = sums - inside(start, end) + inside(start, place) + inside(place, end)
                new_area = areas - (end - start) ** 2 + (place - start) ** 2 + (end - place) ** 2
                if best is None or new_sum / new_area > best[0]:
                    best = new_sum / new_area, place, new_sum, new_area
        if best is None:
            break
        gains.append(best[0] - density)
        density, place, sums, areas = best
        order.append(place)
        cut = sorted([*cut, place])
        if segments is None and len(cut) > count // 2:
            break
    if segments is not None:
        return lengths_of(cut, count)
    smooth = np.convolve(np.array(gains), [1, 2, 4, 8, 4, 2, 1], "same") / 22
    threshold = smooth.mean() + 1.2 * smooth.std()
    kept = 0
    while kept < len(smooth) and smooth[kept] > threshold:
        kept += 1
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
