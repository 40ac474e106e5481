"""What all measures of a study say of one text: what was captured of it, played to them once more."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from headscope.corpus.windows import Batch
from headscope.measure.accumulate import AllMeasures
from headscope.measure.tables import Totals, heads_table
from headscope.model.capture import Capture
from headscope.model.recording import ReceiveHeads
from headscope.options import SHORTEST, Options

if TYPE_CHECKING:
    import pandas as pd

    from headscope.one_text.view import OneText


def summary(view: OneText) -> pd.DataFrame:
    """The table `heads` of a study of this one window."""
    length = max(SHORTEST, view.size)
    options = Options(
        length=length,
        threshold=view.threshold,
        line_threshold=view.line_threshold,
        special=view.special_option,
        similarity=view.similarity_option,
    )
    shard = AllMeasures(options, tuple(view.layers), view.heads).begin(torch.device("cpu"))
    shard.take(cast(Capture, _Replay(view, length)), _batch(view, length), lambda place: nullcontext())
    return heads_table(Totals(shard.arrays()), view.layers)


class _Replay:
    """Stands where a capture would, and hands on what was captured before."""

    def __init__(self, view: OneText, length: int) -> None:
        self._view = view
        self._missing = length - view.size

    def run_by_heads(
        self, inputs: Any, mask: Any, receive: ReceiveHeads, last: int | None = None, types: None = None
    ) -> None:
        view, rows = self._view, (0, self._missing)
        unknown = np.full((view.heads, view.size), np.nan, np.float32)
        for layer in view.layers:
            attention = np.pad(view.attention[layer], ((0, 0), rows, rows))
            output = np.pad(view.output[layer], ((0, 0), rows, (0, 0)))
            lengths = np.pad(unknown if view.lengths is None else view.lengths[layer], ((0, 0), rows))
            heads = slice(0, view.heads)
            receive(layer, heads, *(torch.tensor(array)[None] for array in (attention, output, lengths)))


def _batch(view: OneText, length: int) -> Batch:
    more = (0, length - view.size)
    return Batch(
        np.pad(view.ids, more)[None],
        np.array([view.size], dtype=np.int64),
        np.pad(view.sentence, more, constant_values=-1)[None],
        np.pad(view.kind, more)[None],
        np.pad(view.special, more)[None],
        np.zeros(1, dtype=np.int64),
    )
