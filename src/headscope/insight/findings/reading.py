"""What finders read of the tables of a study."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.folder.study_folder import StudyFolder

Numbers = NDArray[np.float64]


def around_peak(shares: Numbers) -> NDArray[np.int64]:
    """The unbroken range about the largest share in which all are at least three quarters of it.

    >>> around_peak(np.array([0.1, 0.4, 0.5, 0.45, 0.2]))
    array([1, 2, 3])
    """
    peak = int(np.nanargmax(shares))
    low = np.flatnonzero(~(shares >= 0.75 * shares[peak]))
    return np.arange(max(low[low < peak], default=-1) + 1, min(low[low > peak], default=len(shares)))


def layer_column(study: StudyFolder, column: str) -> Numbers:
    """A column of the layers' table."""
    return study.column("layers", column)


def head_rows(study: StudyFolder, *columns: str) -> list[dict[Any, Any]]:
    """The rows of the heads' table, which must have these columns."""
    for column in columns:
        study.column("heads", column)
    return study.heads.to_dict("records")


def top_row(rows: list[dict[Any, Any]], column: str) -> dict[Any, Any] | None:
    """The row with the largest value; None where no row has one."""
    known = [row for row in rows if not np.isnan(row[column])]
    return max(known, key=lambda row: row[column]) if known else None


def last_layer(study: StudyFolder) -> str:
    """The last layer measured, which need not be the model's."""
    number = study.manifest.layers[-1]
    return "the last layer" if number == study.manifest.model.layers - 1 else f"layer {number}"
