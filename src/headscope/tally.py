"""The states of all measures, and how a batch adds to them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from headscope.capture import Capture
from headscope.errors import HeadscopeError
from headscope.measures import MEASURES
from headscope.measures.base import State
from headscope.observation import Observe, Seen, Sums, Tokens, observer
from headscope.options import Options
from headscope.windows import Batch

STATES: dict[str, State] = {name: state for measure in MEASURES for name, state in measure.STATES.items()}

SYMMETRIC = ("similarity_sum", "high_count")
"""States of which only the half i < j is added to."""


class Tally:
    """Measures batches and adds them up. L is the number of layers measured, not of layers there are."""

    def __init__(self, capture: Capture, layers: tuple[int, ...], options: Options, device: torch.device) -> None:
        self._capture = capture
        self._layers = layers
        self._options = options
        self._device = device
        self._observe: Observe = observer(device)
        self.states: dict[str, Tensor] = {
            name: state.zeros(len(layers), capture.heads, options.length, device) for name, state in STATES.items()
        }
        self._sums = [Sums(*(self.states[field.name][index] for field in fields(Sums))) for index in range(len(layers))]

    def add(self, batch: Batch, pixels: Tensor | None = None) -> None:
        """Run the model over a batch and add what all measures see. pixels: what a vision model takes instead."""
        tokens = Tokens.of(batch, self._options.special, self._device)
        seen = Seen.empty(len(self._layers), len(batch), self._capture.heads, self._device)

        def receive(layer: int, attention: Tensor, output: Tensor) -> None:
            if layer in self._layers:
                index = self._layers.index(layer)
                self._observe(attention, output, tokens, self._options, self._sums[index], seen.layer(index))

        if pixels is None:
            self._capture.run(tokens.ids, tokens.real.long(), receive, last=self._layers[-1])
        else:
            self._capture.run(pixels, None, receive, last=self._layers[-1])
        self._refuse_nan(seen)
        for measure in MEASURES:
            measure.update(self.states, tokens, seen)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The states as they are stored and merged."""
        whole = {
            name: state.cpu().numpy().astype(STATES[name].dtype, copy=False) for name, state in self.states.items()
        }
        for name in SYMMETRIC:
            whole[name] = whole[name] + whole[name].swapaxes(-1, -2)
        return whole

    def _refuse_nan(self, seen: Seen) -> None:
        """The largest similarity is NaN or infinite as soon as one output of the head is."""
        wrong = seen.peak.isnan() | seen.peak.isposinf()
        if bool(wrong.any()):
            index, _, head = (int(place) for place in wrong.nonzero()[0])
            raise HeadscopeError(
                f"Layer {self._layers[index]}, head {head} puts out NaN or infinity; the model's weights are damaged, "
                "or its precision is too low (try --dtype float32)."
            )


def merge(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    """States of several parts, added in the order given. Adding is what merging means for every state."""
    merged = {name: array.copy() for name, array in parts[0].items()}
    for part in parts[1:]:
        add_into(merged, part)
    return merged


def add_into(whole: dict[str, NDArray[Any]], part: dict[str, NDArray[Any]]) -> None:
    for name in whole:
        np.add(whole[name], part[name], out=whole[name])
