"""A text and a model -> a `View`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headscope.corpus.texts import Text, as_texts
from headscope.corpus.token_names import readable_tokens
from headscope.corpus.windows import Counts, Cutter, Window
from headscope.errors import HeadscopeError
from headscope.model.capture import Capture
from headscope.model.loading import Model, as_model
from headscope.one_text.layer_array import LayerArray
from headscope.one_text.view import View
from headscope.options import Options, Sentences, Special, Stack
from headscope.run.shards import chosen_layers

LONGEST = 512
"""Tokens of a text that `inspect` takes unless told otherwise; a model may take fewer."""


def inspect(
    model: Model | str,
    text: Any,
    *,
    length: int | None = None,
    threshold: float = 0.3,
    line_threshold: float = 0.3,
    special: Special = "keep",
    sentences: Sentences = "auto",
    layers: Sequence[int] | None = None,
    stack: Stack | None = None,
) -> View:
    """Look at one text closely: its first window, in every head.

    text: a string, or the `Path` of a file. length: the most tokens to take; by default as many as the model
    takes, up to 512. A shorter text is not padded. layers: those to keep, -1 is the last; by default all.
    stack: of an encoder-decoder, which of its stacks of layers.

    >>> import headscope
    >>> view = headscope.inspect("minilm", "The cat sat. The cat slept.")  # doctest: +SKIP
    >>> view.pairs(layer=5, head=8)  # doctest: +SKIP
    """
    given = _first_text(text)
    if given is None or not given.text.strip():
        raise HeadscopeError("The text is empty; there is nothing to look at.")
    model = as_model(model)
    if length is None:
        length = min(LONGEST, model.longest or LONGEST)
    model.check_length(length)
    capture = Capture(model.network, stack)
    options = Options(
        length=length,
        threshold=threshold,
        line_threshold=line_threshold,
        special=special,
        sentences=sentences,
        layers=_numbered(layers, capture.layers) if layers is not None else None,
        windows="first",
        short="pad",
        stack=stack,
    )
    window = next(Cutter(model.tokenizer, options).cut(given, Counts()), None)
    if window is None:
        raise HeadscopeError("The text holds no token of this model; there is nothing to look at.")
    return look(model, capture, window, options)


def look(model: Model, capture: Capture, window: Window, options: Options) -> View:
    """Run one window through a model and keep A and Z of every head."""
    layers = chosen_layers(capture, options)
    size = window.size
    shape = (len(layers), capture.heads, size)
    attention = np.empty((*shape, size), np.float32)
    output = np.empty((*shape, capture.head_width), np.float32)

    def receive(layer: int, heads: slice, A: torch.Tensor, Z: torch.Tensor) -> None:
        if layer in layers:
            place = layers.index(layer)
            attention[place, heads] = A[0].float().cpu().numpy()
            output[place, heads] = Z[0].float().cpu().numpy()

    ids = torch.from_numpy(window.ids[None, :size]).to(model.device)
    capture.run_by_heads(ids, torch.ones_like(ids), receive, last=layers[-1])
    if not np.isfinite(output).all():
        raise HeadscopeError(
            f"A head of {model.name} puts out NaN or infinity; the weights are damaged, "
            "or the precision is too low (try --dtype float32)."
        )
    text, start, end = _excerpt(window)
    return View(
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
        threshold=options.threshold,
        line_threshold=options.line_threshold,
        special_option=options.special,
    )


def _first_text(text: Any) -> Text | None:
    if isinstance(text, Text):
        return text
    if isinstance(text, str):
        return next(iter(as_texts([text])))._replace(origin="")
    return next(iter(as_texts(text)), None)


def _numbered(layers: Iterable[int], count: int) -> tuple[int, ...]:
    """Layers asked for -> their numbers in order; negative ones count from the end."""
    for layer in layers:
        if not -count <= layer < count:
            raise HeadscopeError(f"There is no layer {layer}: the model has {count}, numbered 0 to {count - 1}.")
    return tuple(sorted({layer % count for layer in layers}))


def _excerpt(window: Window) -> tuple[str, NDArray[np.int64], NDArray[np.int64]]:
    """The characters that a window covers, and its tokens' places in them."""
    start, end = window.start[: window.size], window.end[: window.size]
    covering = end > start
    begin = int(start[covering].min()) if covering.any() else 0
    excerpt = window.text.text[begin : int(end.max())]
    return excerpt, np.where(covering, start - begin, 0), np.where(covering, end - begin, 0)
