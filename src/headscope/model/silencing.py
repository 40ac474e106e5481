"""Heads silenced: while the model runs, what enters the output projection has something else in their place.

Zeros there are the same as zeros in the columns of the projection that belong to the head: the head adds nothing.
Everything else of the model runs as it is, with the attention that it was loaded with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral
from typing import Any

from torch import Tensor

from headscope.errors import HeadscopeError
from headscope.model.capture import Capture
from headscope.model.loading import Model
from headscope.model.recording import Place, entering

HeadName = tuple[int, int]
"""The numbers of a layer and of a head in it."""
Replacement = float | Tensor | Callable[[Tensor], Tensor]
"""What stands in the place of a head's output (..., d): a number, a tensor that can be spread to this shape, or what is
made of the output itself."""
Change = Callable[[Tensor], Tensor]
"""What is about to enter a projection, (..., H * d), -> what enters."""


@contextmanager
def silenced(
    model: Model | Any,
    heads: Collection[HeadName] | Mapping[HeadName, Replacement],
    *,
    stack: str | None = None,
) -> Iterator[None]:
    """Silence heads of a model in code of your own, or put something else in their place.

    model: a `headscope.Model`, or a network of transformers, with or without the head of a task. heads: (layer, head)
    of each, numbered from 0, whose output becomes zeros; or a mapping of them to what takes the place of their output Z
    (..., d): a number, a vector of d, or a function of Z. stack: of a model that has several, as in `headscope.study`.

    >>> import headscope
    >>> with headscope.silenced(model, {(3, 1), (5, 7)}):  # doctest: +SKIP
    ...     model.network(**inputs)
    >>> with headscope.silenced(model, {(3, 1): lambda z: z.flip(0)}):  # another text's output  # doctest: +SKIP
    ...     model.network(**inputs)
    """
    given = dict(heads) if isinstance(heads, Mapping) else dict.fromkeys(heads, 0.0)
    if not given:
        yield
        return
    capture = Capture(model.network if isinstance(model, Model) else model, stack)
    check_heads(capture, given)
    check_silent(capture, {layer for layer, _ in given})
    layers = {layer for layer, _ in given}
    changes = {
        layer: _replaced(capture.heads, {head: how for (where, head), how in given.items() if where == layer})
        for layer in layers
    }
    with changed(capture, changes):
        yield


def check_silent(capture: Capture, layers: Collection[int]) -> None:
    """Refuse layers in which a head that is silenced would still be heard."""
    for layer, name in sorted(capture.elsewhere.items()):
        if layer not in layers:
            continue
        raise HeadscopeError(
            f"What the heads of layer {layer} put out enters {name} too, beside the output projection, where it can't "
            "be silenced; if that is an adapter (LoRA), merge it into the weights first."
        )


def check_heads(capture: Capture, heads: Collection[Any]) -> None:
    """Refuse what is no head of this model."""
    for one in heads:
        if not isinstance(one, tuple) or len(one) != 2 or not all(isinstance(number, Integral) for number in one):
            raise HeadscopeError(f"{one!r} is no head; a head is a layer and a number, for example (3, 1).")
        layer, head = one
        if layer in capture.other_layers:
            raise HeadscopeError(
                f"There is no head {layer}:{head}: layer {layer} has no attention ({capture.other_layers[layer]})."
            )
        if layer not in capture.measurable or not 0 <= head < capture.heads:
            raise HeadscopeError(
                f"There is no head {layer}:{head}; the model has layers 0 to {capture.layers - 1} with heads 0 to "
                f"{capture.heads - 1}."
            )


@contextmanager
def changed(capture: Capture, changes: Mapping[int, Change], first: int = 0) -> Iterator[None]:
    """Until the end, changes[layer] is made to what enters the output projection of that layer.

    first: the first layer that is run. Where layers share a projection, they are told apart by their order in a pass.
    """
    entries = {
        name: tuple(layer for layer in layers if layer is None or layer >= first)
        for name, layers in capture.entries_of.items()
    }
    seen: Counter[str] = Counter()

    def entered(name: str, given: Tensor) -> Tensor | None:
        here = entries[name]
        layer = here[seen[name] % len(here)]
        seen[name] += 1
        return None if layer is None or layer not in changes else changes[layer](given)

    handle = capture.network.register_forward_pre_hook(lambda *_: seen.clear())
    try:
        with entering(capture.network, {capture.places[layer].projection for layer in changes}, entered):
            yield
    finally:
        handle.remove()


def edited(place: Place, heads: int, windows: int, edit: Callable[[Tensor], None], copied: bool = False) -> Change:
    """A change of Z by windows and heads: `edit` writes into a copy of it, (B, H, S, d). heads: H; windows: B. copied:
    one window enters, and B copies of it come out."""

    def change(given: Tensor) -> Tensor:
        there = 1 if copied else windows
        tokens = given.numel() // given.shape[-1] // there
        output = place.split(given, given.new_empty(there, heads, tokens, 0))
        output = output.repeat(windows, 1, 1, 1) if copied else output.clone()
        edit(output)
        joined = place.join(output)
        return joined if copied else joined.reshape(given.shape)

    return change


def _replaced(count: int, replacements: Mapping[int, Replacement]) -> Change:
    """count: H."""

    def change(given: Tensor) -> Tensor:
        apart = given.reshape(*given.shape[:-1], count, -1).clone()
        for head, how in replacements.items():
            mine = apart[..., head, :]
            apart[..., head, :] = how(mine.clone()) if callable(how) else how
        return apart.reshape(given.shape)

    return change
