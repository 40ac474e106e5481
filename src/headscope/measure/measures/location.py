"""Location map (Fig. 10): how often each (i, j) is a high pair, over all windows; and how many pairs there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.measure.declaration import Column, Measure, Ratio, State, Total

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Seen, Tokens


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """`high_count` is added to where it arises."""
    states["windows"].add_(len(tokens.size))
    states["tokens"].add_(tokens.size.sum())


MEASURE = Measure(
    states={
        "high_count": State("LHSS", "int64", symmetric=True),
        "windows": State("LH", "int64"),
        "tokens": State("LH", "int64"),
    },
    columns=(
        Column(
            "pairs",
            "high pairs",
            "count",
            "pairs",
            "High pairs over all windows: unordered pairs of tokens i < j whose similarity N, in this head and window, "
            "is above the threshold.",
            lambda arrays: Total(arrays["high_count"].sum((2, 3)) // 2),
        ),
        Column(
            "pairs_per_window",
            "high pairs a window",
            "count",
            "pairs",
            "High pairs divided by windows.",
            lambda arrays: Ratio(arrays["high_count"].sum((2, 3)) // 2, arrays["windows"]),
            profile=True,
            overview=True,
        ),
    ),
    update=update,
)
