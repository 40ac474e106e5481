"""Any field of a model folder's files, changed to anything: a network of the same weights, or one sentence."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

import headscope
from headscope.errors import HeadscopeError

EXAMPLES = int(os.environ.get("HEADSCOPE_EXAMPLES", "8")) * 12
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors.index.json")
hostile = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize=EXAMPLES < 1000,
    suppress_health_check=list(HealthCheck),
)
numbers = st.sampled_from([0, -1, 1, 7, 2**31, 2**63, 10**30, 0.5, -1e9, 1e308, float("nan"), float("inf")])
words = st.sampled_from(
    ["", "a", "\x1b[31m", "\ud800", "../model.safetensors", "/etc/passwd", "evil/kernel", "x.bin", "[UNK]", "bert"]
)
scalars = st.none() | st.booleans() | numbers | words
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner))
NAMED = {
    *(
        "auto_map",
        "attn_implementation",
        "quantization_config",
        "transformers_weights",
        "tokenizer_file",
        "text_config",
    ),
    *("rope_parameters", "layer_types", "id2label", "architectures", "pruned_heads", "truncation", "dtype"),
}
names = st.sampled_from(sorted(NAMED))


@pytest.fixture(scope="module")
def parts(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with its weights behind an index."""
    folder = Path(shutil.copytree(tiny_folder, tmp_path_factory.mktemp("fuzzed") / "copy"))
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    save_file(weights, folder / "model-00001-of-00001.safetensors", {"format": "pt"})
    index = {"metadata": {}, "weight_map": dict.fromkeys(weights, "model-00001-of-00001.safetensors")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def holders(content: Any) -> Iterator[Any]:
    """All objects and lists in a file; of a vocabulary only the first words matter."""
    if isinstance(content, (dict, list)) and content:
        yield content
        for one in list(content.values() if isinstance(content, dict) else content)[:40]:
            yield from holders(one)


@hostile
@given(data=st.data())
def test_a_changed_field_gives_the_same_network_or_one_sentence(parts, tiny, data):
    name = data.draw(st.sampled_from(FILES))
    path = parts / name
    before = path.read_text()
    content = json.loads(before)
    for _ in range(data.draw(st.integers(1, 3))):
        holder = data.draw(st.sampled_from(list(holders(content))))
        place = data.draw(st.sampled_from(sorted(holder) if isinstance(holder, dict) else range(len(holder))))
        match data.draw(st.sampled_from(["change", "change", "remove", "add"])):
            case "change":
                holder[place] = data.draw(values)
            case "remove":
                del holder[place]
            case "add" if isinstance(holder, dict):
                holder[data.draw(names)] = data.draw(values)
        if not content:
            break
    try:
        path.write_text(json.dumps(content))
        loaded(parts, tiny)
    finally:
        path.write_text(before)


@hostile
@given(name=st.sampled_from(FILES), place=st.integers(0, 10**6), put=st.binary(max_size=4), cut=st.integers(0, 50))
def test_changed_bytes_give_the_same_network_or_one_sentence(parts, tiny, name, place, put, cut):
    path = parts / name
    before = path.read_bytes()
    place %= len(before)
    try:
        path.write_bytes(before[:place] + put + before[place + cut :])
        loaded(parts, tiny)
    finally:
        path.write_bytes(before)


@hostile
@given(place=st.integers(0, 10**5), put=st.binary(max_size=8), cut=st.integers(0, 9))
def test_changed_bytes_of_weights_give_a_network_or_one_sentence(parts, tiny, place, put, cut):
    path = parts / "model-00001-of-00001.safetensors"
    before = path.read_bytes()
    try:
        path.write_bytes(before[:place] + put + before[place + cut :])
        loaded(parts, None)
    finally:
        path.write_bytes(before)


def loaded(folder: Path, same_as: headscope.Model | None) -> None:
    try:
        model = headscope.load(str(folder), device="cpu")
    except HeadscopeError as problem:
        sentence = str(problem)
        assert sentence.isprintable()
        assert len(sentence) <= 900
        return
    assert same_as is None or model.weights_hash == same_as.weights_hash
    assert max(model.tokenizer("The naïve cat, 京都!")["input_ids"]) < model.embedding_rows
    assert all(notice.isprintable() for notice in model.notices)
