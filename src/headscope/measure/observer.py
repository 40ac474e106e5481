"""Which `Observing` is used: the compiled one on a CPU, the one in torch elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from headscope.garbage import without_collecting
from headscope.measure.observation import LayerSums, Observing, Tokens
from headscope.measure.random_pairs import compiled_draw
from headscope.measure.seen import Seen
from headscope.options import Options

Observe = Callable[[Tensor, Tensor, Tensor, slice, LayerSums, Seen], None]
Observer = Callable[[Tokens, Options], Observe]
"""Made ready for a batch, it observes heads of any layer."""


def observer(device: torch.device) -> Observer:
    """The fastest for a device."""
    found = _compiled() if device.type == "cpu" else Observing
    return Observing if isinstance(found, str) else found


def why_not_compiled(device: torch.device) -> str | None:
    """What a user can do for a faster `observer`, where there would be one; otherwise None."""
    found = _compiled() if device.type == "cpu" else Observing
    if not isinstance(found, str):
        return None
    return f"headscope measures in plain torch, which takes longer: {found}; install it again to mend that."


@cache
def _compiled() -> Observer | str:
    """That for the CPU, or why it can't be had."""
    try:
        with without_collecting():
            from headscope.measure import kernel

            compiled_draw()
    except ImportError as problem:
        return " ".join(str(problem).split())
    return kernel.Observing
