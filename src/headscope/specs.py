"""Types and shapes of all arrays that a study keeps."""

from __future__ import annotations

from headscope.measures import MEASURES
from headscope.measures.base import sizes
from headscope.triangles import SYMMETRIC, pairs_of

Specs = dict[str, tuple[str, tuple[int, ...]]]
"""Name -> dtype and shape."""


def state_specs(layers: int, heads: int, length: int) -> Specs:
    """Of the states: what adds up."""
    known = sizes(layers, heads, length)
    return {
        name: (state.dtype, tuple(known[letter] for letter in state.shape))
        for measure in MEASURES
        for name, state in measure.STATES.items()
    }


def packed_specs(layers: int, heads: int, length: int) -> Specs:
    """Of the states as shards hold them, see `triangles`."""
    specs = state_specs(layers, heads, length)
    return specs | {name: (specs[name][0], (layers, heads, pairs_of(length))) for name in SYMMETRIC}


def array_specs(layers: int, heads: int, length: int) -> Specs:
    """Of all arrays in a study folder: the states, and what follows from them (`tables.derived_arrays`)."""
    return state_specs(layers, heads, length) | {"distance_histogram": ("int64", (layers, heads, length))}
