"""What attention carries: how long the value vector of each token is, as a head hands it on.

A head adds to the model what its columns W of the output projection make of the values v, weighted by attention; so the
length of W v counts. It is had as the length of R v, where RᵀR = WᵀW and R is no larger than the head is wide. Where a
gate or a norm stands between the values and the projection, the length of v itself is taken.

Neither is taken on trust: the probe of a capture shows that A times the values is what the call returned, and that the
matrix makes what the projection puts out.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from headscope.model.attention_parts import among_heads

CarriedBy = Literal["projection", "value"]
TOLERANCE = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Greatest difference that passes for rounding, as a share of the largest element."""


class Carried:
    """The lengths of value vectors, in every head.

    by: "projection": as the head's part of the output projection maps them; "value": of the vectors themselves; None:
    they are not known, and NaN. matrices: the number of a layer -> that of its output projection, (out, H * d).
    """

    def __init__(self, by: CarriedBy | None, heads: int = 0, matrices: Mapping[int, Tensor] | None = None) -> None:
        self.by = by
        self._heads = heads
        self._matrices = matrices or {}
        self._factors: dict[int, Tensor] = {}
        self._lock = threading.Lock()

    def lengths(self, layer: int, heads: slice, values: Tensor | None) -> Tensor | None:
        """Of some heads: (B, H, K) float32, contiguous, where H counts these heads and K the keys. values: as in
        `SomeHeads`. None where the lengths are not known."""
        if self.by is None or values is None:
            return None
        values = values.float()
        if self.by == "value":
            return among_heads(_lengths(values), heads.stop - heads.start).contiguous()
        factors = self._factor(layer)[heads]
        sharing = factors.view(values.shape[1], -1, *factors.shape[1:])
        return _lengths(values[:, :, None] @ sharing).flatten(1, 2)

    def _factor(self, layer: int) -> Tensor:
        """Rᵀ of every head, (H, d, d): made when it is first asked for, and once for layers that share a matrix."""
        matrix = self._matrices[layer]
        with self._lock:
            if matrix.data_ptr() not in self._factors:
                self._factors[matrix.data_ptr()] = _transposed_factor(matrix, self._heads)
            return self._factors[matrix.data_ptr()]


def _transposed_factor(matrix: Tensor, heads: int) -> Tensor:
    """(out, H * d) -> Rᵀ of every head, (H, d, d). R is that of W = Q R, which every W has, whatever its rank."""
    parts = matrix.detach().cpu().double().view(len(matrix), heads, -1).transpose(0, 1)
    with torch.inference_mode(), _one_thread():
        factor: Tensor = torch.linalg.qr(parts, mode="r").R
        return factor.mT.float().contiguous().to(matrix.device)


def _lengths(vectors: Tensor) -> Tensor:
    """(..., d) -> (...)."""
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return lengths


@contextmanager
def _one_thread() -> Iterator[None]:
    """The number of threads changes no bit of a result."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def matrix_of(projection: nn.Module) -> Tensor | None:
    """(out, in), where the module is one that is known to hold it; None otherwise."""
    if isinstance(projection, nn.Linear):
        return projection.weight
    return projection.weight.T if isinstance(projection, Conv1D) else None


def are_values(values: Tensor | None, attention: Tensor, output: Tensor) -> bool:
    """Whether A (B, H, S, K) times the values (B, G, K, d) is the output (B, H, S, d)."""
    made = _weighted(values, attention, output)
    return made is not None and _close(made, output)


def is_rescaled(values: Tensor | None, attention: Tensor, output: Tensor) -> bool:
    """Whether the output is A times the values, each row of it times a number of its own: then the model weighs by
    another A. One number for all rows of a head changes none of them beside the others."""
    made = _weighted(values, attention, output)
    if made is None or made.shape[-1] < 2:
        return False
    found = output.float()
    times = (made * found).sum(-1, keepdim=True) / made.square().sum(-1, keepdim=True).clamp_min(1e-30)
    of_heads = times.mean(2, keepdim=True)
    return not _close(made * of_heads, output) and _close(made * times, output)


def _weighted(values: Tensor | None, attention: Tensor, output: Tensor) -> Tensor | None:
    """A times the values, (B, H, S, d); None where these are not of such shapes."""
    if values is None or not values.ndim == attention.ndim == 4:
        return None
    windows, heads, queries, keys = attention.shape
    if values.shape[::2] != (windows, keys) or heads % values.shape[1]:
        return None
    if output.shape != (windows, heads, queries, values.shape[3]):
        return None
    return attention.float() @ among_heads(values, heads).float()


def is_matrix(projection: nn.Module, given: Tensor, returned: Any) -> bool:
    """Whether the module puts out its matrix times what it is given, and its bias."""
    matrix = matrix_of(projection)
    if matrix is None or matrix.ndim != 2 or given.shape[-1] != matrix.shape[1]:
        return False
    made = given.float() @ matrix.float().T
    if isinstance(projection.bias, Tensor):
        made = made + projection.bias.float()
    return isinstance(returned, Tensor) and made.shape == returned.shape and _close(made, returned)


def _close(made: Tensor, found: Tensor) -> bool:
    """NaN is close to nothing."""
    return bool((made - found.float()).abs().max() <= TOLERANCE[found.dtype] * found.float().abs().max())
