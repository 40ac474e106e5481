"""The ways to get the same numbers that headscope is measured against.

Each takes windows (a `Batch`) and a batch size and does all measures for all heads, except `bare`, which only runs the
model. TransformerLens and nnsight hand over A and Z; the measures are then headscope's vectorised torch version, so
that only the way of capturing differs.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from headscope.corpus.windows import KINDS, Batch
from headscope.measure import observation
from headscope.measure.accumulate import AllMeasures
from headscope.model import compiled_linear
from headscope.model.loading import Model
from headscope.options import Options

Contender = Callable[[Batch, int], Any]


def bare(model: Model) -> Contender:
    """The limit: a forward pass with SDPA that measures nothing."""

    def run(windows: Batch, size: int) -> None:
        with torch.inference_mode():
            for begin in range(0, len(windows), size):
                batch = windows[begin : begin + size]
                model.network(input_ids=torch.from_numpy(batch.ids), attention_mask=torch.from_numpy(batch.mask))

    return run


def arithmetic(model: Model, length: int) -> float:
    """Multiplications and additions of one window: weights of the layers, and the two products of attention."""
    config = model.network.config
    weights = 4 * config.hidden_size**2 + 2 * config.hidden_size * config.intermediate_size
    return float(config.num_hidden_layers * 2 * length * (weights + 2 * length * config.hidden_size))


def arithmetic_of_tail(model: Model, length: int) -> float:
    """Of it, what follows the Z of the last layer."""
    config = model.network.config
    return float(2 * length * (config.hidden_size**2 + 2 * config.hidden_size * config.intermediate_size))


def matrix_product(model: Model, options: Options) -> Contender:
    """The machine's peak: as much arithmetic as a forward pass has, in products of large matrices."""
    side = 3072
    one, other = torch.randn(side, side), torch.randn(side, side)

    def run(windows: Batch, size: int) -> None:
        rows = round(len(windows) * arithmetic(model, options.length) / (2 * side**2))
        for begin in range(0, rows, side):
            one[: rows - begin] @ other

    return run


def machine() -> dict[str, float]:
    """What one thread does at best: products of large matrices, and copies of memory that no cache holds."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    side, size = 2048, 2**28
    one, other, into = torch.randn(side, side), torch.randn(side, side), torch.empty(side, side)
    source, target = torch.zeros(size, dtype=torch.uint8), torch.zeros(size, dtype=torch.uint8)
    product = min(_seconds(lambda: torch.mm(one, other, out=into)) for _ in range(5))
    layer = torch.nn.Linear(side, side).requires_grad_(False)
    compiled = compiled_linear._library() is not None
    ours = min(_seconds(lambda: compiled_linear.multiplied(layer, one)) for _ in range(5)) if compiled else product
    copy = min(_seconds(lambda: target.copy_(source)) for _ in range(5))
    torch.set_num_threads(threads)
    gflops = {"gflops": min(product, ours), "torch_gflops": product}
    return {
        **{name: 2 * side**3 / seconds / 1e9 for name, seconds in gflops.items()},
        "gb_per_second": 2 * size / copy / 1e9,
    }


def _seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def stages_at_best(model: Model, length: int, windows: int, machine: dict[str, float]) -> dict[str, float]:
    """Milliseconds a window that stages would take if they did nothing but arithmetic at the peak of matrix products,
    or move memory as fast as a copy: A is read once, and the sums of a head are read and written once a batch."""
    config = model.network.config
    heads = config.num_hidden_layers * config.num_attention_heads
    forward = arithmetic(model, length)
    product = heads * length**2 * (config.hidden_size // config.num_attention_heads)  # half of C
    moved = heads * length**2 * (4 + 2 * (8 + 8 / 2 + 2 / 2) / windows)
    per_flop, per_byte = 1e-6 / machine["gflops"], 1e-6 / machine["gb_per_second"]
    return {
        "forward, bare": forward * per_flop,
        "forward, captured, last layer's tail skipped": (forward - arithmetic_of_tail(model, length)) * per_flop,
        "similarity, Z Zᵀ (also in the pass below)": product * per_flop,
        "attention, similarity and counts, one pass over all heads": product * per_flop + moved * per_byte,
    }


def _measured_by(capture: Any, options: Options) -> Contender:
    def run(windows: Batch, size: int) -> dict[str, Any]:
        shard = AllMeasures(options, tuple(range(capture.layers)), capture.heads).begin(torch.device("cpu"))
        shard._observer = observation.Observing
        for begin in range(0, len(windows), size):
            shard.take(capture, windows[begin : begin + size], lambda place: nullcontext())
        return shard.arrays()

    return run


def _no_lengths(attention: torch.Tensor) -> torch.Tensor:
    """The contenders are spared the lengths of the value vectors: (B, H, S, S) -> (B, H, S)."""
    return torch.full(attention.shape[:3], torch.nan)


class _NNsight:
    def __init__(self, model: Model) -> None:
        import nnsight

        self._eager = model.network.config._attn_implementation
        self._network = model.network
        with warnings.catch_warnings(action="ignore"):  # one for each module named "output", see below
            self._traced = nnsight.NNsight(model.network)
        self.layers = model.network.config.num_hidden_layers
        self.heads = model.network.config.num_attention_heads

    def run_by_heads(
        self, ids: torch.Tensor, mask: torch.Tensor, receive: Any, last: int | None = None, types: None = None
    ) -> None:
        self._network.set_attn_implementation("eager")
        saved = []
        with torch.inference_mode(), self._traced.trace(input_ids=ids, attention_mask=mask, output_attentions=True):
            for layer in self._traced.encoder.layer:
                attention = layer.attention.self.output[1].save()
                # nnsight calls a module named "output" E_output: the plain name is what a module returns.
                saved.append((attention, layer.attention.E_output.dense.input.save()))
        self._network.set_attn_implementation(self._eager)
        for number, (attention, joined) in enumerate(saved):
            output = joined.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            receive(number, slice(0, self.heads), attention, output, _no_lengths(attention))


def nnsight(model: Model, options: Options) -> Contender:
    return _measured_by(_NNsight(model), options)


class _TransformerLens:
    """`BertForNextSentencePrediction`: its masked-LM class computes a vocabulary's worth of logits besides."""

    def __init__(self, model: Model) -> None:
        from transformer_lens.model_bridge import TransformerBridge
        from transformers import BertForNextSentencePrediction

        network = BertForNextSentencePrediction(deepcopy(model.network.config)).eval()
        network.bert.load_state_dict(model.network.state_dict(), strict=False)
        self._bridge = TransformerBridge.boot_transformers(
            "google-bert/bert-base-uncased", hf_model=network, tokenizer=model.tokenizer
        )
        self.layers = model.network.config.num_hidden_layers
        self.heads = model.network.config.num_attention_heads

    def run_by_heads(
        self, ids: torch.Tensor, mask: torch.Tensor, receive: Any, last: int | None = None, types: None = None
    ) -> None:
        wanted = [f"blocks.{n}.attn.{name}" for n in range(self.layers) for name in ("hook_pattern", "hook_z")]
        with torch.inference_mode():
            _, cache = self._bridge.run_with_cache(ids, attention_mask=mask, names_filter=wanted)
        for number in range(self.layers):
            output = cache[f"blocks.{number}.attn.hook_z"].reshape(*ids.shape, self.heads, -1)
            attention = cache[f"blocks.{number}.attn.hook_pattern"]
            receive(number, slice(0, self.heads), attention, output.transpose(1, 2), _no_lengths(attention))


