"""A study end to end: the numbers are right, whatever the batch size, order and padding; planted patterns show."""

from __future__ import annotations

import json
from contextlib import closing, nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import reference
import torch
from runs import added, measures, whole

import headscope
from headscope.corpus.texts import Text
from headscope.corpus.windows import Counts, Cutter, cut_all, stack
from headscope.errors import HeadscopeError
from headscope.measure.accumulate import AllMeasures
from headscope.measure.catalogue import STATES
from headscope.measure.definitions_torch import context_similarity
from headscope.measure.tables import Totals, derived_arrays, heads_table
from headscope.model import compiled_attention
from headscope.options import Options
from headscope.run.shards import Shard, ShardRunner

COLUMNS = [
    "layer",
    "head",
    "windows",
    "pairs",
    "pairs_per_window",
    "mean_distance",
    "repeat_probability",
    "repeat_probability_in_sentence",
    "repeat_chance",
    "same_sentence_probability",
    "same_sentence_chance",
    "focal_share",
    "attention_self",
    "attention_previous",
    "attention_next",
    "attention_to_first",
    "attention_to_special",
    "attention_to_sentence_end",
    "attention_to_comma",
    "attention_to_punctuation",
    "attention_to_word",
    "lines_per_window",
    "line_separator_share",
    "block_contrast",
    "same_sentence_chance_by_distance",
    "repeat_chance_by_distance",
    "focal_chance",
    "signal_to_noise_sentence",
    "signal_to_noise_repeat",
    "same_sentence_auc",
    "repeat_auc",
    "mean_vector_share",
    "carried_to_first",
    "carried_to_special",
    "carried_to_sentence_end",
    "carried_to_comma",
    "carried_to_punctuation",
    "carried_to_word",
]


def windows_of(model, texts: list[str], options: Options):
    cutter = Cutter(model.tokenizer, options)
    source = [Text(str(number), text) for number, text in enumerate(texts)]
    return list(cut_all(source, cutter, Counts(), options.max_windows))


def states_of(model, windows, options: Options):
    with closing(ShardRunner(model, measures(model, options), options)) as runner:
        totals = Totals(whole(runner.run(Shard(0, stack(windows)), lambda count: None)))
        return {name: totals[name] for name in totals}


def examples_of(model, windows) -> list[reference.Example]:
    """The same windows with A and Z from the model's own eager attentions and the input of its output projections."""
    network = model.network
    examples = []
    before = network.config._attn_implementation
    network.set_attn_implementation("eager")
    for window in windows:
        joined, values = [], []

        def keep(module, inputs, joined=joined):
            joined.append(inputs[0])

        def keep_values(module, inputs, output, values=values):
            values.append(output[0])

        handles = [layer.attention.output.dense.register_forward_pre_hook(keep) for layer in network.encoder.layer]
        handles += [layer.attention.self.value.register_forward_hook(keep_values) for layer in network.encoder.layer]
        batch = stack([window])
        with torch.inference_mode():
            out = network(
                input_ids=torch.from_numpy(batch.ids),
                attention_mask=torch.from_numpy(batch.mask),
                output_attentions=True,
            )
        for handle in handles:
            handle.remove()
        heads = network.config.num_attention_heads
        outputs = torch.stack([z[0].unflatten(-1, (heads, -1)).transpose(0, 1) for z in joined])
        examples.append(
            reference.Example(
                torch.cat(out.attentions).numpy(),
                outputs.numpy(),
                window.ids.tolist(),
                window.sentence.tolist(),
                window.kind.tolist(),
                window.special.tolist(),
                window.size,
                np.stack([lengths_of(layer, v, heads) for layer, v in zip(network.encoder.layer, values, strict=True)]),
            )
        )
    network.set_attn_implementation(before)
    return examples


def lengths_of(layer, values: torch.Tensor, heads: int) -> np.ndarray:
    """(H, S): how long each value vector (S, H d) is, as its head's columns of the output projection map it."""
    weight = layer.attention.output.dense.weight.detach()
    width = weight.shape[1] // heads
    of_head = [slice(h * width, (h + 1) * width) for h in range(heads)]
    return np.stack([(values[:, part] @ weight[:, part].T).norm(dim=-1).numpy() for part in of_head])


