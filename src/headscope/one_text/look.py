"""One window and a model -> A, Z and the lengths of the value vectors of every head, kept."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from headscope.corpus.token_names import readable_tokens
from headscope.corpus.windows import Window, unpadded
from headscope.errors import HeadscopeError
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.one_text.layer_array import LayerArray
from headscope.one_text.view import OneText
from headscope.options import Options
from headscope.speaking import option


def look(model: Model, capture: Capture, window: Window, options: Options) -> OneText:
    """Run one window through a model and keep A, Z and the lengths of the value vectors of every head."""
    layers = capture.chosen_layers(options.layers)
    size = window.size
    shape = (len(layers), capture.heads, size)
    attention = np.empty((*shape, size), np.float32)
    output = np.empty((*shape, capture.head_width), np.float32)
    lengths = np.empty(shape, np.float32)

    def receive(layer: int, heads: slice, A: torch.Tensor, Z: torch.Tensor, carried: torch.Tensor) -> None:
        if layer in layers:
            place = layers.index(layer)
            attention[place, heads] = A[0].float().cpu().numpy()
            output[place, heads] = Z[0].float().cpu().numpy()
            lengths[place, heads] = carried[0].cpu().numpy()

    batch = unpadded(window)
    capture.run_by_heads(*capture.inputs(batch), receive, last=layers[-1], types=capture.types(batch))
    if not np.isfinite(output).all():
        raise HeadscopeError(
            f"A head of {model.name} puts out NaN or infinity; the weights are damaged, "
            f"or the precision is too low (try {option('dtype', 'float32')})."
        )
    text, start, end = _excerpt(window)
    return OneText(
        model_name=model.name,
        origin=window.text.origin,
        text=text,
        continues=bool(window.text.text[window.end.max() :].strip()),
        tokens=readable_tokens(model.tokenizer, window.ids[:size]),
        ids=window.ids[:size],
        kind=window.kind[:size],
        sentence=window.sentence[:size],
        special=window.special[:size],
        start=start,
        end=end,
        attention=LayerArray(list(layers), attention),
        output=LayerArray(list(layers), output),
        lengths=LayerArray(list(layers), lengths) if capture.carried_by else None,
        threshold=options.threshold,
        line_threshold=options.line_threshold,
        special_option=options.special,
        similarity_option=options.similarity,
    )


def _excerpt(window: Window) -> tuple[str, NDArray[np.int64], NDArray[np.int64]]:
    """The characters that a window covers, and its tokens' places in them."""
    start, end = window.start[: window.size], window.end[: window.size]
    covering = end > start
    begin = int(start[covering].min()) if covering.any() else 0
    excerpt = window.text.text[begin : int(end.max())]
    return excerpt, np.where(covering, start - begin, 0), np.where(covering, end - begin, 0)
