"""A sample: as many windows as asked for, one of each run, drawn by seed and by nothing else."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.corpus.sampling import Sample
from headscope.corpus.text_windows import TextWindows, count_windows
from headscope.corpus.texts import as_texts
from headscope.errors import HeadscopeError
from headscope.options import Options

OPTIONS = Options(length=16, sample=5)


@given(total=st.integers(1, 400), share=st.floats(0.001, 1), seed=st.integers(-5, 2**70))
def test_a_sample_takes_one_window_of_each_run(total: int, share: float, seed: int) -> None:
    taken = max(1, int(total * share))
    sample = Sample(total, taken, seed)
    places = [window for window in range(total + 3) if sample.holds(window)]
    assert len(places) == taken
    bounds = [run * total // taken for run in range(taken + 1)]
    assert all(begin <= place < end for place, begin, end in zip(places, bounds, bounds[1:], strict=False))


def test_the_seed_decides_and_every_window_is_drawn_about_as_often() -> None:
    drawn = Counter(window for seed in range(2000) for window in range(20) if Sample(20, 4, seed).holds(window))
    assert sum(drawn.values()) == 8000
    assert min(drawn.values()) > 330
    one, again, other = ([window for window in range(500) if Sample(500, 20, seed).holds(window)] for seed in (1, 1, 2))
    assert one == again != other


def test_all_windows_are_their_own_sample() -> None:
    assert all(Sample(7, 7, 3).holds(window) for window in range(7))


def source(texts, tokenizer, sample: Sample | None, **more) -> TextWindows:
    return TextWindows(as_texts(texts), tokenizer, OPTIONS, 16, sample=sample, **more)


def test_sampled_windows_are_those_of_all_with_numbers_of_their_own(tiny, sample) -> None:
    texts = sample[:6]
    every = list(source(texts, tiny.tokenizer, None).windows(None))
    drawn = Sample(len(every), 5, 0)
    some = source(texts, tiny.tokenizer, drawn, example=2)
    found = list(some.windows(None))
    expected = [window for number, window in enumerate(every) if drawn.holds(number)]
    assert some.made == len(found) == 5
    for window, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(window.ids, other.ids)
        np.testing.assert_array_equal(window.sentence, other.sentence)
        assert window.text_number == other.text_number
    assert some.example_window is found[2]
    wanted = source(texts, tiny.tokenizer, drawn)
    assert [window.ids.tolist() for window in wanted.windows(lambda number: number in (1, 3))] == [
        found[1].ids.tolist(),
        found[3].ids.tolist(),
    ]
    assert wanted.made == 5


def test_all_texts_are_read_and_counted_whatever_is_drawn(tiny, sample) -> None:
    texts = sample[:6]
    whole = source(texts, tiny.tokenizer, None)
    windows = len(list(whole.windows(None)))
    some = source(texts, tiny.tokenizer, Sample(windows, 2, 0))
    list(some.windows(None))
    assert some.sha256 == whole.sha256
    assert (some.counts.texts, some.counts.tokens) == (whole.counts.texts, whole.counts.tokens)
    assert (some.drawn_from, whole.drawn_from) == (windows, None)


def test_counting_finds_the_windows_that_there_are(tiny, sample) -> None:
    texts = as_texts(sample[:6])
    ticks: list[int] = []
    counted = count_windows(texts, tiny.tokenizer, OPTIONS, None, lambda more, expected: ticks.append(more))
    whole = source(sample[:6], tiny.tokenizer, None)
    assert counted.windows == sum(ticks) == len(list(whole.windows(None)))
    assert counted.sha256 == whole.sha256


def test_texts_that_change_between_counting_and_reading_are_noticed(tiny, sample) -> None:
    counted = count_windows(as_texts(sample[:6]), tiny.tokenizer, OPTIONS, None, lambda more, expected: None)
    drawn = Sample(counted.windows, 5, 0)
    changed = source(sample[1:7], tiny.tokenizer, drawn, texts_sha256=counted.sha256)
    with pytest.raises(HeadscopeError, match="changed after its windows were counted"):
        list(changed.windows(None))


def test_a_sample_and_a_head_are_two_things() -> None:
    with pytest.raises(HeadscopeError, match="sample spreads over all texts and max_windows takes the first"):
        Options(sample=5, max_windows=5)
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(HeadscopeError, match="sample is"):
            Options(sample=wrong)  # type: ignore[arg-type]
