"""`headscope.segment`: a text, cut where the model does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from headscope.arguments import naming_typos
from headscope.corpus.alone import Alone, Group, Span, sentence_spans
from headscope.corpus.texts import Text, as_texts, only_text
from headscope.corpus.windows import Counts, Cutter, refuse_unknown, unknown_notice
from headscope.errors import HeadscopeError
from headscope.model.capture import Capture
from headscope.model.loading import Model, as_model
from headscope.model.proof import prove
from headscope.options import Options, Sentences, Stack
from headscope.progress import Bar
from headscope.segments import line_units
from headscope.segments.change_points import Sums, cut_into, cut_with_penalty, gains_of
from headscope.segments.cut_text import CutText, segments_of
from headscope.segments.how_many import penalty_of
from headscope.segments.sentence_vectors import Reader, Vectors, last_third
from headscope.segments.space import Array, space_of
from headscope.segments.wishes import Level, Using, Wishes
from headscope.show.objects import Segmentation
from headscope.speaking import option
from headscope.wording import counted

LONGEST = 512
"""Tokens of a sentence that are read; a model may take fewer."""
SAMPLE, RUNS = 2048, 8
"""Of a longer text so many sentences, in so many runs spread evenly over it, say what the text is like."""
PROVED = 8
"""Sentences among which the windows of the proof are chosen."""
CHARACTERS_A_TOKEN = 4
"""About, in English: how many tokens a text has is not known before they are read."""


@naming_typos()
def segment(
    model: Model | str,
    text: Any,
    *,
    level: Level = "topics",
    segments: int | None = None,
    granularity: float = 1.0,
    using: Using = "both",
    lines: bool = False,
    sentences: Sentences = "auto",
    layers: Sequence[int] | None = None,
    stack: Stack | None = None,
    progress: bool = False,
) -> Segmentation:
    """Cut a text where the model does: into topics, or into sentence-like units.

    text: a string, or the `Path` of a file, of any length. level: "topics" (runs of sentences that hang together) or
    "sentences" (by attention lines). segments: how many; if not given, the text decides, and a `granularity` of 2 cuts
    where a boundary is half as clear. using: the vectors of the heads, pooled ones (the mean of the last hidden
    vectors), or both. lines: every line is a sentence. layers: whose heads are used; by default the last third, for
    sentences all.

    >>> import headscope
    >>> cut = headscope.segment("minilm", "The cat sat. The cat slept. Stocks fell. Bonds rose.")  # doctest: +SKIP
    >>> cut.segments, cut.heads  # doctest: +SKIP
    """
    wishes = Wishes(
        level, segments, granularity, using, "lines" if lines else sentences,
        None if layers is None else tuple(layers), stack,
    )  # fmt: skip
    return next(segment_all(model, [_given(text)], wishes, progress))


def segment_all(
    model: Model | str, texts: Iterable[Text], wishes: Wishes, progress: bool = False
) -> Iterator[Segmentation]:
    """The same for several texts with one model, whose capture is proved on the first of them."""
    cutter = _Segmenter(as_model(model), wishes)
    for text in texts:
        with Bar("segmenting", cutter.unit, shown=progress) as bar:
            cut = cutter.cut(text, bar)
        yield Segmentation(**{item.name: getattr(cut, item.name) for item in fields(cut)})


def _given(text: Any) -> Text:
    if isinstance(text, Text):
        return text
    if not isinstance(text, (str, Path)):
        raise HeadscopeError(f"The text is of type {type(text).__name__}; give a string, or the Path of a file.")
    if isinstance(text, str):
        if not text.strip():
            raise HeadscopeError("The text is empty; there is nothing to cut.")
        return next(iter(as_texts([text])))._replace(origin="")
    found = only_text(as_texts(text))
    if found is None:
        raise HeadscopeError(f"{text} holds no text; there is nothing to cut.")
    return found


class _Segmenter:
    """Cuts one text after the other with one model; its capture is proved on the first."""

    def __init__(self, model: Model, wishes: Wishes) -> None:
        self._model = model
        self._wishes = wishes
        self._capture = Capture(model.network, wishes.stack)
        if not self._capture.reads_text:
            raise HeadscopeError(f"{model.name} takes images, not texts; segment needs a model that reads texts.")
        self._longest = min(LONGEST, model.longest or LONGEST)
        measurable = self._capture.measurable
        if wishes.layers is not None:
            self._layers = self._capture.chosen_layers(wishes.layers)
        elif wishes.level == "topics":
            self._layers = last_third(measurable)
        else:
            self._layers = measurable
        self._proved = False

    @property
    def unit(self) -> str:
        return "sentences" if self._wishes.level == "topics" else "tokens"

    def cut(self, text: Text, bar: Bar) -> CutText:
        if not text.text.strip():
            raise HeadscopeError(f"{text.origin or 'The text'} is empty; there is nothing to cut.")
        spans = sentence_spans(text.text, self._wishes.sentences)
        return self._topics(text, spans, bar) if self._wishes.level == "topics" else self._units(text, spans, bar)

    def _topics(self, text: Text, spans: list[Span], bar: Bar) -> CutText:
        wishes, count = self._wishes, len(spans)
        if wishes.segments is not None and wishes.segments > count:
            raise HeadscopeError(
                f"{option('segments')} is {wishes.segments}, but {text.origin or 'the text'} has "
                f"{counted(count, 'sentence')}; "
                "ask for as many or fewer."
            )
        bar.expect(count, exact=True)
        alone = Alone(self._model.tokenizer, self._longest, self._model.embedding_rows)
        reading = _Reading(text.text, spans, alone)
        example = reading.example()
        if example is None:
            raise HeadscopeError(f"{text.origin or 'The text'} holds no token of this model; there is nothing to cut.")
        self._prove(example)
        reader = Reader(self._capture, alone, self._layers, wishes.using, example)
        runs = _sample(count)
        vectors = [reader.read(reading.ids(run), bar.advance) for run in runs]
        refuse_unknown(alone.counts, self._model.name)
        space = space_of(vectors, whole=len(runs) == 1)
        placed = self._placed(reader, reading, runs, vectors, space.place, bar)
        del vectors
        penalty = penalty_of([placed[run.start : run.stop] for run in runs], count)
        sums = Sums(placed)
        if wishes.segments is None:
            cut = cut_with_penalty(sums, penalty / wishes.granularity)
        else:
            cut = cut_into(sums, wishes.segments)
        gains = gains_of(sums, cut)
        scores = np.divide(gains, gains + penalty, out=np.zeros(count), where=gains > 0)
        scores[0] = 1
        starts = [spans[first].start for first in cut]
        return CutText(
            text=text.text,
            origin=text.origin,
            model_name=self._model.name,
            level="topics",
            using=wishes.using,
            sentences=spans,
            segments=segments_of(text.text, starts, scores[cut].tolist(), spans),
            places=np.array([span.start for span in spans], np.int64),
            scores=scores,
            layers=list(self._layers) if wishes.using != "pooled" else [],
            contrasts=space.contrasts,
            weights=space.weights,
            notices=self._notices(alone),
        )

    def _placed(
        self,
        reader: Reader,
        reading: _Reading,
        runs: list[range],
        vectors: list[Vectors],
        place: Callable[[Vectors], Array],
        bar: Bar,
    ) -> Array:
        """All sentences in their space, (n, D): those of the runs, and then what lies between them, read piece by
        piece so that only what is needed of each sentence is kept."""
        parts: list[tuple[int, Array]] = [(run.start, place(of_run)) for run, of_run in zip(runs, vectors, strict=True)]
        for begin, end in zip(
            [0, *(run.stop for run in runs)], [*(run.start for run in runs), len(reading)], strict=True
        ):
            for first in range(begin, end, SAMPLE // RUNS):
                some = range(first, min(first + SAMPLE // RUNS, end))
                parts.append((first, place(reader.read(reading.ids(some), bar.advance))))
        return np.concatenate([part for _, part in sorted(parts, key=lambda part: part[0])])

    def _units(self, text: Text, spans: list[Span], bar: Bar) -> CutText:
        wishes, model = self._wishes, self._model
        first = self._first_window(text)
        if first is None:
            raise HeadscopeError(f"{text.origin or 'The text'} holds no token of this model; there is nothing to cut.")
        self._prove(first)
        bar.expect(len(text.text) // CHARACTERS_A_TOKEN, exact=False)
        lines = line_units.lines_of(self._capture, model.tokenizer, text.text, self._layers, self._longest, bar.advance)
        contrasts = line_units.watching(lines)
        weights = line_units.weights_of(contrasts)
        places, votes = line_units.unit_starts(text.text, lines, line_units.votes_of(lines, weights))
        scores = line_units.score_of(votes)
        if wishes.segments is None:
            chosen = np.flatnonzero(scores > wishes.threshold)
        elif wishes.segments - 1 > len(places):
            raise HeadscopeError(
                f"{option('segments')} is {wishes.segments}, but {text.origin or 'the text'} can be cut in "
                f"{counted(len(places), 'place')} at most; ask for fewer."
            )
        else:
            chosen = np.sort(np.argsort(-scores, kind="stable")[: wishes.segments - 1])
        starts = [0, *places[chosen].tolist()]
        return CutText(
            text=text.text,
            origin=text.origin,
            model_name=model.name,
            level="sentences",
            using="heads",
            sentences=spans,
            segments=segments_of(text.text, starts, [1.0, *scores[chosen].tolist()], spans),
            places=places,
            scores=scores,
            layers=list(self._layers),
            contrasts=contrasts,
            weights=weights,
            notices=model.notices,
        )

    def _first_window(self, text: Text) -> Group | None:
        options = Options(length=min(line_units.WINDOW, self._longest), windows="first", short="pad")
        counts = Counts()
        window = next(Cutter(self._model.tokenizer, options, self._model.embedding_rows).cut(text, counts), None)
        refuse_unknown(counts, self._model.name)
        if window is None:
            return None
        ids = window.ids[None, : window.size]
        return Group(np.zeros(1, np.int64), ids, np.ones_like(ids))

    def _prove(self, example: Group) -> None:
        if not self._proved:
            ids, mask = (torch.from_numpy(array).to(self._model.device) for array in (example.ids, example.mask))
            prove(self._capture, ids, mask)
        self._proved = True

    def _notices(self, alone: Alone) -> tuple[str, ...]:
        told = [*self._model.notices]
        if alone.cut:
            told.append(
                f"{counted(alone.cut, 'sentence')} longer than {self._longest} tokens: only the beginning was read."
            )
        if alone.empty:
            told.append(f"{counted(alone.empty, 'sentence')} without a token of this model: left out of the reckoning.")
        unknown = unknown_notice(alone.counts.tokens, alone.counts.unknown_tokens)
        return (*told, *([unknown] if unknown else []))


class _Reading:
    """The sentences of a text, tokenized as they are asked for."""

    def __init__(self, text: str, spans: list[Span], alone: Alone) -> None:
        self._text = text
        self._spans = spans
        self._alone = alone

    def __len__(self) -> int:
        return len(self._spans)

    def ids(self, which: range) -> list[list[int]]:
        spans = self._spans[which.start : which.stop]
        return self._alone.ids([self._text[span.start : span.end] for span in spans])

    def example(self) -> Group | None:
        """The first sentences that have tokens, for the proof; they are counted again when they are read."""
        for begin in range(0, len(self), PROVED):
            ids = self.ids(range(begin, min(begin + PROVED, len(self))))
            self._alone.reset()
            if any(ids):
                return self._alone.group(ids, [place for place, tokens in enumerate(ids) if tokens])
        return None


def _sample(count: int) -> list[range]:
    """The runs of sentences that say what a text is like: all of it, or RUNS of them from its start to its end."""
    if count <= SAMPLE:
        return [range(count)]
    length = SAMPLE // RUNS
    starts = [round(place) for place in np.linspace(0, count - length, RUNS)]
    return [range(start, start + length) for start in starts]
