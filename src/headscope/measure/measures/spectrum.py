"""Value spectrum: the histogram of N over pairs. A gap about the threshold justifies it."""

from collections.abc import Mapping

from torch import Tensor

from headscope.measure.measures.base import Arrays, Column, State
from headscope.measure.observation import Seen, Tokens

STATES = {"similarity_histogram": State("LHV", "int64")}


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """`similarity_histogram` is added to where it arises."""


def columns(arrays: Arrays) -> Mapping[str, Column]:
    return {}
