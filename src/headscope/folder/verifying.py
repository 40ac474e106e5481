"""Is a study folder what it was when it was finished, and does everything in it follow from its arrays?"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headscope.corpus.null_kinds import NULLS
from headscope.errors import HeadscopeError
from headscope.files import file_checksum
from headscope.folder.manifest import ARRAYS, GROUPS_FILE, MANIFEST, checksum_is_right
from headscope.folder.roles_file import FACTS, problem_of_roles
from headscope.folder.study_folder import EXAMPLE, REST, StudyFolder, null_folder
from headscope.folder.windows_file import WINDOWS_FILE, opened, shards_of
from headscope.measure.bins import coarse
from headscope.measure.catalogue import STATES, SYMMETRIC, array_specs
from headscope.measure.declaration import SETS
from headscope.measure.jackknife import INTERVALS, intervals_table
from headscope.measure.row_layout import WIDTH, States
from headscope.measure.tables import TABLES, Totals, derived_arrays
from headscope.run import checkpoints


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; `problem` is None where it is right. note: what else there is to say of it.
    checked: false where there is nothing to hold it against, because an older version did not keep it.

    >>> Check("arrays.safetensors", "it is not the file that the study wrote").problem
    'it is not the file that the study wrote'
    """

    what: str
    problem: str | None
    note: str | None = None
    checked: bool = True


Look = Callable[[StudyFolder], Iterator[str]]
"""Yields what is wrong."""


def verify(folder: str | os.PathLike[str]) -> list[Check]:
    """Check a study folder; a folder that holds no study raises `HeadscopeError`.

    >>> import headscope
    >>> [check for check in headscope.verify("wiki") if check.problem]  # doctest: +SKIP
    []
    """
    study = StudyFolder(folder)
    looks: dict[str, Look] = {
        "study.json": _manifest,
        "files and their checksums": _files,
        "shapes and types of the arrays": _shapes,
        "sums and counts": _values,
        "symmetric maps": _symmetry,
        "totals of the histograms": _totals,
        "heads follows from the arrays": lambda study: _table(study, "heads"),
        "layers follows from the arrays": lambda study: _table(study, "layers"),
    }
    if study.manifest.groups is not None:
        looks["groups of texts add up"] = _groups
        looks["intervals follow from the groups"] = _intervals
    if study.manifest.example is not None:
        looks["the example text"] = _example
    if study.manifest.keeps_windows:
        looks["windows add up"] = _windows
    checks = [
        Check(what, _first(look, study), note := _note(what, study), checked=note is None)
        for what, look in looks.items()
    ]
    checks += _nulls(study)
    if (study.folder / checkpoints.FOLDER).is_dir():
        left = f"{checkpoints.FOLDER}/ is left over from a run that was stopped; the study is whole without it"
        checks.append(Check("nothing else", None, left))
    return checks


def _nulls(study: StudyFolder) -> list[Check]:
    """The null studies, each as a study, and the roles that follow from them."""
    checks: list[Check] = []
    for null in NULLS:
        folder = null_folder(study.folder, null)
        if (folder / MANIFEST).is_file():
            problems = [check.problem for check in verify(folder) if check.problem is not None]
            note = None if null in study.nulls else "it is not of this study: other windows, weights or options"
            checks.append(Check(f"nulls/{null}", problems[0] if problems else None, note))
    if (study.folder / FACTS).is_file():
        note = None if study.roles is not None else "they are not of this study and these nulls"
        checks.append(Check("roles", problem_of_roles(study.folder), note))
    return checks


def _first(look: Look, study: StudyFolder) -> str | None:
    try:
        return next(look(study), None)
    except HeadscopeError as problem:
        return str(problem)


def _note(what: str, study: StudyFolder) -> str | None:
    """What a folder of an older version can't be held to."""
    if what == "study.json" and checksum_is_right(study.folder) is None:
        return "its version kept no checksum of it"
    if what.startswith("files") and study.manifest.files is None:
        return "its version kept no checksums"
    return None


def _manifest(study: StudyFolder) -> Iterator[str]:
    if checksum_is_right(study.folder) is False:
        yield f"{MANIFEST} is not what it was when the study was finished"


