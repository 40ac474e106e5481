"""The mean vector: how much of what a head puts out is the same for all tokens of a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.measure.declaration import Column, Measure, Ratio, State
from headscope.measure.measures import grouped

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """A window in which a head puts out nothing at all is left out."""
    share = seen.mean_vector_share
    grouped.add(states, "mean_vector_share_sum", tokens, share.nan_to_num(nan=0.0))
    grouped.add(states, "mean_vector_windows", tokens, ~share.isnan())


MEASURE = Measure(
    states={"mean_vector_share_sum": State("LHG", "float64"), "mean_vector_windows": State("LHG", "int64")},
    columns=(
        Column(
            "mean_vector_share",
            "in the mean vector",
            "share",
            "pairs",
            "How much of the squared length of the outputs Z lies in the mean vector of the window: tokens times its "
            "squared length, over the sum of all squared lengths; mean over windows. Near 1, all tokens get much the "
            "same, and most pairs are alike by that alone.",
            lambda arrays: Ratio(arrays["mean_vector_share_sum"], arrays["mean_vector_windows"]),
            profile=True,
        ),
    ),
    update=update,
)
