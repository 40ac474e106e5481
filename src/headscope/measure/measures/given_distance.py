"""Chance given distance: what same sentence and repeats would be if a head knew of nothing but distance.

Near tokens share a sentence anyway. If at each distance the high pairs were drawn at random from the pairs of that
distance, these would be their shares; a head is about sentences, or repeats, as far as it exceeds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.corpus.traits import ORDER, SENTENCES, WORDS
from headscope.measure.declaration import Column, Measure, Ratio, State
from headscope.measure.measures import grouped

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """A window without high pairs is left out, as it is of the probability beside it."""
    pairs = seen.pairs.clamp(min=1)
    grouped.add(states, "same_sentence_chance_by_distance_sum", tokens, seen.together_expected / pairs)
    grouped.add(states, "repeat_chance_by_distance_sum", tokens, seen.repeats_expected / pairs)


MEASURE = Measure(
    states={
        "same_sentence_chance_by_distance_sum": State("LHG", "float64", needs=SENTENCES | ORDER, of_high_pairs=True),
        "repeat_chance_by_distance_sum": State("LHG", "float64", needs=WORDS | ORDER, of_high_pairs=True),
    },
    columns=(
        Column(
            "same_sentence_chance_by_distance",
            "same sentence by distance",
            "share",
            "repeats and sentences",
            "What distance alone gives: the share within one sentence if, at each distance, the high pairs were drawn "
            "at random from the pairs of the same window that lie so far apart. Near tokens share a sentence anyway.",
            lambda arrays: Ratio(arrays["same_sentence_chance_by_distance_sum"], arrays["same_sentence_windows"]),
            of_high_pairs=True,
            pooled=lambda high: Ratio(high.expected("together"), high.count),
            needs=SENTENCES | ORDER,
        ),
        Column(
            "repeat_chance_by_distance",
            "repeats by distance",
            "share",
            "repeats and sentences",
            "What distance alone gives: the share of equal tokens if, at each distance, the high pairs were drawn at "
            "random from the pairs of the same window that lie so far apart.",
            lambda arrays: Ratio(arrays["repeat_chance_by_distance_sum"], arrays["repeat_windows"]),
            of_high_pairs=True,
            pooled=lambda high: Ratio(high.expected("equal"), high.count),
            needs=WORDS | ORDER,
        ),
    ),
    update=update,
)
