"""Is a study folder what it was when it was finished, and does everything in it follow from its arrays?"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from headscope.errors import HeadscopeError
from headscope.files import file_checksum
from headscope.folder.study_folder import ARRAYS, EXAMPLE, REST, Study
from headscope.measure.shapes import array_specs
from headscope.measure.tables import derived_arrays, heads_table, layers_table
from headscope.measure.triangles import SYMMETRIC

TABLES = {"heads": heads_table, "layers": layers_table}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; `problem` is None where it is right."""

    what: str
    problem: str | None


def verify(folder: str | os.PathLike[str]) -> list[Check]:
    """Check a study folder; a folder that holds no study raises `HeadscopeError`.

    >>> import headscope
    >>> [check for check in headscope.verify("wiki") if check.problem]  # doctest: +SKIP
    []
    """
    study = Study(folder)
    looks: dict[str, Callable[[Study], Iterator[str]]] = {
        "files and their checksums": _files,
        "shapes and types of the arrays": _shapes,
        "sums and counts": _values,
        "symmetric maps": _symmetry,
        "totals of the histograms": _totals,
        "heads follows from the arrays": lambda study: _table(study, "heads"),
        "layers follows from the arrays": lambda study: _table(study, "layers"),
    }
    if study.manifest["example"] is not None:
        looks["the example text"] = _example
    return [Check(what, _first(look, study)) for what, look in looks.items()]


def _first(look: Callable[[Study], Iterator[str]], study: Study) -> str | None:
    try:
        return next(look(study), None)
    except HeadscopeError as problem:
        return str(problem)


def _files(study: Study) -> Iterator[str]:
    manifest = study.manifest
    expected = {ARRAYS, *(f"{name}.{kind}" for name in TABLES for kind in ("csv", "parquet"))}
    expected |= {REST} if manifest["part"] is not None else set()
    expected |= set(EXAMPLE) if manifest["example"] is not None else set()
    if set(manifest["files"]) != expected:
        odd = sorted(set(manifest["files"]) ^ expected)
        yield f"study.json lists other files than a study has ({', '.join(map(repr, odd[:3]))})"
    for name in sorted(expected):
        path = study.folder / name
        if not path.is_file():
            yield f"{name} is missing"
        elif file_checksum(path) != manifest["files"].get(name):
            yield f"{name} is not what it was when the study was finished"


def _shapes(study: Study) -> Iterator[str]:
    for name in array_specs(*study.size):
        if name not in study.arrays:
            yield f"the array {name} is missing"


def _values(study: Study) -> Iterator[str]:
    arrays = study.arrays
    for name in array_specs(*study.size):
        array = arrays[name]
        if array.dtype.kind == "i" and array.min() < 0:
            yield f"{name} counts below zero"
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            yield f"{name} holds NaN or infinity"
    if (arrays["windows"] != study.windows).any():
        yield f"the arrays were summed over other than the {study.windows} windows that study.json names"
    if (arrays["high_count"] > study.windows).any():
        yield "a place in high_count is a high pair more often than there are windows"
    paid, received = arrays["attention_sum"].sum((2, 3)), arrays["attention_to_kind_sum"].sum(2)
    if not np.allclose(paid, received, rtol=1e-6):
        yield "attention_to_kind_sum holds other attention than attention_sum"
    # Half precision makes rows of attention that add up to a little more than 1.
    if (paid > 1.01 * arrays["tokens"]).any():
        yield "attention_sum holds more than 1 for each token"


def _symmetry(study: Study) -> Iterator[str]:
    for name in SYMMETRIC:
        array = study.arrays[name]
        if not np.array_equal(array, array.swapaxes(-1, -2)):
            yield f"{name} is not symmetric"
        if np.diagonal(array, axis1=-2, axis2=-1).any():
            yield f"{name} is not 0 on its diagonal"


def _totals(study: Study) -> Iterator[str]:
    arrays = study.arrays
    windows = arrays["windows"]
    for name, array in derived_arrays(arrays).items():
        if not np.array_equal(arrays[name], array):
            yield f"{name} does not follow from high_count"
    for name in arrays:
        share = name.removesuffix("_histogram")
        counted = f"{share}_windows"
        if share != name and counted in arrays:
            if not np.array_equal(arrays[name].sum(-1), arrays[counted]):
                yield f"{name} does not add up to {counted}"
            if (arrays[counted] > windows).any():
                yield f"{counted} counts more windows than there are"
    if not np.array_equal(arrays["unique_focal_histogram"].sum(-1), windows[:, 0]):
        yield "unique_focal_histogram does not add up to the windows"
    length = study.size[2]
    if (arrays["similarity_histogram"].sum(-1) > windows * (length * (length - 1) // 2)).any():
        yield "similarity_histogram counts more pairs than there are"


def _table(study: Study, name: str) -> Iterator[str]:
    with np.errstate(invalid="ignore"):
        expected = TABLES[name](study.arrays, study.manifest["layers"])
    for kind, table in (("parquet", getattr(study, name)), ("csv", _read_csv(study.folder / f"{name}.csv"))):
        if list(table.columns) != list(expected.columns) or len(table) != len(expected):
            yield f"{name}.{kind} has other rows or columns"
            continue
        for column in expected.columns:
            if not np.array_equal(table[column].to_numpy(), expected[column].to_numpy(), equal_nan=True):
                yield f"{column} in {name}.{kind} does not follow from the arrays"


def _read_csv(path: Path) -> pd.DataFrame:
    """Every number as the float64 that was written; pandas rounds otherwise in some versions."""
    try:
        heading, *rows = csv.reader(path.read_text("utf-8").splitlines())
        columns = zip(heading, zip(*rows, strict=True), strict=True)
        return pd.DataFrame({name: [float(cell or "nan") for cell in cells] for name, cells in columns})
    except (OSError, ValueError, csv.Error) as problem:
        raise HeadscopeError(f"{path.name} can't be read ({type(problem).__name__})") from None


def _example(study: Study) -> Iterator[str]:
    _ = study.example
    yield from ()
