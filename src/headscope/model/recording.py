"""How the attention calls of a forward pass are seen, without a change to the model.

Most families ask transformers' attention interface for the function that computes attention. While a pass runs, the
interface answers in that thread with the very function that it would have given, wrapped: a recorder is shown the call.
The model is set to its own `eager` attention, a name that it knows: some families choose their masks by the name.

Families that write their attention out are seen by torch: `Watch` follows what a softmax returns until it is multiplied
with the values.

Nothing travels through the model's arguments, which many families drop, and other threads and models see nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface, PreTrainedConfig

from headscope.errors import HeadscopeError
from headscope.model.attention_parts import OwnAttention, Room, SomeHeads, heads_at_once, in_parts, windows_at_once
from headscope.model.carrying import Carried
from headscope.model.compiled_attention import Masks, PlainCalls, attend

Own = Callable[..., tuple[Tensor, Tensor]]
"""A family's own attention function: Z as the model goes on with it, (B, S, H, d), and A (B, H, S, S)."""
ReceiveHeads = Callable[[int, slice, Tensor, Tensor, Tensor], None]
"""Called with the number of a layer, some of its heads, their A (B, H, S, S) and Z (B, H, S, d), and the lengths of the
value vectors (B, H, S), a float32 for each key (see `carrying`), where H counts these heads. A is lent until the next
heads come."""


class NotCaptured(HeadscopeError):
    """The heads of a model can't be had, or not rightly."""


class Enough(Exception):
    """Ends the forward pass: the last layer wanted has reported."""


class Listener(Protocol):
    """Who is shown the attention calls of a pass."""

    def interface_call(self, call: OwnAttention, module: nn.Module, others: Mapping[str, Any]) -> Tensor:
        """Computes the call, and returns what the model goes on with."""

    def product(self, attention: Tensor, values: Tensor | None, output: Tensor) -> Tensor:
        """A map, what it is multiplied with, if that is known, and the product; returns what the model goes on with."""


_here = threading.local()
_lock = threading.Lock()
_listening = 0
_own_get_interface = AttentionInterface.get_interface


@contextmanager
def listening(listener: Listener, watch: bool) -> Iterator[None]:
    """Until the end, the attention calls of this thread are shown to `listener`; with `watch`, also those that go
    past the interface."""
    global _listening
    with _lock:
        _listening += 1
        AttentionInterface.get_interface = _get_interface  # type: ignore[assignment, method-assign]
    _here.listener = listener
    try:
        if watch:
            with Watch(listener.product):
                yield
        else:
            yield
    finally:
        _here.listener = None
        with _lock:
            _listening -= 1
            if not _listening:
                AttentionInterface.get_interface = _own_get_interface  # type: ignore[method-assign]


def _get_interface(interface: AttentionInterface, *asked: Any, **named: Any) -> Callable[..., Any]:
    own: Own = _own_get_interface(interface, *asked, **named)
    listener: Listener | None = getattr(_here, "listener", None)
    return own if listener is None else partial(_shown, listener, own)


def _shown(
    listener: Listener,
    own: Own,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    **others: Any,
) -> tuple[Tensor, None]:
    """The weights go no further: the model, which can do without them, would keep them through the rest of a layer."""
    call = OwnAttention(partial(own, module, **others), query, key, value, attention_mask)
    with _not_watched():
        return listener.interface_call(call, module, others), None


@contextmanager
def _not_watched() -> Iterator[None]:
    before = getattr(_here, "busy", False)
    _here.busy = True
    try:
        yield
    finally:
        _here.busy = before


