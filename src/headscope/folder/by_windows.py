"""The tables of a study made apart for groups of its windows: by a column of `windows.parquet`, or as the user says."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError
from headscope.files import write_atomically
from headscope.folder.manifest import Manifest
from headscope.folder.windows_file import FACTS, opened, shards_of
from headscope.measure.declaration import GROUPS
from headscope.measure.jackknife import Jackknife, intervals_table
from headscope.measure.row_layout import WIDTH, States, known_columns
from headscope.measure.tables import TABLES, Totals

if TYPE_CHECKING:
    import pandas as pd

MOST_VALUES = 200
"""Values of a column that tables are made for; they are held in memory at once."""


@dataclass(frozen=True)
class ByValue:
    """The tables of a study for each value of a column, which comes first in them. heads, layers: as in a study,
    without the columns that are made of whole spectra; intervals: of all of these, as in a study."""

    column: str
    heads: pd.DataFrame
    layers: pd.DataFrame
    intervals: pd.DataFrame

    @property
    def values(self) -> list[Any]:
        return list(self.layers[self.column].unique())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.column!r}: {', '.join(map(str, self.values))})"

    def _repr_html_(self) -> str:
        """In a notebook: the layers."""
        return str(self.layers.to_html(index=False))


def by_windows(folder: Path, manifest: Manifest, by: str | Sequence[Any]) -> ByValue:
    """by: the name of a column that says where windows are from or what the user keeps of their texts; or a value for
    each text, in their order. Windows without a value are left out, as pandas does."""
    import pandas as pd

    if not hasattr(by, "__len__"):
        raise NoValue(f"Tables by {by!r} can't be made; give the name of a column, or a value for each text.")
    named = by if isinstance(by, str) else str(getattr(by, "name", None) or "group")
    sums = _sums(folder, manifest, by)
    if not sums:
        raise NoValue(f"No window has a value of {named}; there is nothing to make tables of.")
    gives, layers = manifest.gives, manifest.layers
    known = known_columns(gives)
    tables: dict[str, list[pd.DataFrame]] = {"heads": [], "layers": [], "intervals": []}
    for value, rows in _in_order(sums):
        shaped = rows.reshape(GROUPS, len(layers), manifest.model.heads, WIDTH - 1)
        states = States(np.moveaxis(shaped, 0, 2))
        groups = {name: states[name] for name in states}
        totals = Totals(groups)
        made = {name: make(totals, layers, gives, known) for name, make in TABLES.items()}
        only = {name: [*known] for name in TABLES}
        made["intervals"] = intervals_table(Jackknife(groups, totals, gives), layers, gives, only)
        for name, table in made.items():
            table.insert(0, named, value)
            tables[name].append(table)
    joined = {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}
    return ByValue(named, **joined)


def write_by(folder: Path, manifest: Manifest) -> None:
    """A table for each column that the user keeps: for each of its values all columns of heads and layers, with their
    intervals. One that has very many values has none."""
    names: set[str] = set()
    for name in manifest.options.meta:
        try:
            table = by_windows(folder, manifest, name).intervals
        except (TooManyValues, NoValue):
            continue
        safe = re.sub(r"[^\w-]", "_", name)
        while safe in names:
            safe += "_"
        names.add(safe)
        write_atomically(folder / f"by_{safe}.csv", table.to_csv(index=False).encode())
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        write_atomically(folder / f"by_{safe}.parquet", buffer.getvalue())


class TooManyValues(HeadscopeError):
    """Of a column: tables for each would be nothing to read."""


class NoValue(HeadscopeError):
    """Of a column, in any window."""


def _sums(folder: Path, manifest: Manifest, by: str | Sequence[Any]) -> dict[Any, NDArray[np.float64]]:
    """Value -> (GROUPS, L * H, WIDTH - 1), what its windows add up to in each group of texts."""
    import pandas as pd

    file = opened(folder)
    each = len(manifest.layers) * manifest.model.heads
    meta = manifest.options.meta
    if isinstance(by, str):
        known = [*meta, *(name for name in FACTS if name != "window")]
        if by not in known:
            raise HeadscopeError(f"{folder} keeps no column {by!r} of its windows, only {', '.join(known)}.")
        labels: NDArray[Any] | None = None
    else:
        labels = np.asarray(by, dtype=object)
        texts = manifest.counts.texts
        if labels.ndim != 1 or len(labels) < texts:
            raise HeadscopeError(f"There are {len(labels)} values for {texts} texts; give one for each text, in order.")
    sums: dict[Any, NDArray[np.float64]] = {}
    for table, added in shards_of(file, ["text"] if labels is not None else [*{"text": 0, str(by): 0}]):
        text = table.column("text").to_numpy()[::each]
        values = labels[text] if labels is not None else table.column(str(by)).to_pandas().to_numpy(object)[::each]
        rows = added.reshape(len(text), each, WIDTH - 1)
        for value in pd.unique(pd.Series(values, dtype=object).dropna()):
            if value not in sums:
                sums[value] = np.zeros((GROUPS, each, WIDTH - 1))
            if len(sums) > MOST_VALUES:
                raise TooManyValues(
                    f"{by if isinstance(by, str) else 'The values'} has more than {MOST_VALUES} values; put them into "
                    "groups first, one value for each text."
                )
            chosen = np.array([one == value for one in values], dtype=bool)
            np.add.at(sums[value], text[chosen] % GROUPS, rows[chosen])
    return sums


def _in_order(sums: dict[Any, NDArray[np.float64]]) -> list[tuple[Any, NDArray[np.float64]]]:
    """By value; values that have no order as they came."""
    try:
        return sorted(sums.items(), key=lambda item: item[0])
    except TypeError:
        return list(sums.items())