def _files(study: StudyFolder) -> Iterator[str]:
    manifest = study.manifest
    if manifest.files is None:
        return
    tables = TABLES if manifest.groups is None else (*TABLES, INTERVALS)
    expected = {ARRAYS, *(f"{name}.{kind}" for name in tables for kind in ("csv", "parquet"))}
    expected |= {GROUPS_FILE} if manifest.groups is not None else set()
    expected |= {REST} if manifest.part is not None else set()
    expected |= set(EXAMPLE) if manifest.example is not None else set()
    expected |= {WINDOWS_FILE} if manifest.keeps_windows else set()
    if set(manifest.files) != expected:
        odd = sorted(set(manifest.files) ^ expected)
        yield f"study.json lists other files than a study has ({', '.join(map(repr, odd[:3]))})"
    for name in sorted(expected):
        path = study.folder / name
        if not path.is_file():
            yield f"{name} is missing"
        elif file_checksum(path) != manifest.files.get(name):
            yield f"{name} is not what it was when the study was finished"


def _shapes(study: StudyFolder) -> Iterator[str]:
    missing = sorted(set(study.manifest.arrays or ()) - set(study.arrays))
    if missing:
        yield f"{ARRAYS} has no array {missing[0]}"


def _values(study: StudyFolder) -> Iterator[str]:
    arrays = study.arrays
    for name in array_specs(*study.size, study.manifest.gives).keys() & arrays.keys():
        array = arrays[name]
        if array.dtype.kind == "i" and array.min() < 0:
            yield f"{name} counts below zero"
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            yield f"{name} holds NaN or infinity"
    if (arrays["windows"] != study.windows).any():
        yield f"the arrays were summed over other than the {study.windows} windows that study.json names"
    if (arrays["tokens"] != arrays["tokens"][0, 0]).any() or arrays["tokens"].max() > study.windows * study.size[2]:
        yield "tokens counts more tokens than the windows hold, or other ones from head to head"
    if "high_count" in arrays and (arrays["high_count"] > study.windows).any():
        yield "a place in high_count is a high pair more often than there are windows"
    yield from _attention(study)


def _attention(study: StudyFolder) -> Iterator[str]:
    arrays = study.arrays
    received = arrays["attention_to_kind_sum"].sum(2)
    # Half precision makes rows of attention that add up to a little more than 1.
    if (received > 1.01 * arrays["tokens"]).any():
        yield "attention_to_kind_sum holds more than 1 for each token"
    lines, kinds = arrays["line_kind_count"], arrays["token_kind_count"]
    if (lines.sum(2) < arrays["windows"]).any():
        yield "a window without a line: line_kind_count is not right"
    if "attention_sum" in arrays:
        total, rest = arrays["attention_sum"], arrays["attention_sum_without_lines"]
        paid = total.sum((2, 3))
        if not np.allclose(paid, received, rtol=1e-6):
            yield "attention_to_kind_sum holds other attention than attention_sum"
        if (rest < 0).any() or (rest > total * (1 + 1e-9) + 1e-12).any():
            yield "attention_sum_without_lines holds attention that attention_sum does not"
        # Every window has a line, its largest column, so something of attention_sum lies on lines.
        if (rest.sum((2, 3)) >= paid)[paid > 0].any():
            yield "a window without a line: attention_sum_without_lines is not right"
    if (kinds != kinds[0, 0]).any() or (kinds.sum(2) != arrays["tokens"]).any():
        yield "token_kind_count does not add up to the tokens"
    if (lines > kinds).any():
        yield "line_kind_count has more lines of a kind than there are tokens of it"


def _symmetry(study: StudyFolder) -> Iterator[str]:
    for name in sorted(SYMMETRIC & study.arrays.keys()):
        array = study.arrays[name]
        if not np.array_equal(array, array.swapaxes(-1, -2)):
            yield f"{name} is not symmetric"
        if np.diagonal(array, axis1=-2, axis2=-1).any():
            yield f"{name} is not 0 on its diagonal"


def _totals(study: StudyFolder) -> Iterator[str]:
    arrays = study.arrays
    windows = arrays["windows"]
    if {"distance_histogram", "high_count"} <= arrays.keys() and not np.array_equal(
        arrays["distance_histogram"], distance_histogram(arrays["high_count"])
    ):
        yield "distance_histogram does not follow from high_count"
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
    if "similarity_sum" in arrays and (arrays["similarity_sum"].max((2, 3)) > windows * 1.0001).any():
        yield "similarity_sum holds more than 1 for each window"
    for name, array in derived_arrays(arrays, study.manifest.gives).items():
        if name in arrays and not np.array_equal(arrays[name], array):
            yield f"{name} does not follow from the states"
    made = Totals({name: array for name, array in arrays.items() if STATES.get(name) is None or not _before(name)})
    for name in (name for name in arrays if _before(name)):
        try:
            follows = np.allclose(arrays[name], made[name], rtol=1e-6)
        except KeyError:  # a map that was not kept
            continue
        if not follows:
            yield f"{name} does not follow from the other arrays"


