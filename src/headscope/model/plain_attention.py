"""Whether a model's own attention function is softmax(Q Kᵀ · scaling + mask) V and nothing else.

Nearly all families write just that, in some dozens of ways. Which of them do is not taken from a list: one call is
followed, operation by operation, and what was computed beside it is compared. What does anything else, a cap on the
scores, a bias of its own, a sink, is not plain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from headscope.model.attention_parts import OwnAttention, among_heads


def plain_scaling(call: OwnAttention) -> float | None:
    """The scaling of a call that is plain; None for any other."""
    followed = _Followed(call)
    with followed:
        output, attention = call.compute()
    return followed.scaling if followed.ended_in(output, attention) else None


class _Followed(TorchFunctionMode):
    """Follows the scores of one call until they are its output. `_now` is what they have become, in steps: "queries",
    "scores", "attention", "output", or "other" once they are anything else."""

    def __init__(self, call: OwnAttention) -> None:
        super().__init__()
        heads = call.query.shape[1]
        self._keys = among_heads(call.key, heads).mT
        self._values = among_heads(call.value, heads)
        self._mask = None if call.mask is None else call.mask[..., : call.key.shape[2]]
        self._waits_for_mask = call.mask is not None
        self._step = "queries"
        self._now = call.query
        self._attention: Tensor | None = None
        self.scaling = 1.0

    def ended_in(self, output: Tensor, attention: Any) -> bool:
        """Whether these are what the scores became: what the call returned."""
        return (
            self._step == "output"
            and not self._waits_for_mask
            and self._attention is not None
            and _same(output, self._now.transpose(1, 2))
            and _same(attention, self._attention)
        )

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        concerned = any(one is self._now for one in _tensors((args, kwargs)))
        result = function(*args, **kwargs)
        if concerned and self._step != "other":
            self._go_on(getattr(function, "__name__", ""), args, kwargs, result)
        return result

    def _go_on(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """After an operation on what the scores have become. To ask for its shape, or what changes nothing, is no
        step; what writes into it is not followed."""
        before = self._now
        if not isinstance(result, Tensor):
            self._step = self._step if name in _ASKING else "other"
        elif result is before:
            self._step = self._step if name in _HANDING_BACK else "other"
        elif self._step != "output":
            other = args[1] if len(args) > 1 and args[0] is before else None
            after = self._after(name, other, kwargs, result)
            nothing_to_do = after == "other" and name in _HANDING_BACK and _same(result, before)
            self._step = self._step if nothing_to_do else after
            self._now = result

    def _after(self, name: str, other: Any, kwargs: dict[str, Any], result: Tensor) -> str:
        """The step that an operation leads to. other: what it joins to the scores, from the right."""
        step = self._step
        if step == "queries" and name == "matmul" and _same(other, self._keys):
            return "scores"
        if step == "scores" and name == "mul" and isinstance(other, int | float):
            self.scaling *= other
            return "scores"
        if step == "scores" and name == "div" and isinstance(other, int | float) and not kwargs:
            self.scaling /= other
            return "scores"
        if step == "scores" and name == "add" and self._waits_for_mask and _same(other, self._mask) and not kwargs:
            self._waits_for_mask = False
            return "scores"
        if step == "scores" and name == "softmax" and kwargs.get("dim", other) in (-1, 3):
            self._attention = result
            return "attention"
        if step == "attention" and name == "matmul" and _same(other, self._values):
            return "output"
        return "other"


_ASKING = ("__get__", "size", "dim", "stride", "is_floating_point", "numel")
_HANDING_BACK = ("dropout", "to", "type", "type_as", "float", "contiguous", "clone", "detach", "view", "reshape")
"""Operations that hand back what they were given where there is nothing to do. What else returns it writes into it, and
what returns the same numbers may return others of others."""


def _same(one: Any, other: Any) -> bool:
    return (
        isinstance(one, Tensor) and isinstance(other, Tensor) and one.shape == other.shape and torch.equal(one, other)
    )


def _tensors(given: Any) -> Iterator[Tensor]:
    if isinstance(given, Tensor):
        yield given
    elif isinstance(given, dict):
        yield from _tensors(tuple(given.values()))
    elif isinstance(given, Iterable) and not isinstance(given, str):
        for one in given:
            yield from _tensors(one)
