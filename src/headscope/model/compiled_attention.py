"""Plain attention, compiled: what `attention.c` is called with.

It takes a third of the time of the same in torch, where each step goes through all scores in memory: A is made in the
cache, some heads at a time, and measured there. Each window and head is computed by itself, so that neither the batch
nor what is taken at once changes a bit.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor

from headscope.compiled import library
from headscope.model.attention_parts import SCORES_AT_ONCE, OwnAttention, Room, SomeHeads, windows_at_once
from headscope.model.plain_attention import plain_scaling
from headscope.options import TOKENS_AT_ONCE

TOLERANCE = 1e-5
"""Greatest difference that passes for rounding, of A, and of Z as a share of its largest element."""
HIDDEN = -1e30
"""A mask that adds this, or less, hides a key."""
_SIZES = ("windows", "heads", "first", "sharing", "queries", "keys", "width", "value_width")
_MATRICES = ("query", "key", "value", "output")
_STRIDES = tuple(f"{name}_{axis}" for name in (*_MATRICES, "mask", "end") for axis in ("window", "head", "token"))


class Call(ctypes.Structure):
    """`Call` of `attention.c`, field for field."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in (*_SIZES, *_STRIDES, "adds")),
        ("scaling", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in (*_MATRICES, "attention", "mask", "end")),
    )


@cache
def _library() -> ctypes.CDLL | None:
    """None where it can't be had, or would be slower than torch: without the wide registers that torch makes use of."""
    try:
        found = library()
    except ImportError:
        return None
    found.headscope_call_bytes.restype = ctypes.c_int64
    if found.headscope_call_bytes() != ctypes.sizeof(Call) or not found.headscope_has_wide_registers():
        return None
    found.headscope_attend.argtypes = [ctypes.POINTER(Call)]
    return found


def can_attend(call: OwnAttention) -> bool:
    """Whether a call, if it is plain, can be computed here."""
    given = (call.query, call.key, call.value, *(() if call.mask is None else (call.mask,)))
    return (
        all(one.device.type == "cpu" and one.dtype == torch.float32 and one.ndim == 4 for one in given)
        and all(one.numel() for one in given)
        and len(call.query) == len(call.key)
        and call.query.shape[1] % call.key.shape[1] == 0
        and call.key.shape[:3] == call.value.shape[:3]
        and call.query.shape[3] == call.key.shape[3]
        and (call.mask is None or _fits(call.mask, call.query, call.key))
        and _library() is not None
    )


def _fits(mask: Tensor, query: Tensor, key: Tensor) -> bool:
    spread = all(one in (1, other) for one, other in zip(mask.shape[:3], query.shape[:3], strict=True))
    return spread and mask.shape[3] >= key.shape[2]


class PlainCalls:
    """Which calls of a network are plain, as far as it is known: looked at when they first come."""

    def __init__(self) -> None:
        self._known: dict[Any, float | None] = {}

    def scaling(self, number: int, call: OwnAttention, others: Mapping[str, Any]) -> float | None:
        """Of the call of this number in a pass: None where it is not plain, or can't be computed here."""
        if not can_attend(call) or windows_at_once(call, others) != 1:
            return None
        told = tuple(sorted((name, str(_kind(value))) for name, value in others.items()))
        key = number, call.query.shape[1:], call.key.shape[1:], call.mask is None, told
        if key not in self._known:
            self._known[key] = _proved(call)
        return self._known[key]


def _kind(value: Any) -> Any:
    """Of an argument, what can change how a call is computed: its value, or of a tensor its shape."""
    return tuple(value.shape) if isinstance(value, Tensor) else value


def _proved(call: OwnAttention) -> float | None:
    """The scaling of a call that is plain, for which the same comes of `attend`.

    It is followed with numbers drawn for it, small and large, and with rows and keys hidden, so that the answer depends
    on nothing but the function and its arguments: every worker comes to the same.
    """
    scalings = {_alike(_stand_in(call, 1)), plain_scaling(_stand_in(call, 100))}
    return scalings.pop() if len(scalings) == 1 else None


