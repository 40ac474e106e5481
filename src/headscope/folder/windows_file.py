"""`windows.parquet`: a row per window, layer and head, written and read shard by shard.

First where the window is from, then the columns of `heads` of that window alone, then what it adds to the sums that
these are made of, so that any windows can be put together: see `by_windows`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.traits import TEXT, Traits
from headscope.corpus.window_facts import WindowFact, WindowFacts
from headscope.errors import HeadscopeError, shortened
from headscope.folder.manifest import Manifest
from headscope.measure.row_layout import WIDTH, Number, column_values, known_columns, numbers_by_name
from headscope.speaking import option

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile

WINDOWS_FILE = "windows.parquet"
FACTS = ("window", "text", "origin", "start", "end", "tokens")
FOCAL_TOKEN = "focal_token"
"""The token itself; none where the head has no high pair in the window."""
KEYS = (*FACTS, "layer", "head", FOCAL_TOKEN)


def write_windows(
    folder: Path,
    layers: list[int],
    gives: Traits,
    facts: WindowFacts,
    shards: Iterable[NDArray[np.float64]],
    token: Callable[[int], str],
) -> None:
    """shards: of each its rows, (windows, L, H, WIDTH), in the order of the facts. token: of an id."""
    every, kinds = iter(facts), {name: _arrow_type(kinds) for name, kinds in facts.kinds.items()}
    write_tables(folder, (_table(list(islice(every, len(rows))), kinds, rows, layers, gives, token) for rows in shards))


def check_meta(names: Iterable[str]) -> None:
    """A column of the user's may not be called like one that is there already."""
    taken = {*KEYS, *known_columns(TEXT), *numbers_by_name()}
    for name in names:
        if name in taken:
            raise HeadscopeError(
                f"{option('meta')} names {name}, but {WINDOWS_FILE} has a column of that name already; rename yours."
            )


def _arrow_type(kinds: set[str]) -> pyarrow.DataType:
    """Of values of these types: numbers where all are, otherwise strings."""
    import pyarrow

    if kinds == {"bool"}:
        return pyarrow.bool_()
    if kinds and kinds <= {"int"}:
        return pyarrow.int64()
    return pyarrow.float64() if kinds and kinds <= {"int", "float"} else pyarrow.string()


def _of_type(values: list[Any], kind: pyarrow.DataType) -> pyarrow.Array:
    """Values that the user keeps. Among strings a whole number reads the same whether it came as one or as a float."""
    import pyarrow

    if kind == pyarrow.float64():
        return pyarrow.array([None if one is None else float(one) for one in values], kind)
    if kind != pyarrow.string():
        return pyarrow.array(values, kind)
    return pyarrow.array([None if one is None else _in_words(one) for one in values], kind).dictionary_encode()


