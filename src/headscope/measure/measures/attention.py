"""Summed attention (Fig. 2), and the mean weight of a token on itself, on the token before and on the token after."""

import numpy as np

from headscope.corpus.traits import ORDER
from headscope.measure.declaration import Arrays, Column, Measure, Ratio, State


def _diagonal(arrays: Arrays, offset: int) -> Ratio:
    """The mean of A[i, i + offset] over the tokens that have such a neighbour."""
    tokens = arrays["tokens"] - (arrays["windows"] if offset else 0)
    return Ratio(np.trace(arrays["attention_sum"], offset, -2, -1), tokens)


MEASURE = Measure(
    states={"attention_sum": State("LHSS", "float64")},
    columns=(
        Column(
            "attention_self",
            "on itself",
            "share",
            "attention",
            "Mean attention weight of a token on itself, A[i, i].",
            lambda arrays: _diagonal(arrays, 0),
            profile=True,
        ),
        Column(
            "attention_previous",
            "on the previous",
            "share",
            "attention",
            "Mean attention weight of a token on the one before it, A[i, i-1].",
            lambda arrays: _diagonal(arrays, -1),
            needs=ORDER,
            profile=True,
        ),
        Column(
            "attention_next",
            "on the next",
            "share",
            "attention",
            "Mean attention weight of a token on the one after it, A[i, i+1].",
            lambda arrays: _diagonal(arrays, 1),
            needs=ORDER,
            profile=True,
        ),
    ),
)
