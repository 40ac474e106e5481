"""Is every head captured, and right? The capture beside two runs of the model that share nothing with it.

The first runs the model's own eager attention, untouched: A is what its attention modules return when the model is
asked for attentions, and Z what enters its output projections, seen by hooks. A model that returns no attentions is
watched instead, at torch's own functions. The second runs the attention that the model was loaded with, which shows
whether the model behaves otherwise under `eager`: Z is compared, and then replaced by the captured one, so that each
layer is put to the test by itself.

Both go on beside the capture, layer by layer: of long windows no more than one layer is kept.
"""

from __future__ import annotations

import math
from contextlib import closing, suppress
from dataclasses import dataclass

import torch
from torch import Tensor

from headscope.errors import HeadscopeError
from headscope.files import give_back
from headscope.model.beside import OUTPUTS, RETURNED, WATCHED, Beside, NoMaps
from headscope.model.capture import Capture
from headscope.model.proven import Proof
from headscope.model.recording import NotCaptured

LARGE = 2**20
"""Elements of the A of one layer and window, above which the windows of a proof are run one after the other."""
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float64: 1e-5}
"""Greatest difference that passes, of A, and of Z as a share of the largest element of the layer. Mostly there is none:
but at a few lengths a product rounds otherwise for one window or head than for a whole batch."""
BETWEEN_IMPLEMENTATIONS = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 5e-2, torch.bfloat16: 0.2}
"""The same between two implementations of attention, which round differently."""


@dataclass(frozen=True)
class LayerCheck:
    """One layer: greatest differences from the independent runs; of Z as a share of its largest element.

    attention_difference: None where the model returns no attentions.
    output_difference: from eager attention; default_difference: from the attention that the model was loaded with.
    rows_off: the share of the rows of A that do not add up to 1, as in models with attention sinks.
    on_padding: the greatest attention that a token pays to padding.
    """

    layer: int
    tokens: int
    heads: int
    head_width: int
    attention_difference: float | None
    output_difference: float
    default_difference: float
    rows_off: float
    on_padding: float
    tolerance: float
    default_tolerance: float

    @property
    def wrong(self) -> str:
        """What differs, in words; empty where nothing does."""
        if self.attention_difference is not None and not self.attention_difference <= self.tolerance:
            return f"the captured A differs from the model's own by {self.attention_difference:.1g}"
        if self.on_padding != 0:
            return f"tokens pay attention to padding, {self.on_padding:.1g}"
        if not self.output_difference <= self.tolerance:
            return f"the captured Z differs from what enters the output projection by {self.output_difference:.1g}"
        if not self.default_difference <= self.default_tolerance:
            return (
                f"Z under eager attention differs from Z under the attention that the model was loaded with by "
                f"{self.default_difference:.1g}"
            )
        return ""

    @property
    def right(self) -> bool:
        return not self.wrong


def prove(capture: Capture, inputs: Tensor, mask: Tensor | None, types: Tensor | None = None) -> Proof:
    """Hold what is captured of two of these windows against the model itself, and refuse a capture that differs.

    inputs, mask, types: as `Capture.run` takes them.
    """
    way, checks = "", []
    batches = _batches(capture, inputs, mask, types)
    for batch in batches:
        way, found = compare(capture, *batch)
        checks += found
        give_back()
    for check in checks:
        if check.wrong:
            raise NotCaptured(
                f"The {capture.name} is not captured rightly: in layer {check.layer} {check.wrong}. "
                "headscope can't measure this model."
            )
    attention = [check.attention_difference for check in checks if check.attention_difference is not None]
    return Proof(
        attention=max(attention, default=None),
        output=max(check.output_difference for check in checks),
        default=max(check.default_difference for check in checks),
        layers=len(checks) // len(batches),
        windows=sum(len(some) for some, *_ in batches),
        tokens=checks[0].tokens,
        way=way,
        implementation=str(capture.network.config._attn_implementation),
    )


def _batches(
    capture: Capture, inputs: Tensor, mask: Tensor | None, types: Tensor | None
) -> list[tuple[Tensor, Tensor | None, Tensor | None]]:
    """The first window and the one with the most padding: few enough to be quick, and padding is put to the test.

    They are run together, as a study runs them, or, where the A of a layer is large, one after the other.
    """
    if mask is None:
        return [(inputs[:2], None, None)]
    shortest = int(mask[1:].sum(1).argmin()) + 1 if len(mask) > 1 else 0
    chosen = sorted({0, shortest})
    large = capture.heads * mask.shape[1] ** 2 > LARGE
    return [
        (inputs[some], mask[some], None if types is None else types[some])
        for some in ([[one] for one in chosen] if large else [chosen])
    ]


def compare(
    capture: Capture, inputs: Tensor, mask: Tensor | None, types: Tensor | None = None
) -> tuple[str, list[LayerCheck]]:
    """What was compared, and every layer held against the independent runs."""
    for way in (RETURNED, WATCHED) if capture.route == "interface" else (RETURNED, OUTPUTS):
        with suppress(NoMaps):
            checks = _compared(capture, inputs, mask, types, way)
            if not all(check.right for check in checks) and _draws_at_random(capture, inputs, mask):
                raise NotCaptured(
                    f"The {capture.name} draws at random while it runs, so that no two runs are alike; headscope can't "
                    "measure it."
                )
            return way, checks
    raise NotCaptured(
        f"The {capture.name} shows no attentions when it runs by itself, so that what is captured of it can't be "
        "proved; headscope measures only what it can prove."
    )