def _in_words(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def write_tables(folder: Path, tables: Iterable[pyarrow.Table]) -> None:
    """Each becomes a group of rows of the file; there is at least one."""
    import pyarrow.parquet

    target, part = folder / WINDOWS_FILE, folder / f"{WINDOWS_FILE}.part"
    tables = iter(tables)
    first = next(tables)
    with pyarrow.parquet.ParquetWriter(part, first.schema, compression="zstd") as writer:
        writer.write_table(first, row_group_size=max(1, len(first)))
        for table in tables:
            writer.write_table(table, row_group_size=len(table))
    os.replace(part, target)


def merge_windows(folder: Path, studies: list[tuple[Path, Manifest]]) -> None:
    """Those of several studies: of the parts of one in the order of its windows, of others one after the other, with
    texts and windows numbered on."""
    parts = studies[0][1].part is not None
    kinds = {name: _common_type([folder for folder, _ in studies], name) for name in studies[0][1].options.meta}
    tables = _interleaved(studies) if parts else _one_after_the_other(studies)
    write_tables(folder, (_as_types(table, kinds) for table in tables))


def _common_type(folders: list[Path], name: str) -> pyarrow.DataType:
    """Of a column that several studies keep: as `_arrow_type` chooses it for the values of all."""
    kinds: set[str] = set()
    for folder in folders:
        file = opened(folder)
        kind, place = file.schema_arrow.field(name).type, file.schema_arrow.get_field_index(name)
        groups = [file.metadata.row_group(group) for group in range(file.num_row_groups)]
        known = [group.column(place).statistics for group in groups]
        if not all(
            one is not None and one.null_count == group.num_rows for one, group in zip(known, groups, strict=True)
        ):
            kinds.add({"bool": "bool", "int64": "int", "double": "float"}.get(str(kind), "str"))
    return _arrow_type(kinds)


def _as_types(table: pyarrow.Table, kinds: Mapping[str, pyarrow.DataType]) -> pyarrow.Table:
    """The table with columns of these types; each different value is made anew once."""
    import pyarrow

    for name, kind in kinds.items():
        column = table.column(name).combine_chunks()
        wanted = pyarrow.dictionary(pyarrow.int32(), kind) if kind == pyarrow.string() else kind
        if column.type != wanted:
            encoded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
            anew = _of_type(encoded.dictionary.to_pylist(), kind)
            table = table.set_column(table.schema.get_field_index(name), name, anew.take(encoded.indices))
    return table


def _interleaved(studies: list[tuple[Path, Manifest]]) -> Iterator[pyarrow.Table]:
    """Each part holds every so-many-th shard, and each shard is a group of rows."""
    files = [opened(folder) for folder, _ in studies]
    for group in range(max(file.num_row_groups for file in files)):
        yield from (file.read_row_group(group) for file in files if group < file.num_row_groups)


def _one_after_the_other(studies: list[tuple[Path, Manifest]]) -> Iterator[pyarrow.Table]:
    import pyarrow.compute

    texts = windows = 0
    for folder, manifest in studies:
        file = opened(folder)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            for name, before in (("text", texts), ("window", windows)):
                place = table.schema.get_field_index(name)
                table = table.set_column(place, name, pyarrow.compute.add(table.column(name), before))
            yield table
        texts, windows = texts + manifest.counts.texts, windows + manifest.counts.windows


def opened(folder: Path) -> ParquetFile:
    import pyarrow
    import pyarrow.parquet

    path = folder / WINDOWS_FILE
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (OSError, ValueError, pyarrow.ArrowException) as problem:
        reason = shortened(" ".join(str(problem).split()))
        raise HeadscopeError(f"{path} can't be read ({reason}); the study folder is damaged.") from None


def shown_columns(file: ParquetFile, gives: Traits) -> list[str]:
    """Of the file, those that are for reading: not what only adds up."""
    hidden = set(_sums(gives))
    return [name for name in file.schema_arrow.names if name not in hidden]


def shards_of(file: ParquetFile, beside: list[str]) -> Iterator[tuple[pyarrow.Table, NDArray[np.float64]]]:
    """Of each group of rows: the columns named, and what each row adds to sums, (rows, WIDTH - 1)."""
    held = [name for name in numbers_by_name() if name in file.schema_arrow.names]
    for group in range(file.num_row_groups):
        table = file.read_row_group(group, columns=list({*beside, *held}))
        added = np.zeros((len(table), WIDTH - 1))
        for name in held:
            added[:, numbers_by_name()[name].place] = table.column(name).to_numpy()
        yield table.select(beside), added


def _sums(gives: Traits) -> dict[str, Number]:
    """The numbers that add up, but for those that are there for reading: pairs and tokens."""
    shown = {*known_columns(gives), *KEYS}
    return {name: number for name, number in numbers_by_name().items() if name not in shown}


def _table(
    facts: list[WindowFact],
    kinds: Mapping[str, pyarrow.DataType],
    rows: NDArray[np.float64],
    layers: list[int],
    gives: Traits,
    token: Callable[[int], str],
) -> pyarrow.Table:
    import pyarrow

    windows, _, heads, _ = rows.shape
    each = len(layers) * heads
    columns: dict[str, Any] = {
        name: np.repeat([getattr(fact, name) for fact in facts], each) for name in FACTS if name != "origin"
    }
    of_windows = pyarrow.array(np.repeat(np.arange(windows), each))
    origins = pyarrow.array([fact.origin for fact in facts], pyarrow.string()).dictionary_encode()
    columns["origin"] = origins.take(of_windows)
    columns["layer"] = np.tile(np.repeat(layers, heads), windows)
    columns["head"] = np.tile(np.arange(heads), windows * len(layers))
    ids, places = np.unique(rows[..., -1].astype(np.int64), return_inverse=True)
    tokens = pyarrow.array([token(int(one)) if one >= 0 else None for one in ids], pyarrow.string())
    columns[FOCAL_TOKEN] = tokens.take(pyarrow.array(places.reshape(-1))).dictionary_encode()
    columns = {name: columns[name] for name in KEYS}
    for place, (name, kind) in enumerate(kinds.items()):
        columns[name] = _of_type([fact.meta[place] for fact in facts], kind).take(of_windows)
    for name, values in column_values(rows, gives).items():
        columns[name] = values.reshape(-1).astype(np.float32 if values.dtype.kind == "f" else np.int64)
    for name, number in _sums(gives).items():
        columns[name] = rows[..., number.place].reshape(-1).astype(number.dtype)
    return pyarrow.table(columns)
