"""What several measures have in common: a share of each window, as mean and distribution, with chance beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.corpus.traits import Traits
from headscope.measure.declaration import SHARE_BINS, State
from headscope.measure.measures import grouped

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens


def share_states(name: str, chance: bool = False, needs: Traits = frozenset()) -> dict[str, State]:
    """The states that `add_shares` adds to."""
    states = {
        f"{name}_share_sum": State("LHG", "float64", needs=needs, of_high_pairs=True),
        f"{name}_windows": State("LHG", "int64", needs=needs, of_high_pairs=True),
        f"{name}_histogram": State("LHP", "int64", needs=needs, of_high_pairs=True),
    }
    if chance:
        states[f"{name}_chance_sum"] = State("LHG", "float64", needs=needs, of_high_pairs=True)
    return states


def add_shares(
    states: Mapping[str, Tensor],
    name: str,
    tokens: Tokens,
    part: Tensor,
    whole: Tensor,
    chance: Tensor | None = None,
) -> None:
    """Add the windows' shares part / whole, (L, B, H); a window with nothing to divide by is left out.

    States NAME_share_sum and NAME_windows (L, H, G), NAME_histogram (L, H, 50), and NAME_chance_sum where `chance` (B,)
    gives the share among all pairs of each window.
    """
    counted = whole > 0
    divisor = whole.clamp(min=1)
    grouped.add(states, f"{name}_share_sum", tokens, (part.double() / divisor).mul(counted))
    grouped.add(states, f"{name}_windows", tokens, counted)
    if chance is not None:
        grouped.add(states, f"{name}_chance_sum", tokens, grouped.of_every_head(chance, part) * counted)
    bins = share_bin(part, divisor).transpose(1, 2)
    states[f"{name}_histogram"].scatter_add_(2, bins, counted.transpose(1, 2).long())


def share_bin(part: Tensor, whole: Tensor) -> Tensor:
    """The bin of the share part / whole, exactly: whole numbers, whole > 0."""
    return (part * SHARE_BINS).div(whole, rounding_mode="floor").clamp(max=SHARE_BINS - 1)
