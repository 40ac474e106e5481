"""Location map (Fig. 10): how often each (i, j) is a high pair, over all windows; and how many pairs there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.measure.declaration import Column, Measure, Ratio, State, Total
from headscope.measure.measures import grouped

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """`high_count` is added to where it arises."""
    grouped.add(states, "windows", tokens, grouped.of_every_head(tokens.size > 0, seen.pairs))
    grouped.add(states, "tokens", tokens, grouped.of_every_head(tokens.size, seen.pairs))
    grouped.add(states, "pairs", tokens, seen.pairs)


MEASURE = Measure(
    states={
        "high_count": State("LHSS", "int64", symmetric=True, of_high_pairs=True),
        "windows": State("LHG", "int64"),
        "tokens": State("LHG", "int64"),
        "pairs": State("LHG", "int64", of_high_pairs=True, before=lambda arrays: arrays["high_count"].sum((2, 3)) // 2),
    },
    columns=(
        Column(
            "pairs",
            "high pairs",
            "count",
            "pairs",
            "High pairs over all windows: unordered pairs of tokens i < j whose similarity N, in this head and window, "
            "is above the threshold.",
            lambda arrays: Total(arrays["pairs"], arrays["windows"]),
            of_high_pairs=True,
            pooled=lambda high: Total(high.count, high.windows),
        ),
        Column(
            "pairs_per_window",
            "high pairs a window",
            "count",
            "pairs",
            "High pairs divided by windows.",
            lambda arrays: Ratio(arrays["pairs"], arrays["windows"]),
            of_high_pairs=True,
            pooled=lambda high: Ratio(high.count, high.windows),
            profile=True,
            overview=True,
        ),
    ),
    update=update,
)
