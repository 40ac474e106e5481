"""Values of N over pairs (text of §3): their spectrum, by the relation of the two tokens and by their distance.

The spectrum tells whether a gap about the threshold justifies it. By relation and distance it says what the shares
would be at another threshold, and how well N tells pairs of a relation from others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.corpus.traits import ORDER, SENTENCES, WORDS, Traits
from headscope.measure.bins import value_spectrum
from headscope.measure.declaration import RELATIONS, SETS, Arrays, Auc, Column, Derived, Measure, State

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """All others are added to where they arise."""
    states["pairs_by_distance"].add_(tokens.by_distance.sum(0).to(states["pairs_by_distance"].dtype))


def _auc(relation: str, name: str, label: str, definition: str, needs: Traits) -> Column:
    def of_all(arrays: Arrays) -> Auc:
        counts = arrays["spectrum"]
        related = counts[:, :, RELATIONS.index(relation)] + counts[:, :, RELATIONS.index("both")]
        return Auc(related, counts.sum(2) - related)

    def of_groups(arrays: Arrays) -> Auc:
        """In coarse bins: fine ones would be too many to keep for each group."""
        counts = arrays["spectrum_of_groups"]
        related = counts[:, :, SETS.index(relation)]
        return Auc(related, counts[:, :, SETS.index("all")] - related)

    return Column(
        name,
        label,
        "share",
        "signal and noise",
        definition + " By chance 0.5. Over all windows; no threshold enters, and distance is not taken out.",
        of_all,
        needs=needs,
        resampled=of_groups,
    )


MEASURE = Measure(
    states={
        "spectrum": State("LHRF", "int64"),
        "spectrum_of_groups": State("LHGMC", "int32", needs=WORDS),
        "distance_spectrum": State("LHST", "int32", needs=ORDER),
        "pairs_by_distance": State("MS", "int64", needs=ORDER),
    },
    columns=(
        _auc(
            "together",
            "same_sentence_auc",
            "same sentence, AUC",
            "How often a pair within one sentence has a larger N than a pair of two.",
            SENTENCES,
        ),
        _auc(
            "equal",
            "repeat_auc",
            "repeats, AUC",
            "How often a pair of equal tokens has a larger N than a pair of different ones.",
            WORDS,
        ),
    ),
    update=update,
    derived={
        "similarity_histogram": Derived(
            "LHV", "int64", lambda arrays: value_spectrum(arrays["spectrum"].sum(2)), ("spectrum",)
        )
    },
)
