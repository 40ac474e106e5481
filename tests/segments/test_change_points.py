"""Change points: the dynamic programme finds what trying all cuts finds."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.segments.change_points import SHORTEST, Sums, cut_into, cut_with_penalty, gains_of

FEW = st.integers(1, 9)


def vectors_of(count: int, seed: int, width: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, width))


def cost(vectors: np.ndarray, cut: tuple[int, ...] | list[int]) -> float:
    """The sum of squared distances of sentences from the mean of their segment."""
    segments = [vectors[start:end] for start, end in pairwise([*cut, len(vectors)])]
    return float(sum(((segment - segment.mean(0)) ** 2).sum() for segment in segments))


def all_cuts(count: int, shortest: int, longest: int | None = None) -> list[tuple[int, ...]]:
    cuts = [(0, *inner) for size in range(count) for inner in combinations(range(1, count), size)]
    fitting = [
        cut
        for cut in cuts
        if all(shortest <= end - start <= (longest or count) for start, end in pairwise([*cut, count]))
    ]
    return fitting or [(0,)]


@given(FEW, st.integers(0, 999), st.floats(0.01, 8))
@settings(max_examples=60, deadline=None)
def test_a_cut_with_a_penalty_is_the_best_of_all_cuts(count: int, seed: int, penalty: float) -> None:
    vectors = vectors_of(count, seed)
    found = cut_with_penalty(Sums(vectors), penalty)
    best = min(cost(vectors, cut) + penalty * (len(cut) - 1) for cut in all_cuts(count, SHORTEST))
    assert cost(vectors, found) + penalty * (len(found) - 1) == pytest.approx(best, abs=1e-9)


@given(FEW, st.integers(0, 999), st.data())
@settings(max_examples=60, deadline=None)
def test_a_cut_into_a_known_number_is_the_best_of_all(count: int, seed: int, data: st.DataObject) -> None:
    vectors = vectors_of(count, seed)
    segments = data.draw(st.integers(1, count))
    shortest = SHORTEST if SHORTEST * segments <= count else 1
    found = cut_into(Sums(vectors), segments)
    assert len(found) == segments
    best = min(cost(vectors, cut) for cut in all_cuts(count, shortest) if len(cut) == segments)
    assert cost(vectors, found) == pytest.approx(best, abs=1e-9)


@given(st.integers(8, 11), st.integers(0, 999), st.floats(0.01, 8), st.integers(4, 7))
@settings(max_examples=40, deadline=None)
def test_over_a_moving_stretch_it_is_the_best_without_longer_segments(
    count: int, seed: int, penalty: float, stretch: int
) -> None:
    vectors = vectors_of(count, seed)
    found = cut_with_penalty(Sums(vectors), penalty, stretch=stretch)
    allowed = all_cuts(count, SHORTEST, stretch)
    assert max(end - start for start, end in pairwise([*found, count])) <= stretch
    best = min(cost(vectors, cut) + penalty * (len(cut) - 1) for cut in allowed)
    assert cost(vectors, found) + penalty * (len(found) - 1) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("count", [5, 127, 128, 129, 300])
def test_a_stretch_as_long_as_the_text_changes_nothing(count: int) -> None:
    sums = Sums(vectors_of(count, 1))
    assert cut_with_penalty(sums, 3.0, stretch=count) == cut_with_penalty(sums, 3.0, stretch=10 * count)


def test_a_long_text_has_as_many_segments_as_are_asked_for() -> None:
    steps = np.repeat(vectors_of(12, 3, 8) * 4, 25, 0) + vectors_of(300, 4, 8)
    sums = Sums(steps)
    exactly = cut_into(sums, 12)
    assert exactly == list(range(0, 300, 25))
    assert cut_into(sums, 12, stretch=100) == exactly
    for segments in (4, 9, 40, 120):
        assert len(cut_into(sums, segments, stretch=100)) == segments


@given(st.integers(4, 10), st.integers(0, 999), st.floats(0.1, 4))
@settings(max_examples=40, deadline=None)
def test_a_boundary_is_one_where_it_saves_more_than_the_penalty(count: int, seed: int, penalty: float) -> None:
    vectors = vectors_of(count, seed)
    sums = Sums(vectors)
    cut = cut_with_penalty(sums, penalty)
    gains = gains_of(sums, cut, SHORTEST)
    assert (gains[cut[1:]] >= penalty - 1e-9).all()
    others = np.delete(gains, cut)
    assert (others <= penalty + 1e-9).all()
    for place in set(range(1, count)) - set(cut):
        inside = any(start + SHORTEST <= place <= end - SHORTEST for start, end in pairwise([*cut, count]))
        if inside:
            assert gains[place] == pytest.approx(cost(vectors, cut) - cost(vectors, sorted([*cut, place])), abs=1e-9)


def test_equal_sentences_are_not_cut() -> None:
    assert cut_with_penalty(Sums(np.ones((50, 4))), 0.1) == [0]
    assert cut_with_penalty(Sums(np.zeros((50, 4))), 0.1) == [0]
