"""Focal token (Fig. 11): the value in the most high pairs, its share of them, and how many a layer's heads have."""

from collections.abc import Mapping

import torch
from torch import Tensor

from headscope.measure.measures.base import Arrays, Column, Ratio, State, add_shares, share_states
from headscope.measure.observation import Seen, Tokens

STATES = share_states("focal_share") | {"unique_focal_histogram": State("LU", "int64")}


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    add_shares(states, "focal_share", seen.focal_pairs, seen.pairs)
    unique = unique_focal_tokens(seen.focal)
    states["unique_focal_histogram"].scatter_add_(1, unique, torch.ones_like(unique))


def unique_focal_tokens(focal: Tensor) -> Tensor:
    """(L, B, H) token ids, -1 for none -> (L, B): how many different ones the heads have."""
    ordered = focal.sort(dim=-1).values
    changes = (ordered[..., 1:] != ordered[..., :-1]).sum(-1) + 1
    return changes - (ordered[..., 0] < 0).long()


def columns(arrays: Arrays) -> Mapping[str, Column]:
    return {"focal_share": Ratio(arrays["focal_share_share_sum"], arrays["focal_share_windows"])}
