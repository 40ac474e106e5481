"""Every measure equals its reference: counts to the last one, sums to rounding; and states add up."""

from __future__ import annotations

import time
from contextlib import closing

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import added, whole
from torch import Tensor

from headscope.corpus.windows import KINDS, Batch
from headscope.errors import HeadscopeError
from headscope.measure import bins, observation
from headscope.measure import kernel as kernels
from headscope.measure.accumulate import AllMeasures
from headscope.measure.catalogue import GROUPED, STATES
from headscope.measure.declaration import GROUPS, MOST_WINDOWS_IN_A_SHARD
from headscope.measure.tables import Totals, derived_arrays, heads_table, layers_table
from headscope.model.capture import ReceiveHeads
from headscope.options import Options
from headscope.run.threads import Lanes, Turns

OBSERVERS = [observation.Observing, kernels.Observing]
CPU = torch.device("cpu")
LENGTHS = np.ones((1, 1, 3), dtype=np.float32)


class Played:
    """Stands where a captured model would: plays back given A and Z for the windows it is asked about."""

    def __init__(self, examples: list[reference.Example]) -> None:
        self.layers, self.heads = examples[0].attention.shape[:2]
        self._examples = {tuple(example.ids): example for example in examples}

    def twin(self) -> Played:
        return self

    def run_by_heads(
        self, ids: Tensor, mask: Tensor, receive: ReceiveHeads, last: int | None = None, types: Tensor | None = None
    ) -> None:
        windows = [self._examples[tuple(row.tolist())] for row in ids]
        for layer in range(self.layers):
            receive(
                layer,
                slice(0, self.heads),
                torch.stack([torch.from_numpy(w.attention[layer]) for w in windows]),
                torch.stack([torch.from_numpy(w.output[layer]) for w in windows]),
                torch.stack([torch.from_numpy(w.lengths[layer]) for w in windows]),
            )


def batch_of(examples: list[reference.Example]) -> Batch:
    return Batch(
        np.array([e.ids for e in examples]),
        np.array([e.size for e in examples]),
        np.array([e.sentence for e in examples], dtype=np.int32),
        np.array([e.kind for e in examples], dtype=np.int8),
        np.array([e.special for e in examples]),
        np.array([e.text for e in examples]),
    )


def states_of(examples: list[reference.Example], options: Options, observe, batch_size: int = 3, lanes: int = 2):
    """The states of all measures over the examples."""
    played = Played(examples)
    shard = AllMeasures(options, tuple(range(played.layers)), played.heads).begin(CPU)
    shard._observer = observe
    batches = (batch_of(examples[n : n + batch_size]) for n in range(0, len(examples), batch_size))
    turns = Turns()

    def take(capture, number, batch) -> None:
        shard.take(capture, batch, lambda place: turns.turn(place, number))

    with closing(Lanes(played, CPU, lanes)) as running:
        running.run(batches, take, turns, lambda batch: None)
    return whole(shard.arrays())


SHORT = st.integers(3, 12)


