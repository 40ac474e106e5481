"""Is every head of a model captured, and right? The capture beside a route that shares nothing with it.

The other route runs the model with its own eager attention. A is what the model returns when asked for attentions.
Z is what enters the output projection, seen by a hook; where the capture itself uses that hook, Z is computed anew
as A times V.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from headscope.corpus.texts import sample_texts
from headscope.corpus.windows import Counts, Cutter, cut_all
from headscope.corpus.windows import stack as stacked
from headscope.model.capture import STACKS, Capture, NotCaptured, attention_implementation, has_two_stacks, image_size
from headscope.model.families.hooked import Hooked
from headscope.model.families.small import FAMILIES, REFUSED, VOCABULARY, Family, small_network
from headscope.model.loading import Model, as_model
from headscope.options import Options

if TYPE_CHECKING:
    import pandas as pd

WINDOWS, LENGTH = 3, 64
TOLERANCE = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Greatest difference of Z that passes, as a share of the largest element of Z."""


@dataclass(frozen=True)
class LayerCheck:
    """One layer: greatest differences from the other route; Z's is a share of its largest element.

    rows_off: the share of the rows of A that do not add up to 1, as in models with attention sinks.
    on_padding: the greatest attention that a token pays to padding.
    """

    layer: int
    heads: int
    head_width: int
    attention_difference: float
    output_difference: float
    rows_off: float
    on_padding: float
    tolerance: float

    @property
    def right(self) -> bool:
        exact = self.attention_difference == 0 and self.on_padding == 0
        return exact and self.output_difference <= self.tolerance


@dataclass(frozen=True)
class Diagnosis:
    """What `headscope doctor` found of one stack of layers. reason: why there is nothing to compare."""

    name: str
    family: str
    stack: str | None = None
    route: str | None = None
    layers: tuple[LayerCheck, ...] = ()
    reason: str | None = None

    @property
    def right(self) -> bool:
        return bool(self.layers) and all(layer.right for layer in self.layers)

    @property
    def verdict(self) -> str:
        if self.reason:
            return "not captured"
        return "right" if self.right else "WRONG"

    @property
    def table(self) -> pd.DataFrame:
        """A row per layer."""
        import pandas as pd

        names = [name for name in LayerCheck.__dataclass_fields__ if name != "tolerance"]
        rows = [{name: getattr(layer, name) for name in names} | {"right": layer.right} for layer in self.layers]
        return pd.DataFrame(rows, columns=[*names, "right"])


def doctor(model: Model | str, *, stack: str | None = None) -> list[Diagnosis]:
    """Compare the capture of a model with an independent route, on a few windows of the sample texts.

    One diagnosis per stack: one for most models, three for an encoder-decoder unless `stack` names one.

    >>> import headscope
    >>> [diagnosis] = headscope.doctor("minilm")  # doctest: +SKIP
    >>> diagnosis.verdict  # doctest: +SKIP
    'right'
    """
    model = as_model(model)
    inputs, mask = _sample_inputs(model)
    return [diagnose(model.name, model.network, one, inputs, mask) for one in _stacks(model.network, stack)]


def doctor_all() -> Iterator[tuple[Family, Diagnosis]]:
    """Every family that headscope vouches for, and some that it refuses, from small networks with random weights."""
    for family in (*FAMILIES, *REFUSED):
        network = small_network(family)
        inputs, mask = family_inputs(family, network)
        for one in family.stacks:
            yield family, diagnose(family.name, network, one, inputs, mask)


def diagnose(name: str, network: Any, stack: str | None, inputs: Tensor, mask: Tensor | None) -> Diagnosis:
    """Compare the two routes on one batch."""
    family = network.config.model_type
    try:
        capture = Capture(network, stack)
    except NotCaptured as problem:
        return Diagnosis(name, family, stack, reason=str(problem))
    found: list[tuple[Tensor, Tensor]] = []
    projections: list[str] = []
    with _next_projections(network, capture, projections) as after:

        def receive(layer: int, attention: Tensor, output: Tensor) -> None:
            found.append((attention.clone(), output.clone()))
            after.append(layer)

        capture.run(inputs, mask, receive)
    try:
        attentions, outputs = _other_route(network, capture, projections, inputs, mask, [A for A, _ in found])
    except Exception as problem:
        reason = f"the model can't be asked for its attentions ({type(problem).__name__}: {problem})"
        return Diagnosis(name, family, stack, capture.route, reason=reason)
    if not len(found) == len(attentions) == len(outputs):
        reason = (
            f"{len(found)} layers were captured, but the model returns {len(attentions)} attention maps and "
            f"{len(outputs)} outputs were seen"
        )
        return Diagnosis(name, family, stack, capture.route, reason=reason)
    real = mask.bool() if mask is not None else None
    checks = [
        _check(layer, *captured, *other, real)
        for layer, (captured, other) in enumerate(zip(found, zip(attentions, outputs, strict=True), strict=True))
    ]
    return Diagnosis(name, family, capture.stack, capture.route, tuple(checks))


