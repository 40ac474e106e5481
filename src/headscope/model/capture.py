"""A and Z of every head of every layer, while the model runs.

The road: a function registered with transformers' attention interface calls the model's own eager attention and
hands what it returns to a recorder that travels with the call. Families outside the interface are hooked
(`families`). Layers are numbered by the order in which they are called; nothing relies on `module.layer_idx`.
An encoder-decoder has three stacks of layers, of which one is captured: `encoder`, `decoder` or `cross`.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from headscope.errors import HeadscopeError
from headscope.model.attention_parts import OwnAttention, Part, Room, heads_at_once, in_parts, windows_at_once
from headscope.model.families import HOOKED
from headscope.model.families.hooked import Hooked, split_heads

NAME = "headscope"
STACKS = ("encoder", "decoder", "cross")
"""Of an encoder-decoder: self attention of either, and the decoder's attention to the encoder."""

Receive = Callable[[int, Tensor, Tensor], None]
"""Called once a layer with its number, A (B, H, S, S) and Z (B, H, S, d). A is lent: the next layer overwrites it."""
ReceiveHeads = Callable[[int, slice, Tensor, Tensor], None]
"""The same for some heads of a layer, which may be fewer than all: their numbers come second, and H counts them.
A is lent until the next heads come."""


class NotCaptured(HeadscopeError):
    """The heads of a model can't be had, or not rightly."""


class _Enough(Exception):
    """Ends the forward pass: the last layer wanted has reported."""


class Call(NamedTuple):
    """The shape of one attention call."""

    queries: int
    keys: int
    heads: int
    head_width: int


class Recorder:
    """Counts the attention calls of a forward pass, hands on those that are layers, ends the pass after `last`.

    layers: the number of a call -> the number of its layer; None where every call is one.
    whole: whether all heads of a layer are wanted at once.
    """

    def __init__(
        self,
        receive: ReceiveHeads,
        layers: Mapping[int, int] | None = None,
        last: int | None = None,
        whole: bool = True,
    ) -> None:
        self._receive = receive
        self._layers = layers
        self._last = last
        self.whole = whole
        self._calls = 0
        self.room = Room()

    def record(self, parts: Iterable[Part]) -> None:
        """One attention call, some heads after the others."""
        layer = self._calls if self._layers is None else self._layers.get(self._calls)
        self._calls += 1
        for heads, attention, output in parts:
            if layer is not None:
                self._receive(layer, heads, attention, output)
        if layer is not None and layer == self._last:
            raise _Enough