@st.composite
def studies(draw, most_windows: int = 4, lengths: st.SearchStrategy[int] = SHORT) -> list[reference.Example]:
    """Small windows whose numbers are multiples of 1/8, so that C is exact and ties and edges are common."""
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    length = draw(lengths)
    layers, heads, width = draw(st.integers(1, 2)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    padded = draw(st.booleans())
    spread = draw(st.sampled_from([0, 1, 3, 8]))
    few_lines = draw(st.booleans())
    examples = []
    for number in range(draw(st.integers(1, most_windows))):
        size = int(random.integers(2, length + 1)) if padded else length
        attention = random.integers(0, 9, (layers, heads, length, length)).astype(np.float32) / 8
        if few_lines:
            attention[..., random.random(length) < 0.1] *= 16
        attention[..., size:] = 0
        attention[..., 0] += 0.125
        ids = random.integers(0, 5, length)
        ids[0] = 1000 + number
        special = random.random(length) < 0.2
        sentence = np.where(special, -1, np.sort(random.integers(0, 3, length)))
        examples.append(
            reference.Example(
                attention,
                random.integers(-spread, spread + 1, (layers, heads, length, width)).astype(np.float32) / 8,
                ids.tolist(),
                sentence.tolist(),
                random.integers(0, len(KINDS), length).tolist(),
                special.tolist(),
                size,
                random.integers(0, 9, (layers, heads, length)).astype(np.float32) / 8,
                int(random.integers(0, 100)),
            )
        )
    return examples


def assert_equal_to_reference(states, examples, options: Options, rel: float = 1e-10) -> None:
    arrays, rows, unique = reference.measure(examples, options.as_dict())
    states = Totals(states)
    found = {**states, **derived_arrays(states)}
    for name, expected in arrays.items():
        assert found[name].shape == expected.shape, name
        if expected.dtype.kind == "i":
            assert found[name].dtype == expected.dtype
            np.testing.assert_array_equal(found[name], expected, err_msg=name)
        else:
            np.testing.assert_allclose(found[name], expected, rtol=rel / 100, atol=rel / 100, err_msg=name)
    layers = list(range(len(unique)))
    table = heads_table(states, layers)
    assert (table.pop("focal_chance").isna() == table["focal_share"].isna()).all()
    for row, expected in zip(table.to_dict("records"), rows, strict=True):
        assert list(row) == list(expected)
        for column, value in expected.items():
            assert row[column] == pytest.approx(value, rel=rel, abs=rel / 100, nan_ok=True), column
    np.testing.assert_allclose(layers_table(states, layers).unique_focal_tokens, unique)


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
def test_a_whole_shard_of_high_pairs_is_counted(observe):
    """Each pair is high in each window: no count is too narrow for that."""
    windows, length = MOST_WINDOWS_IN_A_SHARD, 4
    alike, lengths = np.ones((1, 1, length, 2), dtype=np.float32), np.ones((1, 1, length), dtype=np.float32)
    attention = np.full((1, 1, length, length), 1 / length, dtype=np.float32)
    examples = [
        reference.Example(attention, alike, [n, 1, 2, 3], [0] * length, [5] * length, [False] * length, length, lengths)
        for n in range(windows)
    ]
    states = states_of(examples, Options(length=length), observe, batch_size=64)
    assert (states["high_count"][0, 0][np.triu_indices(length, 1)] == windows).all()


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
@pytest.mark.parametrize("special", ["keep", "drop"])
@settings(max_examples=40, deadline=None)
@given(examples=studies())
def test_every_measure_equals_its_reference(observe, special, examples):
    options = Options(special=special, length=len(examples[0].ids))
    assert_equal_to_reference(states_of(examples, options, observe), examples, options)


@pytest.mark.slow
@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
@settings(max_examples=5, deadline=None)
@given(examples=studies(most_windows=2, lengths=st.sampled_from([*range(7, 11), *range(31, 35), 128, 129, 130, 377])))
def test_long_windows_equal_their_reference(observe, examples):
    """So long that C is multiplied in several blocks of rows."""
    options = Options(length=len(examples[0].ids))
    assert_equal_to_reference(states_of(examples, options, observe), examples, options)


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
@settings(max_examples=20, deadline=None)
@given(examples=studies(), threshold=st.sampled_from([0.0, 0.25, 0.5, 0.9]), lines=st.sampled_from([0.1, 0.5, 0.9]))
def test_thresholds_are_followed(observe, examples, threshold, lines):
    options = Options(threshold=threshold, line_threshold=lines, length=len(examples[0].ids))
    assert_equal_to_reference(states_of(examples, options, observe), examples, options)


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
@settings(max_examples=20, deadline=None)
@given(examples=studies(most_windows=6), cut=st.integers(1, 5), size=st.integers(1, 6))
def test_merging_parts_equals_the_whole_whatever_the_batches(observe, examples, cut, size):
    options = Options(length=len(examples[0].ids))
    whole = states_of(examples, options, observe)
    parts = [part for part in (examples[:cut], examples[cut:]) if part]
    merged = added([states_of(part, options, observe, batch_size=size) for part in parts])
    for name, expected in whole.items():
        np.testing.assert_allclose(merged[name], expected, rtol=1e-12, atol=1e-12, err_msg=name)


@settings(max_examples=20, deadline=None)
@given(examples=studies(most_windows=6), data=st.data())
def test_the_order_of_windows_changes_nothing(examples, data):
    options = Options(length=len(examples[0].ids))
    whole = states_of(examples, options, kernels.Observing)
    shuffled = states_of(data.draw(st.permutations(examples)), options, kernels.Observing)
    for name, expected in whole.items():
        np.testing.assert_allclose(shuffled[name], expected, rtol=1e-12, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
@settings(max_examples=20, deadline=None)
@given(examples=studies(), more=st.integers(1, 5))
def test_padding_changes_nothing(observe, examples, more):
    """The same windows with more padding, filled with large numbers that would show if they took part."""
    length = len(examples[0].ids)
    stretched = [
        reference.Example(
            np.pad(e.attention, ((0, 0), (0, 0), (0, more), (0, more))) + _only_rows(e.attention, e.size, more),
            np.pad(e.output, ((0, 0), (0, 0), (0, more), (0, 0)), constant_values=99),
            e.ids + [0] * more,
            e.sentence + [-1] * more,
            e.kind + [5] * more,
            e.special + [False] * more,
            e.size,
            np.pad(e.lengths, ((0, 0), (0, 0), (0, more)), constant_values=99),
            e.text,
        )
        for e in examples
    ]
    plain = states_of(examples, Options(length=length), observe)
    padded = states_of(stretched, Options(length=length + more), observe)
    for name, expected in plain.items():
        found = padded[name]
        for axis, letter in enumerate(STATES[name].shape):
            if letter == "S":
                assert not found.take(range(length, length + more), axis).any(), name
                found = found.take(range(length), axis)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)


def _only_rows(attention: np.ndarray, size: int, more: int) -> np.ndarray:
    """Attention that padding pays: nobody's business."""
    layers, heads, length, _ = attention.shape
    extra = np.zeros((layers, heads, length + more, length + more), dtype=np.float32)
    extra[..., size:, :size] = 0.5
    return extra


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
@pytest.mark.parametrize("special", ["keep", "drop"])
@pytest.mark.parametrize("similarity", ["centred", "cosine"])
def test_other_similarities_equal_their_reference(observe, special, similarity):
    """No number is the same as another or lies on an edge, so that rounding moves none from one bin to the next."""
    random = np.random.default_rng(11)
    examples = [
        reference.Example(
            random.random((1, 2, 20, 20), dtype=np.float32),
            (random.normal(size=(1, 2, 20, 4)) + 1).astype(np.float32),
            [1000 + number, *random.integers(0, 6, 19).tolist()],
            [-1, *np.sort(random.integers(0, 4, 18)).tolist(), -1],
            [0, *random.integers(1, 6, 19).tolist()],
            [True, *([False] * 18), True],
            20,
            random.random((1, 2, 20), dtype=np.float32),
        )
        for number in range(3)
    ]
    options = Options(length=20, special=special, similarity=similarity)
    assert_equal_to_reference(states_of(examples, options, observe), examples, options, rel=1e-4)


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
@settings(max_examples=20, deadline=None)
@given(examples=studies(most_windows=6))
def test_what_is_kept_of_a_group_is_a_study_of_its_texts_alone(observe, examples):
    options = Options(length=len(examples[0].ids))
    states = states_of(examples, options, observe)
    for group in {example.text % GROUPS for example in examples}:
        alone = [example for example in examples if example.text % GROUPS == group]
        expected = states_of(alone, options, observe)
        for name in GROUPED:
            place = STATES[name].shape.index("G")
            found = states[name].take(group, place)
            np.testing.assert_allclose(found, STATES[name].total(expected[name]), rtol=1e-12, atol=1e-12, err_msg=name)
    spectrum = Totals(states)["spectrum"]
    of_groups = states["spectrum_of_groups"].sum(2)
    np.testing.assert_array_equal(of_groups[:, :, 0], bins.coarse(spectrum.sum(2)))
    np.testing.assert_array_equal(of_groups[:, :, 1], bins.coarse(spectrum[:, :, 1] + spectrum[:, :, 3]))
    np.testing.assert_array_equal(of_groups[:, :, 2], bins.coarse(spectrum[:, :, 2] + spectrum[:, :, 3]))


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
def test_realistic_sizes_equal_the_reference(observe):
    """64 tokens, 16 wide, attention by softmax; Z on a grid so that C has no rounding."""
    random = np.random.default_rng(7)
    examples = []
    for number in range(3):
        scores = random.normal(size=(2, 3, 64, 64)) * 2
        attention = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        ids = [1000 + number, *random.integers(0, 30, 63).tolist()]
        examples.append(
            reference.Example(
                attention.astype(np.float32),
                random.integers(-4, 12, (2, 3, 64, 16)).astype(np.float32) / 16,
                ids,
                [-1, *np.sort(random.integers(0, 4, 63)).tolist()],
                [0, *random.integers(1, 6, 63).tolist()],
                [True, *([False] * 63)],
                64,
                random.integers(1, 9, (2, 3, 64)).astype(np.float32) / 8,
                number,
            )
        )
    options = Options(length=64)
    assert_equal_to_reference(states_of(examples, options, observe, 2), examples, options)


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
def test_a_head_without_positive_similarity_has_no_high_pairs_and_still_counts_its_window(observe):
    """Three tokens on a line through 0 in turn: every product is negative or 0, so m <= 0."""
    output = np.array([[[[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]]], dtype=np.float32)
    attention = np.full((1, 1, 3, 3), 1 / 3, dtype=np.float32)
    example = reference.Example(attention, output, [1, 2, 3], [0, 0, 0], [0, 5, 5], [False] * 3, 3, LENGTHS)
    states = Totals(states_of([example], Options(length=3), observe))
    row = heads_table(states, [0]).iloc[0]
    assert (row.windows, row.pairs) == (1, 0)
    assert np.isnan(row.repeat_probability)
    assert np.isnan(row.block_contrast)
    assert not states["spectrum"].any()
    assert states["unique_focal_histogram"].tolist() == [[1, 0]]


@pytest.mark.parametrize("observe", OBSERVERS, ids=["any device", "cpu kernel"])
@pytest.mark.parametrize("poison", [np.nan, np.inf])
@pytest.mark.parametrize("place", [(1, 0, 2, 1), (1, 0)], ids=["one element", "the whole head"])
def test_an_output_that_is_not_a_number_is_refused_by_layer_and_head(observe, poison, place):
    output = np.ones((2, 2, 4, 3), dtype=np.float32)
    output[place] = poison
    attention = np.full((2, 2, 4, 4), 0.25, dtype=np.float32)
    example = reference.Example(
        attention, output, [1, 2, 3, 4], [0] * 4, [0, 5, 5, 5], [False] * 4, 4, np.ones((2, 2, 4), np.float32)
    )
    with pytest.raises(HeadscopeError, match="Layer 1, head 0 puts out NaN"):
        states_of([example], Options(length=4), observe)


def test_no_two_batches_observe_a_head_at_once_however_its_layer_is_cut() -> None:
    """A layer may be handed on in other parts in one batch than in another."""
    heads, length = 6, 5
    cuts = [(slice(0, 2), slice(2, 4), slice(4, 6)), (slice(0, 6),), (slice(0, 3), slice(3, 6))]
    busy, order = [0] * heads, [[] for _ in range(heads)]

    class Cut:
        def run_by_heads(self, ids, mask, receive: ReceiveHeads, last=None, types=None) -> None:
            number = int(ids[0, 0])
            for some in cuts[number % len(cuts)]:
                count = some.stop - some.start
                receive(
                    0,
                    some,
                    torch.full((1, count, length, length), number),
                    torch.ones(1, count, length, 1),
                    torch.ones(1, count, length),
                )

        def twin(self) -> Cut:
            return self

    def observer(tokens, options):
        def observe(attention, output, lengths, some: slice, sums, seen) -> None:
            for head in range(some.start, some.stop):
                busy[head] += 1
            time.sleep(0.002)
            for head in range(some.start, some.stop):
                assert busy[head] == 1
                busy[head] -= 1
                order[head].append(int(attention[0, 0, 0, 0]))

        return observe

    options = Options(length=length)
    shard = AllMeasures(options, (0,), heads).begin(CPU)
    shard._observer = observer
    turns = Turns()
    batches = [
        Batch(
            np.full((1, length), number),
            np.array([length]),
            np.zeros((1, length), np.int32),
            np.ones((1, length), np.int8),
            np.zeros((1, length), bool),
            np.array([number]),
        )
        for number in range(12)
    ]
    with closing(Lanes(Cut(), CPU, 3)) as running:  # type: ignore[arg-type]
        running.run(
            batches,
            lambda capture, number, batch: shard.take(capture, batch, lambda place: turns.turn(place, number)),
            turns,
            lambda batch: None,
        )
    assert order == [list(range(12))] * heads
