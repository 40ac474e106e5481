"""All measures at once: what a study makes of the A and Z of its windows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from headscope.corpus.windows import Batch
from headscope.errors import HeadscopeError
from headscope.files import Arrays, zeros
from headscope.measure.catalogue import STATES, shard_specs
from headscope.measure.declaration import Specs
from headscope.measure.measures import MEASURES
from headscope.measure.observation import LayerSums, Tokens
from headscope.measure.observer import observer
from headscope.measure.random_pairs import random_focal
from headscope.measure.row_layout import WIDTH
from headscope.measure.rows import rows_of
from headscope.measure.seen import Seen
from headscope.measure.triangles import pack
from headscope.model.capture import Capture
from headscope.options import Options
from headscope.speaking import option

ON_LINES = "attention_sum_on_lines"
"""Kept while a shard is measured, until the rest of `attention_sum` is added to it: see `LayerSums`."""
ROWS = "rows"
"""Of every window of a shard, see `row_layout`; they are kept, not added up."""
InTurn = Callable[[Hashable], AbstractContextManager[None]]
"""in_turn(place): batches pass a place one at a time, in their order, so that sums have the same bits every time."""


@dataclass(frozen=True)
class AllMeasures:
    """The states of every measure. layers: those measured, by their numbers; heads: of each.

    A description that every worker gets a copy of (see `run.consumer`); `begin` makes what adds up one shard.
    """

    options: Options
    layers: tuple[int, ...]
    heads: int

    def specs(self) -> Specs:
        return shard_specs(len(self.layers), self.heads, self.options.length)

    def rows(self) -> Specs:
        return {ROWS: ("float64", (len(self.layers), self.heads, WIDTH))} if self.options.keep_windows else {}

    def begin(self, device: torch.device) -> ShardOfMeasures:
        return ShardOfMeasures(self, device)

    def identity(self) -> dict[str, Any]:
        """Results of another set of options are other results."""
        return self.options.as_dict()


class ShardOfMeasures:
    """The states of one shard. L is the number of layers measured, not of layers there are."""

    def __init__(self, what: AllMeasures, device: torch.device) -> None:
        self._what = what
        self._device = device
        self._observer = observer(device)
        size = len(what.layers), what.heads, what.options.length
        self.states: dict[str, Tensor] = {
            name: torch.from_numpy(zeros(state.size(*size), state.shard_dtype)).to(device)
            for name, state in STATES.items()
        }
        self.states[ON_LINES] = self.states.pop("attention_sum")
        self._rows: list[Tensor] = []
        self._sums = [
            LayerSums(*(self.states[field.name][index] for field in fields(LayerSums)))
            for index in range(len(what.layers))
        ]

    def take(self, capture: Capture, batch: Batch, in_turn: InTurn) -> None:
        """Run one batch through the model, in the thread that calls, and add what all measures see."""
        layers, options = self._what.layers, self._what.options
        tokens = Tokens.of(batch, options.special, self._device)
        seen = Seen.empty(len(layers), len(batch), self._what.heads, self._device)
        observe = self._observer(tokens, options)
        of_layers = {layer: (self._sums[index], seen.layer(index)) for index, layer in enumerate(layers)}

        turn = ExitStack()

        def receive(layer: int, heads: slice, attention: Tensor, output: Tensor, lengths: Tensor) -> None:
            if layer not in of_layers:
                return
            # A layer at a time: close behind another, head by head, a batch would wait again and again.
            if heads.start == 0:
                turn.enter_context(in_turn(layer))
            observe(attention, output, lengths, heads, *of_layers[layer])
            if heads.stop == self._what.heads:
                turn.close()

        inputs = (tokens.ids, tokens.real.long()) if batch.pixels is None else capture.inputs(batch)
        types = None if batch.types is None else capture.types(batch)
        capture.run_by_heads(*inputs, receive, last=layers[-1], types=types)
        self._refuse_nan(seen)
        self._draw_pairs(batch, tokens, seen)
        with in_turn("measures"):
            for measure in MEASURES:
                if measure.update is not None:
                    measure.update(self.states, tokens, seen)
            if options.keep_windows:
                self._rows.append(rows_of(tokens, seen).cpu())

    def _draw_pairs(self, batch: Batch, tokens: Tokens, seen: Seen) -> None:
        """Outside of any turn: it takes a while, and adds to nothing."""
        part, counts = tokens.part.cpu().numpy(), seen.pairs.cpu().numpy()
        focal, included = random_focal(batch.ids, part, counts, self._what.options.seed)
        seen.random_focal.copy_(torch.from_numpy(focal))
        seen.random_focal_pairs.copy_(torch.from_numpy(included))

    def arrays(self) -> Arrays:
        """The states, symmetric ones packed. They are handed over: nothing can be added after."""
        self.states["attention_sum"] = self.states.pop(ON_LINES).add_(self.states["attention_sum_without_lines"])
        arrays: Arrays = {}
        for name, state in STATES.items():
            array = self.states.pop(name).cpu().numpy()
            arrays[name] = pack(array) if state.symmetric else array
        if self._rows:
            arrays[ROWS] = torch.cat(self._rows).numpy()
        return arrays

    def _refuse_nan(self, seen: Seen) -> None:
        """The largest similarity is NaN or infinite as soon as one output of the head is."""
        wrong = seen.peak.isnan() | seen.peak.isposinf()
        if bool(wrong.any()):
            index, _, head = (int(place) for place in wrong.nonzero()[0])
            raise HeadscopeError(
                f"Layer {self._what.layers[index]}, head {head} puts out NaN or infinity; the model's weights are "
                f"damaged, or its precision is too low (try {option('dtype', 'float32')})."
            )
