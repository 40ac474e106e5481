"""Symmetric matrices without their diagonal, kept as the half i < j: as many numbers as there are pairs.

Shards, checkpoints and sums hold symmetric states so; a study folder holds them whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.files import zeros


def pack(matrices: NDArray[Any]) -> NDArray[Any]:
    """(L, H, S, S) -> (L, H, S (S - 1) / 2), row by row; what lies on and below the diagonal is not looked at.

    >>> pack(np.arange(9).reshape(1, 1, 3, 3))
    array([[[1, 2, 5]]])
    """
    layers, heads, length, _ = matrices.shape
    upper = np.triu_indices(length, 1)
    packed = zeros((layers, heads, pairs_of(length)), matrices.dtype.name)

    def take(values: NDArray[Any], layer: NDArray[Any]) -> None:
        values[:] = layer[:, *upper]

    _for_each_layer(take, packed, matrices)
    return packed


def unpack(packed: NDArray[Any]) -> NDArray[Any]:
    """(L, H, S (S - 1) / 2) -> (L, H, S, S), both halves, with a diagonal of 0."""
    layers, heads, pairs = packed.shape
    length = (1 + int(np.sqrt(1 + 8 * pairs))) // 2
    upper = np.triu_indices(length, 1)
    matrices = zeros((layers, heads, length, length), packed.dtype.name)

    def put(values: NDArray[Any], layer: NDArray[Any]) -> None:
        layer[:, *upper] = values
        layer[:, *upper[::-1]] = values

    _for_each_layer(put, packed, matrices)
    return matrices


def _for_each_layer(do: Callable[..., None], *arrays: NDArray[Any]) -> None:
    """In several threads: most of the time goes into memory that was never touched before."""
    with ThreadPoolExecutor() as threads:
        deque(threads.map(do, *arrays), maxlen=0)


def pairs_of(length: int) -> int:
    return length * (length - 1) // 2
