"""Studies of token ids and of sentence pairs: what the network is given is what transformers would give it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from runs import digests_of, during, stop

import headscope
from headscope.errors import HeadscopeError
from headscope.insight.notices import notices
from headscope.model.loading import Model

TEXTS = [f"Note {day}. The tide of day {day} was low, and the gulls came. Who fed them?" for day in range(12)]
PAIRS = [(f"The tide of day {day} was low. Gulls came", f"Nobody fed them. Day {day} was grey.") for day in range(12)]
RESULTS = ("arrays.safetensors", "heads.parquet", "layers.parquet")


def measured(model, texts, out: Path, **more):
    return headscope.study(model, texts, out=out, progress=False, **more)


def same(one, other, names=RESULTS) -> bool:
    return all(digests_of(one.folder)[name] == digests_of(other.folder)[name] for name in names)


def attentions(model: Model, **inputs) -> list[np.ndarray]:
    """As transformers gives them, (H, S, S) of each layer."""
    before = model.network.config._attn_implementation
    model.network.set_attn_implementation("eager")
    with torch.inference_mode():
        found = model.network(**{name: torch.tensor(value) for name, value in inputs.items()}, output_attentions=True)
    model.network.set_attn_implementation(before)
    return [layer[0].numpy() for layer in found.attentions]


@pytest.mark.parametrize("given", ["pair", "ids"])
def test_token_types_reach_the_network(tiny, given):
    encoded = tiny.tokenizer(*PAIRS[0])
    view = headscope.inspect(tiny, PAIRS[0] if given == "pair" else encoded)
    assert view.ids.tolist() == encoded["input_ids"]
    own = attentions(tiny, **{name: [encoded[name]] for name in ("input_ids", "attention_mask", "token_type_ids")})
    without = attentions(tiny, **{name: [encoded[name]] for name in ("input_ids", "attention_mask")})
    for layer in view.layers:
        assert np.allclose(view.attention[layer], own[layer], atol=1e-5)
        assert not np.allclose(view.attention[layer], without[layer], atol=1e-3)


def test_inspect_takes_one_row_in_any_form(tiny):
    ids = tiny.tokenizer("The cat sat.")["input_ids"]
    expected = headscope.inspect(tiny, "The cat sat.")
    for given in (ids, [ids], np.array(ids), torch.tensor([ids]), {"input_ids": ids}, [*ids, 0, 0]):
        view = headscope.inspect(tiny, given)
        assert np.array_equal(view.output[2], expected.output[2])
        assert view.tokens == expected.tokens
    for several in ([ids, ids], list(PAIRS[0]), PAIRS):
        with pytest.raises(HeadscopeError, match="More than one text"):
            headscope.inspect(tiny, several)


def test_ids_and_pairs_give_the_numbers_of_the_same_windows(tiny, tmp_path: Path):
    """Whoever tokenizes pairs and hands on the ids has the study of the pairs, but for sentences, which are found in
    what the ids are decoded to."""
    of_pairs = measured(tiny, PAIRS, tmp_path / "p", length=48)
    of_ids = measured(tiny, tiny.tokenizer(*zip(*PAIRS, strict=True), padding=True), tmp_path / "i", length=48)
    frame = pd.DataFrame(PAIRS, columns=["a", "b"])
    of_frame = measured(tiny, frame, tmp_path / "f", field=("a", "b"), length=48)
    assert same(of_pairs, of_frame)
    assert of_pairs.windows == of_ids.windows == len(PAIRS)
    for column in ("pairs_per_window", "mean_distance", "attention_to_special", "repeat_probability"):
        assert of_pairs.heads[column].equals(of_ids.heads[column]), column
    assert of_pairs.manifest.options.short == of_ids.manifest.options.short == "pad"
    assert not [notice for notice in notices(of_pairs) if "padded" in notice]


def test_windows_of_ids_are_as_long_as_the_longest_row(tiny, tmp_path: Path):
    encoded = tiny.tokenizer(TEXTS, padding=True)
    longest = max(map(sum, encoded["attention_mask"]))
    study = measured(tiny, encoded, tmp_path / "s")
    assert study.manifest.options.length == longest
    wider = np.pad(np.array(encoded["input_ids"]), ((0, 0), (0, 9)), constant_values=tiny.tokenizer.pad_token_id)
    assert same(study, measured(tiny, wider, tmp_path / "w", batch_size=1), RESULTS[1:])
    with pytest.raises(HeadscopeError, match=f"has {longest} tokens, more than .*length"):
        measured(tiny, encoded, tmp_path / "x", length=longest - 1)


def test_a_study_of_ids_has_nulls(tiny, tmp_path: Path):
    ids = tiny.tokenizer(TEXTS)["input_ids"]
    study = measured(tiny, ids, tmp_path / "s", nulls=True)
    assert set(study.nulls) == {"tokens", "sentences", "weights"}
    for null in study.nulls.values():
        assert null.manifest.counts.window_tokens == study.manifest.counts.window_tokens
    with pytest.raises(HeadscopeError, match="holds other texts"):
        headscope.nulls(study, tiny, ids[::-1], overwrite=True, progress=False)


def test_a_study_of_pairs_in_a_file_has_nulls_and_says_what_was_cut(tiny, tmp_path: Path):
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in PAIRS))
    study = measured(tiny, headscope.read_texts(file, field=("a", "b")), tmp_path / "s", length=16)
    assert study.manifest.counts.pairs_cut == len(PAIRS)
    assert "12 pairs of 12 did not fit into a window" in " ".join(notices(study))
    found = headscope.nulls(study, tiny, only=["sentences"], progress=False)
    assert found.nulls["sentences"].windows == len(PAIRS)


def test_an_interrupted_study_of_ids_goes_on_and_its_parts_merge(tiny, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("headscope.run.shards.WINDOWS_PER_SHARD", 4)
    encoded = tiny.tokenizer(*zip(*PAIRS, strict=True), padding=True)
    whole = measured(tiny, encoded, tmp_path / "whole")
    with monkeypatch.context() as patch:
        during(patch, 2, stop)
        with pytest.raises(KeyboardInterrupt):
            measured(tiny, encoded, tmp_path / "again")
    assert same(measured(tiny, encoded, tmp_path / "again"), whole)
    parts = [measured(tiny, encoded, tmp_path / f"{n}", shard=f"{n}/2") for n in (1, 2)]
    merged = headscope.merge([part.folder for part in parts], out=tmp_path / "merged")
    assert same(merged, whole)
    changed = {**encoded, "token_type_ids": np.zeros_like(encoded["token_type_ids"])}
    other = measured(tiny, changed, tmp_path / "other")
    assert other.manifest.source.windows_sha256 != whole.manifest.source.windows_sha256
    assert not same(other, whole)


def test_a_sample_of_pairs_is_drawn_from_all(tiny, tmp_path: Path):
    study = measured(tiny, PAIRS, tmp_path / "s", length=48, sample=5)
    assert study.windows == 5
    assert study.manifest.counts.windows_drawn_from == len(PAIRS)


def test_token_types_that_the_network_does_not_have_are_refused(tiny, tmp_path: Path):
    with pytest.raises(HeadscopeError, match=r"token_type_ids go up to 2, and the .* has 2 of them"):
        measured(tiny, {"input_ids": [[2, 7, 8, 3]], "token_type_ids": [[0, 1, 2, 0]]}, tmp_path / "s")


def test_a_network_without_token_types_is_given_none(tiny, tmp_path: Path):
    from transformers import DistilBertConfig, DistilBertModel

    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=600, dim=32, n_layers=2, n_heads=2, hidden_dim=64, max_position_embeddings=96)
    network = DistilBertModel(config).eval()
    model = headscope.load(network, tokenizer=tiny.tokenizer)
    view = headscope.inspect(model, PAIRS[0])
    assert np.allclose(view.attention[0], attentions(model, input_ids=[view.ids.tolist()])[0], atol=1e-5)
