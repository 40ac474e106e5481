"""One text looked at closely: every table is compared with plain loops over the definitions."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

import headscope
from headscope.errors import HeadscopeError
from headscope.one_text.layer_array import LayerArray
from headscope.one_text.replay import _Replay
from headscope.one_text.word_pieces import word_groups
from headscope.show.objects import View

TEXT = (
    "The weaver bought blue wool, red wool and a loom. The loom was old, but the weaver repaired it! "
    "Later the unspinnable wool lay beside the loom, and the weaver slept."
)


@pytest.fixture(scope="module")
def view(tiny) -> View:
    return headscope.inspect(tiny, TEXT)


@pytest.fixture(scope="module", params=["keep", "drop"])
def either(request, tiny) -> View:
    """Special tokens take part, or they do not."""
    return headscope.inspect(tiny, TEXT, special=request.param)


def every_head(view: View) -> list[tuple[int, int]]:
    return [(layer, head) for layer in view.layers for head in range(view.heads)]


def slow_similarity(view: View, layer: int, head: int) -> dict[tuple[int, int], float]:
    """C of every pair i < j that takes part."""
    output = view.output[layer, head].astype(np.float64)
    taking_part = [i for i in range(view.size) if view.special_option == "keep" or not view.special[i]]
    return {(i, j): float(output[i] @ output[j]) for i in taking_part for j in taking_part if i < j}


def slow_pairs(view: View, layer: int, head: int) -> dict[tuple[int, int], float]:
    """N of every high pair."""
    similarity = slow_similarity(view, layer, head)
    most = max(similarity.values())
    return {pair: value / most for pair, value in similarity.items() if most > 0 and value / most > view.threshold}


def test_a_view_holds_the_tokens_and_their_places(view):
    assert view.tokens[0] == "[CLS]"
    assert view.tokens[-1] == "[SEP]"
    assert view.size == len(view.tokens) == len(view.ids)
    assert view.pieces[0] == view.pieces[-1] == ""
    assert view.labels[:3] == ["[CLS]", "The", "we"]
    assert "".join(view.pieces) == TEXT.replace(" ", "")
    assert np.asarray(view.attention).shape == (3, 4, view.size, view.size)
    assert np.asarray(view.output).shape == (3, 4, view.size, 8)
    assert not view.continues


def test_rows_of_attention_add_up_to_one(view):
    assert np.asarray(view.attention).sum(-1) == pytest.approx(1, abs=1e-5)


def test_output_is_attention_times_value(tiny, view):
    """Z of layer 0, from the weights themselves."""
    import torch

    network = tiny.network
    with torch.inference_mode():
        hidden = network.embeddings(torch.tensor(view.ids)[None])
        value = network.encoder.layer[0].attention.self.value(hidden)[0].view(view.size, 4, 8).transpose(0, 1)
    expected = view.attention[0] @ value.numpy()
    assert view.output[0] == pytest.approx(expected, abs=1e-4)


def test_pairs_are_those_of_a_plain_loop(either):
    found = 0
    labels, ids, sentence = either.labels, either.ids.tolist(), either.sentence.tolist()
    for layer, head in every_head(either):
        table = either.pairs(layer, head)
        expected = slow_pairs(either, layer, head)
        found += len(expected)
        assert set(zip(table.i, table.j, strict=True)) == set(expected)
        assert list(table.value) == sorted(table.value, reverse=True)
        values = [expected[pair] for pair in zip(table.i, table.j, strict=True)]
        assert table.value.to_numpy() == pytest.approx(np.array(values), abs=1e-5)
        for row in table.itertuples():
            assert row.distance == row.j - row.i
            assert (row.token_i, row.token_j) == (labels[row.i], labels[row.j])
            assert row.equal == (ids[row.i] == ids[row.j])
            assert row.same_sentence == (sentence[row.i] == sentence[row.j] and sentence[row.i] != -1)
    assert found > 100


def test_dropped_special_tokens_are_in_no_pair_and_do_not_set_the_scale(tiny):
    view = headscope.inspect(tiny, TEXT, special="drop")
    for layer, head in every_head(view):
        normalised = view.normalised[layer, head]
        assert normalised[0].any() == normalised[:, -1].any() == False  # noqa: E712
        assert normalised.max() == pytest.approx(1)


def test_high_is_symmetric_and_agrees_with_the_pairs(view):
    for layer, head in every_head(view):
        high = view.high(layer, head)
        assert (high == high.T).all()
        assert not high.diagonal().any()
        assert high.sum() == 2 * len(view.pairs(layer, head))


def test_lines_are_the_columns_above_the_threshold(view):
    found = 0
    for layer in view.layers:
        table = view.lines(layer)
        for head in range(view.heads):
            received = [math.fsum(map(float, column)) for column in view.attention[layer, head].T]
            expected = [j for j in range(view.size) if received[j] / max(received) > 0.3]
            mine = table[table["head"] == head]
            assert list(mine.position) == expected
            assert list(mine.token) == [view.labels[j] for j in expected]
            assert list(mine.share) == pytest.approx([received[j] / view.size for j in expected], abs=1e-6)
            assert list(mine.relative) == pytest.approx([received[j] / max(received) for j in expected])
            found += len(expected)
    assert found > view.heads * len(view.layers)
    assert view.lines(1).kind[view.lines(1).position == 0].unique().tolist() in ([], ["first"])


def test_blocks_are_cut_by_the_lines(either):
    several = 0
    for layer, head in every_head(either):
        lines = set(either.lines(layer, head).position)
        similarity = slow_similarity(either, layer, head)
        most = max(similarity.values())
        blocks = either.blocks(layer, head)
        expected = [sum(line < i for line in lines) for i in range(either.size)]
        assert blocks.of.tolist() == expected
        cells: dict[tuple[int, int], list[float]] = {}
        inside, outside = [], []
        for (i, j), value in similarity.items():
            for cell in {(expected[i], expected[j]), (expected[j], expected[i])}:
                cells.setdefault(cell, []).append(value)
            (inside if expected[i] == expected[j] else outside).append(value / most)
        for a in range(len(blocks.means)):
            for b in range(len(blocks.means)):
                if (a, b) in cells:
                    assert blocks.means[a, b] == pytest.approx(np.mean(cells[a, b]), abs=1e-4)
                else:
                    assert math.isnan(blocks.means[a, b])
        if inside and outside:
            assert blocks.contrast == pytest.approx(np.mean(inside) - np.mean(outside), abs=1e-4)
            several += 1
        else:
            assert math.isnan(blocks.contrast)
    assert several > 3


def test_focal_is_the_token_in_the_most_pairs(either):
    for layer, head in every_head(either):
        pairs = slow_pairs(either, layer, head)
        counts: Counter[int] = Counter()
        for i, j in pairs:
            counts.update({int(either.ids[i]), int(either.ids[j])})
        most = max(counts.values())
        token = min(each for each, count in counts.items() if count == most)
        focal = either.focal(layer, head)
        assert (focal.id, focal.pairs) == (token, most)
        assert focal.share == most / len(pairs)
        assert [int(either.ids[place]) for place in focal.positions] == [token] * list(either.ids).count(token)


def test_a_head_without_high_pairs_has_no_focal_token(view):
    """Two outputs that point opposite ways: m is below 0."""
    output = np.array([[[[1.0, 0.0], [-1.0, 0.0]]]], dtype=np.float32)
    attention = np.full((1, 1, 2, 2), 0.5, dtype=np.float32)
    first = np.arange(2)
    bare = View(
        "m", "", "a b", False, ["a", "b"], first, np.array([0, 5]), first * 0, first > 5, 2 * first, 2 * first + 1,
        LayerArray([0], attention), LayerArray([0], output),
    )  # fmt: skip
    assert bare.pairs(0, 0).empty
    assert bare.focal(0, 0) is None
    assert math.isnan(bare.blocks(0, 0).contrast)
    assert math.isnan(bare.summary().focal_share[0])
    assert "No high pairs" in bare._repr_html_()


def test_the_summary_is_that_of_a_study_of_the_same_window(tiny, sample, tmp_path):
    study = headscope.study(
        tiny, sample[:1], out=tmp_path / "s", length=40, max_windows=1, batch_size=1, progress=False
    )
    summary = headscope.inspect(tiny, sample[0], length=40).summary()
    for name in [
        "layer", "head", "pairs", "mean_distance", "repeat_probability", "repeat_chance", "same_sentence_probability",
        "same_sentence_chance", "focal_share", "block_contrast",
    ]:  # fmt: skip
        assert summary[name].to_numpy() == pytest.approx(study.heads[name].to_numpy(), nan_ok=True, abs=1e-5), name
    assert list(summary.lines) == list(study.heads.lines_per_window)


def test_layers_are_indexed_by_their_own_numbers(tiny, view):
    some = headscope.inspect(tiny, TEXT, layers=(2, 0))
    assert some.layers == [0, 2]
    for layer in (0, 2):
        assert (some.attention[layer, 3] == view.attention[layer, 3]).all()
        assert (some.similarity[layer, 3] == view.similarity[layer, 3]).all()
        assert some.pairs(layer, 1).equals(view.pairs(layer, 1))
    assert (some.attention[-1] == view.attention[2]).all()
    assert some.attention[2, 1, 0, 5] == view.attention[2, 1, 0, 5]
    assert headscope.inspect(tiny, TEXT, layers=[-1]).layers == [2]
    with pytest.raises(HeadscopeError, match="Layer 1 was not measured; there are layers 0, 2"):
        some.pairs(1, 0)
    with pytest.raises(HeadscopeError, match="no head 4: a layer has 4, 0 to 3"):
        some.pairs(2, 4)
    with pytest.raises(HeadscopeError, match="no layer 99: the model has 3, numbered 0 to 2"):
        headscope.inspect(tiny, TEXT, layers=[99])


def test_similarity_is_z_times_z_without_its_diagonal(view):
    output = view.output[1, 2]
    expected = output @ output.T
    np.fill_diagonal(expected, 0)
    assert view.similarity[1, 2] == pytest.approx(expected, abs=1e-5)
    assert np.asarray(view.similarity)[1, 2] == pytest.approx(expected, abs=1e-5)


def pieces_of_words(view: View, merged: View) -> list[list[int]]:
    groups = [[i for i in range(view.size) if view.start[i] >= left and view.end[i] <= right and not view.special[i]]
              for left, right in zip(merged.start, merged.end, strict=True)]  # fmt: skip
    groups[0], groups[-1] = [0], [view.size - 1]
    assert [i for group in groups for i in group] == list(range(view.size))
    return groups


def test_words_merge_pieces(view):
    merged = view.words()
    assert merged.labels[1:12] == ["The", "weaver", "bought", "blue", "wool", ",", "red", "wool", "and", "a", "loom"]
    assert "unspinnable" in merged.labels
    assert merged.size < view.size
    groups = pieces_of_words(view, merged)
    attention, output = view.attention[1, 2].astype(float), view.output[1, 2].astype(float)
    for a, rows in enumerate(groups):
        assert merged.output[1, 2, a] == pytest.approx(output[rows].mean(0), abs=1e-5)
        for b, columns in enumerate(groups):
            expected = np.mean([sum(attention[i, j] for j in columns) for i in rows])
            assert merged.attention[1, 2, a, b] == pytest.approx(expected, abs=1e-5)


def test_attention_carries_to_a_word_what_it_carries_to_its_pieces(view):
    merged = view.words()
    groups = pieces_of_words(view, merged)
    attention, lengths = view.attention[1, 2].astype(float), view.lengths[1, 2].astype(float)
    for b, columns in enumerate(groups):
        carried = [np.mean([sum(attention[i, j] * lengths[j] for j in columns) for i in rows]) for rows in groups]
        assert merged.attention[1, 2][:, b].sum() * merged.lengths[1, 2, b] == pytest.approx(sum(carried), rel=1e-5)
    unknown = replace(view, lengths=None)
    assert unknown.words().lengths is None


def test_lengths_of_value_vectors_are_kept_and_played_again(view, tmp_path):
    assert np.asarray(view.lengths).shape == (3, 4, view.size)
    assert (np.asarray(view.lengths) > 0).all()
    unknown = replace(view, lengths=None)
    for each, folder in ((view, tmp_path / "known"), (unknown, tmp_path / "unknown")):
        folder.mkdir()
        each.save(folder)
    assert (np.asarray(View.load(tmp_path / "known").lengths) == np.asarray(view.lengths)).all()
    assert View.load(tmp_path / "unknown").lengths is None
    played = []
    for each in (view, unknown):
        _Replay(each, view.size + 2).run_by_heads(None, None, lambda *given: played.append(given[4]))
    assert torch.equal(torch.cat(played[:3])[..., :-2], torch.tensor(np.asarray(view.lengths)))
    assert torch.cat(played[3:])[..., :-2].isnan().all()


def test_equal_words_of_several_pieces_are_equal_tokens(view):
    merged = view.words()
    weavers = [i for i, label in enumerate(merged.labels) if label == "weaver"]
    assert len(weavers) == 3
    assert len(set(merged.ids[weavers].tolist())) == 1
    assert list(merged.ids).count(merged.ids[weavers[0]]) == 3
    assert merged.sentence[weavers].tolist() == [0, 1, 2]


def test_words_of_words_change_nothing(view):
    once = view.words()
    twice = once.words()
    assert twice.labels == once.labels
    assert np.asarray(twice.attention) == pytest.approx(np.asarray(once.attention), abs=1e-6)


@pytest.mark.parametrize(
    ("text", "spans", "expected"),
    [
        ("un do", [(0, 2), (3, 5)], [[0], [1]]),
        ("undo", [(0, 2), (2, 4)], [[0, 1]]),
        ("don't", [(0, 3), (3, 4), (4, 5)], [[0], [1], [2]]),
        ("3.5", [(0, 1), (1, 2), (2, 3)], [[0], [1], [2]]),
        ("京都", [(0, 1), (1, 2)], [[0], [1]]),
        ("שלום", [(0, 2), (2, 4)], [[0, 1]]),
        ("e\u0301", [(0, 1), (1, 2)], [[0, 1]]),
        ("🎉a", [(0, 1), (0, 1), (0, 1), (1, 2)], [[0, 1, 2], [3]]),
    ],
)
def test_pieces_of_a_word_touch_without_punctuation(text, spans, expected):
    start, end = (np.array(side) for side in zip(*spans, strict=True))
    assert word_groups(text, start, end, np.zeros(len(spans), dtype=bool)) == expected


def test_special_tokens_join_no_word():
    places = np.array([0, 0, 1])
    assert word_groups("ab", places, np.array([0, 1, 2]), np.array([True, False, False])) == [[0], [1, 2]]


def test_a_view_is_read_back_as_it_was_written(view, tmp_path):
    view.save(tmp_path)
    back = View.load(tmp_path)
    for name in (
        "model_name",
        "text",
        "tokens",
        "layers",
        "threshold",
        "line_threshold",
        "special_option",
        "continues",
    ):
        assert getattr(back, name) == getattr(view, name)
    for name in ("ids", "kind", "sentence", "special", "start", "end", "attention", "output"):
        mine, other = np.asarray(getattr(back, name)), np.asarray(getattr(view, name))
        assert (mine == other).all()
        assert mine.dtype == other.dtype
    assert back.pairs(2, 1).equals(view.pairs(2, 1))
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize("damage", ["json", "arrays", "missing"])
def test_a_damaged_example_is_refused(view, tmp_path, damage):
    view.save(tmp_path)
    if damage == "json":
        (tmp_path / "example.json").write_text("{")
    elif damage == "arrays":
        (tmp_path / "example.safetensors").write_bytes(b"nothing")
    else:
        (tmp_path / "example.safetensors").unlink()
    with pytest.raises(HeadscopeError, match="can't be read"):
        View.load(tmp_path)


def test_a_folder_without_example_says_so(tmp_path):
    with pytest.raises(HeadscopeError, match="keeps no example"):
        View.load(tmp_path)


def test_a_long_text_is_cut_at_what_the_model_takes(tiny, sample):
    view = headscope.inspect(tiny, sample[0])
    assert view.size == 96
    assert view.continues
    assert sample[0].startswith(view.text)
    shorter = headscope.inspect(tiny, sample[0], length=30)
    assert shorter.size == 30
    assert shorter.tokens[:-1] == view.tokens[:29]
    with pytest.raises(HeadscopeError, match="takes at most 96 tokens"):
        headscope.inspect(tiny, sample[0], length=97)


def test_a_text_may_be_a_file(tiny, tmp_path):
    file = tmp_path / "weaver.txt"
    file.write_text(TEXT, "utf-8")
    view = headscope.inspect(tiny, file)
    assert view.text == TEXT
    assert view.origin == str(file)


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_text_is_refused(tiny, text):
    with pytest.raises(HeadscopeError, match="The text is empty"):
        headscope.inspect(tiny, text)


def test_a_study_keeps_the_window_that_was_asked_for(tiny, sample, tmp_path):
    options = {"length": 40, "max_windows": 6, "progress": False}
    study = headscope.study(tiny, sample[:1], out=tmp_path / "s", example=2, **options)
    example = study.example
    assert study.manifest["example"] == {"window": 2, "origin": "text 0"}
    assert example.size == 40
    ids = tiny.tokenizer(sample[0], add_special_tokens=False)["input_ids"]
    assert example.ids[1:-1].tolist() == ids[2 * 38 : 3 * 38]
    assert example.text in sample[0]
    first = headscope.study(tiny, sample[:1], out=tmp_path / "first", **options)
    assert first.example.text == sample[0][: len(first.example.text)]
    assert (tmp_path / "first" / "heads.csv").read_bytes() == (tmp_path / "s" / "heads.csv").read_bytes()
    assert (np.asarray(first.example.attention)[:, :, 0].sum(-1) > 0.999).all()


def test_an_example_beyond_the_windows_loses_nothing(tiny, sample, tmp_path):
    texts = [sample[0][:800]]
    with pytest.raises(HeadscopeError, match="example is 500, but the windows are numbered 0 to"):
        headscope.study(tiny, texts, out=tmp_path / "s", length=40, example=500, progress=False)
    assert json.loads((tmp_path / "s" / "unfinished" / "plan.json").read_text())
    study = headscope.study(tiny, texts, out=tmp_path / "s", length=40, progress=False)
    assert study.example.size == 40


@pytest.mark.parametrize("example", [-1, 4])
def test_an_impossible_example_is_refused_before_anything_is_measured(tiny, sample, tmp_path, example):
    with pytest.raises(HeadscopeError, match=f"example is {example}"):
        headscope.study(tiny, sample, out=tmp_path / "s", length=40, max_windows=4, example=example, progress=False)
    assert not (tmp_path / "s").exists()


def test_what_is_handed_out_can_be_changed_without_harm(view):
    before = view.normalised[1, 0]
    view.normalised[1, 0][:] = 5
    view.similarity[1, 0][0] = 5
    assert (view.normalised[1, 0] == before).all()
    assert (view.normalised[1, 1:3, 4] == view.normalised[1][1:3, 4]).all()
    assert view.normalised[1, 0, 2, 3] == before[2, 3]
