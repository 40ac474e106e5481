"""Similarity map (Fig. 12): the sum of N over windows."""

from collections.abc import Mapping

from torch import Tensor

from headscope.measure.measures.base import Arrays, Column, State
from headscope.measure.observation import Seen, Tokens

STATES = {"similarity_sum": State("LHSS", "float64", symmetric=True)}


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """`similarity_sum` is added to where it arises."""


def columns(arrays: Arrays) -> Mapping[str, Column]:
    return {}
