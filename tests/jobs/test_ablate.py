"""Ablations of tiny models, held against silencing one head after the other by hand."""

from __future__ import annotations

import copy
import hashlib
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from runs import during, stop

import headscope
from headscope import HeadscopeError
from headscope.corpus.text_windows import TextWindows
from headscope.corpus.texts import sample_texts
from headscope.corpus.windows import stack
from headscope.measure.drift import masked_places
from headscope.model.capture import Capture
from headscope.model.language_head import NoHead, body_of, logits, predicts, with_head
from headscope.model.loading import Model
from headscope.options import Options

pytestmark = pytest.mark.usefixtures("unsynced")
LENGTH, WINDOWS = 32, 10
TABLES = ("ablation.csv", "ablation.parquet", "intervals.csv", "intervals.parquet")
COLUMNS = ("hidden_change", "hidden_cosine", "embedding_cosine")


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def with_tokenizer(network: Any, tokenizer_of: Path, folder: Path) -> Path:
    network.save_pretrained(folder)
    for file in tokenizer_of.iterdir():
        if "token" in file.name:
            shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="module")
def decoder(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=600,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        max_position_embeddings=96,
        initializer_range=0.4,
        tie_word_embeddings=False,
    )
    folder = with_tokenizer(LlamaForCausalLM(config), tiny_folder, tmp_path_factory.mktemp("lm") / "decoder")
    return headscope.load(str(folder), device="cpu")


@pytest.fixture(scope="module")
def masked(tiny: Model, tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Model:
    from transformers import BertForMaskedLM

    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("mlm") / "masked"
    with_tokenizer(BertForMaskedLM(copy.deepcopy(tiny.network.config)), tiny_folder, folder)
    return headscope.load(str(folder), device="cpu")


def ablated(model: Model, out: Path, **more: Any) -> headscope.Ablation:
    asked = {"length": LENGTH, "max_windows": WINDOWS, "windows": "first", "threads": 1, "progress": False, **more}
    return headscope.ablate(model, out=out, **asked)


def windows_of(model: Model, **more: Any) -> Any:
    options = Options(**{"length": LENGTH, "max_windows": WINDOWS, "windows": "first", **more})
    return stack(list(TextWindows(sample_texts(), model.tokenizer, options, 256).windows(None)))


def digests(folder: Path) -> dict[str, str]:
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in TABLES}


def by_hand(model: Model, batch: Any, heads: Any) -> dict[str, float]:
    """Window after window, with `headscope.silenced`: the slow and obvious way."""
    changes, cosines, pooled = [], [], []
    for row in range(len(batch)):
        size = int(batch.size[row])
        ids = torch.from_numpy(batch.ids[row : row + 1, :size])
        with torch.inference_mode():
            before = body_of(model.network)(ids).last_hidden_state[0].double()
            with headscope.silenced(model, heads):
                after = body_of(model.network)(ids).last_hidden_state[0].double()
        changes += ((after - before).norm(dim=1) / before.norm(dim=1)).tolist()
        cosines += torch.cosine_similarity(after, before, dim=1).tolist()
        pooled.append(float(torch.cosine_similarity(after.mean(0), before.mean(0), dim=0)))
    values = (np.mean(changes), np.mean(cosines), np.mean(pooled))
    return {name: float(value) for name, value in zip(COLUMNS, values, strict=True)}


@pytest.fixture(scope="module")
def zeroed(tiny: Model, tmp_path_factory: pytest.TempPathFactory) -> headscope.Ablation:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.files.os.fsync", lambda handle: None)
        return ablated(tiny, tmp_path_factory.mktemp("zeroed") / "a", by="zero")


def test_every_head_has_the_numbers_that_silencing_it_by_hand_gives(tiny: Model, zeroed: headscope.Ablation) -> None:
    table, batch = zeroed.heads, windows_of(tiny)
    assert table is not None
    assert list(zip(table["layer"], table["head"], strict=True)) == [(a, b) for a in range(3) for b in range(4)]
    assert list(table) == ["layer", "head", *COLUMNS]
    for row in (0, 5, 11):
        expected = by_hand(tiny, batch, {(int(table["layer"][row]), int(table["head"][row]))})
        for name, value in expected.items():
            assert table[name][row] == pytest.approx(value, rel=1e-4, abs=1e-5)


