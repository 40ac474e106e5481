"""Attention lines (Figs. 3 and 4): columns that draw much attention, their kinds of token, attention without them."""

from collections.abc import Mapping

import torch
from torch import Tensor

from headscope.corpus.windows import KINDS, WORD
from headscope.measure.measures.base import Arrays, Column, Ratio, State
from headscope.measure.observation import Seen, Tokens

STATES = {
    "attention_sum_without_lines": State("LHSS", "float64"),
    "attention_to_kind_sum": State("LHK", "float64"),
    "line_kind_count": State("LHK", "int64"),
    "token_kind_count": State("LHK", "int64"),
}


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """`attention_sum_without_lines` follows from what is added up where it arises."""
    states["attention_to_kind_sum"].add_(seen.attention_to.sum(1))
    states["line_kind_count"].add_(seen.lines.sum(1))
    states["token_kind_count"].add_(torch.bincount(tokens.kind[tokens.real], minlength=len(KINDS)))


def columns(arrays: Arrays) -> Mapping[str, Column]:
    received, lines = arrays["attention_to_kind_sum"], arrays["line_kind_count"]
    found = lines.sum(-1)
    return {
        **{f"attention_to_{kind}": Ratio(received[..., k], received.sum(-1)) for k, kind in enumerate(KINDS)},
        "lines_per_window": Ratio(found, arrays["windows"]),
        "line_separator_share": Ratio(lines[..., :WORD].sum(-1), found),
    }
