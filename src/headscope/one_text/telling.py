"""Which heads of one text to look at first: those whose high pairs single something out.

Near tokens are often alike, and tokens that stand often in a text are in many pairs, whatever a head does. So the high
pairs of a head are held against as many pairs at the same distances, drawn at random from the same text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Trait = Literal["equal", "sentence", "focal"]
Place = tuple[int, int]
"""Layer and head."""

SILENT_PAIRS = 10
"""Pairs that tell nothing, which every head is thought to have beside its own: two or three that agree are luck."""
SURE = math.log(1000)
"""A surprise that random pairs bring to one head in a thousand, or fewer, is no luck."""
COMPARABLE = 0.5
"""At least so much of the most telling head that is left: then a head of another layer may come first."""


class Relation(NamedTuple):
    """Something that the two tokens of a pair may have in common.

    holds: (S, S), symmetric. by_distance: (S,), of all pairs so far apart, the share for which it holds.
    tried: how many such relations it is the best of.
    """

    trait: Trait
    holds: Flags
    by_distance: NDArray[np.float64]
    tried: int = 1


@dataclass(frozen=True)
class SingledOut:
    """What the high pairs of a head have in common.

    pairs: how many are high, of `possible`. trait: what they have in common more than distance gives, None for nothing.
    holding: the high pairs that have it; expected: how many of as many pairs at the same distances have it.
    surprise: random pairs have as much in common at most with the probability exp(-surprise).
    """

    pairs: int
    possible: int
    trait: Trait | None = None
    holding: int = 0
    expected: float = 0.0
    surprise: float = 0.0

    @property
    def crowded(self) -> bool:
        """Most pairs are high."""
        return 2 * self.pairs > self.possible

    @property
    def telling(self) -> float:
        """How much a high pair tells, on average."""
        return self.surprise / (self.pairs + SILENT_PAIRS)

    @property
    def sure(self) -> bool:
        """What the high pairs have in common is no luck."""
        return self.surprise >= SURE

    @property
    def step(self) -> int:
        """0: singles something out; 1: that may be luck, or it is nothing; 2: most pairs are high; 3: none is."""
        return 3 if not self.pairs else 2 if self.crowded else 0 if self.sure else 1


def related(trait: Trait, holds: Flags, every: Flags, tried: int = 1) -> Relation:
    """A relation, with how often pairs of each distance have it. every: (S, S), the pairs i < j that take part."""
    i, j = np.nonzero(every)
    size = len(every)
    there = np.bincount(j - i, minlength=size)
    having = np.bincount((j - i)[holds[i, j]], minlength=size)
    return Relation(trait, holds, having / np.maximum(there, 1), tried)


def singled_out(high: Flags, every: Flags, relations: Sequence[Relation]) -> SingledOut:
    """What the high pairs of one head single out: the relation in which they differ most from random pairs.

    A head in which no pair is high, or more than half of all, singles out nothing. Of any other, k of p high pairs
    have a relation (equal tokens, one sentence, the focal token). Of p pairs drawn at random without replacement, at
    each distance as many as are high there, E would have it. If k > E, the probability that k or more have it is at
    most exp(-p D), where D = k/p ln(k/E) + (1 - k/p) ln((p - k)/(p - E)) (Hoeffding 1963). p D is the surprise; of the
    best of n relations it is less by ln(n). The relation of the greatest surprise counts, if that is above 0.

    high: (S, S), the high pairs i < j. every: (S, S), the pairs i < j that take part.
    """
    i, j = np.nonzero(high)
    pairs, possible = len(i), int(every.sum())
    nothing = SingledOut(pairs, possible)
    if not pairs or nothing.crowded:
        return nothing
    found = []
    for relation in relations:
        holding, expected = int(relation.holds[i, j].sum()), float(relation.by_distance[j - i].sum())
        surprise = surprise_of(holding, expected, pairs) - math.log(relation.tried)
        found.append(SingledOut(pairs, possible, relation.trait, holding, expected, surprise))
    best = max(found, key=lambda each: each.surprise)
    return best if best.surprise > 0 else nothing


def surprise_of(holding: int, expected: float, pairs: int) -> float:
    """p D of `singled_out`; 0 where there are no more than expected.

    >>> round(surprise_of(5, 1, 5), 2), surprise_of(1, 2, 5)
    (8.05, 0.0)
    """
    if holding <= expected:
        return 0.0
    others = pairs - holding
    return holding * math.log(holding / expected) + (others * math.log(others / (pairs - expected)) if others else 0.0)


def most_telling(found: Mapping[Place, SingledOut], count: int) -> list[Place]:
    """The heads to look at first, the most telling first.

    Heads that single something out come before those where it may be luck (a surprise below ln 1000), these before
    heads in which most pairs are high, these before heads without high pairs. Within a step the order is that of the
    surprise a high pair brings: surprise / (pairs + 10), so that few pairs that agree come before many that lean a
    little; where it is the same, fewer pairs come first.
    Each time, the best head of a layer that has none yet goes first if it is at least half as telling as the best left.
    """
    left = sorted(found, key=lambda place: (found[place].step, -found[place].telling, found[place].pairs))
    chosen: list[Place] = []
    while left and len(chosen) < count:
        best, layers = found[left[0]], {layer for layer, _ in chosen}
        comparable = (
            place
            for place in left
            if place[0] not in layers
            and found[place].step == best.step
            and found[place].telling >= COMPARABLE * best.telling
        )
        chosen.append(next(comparable, left[0]))
        left.remove(chosen[-1])
    return chosen
