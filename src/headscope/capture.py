"""A and Z of every head of every layer, while the model runs.

The road: a function registered with transformers' attention interface calls the model's own eager attention and hands
what it returns to a recorder that travels with the call. Families outside the interface are hooked (`families`).
Layers are numbered by the order in which they are called; nothing relies on `module.layer_idx`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from headscope.errors import HeadscopeError
from headscope.families import HOOKED, Hooked

NAME = "headscope"

Receive = Callable[[int, Tensor, Tensor], None]
"""Called once a layer with its number, A (B, H, S, S) and Z (B, H, S, d)."""


class _Enough(Exception):
    """Ends the forward pass: the last layer wanted has reported."""


class Recorder:
    """Numbers the layers of one forward pass as they report, hands them on, and ends the pass after layer `last`."""

    def __init__(self, receive: Receive, last: int | None = None) -> None:
        self._receive = receive
        self._last = last
        self.layers = 0

    def record(self, attention: Tensor, output: Tensor) -> None:
        """attention: (B, H, S, S); output: (B, H, S, d)."""
        layer = self.layers
        self.layers += 1
        self._receive(layer, attention, output)
        if layer == self._last:
            raise _Enough


def attention_function(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    headscope_recorder: Recorder | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor]:
    """The model's own eager attention; a recorder that came along with the call is shown the result."""
    output, attention = _eager(module)(module, query, key, value, attention_mask, **kwargs)
    if headscope_recorder is not None:
        headscope_recorder.record(attention, output.transpose(1, 2))
    return output, attention


AttentionInterface.register(NAME, attention_function)
AttentionMaskInterface.register(NAME, eager_mask)


class Capture:
    """Runs a network and reports A and Z of every layer.

    Making one runs a few tokens through the whole network. This settles the route, counts layers and heads, and
    proves that every layer reports: a model that can't be captured rightly is refused here.
    """

    def __init__(self, network: Any) -> None:
        self._network = network
        self._hooked: Hooked | None = None
        heads = self._probe()
        family = network.config.model_type
        if not heads and family in HOOKED:
            self._hooked = HOOKED[family]
            heads = self._probe()
        name = f"The model {type(network).__name__} (family {family})"
        expected = _expected_layers(network)
        if not heads:
            raise HeadscopeError(
                f"{name} does not use transformers' attention interface and headscope has no hooks for it, "
                "so its heads can't be captured."
            )
        if len(heads) != expected:
            raise HeadscopeError(
                f"{name} has {expected} layers but {len(heads)} reported their heads; "
                "headscope can't capture it rightly."
            )
        if len(set(heads)) > 1:
            raise HeadscopeError(f"{name} has layers with different numbers of heads, which headscope can't tabulate.")
        self.layers = len(heads)
        self.heads, self.head_width = heads[0]

    @property
    def route(self) -> str:
        """How A and Z are had: the attention interface, or hooks."""
        return "hooks" if self._hooked else "interface"

    def run(self, ids: Tensor, mask: Tensor, receive: Receive, last: int | None = None) -> None:
        """One forward pass over ids and mask, (B, S); the model is stopped after layer `last`."""
        self._pass(ids, mask, Recorder(receive, last))

    def _probe(self) -> list[tuple[int, int]]:
        """Heads and head width of every layer that reports."""
        found: list[tuple[int, int]] = []
        device = next(self._network.parameters()).device
        ids = torch.zeros(1, 8, dtype=torch.long, device=device)
        self.run(ids, torch.ones_like(ids), lambda layer, A, Z: found.append((Z.shape[1], Z.shape[3])))
        return found

    def _pass(self, ids: Tensor, mask: Tensor, recorder: Recorder) -> None:
        inputs: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
        if getattr(self._network.config, "use_cache", None) is not None:
            inputs["use_cache"] = False
        with torch.inference_mode(), ExitStack() as stack:
            if self._hooked:
                stack.enter_context(_hooks(self._network, self._hooked, recorder))
                inputs["output_attentions"] = True
            else:
                stack.enter_context(_interface(self._network))
                inputs["headscope_recorder"] = recorder
            stack.enter_context(suppress(_Enough))
            self._network(**inputs)


def _eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    for kind in type(module).__mro__:
        found = getattr(sys.modules.get(kind.__module__), "eager_attention_forward", None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    raise HeadscopeError(
        f"{type(module).__name__} has no eager attention of its own beside it, so its heads can't be captured."
    )


def _expected_layers(network: Any) -> int:
    config = network.config.get_text_config()
    layers: int = config.num_hidden_layers
    return layers


@contextmanager
def _interface(network: Any) -> Iterator[None]:
    """Parts of a network may keep configurations of their own (T5's encoder and decoder do): set and restore all."""
    parts = [module.config for module in network.modules() if isinstance(module, PreTrainedModel)]
    before = [config._attn_implementation for config in parts]
    for config in parts:
        config._attn_implementation = NAME
    try:
        yield
    finally:
        for config, name in zip(parts, before, strict=True):
            config._attn_implementation = name


@contextmanager
def _hooks(network: Any, hooked: Hooked, recorder: Recorder) -> Iterator[None]:
    joined: dict[nn.Module, Tensor] = {}

    def keep_output(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        joined[module] = inputs[0]

    def report(module: nn.Module, inputs: Any, returned: tuple[Tensor, ...]) -> None:
        attention = returned[hooked.weights]
        heads = attention.shape[1]
        output = joined.pop(module.get_submodule(hooked.projection))
        recorder.record(attention, output.unflatten(-1, (heads, -1)).transpose(1, 2))

    handles = []
    for module in network.modules():
        if type(module).__name__ == hooked.attention:
            handles.append(module.get_submodule(hooked.projection).register_forward_pre_hook(keep_output))
            handles.append(module.register_forward_hook(report))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