def _stand_in(call: OwnAttention, size: int) -> OwnAttention:
    """One window as large as those of the call."""
    draw = torch.Generator().manual_seed(0)
    query, key, value = (
        size * torch.randn(1, *matrix.shape[1:], generator=draw) for matrix in (call.query, call.key, call.value)
    )
    if call.mask is None:
        return call._replace(query=query, key=key, value=value)
    mask = torch.randn(1, *call.mask.shape[1:], generator=draw)
    hiding = torch.finfo(mask.dtype).min
    mask = mask.masked_fill(torch.rand(mask.shape, generator=draw) < 0.3, hiding)
    mask[:, :, 0] = hiding
    mask[:, :, 1:, call.key.shape[2] // 2 + 1 :] = hiding
    return call._replace(query=query, key=key, value=value, mask=mask)


def _alike(call: OwnAttention) -> float | None:
    scaling = plain_scaling(call)
    if scaling is None:
        return None
    own_output, own_attention = call.compute()
    output = torch.empty_like(own_output)
    for some in attend(call, scaling, Masks().of(call), output, Room()):
        if not torch.allclose(some.attention, own_attention[:, some.heads], rtol=0, atol=TOLERANCE):
            return None
    largest = float(own_output.abs().max())
    return scaling if torch.allclose(output, own_output, rtol=0, atol=TOLERANCE * largest) else None


class Mask:
    """A mask as it is added to the scores, and after which key each query looks at none: (B, H, S, K), (B, H, S).

    A row that is hidden as a whole ends where all end: there attention is spread over all keys. adds: whether the mask
    does anything but hide keys behind the end.
    """

    def __init__(self, mask: Tensor, shape: tuple[int, int, int, int]) -> None:
        self.shape = shape
        self._as_it_was = mask.clone()
        mask = mask[..., : shape[3]]
        hidden = mask <= HIDDEN
        place = torch.arange(1, shape[3] + 1)
        end = (~hidden * place).amax(-1)
        end = end.masked_fill(end == 0, shape[3])
        self.adds = bool(((mask != 0) & (place <= end[..., None])).any())
        self.added = (mask if mask.stride(3) == 1 else mask.contiguous()).expand(shape)
        self.end = end.expand(shape[:3])

    def is_of(self, mask: Tensor, shape: tuple[int, int, int, int]) -> bool:
        """Whether it was made of this mask, as it is now."""
        return self.shape == shape and torch.equal(mask, self._as_it_was)


class Masks:
    """Those of a pass: most layers share one."""

    def __init__(self) -> None:
        self._last: list[tuple[Tensor, Mask]] = []

    def of(self, call: OwnAttention) -> Mask | None:
        if call.mask is None:
            return None
        windows, heads, queries, _ = call.query.shape
        shape = windows, heads, queries, call.key.shape[2]
        for mask, known in self._last:
            if mask is call.mask and known.is_of(mask, shape):
                return known
        made = Mask(call.mask, shape)
        self._last = [*self._last[-1:], (call.mask, made)]
        return made


def attend(call: OwnAttention, scaling: float, mask: Mask | None, output: Tensor, room: Room) -> Iterator[SomeHeads]:
    """All heads of a layer, some at a time, without their values. output: (B, S, H, e), filled as they come. A is lent:
    the next heads overwrite it."""
    windows, heads, queries, width = call.query.shape
    keys = call.key.shape[2]
    query, key, value = (
        matrix if matrix.stride(3) == 1 else matrix.contiguous() for matrix in (call.query, call.key, call.value)
    )
    # Whatever the batch: threads that take batches of a layer in turn then need not wait for all its heads.
    usual_windows = max(1, TOKENS_AT_ONCE // queries)
    fitting = max(1, SCORES_AT_ONCE // (usual_windows * queries * keys))
    at_once = max(number for number in range(1, min(heads, fitting) + 1) if heads % number == 0)
    attention = room.of((windows, at_once, queries, keys), query)
    laid_out = {"query": query, "key": key, "value": value, "output": output.transpose(1, 2)}
    if mask is not None:
        laid_out |= {"end": mask.end, "mask": mask.added}
    struct = Call(
        windows=windows,
        heads=at_once,
        sharing=heads // key.shape[1],
        queries=queries,
        keys=keys,
        width=width,
        value_width=value.shape[3],
        adds=mask is not None and mask.adds,
        scaling=scaling,
        attention=attention.data_ptr(),
        **{name: tensor.data_ptr() for name, tensor in laid_out.items()},
        **{
            f"{name}_{axis}": stride
            for name, tensor in laid_out.items()
            for axis, stride in zip(("window", "head", "token"), tensor.stride(), strict=False)
        },
    )
    compiled = _library()
    assert compiled is not None
    for first in range(0, heads, at_once):
        struct.first = first
        if not compiled.headscope_attend(ctypes.byref(struct)):
            raise MemoryError
        some = slice(first, first + at_once)
        yield SomeHeads(some, attention, output[:, :, some].transpose(1, 2), None)