def _draws_at_random(capture: Capture, inputs: Tensor, mask: Tensor | None) -> bool:
    runs: list[list[Tensor]] = [[], []]
    for run in runs:
        capture.run(inputs, mask, lambda layer, attention, output, run=run: run.append(output.sum()))  # type: ignore[misc]
    return any(not (one == other or (one.isnan() and other.isnan())) for one, other in zip(*runs, strict=True))


def _compared(
    capture: Capture, inputs: Tensor, mask: Tensor | None, types: Tensor | None, way: str
) -> list[LayerCheck]:
    arguments = capture.arguments(inputs, mask, types)
    with closing(Beside(capture, arguments, way)) as eager, closing(Beside(capture, arguments, None)) as default:
        layers = _Layers(capture, eager, default, mask)
        try:
            capture.run_by_heads(inputs, mask, layers.receive, types=types, each_by_itself=True)
        except (HeadscopeError, NoMaps, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as problem:
            reason = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
            raise NotCaptured(
                f"The {capture.name} can't be measured: running it with eager attention failed with {reason}."
            ) from problem
        return layers.finished()


class _Layers:
    """Holds each layer against the independent runs, some heads after the others."""

    def __init__(self, capture: Capture, eager: Beside, default: Beside, mask: Tensor | None) -> None:
        self._capture = capture
        self._eager = eager
        self._default = default
        self._mask = mask
        self._keep = None if mask is None else mask.bool()[:, None, :, None]
        self._layer: int | None = None
        self._checks: list[LayerCheck] = []

    def receive(self, layer: int, heads: slice, attention: Tensor, output: Tensor, lengths: Tensor) -> None:
        if layer != self._layer:
            self._finish_layer()
            self._layer = layer
            self._own = self._eager.attention(layer)
            self._check_shape(layer, attention)
            whole = attention.new_empty(len(attention), self._capture.heads, attention.shape[2], 0)
            self._entering = self._capture.places[layer].split(self._eager.entering(layer), whole)
            self._outputs: list[Tensor] = []
            self._differences = [0.0, 0.0, 0.0]
            self._rows: list[Tensor] = []
        output = output[..., : self._entering.shape[-1]]
        off = 0.0 if self._own is None else self._off(attention, self._own[:, heads])
        output_off = self._off(output, self._entering[:, heads])
        paid = (
            0.0 if self._mask is None else self._largest(attention.nan_to_num() * (self._mask == 0)[:, None, None, :])
        )
        self._differences = [max(pair) for pair in zip(self._differences, (off, output_off, paid), strict=True)]
        self._rows.append(self._of_tokens(attention.float().sum(-1, keepdim=True)))
        self._outputs.append(output.clone())

    def finished(self) -> list[LayerCheck]:
        self._finish_layer()
        return self._checks

    def _finish_layer(self) -> None:
        if self._layer is None:
            return
        output = torch.cat(self._outputs, 1)
        place = self._capture.places[self._layer]
        default = place.split(self._default.entering(self._layer), output)
        # What overflows is named when it is measured; two implementations need not overflow alike.
        finite = math.isfinite(self._largest(output))
        largest = self._largest(self._entering.nan_to_num(posinf=0, neginf=0)) or 1.0
        attention_off, output_off, paid = self._differences
        kind = output.dtype
        rows = torch.cat(self._rows)
        check = LayerCheck(
            self._layer,
            output.shape[2],
            output.shape[1],
            output.shape[3],
            None if self._own is None else attention_off,
            output_off / largest,
            self._off(output, default) / largest if finite else 0.0,
            float(((rows - 1).abs() > 100 * TOLERANCE[kind]).float().mean()),
            paid,
            TOLERANCE[kind],
            BETWEEN_IMPLEMENTATIONS[kind],
        )
        if check.right:
            self._default.replace(place.join(output))
        self._checks.append(check)
        self._own = None

    def _check_shape(self, layer: int, attention: Tensor) -> None:
        tokens = (self._mask.shape[1],) * 2 if self._mask is not None else attention.shape[2:3] * 2
        if tuple(attention.shape[2:]) != tuple(tokens):
            raise NotCaptured(
                f"The {self._capture.name} is not captured rightly: in layer {layer} a map is "
                f"{' x '.join(map(str, attention.shape[2:]))}, not tokens by tokens."
            )

    def _largest(self, tensor: Tensor) -> float:
        """Greatest magnitude, in the rows of tokens that are not padding. tensor: (B, H, S, ...)."""
        tensor = tensor.float()
        return float((tensor if self._keep is None else tensor.where(self._keep, 0)).abs().max())

    def _off(self, one: Tensor, other: Tensor) -> float:
        """Greatest difference, in those rows. 0 where both have overflowed, infinite where one has: whether to infinity
        or to NaN, the order of a sum tells."""
        off = self._largest(one - other)
        if math.isfinite(off):
            return off
        same = (one == other) | ~(one.isfinite() | other.isfinite())
        different = (one - other).where(~same, 0)
        return self._largest(different.nan_to_num(nan=math.inf, posinf=math.inf, neginf=-math.inf))

    def _of_tokens(self, rows: Tensor) -> Tensor:
        """The values of (B, H, S, 1) that belong to tokens."""
        return rows.flatten() if self._keep is None else rows[self._keep.expand_as(rows)]
