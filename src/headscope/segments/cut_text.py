"""A text and the segments it was cut into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.alone import Span
from headscope.segments.wishes import Level, Using
from headscope.wording import counted, in_words, listed, model_label

if TYPE_CHECKING:
    import pandas as pd

ALIKE = 1.2
"""Times the mean weight: where no head has more, none is named."""
SHOWN = 5
"""Heads that are named in one line."""
USED = {"heads": "head vectors", "pooled": "pooled vectors", "both": "head and pooled vectors"}


@dataclass(frozen=True)
class Segment:
    """A piece of a text: characters from `start` to before `end`, sentences from `first_sentence` to `last_sentence`,
    all counted from 0. score: how clear the boundary at its start is, 0 to 1; the start of the text has 1."""

    start: int
    end: int
    score: float
    first_sentence: int
    last_sentence: int


@dataclass(frozen=True, repr=False, eq=False)
class CutText:
    """The segments of one text, and what they follow from.

    sentences: as the splitter finds them; together they are the text. places, scores: (m,), the characters at which a
    segment could begin and how clear a boundary there is, 0.5 being just clear enough at granularity 1.
    layers: those whose heads were used; head_layers, contrasts, weights: (L,) and (L, H) of these.
    notices: what a reader should know, a sentence each.
    """

    text: str
    origin: str
    model_name: str
    level: Level
    using: Using
    sentences: Sequence[Span]
    segments: list[Segment]
    places: NDArray[np.int64]
    scores: NDArray[np.float64]
    layers: list[int]
    contrasts: NDArray[np.float64]
    weights: NDArray[np.float64]
    notices: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.segments)

    def pieces(self) -> list[str]:
        """The text of each segment; joined, they are the text."""
        return [self.text[segment.start : segment.end] for segment in self.segments]

    def to_frame(self) -> pd.DataFrame:
        """A row a segment: its columns are the fields of `Segment`, and `text`."""
        import pandas as pd

        columns = list(Segment.__dataclass_fields__)
        table = pd.DataFrame([asdict(segment) for segment in self.segments], columns=columns)
        return table.assign(text=self.pieces())

    @property
    def heads(self) -> pd.DataFrame:
        """The choice of heads, the weightiest first: layer, head, contrast and weight; the weights add up to 1.

        contrast: for topics, how much more alike near sentences are in it than far ones; for sentences, how much
        oftener characters that end sentences are lines in it than others.
        """
        import pandas as pd

        layer, head = np.divmod(np.arange(self.weights.size), max(self.weights.shape[1], 1))
        table = pd.DataFrame(
            {
                "layer": np.array(self.layers, np.int64)[layer],
                "head": head,
                "contrast": self.contrasts.reshape(-1),
                "weight": self.weights.reshape(-1),
            }
        )
        return table.sort_values("weight", ascending=False, kind="stable", ignore_index=True)

    def as_json(self) -> list[dict[str, Any]]:
        """A list of start, end, score, first_sentence and last_sentence."""
        return [{**asdict(segment), "score": round(segment.score, 4)} for segment in self.segments]

    @property
    def about(self) -> str:
        """What was cut by what, in one line."""
        what = "segment" if self.level == "topics" else "sentence-like unit"
        used = USED[self.using] if self.level == "topics" else "attention lines"
        told = [
            f"{counted(len(self.segments), what)} of {counted(len(self.sentences), 'sentence')}",
            model_label(self.model_name),
            used + (f" of {in_words(self.layers)}" if self.layers else ""),
        ]
        return " · ".join(told)

    @property
    def about_heads(self) -> str:
        """The heads that had the most weight, in one line; empty where none had any."""
        if not self.weights.size:
            return ""
        rows = self.heads.head(SHOWN).to_dict("records")
        named = [f"{row['layer']}.{row['head']} ({row['weight'] * 100:.0f} %)" for row in rows]
        weighty = int(np.count_nonzero(self.weights))
        all_heads = counted(weighty, "head")
        if self.weights.max() < ALIKE * self.weights.sum() / weighty:
            return f"No head of {all_heads} stands out."
        return f"Weightiest of {all_heads}, as layer.head: {listed(named)}."

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.about})"


def segments_of(text: str, starts: Sequence[int], scores: Sequence[float], sentences: Sequence[Span]) -> list[Segment]:
    """Segments that begin at these characters, the first at 0; scores: of each. Together they are the text."""
    begins = np.array([sentence.start for sentence in sentences])
    ends = [*starts[1:], len(text)]
    found = []
    for start, end, score in zip(starts, ends, scores, strict=True):
        first, last = (int(np.searchsorted(begins, place, side="right")) - 1 for place in (start, end - 1))
        found.append(Segment(int(start), int(end), float(score), first, last))
    return found
