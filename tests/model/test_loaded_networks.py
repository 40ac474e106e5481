"""A network that is loaded already is taken as it is: any head, any precision; its dtype is said."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessor,
)

import headscope
from headscope.errors import HeadscopeError

TEXTS = [
    "The tide was low. The gulls came, and the gulls ate.",
    "Who fed the gulls? Nobody did, said the watchman.",
] * 4
SIZE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def bert(kind, tokenizer, **more):
    torch.manual_seed(0)
    return kind(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **SIZE, **more)).eval()


def measured(model, out: Path, **more):
    return headscope.study(model, TEXTS, out=out, length=12, windows="first", progress=False, **more)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
def test_any_precision_is_taken_and_said(tiny, tmp_path: Path, dtype: str, capsys) -> None:
    network = bert(BertForMaskedLM, tiny.tokenizer).to(getattr(torch, dtype))
    model = headscope.load(network, tokenizer=tiny.tokenizer)
    assert f"{dtype} on cpu" in repr(model)
    study = measured(model, tmp_path / "s")
    assert study.manifest.model.dtype == dtype
    assert study.windows == 8
    from headscope.cli.study import _summary

    _summary(study, figures=False)
    assert f"BertModel ({dtype}): 2 layers x 4 heads" in capsys.readouterr().out


def test_what_comes_after_the_layers_changes_nothing(tiny, tmp_path: Path) -> None:
    masked = bert(BertForMaskedLM, tiny.tokenizer)
    classifier = bert(BertForSequenceClassification, tiny.tokenizer)
    classifier.bert.load_state_dict(masked.bert.state_dict(), strict=False)
    one, other = (
        measured(headscope.load(network, tokenizer=tiny.tokenizer), tmp_path / type(network).__name__)
        for network in (masked, classifier)
    )
    assert one.heads.equals(other.heads)


def test_decoders_and_encoder_decoders_are_taken(tiny, tmp_path: Path) -> None:
    words = len(tiny.tokenizer)
    gpt = GPT2LMHeadModel(GPT2Config(vocab_size=words, n_embd=32, n_layer=2, n_head=4, n_positions=64)).eval()
    t5 = T5ForConditionalGeneration(
        T5Config(vocab_size=words, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0)
    ).eval()
    for name, network in (("gpt", gpt), ("t5", t5)):
        assert measured(headscope.load(network, tokenizer=tiny.tokenizer), tmp_path / name).windows == 8


def test_nulls_of_a_loaded_network_redraw_its_weights(tiny, tmp_path: Path) -> None:
    model = headscope.load(bert(BertForMaskedLM, tiny.tokenizer), tokenizer=tiny.tokenizer)
    study = measured(model, tmp_path / "s")
    found = headscope.nulls(study, model, TEXTS, only=["weights"], progress=False)
    assert found.nulls["weights"].windows == 8


def test_a_vision_model_brings_its_image_processor() -> None:
    network = ViTForImageClassification(ViTConfig(image_size=32, patch_size=8, **SIZE)).eval()
    model = headscope.load(network, tokenizer=ViTImageProcessor(size={"height": 32, "width": 32}))
    assert model.takes_images
    assert model.architecture == "ViTModel"


def test_a_name_says_where_it_came_from(tiny, tiny_folder: Path) -> None:
    from transformers import AutoModel

    model = headscope.load(AutoModel.from_pretrained(tiny_folder).eval(), tokenizer=tiny.tokenizer)
    assert model.name == str(tiny_folder)
    assert model.weights_hash == tiny.weights_hash


def test_what_can_not_be_taken_is_refused_in_one_sentence(tiny) -> None:
    network = bert(BertForMaskedLM, tiny.tokenizer)
    tokenizer = tiny.tokenizer
    for arguments, more, said in (
        ((network,), {}, "BertForMaskedLM needs its tokenizer; give headscope.load"),
        ((network,), {"tokenizer": "bert-base-uncased"}, "tokenizer is of type str"),
        ((network,), {"tokenizer": ViTImageProcessor()}, "tokenizer is of type ViTImageProcessor"),
        ((network,), {"tokenizer": tokenizer, "dtype": "float16"}, "dtype is for a model that is loaded by name"),
        ((network,), {"tokenizer": tokenizer, "device": "cpu"}, "device is for a model that is loaded by name"),
        (("minilm",), {"tokenizer": tokenizer}, "tokenizer is for a network that is loaded already"),
        ((torch.nn.Linear(2, 2),), {"tokenizer": tokenizer}, "The model is of type Linear; give a name, or a network"),
        ((None,), {}, "The model is of type NoneType"),
        ((bert(BertForMaskedLM, tokenizer).train(),), {"tokenizer": tokenizer}, "training mode"),
    ):
        with pytest.raises(HeadscopeError, match=said):
            headscope.load(*arguments, **more)
    with pytest.raises(HeadscopeError, match=r"model is of type BertForMaskedLM; give .* tokenizer=tokenizer"):
        headscope.study(network, TEXTS)


def test_a_tokenizer_with_more_tokens_than_the_network_is_refused_or_said(tiny) -> None:
    network = bert(BertForMaskedLM, tiny.tokenizer)
    network.resize_token_embeddings(300)
    with pytest.raises(HeadscopeError, match="300"):
        headscope.load(network, tokenizer=tiny.tokenizer)
