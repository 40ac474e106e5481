"""Segmentations on one page: the text tinted by segment, and beneath it how clear a boundary would be at each place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.segments.cut_text import CutText
from headscope.show.pages.templates import environment
from headscope.wording import abridged, short

TINTS = 4
"""Colours that segments take turns in; the page's style has as many."""
POINTS = 1200
"""Of the curve: of a longer text, the clearest of several neighbours."""
WIDTH, HEIGHT = 1000, 120
"""Of the picture, in its own units."""
HEADS = 12
"""Heads in the table."""
SNIPPET = 12
"""Segments in a notebook."""


@dataclass(frozen=True)
class Curve:
    """points: for a polygon; marks: of each boundary, its place, its height and its number; strips: of each segment,
    its place, its width and its tint."""

    points: str
    marks: list[tuple[float, float, int]]
    strips: list[tuple[float, float, int]]


def page(cuts: Sequence[CutText]) -> str:
    parts = [_parts(cut) for cut in cuts]
    return environment().get_template("segments.html").render(cuts=parts, width=WIDTH, height=HEIGHT)


def snippet(cut: CutText) -> str:
    """For notebooks: the first segments, and the curve."""
    parts = _parts(cut)
    shown = parts["segments"][:SNIPPET]
    for segment in shown:
        segment["text"] = abridged(segment["text"])
    return environment().get_template("segments_snippet.html").render(
        **{**parts, "segments": shown}, more=len(parts["segments"]) - len(shown), width=WIDTH, height=HEIGHT
    )  # fmt: skip


def curve(cut: CutText) -> Curve:
    """Across: the place in the text. Up: the score; the start of the text, which is no boundary, is left out."""
    inside = cut.places > 0
    across = cut.places[inside] / len(cut.text) * WIDTH
    score = cut.scores[inside]
    if len(score) > POINTS:
        groups = np.array_split(np.arange(len(score)), POINTS)
        best = [int(group[score[group].argmax()]) for group in groups]
        across, score = across[best], score[best]
    points = [f"{x:.1f},{HEIGHT - y * HEIGHT:.1f}" for x, y in zip(across.tolist(), score.tolist(), strict=True)]
    ends = [f"0,{HEIGHT}", *points, f"{WIDTH},{HEIGHT}"]
    marks = [
        (segment.start / len(cut.text) * WIDTH, HEIGHT - segment.score * HEIGHT, number)
        for number, segment in enumerate(cut.segments)
        if number
    ]
    strips = [
        (segment.start / len(cut.text) * WIDTH, (segment.end - segment.start) / len(cut.text) * WIDTH, number % TINTS)
        for number, segment in enumerate(cut.segments)
    ]
    return Curve(" ".join(ends), marks, strips)


def _parts(cut: CutText) -> dict[str, Any]:
    return {
        "about": cut.about,
        "origin": short(cut.origin, 80),
        "about_heads": cut.about_heads,
        "notices": cut.notices,
        "topics": cut.level == "topics",
        "segments": [
            {
                "number": number,
                "tint": number % TINTS,
                "text": piece,
                "score": f"{segment.score:.2f}",
                "first": segment.first_sentence,
                "last": segment.last_sentence,
            }
            for number, (segment, piece) in enumerate(zip(cut.segments, cut.pieces(), strict=True))
        ],
        "curve": curve(cut),
        "heads": cut.heads.head(HEADS).to_dict("records") if cut.weights.size else [],
    }
