"""States -> the tables `heads` and `layers`, and the arrays of a study."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.traits import TEXT, Traits
from headscope.measure.catalogue import DERIVED, STATES, columns
from headscope.measure.declaration import Arrays, Column, LayerRatio
from headscope.measure.triangles import unpack

if TYPE_CHECKING:
    import pandas as pd


class Totals(Mapping[str, NDArray[Any]]):
    """Arrays as columns are made from them: states over all groups of texts, symmetric ones whole, and what an older
    version did not keep made from what it did. arrays: the states as they add up, or the arrays of a study folder."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self._made: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> NDArray[Any]:
        state = STATES.get(name)
        if state is None or (name not in self._arrays and state.before is None):
            return self._arrays[name]
        if name not in self._arrays:
            assert state.before is not None
            return state.before(self)
        array = self._arrays[name]
        if state.symmetric and array.ndim == 3:
            return unpack(array)
        return state.total(array) if array.ndim == len(state.shape) else array

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def derived_arrays(arrays: Arrays, gives: Traits = TEXT) -> dict[str, NDArray[Any]]:
    """Arrays of a study that are no states, as far as what they are made of is there."""
    return {
        name: array.of(arrays)
        for name, array in DERIVED.items()
        if array.needs <= gives and all(state in arrays for state in array.made_of)
    }


def heads_table(
    arrays: Arrays, layers: list[int], gives: Traits = TEXT, only: Container[str] | None = None
) -> pd.DataFrame:
    """A row per layer and head; with `only`, of the columns of the measures those."""
    import pandas as pd

    heads = arrays["windows"].shape[1]
    values = {column.name: column.value(arrays) for column in _measured(gives, only) if column.value is not None}
    return pd.DataFrame(
        {
            "layer": np.repeat(layers, heads),
            "head": np.tile(np.arange(heads), len(layers)),
            "windows": arrays["windows"].reshape(-1),
            **{
                name: value.of_heads().reshape(-1)
                for name, value in values.items()
                if not isinstance(value, LayerRatio)
            },
        }
    )


def layers_table(
    arrays: Arrays, layers: list[int], gives: Traits = TEXT, only: Container[str] | None = None
) -> pd.DataFrame:
    """A row per layer: shares and means over all windows and heads, `pairs` their sum; with `only` as above."""
    import pandas as pd

    values = {column.name: column.value(arrays) for column in _measured(gives, only) if column.value is not None}
    return pd.DataFrame(
        {
            "layer": layers,
            "windows": arrays["windows"][:, 0],
            **{name: value.of_layers() for name, value in values.items()},
        }
    )


def _measured(gives: Traits, only: Container[str] | None) -> list[Column]:
    return [column for column in columns(gives).values() if only is None or column.name in only]


TABLES = {"heads": heads_table, "layers": layers_table}
"""By name; each is made from the states, the numbers of the layers, and what the tokens give."""
