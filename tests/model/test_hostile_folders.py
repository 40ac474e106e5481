"""A model folder from anywhere: it loads as what it is, or is refused in one true sentence, and nothing else happens.

Nothing is fetched, no pickle is opened, no code of the folder runs.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaModel, MarianConfig, MarianMTModel

import headscope
from headscope.errors import HeadscopeError
from headscope.model.folder_checks import check_numbers, check_sizes


@pytest.fixture(autouse=True)
def nothing_else_happens(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No connection is made and no pickle read, not even one that fails in silence."""
    happened: list[str] = []

    def watch(owner: Any, name: str) -> None:
        def forbidden(*args: Any, **kwargs: Any) -> None:
            happened.append(name)
            raise OSError(name)

        monkeypatch.setattr(owner, name, forbidden)

    watch(socket.socket, "connect")
    watch(socket, "getaddrinfo")
    for owner in (pickle, torch):
        watch(owner, "load")
    yield
    assert not happened


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_folder, tmp_path / "copy"))


def refused(folder: Path | str) -> str:
    """The one sentence that it is refused with."""
    with pytest.raises(HeadscopeError) as told:
        headscope.load(str(folder), device="cpu")
    sentence = str(told.value)
    assert sentence.isprintable()
    assert len(sentence) <= 900
    assert not re.search("Traceback|report|trust_remote_code|headscope-", sentence.replace(str(folder), ""))
    return sentence


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