def attention_function(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    headscope_recorder: Recorder | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """The model's own eager attention; a recorder that came along with the call is shown the result.

    The weights go no further then: the model, which can do without them, would keep them through the rest of a layer.
    """
    eager = partial(_eager(module), module, **kwargs)
    recorder = headscope_recorder
    if recorder is None:
        return eager(query, key, value, attention_mask)
    outputs: list[Tensor] = []

    def parts() -> Iterator[Part]:
        call = OwnAttention(eager, query, key, value, attention_mask)
        windows = windows_at_once(call, kwargs)
        heads = query.shape[1] if recorder.whole else heads_at_once(call, module, kwargs)
        for part in in_parts(call, windows, heads, recorder.room):
            outputs.append(part.output.transpose(1, 2))
            yield part

    recorder.record(parts())
    return torch.cat(outputs, 2) if len(outputs) > 1 else outputs[0], None


AttentionInterface.register(NAME, attention_function)
AttentionMaskInterface.register(NAME, eager_mask)


class Capture:
    """Runs a network and reports A and Z of every layer.

    Making one runs a few tokens through the whole network. This settles the route, counts layers and heads,
    and proves that every layer reports: a model that can't be captured rightly is refused here.

    stack: for encoder-decoders, one of STACKS; none means `encoder`. The decoder reads the same window as the
    encoder, so that in `cross` row i is token i in the decoder and column j token j in the encoder.
    """

    def __init__(self, network: Any, stack: str | None = None) -> None:
        if network.training:
            raise HeadscopeError(
                "The network is in training mode, where dropout changes its heads; call network.eval()."
            )
        self._network = network
        self._name = f"model {type(network).__name__} (family {network.config.model_type})"
        self._two_stacks = has_two_stacks(network)
        self._reads_text = network.main_input_name == "input_ids"
        self.stack = self._chosen_stack(stack)
        self._hooked, calls = self._find_route()
        mine = [number for number, call in enumerate(calls) if self._stack_of(call) == self.stack]
        self._layer_of = {number: layer for layer, number in enumerate(mine)}
        found = {(calls[number].heads, calls[number].head_width) for number in mine}
        expected = self._expected_layers()
        if len(mine) != expected:
            raise NotCaptured(
                f"The {self._name} has {expected or 'an unknown number of'} layers but {len(mine)} reported their "
                "heads; headscope can't capture it rightly."
            )
        if len(found) > 1:
            raise NotCaptured(
                f"The {self._name} has layers with different numbers of heads, which headscope can't tabulate."
            )
        self.layers = len(mine)
        self.heads, self.head_width = found.pop()

    @property
    def route(self) -> str:
        """How A and Z are had: the attention interface, or hooks."""
        return "hooks" if self._hooked else "interface"

    @property
    def dtype(self) -> torch.dtype:
        """Precision of the weights."""
        dtype: torch.dtype = next(self._network.parameters()).dtype
        return dtype

    @property
    def hooked(self) -> Hooked | None:
        return self._hooked

    def run(self, inputs: Tensor, mask: Tensor | None, receive: Receive, last: int | None = None) -> None:
        """One forward pass; the model is stopped after layer `last`.

        inputs: token ids (B, S) with mask (B, S), or what a model without text takes: pixel values.
        """

        def whole(layer: int, heads: slice, attention: Tensor, output: Tensor) -> None:
            receive(layer, attention, output)

        self._pass(self.arguments(inputs, mask), Recorder(whole, self._layer_of, last))

    def run_by_heads(self, inputs: Tensor, mask: Tensor | None, receive: ReceiveHeads, last: int | None = None) -> None:
        """The same, where the heads of a layer may come one after the other: faster where windows are long."""
        self._pass(self.arguments(inputs, mask), Recorder(receive, self._layer_of, last, whole=False))

    def chosen_layers(self, asked: Sequence[int] | None) -> tuple[int, ...]:
        """The layers to measure: those asked for, or all there are."""
        layers = tuple(asked) if asked is not None else tuple(range(self.layers))
        if layers[-1] >= self.layers:
            raise HeadscopeError(
                f"--layers asks for layer {layers[-1]}, but the model has {self.layers}, "
                f"numbered 0 to {self.layers - 1}."
            )
        return layers

    def twin(self) -> Capture:
        """The same weights in modules of their own, so that another thread can run a batch at the same time."""
        twin = copy.copy(self)
        tensors = (*self._network.parameters(), *self._network.buffers())
        twin._network = copy.deepcopy(self._network, {id(tensor): tensor for tensor in tensors})
        return twin

    def arguments(self, inputs: Tensor, mask: Tensor | None) -> dict[str, Any]:
        """What the network is called with."""
        arguments: dict[str, Any] = {self._network.main_input_name: inputs}
        if mask is not None:
            arguments["attention_mask"] = mask
        if self._two_stacks:
            arguments["decoder_input_ids"] = inputs if self._reads_text else _no_tokens(inputs)
            if mask is not None:
                arguments["decoder_attention_mask"] = mask
        if getattr(self._network.config.get_text_config(), "use_cache", None) is not None:
            arguments["use_cache"] = False
        return arguments

    def _chosen_stack(self, stack: str | None) -> str | None:
        if not self._two_stacks:
            if stack is not None:
                raise HeadscopeError(
                    f"--stack {stack} is for encoder-decoders; the {self._name} has one stack of layers."
                )
            return None
        if stack is not None and stack not in STACKS:
            raise HeadscopeError(f"--stack is {stack!r}; it must be {', '.join(STACKS[:-1])} or {STACKS[-1]}.")
        if stack not in (None, "encoder") and not self._reads_text:
            raise HeadscopeError(
                f"The {self._name} does not read text, so only its encoder can be measured; use --stack encoder."
            )
        return stack or "encoder"

    def _find_route(self) -> tuple[Hooked | None, list[Call]]:
        hooked = HOOKED.get(self._network.config.model_type)
        reason = "it does not use transformers' attention interface and headscope has no hooks for it"
        for route in (None, hooked) if hooked else (None,):
            self._hooked = route
            try:
                calls = self._probe()
            except HeadscopeError:
                raise
            except Exception as problem:
                reason = f"running it failed with {type(problem).__name__}: {problem}"
                continue
            if calls:
                return route, calls
        raise NotCaptured(f"The heads of the {self._name} can't be captured: {reason}.")

    def _probe(self) -> list[Call]:
        """Every attention call of a forward pass, in order."""
        found: list[Call] = []

        def note(layer: int, heads: slice, attention: Tensor, output: Tensor) -> None:
            found.append(Call(attention.shape[2], attention.shape[3], output.shape[1], output.shape[3]))

        inputs = _probe_inputs(self._network)
        arguments = self.arguments(inputs, torch.ones_like(inputs) if self._reads_text else None)
        for name in {"decoder_input_ids", "decoder_attention_mask"} & set(arguments):
            arguments[name] = arguments[name][:, :_DECODER_PROBE]
        self._pass(arguments, Recorder(note))
        return found

    def _stack_of(self, call: Call) -> str | None:
        """The stack of a call of the probe, told by its lengths."""
        if not self._two_stacks:
            return None
        if call.queries != call.keys:
            return "cross"
        return "decoder" if call.queries == _DECODER_PROBE else "encoder"

    def _expected_layers(self) -> int | None:
        """Layers there should be, from the network's build and not from what reported."""
        if self.stack is None:
            return getattr(self._network.config.get_text_config(), "num_hidden_layers", None)
        part = self._network.get_encoder() if self.stack == "encoder" else self._network.get_decoder()
        lists = (module for module in part.modules() if isinstance(module, nn.ModuleList))
        outermost = next(lists, None)
        return len(outermost) if outermost is not None else None

    def _pass(self, arguments: dict[str, Any], recorder: Recorder) -> None:
        with torch.inference_mode(), ExitStack() as stack:
            if self._hooked:
                stack.enter_context(attention_implementation(self._network, "eager"))
                stack.enter_context(_hooks(self._network, self._hooked, recorder))
                arguments = arguments | {"output_attentions": True}
            else:
                stack.enter_context(attention_implementation(self._network, NAME))
                arguments = arguments | {"headscope_recorder": recorder}
            stack.enter_context(suppress(_Enough))
            self._network(**arguments)


_TEXT_PROBE, _DECODER_PROBE = 8, 5
"""Tokens of the probe; two numbers, so that encoder, decoder and cross attention can be told apart."""


def _probe_inputs(network: Any) -> Tensor:
    weights = next(network.parameters())
    config, name = network.config, network.main_input_name
    if name == "input_ids":
        return torch.zeros(1, _TEXT_PROBE, dtype=torch.long, device=weights.device)
    if name == "pixel_values":
        height, width = image_size(config)
        return torch.zeros(1, config.num_channels, height, width, dtype=weights.dtype, device=weights.device)
    if name == "input_features" and hasattr(config, "num_mel_bins"):
        frames = 2 * config.max_source_positions
        return torch.zeros(1, config.num_mel_bins, frames, dtype=weights.dtype, device=weights.device)
    raise NotCaptured(
        f"The model {type(network).__name__} (family {config.model_type}) takes {name}, which headscope can't give; "
        "it measures models that take texts or images."
    )


def has_two_stacks(network: Any) -> bool:
    """An encoder and a decoder; told by what it takes, because T5's encoder alone has the same configuration."""
    return "decoder_input_ids" in inspect.signature(network.forward).parameters


def image_size(config: Any) -> tuple[int, int]:
    """Height and width of the images that a vision model takes."""
    size = config.image_size
    return (size, size) if isinstance(size, int) else tuple(size)


def _no_tokens(inputs: Tensor) -> Tensor:
    return torch.zeros(len(inputs), _DECODER_PROBE, dtype=torch.long, device=inputs.device)


def _eager(module: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    for kind in type(module).__mro__:
        found = getattr(sys.modules.get(kind.__module__), "eager_attention_forward", None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    raise NotCaptured(f"{type(module).__name__} has no eager attention beside it, so its heads can't be captured.")


@contextmanager
def attention_implementation(network: Any, name: str) -> Iterator[None]:
    """Parts of a network may keep configurations of their own, as T5's do: set and restore all."""
    parts = [module.config for module in network.modules() if isinstance(module, PreTrainedModel)]
    before = [config._attn_implementation for config in parts]
    for config in parts:
        config._attn_implementation = name
    try:
        yield
    finally:
        for config, old in zip(parts, before, strict=True):
            config._attn_implementation = old


@contextmanager
def _hooks(network: Any, hooked: Hooked, recorder: Recorder) -> Iterator[None]:
    joined: dict[nn.Module, Tensor] = {}

    def keep_output(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        joined[module] = inputs[0]

    def report(module: nn.Module, inputs: Any, returned: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the module returns, without the attention: the model would keep that of all layers to the end."""
        first, attention, *others = returned
        projection = hooked.projection and module.get_submodule(hooked.projection)
        output = joined.pop(projection) if projection else first
        heads = attention.shape[1]
        recorder.record([Part(slice(0, heads), attention, split_heads(output, heads))])
        return first, None, *others

    handles = []
    for module in network.modules():
        if type(module).__name__ == hooked.attention:
            if hooked.projection:
                handles.append(module.get_submodule(hooked.projection).register_forward_pre_hook(keep_output))
            handles.append(module.register_forward_hook(report))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
