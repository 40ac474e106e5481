"""What a study folder holds, read at another threshold: high pairs made anew, the rest as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from headscope.corpus.traits import Traits
from headscope.folder.array_file import AbsentError, ArrayFile
from headscope.measure.catalogue import STATES, columns
from headscope.measure.declaration import Column
from headscope.measure.high_pairs import HighPairs

if TYPE_CHECKING:
    import pandas as pd

DISTANCES = "distance_histogram"
"""The one array of high pairs that is known at every threshold."""


class ArraysAt(ArrayFile):
    """The arrays of a study at another threshold. only_known: says that an array is known at the study's own alone."""

    def __init__(self, arrays: ArrayFile, high: HighPairs, only_known: str) -> None:
        self._arrays = arrays
        self._high = high
        self._only_known = only_known
        self._names = [name for name in arrays if name == DISTANCES or not _of_high_pairs(name)]
        self._kept: dict[str, NDArray[Any]] = {}

    def _read(self, name: str) -> NDArray[Any]:
        if name == DISTANCES:
            return self._high.distances
        if _of_high_pairs(name):
            raise AbsentError(f"The array {name} {self._only_known}")
        return self._arrays[name]


def _of_high_pairs(name: str) -> bool:
    return name in STATES and STATES[name].of_high_pairs


def kept_columns(names: list[str], gives: Traits) -> list[str]:
    """Of the columns of a table, those that are known at every threshold."""
    known = columns(gives)
    return [name for name in names if name in known and (known[name].pooled or not known[name].of_high_pairs)]


def table_at(name: str, table: pd.DataFrame, high: HighPairs, gives: Traits) -> pd.DataFrame:
    """The table `heads` or `layers` at another threshold: what is made of high pairs anew, pooled over all of them."""
    import pandas as pd

    known = columns(gives)
    made = {}
    for kept in kept_columns(table.columns.tolist(), gives):
        anew = pooled_column(name, known[kept], high)
        made[kept] = table[kept].to_numpy() if anew is None else anew
    return pd.DataFrame(made, index=table.index)


def pooled_column(table: str, column: Column, high: HighPairs) -> NDArray[Any] | None:
    """A column of `heads` or `layers` that is made of high pairs, pooled over all of them. None where it is not."""
    if column.pooled is None:
        return None
    value = column.pooled(high)
    return (value.of_layers() if table == "layers" else value.of_heads()).reshape(-1)
