"""Block contrast (Fig. 5): mean of N over the pairs of one block between lines, less its mean over all other pairs."""

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
    grouped.add(states, "contrast_sum", tokens, seen.contrast.nan_to_num(nan=0.0))
    grouped.add(states, "contrast_windows", tokens, ~seen.contrast.isnan())


MEASURE = Measure(
    states={"contrast_sum": State("LHG", "float64"), "contrast_windows": State("LHG", "int64")},
    columns=(
        Column(
            "block_contrast",
            "block contrast",
            "difference",
            "lines and blocks",
            "Lines cut a window into blocks; a line closes its block. Mean of N over the pairs within one block, less "
            "its mean over all other pairs; mean over windows. Above 0, the head's outputs are more alike within "
            "blocks.",
            lambda arrays: Ratio(arrays["contrast_sum"], arrays["contrast_windows"]),
            profile=True,
            overview=True,
        ),
    ),
    update=update,
)