def family_inputs(family: Family, network: Any) -> tuple[Tensor, Tensor | None]:
    """Random inputs for a small network, and their mask; the last text is padded."""
    generator = torch.Generator().manual_seed(1)
    if family.kind == "vision":
        size = network.config.image_size
        return torch.randn(2, 3, size, size, generator=generator), None
    if family.kind == "sound":
        return torch.randn(2, 8, 24, generator=generator), None
    ids = torch.randint(5, VOCABULARY, (2, 16), generator=generator)
    mask = torch.ones_like(ids)
    mask[-1, 10:] = 0
    return ids, mask


def _sample_inputs(model: Model) -> tuple[Tensor, Tensor | None]:
    """Windows of the sample texts and their mask; for a vision model, noise."""
    if model.network.main_input_name == "pixel_values":
        noise = torch.randn(WINDOWS, model.network.config.num_channels, *image_size(model.network.config))
        return noise.to(model.device, next(model.network.parameters()).dtype), None
    length = min(LENGTH, model.longest or LENGTH)
    options = Options(length=length, short="pad", windows="first")
    batch = stacked(list(cut_all(sample_texts(), Cutter(model.tokenizer, options), Counts(), WINDOWS)))
    mask = torch.from_numpy(batch.mask).to(model.device)
    # The last window is cut short, so that padding is put to the test as well.
    mask[-1, length // 2 :] = 0
    return torch.from_numpy(batch.ids).to(model.device), mask


def _stacks(network: Any, asked: str | None) -> tuple[str | None, ...]:
    return STACKS if asked is None and has_two_stacks(network) else (asked,)


def _check(layer: int, A: Tensor, Z: Tensor, other_A: Tensor, other_Z: Tensor, real: Tensor | None) -> LayerCheck:
    """A: (B, H, S, S); Z: (B, H, S, d); real: (B, S), not padding."""
    heads, width = Z.shape[1], Z.shape[3]
    off, on_padding = _rows_off(A, real), 0.0
    if real is not None:
        paid = A * real[:, None, :, None] * ~real[:, None, None, :]
        on_padding = float(paid.abs().max())
        keep = real[:, None, :, None]
        A, Z, other_A, other_Z = A * keep, Z * keep, other_A * keep, other_Z * keep
    largest = float(other_Z.abs().max()) or 1.0
    return LayerCheck(
        layer,
        heads,
        width,
        float((A - other_A).abs().max()),
        float((Z.float() - other_Z.float()).abs().max()) / largest,
        off,
        on_padding,
        TOLERANCE[Z.dtype],
    )


def _rows_off(A: Tensor, real: Tensor | None) -> float:
    sums = A.float().sum(-1)
    rows = sums.transpose(1, 2)[real] if real is not None else sums
    return float(((rows - 1).abs() > 100 * TOLERANCE[A.dtype]).float().mean())


def _other_route(
    network: Any, capture: Capture, projections: list[str], inputs: Tensor, mask: Tensor | None, maps: list[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """A and Z of every layer of the stack. maps: the captured A, for families whose Z is computed as A times V."""
    seen: list[Tensor] = []
    handles = []

    def keep_input(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        seen.append(given[0].clone())

    if capture.hooked is None:
        for name in dict.fromkeys(projections):
            handles.append(network.get_submodule(name).register_forward_pre_hook(keep_input))
    else:
        handles += _watch_values(network, capture.hooked, seen)
    try:
        with torch.inference_mode(), attention_implementation(network, "eager"):
            returned = network(**capture.arguments(inputs, mask), output_attentions=True)
    finally:
        for handle in handles:
            handle.remove()
    field = {None: "attentions", "cross": "cross_attentions"}.get(capture.stack, f"{capture.stack}_attentions")
    attentions = list(returned[field])
    if capture.hooked is not None:
        return attentions, [A @ V for A, V in zip(maps, seen, strict=True)]
    return attentions, [joined.view(*joined.shape[:2], capture.heads, -1).transpose(1, 2) for joined in seen]


def _watch_values(network: Any, hooked: Hooked, seen: list[Tensor]) -> list[Any]:
    def keep_values(module: nn.Module, given: tuple[Tensor, ...], named: dict[str, Any]) -> None:
        seen.append(hooked.values(module, given[0] if given else named["hidden_states"]))

    return [
        module.register_forward_pre_hook(keep_values, with_kwargs=True)
        for module in network.modules()
        if type(module).__name__ == hooked.attention
    ]


@contextmanager
def _next_projections(network: Any, capture: Capture, names: list[str]) -> Iterator[list[int]]:
    """Finds the output projection of each layer: the first matrix, after the layer has reported, that its Z can enter.

    Yields a list; whoever receives a layer appends to it, and the name of the projection is appended to `names`.
    """
    waiting: list[int] = []
    width = capture.heads * capture.head_width
    handles = []

    def watch(name: str) -> Any:
        def entered(module: nn.Module, given: tuple[Any, ...]) -> None:
            if waiting and given and isinstance(given[0], Tensor) and given[0].shape[-1] == width:
                waiting.clear()
                names.append(name)

        return entered

    for name, module in network.named_modules():
        weight = getattr(module, "weight", None)
        if isinstance(weight, Tensor) and weight.ndim == 2 and not isinstance(module, nn.Embedding):
            handles.append(module.register_forward_pre_hook(watch(name)))
    try:
        yield waiting
    finally:
        for handle in handles:
            handle.remove()
