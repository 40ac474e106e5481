"""Linear layers, compiled: what `linear.c` is called with.

They are nine tenths of a forward pass. Torch leaves them to MKL, which makes use of the widest registers on Intel's
processors alone; on others that have them it takes twice as long as need be. There `linear.c` does the same sums in the
same order: what comes out is the model's own to the last bit. That is not taken on trust: a product is left to the
model until one of just its size has come out the same from both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headscope.compiled import library

FEWEST_ROWS = 64
"""Below, to lay out the weights takes longer than is saved."""


class Product(ctypes.Structure):
    """`Product` of `linear.c`, field for field."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("rows", "in", "out", "given_row", "weight_in", "weight_out")),
        *((name, ctypes.c_void_p) for name in ("given", "weight", "bias", "result")),
    )


@cache
def _library() -> ctypes.CDLL | None:
    """None where it can't be had, or the registers are no wider than those that torch makes use of."""
    try:
        found = library()
    except ImportError:
        return None
    found.headscope_product_bytes.restype = ctypes.c_int64
    if found.headscope_product_bytes() != ctypes.sizeof(Product) or not found.headscope_has_widest_registers():
        return None
    found.headscope_multiply.argtypes = [ctypes.POINTER(Product)]
    return found


class Products:
    """Which products are the same from both, as far as it is known: compared when they first come."""

    def __init__(self) -> None:
        self._same: dict[Any, bool] = {}

    def of(self, module: Any, given: Tensor) -> Tensor:
        """What a linear layer puts out."""
        if not _can_multiply(module, given):
            return _own(module, given)
        weight, bias = module.weight, module.bias
        size = given.shape[:-1].numel(), weight.shape, weight.stride(), bias is None
        same = self._same.get(size)
        if same:
            return multiplied(module, given)
        own = _own(module, given)
        if same is None and not bool(own.isnan().any()):
            self._same[size] = torch.equal(own, multiplied(module, given))
        return own


def _own(module: Any, given: Tensor) -> Tensor:
    put_out: Tensor = type(module).forward(module, given)
    return put_out


def _can_multiply(module: Any, given: Tensor) -> bool:
    weight, bias = module.weight, module.bias
    return (
        given.ndim > 1
        and given.shape[-1] == weight.shape[_entering(module)]
        and given.shape[:-1].numel() >= FEWEST_ROWS
        and given.stride(-1) == 1
        and 1 in weight.stride()
        and weight.numel() > 0
        and all(
            one.device.type == "cpu" and one.dtype == torch.float32 and one.layout == torch.strided
            for one in (given, weight, *(() if bias is None else (bias,)))
        )
        and (bias is None or bias.is_contiguous())
    )


def _entering(module: Any) -> int:
    """The axis of the weights along which is summed."""
    return 1 if type(module) is nn.Linear else 0


def multiplied(module: Any, given: Tensor) -> Tensor:
    """The same as the module's own, for what `_can_multiply`."""
    weight, bias, entering = module.weight, module.bias, _entering(module)
    rows = given.flatten(0, -2)
    result = given.new_empty(*given.shape[:-1], weight.shape[1 - entering])
    compiled = _library()
    assert compiled is not None
    product = Product(
        *(*rows.shape, result.shape[-1], rows.stride(0), weight.stride(entering), weight.stride(1 - entering)),
        rows.data_ptr(),
        weight.data_ptr(),
        None if bias is None else bias.data_ptr(),
        result.data_ptr(),
    )
    if not compiled.headscope_multiply(ctypes.byref(product)):
        raise MemoryError
    return result


@contextmanager
def multiplying(network: nn.Module, products: Products) -> Iterator[None]:
    """Meanwhile the linear layers of a network go by `products`. Those of other kinds, which may do more, do not."""
    changed = [
        module
        for module in network.modules()
        if type(module) in (nn.Linear, Conv1D) and "forward" not in module.__dict__ and _library() is not None
    ]
    for module in changed:
        module.__dict__["forward"] = lambda input, module=module: products.of(module, input)
    try:
        yield
    finally:
        for module in changed:
            del module.__dict__["forward"]
