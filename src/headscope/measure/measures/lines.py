"""Attention lines (Figs. 3 and 4): columns that draw much attention, their kinds of token, attention without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.corpus.traits import PATCHES, WORDS, Traits
from headscope.corpus.windows import KINDS, WORD
from headscope.measure.declaration import Arrays, Column, Measure, Ratio, State
from headscope.measure.measures import grouped

if TYPE_CHECKING:
    from torch import Tensor

    from headscope.measure.observation import Tokens
    from headscope.measure.seen import Seen


def update(states: Mapping[str, Tensor], tokens: Tokens, seen: Seen) -> None:
    """`attention_sum_without_lines` is added to where it arises."""
    grouped.add(states, "attention_to_kind_sum", tokens, seen.attention_to)
    grouped.add(states, "line_kind_count", tokens, seen.lines)
    grouped.add(states, "token_kind_count", tokens, grouped.of_every_head(tokens.kind_count, seen.pairs))


def _attention_to(
    kind: str, label: str, definition: str, needs: Traits, profile: bool, overview: bool = False
) -> Column:
    place = KINDS.index("word" if kind == "patch" else kind)

    def value(arrays: Arrays) -> Ratio:
        received = arrays["attention_to_kind_sum"]
        return Ratio(received[..., place], received.sum(-1))

    return Column(
        f"attention_to_{kind}",
        label,
        "share",
        "attention",
        f"Share of all attention that {definition}",
        value,
        needs=needs,
        profile=profile,
        overview=overview,
    )


def _per_window(arrays: Arrays) -> Ratio:
    return Ratio(arrays["line_kind_count"].sum(-1), arrays["windows"])


def _on_separators(arrays: Arrays) -> Ratio:
    lines = arrays["line_kind_count"]
    return Ratio(lines[..., :WORD].sum(-1), lines.sum(-1))


MEASURE = Measure(
    states={
        "attention_sum_without_lines": State("LHSS", "float64"),
        "attention_to_kind_sum": State("LHGK", "float64"),
        "line_kind_count": State("LHGK", "int64"),
        "token_kind_count": State("LHGK", "int64"),
    },
    columns=(
        _attention_to(
            "first",
            "to the first token",
            "the token at position 0 receives, whatever it is ([CLS] in BERT). The shares of all kinds of token add up "
            "to 1.",
            frozenset(),
            profile=True,
            overview=True,
        ),
        _attention_to(
            "special", "to special tokens", "other special tokens receive ([SEP]).", frozenset(), profile=True
        ),
        _attention_to(
            "sentence_end",
            "to sentence ends",
            "tokens that end sentences receive: . ! ? and those of other scripts.",
            WORDS,
            profile=True,
            overview=True,
        ),
        _attention_to("comma", "to commas", "commas receive.", WORDS, profile=True),
        _attention_to(
            "punctuation",
            "to other punctuation",
            "other tokens made of punctuation or symbols receive.",
            WORDS,
            profile=True,
        ),
        _attention_to("word", "to words", "words and pieces of words receive.", WORDS, profile=False),
        _attention_to("patch", "to patches", "the patches of the image receive.", PATCHES, False),
        Column(
            "lines_per_window",
            "lines a window",
            "count",
            "lines and blocks",
            "A line is a column of the attention map whose sum, divided by the largest column sum, is above the line "
            "threshold: a token that many tokens look at. This is their mean number.",
            _per_window,
            profile=True,
        ),
        Column(
            "line_separator_share",
            "lines on separators",
            "share",
            "lines and blocks",
            "Of all lines, the share on separators: the first token, special tokens, and punctuation of any kind.",
            _on_separators,
            needs=WORDS,
            profile=True,
            overview=True,
        ),
    ),
    update=update,
)
