"""All states and all columns there are, as the measures declare them."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from headscope.corpus.traits import ORDER, TEXT, Traits
from headscope.measure.declaration import Column, Derived, Specs, State
from headscope.measure.measures import MEASURES
from headscope.measure.triangles import pairs_of
from headscope.options import Maps

STATES: dict[str, State] = {name: state for measure in MEASURES for name, state in measure.states.items()}
DERIVED: dict[str, Derived] = {name: array for measure in MEASURES for name, array in measure.derived.items()}
SYMMETRIC: frozenset[str] = frozenset(name for name, state in STATES.items() if state.symmetric)
GROUPED: frozenset[str] = frozenset(name for name, state in STATES.items() if state.grouped)
MAPS: frozenset[str] = frozenset(name for name, state in STATES.items() if state.shape == "LHSS")
"""Positions against positions, of every head."""

KEYS: tuple[Column, ...] = (
    Column("layer", "layer", "number", "run", "Number of the layer; the first is 0."),
    Column("head", "head", "number", "run", "Number of the head within its layer; the first is 0."),
    Column("windows", "windows", "count", "run", "Windows that were measured."),
)
"""What a row of a table is about; the columns of the measures follow."""


def columns(gives: Traits = TEXT) -> dict[str, Column]:
    """The columns that tokens which give these things have, by name, in their order in the tables.

    >>> from headscope.corpus.traits import IMAGE
    >>> "same_sentence_probability" in columns(), "same_sentence_probability" in columns(IMAGE)
    (True, False)
    """
    every = [*KEYS, *(column for measure in MEASURES for column in measure.columns if column.needs <= gives)]
    of_heads = [column for column in every if column.heads]
    return {column.name: column for column in (*of_heads, *(column for column in every if not column.heads))}


def written_maps(maps: Maps, gives: Traits = TEXT) -> frozenset[str]:
    """Of the maps of every head, which are most of a folder, those that `maps` asks for. Distances of patches are made
    of the location map, so a study of images has it always.

    >>> sorted(written_maps("location"))
    ['high_count']
    """
    if maps == "all":
        return MAPS
    return frozenset({"high_count"}) if maps == "location" or not gives >= ORDER else frozenset()


MOST_MAPS = 200_000_000
"""Bytes of maps that a study keeps unless more are asked for."""


def map_bytes(layers: int, heads: int, length: int) -> int:
    """What all maps of every head take on disk.

    >>> map_bytes(12, 12, 128) // 10**6
    56
    """
    specs = state_specs(layers, heads, length)
    return sum(np.dtype(specs[name][0]).itemsize * prod(specs[name][1]) for name in MAPS)


def kept_states(gives: Traits = TEXT) -> dict[str, State]:
    """The states that say something of such tokens."""
    return {name: state for name, state in STATES.items() if state.needs <= gives}


def state_specs(layers: int, heads: int, length: int, gives: Traits = TEXT) -> Specs:
    """Types and shapes of the states as they add up: symmetric ones packed (`triangles`)."""
    return {name: (state.dtype, _packed(state, layers, heads, length)) for name, state in kept_states(gives).items()}


def shard_specs(layers: int, heads: int, length: int) -> Specs:
    """Of all states as shards hold them: narrower (`State.shard_dtype`)."""
    return {name: (state.shard_dtype, _packed(state, layers, heads, length)) for name, state in STATES.items()}


def _packed(state: State, layers: int, heads: int, length: int) -> tuple[int, ...]:
    return (layers, heads, pairs_of(length)) if state.symmetric else state.size(layers, heads, length)


def array_specs(layers: int, heads: int, length: int, gives: Traits = TEXT) -> Specs:
    """Of all arrays of a study: the states, over all groups of texts, and what is derived from them."""
    totals: Specs = {
        name: (state.dtype, replace(state, shape=state.shape_of_total).size(layers, heads, length))
        for name, state in kept_states(gives).items()
        if not (state.grouped and state.dtype == "int32")
    }
    derived = {name: array for name, array in DERIVED.items() if array.needs <= gives}
    return totals | {name: (array.dtype, array.size(layers, heads, length)) for name, array in derived.items()}
