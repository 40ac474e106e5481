"""`Observing` for the CPU: everything that the heads of one layer show, in one call of `kernel.c`.

Arrays of one type and shape mean different things: they go there in a structure, by name, so that no two are swapped
unnoticed; and each is looked at before its address is handed over.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from headscope.compiled import library
from headscope.measure.bins import (
    COARSE_BINS,
    COARSE_EDGES,
    CUT,
    EQUAL_BINS,
    FINE_BINS,
    NEAR_ONE,
    SHIFT,
    THRESHOLDS,
    VALUE_BINS,
    threshold_place,
)
from headscope.measure.declaration import DIAGONALS, GROUPS, SETS
from headscope.measure.definitions_torch import compared
from headscope.measure.observation import EQUAL, NO_PAIR, ROUNDING, LayerSums, Tokens
from headscope.measure.seen import COUNTS, NUMBERS, Seen, places
from headscope.options import Options

_COUNT, _NUMBER = places(COUNTS), places(NUMBERS)
_NOT_HERE = ("random_focal", "random_focal_pairs")
"""Seen elsewhere: by `random_pairs`."""
_CONSTANTS = {
    "fine_bins": FINE_BINS,
    "equal_bins": EQUAL_BINS,
    "near_one": NEAR_ONE,
    "shift": SHIFT,
    "below_all": threshold_place(THRESHOLDS[0]) - 1,
    "thresholds": len(THRESHOLDS),
    "coarse_bins": COARSE_BINS,
    "groups": GROUPS,
    "sets": len(SETS),
    "kinds": COUNTS["lines"],
    "counts_width": sum(COUNTS.values()),
    "numbers_width": sum(NUMBERS.values()),
    **{f"at_{name}": place for name, place in _COUNT.items() if name not in _NOT_HERE},
    **{f"at_{name}": place for name, place in _NUMBER.items() if name != "diagonals"},
    **{f"at_{name}": _NUMBER["diagonals"] + place for place, name in enumerate(DIAGONALS)},
}
_STATES = {
    "attention_sum_on_lines": torch.float64,
    "attention_sum_without_lines": torch.float64,
    "similarity_sum": torch.float64,
    "high_count": torch.int16,
    "distance_histogram": torch.int64,
    "spectrum": torch.int64,
    "spectrum_of_groups": torch.int32,
    "distance_spectrum": torch.int32,
}
_TOKENS = {
    "size": torch.int64,
    "kind": torch.int64,
    "ids": torch.int64,
    "same_id": torch.int64,
    "group": torch.int64,
    "part": torch.bool,
    "flags": torch.int8,
    "by_distance": torch.float64,
}
_SIZES = ("windows", "heads", "length", "width", "first", "all_heads")
_STRIDES = (
    *("attention_window", "attention_head"),
    *("output_window", "output_head", "output_token"),
    *("vectors_window", "vectors_head", "vectors_token"),
)
_REALS = ("threshold", "line_threshold", "bins_per_unit", "rounding")
_POINTERS = (
    *("attention", "output", "vectors", "lengths", *_TOKENS, "equal_begin", "equal", "coarse_edges"),
    *(*_STATES, "counts", "numbers"),
)


class Layer(ctypes.Structure):
    """`Layer` of `kernel.c`, field for field."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in (*_SIZES, *_STRIDES, *_CONSTANTS)),
        *((name, ctypes.c_double) for name in _REALS),
        *((name, ctypes.c_void_p) for name in _POINTERS),
    )


def _loaded() -> ctypes.CDLL:
    found = library()
    found.headscope_layer_bytes.restype = ctypes.c_int64
    found.headscope_observe.argtypes = [ctypes.POINTER(Layer)]
    if found.headscope_layer_bytes() != ctypes.sizeof(Layer):
        raise ImportError("its compiled part is of another version")
    return found


_library = _loaded()


class Observing:
    """That of `observation`, compiled: what is the same for all layers of a batch is made ready once."""

    def __init__(self, tokens: Tokens, options: Options) -> None:
        self._tokens = tokens
        self._options = options
        self._equal, self._equal_begin = _equal_pairs(tokens.flags)
        self._sums: LayerSums | None = None
        self._seen: Seen | None = None
        self._layer = Layer(
            **_CONSTANTS,
            threshold=options.threshold,
            line_threshold=options.line_threshold,
            bins_per_unit=CUT * VALUE_BINS / 2,
            rounding=ROUNDING,
            coarse_edges=COARSE_EDGES.ctypes.data,
            equal=_address(self._equal, torch.int32),
            equal_begin=_address(self._equal_begin, torch.int64),
            **{name: _address(getattr(tokens, name), dtype) for name, dtype in _TOKENS.items()},
        )

    def __call__(
        self, attention: Tensor, output: Tensor, lengths: Tensor, heads: slice, sums: LayerSums, seen: Seen
    ) -> None:
        """Add what heads of one layer show: attention (B, H, S, S), output (B, H, S, d), and the lengths of their
        values (B, H, S), of these heads; `sums` and `seen` of all heads of this layer."""
        layer = self._layer
        if self._sums is not sums or self._seen is not seen:
            for name, dtype in _STATES.items():
                setattr(layer, name, _address(getattr(sums, name), dtype))
            layer.counts = _address(seen.counts, torch.int64)
            layer.numbers = _address(seen.numbers, torch.float64)
            layer.all_heads = seen.counts.shape[1]
            self._sums, self._seen = sums, seen
        attention = _dense(attention.float(), 2)
        output = _dense(output.float(), 1)
        vectors = _dense(compared(output, self._tokens.part, self._options.similarity), 1)
        lengths = lengths.float().contiguous()
        layer.windows, layer.heads, layer.length, _ = attention.shape
        layer.width = output.shape[-1]
        layer.first = heads.start
        layer.attention_window, layer.attention_head, _, _ = attention.stride()
        layer.output_window, layer.output_head, layer.output_token, _ = output.stride()
        layer.vectors_window, layer.vectors_head, layer.vectors_token, _ = vectors.stride()
        layer.attention = attention.data_ptr()
        layer.output = output.data_ptr()
        layer.vectors = vectors.data_ptr()
        layer.lengths = lengths.data_ptr()
        if not _library.headscope_observe(ctypes.byref(layer)):
            raise MemoryError


def _equal_pairs(flags: Tensor) -> tuple[Tensor, Tensor]:
    """Of the flags (B, S, S): j of every pair i < j of equal tokens, row by row; and where each row of each window
    begins among them, (B * S + 1,)."""
    equal = flags & (EQUAL | NO_PAIR) == EQUAL
    begin = torch.zeros(equal.shape[0] * equal.shape[1] + 1, dtype=torch.int64)
    torch.cumsum(equal.sum(-1).flatten(), 0, out=begin[1:])
    return equal.nonzero()[:, 2].int(), begin


def _dense(tensor: Tensor, axes: int) -> Tensor:
    """The same with its last axes dense: copied where they are not."""
    step = 1
    for size, stride in zip(tensor.shape[: -axes - 1 : -1], tensor.stride()[: -axes - 1 : -1], strict=True):
        if size > 1 and stride != step:
            return tensor.contiguous()
        step *= size
    return tensor


def _address(tensor: Tensor, dtype: Any) -> int:
    """Of an array that is just as the kernel takes it."""
    if tensor.dtype != dtype or not tensor.is_contiguous():
        raise TypeError(f"{tensor.dtype} {tuple(tensor.shape)} with strides {tensor.stride()}, not a dense {dtype}")
    return tensor.data_ptr()
