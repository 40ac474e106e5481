"""Summed attention (Fig. 2), and the mean weight of a token on itself, on the token before and on the token after."""

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from headscope.measure.measures.base import Arrays, Column, Ratio, State
from headscope.measure.observation import Seen, Tokens

STATES = {"attention_sum": State("LHSS", "float64")}


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """`attention_sum` is added to where it arises."""


def columns(arrays: Arrays) -> Mapping[str, Column]:
    total, tokens = arrays["attention_sum"], arrays["tokens"]
    neighbours = tokens - arrays["windows"]
    return {
        "attention_self": Ratio(np.trace(total, 0, -2, -1), tokens),
        "attention_previous": Ratio(np.trace(total, -1, -2, -1), neighbours),
        "attention_next": Ratio(np.trace(total, 1, -2, -1), neighbours),
    }
