"""What attention carries: attention on a token whose value vector is short moves little.

Each weight A[i, j] counts by the length of v[j] as this head's part of the output projection maps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.corpus.traits import PATCHES, WORDS, Traits
from headscope.corpus.windows import KINDS
from headscope.measure.declaration import Arrays, Column, Measure, Ratio, State
from headscope.measure.measures import grouped

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """Where a model's values can't be had, they are NaN, and nothing is counted."""
    grouped.add(states, "carried_to_kind_sum", tokens, seen.carried_to.nan_to_num(nan=0.0))


def _carried_to(kind: str, called: str, needs: Traits, more: str = "") -> Column:
    place = KINDS.index("word" if kind == "patch" else kind)

    def value(arrays: Arrays) -> Ratio:
        carried = arrays["carried_to_kind_sum"]
        return Ratio(carried[..., place], carried.sum(-1))

    return Column(
        f"carried_to_{kind}",
        f"carried from {called}",
        "share",
        "attention",
        f"Of all that attention carries, each weight times the length of the value vector that it brings, the share "
        f"from {called}{more}. Beside the share of attention alone it tells whether what draws attention moves "
        "anything.",
        value,
        needs=needs,
    )


MEASURE = Measure(
    states={"carried_to_kind_sum": State("LHGK", "float64")},
    columns=(
        _carried_to("first", "the first token", frozenset(), ", whatever it is"),
        _carried_to("special", "special tokens", frozenset(), " other than the first"),
        _carried_to("sentence_end", "sentence ends", WORDS),
        _carried_to("comma", "commas", WORDS),
        _carried_to("punctuation", "other punctuation", WORDS),
        _carried_to("word", "words", WORDS),
        _carried_to("patch", "patches", PATCHES),
    ),
    update=update,
)