def test_the_mean_takes_the_place_of_a_head_by_default(tiny: Model, tmp_path: Path) -> None:
    table = ablated(tiny, tmp_path / "a").heads
    batch = windows_of(tiny)
    seen: list[torch.Tensor] = []
    capture = Capture(tiny.network)

    def receive(layer: int, attention: torch.Tensor, output: torch.Tensor) -> None:
        if layer == 1:
            seen.append(output[0, 2].clone())

    for row in range(len(batch)):
        ids = torch.from_numpy(batch.ids[row : row + 1])
        capture.run(ids, torch.ones_like(ids), receive)
    mean = torch.cat(seen).mean(0)
    assert table is not None
    for name, value in by_hand(tiny, batch, {(1, 2): mean}).items():
        assert table[name][6] == pytest.approx(value, rel=1e-4, abs=1e-5)


def test_shuffle_takes_the_output_of_another_window(tiny: Model, tmp_path: Path) -> None:
    """Of two windows, each has that of the other."""
    table = ablated(tiny, tmp_path / "a", by="shuffle", max_windows=2).heads
    batch = windows_of(tiny, max_windows=2)
    ids = torch.from_numpy(batch.ids)
    with torch.inference_mode():
        before = tiny.network(ids).last_hidden_state
        with headscope.silenced(tiny, {(2, 3): lambda z: z.flip(0)}):
            after = tiny.network(ids).last_hidden_state
    expected = ((after - before).norm(dim=2) / before.norm(dim=2)).mean()
    assert table is not None
    assert table["hidden_change"][11] == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("more", [{"batch_size": 4}, {"threads": 2}])
def test_batches_and_threads_change_nothing(
    tiny: Model, tmp_path: Path, zeroed: headscope.Ablation, more: dict[str, int]
) -> None:
    found = ablated(tiny, tmp_path / "a", by="zero", **more)
    for name in COLUMNS:
        np.testing.assert_allclose(found.heads[name], zeroed.heads[name], rtol=1e-5, atol=1e-6)
    if "threads" in more:
        assert digests(found.folder) == digests(zeroed.folder)


def test_padding_changes_nothing(tiny: Model, tmp_path: Path) -> None:
    """Texts of 18 tokens in windows of 20 and of 60."""
    texts = [" ".join(text.text.split()[:9]) for text, _ in zip(sample_texts(), range(6), strict=False)]
    short, long = (
        headscope.ablate(
            tiny, texts, out=tmp_path / str(length), length=length, short="pad", by="zero", progress=False, batch_size=3
        ).heads
        for length in (40, 60)
    )
    for name in COLUMNS:
        np.testing.assert_allclose(short[name], long[name], rtol=1e-4, atol=1e-6)


