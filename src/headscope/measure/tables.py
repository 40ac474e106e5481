"""States -> the tables `heads` and `layers`, and the arrays that follow from states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.measure.measures import MEASURES
from headscope.measure.measures.base import Arrays
from headscope.measure.measures.distance import distance_histogram

if TYPE_CHECKING:
    import pandas as pd


def derived_arrays(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """Arrays of a study folder that are no states: they follow from the states."""
    return {"distance_histogram": distance_histogram(arrays["high_count"])}


def heads_table(arrays: Arrays, layers: list[int]) -> pd.DataFrame:
    """A row per layer and head."""
    import pandas as pd

    heads = arrays["windows"].shape[1]
    return pd.DataFrame(
        {
            "layer": np.repeat(layers, heads),
            "head": np.tile(np.arange(heads), len(layers)),
            "windows": arrays["windows"].reshape(-1),
            **{name: column.of_heads().reshape(-1) for name, column in _columns(arrays).items()},
        }
    )


def layers_table(arrays: Arrays, layers: list[int]) -> pd.DataFrame:
    """A row per layer: shares and means over all windows and heads, `pairs` their sum."""
    import pandas as pd

    counts = arrays["unique_focal_histogram"]
    unique = counts @ np.arange(counts.shape[1]) / counts.sum(1)
    return pd.DataFrame(
        {
            "layer": layers,
            "windows": arrays["windows"][:, 0],
            **{name: column.of_layers() for name, column in _columns(arrays).items()},
            "unique_focal_tokens": unique,
        }
    )


def _columns(arrays: Arrays) -> dict[str, Any]:
    return {name: column for measure in MEASURES for name, column in measure.columns(arrays).items()}