def transformer_lens(model: Model, options: Options) -> Contender:
    return _measured_by(_TransformerLens(model), options)


def plain_script(model: Model, options: Options) -> Contender:
    """What a researcher would write: one text at a time, attentions returned, hooks, loops over heads."""

    def run(windows: Batch, size: int) -> None:
        network = model.network
        before = network.config._attn_implementation
        network.set_attn_implementation("eager")
        joined: list[torch.Tensor] = []
        handles = [
            projection.register_forward_pre_hook(lambda _, inputs: joined.append(inputs[0]))
            for projection in _projections(network)
        ]
        for window in range(len(windows)):
            joined.clear()
            batch = windows[window : window + 1]
            with torch.no_grad():
                attentions = network(
                    input_ids=torch.from_numpy(batch.ids),
                    attention_mask=torch.from_numpy(batch.mask),
                    output_attentions=True,
                ).attentions
            for attention, output in zip(attentions, joined, strict=True):
                heads = attention.shape[1]
                output = output[0].unflatten(-1, (heads, -1))
                for head in range(heads):
                    _one_head(attention[0, head].numpy(), output[:, head].numpy(), batch, options)
        for handle in handles:
            handle.remove()
        network.set_attn_implementation(before)

    return run


def _projections(network: Any) -> list[torch.nn.Module]:
    if network.config.model_type == "mpnet":
        return [layer.attention.attn.o for layer in network.encoder.layer]
    return [layer.attention.output.dense for layer in network.encoder.layer]


def _one_head(attention: np.ndarray, output: np.ndarray, batch: Batch, options: Options) -> dict[str, Any]:
    ids, sentence, kind = batch.ids[0], batch.sentence[0], batch.kind[0]
    received = attention.sum(0)
    lines = received / received.max() > options.line_threshold
    without = attention * ~lines
    share = {name: received[kind == k].sum() for k, name in enumerate(KINDS)}
    similarity = output @ output.T
    np.fill_diagonal(similarity, 0)
    normalised = similarity / similarity.max()
    upper = np.triu_indices(len(ids), 1)
    values = normalised[upper]
    spectrum, _ = np.histogram(values, bins=200, range=(-1, 1))
    high = values > options.threshold
    left, right = upper[0][high], upper[1][high]
    equal = ids[left] == ids[right]
    together = (sentence[left] == sentence[right]) & (sentence[left] >= 0)
    distances = np.bincount(right - left, minlength=len(ids))
    includes: Counter[int] = Counter()
    for i, j in zip(left, right, strict=True):
        includes.update({int(ids[i]), int(ids[j])})
    block = np.cumsum(lines) - lines
    inside = block[upper[0]] == block[upper[1]]
    return {
        "share": share, "without": without, "spectrum": spectrum, "repeats": equal.mean() if len(equal) else None,
        "together": together.mean() if len(together) else None, "distances": distances,
        "focal": includes.most_common(1), "contrast": values[inside].mean() - values[~inside].mean(),
    }  # fmt: skip