def test_a_stop_is_gone_on_with_and_changes_no_bit(
    tiny: Model, tmp_path: Path, zeroed: headscope.Ablation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        during(patch, 1, stop)
        with pytest.raises(KeyboardInterrupt):
            ablated(tiny, tmp_path / "a", by="zero")
    assert not (tmp_path / "a" / "ablation.json").exists()
    begun: list[int] = []
    for number in (0, 1):
        during(monkeypatch, number, lambda number=number: begun.append(number))
    assert digests(ablated(tiny, tmp_path / "a", by="zero").folder) == digests(zeroed.folder)
    assert begun == [1]


def test_workers_change_no_bit(tiny: Model, tmp_path: Path, zeroed: headscope.Ablation) -> None:
    assert digests(ablated(tiny, tmp_path / "a", by="zero", workers=2).folder) == digests(zeroed.folder)


def test_layers_below_are_not_run_again(tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 3 layers, a head of the last costs its projection and what follows: one whole pass and, as copies, 2 + 1."""
    run: list[int] = []
    layer = type(tiny.network.encoder.layer[0])
    forward = layer.forward

    def counted(self: Any, states: torch.Tensor, *more: Any, **named: Any) -> Any:
        run.append(len(states))
        return forward(self, states, *more, **named)

    monkeypatch.setattr(layer, "forward", counted)
    ablated(tiny, tmp_path / "a", by="zero", max_windows=1)
    copies = [count for count in run if count == 4]
    assert len(copies) == 2 + 1


def test_a_set_is_silenced_at_once_and_only_keeps_one(tiny: Model, tmp_path: Path) -> None:
    batch, chosen = windows_of(tiny), {(0, 1), (2, 3)}
    together = ablated(tiny, tmp_path / "a", by="zero", heads=chosen)
    assert together.heads is None
    assert together.sets["silenced"].tolist() == ["0:1,2:3"]
    for name, value in by_hand(tiny, batch, chosen).items():
        assert together.sets[name][0] == pytest.approx(value, rel=1e-4, abs=1e-5)
    kept = ablated(tiny, tmp_path / "b", by="zero", only=chosen)
    others = {(layer, head) for layer in range(3) for head in range(4)} - chosen
    assert (kept.sets["silenced"][0], kept.sets["heads"][0]) == ("all but 0:1,2:3", 10)
    for name, value in by_hand(tiny, batch, others).items():
        assert kept.sets[name][0] == pytest.approx(value, rel=1e-4, abs=1e-5)


def test_a_curve_is_added_to_finished_heads_and_ends_with_none_left(
    tiny: Model, zeroed: headscope.Ablation, tmp_path: Path
) -> None:
    folder = tmp_path / "a"
    shutil.copytree(zeroed.folder, folder)
    found = ablated(tiny, folder, by="zero", order="importance", steps=3, random_orders=2)
    assert digests(folder) == digests(zeroed.folder)
    curve = found.curve
    assert curve["order"].tolist() == ["importance"] * 3 + ["random 1"] * 3 + ["random 2"] * 3
    assert curve["removed"].tolist() == [4, 8, 12] * 3
    drift = 1 - zeroed.heads["embedding_cosine"]
    least = {(place // 4, place % 4) for place in drift.argsort().to_numpy()[:4]}
    for name, value in by_hand(tiny, windows_of(tiny), least).items():
        assert curve[name][0] == pytest.approx(value, rel=1e-4, abs=1e-5)
    assert curve[curve["removed"] == 12]["hidden_change"].nunique() == 1
    again = ablated(tiny, folder, by="zero")
    assert again.manifest.orders == ["importance", "random 1", "random 2"]
    assert again.figure("curve") is not None
    assert [path.name for path in again.figures()] == [*("importance.png", "importance.svg", "curve.png", "curve.svg")]


def test_a_decoder_has_the_loss_of_the_next_token(decoder: Model, tmp_path: Path) -> None:
    batch = windows_of(decoder)
    found = ablated(decoder, tmp_path / "a", by="zero")
    network = with_head(decoder).network
    ids = torch.from_numpy(batch.ids)
    with torch.inference_mode():
        undisturbed = float(network(ids, labels=ids).loss)
        with headscope.silenced(network, {(1, 2)}):
            silent = float(network(ids, labels=ids).loss)
    assert found.manifest.predicts == "next token"
    assert found.manifest.undisturbed_loss == pytest.approx(undisturbed, rel=1e-5)
    assert found.heads["loss"][6] == pytest.approx(silent, rel=1e-5)
    assert found.heads["loss_increase"][6] == pytest.approx(silent - undisturbed, abs=1e-5)
    assert found.worth == "loss_increase"
    assert f"{undisturbed:.3f}" in found.summary()[1]
    without = ablated(decoder, tmp_path / "b", by="zero", loss=False)
    assert "loss" not in without.heads
    np.testing.assert_allclose(without.heads["hidden_change"], found.heads["hidden_change"], rtol=1e-5)


def test_a_masked_model_has_the_loss_of_masked_tokens(masked: Model, tmp_path: Path) -> None:
    batch = windows_of(masked)
    found = ablated(masked, tmp_path / "a", by="zero", seed=5)
    network = with_head(masked).network
    places = torch.from_numpy(masked_places(batch.ids, ~batch.special & batch.mask.astype(bool), 5))
    ids = torch.from_numpy(batch.ids)
    labels = ids.masked_fill(~places, -100)
    given = ids.masked_fill(places, masked.tokenizer.mask_token_id)
    with torch.inference_mode():
        undisturbed = float(network(given, labels=labels).loss)
        with headscope.silenced(network, {(0, 3)}):
            silent = float(network(given, labels=labels).loss)
    assert found.manifest.predicts == "masked tokens"
    assert found.manifest.undisturbed_loss == pytest.approx(undisturbed, rel=1e-5)
    assert found.heads["loss"][3] == pytest.approx(silent, rel=1e-5)


def test_the_head_of_the_checkpoint_is_that_of_transformers(decoder: Model, masked: Model) -> None:
    for model, kind in ((decoder, "next token"), (masked, "masked tokens")):
        assert predicts(model.network) is None
        network = with_head(model).network
        assert predicts(network) == kind
        ids = torch.arange(10, 20)[None]
        with torch.inference_mode():
            states = body_of(network)(ids).last_hidden_state[0]
            torch.testing.assert_close(logits(network, states), network(ids).logits[0])
            assert with_head(with_head(model)).network is not model.network


def test_a_head_that_is_not_the_model_s_own_is_refused(decoder: Model, tiny: Model) -> None:
    other = copy.deepcopy(decoder.network)
    next(other.parameters()).data.add_(1)
    with pytest.raises(NoHead, match="is not what its checkpoint holds"):
        with_head(replace(decoder, network=other))
    with pytest.raises(NoHead, match="has no language-model head"):
        with_head(tiny)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"heads": {(7, 0)}}, "There is no head 7:0; the model has layers 0 to 2 with heads 0 to 3."),
        ({"heads": set()}, "heads names no head; write for example 3:1,5:7."),
        ({"heads": {(0, 0)}, "only": {(0, 1)}}, "heads and only exclude each other; give one of them."),
        ({"by": "noise"}, "by is 'noise'; it must be mean, zero or shuffle."),
        ({"order": "size"}, "order is 'size'; it must be importance, measure:COLUMN, measure:-COLUMN or random."),
        ({"order": "measure:focal_share"}, "order measure:focal_share needs a study of the same model; name it with"),
        ({"steps": 0}, "steps is 0; it must be a whole number from 1 to 1000."),
        ({"loss": True}, "loss can't be had: "),
        ({"length": 90, "texts": ["Too short."], "short": "drop"}, "Every text is shorter than a window"),
        ({"length": 500}, "length is 500, but"),
        ({"layers": (4,)}, "layers asks for layer 4, but the model has 3, numbered 0 to 2."),
    ],
)
def test_bad_input_is_refused_in_a_sentence(tiny: Model, tmp_path: Path, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(HeadscopeError) as problem:
        ablated(tiny, tmp_path / "a", **more)
    assert str(problem.value).startswith(sentence)
    assert not (tmp_path / "a" / "ablation.json").exists()


def test_an_ablation_of_other_options_is_not_added_to(tiny: Model, zeroed: headscope.Ablation, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    shutil.copytree(zeroed.folder, folder)
    with pytest.raises(HeadscopeError, match=r"differs in by \('zero' there, 'mean' now\); give the same"):
        ablated(tiny, folder)
    with pytest.raises(HeadscopeError, match="The texts differ from those that the ablation"):
        ablated(tiny, folder, texts=[text.text for text in sample_texts()][5:], by="zero", heads={(0, 1)})
    assert ablated(tiny, folder, by="mean", overwrite=True).manifest.by == "mean"


def test_a_study_says_which_measures_tell_what_a_head_is_worth(tiny: Model, tmp_path: Path) -> None:
    study = headscope.study(tiny, out=tmp_path / "s", length=LENGTH, max_windows=60, progress=False)
    found = ablated(
        tiny,
        tmp_path / "s" / "ablation",
        by="zero",
        study=study,
        order="measure:mean_distance",
        random_orders=0,
        steps=2,
    )
    assert found.predictors is None
    found = ablated(tiny, tmp_path / "s" / "ablation", by="zero", study=study)
    assert {"layer", "mean_distance"} <= set(found.predictors["column"])
    assert "Rank correlation with embedding_drift" in "\n".join(found.summary())
    first = set(study.heads.nsmallest(6, "mean_distance").index)
    least = {(place // 4, place % 4) for place in first}
    assert found.curve["hidden_change"][0] == pytest.approx(
        by_hand(tiny, windows_of(tiny), least)["hidden_change"], rel=1e-4
    )
    with pytest.raises(HeadscopeError, match="has no column nothing"):
        ablated(tiny, tmp_path / "b", study=study, order="measure:nothing")


def test_a_study_of_another_model_is_refused(tiny: Model, masked: Model, tmp_path: Path) -> None:
    study = headscope.study(tiny, out=tmp_path / "s", length=LENGTH, max_windows=20, progress=False)
    with pytest.raises(HeadscopeError, match="is a study of other weights"):
        ablated(masked, tmp_path / "a", study=study)


def test_damage_is_told(zeroed: headscope.Ablation, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    shutil.copytree(zeroed.folder, folder)
    (folder / "ablation.parquet").write_bytes(b"nothing")
    with pytest.raises(HeadscopeError, match="is not what headscope ablate wrote"):
        _ = headscope.Ablation(folder).heads
    (folder / "ablation.json").write_text((folder / "ablation.json").read_text().replace('"zero"', '"mean"'))
    with pytest.raises(HeadscopeError, match="does not say what it said"):
        headscope.Ablation(folder)
    (folder / "heads.safetensors").write_bytes(b"nothing")
    with pytest.raises(HeadscopeError, match=r"holds no ablation\.json"):
        headscope.Ablation(tmp_path)


def test_other_texts_are_refused_before_anything_is_measured(
    tiny: Model, zeroed: headscope.Ablation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the same heads are asked for again; nothing is left behind that would stand in the way later."""
    folder = tmp_path / "a"
    shutil.copytree(zeroed.folder, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    others = [text.text for text in sample_texts()][5:]
    for more in ({}, {"heads": {(0, 1)}}, {"order": "importance", "steps": 2, "random_orders": 0}):
        with pytest.raises(HeadscopeError, match="The texts differ from those that the ablation"):
            ablated(tiny, folder, texts=others, by="zero", **more)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert ablated(tiny, folder, by="zero", heads={(0, 1)}).sets is not None
    with pytest.raises(HeadscopeError, match="these texts can be read only once"):
        ablated(tiny, folder, texts=iter(others), by="zero")


def test_sets_and_layers_are_added_to_what_is_there(tiny: Model, zeroed: headscope.Ablation, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    for heads in ({(0, 1)}, {(2, 3), (1, 0)}, {(0, 1)}):
        found = ablated(tiny, folder, by="zero", heads=heads).sets
    assert found is not None
    assert found["silenced"].tolist() == ["0:1", "1:0,2:3"]
    expected = by_hand(tiny, windows_of(tiny), {(0, 1)})
    assert found["hidden_change"][0] == pytest.approx(expected["hidden_change"], rel=1e-5)
    for layers in ((2,), (0,), (1, 2)):
        ablation = ablated(tiny, folder, by="zero", layers=layers)
    assert ablation.manifest.layers == [0, 1, 2]
    assert digests(folder) == digests(zeroed.folder)


def test_a_curve_over_other_heads_is_not_mixed_with_one_that_is_there(tiny: Model, tmp_path: Path) -> None:
    few = {"by": "zero", "steps": 2, "random_orders": 1}
    first = ablated(tiny, tmp_path / "a", order="random", **few).curve
    with pytest.raises(HeadscopeError, match="holds a curve over heads of other layers; give the same layers"):
        ablated(tiny, tmp_path / "a", order="random", layers=(1,), **few)
    more = ablated(tiny, tmp_path / "a", order="importance", **few).curve
    assert first is not None
    assert more is not None
    assert more["order"].tolist() == ["random 1", "random 1", "importance", "importance"]
    assert more.iloc[:2].equals(first)


@pytest.mark.parametrize(
    ("texts", "length", "windows"),
    [
        (["A short note.", "Another one, a little longer."], 32, 2),
        ([("The sea is calm.", "The sea is rough."), ("It rains.", "It pours.")], 32, 2),
        ([[2, 40, 41, 42, 3], [2, 50, 51, 3]], None, 2),
    ],
)
def test_short_texts_pairs_and_token_ids_are_taken_as_a_study_takes_them(
    tiny: Model, tmp_path: Path, texts: Any, length: int | None, windows: int
) -> None:
    asked = {} if length is None else {"length": length}
    ablation = headscope.ablate(tiny, texts, out=tmp_path / "a", heads={(0, 0)}, progress=False, **asked)
    study = headscope.study(tiny, texts, out=tmp_path / "s", progress=False, **asked)
    assert ablation.manifest.counts.windows == study.manifest.counts.windows == windows
    assert ablation.manifest.options.length == study.manifest.options.length


def test_a_sample_is_spread_over_the_texts_as_a_study_s_is(tiny: Model, tmp_path: Path) -> None:
    asked = {"sample": 6, "length": LENGTH, "progress": False}
    ablation = headscope.ablate(tiny, out=tmp_path / "a", heads={(0, 0)}, by="zero", **asked)
    study = headscope.study(tiny, out=tmp_path / "s", **asked)
    assert ablation.manifest.counts.windows == study.manifest.counts.windows == 6


def test_a_family_that_calls_its_decoder_past_its_body_has_its_own_loss(tiny_folder: Path, tmp_path: Path) -> None:
    from transformers import OPTConfig, OPTForCausalLM

    torch.manual_seed(0)
    config = OPTConfig(
        vocab_size=600,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        ffn_dim=48,
        max_position_embeddings=2048,
        word_embed_proj_dim=32,
        init_std=0.4,
    )
    folder = with_tokenizer(OPTForCausalLM(config), tiny_folder, tmp_path / "opt")
    model = headscope.load(str(folder), device="cpu")
    ablation = ablated(model, tmp_path / "a", by="zero", heads={(0, 0)})
    network = with_head(model).network
    ids = torch.from_numpy(windows_of(model).ids)
    with torch.inference_mode():
        own = float(network(input_ids=ids, labels=ids).loss)
        with headscope.silenced(network, {(0, 0)}):
            silent = float(network(input_ids=ids, labels=ids).loss)
    assert ablation.manifest.undisturbed_loss == pytest.approx(own, rel=1e-5)
    assert ablation.sets is not None
    assert ablation.sets["loss"][0] == pytest.approx(silent, rel=1e-5)


def test_a_head_that_can_not_be_called_by_itself_is_refused(
    decoder: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its predictions depend on more than the final hidden states: here, on the ids."""
    from transformers import LlamaForCausalLM

    own = LlamaForCausalLM.forward

    def with_ids(self: Any, input_ids: torch.Tensor, **more: Any) -> Any:
        found = own(self, input_ids=input_ids, **more)
        found.logits = found.logits + input_ids[..., None]
        return found

    monkeypatch.setattr(LlamaForCausalLM, "forward", with_ids)
    with pytest.raises(NoHead, match="it makes other predictions than the whole model"):
        with_head(decoder)
    ablation = ablated(decoder, tmp_path / "a", heads={(0, 0)})
    assert ablation.manifest.undisturbed_loss is None
    assert "can't be called by itself" in (ablation.manifest.no_loss or "")


def test_a_network_that_a_short_text_would_change_is_refused_as_in_a_study(tiny_folder: Path, tmp_path: Path) -> None:
    """BigBird gives up its sparse attention for good once it meets a short text."""
    from transformers import BigBirdConfig, BigBirdModel

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    config = BigBirdConfig(
        **sizes, vocab_size=600, max_position_embeddings=128, block_size=8, num_random_blocks=2,
        attention_type="block_sparse",
    )  # fmt: skip
    folder = with_tokenizer(BigBirdModel(config), tiny_folder, tmp_path / "bigbird")
    with pytest.raises(HeadscopeError, match="not tokens by tokens"):
        ablated(headscope.load(str(folder), device="cpu"), tmp_path / "a", by="zero", length=128, heads={(0, 0)})


def test_whatever_a_network_raises_when_begun_in_its_middle_it_is_run_whole(
    tiny: Model, zeroed: headscope.Ablation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headscope.model import resuming

    def fails(*given: Any, **named: Any) -> Any:
        raise KeyError("sliding_attention")

    monkeypatch.setattr(resuming, "_handing_on", fails)
    assert resuming.resumable(Capture(tiny.network)) == {}


def test_a_head_that_sees_what_it_is_to_predict_has_no_loss(decoder: Model) -> None:
    from transformers import LlamaForCausalLM

    config = copy.deepcopy(decoder.network.config)
    config.is_causal = False
    network = LlamaForCausalLM(config).eval()
    with pytest.raises(NoHead, match="sees the tokens that its head is to predict"):
        with_head(replace(decoder, network=network))
