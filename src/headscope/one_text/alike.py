"""Heads that treat the pairs of one text alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from headscope.one_text.telling import Place
from headscope.one_text.view import OneText


def most_alike(view: OneText, count: int) -> dict[Place, list[tuple[Place, float]]]:
    """(layer, head) -> the heads whose N goes most with its own, the most alike first, each with the correlation over
    the pairs i < j that take part. A head whose N is the same everywhere goes with none."""
    places = [(layer, head) for layer in view.layers for head in range(view.heads)]
    pairs = np.triu(view.part[:, None] & view.part, 1)
    values: NDArray[np.float32] = np.empty((len(places), int(pairs.sum())), np.float32)
    for row, (layer, head) in enumerate(places):
        values[row] = view.normalised[layer, head][pairs]
    values -= values.mean(1, keepdims=True)
    length = np.sqrt((values * values).sum(1, keepdims=True))
    values /= np.where(length > 0, length, 1)
    together = values @ values.T
    np.fill_diagonal(together, -np.inf)
    together[np.flatnonzero(length == 0)] = together[:, np.flatnonzero(length == 0)] = -np.inf
    nearest = np.argsort(-together, axis=1, kind="stable")[:, :count]
    return {
        place: [(places[other], float(together[row, other])) for other in others if together[row, other] > -np.inf]
        for row, (place, others) in enumerate(zip(places, nearest, strict=True))
    }
