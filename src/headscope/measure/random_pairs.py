"""Pairs drawn at random from a window, for the chance of a focal token.

The pairs of a window are put into a random order, one for each head; the first p of them are p pairs drawn without
replacement. Going through an order once tells the focal token of its first p pairs for every p, so all layers are
served by it: whatever is drawn for heads of one layer is independent.

The order depends on the seed, the tokens of the window and the head alone, not on how a study runs, nor on the order of
its texts.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def random_focal(ids: Array, part: Array, counts: Array, seed: int) -> tuple[Array, Array]:
    """The focal token of as many random pairs as each head has.

    ids, part: (B, S), token ids and which tokens take part in pairs. counts: (L, B, H), pairs of each head.
    Returns the focal tokens, -1 for none, and the pairs that include them, both (L, B, H).
    """
    focal, included = np.empty_like(counts), np.empty_like(counts)
    draw = compiled_draw()
    for b in range(len(ids)):
        chosen = ids[b][part[b]]
        values, value = np.unique(chosen, return_inverse=True)
        wanted = np.ascontiguousarray(counts[:, b])
        found, most = draw(value.astype(np.int64), len(values), wanted, start(seed, chosen))
        focal[:, b] = np.append(values, -1)[found]  # -1, the last, for none
        included[:, b] = most
    return focal, included


def start(seed: int, ids: Array) -> np.uint64:
    """Where the random numbers of a window begin."""
    digest = hashlib.blake2b(f"{seed} ".encode() + ids.astype("<i8").tobytes(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def focal_of_random_pairs(value: Array, values: int, counts: Array, begin: np.uint64) -> tuple[Array, Array]:
    """value: (tokens,), each token's place in the sorted list of the window's different ids, of which there are
    `values`. counts: (L, H), pairs to draw. Returns places of the focal tokens, -1 for none, and the pairs that include
    them, both (L, H).

    Two numbers go as one, `first << 16 | second`, for no window has 2^16 tokens: the tokens of a pair; and how many
    pairs include a token and, counted from the end, which it is. The largest of these is the focal token: of two as
    common, the lower.
    """
    layers, heads = counts.shape
    tokens = len(value)
    pairs = tokens * (tokens - 1) // 2
    every = np.empty(pairs, np.uint32)
    place = 0
    for i in range(tokens):
        for j in range(i + 1, tokens):
            every[place] = value[i] << 16 | value[j]
            place += 1
    chosen = np.empty(pairs, np.int64)
    most_after = np.empty(pairs + 1, np.int64)
    degree = np.empty(values, np.int64)
    focal = np.full((layers, heads), -1, np.int64)
    included = np.zeros((layers, heads), np.int64)
    for h in range(heads):
        wanted = 0
        for layer in range(layers):
            wanted = max(wanted, counts[layer, h])
        state = np.uint64(begin + np.uint64(h) * np.uint64(0xD1B54A32D192ED03))
        for drawn in range(wanted):
            mixed = np.uint64(state + np.uint64(drawn + 1) * np.uint64(0x9E3779B97F4A7C15))
            mixed = np.uint64(mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = np.uint64(mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed = mixed ^ (mixed >> np.uint64(31))
            chosen[drawn] = drawn + np.int64(((mixed >> np.uint64(32)) * np.uint64(pairs - drawn)) >> np.uint64(32))
        order = every.copy()
        degree[:] = 0
        most = np.int64(0)
        for drawn in range(wanted):
            pair = np.uint64(order[chosen[drawn]])
            order[chosen[drawn]] = order[drawn]
            a = np.int64(pair >> np.uint64(16))
            b = np.int64(pair & np.uint64(0xFFFF))
            degree[a] += 1
            most = max(most, degree[a] << 16 | (0xFFFF - a))
            degree[b] += np.int64(a != b)
            most = max(most, degree[b] << 16 | (0xFFFF - b))
            most_after[drawn + 1] = most
        for layer in range(layers):
            count = counts[layer, h]
            if count > 0:
                focal[layer, h] = 0xFFFF - (most_after[count] & 0xFFFF)
                included[layer, h] = most_after[count] >> 16
    return focal, included


Draw = Callable[[Array, int, Array, np.uint64], tuple[Array, Array]]


@cache
def compiled_draw() -> Draw:
    """`focal_of_random_pairs`, compiled where that can be had; otherwise it takes longer, and draws the same."""
    try:
        from headscope.compiled import library

        compiled = library().headscope_random_pairs
    except ImportError:
        return _without_warnings(focal_of_random_pairs)
    number, array = ctypes.c_int64, np.ctypeslib.ndpointer(np.int64, flags="C_CONTIGUOUS")
    compiled.argtypes = [array, number, number, array, number, number, ctypes.c_uint64, array, array]

    def draw(value: Array, values: int, counts: Array, begin: np.uint64) -> tuple[Array, Array]:
        focal, included = np.empty_like(counts), np.empty_like(counts)
        if not compiled(value, len(value), values, counts, *counts.shape, int(begin), focal, included):
            raise MemoryError
        return focal, included

    return draw


def _without_warnings(draw: Draw) -> Draw:
    """numpy warns where whole numbers wrap around, as random ones do."""

    def quietly(value: Array, values: int, counts: Array, begin: np.uint64) -> tuple[Array, Array]:
        with np.errstate(over="ignore"):
            return draw(value, values, counts, begin)

    return quietly
