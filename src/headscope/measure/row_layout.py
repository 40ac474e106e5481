"""What a row of one window, layer and head holds: everything that the window adds to the sums of that head.

Rows add up: over any windows they are the states from which the columns of `heads` and `layers` are made. Spectra are
too large to keep for every window, so columns that are made of them are not known window by window.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.traits import Traits
from headscope.corpus.windows import KINDS
from headscope.measure.catalogue import STATES, columns
from headscope.measure.declaration import DIAGONALS, Column, State, sizes
from headscope.measure.jackknife import NotByGroup

FOCAL = "focal"
"""After the states: the id of the focal token, -1 where there is none."""
IN_ROWS: dict[str, State] = {name: state for name, state in STATES.items() if state.of_windows}
_NAMES = {"D": DIAGONALS, "K": tuple(KINDS)}


def _each(state: State) -> tuple[int, ...]:
    """The shape of a state of one window and head: (), or the kinds of tokens, or the diagonals."""
    known = sizes(1, 1, 1)
    return tuple(known[letter] for letter in state.shape.removeprefix("LHG"))


def _blocks() -> Iterator[tuple[str, slice]]:
    begin = 0
    for name, state in IN_ROWS.items():
        width = prod(_each(state))
        yield name, slice(begin, begin + width)
        begin += width


BLOCKS: dict[str, slice] = dict(_blocks())
"""Where in a row each state is."""
WIDTH = max(block.stop for block in BLOCKS.values()) + 1
"""Numbers in a row: the states, and the focal token."""


class Number(NamedTuple):
    """One of those in a row: its place, and the type of its state."""

    place: int
    dtype: str


def numbers_by_name() -> dict[str, Number]:
    """By the names of the states, with the kind of token or the diagonal where there are several.

    >>> names = numbers_by_name()
    >>> "pairs" in names, "line_kind_count_word" in names, "diagonal_sum_previous" in names
    (True, True, True)
    """
    numbers: dict[str, Number] = {}
    for name, block in BLOCKS.items():
        kinds = _NAMES.get(IN_ROWS[name].shape.removeprefix("LHG"))
        for offset, place in enumerate(range(block.start, block.stop)):
            numbers[f"{name}_{kinds[offset]}" if kinds else name] = Number(place, IN_ROWS[name].dtype)
    return numbers


class States(Mapping[str, NDArray[Any]]):
    """States as columns are made from them, of rows (L, H, ..., WIDTH); the focal token may be missing."""

    def __init__(self, rows: NDArray[np.float64]) -> None:
        self._rows = rows

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in BLOCKS:
            raise NotByGroup(name)
        state = IN_ROWS[name]
        block = self._rows[..., BLOCKS[name]].reshape(*self._rows.shape[:-1], *_each(state))
        return block.astype(state.dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(BLOCKS)

    def __len__(self) -> int:
        return len(BLOCKS)


def known_columns(gives: Traits) -> dict[str, Column]:
    """The columns of `heads` that are known window by window."""
    nothing = States(np.zeros((1, 1, WIDTH)))
    known: dict[str, Column] = {}
    for name, column in columns(gives).items():
        if column.value is not None and column.heads:
            try:
                column.value(nothing)
            except NotByGroup:
                continue
            known[name] = column
    return known


def column_values(rows: NDArray[np.float64], gives: Traits) -> dict[str, NDArray[Any]]:
    """rows: (windows, L, H, WIDTH). The columns of `heads`, each (windows, L, H), of every window by itself."""
    windows, layers, heads, _ = rows.shape
    states = States(rows.reshape(windows * layers, heads, WIDTH))
    found: dict[str, NDArray[Any]] = {}
    for name, column in known_columns(gives).items():
        assert column.value is not None
        value = column.value(states)
        found[name] = value.of_heads().reshape(windows, layers, heads)  # type: ignore[union-attr]
    return found
