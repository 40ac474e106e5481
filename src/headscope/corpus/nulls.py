"""Windows that a model could not have learned from: the same tokens or sentences, in random order.

The order is drawn from the seed and the number of the window or text, so it does not depend on how a study runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.kinds import FIRST, SPECIAL, kind_of
from headscope.corpus.null_kinds import NULLS, Null
from headscope.corpus.sampling import Spread
from headscope.corpus.sentences import sentence_starts
from headscope.corpus.text_windows import TextWindows
from headscope.corpus.texts import Text
from headscope.corpus.windows import Window
from headscope.options import Sentences


def shuffled_tokens(window: Window, number: int, seed: int) -> Window:
    """The ids of a window in random order, special tokens apart; sentences stay where they were. A token takes its
    kind, and the characters that it covers, along with it; whatever comes to stand first is of the kind `first`."""
    moved = np.flatnonzero(~window.special[: window.size])
    drawn = _draws(seed, "tokens", number).permutation(moved)
    ids, kind, start, end = window.ids.copy(), window.kind.copy(), window.start.copy(), window.end.copy()
    ids[moved], start[moved], end[moved] = window.ids[drawn], window.start[drawn], window.end[drawn]
    kind[moved] = [_kind(window, place) for place in drawn]
    kind[0] = FIRST
    return replace(window, ids=ids, kind=kind, start=start, end=end)


def _kind(window: Window, place: int) -> int:
    """Of a token, wherever it stands."""
    if window.kind[place] not in (FIRST, SPECIAL):
        return int(window.kind[place])
    if window.special[place]:
        return SPECIAL
    return kind_of(window.text.text[window.start[place] : window.end[place]].strip())


def shuffled_sentences(text: Text, number: int, seed: int, how: Sentences) -> Text:
    """A text whose sentences stand in random order; the white space between them stays where it was. Of a pair, each of
    the two texts by itself.

    >>> shuffled_sentences(Text("", "One is here. Two is\\nthere.\\n\\nThree is gone."), 0, 1, "english").text
    'Three is gone. One is here.\\n\\nTwo is\\nthere.'
    """
    first = _shuffled(text.text, _draws(seed, "sentences", number), how)
    second = None if text.second is None else _shuffled(text.second, _draws(seed, "sentences", number, 1), how)
    return text._replace(text=first, second=second)


def _shuffled(text: str, draws: np.random.Generator, how: Sentences) -> str:
    starts = sentence_starts(text, how)
    pieces = [text[begin:end] for begin, end in zip(starts, [*starts[1:], None], strict=True)]
    bare = [piece.strip() for piece in pieces]
    before = text[: len(text) - len(text.lstrip())]
    after = [piece[len(piece.rstrip()) :] for piece in pieces]
    order = draws.permutation(len(pieces))
    return before + "".join(bare[place] + space for place, space in zip(order, after, strict=True))


def shuffled_runs(window: Window, seed: int) -> Window:
    """Token ids whose sentences stand in random order, each within its own stretch between two added tokens. Tokens
    keep their order within a sentence; token types stay where they were."""
    draws = _draws(seed, "sentences", window.text_number)
    order = np.arange(len(window.ids))
    sentence = window.sentence.copy()
    for stretch in _stretches(window):
        label = _filled(window.sentence[stretch])
        numbers = np.unique(label)
        drawn = [int(number) for number in draws.permutation(numbers)]
        order[stretch] = np.concatenate([stretch[label == number] for number in drawn])
        renamed = np.repeat(numbers, [int((label == number).sum()) for number in drawn])
        sentence[stretch] = np.where(window.sentence[order[stretch]] < 0, -1, renamed)
    kind = window.kind.copy()
    kind[: window.size] = [_kind(window, place) for place in order[: window.size]]
    kind[0] = FIRST
    return replace(
        window,
        ids=window.ids[order],
        sentence=sentence,
        kind=kind,
        special=window.special[order],
        start=window.start[order],
        end=window.end[order],
    )


def _stretches(window: Window) -> list[NDArray[np.int64]]:
    """The places between tokens that were added to texts, where there are sentences."""
    size = window.size
    content = np.flatnonzero(~(window.special[:size] & (window.start[:size] == window.end[:size])))
    runs = np.split(content, np.flatnonzero(np.diff(content) > 1) + 1)
    return [run for run in runs if (window.sentence[run] >= 0).any()]


def _filled(sentence: NDArray[np.int32]) -> NDArray[np.int32]:
    """A special token within a sentence, `[MASK]`, has no number: here it has that of the token before it."""
    known = np.flatnonzero(sentence >= 0)
    return sentence[known[np.maximum(np.searchsorted(known, np.arange(len(sentence)), "right") - 1, 0)]]


def _draws(seed: int, null: Null, number: int, *more: int) -> np.random.Generator:
    return np.random.default_rng((seed % 2**64, NULLS.index(null), number, *more))


class NullWindows(TextWindows):
    """The windows of texts as a null has them, evenly spread ones where not all are asked for (see `run.source`). Of a
    sampled study, they are spread over its sample.

    `weights` leaves them as they are: there, it is the model that knows nothing.
    """

    def __init__(self, null: Null, spread: Spread, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._null = null
        self._spread = spread
        self._taken = 0

    @property
    def made(self) -> int:
        return self._taken

    @property
    def expected(self) -> int | None:
        return self._spread.taken

    def windows(self, wanted: Callable[[int], bool] | None) -> Iterator[Window]:
        for window in super().windows(self._spread.holds):
            if self._null == "tokens":
                window = shuffled_tokens(window, self.counts.windows - 1, self._options.seed)
            if self._null == "sentences" and window.text.given is not None:
                window = shuffled_runs(window, self._options.seed)
            self._taken += 1
            yield window

    def _hashed(self) -> Iterator[Text]:
        for number, text in enumerate(super()._hashed()):
            if self._null == "sentences":
                yield shuffled_sentences(text, number, self._options.seed, self._options.sentences)
            else:
                yield text
