"""Pairs drawn at random are drawn as they should be, and their focal token is the one a recount finds."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.measure import random_pairs
from headscope.measure.random_pairs import focal_of_random_pairs, random_focal

plain = random_pairs._without_warnings(focal_of_random_pairs)


def every(ids: np.ndarray) -> np.ndarray:
    return np.ones(ids.shape, dtype=bool)


def recounted(pairs: list[tuple[int, int]]) -> tuple[int, int]:
    """The token in the most pairs, ties to the lower id, and in how many: a pair of equal tokens counts once."""
    included = Counter(token for pair in pairs for token in set(pair))
    most = max(included.values())
    return min(token for token, count in included.items() if count == most), most


def order_drawn(tokens: int, head: int, begin: int) -> list[tuple[int, int]]:
    """The pairs in the order in which they are drawn: Fisher and Yates, with the numbers of SplitMix64."""
    mask = 2**64 - 1
    state = (begin + head * 0xD1B54A32D192ED03) & mask
    pairs = list(combinations(range(tokens), 2))
    for drawn in range(len(pairs)):
        state = (state + 0x9E3779B97F4A7C15) & mask
        mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        mixed ^= mixed >> 31
        chosen = drawn + ((mixed >> 32) * (len(pairs) - drawn) >> 32)
        pairs[drawn], pairs[chosen] = pairs[chosen], pairs[drawn]
    return pairs


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=9), st.integers(0, 2**64 - 1), st.booleans())
def test_the_focal_token_of_any_number_of_pairs_is_that_of_a_recount(values, begin, compiled) -> None:
    _, value = np.unique(values, return_inverse=True)
    pairs = len(values) * (len(values) - 1) // 2
    counts = np.repeat(np.arange(pairs + 1)[:, None], 2, 1)  # a layer for each number of pairs, two heads
    draw = random_pairs.compiled_draw() if compiled else plain
    focal, included = draw(value.astype(np.int64), value.max() + 1, counts, np.uint64(begin))
    assert focal[0].tolist() == [-1, -1]
    assert included[0].tolist() == [0, 0]
    for head in range(2):
        order = [(int(value[i]), int(value[j])) for i, j in order_drawn(len(values), head, begin)]
        assert sorted(order) == sorted((int(value[i]), int(value[j])) for i, j in combinations(range(len(values)), 2))
        for count in range(1, pairs + 1):
            assert (focal[count, head], included[count, head]) == recounted(order[:count])


def test_compiled_and_plain_draw_the_same() -> None:
    rng = np.random.default_rng(0)
    value = rng.integers(0, 20, 40)
    counts = rng.integers(0, 781, (3, 4))
    begin = np.uint64(2**64 - 5)
    for one, other in zip(
        random_pairs.compiled_draw()(value, 20, counts, begin), plain(value, 20, counts, begin), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_every_pair_is_as_likely_as_any_other() -> None:
    """All tokens are different, so the focal token of one pair is its lower one."""
    tokens, draws = 6, 30_000
    ids = np.random.default_rng(0).permuted(np.tile(np.arange(tokens), (draws, 1)), axis=1)
    ids = ids + tokens * np.arange(draws)[:, None]  # no two windows are the same
    counts = np.ones((1, draws, 1), dtype=np.int64)
    focal, _ = random_focal(ids, every(ids), counts, 0)
    first = (focal[0, :, 0] % tokens).astype(int)
    expected = np.arange(tokens - 1, -1, -1) / 15 * draws  # pairs in which the token is the lower
    seen = np.bincount(first, minlength=tokens)
    assert seen[-1] == 0
    chi_square = ((seen - expected)[:-1] ** 2 / expected[:-1]).sum()
    assert chi_square < 18.5  # 4 degrees of freedom: one in a thousand


def test_pairs_are_drawn_without_replacement_and_evenly() -> None:
    """Orders of the ten pairs of five tokens, over many windows: at each place every pair is as likely."""
    orders = np.array(
        [[5 * i + j for i, j in order_drawn(5, 0, int(random_pairs.start(0, np.array([n]))))] for n in range(4000)]
    )
    assert all(len(set(order)) == 10 for order in orders.tolist())
    for place in (0, 1, 5, 9):
        seen = np.unique(orders[:, place], return_counts=True)[1]
        assert ((seen - 400) ** 2 / 400).sum() < 27.9  # 9 degrees of freedom: one in a thousand
    after = np.unique(orders[:, 0] * 100 + orders[:, 1], return_counts=True)[1]
    assert len(after) == 90
    assert ((after - 4000 / 90) ** 2 / (4000 / 90)).sum() < 135.0  # 89 degrees of freedom: one in a thousand


def test_windows_and_heads_are_drawn_for_independently() -> None:
    """Windows of the same words in another order, one after the other: what is drawn for one tells nothing of the next,
    nor of another head."""
    windows, tokens = 3000, 12
    ids = np.random.default_rng(1).permuted(np.tile(np.arange(tokens), (windows, 1)), axis=1)
    focal, included = random_focal(ids, every(ids), np.full((1, windows, 3), 9), 0)
    heads = included[0].astype(float)
    limit = 4 / np.sqrt(windows)
    assert np.abs(np.corrcoef(heads.T) - np.eye(3)).max() < limit
    for head in range(3):
        assert abs(np.corrcoef(heads[1:, head], heads[:-1, head])[0, 1]) < limit
    same = (focal[0, 1:, 0] == focal[0, :-1, 0]).mean()
    expected = (np.bincount(focal[0, :, 0]) ** 2).sum() / windows**2
    assert abs(same - expected) < 4 * np.sqrt(expected / windows)


def test_the_expectation_is_that_of_sampling() -> None:
    rng = np.random.default_rng(2)
    words = rng.integers(0, 15, 30)
    windows, pairs, draws = 400, 40, 2000
    ids = np.stack([rng.permutation(words) for _ in range(windows)])
    _, included = random_focal(ids, every(ids), np.full((1, windows, 2), pairs), 7)
    found = included.ravel() / pairs
    sampler = random.Random(0)
    places = list(combinations(words.tolist(), 2))
    expected = [recounted(sampler.sample(places, pairs))[1] / pairs for _ in range(draws)]
    error = np.sqrt(found.var() / len(found) + np.var(expected) / draws)
    assert abs(found.mean() - np.mean(expected)) < 4 * error


def test_nothing_depends_on_the_batch_or_on_other_layers_and_heads() -> None:
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 9, (7, 11))
    part = rng.random((7, 11)) < 0.9
    most = part.sum(1) * (part.sum(1) - 1) // 2
    counts = rng.integers(0, most[:, None] + 1, (3, 7, 4))
    focal, included = random_focal(ids, part, counts, 5)
    order = rng.permutation(7)
    again = random_focal(ids[order], part[order], counts[:, order], 5)
    np.testing.assert_array_equal(again[0], focal[:, order])
    np.testing.assert_array_equal(again[1], included[:, order])
    for b in range(7):
        for layer in range(3):
            alone = random_focal(ids[b : b + 1], part[b : b + 1], counts[layer : layer + 1, b : b + 1, :2], 5)
            np.testing.assert_array_equal(alone[0][0, 0], focal[layer, b, :2])
            np.testing.assert_array_equal(alone[1][0, 0], included[layer, b, :2])
    assert not np.array_equal(random_focal(ids, part, counts, 6)[0], focal)


def test_tokens_that_take_no_part_are_never_focal() -> None:
    ids = np.array([[1, 7, 8, 7, 9, 1, 1]])
    part = np.array([[False, True, True, True, True, False, False]])
    focal, included = random_focal(ids, part, np.array([[[6, 3]]]), 0)
    assert focal[0, 0, 0] == 7  # in all pairs but (8, 9)
    assert included[0, 0, 0] == 5
    assert focal[0, 0, 1] in (7, 8, 9)


@pytest.mark.parametrize("tokens", [0, 1, 2])
def test_windows_of_hardly_any_tokens(tokens: int) -> None:
    ids = np.arange(3)[None] + 40
    part = (np.arange(3) < tokens)[None]
    counts = np.array([[[0, 1 if tokens == 2 else 0]]])
    focal, included = random_focal(ids, part, counts, 0)
    assert focal[0, 0].tolist() == [-1, 40 if tokens == 2 else -1]
    assert included[0, 0].tolist() == [0, 1 if tokens == 2 else 0]
