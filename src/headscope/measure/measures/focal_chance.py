"""Chance of a focal token: as many pairs drawn at random from a window's pairs also have a most common token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.measure.declaration import Column, LayerRatio, Measure, Ratio, State
from headscope.measure.measures import grouped
from headscope.measure.measures.focal import unique_focal_tokens

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """A window without high pairs is left out, as it is of the share beside it."""
    share = seen.random_focal_pairs.double() / seen.pairs.clamp(min=1)
    grouped.add(states, "focal_chance_sum", tokens, share)
    grouped.add(states, "unique_focal_chance_sum", tokens, unique_focal_tokens(seen.random_focal))


MEASURE = Measure(
    states={
        "focal_chance_sum": State("LHG", "float64", of_high_pairs=True),
        "unique_focal_chance_sum": State("LG", "int64", of_high_pairs=True),
    },
    columns=(
        Column(
            "focal_chance",
            "focal share by chance",
            "share",
            "pairs",
            "What chance gives: the share of the most common token if the head's high pairs, as many as it has, were "
            "drawn at random from all pairs of the window; by one seeded draw for each window and head.",
            lambda arrays: Ratio(arrays["focal_chance_sum"], arrays["focal_share_windows"]),
            of_high_pairs=True,
        ),
        Column(
            "unique_focal_chance",
            "different focal tokens by chance",
            "count",
            "pairs",
            "What chance gives: how many different focal tokens there would be if the high pairs of each head, as many "
            "as it has, were drawn at random from all pairs of the window.",
            lambda arrays: LayerRatio(arrays["unique_focal_chance_sum"], arrays["windows"][:, 0]),
            of_high_pairs=True,
            heads=False,
        ),
    ),
    update=update,
)
