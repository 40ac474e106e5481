"""Nulls as windows: what is shuffled, what stays, and that nothing but seed and number decides the order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.corpus.kinds import KINDS, kind_of
from headscope.corpus.nulls import NullWindows, shuffled_sentences, shuffled_tokens
from headscope.corpus.sampling import Spread
from headscope.corpus.sentences import sentence_starts
from headscope.corpus.texts import Text, as_texts
from headscope.corpus.windows import Counts, Cutter, Window
from headscope.options import Options

TEXTS = [
    "The kettle sang. A cat, grey and old, slept on the mat; the cat dreamt of fish. Nobody spoke!",
    "Rain fell on the harbour. Boats rocked. Was anyone awake? The watchman was, and the watchman yawned.",
]


def windows(tokenizer, length: int = 16) -> list[Window]:
    cutter = Cutter(tokenizer, Options(length=length, short="pad"))
    return [window for text in TEXTS for window in cutter.cut(Text("made up", text), Counts())]


@given(total=st.integers(1, 300), share=st.floats(0.01, 1))
def test_a_spread_takes_as_many_windows_as_it_says_in_even_steps(total: int, share: float) -> None:
    taken = max(1, int(total * share))
    spread = Spread(total, taken)
    places = [window for window in range(total) if spread.holds(window)]
    assert len(places) == taken
    steps = np.diff(places)
    assert len(steps) == 0 or steps.max() - steps.min() <= 1


def test_shuffled_tokens_are_the_same_tokens_and_sentences_stay(tiny) -> None:
    for number, window in enumerate(windows(tiny.tokenizer)):
        other = shuffled_tokens(window, number, seed=0)
        assert Counter(other.ids.tolist()) == Counter(window.ids.tolist())
        np.testing.assert_array_equal(other.sentence, window.sentence)
        np.testing.assert_array_equal(other.special, window.special)
        np.testing.assert_array_equal(other.ids[window.special], window.ids[window.special])
        np.testing.assert_array_equal(other.ids[window.size :], window.ids[window.size :])
        assert other.size == window.size


def test_a_shuffled_token_takes_its_kind_and_its_characters_along(tiny) -> None:
    for number, window in enumerate(windows(tiny.tokenizer)):
        other = shuffled_tokens(window, number, seed=3)
        for place in np.flatnonzero(~other.special[: other.size]):
            piece = window.text.text[other.start[place] : other.end[place]]
            assert KINDS[other.kind[place]] == KINDS[kind_of(piece.strip())]
        assert KINDS[other.kind[0]] == "first"


def test_without_special_tokens_the_first_may_move_and_whatever_comes_first_is_of_that_kind() -> None:
    ids = np.arange(6)
    text = Text("made up", "a , b . c d")
    start = np.array([0, 2, 4, 6, 8, 10])
    kind = np.array([KINDS.index(name) for name in ("first", "comma", "word", "sentence_end", "word", "word")], np.int8)
    window = Window(ids, 6, np.zeros(6, np.int32), kind, np.zeros(6, bool), start, start + 1, text)
    moved = next(
        other for seed in range(20) if (other := shuffled_tokens(window, 0, seed)).ids[0] == 1 and other.ids[1] == 0
    )
    assert [KINDS[kind] for kind in moved.kind[:2]] == ["first", "word"]


def test_the_order_depends_on_seed_and_number_alone(tiny) -> None:
    window = windows(tiny.tokenizer)[0]
    one, again, other_number, other_seed = (
        shuffled_tokens(window, *draw).ids.tolist() for draw in ((5, 0), (5, 0), (6, 0), (5, 1))
    )
    assert one == again
    assert one != other_number
    assert one != other_seed


@given(
    st.lists(st.sampled_from(["It rained.", "Who came?", "Nobody, he said.", "So it goes."]), min_size=1, max_size=8)
)
def test_shuffled_sentences_are_the_same_sentences(sentences: list[str]) -> None:
    text = " ".join(sentences) + "\n"
    other = shuffled_sentences(Text("made up", text), 0, 0, "english").text
    assert len(other) == len(text)
    assert Counter(pieces(other)) == Counter(pieces(text))


def pieces(text: str) -> list[str]:
    starts = sentence_starts(text, "english")
    return [text[begin:end].strip() for begin, end in zip(starts, [*starts[1:], len(text)], strict=True)]


@pytest.mark.parametrize("null", ["tokens", "sentences", "weights"])
def test_a_null_source_gives_the_windows_asked_for_and_hashes_the_texts_as_they_are(null, tiny) -> None:
    options = Options(length=16)
    source = NullWindows(null, Spread(2, 1), as_texts(TEXTS), tiny.tokenizer, options, 16)
    plain = NullWindows("weights", Spread(2, 2), as_texts(TEXTS), tiny.tokenizer, options, 16)
    found, every = list(source.windows(None)), list(plain.windows(None))
    assert source.made == len(found) < len(every)
    assert source.sha256 == plain.sha256
    assert {window.text_number for window in every} == {0, 1}
