"""Which heads are looked at first: the rule, against plain loops, exact probabilities and examples made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headscope
from headscope.errors import HeadscopeError
from headscope.measure.definitions import pairs_among
from headscope.one_text.describing import about_choice, about_head, nothing_singled_out, stands_out
from headscope.one_text.layer_array import LayerArray
from headscope.one_text.telling import (
    SURE,
    Place,
    Relation,
    SingledOut,
    most_telling,
    related,
    singled_out,
    surprise_of,
)
from headscope.show.objects import View
from headscope.show.pages.view_snippet import snippet
from headscope.wording import percent

TEXT = (
    "The weaver bought blue wool, red wool and a loom. The loom was old, but the weaver repaired it! "
    "Later the unspinnable wool lay beside the loom, and the weaver slept."
)
CLEAR = SingledOut(20, 1000, "equal", 20, 1.0, 60.0)
LUCK = SingledOut(3, 1000, "focal", 3, 1.0, 3.3)
NOTHING = SingledOut(40, 1000)
CROWDED = SingledOut(501, 1000)
SILENT = SingledOut(0, 1000)


@pytest.fixture(scope="module", params=["keep", "drop"])
def either(request, tiny) -> View:
    """At a threshold at which some heads are crowded and others are not."""
    return headscope.inspect(tiny, TEXT, special=request.param, threshold=0.5)


def slow_singled_out(view: View, layer: int, head: int) -> tuple[str | None, int, float, float]:
    """Trait, pairs that have it, how many were expected and the surprise, from the tables of a view."""
    part = [i for i in range(view.size) if view.part[i]]
    every = [(i, j) for i in part for j in part if i < j]
    high = [(row.i, row.j) for row in view.pairs(layer, head).itertuples()]
    if not high or len(high) > len(every) / 2:
        return None, 0, 0.0, 0.0
    focal = view.focal(layer, head).id
    relations = {
        "equal": lambda i, j: view.ids[i] == view.ids[j],
        "sentence": lambda i, j: view.sentence[i] == view.sentence[j] != -1,
        "focal": lambda i, j: focal in (view.ids[i], view.ids[j]),
    }
    best: tuple[str | None, int, float, float] = (None, 0, 0.0, 0.0)
    for name, holds in relations.items():
        k, p, expected = sum(bool(holds(*pair)) for pair in high), len(high), 0.0
        for i, j in high:
            as_far = [pair for pair in every if pair[1] - pair[0] == j - i]
            expected += sum(bool(holds(*pair)) for pair in as_far) / len(as_far)
        surprise = 0.0
        if k > expected:
            surprise = k * math.log(k / expected)
            surprise += (p - k) * math.log((p - k) / (p - expected)) if k < p else 0
        surprise -= math.log(len({int(view.ids[i]) for i in part})) if name == "focal" else 0
        if surprise > best[3]:
            best = name, k, expected, surprise
    return best


def test_what_heads_single_out_is_what_plain_loops_find(either):
    traits = set()
    for (layer, head), found in either.singled_out.items():
        trait, holding, expected, surprise = slow_singled_out(either, layer, head)
        assert found.trait == trait
        assert (found.holding, found.expected) == (holding, pytest.approx(expected))
        assert found.surprise == pytest.approx(surprise)
        assert found.pairs == len(either.pairs(layer, head))
        traits.add(trait)
    assert len(traits) > 1


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=3))
def test_random_pairs_have_as_much_in_common_no_oftener_than_the_surprise_says(distances):
    """Every way to draw h of n pairs at each distance, of which e have the relation."""
    distances = [(n, min(e, n), min(h, n)) for n, e, h in distances]
    pairs = sum(h for _, _, h in distances)
    expected = sum(h * e / n for n, e, h in distances)
    draws = [[sum(place < e for place in draw) for draw in combinations(range(n), h)] for n, e, h in distances]
    counts = [sum(each) for each in product(*draws)]
    for k in set(counts):
        probability = sum(count >= k for count in counts) / len(counts)
        assert probability <= math.exp(-surprise_of(k, expected, pairs)) + 1e-9


def text_of(tokens: list[int]) -> tuple[np.ndarray, list[Relation]]:
    """The pairs of a text in two sentences of the same length, and the relations of its tokens."""
    ids, sentence = np.array(tokens), np.arange(len(tokens)) * 2 // len(tokens)
    every = pairs_among(np.ones(len(tokens), dtype=bool))
    equal, together = ids[:, None] == ids, sentence[:, None] == sentence
    return every, [related("equal", equal, every), related("sentence", together, every)]


def high_pairs(size: int, *pairs: tuple[int, int]) -> np.ndarray:
    high = np.zeros((size, size), dtype=bool)
    high[tuple(zip(*pairs, strict=True))] = True
    return high


def test_far_apart_equal_tokens_are_singled_out():
    every, relations = text_of([1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 8, 9])
    found = singled_out(high_pairs(12, (0, 7), (1, 8), (2, 9)), every, relations)
    # Of the five pairs that lie seven apart, three are of equal tokens.
    assert (found.trait, found.holding, found.expected) == ("equal", 3, pytest.approx(9 / 5))
    assert found.surprise == pytest.approx(3 * math.log(5 / 3))


def test_neighbours_that_share_a_sentence_as_all_neighbours_do_are_nothing_special():
    every, relations = text_of(list(range(10)))
    found = singled_out(high_pairs(10, *((i, i + 1) for i in range(9))), every, relations)
    assert (found.trait, found.pairs, found.surprise) == (None, 9, 0)


def test_one_sentence_is_singled_out_where_pairs_as_far_apart_cross_it():
    every, relations = text_of(list(range(10)))
    found = singled_out(high_pairs(10, (0, 4), (5, 9), (0, 3), (1, 4), (5, 8), (6, 9)), every, relations)
    assert found.trait == "sentence"
    assert found.expected == pytest.approx(2 * 2 / 6 + 4 * 4 / 7)


def test_a_head_with_most_pairs_high_singles_out_nothing_and_one_with_half_of_them_may():
    every, relations = text_of(list(range(9)))
    i, j = np.nonzero(every)
    half = singled_out(high_pairs(9, *zip(i[:18], j[:18], strict=True)), every, relations)
    more = singled_out(high_pairs(9, *zip(i[:19], j[:19], strict=True)), every, relations)
    assert (half.crowded, more.crowded, more.trait) == (False, True, None)


def test_the_best_of_many_tokens_is_less_of_a_surprise():
    every, _ = text_of(list(range(10)))
    there = np.arange(10) == 4
    holds = there[:, None] | there
    high = high_pairs(10, (4, 8), (4, 9), (0, 4), (1, 4))
    alone, of_ten = (singled_out(high, every, [related("focal", holds, every, tried)]) for tried in (1, 10))
    assert alone.surprise - of_ten.surprise == pytest.approx(math.log(10))
    assert singled_out(high, every, [related("focal", holds, every, 10_000)]).trait is None


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 4, 0, 3, 1)])
def test_heads_that_single_out_nothing_come_after_those_that_do(order):
    """Even those of layers of which no head was chosen yet."""
    kinds = [SILENT, CROWDED, NOTHING, LUCK, CLEAR]
    found: dict[Place, SingledOut] = {(0 if kinds[k] is not SILENT else 1, k): kinds[k] for k in order}
    assert [found[place] for place in most_telling(found, 5)] == [CLEAR, LUCK, NOTHING, CROWDED, SILENT]


def test_few_pairs_that_agree_come_before_many_that_lean_a_little():
    many = SingledOut(2000, 8128, "sentence", 1200, 900.0, 90.0)
    lonely = SingledOut(1, 8128, "equal", 1, 0.01, 4.6)
    assert most_telling({(0, 0): many, (0, 1): CLEAR, (0, 2): lonely}, 3) == [(0, 1), (0, 0), (0, 2)]


def test_other_layers_go_first_where_their_heads_are_comparably_telling():
    found = {
        (3, 0): replace(CLEAR, surprise=90.0),
        (3, 1): replace(CLEAR, surprise=80.0),
        (3, 2): replace(CLEAR, surprise=70.0),
        (5, 0): replace(CLEAR, surprise=41.0),
        (7, 0): replace(CLEAR, surprise=34.0),
    }
    assert most_telling(found, 3) == [(3, 0), (5, 0), (3, 1)]
    assert most_telling(found, 9) == [(3, 0), (5, 0), (3, 1), (3, 2), (7, 0)]


def view_of(outputs: list[np.ndarray], view: View, **changes) -> View:
    """The same text in one layer whose heads put out these vectors (S, d)."""
    attention = np.full((1, len(outputs), view.size, view.size), 1 / view.size, dtype=np.float32)
    output = np.stack(outputs)[None].astype(np.float32)
    layers = [2]
    return replace(
        view, attention=LayerArray(layers, attention), output=LayerArray(layers, output), lengths=None, **changes
    )


@pytest.fixture(scope="module")
def view(tiny) -> View:
    return headscope.inspect(tiny, TEXT)


def one_vector_a_token(view: View) -> np.ndarray:
    return (view.ids[:, None] == np.unique(view.ids)).astype(float)


def test_a_head_that_puts_out_its_token_is_picked_and_says_so(view):
    crowded = np.ones_like(one_vector_a_token(view))
    made = view_of([crowded, one_vector_a_token(view), crowded], view)
    assert made.telling_heads(count=1) == [(2, 1)]
    assert made.telling_heads(layer=-1, count=2) == [(2, 1), (2, 0)]
    what = made.singled_out[2, 1]
    ratio, chance = what.pairs / what.expected, percent(what.expected / what.pairs)
    assert stands_out(made, 2, 1) == f"{ratio:.0f} times as many equal tokens as distance gives (100 %, not {chance})."
    assert stands_out(made, 2, 0) is None
    assert about_head(made, 2, 0).startswith("Most pairs are high: this head singles nothing out. 2,")
    assert not about_head(made, 2, 1).startswith("Most")
    assert nothing_singled_out(made) is None
    assert about_choice(made, None) == (
        "Shown are the most telling of 3 heads in layer 2; in 2 of them most pairs are high."
    )
    assert about_choice(view, 1).startswith("Shown are the most telling of 4 heads in layer 1")


def test_where_every_head_is_crowded_it_is_said_once_and_what_may_help(view):
    full = view_of([np.ones((view.size, 4))] * 2, view)
    assert nothing_singled_out(full) == (
        "In every head of layer 2 most pairs are high: none singles anything out. "
        "A longer text, or the similarity centred, may tell more."
    )
    html, static = full.html(), snippet(full)
    assert html.count("In every head of layer 2 most pairs are high") == 2  # once of them where scripts are blocked
    assert static.count("In every head of layer 2 most pairs are high") == 1
    assert "Most pairs are high: this head singles nothing out." in html
    assert "Most pairs are high: this head singles nothing out." in static


def test_where_there_is_but_luck_that_is_said(view):
    """The first two tokens are alike, and unlike all others, which are unlike each other."""
    apart = np.eye(view.size)
    apart[1] = apart[0]
    made = view_of([apart, np.ones_like(apart)], view)
    assert 0 < made.singled_out[2, 0].surprise < SURE
    assert stands_out(made, 2, 0).endswith("%); it may be luck.")
    assert nothing_singled_out(made).startswith(
        "No head of layer 2 singles out more than luck may; in 1 of 2 most pairs are high."
    )
    silent = view_of([np.zeros((view.size, 4))], view)
    assert silent.singled_out[2, 0].pairs == 0
    assert stands_out(silent, 2, 0) is None
    assert "most pairs" not in nothing_singled_out(silent)


def test_in_a_text_of_one_sentence_pairs_within_it_are_no_news(tiny):
    one = headscope.inspect(tiny, "the weaver bought blue wool and red wool and a loom for the other weaver")
    assert one.sentences == 1
    assert all(what.trait != "sentence" for what in one.singled_out.values())


def test_telling_heads_are_of_all_layers_or_of_one(view, minilm):
    every = view.telling_heads(count=12)
    assert len(set(every)) == 12
    assert view.telling_heads()[0] == every[0]
    for layer in view.layers:
        assert {place for place, _ in view.telling_heads(layer, 4)} == {layer}
    assert view.telling_heads(-1) == view.telling_heads(2)
    with pytest.raises(HeadscopeError, match="Layer 7 was not measured"):
        view.telling_heads(7)
    some = headscope.inspect(minilm, TEXT, layers=[-1, 2])
    assert {layer for layer, _ in some.telling_heads()} == {2, 5}
