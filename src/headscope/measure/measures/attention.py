"""Summed attention (Fig. 2), and the mean weight of a token on itself, on the token before and on the token after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.traits import ORDER
from headscope.measure.declaration import DIAGONALS, Arrays, Column, Derived, Measure, Ratio, State
from headscope.measure.measures import grouped

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """`attention_sum` is added to where it arises."""
    grouped.add(states, "diagonal_sum", tokens, seen.diagonals)


def _of_map(arrays: Arrays) -> NDArray[Any]:
    """(L, H, S, S) -> (L, H, D)"""
    offsets = {"self": 0, "previous": -1, "next": 1}
    return np.stack([np.trace(arrays["attention_sum"], offsets[name], -2, -1) for name in DIAGONALS], -1)


def _diagonal(arrays: Arrays, name: str) -> Ratio:
    """The mean of A[i, i + offset] over the tokens that have such a neighbour."""
    tokens = arrays["tokens"] - (arrays["windows"] if name != "self" else 0)
    return Ratio(arrays["diagonal_sum"][..., DIAGONALS.index(name)], tokens)


MEASURE = Measure(
    states={
        "attention_sum": State("LHSS", "float64"),
        "diagonal_sum": State("LHGD", "float64", before=_of_map),
    },
    columns=(
        Column(
            "attention_self",
            "on itself",
            "share",
            "attention",
            "Mean attention weight of a token on itself, A[i, i].",
            lambda arrays: _diagonal(arrays, "self"),
            profile=True,
        ),
        Column(
            "attention_previous",
            "on the previous",
            "share",
            "attention",
            "Mean attention weight of a token on the one before it, A[i, i-1].",
            lambda arrays: _diagonal(arrays, "previous"),
            needs=ORDER,
            profile=True,
        ),
        Column(
            "attention_next",
            "on the next",
            "share",
            "attention",
            "Mean attention weight of a token on the one after it, A[i, i+1].",
            lambda arrays: _diagonal(arrays, "next"),
            needs=ORDER,
            profile=True,
        ),
    ),
    update=update,
    derived={
        "layer_attention": Derived("LSS", "float64", lambda arrays: arrays["attention_sum"].sum(1), ("attention_sum",))
    },
)