class TestConfig:
    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            ("[" * 100_000, "nested too deeply"),
            ('{"a":' * 100_000, "nested too deeply"),
            ('{"model_type": "bert", "a": ' + "[" * 200 + "]" * 200 + "}", "nested too deeply"),
            ("[]", "holds no JSON object"),
            ("null", "holds no JSON object"),
            ("", "is not JSON"),
            ("\x00\x01", "is not JSON"),
            ('{"model_type": "bert", "vocab_size": ' + "9" * 5000 + "}", "too many digits"),
            ("{}", "names no model_type"),
            ('{"model_type": 7}', "names no model_type"),
            ('{"model_type": "no-such\\u001b[31m"}', "which transformers .* does not know"),
            ('{"_class_name": "UNet2DConditionModel"}', "part of a diffusers pipeline"),
        ],
        ids=lambda value: repr(value[:12]),
    )
    def test_what_is_no_config_is_refused(self, folder, content, reason):
        (folder / "config.json").write_text(content)
        assert re.search(reason, refused(folder))

    def test_a_config_that_is_not_utf8_is_refused(self, folder):
        (folder / "config.json").write_bytes(b'{"model_type": "\xff\xfe"}')
        assert "is not JSON" in refused(folder)

    @pytest.mark.parametrize("random", ["", "random:"])
    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("num_hidden_layers", 10**9),
            ("num_hidden_layers", 0),
            ("num_hidden_layers", -3),
            ("num_hidden_layers", True),
            ("num_hidden_layers", "3"),
            ("num_hidden_layers", 3.5),
            ("num_hidden_layers", [3]),
            ("num_hidden_layers", {"a": 1}),
            ("num_attention_heads", 0),
            ("num_attention_heads", 5),
            ("num_attention_heads", 10**6),
            ("hidden_size", 10**12),
            ("hidden_size", 2**25),
            ("hidden_size", -32),
            ("hidden_size", 1e300),
            ("vocab_size", 10**15),
            ("intermediate_size", 10**11),
            ("max_position_embeddings", 10**18),
            ("max_position_embeddings", -1),
            ("type_vocab_size", 10**18),
            ("hidden_act", "no-such"),
            ("hidden_act", ["gelu"]),
        ],
    )
    def test_nonsense_sizes_are_refused_before_anything_is_built(self, folder, field, value, random):
        change(folder / "config.json", **{field: value})
        sentence = refused(f"{random}{folder}")
        assert "config.json" in sentence or "more memory" in sentence

    @pytest.mark.parametrize(("field", "value"), [("num_hidden_layers", 30_000), ("vocab_size", 2**25)])
    def test_a_config_out_of_proportion_to_its_weights_is_refused_before_it_is_built(self, folder, field, value):
        change(folder / "config.json", **{field: value})
        assert "but its weights hold" in refused(folder)

    def test_a_random_network_that_no_machine_can_hold_is_refused(self, folder):
        change(folder / "config.json", hidden_size=2**20, intermediate_size=2**22)
        assert "takes more memory" in refused(f"random:{folder}")

    @pytest.mark.parametrize("field", ["attn_implementation", "_attn_implementation", "_attn_implementation_internal"])
    @pytest.mark.parametrize("kernel", ["kernels-community/flash-attn3", "evil/kernel:main", {"": "evil/kernel"}])
    def test_a_kernel_from_the_hub_is_refused(self, folder, field, kernel):
        change(folder / "config.json", **{field: kernel})
        assert "from the hub" in refused(folder)
        assert "from the hub" in refused(f"random:{folder}")

    @pytest.mark.parametrize(
        "named", ["flash_attention_2", "flash_attention_3", "flex_attention", "paged|sdpa", "eager", "no-such", 5, None]
    )
    def test_other_attention_that_a_config_names_makes_no_difference(self, folder, tiny, named):
        change(folder / "config.json", attn_implementation=named, _attn_implementation=named)
        loaded = headscope.load(str(folder), device="cpu")
        assert loaded.weights_hash == tiny.weights_hash
        assert loaded.network.config._attn_implementation == "sdpa"

    def test_what_only_changes_what_is_returned_makes_no_difference(self, folder):
        change(folder / "config.json", return_dict=False, output_attentions=True, output_hidden_states=True)
        view = headscope.inspect(headscope.load(str(folder), device="cpu"), "The cat sat. The cat slept.")
        assert len(view.pairs(layer=0, head=0).columns)

    @pytest.mark.parametrize("method", ["bitsandbytes", "gptq", "awq", "fp8"])
    def test_quantised_weights_are_refused_by_their_kind(self, folder, method):
        change(folder / "config.json", quantization_config={"quant_method": method, "bits": 4})
        assert f"are quantised ({method})" in refused(folder)

    def test_quantised_weights_of_a_part_are_refused(self, folder):
        change(folder / "config.json", text_config={"quantization_config": {"quant_method": "fp8"}})
        assert "are quantised (fp8)" in refused(folder)

    def test_an_architecture_that_was_quantised_can_be_had_with_random_weights(self, folder):
        change(folder / "config.json", quantization_config={"quant_method": "gptq", "bits": 4})
        assert headscope.load(f"random:{folder}", device="cpu").network.config.num_hidden_layers == 3

    def test_code_of_a_folder_is_not_run_where_transformers_has_its_own_and_that_is_said(self, folder, tmp_path):
        change(folder / "config.json", auto_map={"AutoModel": "evil.Evil", "AutoConfig": "evil.EvilConfig"})
        (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
        assert "code of its own, which was not run" in headscope.load(str(folder), device="cpu").notices[0]
        assert not (tmp_path / "ran").exists()

    @pytest.mark.parametrize("named", ["pytorch_model.bin", "../model.safetensors", 5, ["a"]])
    def test_a_config_can_not_name_another_file_of_weights(self, folder, named):
        change(folder / "config.json", transformers_weights=named)
        assert "as the file of its weights" in refused(folder)

    def test_a_config_can_not_name_another_config(self, folder):
        change(folder / "config.json", configuration_files=["config.4.0.0.json"])
        assert "configuration_files" in refused(folder)

    def test_infinity_is_read_as_transformers_writes_it(self, folder):
        change(folder / "config.json", some_limit=[0.0, {"__float__": "Infinity"}])
        assert headscope.load(str(folder), device="cpu").network.config.some_limit == [0.0, float("inf")]

    def test_a_model_that_takes_sound_says_so(self, folder):
        (folder / "config.json").write_text(json.dumps({"model_type": "whisper"}))
        assert "takes input_features" in refused(folder)


@pytest.mark.slow
def test_no_architecture_is_refused_for_its_usual_sizes():
    refused = {}
    for name in transformers.CONFIG_MAPPING:
        try:
            usual = json.loads(transformers.CONFIG_MAPPING[name]().to_json_string(use_diff=False))
        except (StrictDataclassError, ValueError, AttributeError, TypeError):  # it has no usual sizes
            continue
        try:
            check_sizes(Path("config.json"), usual)
            check_numbers(Path("config.json"), transformers.CONFIG_MAPPING[name]())
        except HeadscopeError as problem:
            refused[name] = str(problem)
    assert not refused


class TestWeights:
    def test_more_layers_than_the_config_builds_are_refused(self, folder):
        change(folder / "config.json", num_hidden_layers=2)
        assert "more layers than its config.json builds: encoder.layer.2." in refused(folder)

    def test_more_layers_are_seen_in_a_network_with_a_head_too(self, folder):
        BertForMaskedLM(BertConfig.from_pretrained(folder)).save_pretrained(folder)
        assert headscope.load(str(folder), device="cpu").notices == ()
        change(folder / "config.json", num_hidden_layers=1)
        assert "more layers than its config.json builds" in refused(folder)

    def test_a_bias_that_the_config_leaves_out_is_refused(self, folder):
        settings = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
        LlamaModel(LlamaConfig(**settings, vocab_size=600, attention_bias=True)).save_pretrained(folder)
        change(folder / "config.json", attention_bias=False)
        assert "layers.0.self_attn.k_proj.bias, which the network of its config.json leaves out" in refused(folder)

    def test_other_tensors_without_a_place_are_counted_and_the_first_is_named(self, folder):
        extra = {"something.else": torch.zeros(3), "another.thing": torch.zeros(2)}
        change_weights(folder, lambda weights: weights.update(extra))
        [notice] = headscope.load(str(folder), device="cpu").notices
        assert "2 tensors" in notice
        assert "another.thing first" in notice

    def test_weights_of_other_shapes_are_named_with_both_shapes(self, folder):
        change(folder / "config.json", intermediate_size=128)
        assert "is 64 in the file and 128 in the network" in refused(folder)

    def test_an_adapter_beside_the_weights_is_not_applied_and_that_is_said(self, folder, tiny):
        adapter = {"peft_type": "LORA", "base_model_name_or_path": "someone/else", "r": 2, "target_modules": ["query"]}
        (folder / "adapter_config.json").write_text(json.dumps(adapter))
        save_file({"a": torch.ones(2)}, folder / "adapter_model.safetensors")
        loaded = headscope.load(str(folder), device="cpu")
        assert loaded.weights_hash == tiny.weights_hash
        assert "was not applied" in loaded.notices[0]

    @pytest.mark.parametrize("with_config", [True, False])
    def test_an_adapter_alone_is_refused_with_the_way_out(self, folder, with_config):
        (folder / "model.safetensors").rename(folder / "adapter_model.safetensors")
        (folder / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "some/base"}))
        if not with_config:
            (folder / "config.json").unlink()
        assert "holds only an adapter of some/base" in refused(folder)
        assert "merge_and_unload" in refused(folder)

    def test_tables_of_sines_are_computed_where_the_file_leaves_them_out(self, folder):
        sizes = {"encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8, "d_model": 8}
        heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "decoder_start_token_id": 0}
        network = MarianMTModel(MarianConfig(**sizes, **heads, vocab_size=600, pad_token_id=0))
        network.save_pretrained(folder)
        table = headscope.load(str(folder), device="cpu").network.encoder.embed_positions.weight
        assert torch.equal(table, network.model.encoder.embed_positions.weight)

    def test_of_two_sets_of_weights_it_is_said_which_was_read(self, folder):
        (folder / "model.safetensors.index.json").write_text("{}")
        assert "those of model.safetensors" in headscope.load(str(folder), device="cpu").notices[0]

    def in_two_files(self, folder: Path) -> tuple[str, str]:
        weights = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        names = sorted(weights)
        files = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
        parts = (names[: len(names) // 2], names[len(names) // 2 :])
        for file, part in zip(files, parts, strict=True):
            save_file({name: weights[name] for name in part}, folder / file, {"format": "pt"})
        listed = {name: file for file, part in zip(files, parts, strict=True) for name in part}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": listed}))
        return files

    def test_weights_in_several_files_are_those_of_one(self, folder, tiny):
        self.in_two_files(folder)
        assert headscope.load(str(folder), device="cpu").weights_hash == tiny.weights_hash

    @pytest.mark.parametrize(
        "named",
        [
            "pytorch_model.bin",
            "../outside.safetensors",
            "/etc/passwd",
            "sub/model.safetensors",
            "..",
            "",
            "a\x1b[31m.safetensors",
            "c:\\model.safetensors",
        ],
    )
    def test_an_index_names_only_safetensors_files_of_its_folder(self, folder, named):
        first, _ = self.in_two_files(folder)
        torch.save({}, folder / "pytorch_model.bin")
        shutil.copy(folder / first, folder.parent / "outside.safetensors")
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        index["weight_map"][next(iter(index["weight_map"]))] = named
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        assert "only .safetensors files that lie in the folder itself" in refused(folder)

    def test_a_link_out_of_the_folder_is_not_followed(self, folder):
        first, _ = self.in_two_files(folder)
        (folder / first).rename(folder.parent / "outside.safetensors")
        (folder / first).symlink_to(folder.parent / "outside.safetensors")
        assert "a link out of the folder" in refused(folder)

    def test_the_links_of_the_hubs_cache_are_followed(self, folder, tmp_path, tiny):
        snapshot = tmp_path / "models--some--one" / "snapshots" / "abc"
        snapshot.parent.mkdir(parents=True)
        self.in_two_files(folder)
        folder.rename(snapshot)
        blobs = snapshot.parent.parent / "blobs"
        blobs.mkdir()
        for number, path in enumerate(sorted(snapshot.iterdir())):
            path.rename(blobs / str(number))
            path.symlink_to(Path("../../blobs") / str(number))
        assert headscope.load(str(snapshot), device="cpu").weights_hash == tiny.weights_hash

    def test_a_model_in_the_hubs_cache_is_checked_as_any_folder(self, folder, tmp_path, tiny, monkeypatch):
        self.in_two_files(folder)
        snapshot = tmp_path / "hub" / "models--some--one" / "snapshots" / ("0" * 40)
        shutil.copytree(folder, snapshot)
        (snapshot.parent.parent / "refs").mkdir()
        (snapshot.parent.parent / "refs" / "main").write_text("0" * 40)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        loaded = headscope.load("some/one", device="cpu")
        assert (loaded.name, loaded.weights_hash) == ("some/one", tiny.weights_hash)
        (snapshot / "model.safetensors.index.json").write_text('{"weight_map": {"a": "pytorch_model.bin"}}')
        assert "pytorch_model.bin" in refused("some/one")

    @pytest.mark.parametrize("content", ["{}", '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"a": 5}}'])
    def test_an_index_without_its_map_is_refused(self, folder, content):
        self.in_two_files(folder)
        (folder / "model.safetensors.index.json").write_text(content)
        assert "has no weight_map" in refused(folder)

    def test_a_file_that_the_index_names_and_that_is_not_there_is_named(self, folder):
        first, _ = self.in_two_files(folder)
        (folder / first).unlink()
        assert f"names {first}, but the folder holds no such file" in refused(folder)

    def test_a_tensor_in_two_files_is_refused(self, folder):
        first, second = self.in_two_files(folder)
        shutil.copy(folder / first, folder / second)
        assert "which another file of the model holds too" in refused(folder)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\x00" * 3,
            b"\xff" * 64,
            (2**62).to_bytes(8, "little") + b"{}",
            (2).to_bytes(8, "little") + b"{}",
            (2).to_bytes(8, "little") + b"[]",
            (100_000).to_bytes(8, "little") + b"[" * 100_000,
        ],
        ids=range(7),
    )
    def test_what_is_no_safetensors_file_is_refused(self, folder, content):
        (folder / "model.safetensors").write_bytes(content)
        assert "model.safetensors" in refused(folder)

    @pytest.mark.parametrize(
        "lie",
        [
            {"shape": [600, 64]},
            {"shape": [10**9, 10**9]},
            {"shape": [-1, 32]},
            {"dtype": "I8"},
            {"dtype": "F99"},
            {"data_offsets": [0, 10**12]},
            {"data_offsets": [50, 0]},
        ],
        ids=str,
    )
    def test_a_header_that_lies_is_refused(self, folder, lie):
        whole = (folder / "model.safetensors").read_bytes()
        size = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8 : 8 + size])
        header["embeddings.word_embeddings.weight"] |= lie
        text = json.dumps(header).encode()
        (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + size :])
        assert "model.safetensors" in refused(folder)

    def test_weights_in_whole_numbers_are_refused_as_quantised(self, folder):
        key = "encoder.layer.0.attention.self.query.weight"
        change_weights(folder, lambda weights: weights.update({key: weights[key].to(torch.int8)}))
        assert f"{key} as I8, so the weights are quantised" in refused(folder)

    @pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json"])
    def test_a_folder_or_a_link_to_itself_under_the_name_of_a_file_is_refused(self, folder, name):
        (folder / name).unlink()
        (folder / name).mkdir()
        assert name in refused(folder)
        (folder / name).rmdir()
        (folder / name).symlink_to(folder / name)
        assert refused(folder)

    def test_a_pipe_under_the_name_of_a_file_is_not_waited_for(self, folder):
        (folder / "config.json").unlink()
        os.mkfifo(folder / "config.json")
        assert "config.json" in refused(folder)

    @pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no such permissions here")
    @pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", ""])
    def test_what_may_not_be_read_is_named(self, folder, name):
        (folder / name).chmod(0)
        headscope.load("minilm", device="cpu")
        root = os.geteuid() == 0
        try:
            if root:
                for parent in (folder.parent, folder.parent.parent, folder.parent.parent.parent):
                    parent.chmod(0o755)
                os.seteuid(65534)
            assert "ermission denied" in refused(folder)
        finally:
            if root:
                os.seteuid(0)
            (folder / name).chmod(0o755)


