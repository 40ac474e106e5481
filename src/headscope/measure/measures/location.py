"""Location map (Fig. 10): how often each (i, j) is a high pair, over all windows; and how many pairs there are."""

from collections.abc import Mapping

from torch import Tensor

from headscope.measure.measures.base import Arrays, Column, Ratio, State, Total
from headscope.measure.observation import Seen, Tokens

STATES = {
    "high_count": State("LHSS", "int64", symmetric=True),
    "windows": State("LH", "int64"),
    "tokens": State("LH", "int64"),
}


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """`high_count` is added to where it arises."""
    states["windows"].add_(len(tokens.size))
    states["tokens"].add_(tokens.size.sum())


def columns(arrays: Arrays) -> Mapping[str, Column]:
    pairs = arrays["high_count"].sum((2, 3)) // 2
    return {
        "pairs": Total(pairs),
        "pairs_per_window": Ratio(pairs, arrays["windows"]),
    }
