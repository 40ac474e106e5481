"""A head that knows of nothing but distance is told so: its chance given distance is its probability."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from headscope.corpus.windows import Batch
from headscope.measure.accumulate import AllMeasures
from headscope.measure.tables import Totals, heads_table
from headscope.options import Options

LENGTH, WINDOWS = 24, 12


class Planted:
    """Hands over one layer of heads that were made up."""

    def __init__(self, outputs: list[np.ndarray]) -> None:
        self._outputs = torch.tensor(np.stack(outputs, 1), dtype=torch.float32)

    def run_by_heads(self, ids, mask, receive, last=None, types=None) -> None:
        heads = self._outputs.shape[1]
        attention = torch.eye(LENGTH).expand(WINDOWS, heads, LENGTH, LENGTH).contiguous()
        receive(0, slice(0, heads), attention, self._outputs, torch.ones(WINDOWS, heads, LENGTH))


@pytest.fixture(scope="module")
def table():
    """Head 0: tokens up to two apart are alike. Head 1: tokens of one sentence are. Head 2: equal tokens are."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 6, (WINDOWS, LENGTH))
    sentence = np.sort(rng.integers(0, 5, (WINDOWS, LENGTH)), 1).astype(np.int32)
    near = np.array([[float(i <= k <= i + 2) for k in range(LENGTH + 2)] for i in range(LENGTH)])
    one_hot = np.eye(LENGTH + 2)
    outputs = [np.broadcast_to(near, (WINDOWS, *near.shape)), one_hot[sentence], one_hot[ids]]
    batch = Batch(
        ids,
        np.full(WINDOWS, LENGTH),
        sentence,
        np.full((WINDOWS, LENGTH), 5, dtype=np.int8),
        np.zeros((WINDOWS, LENGTH), dtype=bool),
        np.arange(WINDOWS),
    )
    shard = AllMeasures(Options(length=LENGTH), (0,), 3).begin(torch.device("cpu"))
    shard.take(Planted(outputs), batch, lambda place: nullcontext())
    return heads_table(Totals(shard.arrays()), [0])


def test_a_near_sighted_head_that_is_blind_to_sentences_is_explained_by_distance(table):
    near = table.loc[0]
    assert near.mean_distance < 2
    assert near.same_sentence_probability > 2 * near.same_sentence_chance
    assert near.same_sentence_probability == pytest.approx(near.same_sentence_chance_by_distance, rel=1e-12)
    assert near.repeat_probability == pytest.approx(near.repeat_chance_by_distance, rel=1e-12)


def test_a_head_that_knows_sentences_or_words_is_not(table):
    sentences, words = table.loc[1], table.loc[2]
    assert sentences.same_sentence_probability == 1
    assert sentences.same_sentence_chance_by_distance < 0.9
    assert words.repeat_probability == 1
    assert words.repeat_chance_by_distance < 0.5
