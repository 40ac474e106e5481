"""Same sentence (Fig. 8): of the high pairs, the share within one sentence; beside it the share among all pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.corpus.traits import SENTENCES
from headscope.measure.declaration import Column, Measure, Ratio
from headscope.measure.measures.shares import add_shares, share_states

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    chance = tokens.together_count.double() / tokens.pair_count.clamp(min=1)
    add_shares(states, "same_sentence", tokens, seen.together, seen.pairs, chance)


MEASURE = Measure(
    states=share_states("same_sentence", chance=True, needs=SENTENCES),
    columns=(
        Column(
            "same_sentence_probability",
            "same sentence",
            "share",
            "repeats and sentences",
            "Of a window's high pairs, the share within one sentence; mean over the windows that have high pairs. "
            "Special tokens belong to no sentence.",
            lambda arrays: Ratio(arrays["same_sentence_share_sum"], arrays["same_sentence_windows"]),
            of_high_pairs=True,
            pooled=lambda high: Ratio(high.of("together"), high.count),
            chance="same_sentence_chance",
            given_distance="same_sentence_chance_by_distance",
            needs=SENTENCES,
            profile=True,
            overview=True,
        ),
        Column(
            "same_sentence_chance",
            "same sentence by chance",
            "share",
            "repeats and sentences",
            "What chance gives: the share within one sentence among all pairs of the same windows.",
            lambda arrays: Ratio(arrays["same_sentence_chance_sum"], arrays["same_sentence_windows"]),
            of_high_pairs=True,
            pooled=lambda high: Ratio(high.of_all_pairs("together"), high.of_all_pairs("all")),
            needs=SENTENCES,
        ),
    ),
    update=update,
)
