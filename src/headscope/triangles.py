"""Symmetric matrices without their diagonal, kept as the half i < j: as many numbers as there are pairs.

Shards, checkpoints and sums hold symmetric states so; a study folder holds them whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.measures import STATES
from headscope.storage import zeros

SYMMETRIC = {name for name, state in STATES.items() if state.symmetric}


def pack(matrices: NDArray[Any]) -> NDArray[Any]:
    """(L, H, S, S) -> (L, H, S (S - 1) / 2), row by row; what lies on and below the diagonal is not looked at.

    >>> pack(np.arange(9).reshape(1, 1, 3, 3))
    array([[[1, 2, 5]]])
    """
    layers, heads, length, _ = matrices.shape
    upper = np.triu_indices(length, 1)
    packed = zeros((layers, heads, pairs_of(length)), matrices.dtype.name)
    for layer, matrix in zip(packed, matrices, strict=True):
        layer[:] = matrix[:, *upper]
    return packed


def unpack(packed: NDArray[Any]) -> NDArray[Any]:
    """(L, H, S (S - 1) / 2) -> (L, H, S, S), both halves, with a diagonal of 0."""
    layers, heads, pairs = packed.shape
    length = (1 + int(np.sqrt(1 + 8 * pairs))) // 2
    upper = np.triu_indices(length, 1)
    matrices = zeros((layers, heads, length, length), packed.dtype.name)
    for layer, values in zip(matrices, packed, strict=True):
        layer[:, *upper] = values
        layer[:, *upper[::-1]] = values
    return matrices


def pairs_of(length: int) -> int:
    return length * (length - 1) // 2
