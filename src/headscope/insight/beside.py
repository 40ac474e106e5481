"""Every number of a study beside what it is held against: chance, distance alone, and the nulls."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headscope.corpus.null_kinds import NULLS, Null
from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.measure.catalogue import columns

Numbers = NDArray[np.float64]
Ends = Mapping[str, tuple[Numbers, Numbers]]
"""A column -> where the intervals of its rows begin and end."""


def beside(study: StudyFolder) -> pd.DataFrame:
    """A row per layer, head (-1: the layer) and column: its value with its interval, what chance and distance alone
    give, and what each null gives; NaN where there is no such number.

    No head of random weights is the counterpart of a trained one: beside a head stands the mean of its layer's heads
    there, which have nothing to tell them apart.
    """
    found = [_of_table(study, table) for table in ("heads", "layers")]
    return pd.concat(found, ignore_index=True)


def of_null(study: StudyFolder, null: Null, table: str, name: str) -> Numbers:
    """A column of `heads` or `layers` as a null has it, beside that of the study; NaN where it has none."""
    rows = len(getattr(study, table))
    try:
        values = study.nulls[null].column(table, name)
    except (AbsentError, KeyError):
        return np.full(rows, np.nan)
    if null == "weights" and table == "heads":
        heads = study.manifest.model.heads
        by_layer = values.reshape(-1, heads)
        known = ~np.isnan(by_layer)
        mean = np.where(known, by_layer, 0).sum(1) / np.where(known.any(1), known.sum(1), np.nan)
        return np.repeat(mean, heads)
    return values


def _of_table(study: StudyFolder, table: str) -> pd.DataFrame:
    rows: pd.DataFrame = getattr(study, table)
    nothing = np.full(len(rows), np.nan)
    ends = ends_of(study, table)
    found = []
    for name, column in columns(study.manifest.gives).items():
        if column.value is None or name not in rows:
            continue
        low, high = ends.get(name, (nothing, nothing))
        chance, near = (
            rows[by].to_numpy(np.float64) if by in rows else nothing for by in (column.chance, column.given_distance)
        )
        found.append(
            pd.DataFrame(
                {
                    "layer": rows["layer"],
                    "head": rows["head"] if table == "heads" else -1,
                    "column": name,
                    "value": rows[name].to_numpy(np.float64),
                    "low": low,
                    "high": high,
                    "chance": chance,
                    "chance_by_distance": near,
                }
            ).assign(**{null: of_null(study, null, table, name) for null in NULLS})
        )
    return pd.concat(found, ignore_index=True)


def ends_of(study: StudyFolder, table: str) -> Ends:
    """Of the columns of `heads` or `layers` that have intervals; none where the study has none."""
    try:
        intervals = study.intervals
    except AbsentError:
        return {}
    rows = intervals[(intervals["head"] >= 0) == (table == "heads")]
    return {
        str(name): (of_column["low"].to_numpy(np.float64), of_column["high"].to_numpy(np.float64))
        for name, of_column in rows.groupby("column", sort=False)
    }
