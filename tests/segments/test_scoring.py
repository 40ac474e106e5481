"""Pk and WindowDiff are what the field calls by these names."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.errors import HeadscopeError
from headscope.segments.scoring import scores_of, window_size


@st.composite
def two_segmentations(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    count = draw(st.integers(6, 40))
    both = []
    for _ in range(2):
        borders = sorted({0, count, *draw(st.lists(st.integers(1, count - 1), max_size=8))})
        both.append([end - start for start, end in pairwise(borders)])
    return both[0], both[1]


def label(lengths: list[int]) -> list[int]:
    return [number for number, length in enumerate(lengths) for _ in range(length)]


@given(two_segmentations())
def test_they_are_what_counting_window_by_window_gives(pair: tuple[list[int], list[int]]) -> None:
    ours, theirs = map(label, pair)
    size = window_size(pair[1])
    windows = range(len(ours) - size)
    wrong_pk = sum((ours[i] == ours[i + size]) != (theirs[i] == theirs[i + size]) for i in windows)
    wrong = sum(
        sum(ours[j] != ours[j + 1] for j in range(i, i + size))
        != sum(theirs[j] != theirs[j + 1] for j in range(i, i + size))
        for i in windows
    )
    found = scores_of(*pair)
    assert found.pk == pytest.approx(float(Fraction(wrong_pk, len(windows))) if windows else 0)
    assert found.window_diff == pytest.approx(float(Fraction(wrong, len(windows))) if windows else 0)


@given(two_segmentations())
@settings(max_examples=200)
def test_they_are_those_of_segeval(pair: tuple[list[int], list[int]]) -> None:
    segeval = pytest.importorskip("segeval", reason="segeval is not installed (extra bench-segmentation)")
    ours, theirs = map(tuple, pair)
    found = scores_of(*pair)
    assert window_size(theirs) == segeval.compute_window_size(theirs)
    if len(label(pair[1])) > window_size(theirs):
        assert found.pk == pytest.approx(float(segeval.pk(ours, theirs)))
        assert found.window_diff == pytest.approx(float(segeval.window_diff(ours, theirs)))


@given(two_segmentations())
def test_a_segmentation_agrees_with_itself(pair: tuple[list[int], list[int]]) -> None:
    assert scores_of(pair[0], pair[0]) == (0, 0, 1)


def test_texts_of_different_length_are_refused() -> None:
    with pytest.raises(HeadscopeError, match="5 sentences can't be held against one of 6"):
        scores_of([5], [3, 3])
