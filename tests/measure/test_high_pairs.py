"""High pairs at any threshold, made from the spectra, are those that loops over all pairs of all windows find."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from runs import added
from test_measures import OBSERVERS, states_of, studies

from headscope.corpus.traits import IMAGE
from headscope.errors import HeadscopeError
from headscope.measure.bins import THRESHOLDS
from headscope.measure.catalogue import STATES, columns
from headscope.measure.high_pairs import HighPairs, place_among_thresholds
from headscope.measure.tables import Totals
from headscope.options import Options

POOLED = [name for name, column in columns().items() if column.pooled is not None]


def assert_equal_to_reference(states, examples, options: Options, threshold: float) -> None:
    high = HighPairs(Totals(states), threshold)
    rows, layers = reference.at_threshold(examples, options.as_dict(), threshold)
    assert set(POOLED) == set(rows[0])
    for name in POOLED:
        value = columns()[name].pooled(high)
        expected = [row[name] for row in rows]
        np.testing.assert_allclose(value.of_heads().reshape(-1), expected, rtol=1e-12, err_msg=name)
        np.testing.assert_allclose(value.of_layers(), [row[name] for row in layers], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
@settings(max_examples=25, deadline=None)
@given(
    examples=studies(),
    threshold=st.sampled_from([0.05, 0.06, 0.2, 0.29, 0.3, 0.5, 0.57, 0.9, 0.95]),
    special=st.sampled_from(["keep", "drop"]),
    similarity=st.sampled_from(["dot", "cosine"]),
)
def test_any_threshold_is_what_loops_over_all_pairs_find(observe, examples, threshold, special, similarity):
    options = Options(length=len(examples[0].ids), special=special, similarity=similarity)
    if similarity == "cosine":  # which is not exact: what lies on the threshold, or m at 0, may round to either side
        assume(not reference.is_near(examples, options.as_dict(), threshold, 1e-6))
    assert_equal_to_reference(states_of(examples, options, observe), examples, options, threshold)


@settings(max_examples=10, deadline=None)
@given(examples=studies(most_windows=6))
def test_halves_add_up_to_the_whole_at_any_threshold(examples):
    options = Options(length=len(examples[0].ids))
    halves = [part for part in (examples[::2], examples[1::2]) if part]
    merged = added([states_of(part, options, OBSERVERS[0]) for part in halves])
    for threshold in (0.1, 0.3, 0.8):
        assert_equal_to_reference(merged, examples, options, threshold)


@settings(max_examples=20, deadline=None)
@given(examples=studies(), measured_at=st.sampled_from([0.05, 0.2, 0.7]))
def test_the_threshold_of_the_run_does_not_enter(examples, measured_at):
    """What is said of 0.4 is the same whatever the study was run with."""
    states = [
        states_of(examples, Options(length=len(examples[0].ids), threshold=threshold), OBSERVERS[0])
        for threshold in (measured_at, 0.4)
    ]
    first, second = (HighPairs(Totals(some), 0.4) for some in states)
    np.testing.assert_array_equal(first.relations, second.relations)
    np.testing.assert_array_equal(first.distances, second.distances)


@settings(max_examples=20, deadline=None)
@given(examples=studies())
def test_a_higher_threshold_has_no_more_pairs(examples):
    states = Totals(states_of(examples, Options(length=len(examples[0].ids)), OBSERVERS[0]))
    all_of_them = [HighPairs(states, threshold) for threshold in THRESHOLDS]
    assert (np.diff([high.relations for high in all_of_them], axis=0) <= 0).all()
    assert (np.diff([high.distances for high in all_of_them], axis=0) <= 0).all()
    for high in all_of_them:
        np.testing.assert_array_equal(high.distances.sum(-1), high.count)
        assert ((high.count > 0) == (high.all_relations.sum(-1) > 0)).all(), "the largest N of a window is 1"


@pytest.mark.parametrize(
    ("threshold", "nearest"),
    [(0.333, "0.33"), (0, "0.05"), (1, "0.95"), (-3, "0.05"), (0.951, "0.95"), (1e300, "0.95")],
)
def test_other_thresholds_are_refused_with_the_nearest_one(threshold, nearest):
    with pytest.raises(
        HeadscopeError, match=rf"from 0\.05 to 0\.95, in steps of 0\.01, not at .*; the nearest is {nearest}\."
    ):
        place_among_thresholds(threshold)


@pytest.mark.parametrize("threshold", [float("nan"), float("inf"), "0.3", None])
def test_what_is_no_number_is_refused(threshold):
    with pytest.raises(HeadscopeError, match=r"in steps of 0\.01, not at"):
        place_among_thresholds(threshold)


def test_every_threshold_is_found_as_a_user_types_it():
    assert [place_among_thresholds(float(f"0.{hundredths:02d}")) for hundredths in range(5, 96)] == list(range(91))


def test_what_is_made_of_high_pairs_says_so():
    """By trial: a column, or array, that a threshold enters changes with it."""
    random = np.random.default_rng(0)
    length = 10
    example = reference.Example(
        random.random((1, 3, length, length), dtype=np.float32),
        random.normal(size=(1, 3, length, 3)).astype(np.float32),
        [1000, *random.integers(0, 4, length - 1).tolist()],
        np.sort(random.integers(0, 3, length)).tolist(),
        random.integers(0, 6, length).tolist(),
        [False] * length,
        length,
        random.random((1, 3, length), dtype=np.float32),
    )
    low, high = (states_of([example], Options(length=length, threshold=t), OBSERVERS[0]) for t in (0.1, 0.6))
    changed = {name for name in low if not np.array_equal(low[name], high[name])}
    assert changed <= {name for name, state in STATES.items() if state.of_high_pairs}
    for gives in ({}, {"gives": IMAGE}):
        for column in columns(**gives).values():
            assert column.of_high_pairs or column.pooled is None
            if column.value is None or column.needs & IMAGE:
                continue
            values = [column.value(Totals(states)).of_layers() for states in (low, high)]
            assert column.of_high_pairs or np.array_equal(*values, equal_nan=True), column.name
