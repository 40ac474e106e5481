"""What moves when heads are silenced: hidden states, the embedding of a text, the loss. Pure functions of tensors.

R counts copies of the same B windows, each silenced in another way.
"""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

MASKED_SHARE = 0.15
SMALLEST = 1e-30
"""A length below which a vector is taken for this long."""


def hidden_changes(before: Tensor, after: Tensor, real: Tensor) -> Tensor:
    """|x' - x| / |x| of final hidden states, summed over the tokens of each window.

    before: (B, S, D); after: (R, B, S, D); real: (B, S), where tokens are no padding -> (R, B) float64.
    """
    moved: Tensor = torch.linalg.vector_norm(after.float() - before.float(), dim=-1)
    change = moved / _lengths(before.float())
    return _over_tokens(change, real)


def hidden_cosines(before: Tensor, after: Tensor, real: Tensor) -> Tensor:
    """The cosine of x and x', summed over the tokens of each window. Shapes as in `hidden_changes`."""
    return _over_tokens(_cosines(before.float(), after.float()), real)


def embedding_cosines(before: Tensor, after: Tensor, real: Tensor) -> Tensor:
    """The cosine of two embeddings of a window, the means of its hidden states. As `hidden_changes`, -> (R, B)."""
    return _cosines(embedding(before, real), embedding(after, real)).double()


def embedding(states: Tensor, real: Tensor) -> Tensor:
    """The mean over tokens: (..., B, S, D) and (B, S) -> (..., B, D)."""
    weight = real.float()[..., None]
    return (states.float() * weight).sum(-2) / weight.sum(-2).clamp_min(1)


def _over_tokens(values: Tensor, real: Tensor) -> Tensor:
    """(R, B, S) -> (R, B)."""
    return values.double().where(real, 0).sum(-1)


def _cosines(one: Tensor, other: Tensor) -> Tensor:
    return (one * other).sum(-1) / (_lengths(one) * _lengths(other))


def _lengths(vectors: Tensor) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return lengths.clamp_min(SMALLEST)


def losses(logits: Tensor, targets: Tensor) -> Tensor:
    """-log of the probability that each target was given. logits: (N, V), targets: (N,) -> (N,) float64."""
    return functional.cross_entropy(logits.float(), targets, reduction="none").double()


def next_tokens(ids: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Which places predict, (B, S), and what: (B, S), the id of the token after each. The last predicts nothing."""
    places = torch.zeros_like(real)
    places[:, :-1] = real[:, 1:] & real[:, :-1]
    return places, ids.roll(-1, 1)


def masked_places(ids: NDArray[np.int64], content: NDArray[np.bool_], seed: int) -> NDArray[np.bool_]:
    """15 % of the tokens of each window that are no special ones, at least one, drawn from the seed and the window.

    ids, content: (B, S); content: neither special nor padding -> (B, S).
    """
    places = np.zeros_like(content)
    for row in range(len(ids)):
        there = np.flatnonzero(content[row])
        count = min(len(there), max(1, round(MASKED_SHARE * len(there))))
        places[row, drawn(ids[row], seed).choice(there, count, replace=False)] = count > 0
    return places


def drawn(ids: NDArray[np.int64], seed: int) -> np.random.Generator:
    """Draws that depend on the seed and on the tokens of a window alone, (S,): not on how a run goes."""
    digest = hashlib.sha256(np.ascontiguousarray(ids).tobytes()).digest()
    return np.random.default_rng([abs(seed), int.from_bytes(digest[:8], "little")])
