"""Z -> C -> N -> high pairs, and A -> lines -> blocks: pure functions, the definitions of the method.

S tokens, d the width of a head. A pair is unordered, i < j. `definitions_torch` has the same for batches on any device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.options import Similarity

Array = NDArray[Any]
IN_ONE_THREAD = 2**18
"""Multiplications of a product that numpy's library does in one thread. Of one that is little larger, threads wait for
each other a hundred times as long as the product takes, where a machine is busy."""


def compared(output: Array, taking_part: NDArray[np.bool_], similarity: Similarity) -> Array:
    """What the similarity is the dot product of: Z as it is (dot), less its mean over the tokens that take part
    (centred), or with rows of length 1 (cosine; a row of length 0 stays). (..., S, d) and (S,) -> (..., S, d).

    >>> compared(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([True, True]), "cosine")
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    if similarity == "dot":
        return output
    if similarity == "cosine":
        lengths = np.linalg.norm(output, axis=-1, keepdims=True)
        scaled: Array = output / np.where(lengths > 0, lengths, 1)
        return scaled
    centred: Array = output - output[..., taking_part, :].sum(-2, keepdims=True) / max(1, taking_part.sum())
    return centred


def context_similarity(output: Array) -> Array:
    """C = Z Zᵀ with the diagonal set to 0: (..., S, d) -> (..., S, S), float32.

    >>> context_similarity(np.array([[1.0, 0.0], [2.0, 1.0]]))
    array([[0., 2.],
           [2., 0.]], dtype=float32)
    """
    output = np.asarray(output, dtype=np.float32)
    columns = np.ascontiguousarray(output.swapaxes(-1, -2))
    tokens, width = output.shape[-2:]
    similarity: Array = np.empty((*output.shape[:-1], tokens), np.float32)
    rows = max(1, IN_ONE_THREAD // max(1, tokens * width))
    for i in range(0, tokens, rows):
        np.matmul(output[..., i : i + rows, :], columns, out=similarity[..., i : i + rows, :])
    similarity = np.triu(similarity, 1)
    similarity += similarity.swapaxes(-1, -2).copy()
    return similarity


def pairs_among(taking_part: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The pairs i < j whose two tokens take part: (S,) -> (S, S)."""
    return np.triu(taking_part[:, None] & taking_part, 1)


def normalise(similarity: Array, pairs: NDArray[np.bool_]) -> Array:
    """N = C / m, where m is the largest element of C among the pairs; 0 for what is no pair, on both sides of the
    diagonal, and everywhere where m <= 0: such a window has no high pairs. (..., S, S) and (S, S) -> (..., S, S)."""
    peak = np.where(pairs, similarity, -np.inf).max((-2, -1), keepdims=True)
    positive = (peak > 0) & np.isfinite(peak)
    normalised: Array = np.where(positive & (pairs | pairs.T), similarity / np.where(positive, peak, 1), 0)
    return normalised.astype(similarity.dtype)


def attention_lines(attention: Array, threshold: float) -> NDArray[np.bool_]:
    """Columns of A whose sum, divided by the largest column sum, is above the threshold: (..., S, S) -> (..., S)."""
    received = attention.sum(-2, dtype=np.float64)
    lines: NDArray[np.bool_] = received / received.max(-1, keepdims=True) > threshold
    return lines


def block_of(lines: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The block of each token: the number of lines before it. (..., S) -> (..., S).

    >>> block_of(np.array([False, True, False, False, True, False]))
    array([0, 0, 1, 1, 1, 2])
    """
    block: NDArray[np.int64] = np.cumsum(lines, -1) - lines
    return block
