"""The states of all measures, and how a batch adds to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields

import torch
from torch import Tensor

from headscope.corpus.windows import Batch
from headscope.errors import HeadscopeError
from headscope.files import Arrays
from headscope.measure.measures import MEASURES, STATES
from headscope.measure.observation import Observe, Seen, Sums, Tokens, observer
from headscope.measure.triangles import pack
from headscope.model.capture import Capture
from headscope.options import Options
from headscope.run.threads import Lanes, Turns

ON_LINES = "attention_sum_on_lines"
"""Kept while a shard is measured, until the rest of `attention_sum` is added to it: see `Sums`."""
Measured = tuple[Batch, Tensor | None]
"""A batch, and the pixels that a vision model takes instead of its tokens."""


class Tally:
    """Measures the batches of one shard and adds them up. L is the number of layers measured, not of layers there
    are."""

    def __init__(self, heads: int, layers: tuple[int, ...], options: Options, device: torch.device) -> None:
        self._heads = heads
        self._layers = layers
        self._options = options
        self._device = device
        self._observe: Observe = observer(device)
        self.states: dict[str, Tensor] = {
            name: state.zeros(len(layers), heads, options.length, device) for name, state in STATES.items()
        }
        self.states[ON_LINES] = self.states.pop("attention_sum")
        self._sums = [Sums(*(self.states[field.name][index] for field in fields(Sums))) for index in range(len(layers))]

    def add(self, lanes: Lanes, batches: Iterable[Measured], tick: Callable[[int], None]) -> None:
        """Run the model over batches and add what all measures see; `tick` is told the windows of each."""
        turns = Turns()

        def take(capture: Capture, number: int, item: Measured) -> None:
            self._take(capture, turns, number, *item)

        lanes.run(batches, take, turns, lambda item: tick(len(item[0])))

    def _take(self, capture: Capture, turns: Turns, number: int, batch: Batch, pixels: Tensor | None) -> None:
        """One batch, in one lane."""
        tokens = Tokens.of(batch, self._options.special, self._device)
        seen = Seen.empty(len(self._layers), len(batch), self._heads, self._device)

        def receive(layer: int, heads: slice, attention: Tensor, output: Tensor) -> None:
            if layer in self._layers:
                index = self._layers.index(layer)
                with turns.turn((layer, heads.start), number):
                    self._observe(attention, output, heads, tokens, self._options, self._sums[index], seen.layer(index))

        if pixels is None:
            capture.run_by_heads(tokens.ids, tokens.real.long(), receive, last=self._layers[-1])
        else:
            capture.run_by_heads(pixels, None, receive, last=self._layers[-1])
        self._refuse_nan(seen)
        with turns.turn("measures", number):
            for measure in MEASURES:
                measure.update(self.states, tokens, seen)

    def arrays(self) -> Arrays:
        """The states of a shard, symmetric ones packed. They are handed over: nothing can be added after."""
        self.states["attention_sum"] = self.states.pop(ON_LINES).add_(self.states["attention_sum_without_lines"])
        arrays: Arrays = {}
        for name, state in STATES.items():
            array = self.states.pop(name).cpu().numpy()
            arrays[name] = pack(array) if state.symmetric else array
        return arrays

    def _refuse_nan(self, seen: Seen) -> None:
        """The largest similarity is NaN or infinite as soon as one output of the head is."""
        wrong = seen.peak.isnan() | seen.peak.isposinf()
        if bool(wrong.any()):
            index, _, head = (int(place) for place in wrong.nonzero()[0])
            raise HeadscopeError(
                f"Layer {self._layers[index]}, head {head} puts out NaN or infinity; the model's weights are damaged, "
                "or its precision is too low (try --dtype float32)."
            )