class Watch(TorchFunctionMode):
    """Follows every map, what a softmax returns, until it is multiplied: the product is A times V."""

    def __init__(self, product: Callable[[Tensor, Tensor | None, Tensor], Tensor]) -> None:
        super().__init__()
        self._product = product
        self.softmaxes: list[tuple[int, ...]] = []
        """Shapes of all maps so far."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name == "scaled_dot_product_attention" and not _busy():
            return self._written_out(*args, **kwargs)
        result = function(*args, **kwargs)
        if not isinstance(result, Tensor) or _busy():
            return result
        if name in ("softmax", "_softmax"):
            _mark(result, result.ndim > 2)
            self.softmaxes.append(tuple(result.shape))
            return result
        given = (*args, *kwargs.values())
        attention = next((tensor for tensor in _tensors(given) if _is_map(tensor)), None)
        if attention is None or attention is result:
            return result
        if name in ("matmul", "__matmul__", "__rmatmul__", "bmm", "einsum"):
            return self._product(attention, _multiplied_with(attention, given), result)
        same = result.shape[-2:] == attention.shape[-2:]
        cut = name == "__getitem__" and result.shape[-2:-1] == attention.shape[-2:-1]
        _mark(result, result.ndim > 2 and (same or cut))
        return result

    def _written_out(self, query: Tensor, key: Tensor, value: Tensor, *args: Any, **named: Any) -> Tensor:
        """torch's fused attention, by torch's own unfused reference."""
        output, attention = torch._scaled_dot_product_attention_math(query, key, value, *args, **named)
        return self._product(attention, value, output)


def _busy() -> bool:
    return getattr(_here, "busy", False)


def _mark(tensor: Tensor, is_map: bool) -> None:
    if is_map:
        tensor.headscope_map = True  # type: ignore[attr-defined]


def _is_map(tensor: Tensor) -> bool:
    return getattr(tensor, "headscope_map", False)


def _multiplied_with(attention: Tensor, given: tuple[Any, ...]) -> Tensor | None:
    """The other factor of a product; of one that einsum makes, with its axes in the order that matmul takes."""
    factors = list(_tensors(given))
    if len(factors) != 2:
        return None
    which = 0 if factors[1] is attention else 1
    equation = next((one for one in given if isinstance(one, str)), None)
    if equation is None:
        return factors[which]
    taken, _, made = equation.replace(" ", "").partition("->")
    axes = taken.split(",")
    map_axes, own_axes = axes[1 - which], axes[which]
    wanted = map_axes[:-2] + map_axes[-1:] + made[-1:]
    return torch.einsum(f"{own_axes}->{wanted}", factors[which]) if sorted(wanted) == sorted(own_axes) else None


def _tensors(given: Iterable[Any]) -> Iterator[Tensor]:
    for one in given:
        if isinstance(one, Tensor):
            yield one
        elif isinstance(one, list | tuple):
            yield from _tensors(one)


@dataclass(frozen=True)
class Place:
    """Where a call belongs: the number of its layer, and the name of the output projection that its Z enters.

    direct: what enters is A times V as the call returned it. Otherwise something stands between, a gate or a norm.
    tokens_first: it enters as (S, B, H * d).
    """

    layer: int
    projection: str
    direct: bool
    tokens_first: bool = False

    def split(self, joined: Tensor, like: Tensor) -> Tensor:
        """What enters the projection, (B, S, H * d) or (B * S, H * d), -> (B, H, S, d); B, H, S are those of `like`."""
        windows, heads, queries = like.shape[:3]
        if self.tokens_first:
            return joined.reshape(queries, windows, heads, -1).permute(1, 2, 0, 3)
        return joined.reshape(windows, queries, heads, -1).transpose(1, 2)

    def join(self, output: Tensor) -> Tensor:
        """(B, H, S, d) -> what enters the projection."""
        return output.permute(2, 0, 1, 3).flatten(2) if self.tokens_first else output.transpose(1, 2).flatten(2)


Plan = Mapping[tuple[str, int], Place]
"""How a call was seen ("interface" or "watch") and its number among those -> its place. Other calls are passed over."""


class Recorder:
    """Hands on A and Z of the calls that have a place, and ends the pass after layer `last`.

    windows: B. width: d of the widest layer; zeros fill up the others. whole: whether all heads of a layer are wanted
    at once. carried: knows the lengths of value vectors; plain: which calls need not be left to the model's own
    function. each_by_itself: the model goes on with what that puts out even so.
    """

    def __init__(
        self,
        receive: ReceiveHeads,
        plan: Plan,
        windows: int,
        width: int,
        last: int | None,
        whole: bool,
        carried: Carried,
        plain: PlainCalls,
        each_by_itself: bool,
    ) -> None:
        self._show = receive
        self._width = width
        self._plan = plan
        self._windows = windows
        self._last = last
        self._whole = whole
        self._carried = carried
        self._calls = {"interface": 0, "watch": 0}
        self._waiting: tuple[Place, Tensor, Tensor | None] | None = None
        self._last_map = 0
        self._room = Room()
        self._plain = plain
        self._masks = Masks()
        self._each_by_itself = each_by_itself

    def interface_call(self, call: OwnAttention, module: nn.Module, others: Mapping[str, Any]) -> Tensor:
        number = self._calls["interface"]
        place = self._next("interface")
        if place is not None and not place.direct:
            output, attention = call.compute()
            self._waiting = place, attention, call.value
            return output
        scaling = None if place is None or self._whole else self._plain.scaling(number, call, others)
        if place is None or scaling is None:
            output = self._own(place, call, module, others)
        else:
            output = self._compiled(place, call, scaling)
            if self._each_by_itself:
                output = self._own(None, call, module, others)
        self._end(place)
        return output

    def _own(self, place: Place | None, call: OwnAttention, module: nn.Module, others: Mapping[str, Any]) -> Tensor:
        """By the model's own function; handed on where there is a place."""
        outputs = []
        windows = windows_at_once(call, others)
        heads = call.query.shape[1] if self._whole else heads_at_once(call, module, others)
        for part in in_parts(call, windows, heads, self._room):
            outputs.append(part.output.transpose(1, 2))
            if place is not None:
                self._receive(place.layer, part, self._carried.lengths(place.layer, part.heads, part.values))
        return torch.cat(outputs, 2) if len(outputs) > 1 else outputs[0]

    def _compiled(self, place: Place, call: OwnAttention, scaling: float) -> Tensor:
        windows, heads, queries, _ = call.query.shape
        lengths = self._carried.lengths(place.layer, slice(0, heads), call.value)
        output = call.value.new_empty(windows, queries, heads, call.value.shape[3])
        for some in attend(call, scaling, self._masks.of(call), output, self._room):
            self._receive(place.layer, some, None if lengths is None else lengths[:, some.heads])
        return output

    def product(self, attention: Tensor, values: Tensor | None, output: Tensor) -> Tensor:
        place = self._next("watch")
        if place is not None:
            attention = by_windows(attention, self._windows)
            values = None if values is None else by_windows(values, self._windows)
            self._last_map = attention.data_ptr()
            if place.direct:
                self._receive_all(place.layer, attention, by_windows(output, self._windows), values)
                self._end(place)
            else:
                self._waiting = place, attention, values
        return output

    def entered(self, joined: Tensor) -> None:
        """What enters the output projection of a call whose Z is not A times V."""
        if self._waiting is None:
            return
        place, attention, values = self._waiting
        self._waiting = None
        self._receive_all(place.layer, attention, place.split(joined, attention), values)
        self._end(place)

    def without_map(self, returned: Any) -> Any:
        """What a module returns, without A: the model, which can do without it, would keep it through another layer."""
        if not isinstance(returned, tuple):
            return returned
        return tuple(None if isinstance(one, Tensor) and one.data_ptr() == self._last_map else one for one in returned)

    def _receive_all(self, layer: int, attention: Tensor, output: Tensor, values: Tensor | None) -> None:
        some = SomeHeads(slice(0, attention.shape[1]), attention, output, values)
        self._receive(layer, some, self._carried.lengths(layer, some.heads, values))

    def _receive(self, layer: int, some: SomeHeads, lengths: Tensor | None) -> None:
        missing = self._width - some.output.shape[-1]
        output = nn.functional.pad(some.output, (0, missing)) if missing else some.output
        if lengths is None:
            windows, heads, _, keys = some.attention.shape
            lengths = some.attention.new_full((windows, heads, keys), torch.nan, dtype=torch.float32)
        self._show(layer, some.heads, some.attention, output, lengths)

    def _next(self, seen: str) -> Place | None:
        number = self._calls[seen]
        self._calls[seen] += 1
        return self._plan.get((seen, number))

    def _end(self, place: Place | None) -> None:
        if place is not None and place.layer == self._last:
            raise Enough


