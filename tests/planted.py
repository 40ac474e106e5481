"""Heads that were made up, measured as those of a model are: what they know is known."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import torch

from headscope.corpus.windows import Batch
from headscope.files import Arrays
from headscope.measure.accumulate import AllMeasures
from headscope.measure.catalogue import GROUPED
from headscope.measure.jackknife import Jackknife
from headscope.measure.tables import Totals
from headscope.options import Options

LENGTH = 24
WORD = 5
CPU = torch.device("cpu")


class Capture:
    """Hands over one layer of heads. outputs: (windows, heads, LENGTH, width)."""

    def __init__(self, outputs: np.ndarray) -> None:
        self._outputs = torch.tensor(outputs, dtype=torch.float32)

    def run_by_heads(self, ids, mask, receive, last=None, types=None) -> None:
        windows, heads = self._outputs.shape[:2]
        attention = torch.eye(LENGTH).expand(windows, heads, LENGTH, LENGTH).contiguous()
        receive(0, slice(0, heads), attention, self._outputs, torch.ones(windows, heads, LENGTH))


def states(outputs: np.ndarray, ids: np.ndarray, sentence: np.ndarray, text: np.ndarray) -> Arrays:
    """Of one layer. ids, sentence: (windows, LENGTH); text: (windows,), the number of each window's text."""
    windows, heads = outputs.shape[:2]
    batch = Batch(
        ids,
        np.full(windows, LENGTH),
        sentence.astype(np.int32),
        np.full((windows, LENGTH), WORD, dtype=np.int8),
        np.zeros((windows, LENGTH), dtype=bool),
        text,
    )
    shard = AllMeasures(Options(length=LENGTH), (0,), heads).begin(CPU)
    shard.take(Capture(outputs), batch, lambda place: nullcontext())
    return shard.arrays()


def jackknife(arrays: Arrays) -> Jackknife:
    return Jackknife({name: arrays[name] for name in GROUPED}, Totals(arrays))


def near_sighted(windows: int, heads: int, texts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Outputs of heads that see how far apart tokens are and nothing else: each token adds up noise of the places about
    it, over as many as its text has it. (windows, heads, LENGTH, width)."""
    width, far = 6, 7
    noise = rng.normal(size=(windows, heads, LENGTH + far, width))
    sight = rng.integers(2, far + 1, texts.max() + 1)[texts]
    place = np.arange(LENGTH + far)
    behind = place - np.arange(LENGTH)[:, None]  # (LENGTH, LENGTH + far)
    seen = (behind >= 0) & (behind < sight[:, None, None])
    return np.einsum("wsp,whpd->whsd", seen.astype(float), noise)


def windows_of(texts: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of texts, one for each window: texts of unequal length, one to twelve windows."""
    lengths = np.exp(rng.normal(0.7, 0.8, texts)).round().clip(1, 12).astype(int)
    return np.repeat(np.arange(texts), lengths)


def sentences(windows: int, rng: np.random.Generator) -> np.ndarray:
    """(windows, LENGTH): five sentences, their ends anywhere."""
    return np.sort(rng.integers(0, 5, (windows, LENGTH)), 1)
