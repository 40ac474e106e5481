"""Signal and noise (the paper's open question 2): what a relation leaves in N beyond distance, without a threshold.

r is N less its mean over the pairs of the same window, head and distance. The signal of a relation is the mean of r
over its pairs, the noise the root mean square of r over all pairs, both over all windows with a positive similarity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.corpus.traits import ORDER, SENTENCES, WORDS, Traits
from headscope.measure.declaration import Arrays, Column, Measure, SignalToNoise, State
from headscope.measure.measures import grouped

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """Windows without a positive similarity have no N."""
    positive = seen.peak > 0

    def count(of_windows: Tensor) -> Tensor:
        return grouped.of_every_head(of_windows, positive) * positive

    grouped.add(states, "signal_together_sum", tokens, seen.signal_together)
    grouped.add(states, "signal_together_pairs", tokens, count(tokens.together_count))
    grouped.add(states, "signal_equal_sum", tokens, seen.signal_equal)
    grouped.add(states, "signal_equal_pairs", tokens, count(tokens.equal_count))
    grouped.add(states, "noise_square_sum", tokens, seen.noise_square)
    grouped.add(states, "noise_pairs", tokens, count(tokens.pair_count))


def _signal_to_noise(relation: str, name: str, label: str, called: str, needs: Traits) -> Column:
    def value(arrays: Arrays) -> SignalToNoise:
        return SignalToNoise(
            arrays[f"signal_{relation}_sum"],
            arrays[f"signal_{relation}_pairs"],
            arrays["noise_square_sum"],
            arrays["noise_pairs"],
        )

    return Column(
        name,
        label,
        "difference",
        "signal and noise",
        f"How far N of pairs {called} lies above that of other pairs as far apart in the same window, in units of its "
        "root mean square about that. 0: the relation leaves no trace beyond distance; no threshold enters.",
        value,
        needs=needs | ORDER,
        profile=True,
        overview=True,
    )


MEASURE = Measure(
    states={
        "signal_together_sum": State("LHG", "float64", needs=SENTENCES | ORDER),
        "signal_together_pairs": State("LHG", "int64", needs=SENTENCES | ORDER),
        "signal_equal_sum": State("LHG", "float64", needs=WORDS | ORDER),
        "signal_equal_pairs": State("LHG", "int64", needs=WORDS | ORDER),
        "noise_square_sum": State("LHG", "float64", needs=WORDS | ORDER),
        "noise_pairs": State("LHG", "int64", needs=WORDS | ORDER),
    },
    columns=(
        _signal_to_noise(
            "together", "signal_to_noise_sentence", "same sentence, signal/noise", "within one sentence", SENTENCES
        ),
        _signal_to_noise("equal", "signal_to_noise_repeat", "repeats, signal/noise", "of equal tokens", WORDS),
    ),
    update=update,
)
