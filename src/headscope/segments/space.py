"""A space in which sentences of one topic lie together: vectors centred, whitened, weighted by head, of length 1.

Nothing of it is learned from labels: all is taken from the sentences of the text itself. n sentences, D numbers each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headscope.segments.sentence_vectors import Vectors

Array = NDArray[np.float64]

HEADS_SHARE = 0.3
"""Of the squared length of a sentence's vector, what its heads have where heads and pooled vectors are both used."""
NEAR, FAR = 3, 10
"""Sentences. Those up to NEAR apart are likely to be of one topic, those over FAR apart less so."""
POWER = 4
"""Of a head's contrast in its weight."""
WIDEST = 256
"""Numbers a sentence that are kept of a text of which not all sentences were looked at to make the space."""


@dataclass(frozen=True)
class Part:
    """One head, or the pooled vectors: x -> (x - centre) @ matrix. centre: (D,); matrix: (D, D)."""

    centre: Array
    matrix: Array

    def __call__(self, vectors: NDArray[np.floating]) -> Array:
        placed: Array = (vectors - self.centre) @ self.matrix
        return placed


@dataclass(frozen=True)
class Space:
    """Where sentences are placed. heads: (L, H) parts and their weights, which add up to 1; either may be absent.

    axes: (D, WIDEST), those along which the sentences differ most; None where all are kept.
    """

    parts: list[list[Part]]
    weights: Array
    contrasts: Array
    pooled: Part | None
    axes: Array | None = None

    def place(self, vectors: Vectors) -> Array:
        """Each sentence as a vector of length 1, or 0 where it has no token: (n, D)."""
        found = []
        shares = [1 - HEADS_SHARE, HEADS_SHARE] if self.pooled is not None and self.parts else [1.0, 1.0]
        if self.pooled is not None:
            found.append(np.sqrt(shares[0]) * unit(self.pooled(unit(vectors.pooled))))
        if self.parts:
            weighed = [
                np.sqrt(self.weights[layer, head]) * part(vectors.heads[:, layer, head])
                for layer, parts in enumerate(self.parts)
                for head, part in enumerate(parts)
                if self.weights[layer, head] > 0
            ]
            found.append(np.sqrt(shares[1]) * unit(np.concatenate(weighed, 1)))
        placed = np.concatenate(found, 1)
        if self.axes is not None:
            placed = unit(placed @ self.axes)
        return np.where(vectors.known[:, None], placed, 0)


def space_of(runs: Sequence[Vectors], whole: bool) -> Space:
    """The space of a text, from runs of sentences that follow each other; `whole`: they are all that there are."""
    known = [run for run in (_known(run) for run in runs) if len(run)]
    every = Vectors.joined(known)
    pooled = part_of([unit(run.pooled) for run in known])[0] if every.pooled.shape[1] else None
    layers, heads = every.heads.shape[1:3]
    parts: list[list[Part]] = []
    contrasts = np.zeros((layers, heads))
    for layer in range(layers):
        parts.append([])
        for head in range(heads):
            part, placed = part_of([run.heads[:, layer, head] for run in known])
            parts[-1].append(part)
            contrasts[layer, head] = contrast(placed)
    space = Space(parts, weights_of(contrasts), contrasts, pooled)
    if whole:
        return space
    return Space(parts, space.weights, contrasts, pooled, main_axes(space.place(every), WIDEST))


def main_axes(vectors: Array, count: int) -> Array:
    """The directions along which vectors (n, D) are longest, the longest first: (D, count), or fewer if n or D is less.

    Found from products of the vectors, n by n, where that is less than D by D.
    """
    sentences, width = vectors.shape
    products = vectors.T @ vectors if width <= sentences else vectors @ vectors.T
    values, axes = np.linalg.eigh(products)
    longest = np.argsort(values)[::-1][:count]
    longest = longest[values[longest] > 1e-12 * values[longest[0]]]
    if width <= sentences:
        return axes[:, longest]
    found: Array = vectors.T @ (axes[:, longest] / np.sqrt(values[longest]))
    return found


def part_of(runs: Sequence[NDArray[np.floating]]) -> tuple[Part, list[Array]]:
    """Centre and whiten; and the runs in their new places. Of all sentences the mean squared length is then 1."""
    every = np.concatenate(runs).astype(np.float64)
    centre = every.mean(0)
    matrix = whitening([np.asarray(run, np.float64) for run in runs])
    length = np.sqrt((((every - centre) @ matrix) ** 2).sum(1).mean())
    part = Part(centre, matrix / (length or 1.0))
    return part, [part(run) for run in runs]


def whitening(runs: Sequence[Array]) -> Array:
    """What makes differences between neighbouring sentences alike in all directions: (D, D), symmetric.

    Neighbours are mostly of one topic, so their differences show what changes within one. Of few sentences the
    covariance of D numbers can't be known: it is mixed with the identity as if D more differences had been seen that
    are alike in all directions.
    """
    differences = np.concatenate([np.diff(run, axis=0) for run in runs]) / np.sqrt(2)
    count, width = differences.shape
    total = float((differences**2).sum())
    if not count or total == 0:
        return np.eye(width)
    covariance = (differences.T @ differences + np.eye(width) * (total / count)) / (count + width)
    values, axes = np.linalg.eigh(covariance)
    matrix: Array = (axes / np.sqrt(values)) @ axes.T
    return matrix


def contrast(runs: Sequence[Array]) -> float:
    """How much more alike near sentences are than far ones, over the spread of far ones; 0 where there are none."""
    near: list[Array] = []
    far: list[Array] = []
    for run in runs:
        similarity = unit(run) @ unit(run).T
        distance = np.arange(len(run)) - np.arange(len(run))[:, None]
        near.append(similarity[(distance > 0) & (distance <= NEAR)])
        far.append(similarity[distance > (FAR if len(run) > 2 * FAR else NEAR)])
    others = np.concatenate(far)
    if others.size < 2 or others.std() == 0:
        return 0.0
    return float((np.concatenate(near).mean() - others.mean()) / others.std())


def weights_of(contrasts: Array) -> Array:
    """Of each head, by its contrast; all alike where no head has any.

    >>> weights_of(np.array([[1.0, 2.0, -1.0]])).round(3)
    array([[0.059, 0.941, 0.   ]])
    """
    strong = np.maximum(contrasts, 0) ** POWER
    if strong.sum() == 0:
        strong = np.ones_like(contrasts)
    weights: Array = strong / (strong.sum() or 1.0)
    return weights


def unit(vectors: NDArray[np.floating]) -> Array:
    """Each row with the length 1; a row of zeros stays."""
    rows = np.asarray(vectors, np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    units: Array = np.divide(rows, length, out=np.zeros_like(rows), where=length > 1e-12)
    return units


def _known(run: Vectors) -> Vectors:
    return Vectors(run.heads[run.known], run.pooled[run.known], run.known[run.known])