def _before(name: str) -> bool:
    """Whether an array can be made from others, as it is for versions that did not keep it."""
    return name in STATES and STATES[name].before is not None


def distance_histogram(high_count: NDArray[Any]) -> NDArray[np.int64]:
    """(..., S, S) -> (..., S): how many high pairs have each distance; index = distance."""
    histogram = np.zeros(high_count.shape[:-1], dtype=np.int64)
    for distance in range(1, high_count.shape[-1]):
        histogram[..., distance] = np.diagonal(high_count, distance, -2, -1).sum(-1)
    return histogram


def _groups(study: StudyFolder) -> Iterator[str]:
    for name in study.groups:
        array = study.groups[name]
        if array.dtype.kind == "i" and array.min() < 0:
            yield f"{name} counts below zero in a group"
        if name in study.arrays and not np.array_equal(STATES[name].total(array), study.arrays[name]):
            yield f"{name} of the groups does not add up to that of the study"
    if "spectrum_of_groups" in study.groups:
        every = study.groups["spectrum_of_groups"][:, :, :, SETS.index("all")].sum(2)
        if not np.array_equal(every, coarse(study.arrays["spectrum"].sum(2))):
            yield "spectrum_of_groups does not add up to spectrum"


def _windows(study: StudyFolder) -> Iterator[str]:
    """Within rounding: the study adds up exactly, and this does not."""
    rows = len(study.manifest.layers) * study.manifest.model.heads
    total = np.zeros((rows, WIDTH - 1))
    for _, added in shards_of(opened(study.folder), []):
        if len(added) % rows:
            yield f"{WINDOWS_FILE} lacks heads of a window"
            return
        total += added.reshape(-1, *total.shape).sum(0)
    states = States(total.reshape(len(study.manifest.layers), study.manifest.model.heads, -1))
    for name in states:
        if name in study.arrays and not np.allclose(states[name], study.arrays[name], rtol=1e-9, atol=1e-9):
            yield f"{name} of the windows does not add up to that of the study"


def _intervals(study: StudyFolder) -> Iterator[str]:
    columns = {name: list(study.table(name).columns) for name in TABLES}
    expected = intervals_table(study.jackknife, study.manifest.layers, study.manifest.gives, columns)
    if not expected.equals(study.intervals):
        yield f"{INTERVALS}.parquet does not follow from the groups"


def _table(study: StudyFolder, name: str) -> Iterator[str]:
    """Columns that this version does not know can't be held to anything."""
    kept = study.table(name)
    written = set(kept.columns)
    expected = TABLES[name](study.what_tables_are_made_of(), study.manifest.layers, study.manifest.gives, written)
    for kind, table in (("parquet", kept), ("csv", _read_csv(study.folder / f"{name}.csv"))):
        if list(table.columns) != list(kept.columns) or len(table) != len(expected):
            yield f"{name}.{kind} has other rows or columns"
            continue
        for column in expected.columns.intersection(table.columns):
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


def _example(study: StudyFolder) -> Iterator[str]:
    view = study.example
    attention, output = np.asarray(view.attention), np.asarray(view.output)
    layers, heads, length = study.size
    size = view.size
    if view.layers != study.manifest.layers or attention.shape[1] != heads:
        yield "the example has other layers or heads than the study"
    if size > length or attention.shape != (layers, heads, size, size) or output.shape[:3] != (layers, heads, size):
        yield "A and Z of the example are not of its tokens"
    lengths = None if view.lengths is None else np.asarray(view.lengths)
    if lengths is not None and (lengths.shape != (layers, heads, size) or not (lengths >= 0).all()):
        yield "the lengths of the example's value vectors are not those of its tokens"
    facts = (view.ids, view.kind, view.sentence, view.special, view.start, view.end)
    if any(fact.shape != (size,) for fact in facts) or (view.end < view.start).any() or view.end.max() > len(view.text):
        yield "the tokens of the example do not fit its text"
    if not (np.isfinite(attention).all() and np.isfinite(output).all()):
        yield "the example holds NaN or infinity"
    if (attention < 0).any() or (attention.sum(-1) > 1.01).any():
        yield "a row of the example's attention adds up to more than 1"
    options = study.manifest.options
    if (view.threshold, view.line_threshold, view.special_option, view.similarity_option) != (
        options.threshold,
        options.line_threshold,
        options.special,
        options.similarity,
    ):
        yield "the example was looked at with other options than the study"
