"""A BERT whose heads were built to do something, so that it is known what they do."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from headscope.model.loading import Model

LENGTH = 24
WIDTH, HEADS = 128, 4
EACH = WIDTH // HEADS
PREVIOUS, COPY = 0, 1
"""Heads of layer 0: one attends to the token before, one to equal tokens, whose values it brings along."""


def planted(tokenizer, name: str = "planted") -> Model:
    """The first half of every embedding says which token it is, the second where it stands."""
    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        intermediate_size=64,
        max_position_embeddings=LENGTH,
    )
    network = BertModel(config).eval().requires_grad_(False)
    half = WIDTH // 2
    words = network.embeddings.word_embeddings.weight
    places = network.embeddings.position_embeddings.weight
    words.zero_()
    words[:, :half] = torch.randn(len(words), half)
    places.zero_()
    places[:, half:] = torch.randn(LENGTH, half)
    network.embeddings.token_type_embeddings.weight.zero_()

    attention = network.encoder.layer[0].attention.self
    seen = torch.randn(LENGTH, EACH)
    _set(attention.key.weight, PREVIOUS, half, _map(places[:, half:], seen))
    _set(attention.query.weight, PREVIOUS, half, _map(places[:, half:], 4 * seen.roll(1, 0)))
    look = torch.linalg.qr(torch.randn(half, EACH))[0].T
    _set(attention.key.weight, COPY, 0, look)
    _set(attention.query.weight, COPY, 0, 4 * look)
    _set(attention.value.weight, COPY, 0, look)
    for part in (attention.key, attention.query, attention.value):
        part.bias.zero_()
    return Model(network, tokenizer, name)


def _map(given: Tensor, wanted: Tensor) -> Tensor:
    """(wanted, given): the linear map from each row of one to that of the other."""
    return torch.linalg.lstsq(given, wanted).solution.T


def _set(weight: Tensor, head: int, begin: int, part: Tensor) -> None:
    """All that a head takes from the embedding, from the column `begin` on."""
    rows = slice(head * EACH, (head + 1) * EACH)
    weight[rows] = 0
    weight[rows, begin : begin + part.shape[1]] = part