class TestOtherFolders:
    @pytest.mark.parametrize(
        ("files", "reason"),
        [
            (["model.gguf"], "weights as GGUF only"),
            (["model.onnx"], "weights as ONNX only"),
            (["onnx/model.onnx"], "weights as ONNX only"),
            (["tf_model.h5"], "TensorFlow"),
            (["flax_model.msgpack"], "Flax"),
            (["pytorch_model.bin"], "as pickle only"),
            (["__0_0.distcp", ".metadata"], "as pickle only"),
            (["consolidated.safetensors"], "neither model.safetensors nor"),
            ([], "holds no weights"),
        ],
    )
    def test_weights_of_another_kind_are_named(self, folder, files, reason):
        (folder / "model.safetensors").unlink()
        for file in files:
            (folder / file).parent.mkdir(exist_ok=True)
            (folder / file).write_bytes(b"x")
        assert reason in refused(folder)

    @pytest.mark.parametrize(
        ("file", "reason"),
        [
            ("model_index.json", "a diffusers pipeline"),
            ("params.json", "Meta's own format"),
            ("model.gguf", "weights as GGUF only"),
            ("readme.md", "not a Hugging Face model"),
        ],
    )
    def test_a_folder_of_something_else_is_named(self, tmp_path, file, reason):
        (tmp_path / file).write_text("{}")
        assert reason in refused(tmp_path)

    @pytest.mark.parametrize(
        ("file", "reason"), [("a.gguf", "GGUF file"), ("a.onnx", "ONNX file"), ("a.txt", "a file")]
    )
    def test_a_file_is_not_a_folder(self, tmp_path, file, reason):
        (tmp_path / file).write_bytes(b"GGUF")
        assert reason in refused(tmp_path / file)

    def test_the_transformer_of_a_sentence_transformers_folder_is_found(self, folder, tmp_path, tiny):
        outer = tmp_path / "outer"
        outer.mkdir()
        folder.rename(outer / "0_Transformer")
        modules = [
            {"idx": 0, "name": "0", "path": "0_Transformer", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]
        (outer / "modules.json").write_text(json.dumps(modules))
        (outer / "config.json").write_text('{"__version__": {"sentence_transformers": "0.3"}}')
        assert headscope.load(str(outer), device="cpu").weights_hash == tiny.weights_hash

    def test_the_transformer_beside_its_modules_is_found(self, folder, tiny):
        modules = [{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}]
        (folder / "modules.json").write_text(json.dumps(modules))
        assert headscope.load(str(folder), device="cpu").weights_hash == tiny.weights_hash

    @pytest.mark.parametrize(
        "content",
        ["{}", "[5]", "[", "[" * 10_000, "[]", '[{"type": "x.Transformer", "path": "../copy"}]', '[{"type": 5}]'],
    )
    def test_modules_that_name_no_transformer_are_refused(self, folder, tmp_path, content):
        outer = tmp_path / "outer"
        outer.mkdir()
        (outer / "modules.json").write_text(content)
        assert "modules.json" in refused(outer)


def test_the_command_says_it_in_one_line_and_exits_with_2(folder):
    change(folder / "config.json", num_hidden_layers=2)
    command = [sys.executable, "-m", "headscope", "inspect", "The cat sat.", "--model", str(folder)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.startswith(f"headscope: The weights of {folder} hold more layers")
    assert told.stderr.count("\n") == 1


class TestNames:
    @pytest.mark.parametrize(
        "name",
        [
            " ",
            "a b",
            "..",
            "../..",
            "a/../b",
            "\x1b[31mred",
            "a\x00b",
            "x" * 5000,
            "/" + "x" * 5000,
            "~/nowhere",
            "https://huggingface.co/bert-base-uncased",
            "random:",
            "random:random:minilm",
            "\udcff\udcfe",
            "モデル",
        ],
    )
    def test_a_name_of_nothing_is_refused_and_can_be_printed(self, name, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert refused(name)

    def test_a_name_that_steers_the_terminal_is_not_kept_as_it_is(self, folder):
        place = folder.rename(folder.with_name("a\x1b[31m\nb"))
        loaded = headscope.load(str(place), device="cpu")
        assert loaded.name.isprintable()
        assert repr(loaded).isprintable()
