"""Where the time of a study goes, stage by stage."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

import headscope
from headscope.corpus.windows import Batch, Counts, Cutter, cut_all
from headscope.files import hold_on
from headscope.folder.writing import write
from headscope.measure.accumulate import AllMeasures, ShardOfMeasures
from headscope.measure.measures import MEASURES
from headscope.measure.observation import LayerSums, Tokens
from headscope.measure.observer import observer
from headscope.measure.random_pairs import random_focal
from headscope.measure.seen import Seen
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.options import Options
from headscope.run.sums import ExactSum


class Clock:
    """Adds up the seconds spent in each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, stage: str, run: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        result = run()
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - began
        return result


def stages(model: Model, windows: Batch, texts: Callable[[], Any]) -> dict[str, float]:
    """Milliseconds a window of every stage, each on its own; models and measures in one thread, as in a lane."""
    clock = Clock()
    threads = torch.get_num_threads()
    options = Options(max_windows=len(windows))
    count = len(windows)
    needed = clock.time("read", lambda: _first(texts(), 200))
    cut = Counts()
    clock.time("tokenise", lambda: sum(1 for _ in cut_all(needed, Cutter(model.tokenizer, options), cut, None)))
    capture = Capture(model.network)
    shard = AllMeasures(options, tuple(range(capture.layers)), capture.heads).begin(torch.device("cpu"))
    shard.take(capture, windows[:8], lambda place: nullcontext())
    torch.set_num_threads(1)
    hold_on()  # as lanes do
    size = options.windows_at_once
    batches = [
        Tokens.of(windows[begin : begin + size], options.special, torch.device("cpu"))
        for begin in range(0, count, size)
    ]
    # What is made now, once, is not timed below.
    _observed(capture, batches[0], options, shard, Clock())
    for tokens in batches:
        with torch.inference_mode():
            clock.time(
                "forward, bare",
                lambda tokens=tokens: model.network(input_ids=tokens.ids, attention_mask=tokens.real.long()),
            )
        clock.time(
            "forward, captured, last layer's tail skipped",
            lambda tokens=tokens: capture.run_by_heads(tokens.ids, tokens.real.long(), _nothing, capture.layers - 1),
        )
        _observed(capture, tokens, options, shard, clock)
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        small = headscope.study(model, texts(), out=f"{folder}/small", progress=False, max_windows=8)
        manifest = replace(small.manifest, example=None)
        total = ExactSum(shard.arrays())
        (Path(folder) / "large").mkdir()
        clock.time("write", lambda: write(Path(folder) / "large", manifest, total))
    per_window = {"read": cut.windows, "tokenise": cut.windows, "write": 1000}
    names = {"write": "write, spread over 1,000 windows"}
    return {
        names.get(stage, stage): 1000 * seconds / per_window.get(stage, count)
        for stage, seconds in clock.seconds.items()
    }


def _observed(
    capture: Capture,
    tokens: Tokens,
    options: Options,
    shard: ShardOfMeasures,
    clock: Clock,
) -> None:
    """The fused kernel on its own, the product Z Zᵀ on its own, and each measure's update."""
    layers = tuple(range(capture.layers))
    seen = Seen.empty(len(layers), len(tokens.size), capture.heads, torch.device("cpu"))
    observe = observer(torch.device("cpu"))(tokens, options)
    sums = [LayerSums(*(shard.states[name][n] for name in LayerSums.__dataclass_fields__)) for n in layers]

    def receive(layer: int, heads: slice, attention: torch.Tensor, output: torch.Tensor, lengths: torch.Tensor) -> None:
        seen_here, sums_here = seen.layer(layer), sums[layer]
        clock.time("similarity, Z Zᵀ (also in the pass below)", lambda: output @ output.mT)
        clock.time(
            "attention, similarity and counts, one pass over all heads",
            lambda: observe(attention, output, lengths, heads, sums_here, seen_here),
        )

    capture.run_by_heads(tokens.ids, tokens.real.long(), receive, layers[-1])
    drawn_from = tokens.ids.numpy(), tokens.part.numpy(), seen.pairs.numpy()
    clock.time("random pairs, for the chance of a focal token", lambda: random_focal(*drawn_from, options.seed))
    for measure in MEASURES:
        if measure.update is not None:
            clock.time(f"measures: {next(iter(measure.states))}", partial(measure.update, shard.states, tokens, seen))


def _nothing(
    layer: int, heads: slice, attention: torch.Tensor, output: torch.Tensor, lengths: torch.Tensor
) -> None: ...


def _first(texts: Any, most: int) -> list[Any]:
    found = []
    for text in texts:
        found.append(text)
        if len(found) == most:
            break
    return found