def assert_same_up_to_rounding(one, other) -> None:
    """Counts within 1e-4 of all there are, sums within 1e-5."""
    for name, expected in other.items():
        if expected.dtype.kind == "i":
            scale = max(np.abs(expected).sum(), 1)
            assert np.abs(one[name] - expected).sum() <= 2e-4 * scale, name
        else:
            np.testing.assert_allclose(one[name], expected, rtol=1e-4, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(
    ("which", "count", "by"), [("minilm", 3, "compiled"), ("minilm", 3, "own"), ("gte_small", 1, "own")]
)
def test_a_real_model_gives_the_numbers_of_the_reference(which, count, by, request, sample, monkeypatch):
    """By the model's own attention, which the reference runs too, and by headscope's. Rounding grows from layer to
    layer: in gte-small by so much that both are held to float64, in tests/model/test_compiled_attention.py."""
    if by == "own":
        monkeypatch.setattr(compiled_attention, "can_attend", lambda call: False)
    model = request.getfixturevalue(which)
    options = Options(length=40, batch_size=1, max_windows=count)
    windows = windows_of(model, sample, options)
    examples = examples_of(model, windows)
    for example in examples[:1]:
        for output in example.output.reshape(-1, *example.output.shape[2:])[:5]:
            exact = reference.similarity(output)
            np.testing.assert_allclose(
                context_similarity(torch.from_numpy(output)).numpy(), exact, atol=1e-5 * np.abs(exact).max()
            )
    # The last bit of a product of matrices depends on who multiplies; whether 0.3 is passed must not hang on it.
    monkeypatch.setattr(reference, "similarity", lambda output: context_similarity(torch.from_numpy(output)).numpy())
    arrays, rows, _ = reference.measure(examples, options.as_dict())
    states = states_of(model, windows, options)
    found = {**states, **derived_arrays(states)}
    assert_same_up_to_rounding({name: found[name] for name in arrays}, arrays)
    table = heads_table(states, list(range(len(arrays["high_count"])))).drop(columns="focal_chance")
    expected = pd.DataFrame(rows)
    pd.testing.assert_frame_equal(table, expected, check_dtype=False, rtol=2e-3, atol=1e-4)


def test_batch_size_changes_nothing_beyond_rounding(minilm, sample):
    windows = windows_of(minilm, sample, Options(length=48, max_windows=10))
    one, other = (states_of(minilm, windows, Options(length=48, batch_size=size)) for size in (1, 7))
    assert_same_up_to_rounding(one, other)


def test_the_order_of_texts_changes_nothing_beyond_rounding(minilm, sample):
    options = Options(length=48, windows="first")
    there = states_of(minilm, windows_of(minilm, sample[:9], options), options)
    back = states_of(minilm, windows_of(minilm, sample[8::-1], options), options)
    assert_same_up_to_rounding(there, back)


def test_padding_changes_nothing_beyond_rounding(minilm):
    text = "The mill on the river ground wheat, rye and barley. In dry years the mill stood still."
    tight = Options(length=len(minilm.tokenizer(text)["input_ids"]), short="pad")
    loose = Options(length=40, short="pad")
    plain, padded = (states_of(minilm, windows_of(minilm, [text], o), o) for o in (tight, loose))
    cut = {}
    for name, array in padded.items():
        cut[name] = array
        for axis, letter in enumerate(STATES[name].shape_of_total):
            if letter == "S":
                cut[name] = cut[name].take(range(tight.length), axis)
    assert_same_up_to_rounding(cut, plain)
    assert padded["attention_sum"].sum() == pytest.approx(plain["attention_sum"].sum())


def test_the_study_of_two_halves_merged_is_the_study_of_the_whole(minilm, sample):
    options = Options(length=48, max_windows=12, batch_size=4)
    windows = windows_of(minilm, sample, options)
    whole = states_of(minilm, windows, options)
    halves = added([states_of(minilm, half, options) for half in (windows[:4], windows[4:])])
    for name, expected in whole.items():
        if expected.dtype.kind == "i":
            np.testing.assert_array_equal(halves[name], expected, err_msg=name)
        else:
            np.testing.assert_allclose(halves[name], expected, rtol=1e-12, atol=1e-12, err_msg=name)


class Planted:
    """A model whose head 0 puts out one direction a token value, and head 1 one direction a sentence.

    C is then 1 where the tokens are equal, or in one sentence; all the rest can be counted by hand.
    """

    layers, heads = 1, 2

    def __init__(self, window) -> None:
        values = sorted(set(window.ids.tolist()))
        size = len(window.ids)
        self._output = torch.zeros(1, 2, size, size + 2)
        for place, (token, sentence) in enumerate(zip(window.ids.tolist(), window.sentence.tolist(), strict=True)):
            self._output[0, 0, place, values.index(token)] = 1
            self._output[0, 1, place, sentence if sentence >= 0 else size] = 1 if sentence >= 0 else 0
        self._attention = torch.eye(size).expand(1, 2, size, size).contiguous()

    def run_by_heads(self, ids, mask, receive, last=None, types=None) -> None:
        receive(0, slice(0, 2), self._attention, self._output, torch.ones(self._attention.shape[:3]))


def planted(minilm, text: str):
    length = len(minilm.tokenizer(text)["input_ids"])
    options = Options(length=length)
    (window,) = windows_of(minilm, [text], options)
    shard = AllMeasures(options, (0,), 2).begin(torch.device("cpu"))
    shard.take(Planted(window), stack([window]), lambda place: nullcontext())
    arrays = Totals(shard.arrays())
    return heads_table(arrays, [0]), arrays, window


def test_a_word_planted_in_three_sentences_gives_the_values_counted_by_hand(minilm):
    """cls a bell rang . the bell fell . no bell now . sep: `bell` at 2, 6, 10 and `.` at 4, 8, 12."""
    heads, arrays, window = planted(minilm, "a bell rang. the bell fell. no bell now.")
    tokens = minilm.tokenizer.convert_ids_to_tokens(window.ids.tolist())
    assert " ".join(tokens) == "[CLS] a bell rang . the bell fell . no bell now . [SEP]"
    equal = heads.iloc[0]
    high = {(2, 6), (2, 10), (6, 10), (4, 8), (4, 12), (8, 12)}
    assert set(zip(*np.triu(arrays["high_count"][0, 0]).nonzero(), strict=True)) == high
    assert equal.pairs == 6
    assert equal.mean_distance == pytest.approx((4 + 8 + 4) * 2 / 6)
    assert equal.repeat_probability == 1
    assert equal.repeat_chance == pytest.approx(6 / 91)
    assert equal.same_sentence_probability == 0
    assert np.isnan(equal.repeat_probability_in_sentence)
    assert equal.same_sentence_chance == pytest.approx(3 * 6 / 91)
    assert equal.focal_share == pytest.approx(3 / 6)
    together = heads.iloc[1]
    assert together.pairs == 3 * 6
    assert together.same_sentence_probability == 1
    assert together.repeat_probability == 0
    assert together.focal_share == pytest.approx(9 / 18)
    assert together.mean_distance == pytest.approx((3 * 1 + 2 * 2 + 1 * 3) / 6)
    # head 0: bell and "." tie with 3 pairs each, the lower id wins; head 1: both are in 9 pairs.
    assert arrays["unique_focal_histogram"].tolist() == [[0, 1, 0]]


def test_one_sentence_repeated_gives_the_values_counted_by_hand(minilm):
    """cls rain fell . rain fell . rain fell . sep: 3 words in 3 sentences, each equal to its two repetitions."""
    heads, _, _ = planted(minilm, "rain fell. rain fell. rain fell.")
    equal, together = heads.iloc[0], heads.iloc[1]
    assert equal.pairs == 9
    assert equal.mean_distance == pytest.approx((3 + 3 + 6) / 3)
    assert equal.repeat_chance == pytest.approx(9 / 55)
    assert equal.focal_share == pytest.approx(3 / 9)
    assert together.pairs == 9
    assert together.same_sentence_chance == pytest.approx(9 / 55)
    assert together.repeat_probability == 0
    # Attention on itself only: every token is a line, so every token is a block of its own.
    assert equal.attention_self == 1
    assert equal.lines_per_window == 11
    assert np.isnan(equal.block_contrast)
    assert equal.attention_to_first == pytest.approx(1 / 11)
    assert equal.attention_to_sentence_end == pytest.approx(3 / 11)
    assert equal.line_separator_share == pytest.approx(5 / 11)


def test_a_study_folder_holds_the_tables_and_arrays_of_the_contract(tiny, sample, tmp_path: Path):
    study = headscope.study(tiny, sample[:6], out=tmp_path / "s", length=48, progress=False)
    assert list(study.heads.columns) == [*COLUMNS, "role"]
    assert (study.heads["role"] == "").all()
    assert len(study.heads) == 12
    assert list(study.layers.columns) == [c for c in COLUMNS if c != "head"] + [
        "unique_focal_tokens",
        "unique_focal_chance",
    ]
    pd.testing.assert_frame_equal(pd.read_csv(study.folder / "heads.csv"), study.heads[COLUMNS])
    L, H, S = 3, 4, 48
    shapes = {
        **dict.fromkeys(["attention_sum", "attention_sum_without_lines", "similarity_sum"], ((L, H, S, S), "float64")),
        "high_count": ((L, H, S, S), "int64"),
        "distance_histogram": ((L, H, S), "int64"),
        **dict.fromkeys(
            ["repeat_histogram", "repeat_in_sentence_histogram", "same_sentence_histogram", "focal_share_histogram"],
            ((L, H, 50), "int64"),
        ),
        "unique_focal_histogram": ((L, H + 1), "int64"),
        "similarity_histogram": ((L, H, 200), "int64"),
    }
    for name, (shape, dtype) in shapes.items():
        assert study.arrays[name].shape == shape, name
        assert study.arrays[name].dtype == dtype, name
    kinds = [column for column in COLUMNS if column.startswith("attention_to_")]
    np.testing.assert_allclose(study.heads[kinds].sum(axis=1), 1)
    np.testing.assert_allclose(study.arrays["attention_sum"].sum((2, 3)), study.windows * S)
    manifest = json.loads((study.folder / "study.json").read_text())
    assert manifest["model"]["weights_sha256"] == tiny.weights_hash
    assert manifest["counts"]["texts"] == 6
    assert manifest["options"]["threshold"] == 0.3
    assert not (study.folder / "unfinished").exists()


def test_only_the_layers_asked_for_are_measured_and_keep_their_numbers(tiny, sample, tmp_path: Path):
    whole = headscope.study(tiny, sample[:3], out=tmp_path / "all", length=48, progress=False)
    some = headscope.study(tiny, sample[:3], out=tmp_path / "some", length=48, layers=(0, 2), progress=False)
    assert some.heads.layer.unique().tolist() == [0, 2]
    expected = whole.heads[whole.heads.layer != 1].reset_index(drop=True)
    pd.testing.assert_frame_equal(some.heads, expected)
    np.testing.assert_array_equal(some.arrays["high_count"], whole.arrays["high_count"][[0, 2]])


def test_leaving_special_tokens_out_removes_them_before_the_peak_is_taken(tiny, sample, tmp_path: Path):
    study = headscope.study(tiny, sample[:3], out=tmp_path / "s", length=48, special="drop", progress=False)
    counts = study.arrays["high_count"]
    assert not counts[..., 0, :].any()
    assert not counts[..., -1, :].any()
    assert study.arrays["similarity_histogram"].sum() == 12 * study.windows * 46 * 45 // 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 97}, "at most 96"),
        ({"length": 48, "layers": (1, 99)}, "layer 99, but the model has 3"),
        ({"length": 48, "threshold": 1.5}, "threshold is 1.5"),
        ({"length": 48, "short": "crop"}, "short is 'crop'; it must be auto or drop or pad"),
    ],
)
def test_options_that_cannot_be_met_are_refused_with_their_value(tiny, sample, tmp_path: Path, options, message):
    with pytest.raises(HeadscopeError, match=message):
        headscope.study(tiny, sample[:2], out=tmp_path / "s", progress=False, **options)


def test_texts_shorter_than_the_window_say_how_long_they_are_and_what_helps(tiny, tmp_path: Path):
    texts = ["Too short.", "Also short."]
    with pytest.raises(HeadscopeError, match=r"Every text is shorter.*the longest of 2 has \d+ tokens.*short='pad'"):
        headscope.study(tiny, texts, out=tmp_path / "s", length=48, short="drop", progress=False)


def test_a_folder_is_never_overwritten_unasked(tiny, sample, tmp_path: Path):
    kept = tmp_path / "mine" / "notes.txt"
    kept.parent.mkdir()
    kept.write_text("precious")
    with pytest.raises(HeadscopeError, match="something other than a study"):
        headscope.study(tiny, sample[:2], out=kept.parent, length=48, progress=False)
    headscope.study(tiny, sample[:2], out=kept.parent, length=48, progress=False, overwrite=True)
    assert kept.read_text() == "precious"
    with pytest.raises(HeadscopeError, match="holds a finished study"):
        headscope.study(tiny, sample[:3], out=kept.parent, length=48, progress=False)
