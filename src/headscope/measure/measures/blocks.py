"""Block contrast (Fig. 5): mean of N over the pairs of one block between lines, less its mean over all other pairs."""

from collections.abc import Mapping

from torch import Tensor

from headscope.measure.measures.base import Arrays, Column, Ratio, State
from headscope.measure.observation import Seen, Tokens

STATES = {"contrast_sum": State("LH", "float64"), "contrast_windows": State("LH", "int64")}


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    states["contrast_sum"].add_(seen.contrast.nan_to_num(nan=0.0).sum(1))
    states["contrast_windows"].add_((~seen.contrast.isnan()).sum(1))


def columns(arrays: Arrays) -> Mapping[str, Column]:
    return {"block_contrast": Ratio(arrays["contrast_sum"], arrays["contrast_windows"])}
