"""A finished study, written: tables, arrays, and the manifest last, so that a folder that has one is whole."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from headscope.files import Arrays, Pieces, checksum, file_checksum, safetensors_pieces, write_atomically
from headscope.folder.array_file import narrowed
from headscope.folder.manifest import ARRAYS, GROUPS_FILE, MANIFEST, Manifest, manifest_bytes
from headscope.folder.study_folder import EXAMPLE, REST, with_grid
from headscope.folder.windows_file import WINDOWS_FILE
from headscope.measure.catalogue import DERIVED, GROUPED, MAPS, STATES, array_specs, kept_states, written_maps
from headscope.measure.jackknife import INTERVALS, Jackknife, intervals_table
from headscope.measure.tables import TABLES, Totals, derived_arrays
from headscope.run.sums import ExactSum


def write(folder: Path, manifest: Manifest, total: ExactSum, only: Mapping[str, Collection[str]] | None = None) -> None:
    """Write the folder of a study whose states are added up in `total`; its example and the numbers of every window, if
    any, are there already.

    only: table -> the columns it is to have, where studies of an older version are merged, which lack some states.
    Maps that the options do not ask for are left out, but not of a part, which is to be added to others.
    """
    gives = manifest.gives
    states = {name: total.whole[name] for name in kept_states(gives) if name in total.whole}
    totals = Totals(states)
    groups = {name: states[name] for name in states if _by_group(name, states)}
    shape = len(manifest.layers), manifest.model.heads, manifest.options.length
    arrays = {
        name: totals[name] if name in groups else states[name] for name in states if name in array_specs(*shape, gives)
    }
    arrays |= {name: total.whole[name] for name in total.whole.keys() & DERIVED.keys()}
    arrays |= derived_arrays(totals, gives) if only is None else {}
    left_out = set() if manifest.part is not None else MAPS - written_maps(manifest.options.maps, gives)
    arrays = {name: array for name, array in arrays.items() if name not in left_out}
    files: dict[str, bytes | Pieces] = {ARRAYS: [*safetensors_pieces(_written(arrays))]}
    if manifest.part is not None:
        files[REST] = [*safetensors_pieces({name: total.rest[name] for name in states if name in total.rest})]
    made_of = with_grid(totals, manifest.source.grid)
    tables = {name: make(made_of, manifest.layers, gives, only and only[name]) for name, make in TABLES.items()}
    if groups:
        files[GROUPS_FILE] = [*safetensors_pieces(_written(groups))]
        tables[INTERVALS] = intervals_table(Jackknife(groups, made_of, gives), manifest.layers, gives, only)
    for name, table in tables.items():
        files[f"{name}.csv"] = table.to_csv(index=False).encode()
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False)
        files[f"{name}.parquet"] = buffer.getvalue()
    with ThreadPoolExecutor(1, "checksums") as beside:
        hashed = {name: beside.submit(checksum, content) for name, content in files.items()}
        for name, content in files.items():
            write_atomically(folder / name, content)
    sums = {name: digest.result() for name, digest in hashed.items()}
    if manifest.example is not None:
        sums |= {name: file_checksum(folder / name) for name in EXAMPLE}
    if manifest.keeps_windows:
        sums[WINDOWS_FILE] = file_checksum(folder / WINDOWS_FILE)
    manifest = replace(
        manifest,
        tables={name: list(table.columns) for name, table in tables.items()},
        arrays=sorted(arrays),
        groups=sorted(groups) or None,
        files=dict(sorted(sums.items())),
    )
    write_atomically(folder / MANIFEST, manifest_bytes(manifest))


def _written(arrays: Arrays) -> Arrays:
    return {name: narrowed(array) for name, array in arrays.items()}


def _by_group(name: str, states: Arrays) -> bool:
    """Whether a state is kept for each group of texts: a version before did not."""
    return name in GROUPED and states[name].ndim == len(STATES[name].shape)
