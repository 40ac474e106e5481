"""Sentence-like units by attention lines, held against a rule-based splitter on the sample texts."""

from __future__ import annotations

import headscope
from headscope.corpus.kinds import SENTENCE_END, kind_of
from headscope.corpus.sentences import sentence_starts
from headscope.corpus.tokenizing import tokens_of
from headscope.model.loading import Model

ADDED = [
    "harbour-pilot",
    "human-heart",
    "lake-titicaca",
    "lentil-soup",
    "lost-umbrella",
    "mirage",
    "opening-a-web-page",
    "planets-in-figures",
    "reading-room-notice",
    "retrying-requests",
    "silent-film",
    "timbuktu",
    "town-clock",
    "x-rays",
]
"""Sample texts that came after the settings were chosen; without them the others stand in the order of that time."""


def sentence_table(model: Model) -> list[str]:
    """Precision, recall and F1 of the characters at which units begin, nupunkt's being the reference.

    The settings were chosen on the first, third, ... of the articles; what is reported is of the others.
    """
    added = {f"sample/{name}.txt" for name in ADDED}
    texts = [text.text for text in headscope.sample_texts() if text.origin not in added][1::2]
    lines = [f"sentence-like units, {len(texts)} sample texts, against nupunkt", ""]
    lines += ["| | precision | recall | F1 |", "|---|---|---|---|"]
    for name, starts in (("attention lines", _by_lines), ("after every . ! ?", _by_marks)):
        right = ours = theirs = 0
        for text in texts:
            found, reference = starts(model, text), {*sentence_starts(text, "english")[1:]}
            right, ours, theirs = right + len(found & reference), ours + len(found), theirs + len(reference)
        precision, recall = right / max(ours, 1), right / max(theirs, 1)
        f1 = 2 * right / max(ours + theirs, 1)
        lines.append(f"| {name} | {precision:.3f} | {recall:.3f} | {f1:.3f} |")
    return [*lines, ""]


def _by_lines(model: Model, text: str) -> set[int]:
    return {segment.start for segment in headscope.segment(model, text, level="sentences").segments[1:]}


def _by_marks(model: Model, text: str) -> set[int]:
    """Where white space follows a token that ends sentences by Unicode's property."""
    found = set()
    for token in tokens_of(model.tokenizer, text):
        rest = text[token.end :]
        if kind_of(text[token.start : token.end].strip()) == SENTENCE_END and rest[:1].isspace() and rest.strip():
            found.add(len(text) - len(rest.lstrip()))
    return found
