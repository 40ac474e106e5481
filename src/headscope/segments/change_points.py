"""Where a row of vectors changes: kernel change points, found exactly by dynamic programming.

The cost of a segment is the sum of squared distances of its sentences from their mean; the cost of a cut is the sum
over its segments. A cut is the list of the first sentences of its segments: 0 comes first. n sentences, D numbers each.
No segment is longer than STRETCH, so that the time grows with n and not with its square.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STRETCH = 1024
"""Sentences of the longest segment: as far as the dynamic programme looks back."""
SHORTEST = 2
"""Sentences of a segment, unless more segments are asked for than there is room for."""
BLOCK = 128
"""Sentences whose costs are computed at once."""
STEPS = 40
"""Halvings in the search for a penalty that gives a number of segments."""


class Sums:
    """What the cost of any segment of vectors (n, D) follows from: sums up to each sentence."""

    def __init__(self, vectors: Array) -> None:
        count, width = vectors.shape
        self.count = count
        self._sums = np.zeros((count + 1, width))
        np.cumsum(vectors, 0, out=self._sums[1:])
        self._squares = np.concatenate([[0.0], np.cumsum((vectors**2).sum(1))])
        self._lengths = (self._sums**2).sum(1)

    def cost(self, start: NDArray[np.int64] | int, end: NDArray[np.int64] | int) -> Array:
        """Of the segments from start to before end, one by one."""
        apart = np.asarray(self._sums[end] - self._sums[start])
        size = np.maximum(np.asarray(end) - np.asarray(start), 1)
        cost: Array = np.maximum(self._squares[end] - self._squares[start] - (apart**2).sum(-1) / size, 0)
        return cost

    def costs(self, starts: slice, ends: slice) -> Array:
        """Of every segment from one of the starts to before one of the ends: (starts, ends); infinite where a segment
        would end before it starts."""
        begin, end = np.arange(self.count + 1)[starts], np.arange(self.count + 1)[ends]
        product = self._sums[starts] @ self._sums[ends].T
        apart = self._lengths[starts, None] + self._lengths[ends] - 2 * product
        size = end - begin[:, None]
        cost = np.maximum(self._squares[ends] - self._squares[starts, None] - apart / np.maximum(size, 1), 0)
        return np.where(size > 0, cost, np.inf)


def cut_with_penalty(sums: Sums, penalty: float, shortest: int = SHORTEST, stretch: int = STRETCH) -> list[int]:
    """The cut of the least cost, where each boundary costs `penalty`.

    >>> vectors = np.array([[0.0], [0.1], [0.0], [5.0], [5.1], [5.0]])
    >>> cut_with_penalty(Sums(vectors), 1.0)
    [0, 3]
    """
    count = sums.count
    if count < 2 * shortest:
        return [0]
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    before = np.zeros(count + 1, np.int64)
    for first, end, costs in _blocks(sums, shortest, stretch):
        found = best[first : first + len(costs)] + costs
        place = int(found.argmin())
        best[end], before[end] = found[place] + penalty, first + place
    return _traced(before, count)


def cut_into(sums: Sums, segments: int, stretch: int = STRETCH) -> list[int]:
    """The cut of the least cost into so many segments, exactly where the text is no longer than a stretch.

    In a longer one, the best cut into as many segments or a few less that a penalty gives; those that lack are split
    off one after the other, each where it saves most.
    """
    count = sums.count
    shortest = SHORTEST if SHORTEST * segments <= count else 1
    if count <= stretch:
        return _cut_exactly(sums, segments, shortest)
    low, high = 0.0, float(sums.cost(0, count)) + 1.0
    cut = cut_with_penalty(sums, high, shortest, stretch)
    for _ in range(STEPS):
        middle = (low + high) / 2
        found = cut_with_penalty(sums, middle, shortest, stretch)
        if len(found) <= segments:
            high, cut = middle, found
        else:
            low = middle
        if len(cut) == segments:
            return cut
    while len(cut) < segments:
        gains = gains_of(sums, cut, shortest)
        gains[cut] = -np.inf
        cut = sorted([*cut, int(gains.argmax())])
    return cut


def gains_of(sums: Sums, cut: list[int], shortest: int = 1) -> Array:
    """What the boundary before each sentence saves, all others of the cut left as they are: (n,).

    Of a boundary of the cut, what would be lost without it; of any other, what it would save. 0 for the first sentence.
    """
    count = sums.count
    gains = np.zeros(count)
    borders = [*cut, count]
    for left, right in pairwise(borders):
        inside = np.arange(left + shortest, right - shortest + 1)
        if len(inside):
            whole = sums.cost(left, right)
            gains[inside] = whole - sums.cost(np.full_like(inside, left), inside)
            gains[inside] -= sums.cost(inside, np.full_like(inside, right))
    for left, border, right in zip(borders, borders[1:], borders[2:], strict=False):
        gains[border] = sums.cost(left, right) - sums.cost(left, border) - sums.cost(border, right)
    gains[0] = 0
    return np.maximum(gains, 0)


def _blocks(sums: Sums, shortest: int, stretch: int) -> Iterator[tuple[int, int, Array]]:
    """For each sentence that a segment may end before: the first start looked at, and the costs from there on."""
    for begin in range(shortest, sums.count + 1, BLOCK):
        end = min(begin + BLOCK, sums.count + 1)
        earliest = max(begin - stretch, 0)
        costs = sums.costs(slice(earliest, end - shortest), slice(begin, end))
        for place in range(end - begin):
            first = max(begin + place - stretch, 0)
            yield first, begin + place, costs[first - earliest : begin + place - shortest + 1 - earliest, place]


def _cut_exactly(sums: Sums, segments: int, shortest: int) -> list[int]:
    count = sums.count
    every = slice(0, count + 1)
    costs = sums.costs(every, every)
    size = np.arange(count + 1) - np.arange(count + 1)[:, None]
    costs[size < shortest] = np.inf
    best = costs[0]
    steps = []
    for _ in range(segments - 1):
        found = best[:, None] + costs
        before = found.argmin(0)
        steps.append(before)
        best = found[before, np.arange(count + 1)]
    cut, place = [], count
    for before in reversed(steps):
        place = int(before[place])
        cut.append(place)
    return [0, *reversed(cut)]


def _traced(before: NDArray[np.int64], count: int) -> list[int]:
    cut = [int(before[count])]
    while cut[-1] > 0:
        cut.append(int(before[cut[-1]]))
    return cut[::-1]
