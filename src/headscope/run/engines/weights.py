"""A network taken apart into its weights, one buffer that many processes can share, and all the rest."""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headscope.errors import HeadscopeError
from headscope.speaking import option

ALIGNMENT = 64
"""Bytes. Matrix products may round differently where a tensor begins at another place in a cache line."""

RECORDING = "transformers.utils.output_capturing"
"""A network that was once asked for its attentions or hidden states keeps hooks of this module, which can't be pickled.

They note what passes and change nothing, so the other processes do without them.
"""


@dataclass(frozen=True)
class Packed:
    """`skeleton` is the pickled network without its tensors; they lie in `weights`, (bytes,) uint8.

    Neither ever leaves the processes of one run: pickle is no file format here.
    """

    skeleton: bytes
    weights: Tensor


def pack(network: nn.Module, name: str) -> Packed:
    file = io.BytesIO()
    packer = _Packer(file)
    try:
        packer.dump(network)
    except (pickle.PicklingError, TypeError, AttributeError) as problem:
        raise HeadscopeError(
            f"The model {name} can't be handed to other processes ({problem}); use {option('workers', 1)}."
        ) from None
    weights = torch.zeros(packer.end, dtype=torch.uint8)
    begin = 0
    for tensor in packer.tensors:
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        weights[begin : begin + len(raw)] = raw
        begin += _room(len(raw))
    return Packed(file.getvalue(), weights)


def unpack(packed: Packed) -> Any:
    """The network again; its tensors are views of `packed.weights`, so processes that share those share them."""
    return _Unpacker(packed).load()


def align(network: nn.Module) -> None:
    """Weights mapped from a file begin where the file has them; move them to where packed ones would begin."""
    for tensor in (*network.parameters(), *network.buffers()):
        if tensor.data_ptr() % ALIGNMENT:
            tensor.data = tensor.data.clone()


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.tensors: list[Tensor] = []
        self.end = 0
        self._places: dict[int, tuple[Any, ...]] = {}

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        if getattr(obj, "__module__", None) == RECORDING and not isinstance(obj, type):
            return (None,)
        if type(obj) not in (Tensor, nn.Parameter) or obj.layout is not torch.strided or not obj.numel():
            return None
        if id(obj) not in self._places:
            self.tensors.append(obj)
            dtype = str(obj.dtype).removeprefix("torch.")
            self._places[id(obj)] = (self.end, tuple(obj.shape), dtype, type(obj) is nn.Parameter)
            self.end += _room(obj.nbytes)
        return self._places[id(obj)]


class _Unpacker(pickle.Unpickler):
    def __init__(self, packed: Packed) -> None:
        super().__init__(io.BytesIO(packed.skeleton))
        self._weights = packed.weights
        self._made: dict[int, Tensor] = {}

    def persistent_load(self, pid: tuple[Any, ...]) -> Any:
        if pid == (None,):
            return _no_hook
        begin, shape, name, is_parameter = pid
        if begin not in self._made:
            dtype: torch.dtype = getattr(torch, name)
            end = begin + _bytes(shape, dtype)
            tensor = self._weights[begin:end].view(dtype).view(shape)
            self._made[begin] = nn.Parameter(tensor, requires_grad=False) if is_parameter else tensor
        return self._made[begin]


def _no_hook(*_: Any) -> None:
    """Stands in for a hook that only takes notes."""


def _bytes(shape: tuple[int, ...], dtype: torch.dtype) -> int:
    return torch.Size(shape).numel() * dtype.itemsize


def _room(size: int) -> int:
    """Bytes from the beginning of one tensor to that of the next."""
    return -(-size // ALIGNMENT) * ALIGNMENT