def by_windows(tensor: Tensor, windows: int) -> Tensor:
    """(B * H, S, ...) -> (B, H, S, ...), where a family joins windows and heads."""
    joined = tensor.ndim == 3 and len(tensor) % windows == 0
    return tensor.view(windows, -1, *tensor.shape[1:]) if joined else tensor


@contextmanager
def entering(
    network: nn.Module, names: Iterable[str], entered: Callable[[str, Tensor], Tensor | None]
) -> Iterator[None]:
    """`entered` is called with the name and the input of each of these modules when it is entered. What it returns,
    if anything, enters in its place."""

    def hook(name: str) -> Callable[..., Any]:
        def see(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
            if given:
                other = entered(name, given[0])
                return None if other is None else ((other, *given[1:]), named)
            first = next(iter(named), None)
            if first is None:
                return None
            other = entered(name, named[first])
            return None if other is None else (given, named | {first: other})

        return see

    modules = {network.get_submodule(name): name for name in names}
    handles = [module.register_forward_pre_hook(hook(name), with_kwargs=True) for module, name in modules.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def leaving(network: nn.Module, names: Iterable[str], left: Callable[[Any], Any]) -> Iterator[None]:
    """What these modules return is replaced by what `left` makes of it."""
    handles = [
        network.get_submodule(name).register_forward_hook(lambda module, given, returned: left(returned))
        for name in names
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def attention_implementation(network: nn.Module, name: str) -> Iterator[None]:
    """Parts of a network may keep configurations of their own, as T5's do: set and restore all."""
    owned = (getattr(module, "config", None) for module in network.modules())
    configs = list({id(config): config for outer in owned for config in _with_inner(outer)}.values())
    before = [config._attn_implementation for config in configs]
    for config in configs:
        config._attn_implementation = name
    try:
        yield
    finally:
        for config, old in zip(configs, before, strict=True):
            config._attn_implementation = old


def _with_inner(config: Any) -> Iterator[Any]:
    """A configuration and those inside it, outer ones first: setting an outer one sets the inner ones."""
    if isinstance(config, PreTrainedConfig):
        yield config
        for name in config.sub_configs:
            yield from _with_inner(getattr(config, name, None))
