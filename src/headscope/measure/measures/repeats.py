"""Repeated tokens (Fig. 6): the share of high pairs whose two tokens are equal; 6b: among those in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.corpus.traits import SENTENCES, WORDS
from headscope.measure.declaration import Column, Measure, Ratio
from headscope.measure.measures.shares import add_shares, share_states

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen

IN_SENTENCES = WORDS | SENTENCES


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    chance = tokens.equal_count.double() / tokens.pair_count.clamp(min=1)
    add_shares(states, "repeat", tokens, seen.repeats, seen.pairs, chance)
    add_shares(states, "repeat_in_sentence", tokens, seen.repeats_together, seen.together)


MEASURE = Measure(
    states=share_states("repeat", chance=True, needs=WORDS) | share_states("repeat_in_sentence", needs=IN_SENTENCES),
    columns=(
        Column(
            "repeat_probability",
            "repeats",
            "share",
            "repeats and sentences",
            "Of a window's high pairs, the share whose two tokens are equal (the same entry of the vocabulary); "
            "mean over the windows that have high pairs.",
            lambda arrays: Ratio(arrays["repeat_share_sum"], arrays["repeat_windows"]),
            of_high_pairs=True,
            pooled=lambda high: Ratio(high.of("equal"), high.count),
            chance="repeat_chance",
            given_distance="repeat_chance_by_distance",
            needs=WORDS,
            profile=True,
            overview=True,
        ),
        Column(
            "repeat_probability_in_sentence",
            "repeats in a sentence",
            "share",
            "repeats and sentences",
            "The same share among the high pairs that lie within one sentence.",
            lambda arrays: Ratio(arrays["repeat_in_sentence_share_sum"], arrays["repeat_in_sentence_windows"]),
            of_high_pairs=True,
            pooled=lambda high: Ratio(high.of("both"), high.of("together")),
            needs=IN_SENTENCES,
        ),
        Column(
            "repeat_chance",
            "repeats by chance",
            "share",
            "repeats and sentences",
            "What chance gives: the share of equal tokens among all pairs of the same windows.",
            lambda arrays: Ratio(arrays["repeat_chance_sum"], arrays["repeat_windows"]),
            of_high_pairs=True,
            pooled=lambda high: Ratio(high.of_all_pairs("equal"), high.of_all_pairs("all")),
            needs=WORDS,
        ),
    ),
    update=update,
)
