"""A few tokens through a network: which attention calls it makes, in which layers, and which projections they enter.

The output projection of a call is the first matrix whose input depends on what the call returned. Dependence is told by
autograd, not by shapes: a gate's matrix takes hidden states of the same width, between the call and the projection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headscope.model.attention_parts import OwnAttention
from headscope.model.recording import (
    Own,
    Plan,
    Watch,
    attention_implementation,
    by_windows,
    entering,
    listening,
    split_heads,
)


@dataclass
class Call:
    """One attention call of a probe.

    seen: "interface" or "watch", and number: its number among those. heads, width: of Z; 0 where A and Z are not of
    (B, H, queries, keys) and (B, H, queries, width). inside: the lists of modules that it was made in, outermost first,
    each with its place there. path: the modules that it was made in, innermost first, up to such a list.
    projection: what its output enters first, "" where that is unknown. direct: what enters is what the call returned.
    alone: nothing else enters with it.
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
    module: type[nn.Module] | None = None
    projection: str = ""
    direct: bool = False
    alone: bool = True

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
        self.calls: list[Call] = []
        self.entries: list[tuple[str, Call | None]] = []
        self.softmaxes: list[tuple[int, ...]] = []

    def interface_call(self, own: Own, call: OwnAttention, module: nn.Module, others: Mapping[str, Any]) -> Tensor:
        output, attention = call.compute()
        return self._follow(output, self._noted("interface", attention, output.transpose(1, 2), type(module)))

    def product(self, attention: Tensor, output: Tensor) -> Tensor:
        maps, outputs = by_windows(attention, self._windows), by_windows(output, self._windows)
        return self._follow(output, self._noted("watch", maps, outputs, None))

    def _noted(self, seen: str, attention: Tensor | None, output: Tensor, module: type[nn.Module] | None) -> Call:
        """output: (B, H, S, d)."""
        shape = tuple(attention.shape) if attention is not None else ()
        fits = len(shape) == 4 and output.ndim == 4 and shape[:3] == tuple(output.shape[:3])
        number = sum(call.seen == seen for call in self.calls)
        windows, heads, queries, keys = shape if fits else (0, 0, *(0, 0, *shape)[-2:])
        width = output.shape[3] if fits else 0
        inside = tuple(self._lists[name] for name in self._active if name in self._lists)
        outermost = next((place for place, name in enumerate(self._active) if name in self._lists), 1)
        path = tuple(reversed(self._active[outermost:]))
        call = Call(seen, number, windows, heads, queries, keys, width, inside, path, module)
        self.calls.append(call)
        return call

    def _follow(self, output: Tensor, call: Call) -> Tensor:
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
        for call, leaf in mine:
            call.projection = name
            call.alone = len(mine) == 1
            call.direct, call.width = _joined(call, leaf, given)
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

        def leave(*_: Any) -> None:
            self._active.pop()

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


def _joined(call: Call, output: Tensor, given: Tensor) -> tuple[bool, int]:
    """Whether what enters the projection is what the call returned, bit for bit; and the width of a head in it, 0
    where it can't be cut into heads."""
    rows = call.windows * call.queries
    if not call.heads or given.shape[-1] % call.heads or given.numel() != rows * given.shape[-1]:
        return False, 0
    apart = output if call.seen == "interface" else by_windows(output, call.windows).transpose(1, 2)
    return torch.equal(apart.reshape(rows, -1), given.reshape(rows, -1)), given.shape[-1] // call.heads


class Silencing:
    """A listener that silences head b in window b, in every call of the plan whose Z is not what the call returned.

    wrong: the layers where that head of Z is not silent, or another is.
    """

    def __init__(self, network: nn.Module, plan: Plan, windows: int) -> None:
        self._network = network
        self._plan = plan
        self._windows = windows
        self._calls = {"interface": 0, "watch": 0}
        self._waiting: tuple[int, Tensor] | None = None
        self.wrong: set[int] = set()

    def interface_call(self, own: Own, call: OwnAttention, module: nn.Module, others: Mapping[str, Any]) -> Tensor:
        output, attention = call.compute()
        return self._silenced("interface", attention, output.transpose(1, 2)).transpose(1, 2)

    def product(self, attention: Tensor, output: Tensor) -> Tensor:
        apart = by_windows(output, self._windows)
        return self._silenced("watch", by_windows(attention, self._windows), apart).reshape(output.shape)

    def _silenced(self, seen: str, attention: Tensor, output: Tensor) -> Tensor:
        place = self._plan.get((seen, self._calls[seen]))
        self._calls[seen] += 1
        if place is None or place.direct:
            return output
        self._waiting = place.layer, attention
        everyone = torch.arange(self._windows, device=output.device)
        output = output.clone()
        output[everyone, everyone] = 0
        return output

    def _entered(self, name: str, given: Tensor) -> None:
        if self._waiting is None:
            return
        layer, attention = self._waiting
        self._waiting = None
        silent = (split_heads(given, attention) == 0).flatten(2).all(-1)
        if not torch.equal(silent, torch.eye(self._windows, dtype=torch.bool, device=silent.device)):
            self.wrong.add(layer)

    def run(self, arguments: Mapping[str, Any]) -> None:
        names = {place.projection for place in self._plan.values()}
        watch = any(seen == "watch" for seen, _ in self._plan)
        with ExitStack() as stack:
            stack.enter_context(torch.inference_mode())
            stack.enter_context(attention_implementation(self._network, "eager"))
            stack.enter_context(entering(self._network, names, self._entered))
            stack.enter_context(listening(self, watch))
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
