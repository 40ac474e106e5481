"""Types and shapes of all arrays that a study keeps."""

from __future__ import annotations

from headscope.measure.measures import STATES
from headscope.measure.measures.base import sizes
from headscope.measure.triangles import SYMMETRIC, pairs_of

Specs = dict[str, tuple[str, tuple[int, ...]]]
"""Name -> dtype and shape."""


def state_specs(layers: int, heads: int, length: int) -> Specs:
    """Of the states: what adds up."""
    known = sizes(layers, heads, length)
    return {name: (state.dtype, tuple(known[letter] for letter in state.shape)) for name, state in STATES.items()}


def shard_specs(layers: int, heads: int, length: int) -> Specs:
    """Of the states as shards hold them: narrower (`State.shard_dtype`), and symmetric ones packed (`triangles`)."""
    packed = (layers, heads, pairs_of(length))
    return {
        name: (STATES[name].shard_dtype, packed if name in SYMMETRIC else shape)
        for name, (_, shape) in state_specs(layers, heads, length).items()
    }


def array_specs(layers: int, heads: int, length: int) -> Specs:
    """Of all arrays in a study folder: the states, and what follows from them (`tables.derived_arrays`)."""
    return state_specs(layers, heads, length) | {"distance_histogram": ("int64", (layers, heads, length))}
