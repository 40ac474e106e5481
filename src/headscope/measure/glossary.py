"""What every column of the tables means, in words that need no other page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Unit = Literal["share", "tokens", "count", "number", "difference"]
Group = Literal["run", "pairs", "repeats and sentences", "attention", "lines and blocks"]


@dataclass(frozen=True)
class Term:
    """A column: what a table calls it, what it is counted in, its group, its definition, the column of its chance."""

    label: str
    unit: Unit
    group: Group
    definition: str
    chance: str | None = None


COLUMNS: dict[str, Term] = {
    "layer": Term("layer", "number", "run", "Number of the layer; the first is 0."),
    "head": Term("head", "number", "run", "Number of the head within its layer; the first is 0."),
    "windows": Term("windows", "count", "run", "Windows that were measured."),
    "pairs": Term(
        "high pairs",
        "count",
        "pairs",
        "High pairs over all windows: unordered pairs of tokens i < j whose similarity N, in this head and window, "
        "is above the threshold.",
    ),
    "pairs_per_window": Term("high pairs a window", "count", "pairs", "High pairs divided by windows."),
    "mean_distance": Term(
        "distance", "tokens", "pairs", "Mean of j - i over all high pairs: how many tokens apart the two tokens are."
    ),
    "repeat_probability": Term(
        "repeats",
        "share",
        "repeats and sentences",
        "Of a window's high pairs, the share whose two tokens are equal (the same entry of the vocabulary); "
        "mean over the windows that have high pairs.",
        chance="repeat_chance",
    ),
    "repeat_probability_in_sentence": Term(
        "repeats in a sentence",
        "share",
        "repeats and sentences",
        "The same share among the high pairs that lie within one sentence.",
    ),
    "repeat_chance": Term(
        "repeats by chance",
        "share",
        "repeats and sentences",
        "What chance gives: the share of equal tokens among all pairs of the same windows.",
    ),
    "same_sentence_probability": Term(
        "same sentence",
        "share",
        "repeats and sentences",
        "Of a window's high pairs, the share within one sentence; mean over the windows that have high pairs. "
        "Special tokens belong to no sentence.",
        chance="same_sentence_chance",
    ),
    "same_sentence_chance": Term(
        "same sentence by chance",
        "share",
        "repeats and sentences",
        "What chance gives: the share within one sentence among all pairs of the same windows.",
    ),
    "focal_share": Term(
        "focal share",
        "share",
        "pairs",
        "The focal token of a window is the token that occurs in the most high pairs (a pair of two equal tokens "
        "counts once; ties go to the lower number in the vocabulary). This is the share of the high pairs that include "
        "it; mean over the windows that have high pairs.",
    ),
    "attention_self": Term("on itself", "share", "attention", "Mean attention weight of a token on itself, A[i, i]."),
    "attention_previous": Term(
        "on the previous", "share", "attention", "Mean attention weight of a token on the one before it, A[i, i-1]."
    ),
    "attention_next": Term(
        "on the next", "share", "attention", "Mean attention weight of a token on the one after it, A[i, i+1]."
    ),
    "attention_to_first": Term(
        "to the first token",
        "share",
        "attention",
        "Share of all attention that the token at position 0 receives, whatever it is ([CLS] in BERT). The six shares "
        "of attention add up to 1.",
    ),
    "attention_to_special": Term(
        "to special tokens", "share", "attention", "Share of all attention that other special tokens receive ([SEP])."
    ),
    "attention_to_sentence_end": Term(
        "to sentence ends", "share", "attention", "Share of all attention that the tokens . ! and ? receive."
    ),
    "attention_to_comma": Term("to commas", "share", "attention", "Share of all attention that commas receive."),
    "attention_to_punctuation": Term(
        "to other punctuation",
        "share",
        "attention",
        "Share of all attention that other tokens made of punctuation or symbols receive.",
    ),
    "attention_to_word": Term(
        "to words", "share", "attention", "Share of all attention that words and pieces of words receive."
    ),
    "lines_per_window": Term(
        "lines a window",
        "count",
        "lines and blocks",
        "A line is a column of the attention map whose sum, divided by the largest column sum, is above the line "
        "threshold: a token that many tokens look at. This is their mean number.",
    ),
    "line_separator_share": Term(
        "lines on separators",
        "share",
        "lines and blocks",
        "Of all lines, the share on separators: the first token, special tokens, and punctuation of any kind.",
    ),
    "block_contrast": Term(
        "block contrast",
        "difference",
        "lines and blocks",
        "Lines cut a window into blocks; a line closes its block. Mean of N over the pairs within one block, less its "
        "mean over all other pairs; mean over windows. Above 0, the head's outputs are more alike within blocks.",
    ),
    "unique_focal_tokens": Term(
        "different focal tokens",
        "count",
        "pairs",
        "How many different focal tokens the heads of the layer have in a window; mean over windows.",
    ),
}
