"""A few tokens through a network: which attention calls it makes, in which layers, and which projections they enter.

The output projection of a call is the first matrix whose input depends on what the call returned. Dependence is told by
autograd, not by shapes: a gate's matrix takes hidden states of the same width, between the call and the projection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headscope.model.attention_parts import OwnAttention
from headscope.model.carrying import are_values, is_matrix, is_rescaled
from headscope.model.recording import (
    Place,
    Plan,
    Watch,
    attention_implementation,
    by_windows,
    entering,
    listening,
)


@dataclass
class Call:
    """One attention call of a probe.

    seen: "interface" or "watch", and number: its number among those. heads, width: of Z; 0 where A and Z are not of
    (B, H, queries, keys) and (B, H, queries, width). inside: the lists of modules that it was made in, outermost first,
    each with its place there. path: the modules that it was made in, innermost first, up to such a list;
    module: the class of the innermost.
    projection: what its output enters first, "" where that is unknown. direct: what enters is what the call returned,
    bit for bit; tokens_first: as (S, B, H * d). alone: no other call enters with it.
    values_known: A times the values that were seen is what the call returned; rescaled: but for a number that each row
    is multiplied with. projects: the projection is a matrix that is had.
    elsewhere: another module that its output enters too.
    """

    seen: str
    number: int
    windows: int
    heads: int
    queries: int
    keys: int
    width: int
    inside: tuple[tuple[str, int], ...]
    path: tuple[str, ...]
    module: type[nn.Module]
    projection: str = ""
    direct: bool = False
    tokens_first: bool = False
    alone: bool = True
    values_known: bool = False
    rescaled: bool = False
    projects: bool = False
    elsewhere: str = ""

    @property
    def key(self) -> tuple[str, int]:
        return self.seen, self.number


class Probe:
    """A listener that notes every call, and follows what it returns to the projection.

    entries: the matrices in the order in which they are entered, each with the call whose output enters it.
    softmaxes: the shapes of what torch's softmax returned.
    """

    def __init__(self, network: nn.Module, windows: int) -> None:
        self._network = network
        self._windows = windows
        self._lists = _module_lists(network)
        self._active: list[str] = []
        self._open: list[tuple[Call, Tensor]] = []
        self._projected: list[tuple[Call, Tensor]] = []
        self._projecting: dict[str, tuple[Call, Tensor]] = {}
        self.calls: list[Call] = []
        self.entries: list[tuple[str, Call | None]] = []
        self.softmaxes: list[tuple[int, ...]] = []

    def interface_call(self, call: OwnAttention, module: nn.Module, others: Mapping[str, Any]) -> Tensor:
        output, attention = call.compute()
        return self._follow(output, self._noted("interface", attention, call.value, output.transpose(1, 2)))

    def product(self, attention: Tensor, values: Tensor | None, output: Tensor) -> Tensor:
        maps, outputs = by_windows(attention, self._windows), by_windows(output, self._windows)
        values = None if values is None else by_windows(values, self._windows)
        return self._follow(output, self._noted("watch", maps, values, outputs))

    def _noted(self, seen: str, attention: Tensor | None, values: Tensor | None, output: Tensor) -> Call:
        """output: (B, H, S, d)."""
        shape = tuple(attention.shape) if attention is not None else ()
        fits = len(shape) == 4 and output.ndim == 4 and shape[:3] == tuple(output.shape[:3])
        number = sum(call.seen == seen for call in self.calls)
        windows, heads, queries, keys = shape if fits else (0, 0, *(0, 0, *shape)[-2:])
        width = output.shape[3] if fits else 0
        inside = tuple(self._lists[name] for name in self._active if name in self._lists)
        outermost = next((place for place, name in enumerate(self._active) if name in self._lists), 1)
        path = tuple(reversed(self._active[outermost:]))
        innermost = self._network.get_submodule(self._active[-1])
        call = Call(seen, number, windows, heads, queries, keys, width, inside, path, type(innermost))
        if attention is not None:
            call.values_known = are_values(values, attention, output)
            call.rescaled = is_rescaled(values, attention, output)
        self.calls.append(call)
        return call

    def _follow(self, output: Tensor, call: Call) -> Tensor:
        # A model may run parts of itself without gradients, where nothing could be followed.
        torch.set_grad_enabled(True)
        leaf = output.detach().requires_grad_()
        self._open.append((call, leaf))
        return leaf.clone()

    def _entered(self, name: str, given: Tensor) -> Tensor | None:
        if not isinstance(given, Tensor) or not given.requires_grad:
            self.entries.append((name, None))
            return None
        mine = [(call, leaf) for call, leaf in self._open if _depends(given, leaf)]
        found = {id(leaf) for _, leaf in mine}
        self._open = [pair for pair in self._open if id(pair[1]) not in found]
        for call, leaf in self._projected:
            if name != call.projection and _depends(given, leaf):
                call.elsewhere = name
        self._projected = mine or self._projected
        for call, leaf in mine:
            call.projection = name
            call.alone = len(mine) == 1
            _note_what_enters(call, leaf, given)
            self._projecting[name] = call, given.detach()
        self.entries.append((name, mine[0][0] if mine else None))
        return given.detach()

    def run(self, arguments: Mapping[str, Any]) -> None:
        with (
            attention_implementation(self._network, "eager"),
            _frozen(self._network),
            self._following_modules(),
            entering(self._network, _matrices(self._network), self._entered),
            listening(self, watch=False),
            Watch(self.product) as watch,
            torch.inference_mode(False),
            torch.enable_grad(),
        ):
            self._network(**arguments)
        self.softmaxes = [shape for shape in watch.softmaxes if len(shape) > 2]

    @contextmanager
    def _following_modules(self) -> Iterator[None]:
        def enter(name: str) -> Callable[..., None]:
            return lambda *_: self._active.append(name)

        def leave(module: nn.Module, _: Any, returned: Any) -> None:
            projecting = self._projecting.pop(self._active.pop(), None)
            if projecting is not None:
                call, given = projecting
                call.projects = is_matrix(module, given, returned)

        handles = []
        for name, module in self._network.named_modules():
            handles.append(module.register_forward_pre_hook(enter(name)))
            handles.append(module.register_forward_hook(leave))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def _depends(given: Tensor, leaf: Tensor) -> bool:
    (part,) = torch.autograd.grad(given.sum(), [leaf], allow_unused=True, retain_graph=True)
    return part is not None


def _note_what_enters(call: Call, output: Tensor, given: Tensor) -> None:
    """The width of a head in what enters a projection, 0 where that can't be cut into heads; and whether it is what
    the call returned, (B, S, H, d) or, where torch saw it, (B, H, S, d)."""
    rows = call.windows * call.queries
    if not call.heads or given.shape[-1] % call.heads or given.numel() != rows * given.shape[-1]:
        call.width = 0
        return
    call.width = given.shape[-1] // call.heads
    apart = output if call.seen == "interface" else by_windows(output, call.windows).transpose(1, 2)
    joined = given.reshape(rows, -1)
    call.direct = _same(apart.reshape(rows, -1), joined)
    if not call.direct:
        call.direct = call.tokens_first = _same(apart.transpose(0, 1).reshape(rows, -1), joined)


def _same(one: Tensor, other: Tensor) -> bool:
    """Bit for bit; a model may overflow, which is no reason to take its heads for others."""
    return one.shape == other.shape and bool(((one == other) | (one.isnan() & other.isnan())).all())


NUDGE = 0.1
"""By how much of the spread of its output a head is changed."""


class Nudging:
    """A listener that changes head b a little in window b, in every call of the plan whose Z is not what the call
    returned. All windows hold the same; the last is left alone. A norm passes a little of a change on to other heads.

    wrong: the layers where a change is not found in the place of its head.
    """

    def __init__(self, network: nn.Module, plan: Plan, heads: int) -> None:
        self._network = network
        self._plan = plan
        self._heads = heads
        self._calls = {"interface": 0, "watch": 0}
        self._waiting: tuple[Place, Tensor] | None = None
        self._noise = torch.Generator().manual_seed(0)
        self.wrong: set[int] = set()

    @property
    def windows(self) -> int:
        return self._heads + 1

    def interface_call(self, call: OwnAttention, module: nn.Module, others: Mapping[str, Any]) -> Tensor:
        output, attention = call.compute()
        return self._nudged("interface", attention, output.transpose(1, 2)).transpose(1, 2)

    def product(self, attention: Tensor, values: Tensor | None, output: Tensor) -> Tensor:
        apart = by_windows(output, self.windows)
        return self._nudged("watch", by_windows(attention, self.windows), apart).reshape(output.shape)

    def _nudged(self, seen: str, attention: Tensor, output: Tensor) -> Tensor:
        """output: (B, H, S, d)."""
        place = self._plan.get((seen, self._calls[seen]))
        self._calls[seen] += 1
        if place is None or place.direct:
            return output
        self._waiting = place, attention
        every = torch.arange(self._heads, device=output.device)
        output = output.clone()
        mine = output[every, every]
        noise = torch.randn(mine.shape, generator=self._noise).to(mine)
        output[every, every] = mine + NUDGE * (float(mine.float().std()) or 1.0) * noise
        return output

    def _entered(self, name: str, given: Tensor) -> Tensor | None:
        if self._waiting is None:
            return None
        place, attention = self._waiting
        self._waiting = None
        output = place.split(given, attention).float()
        change = (output[:-1] - output[-1:]).square().sum((2, 3))
        # A matrix that mixes the heads would spread the change over all of them evenly.
        most = (1 + 1 / self._heads) / 2
        in_place = (change.diagonal() > 0) & (change.diagonal() >= most * change.sum(1))
        if bool(change.isfinite().all()) and not bool(in_place.all()):
            self.wrong.add(place.layer)
        # From here on all windows are the same again, so that each layer is seen by itself.
        return place.join(output[-1:].expand_as(output)).to(given).reshape(given.shape)

    def run(self, arguments: Mapping[str, Any]) -> None:
        names = {place.projection for place in self._plan.values()}
        watch = any(seen == "watch" for seen, _ in self._plan)
        with (
            torch.inference_mode(),
            attention_implementation(self._network, "eager"),
            entering(self._network, names, self._entered),
            listening(self, watch),
        ):
            self._network(**arguments)


def _module_lists(network: nn.Module) -> dict[str, tuple[str, int]]:
    """The elements of all lists of modules, such as the layers of a model -> the name of the list and their place."""
    names = {module: name for name, module in network.named_modules()}
    return {
        names[element]: (name, place)
        for module, name in names.items()
        if isinstance(module, nn.ModuleList | nn.Sequential)
        for place, element in enumerate(module)
    }


def _matrices(network: nn.Module) -> list[str]:
    """Modules with a matrix of their own that is no table of embeddings."""
    return [
        name
        for name, module in network.named_modules()
        if name
        and not isinstance(module, nn.Embedding)
        and any(parameter.ndim > 1 for parameter in module.parameters(recurse=False))
    ]


@contextmanager
def _frozen(network: nn.Module) -> Iterator[None]:
    """Weights take no part in autograd, so that only what depends on a call does."""
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    for weight in weights:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in weights:
            weight.requires_grad_(True)
