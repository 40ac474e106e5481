"""`headscope doctor`: the proof of a capture, layer by layer, for a model or for every family."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from headscope.corpus.texts import sample_texts
from headscope.corpus.windows import Counts, Cutter, cut_all
from headscope.corpus.windows import stack as stacked
from headscope.model.capture import Capture
from headscope.model.families.small import FAMILIES, REFUSED, VOCABULARY, Family, small_network
from headscope.model.loading import Model, as_model
from headscope.model.proof import LayerCheck, compare
from headscope.model.recording import NotCaptured
from headscope.model.stacks import STACKS, TOWERS, has_two_stacks, has_two_towers, image_size, input_name, tower
from headscope.options import Options

if TYPE_CHECKING:
    import pandas as pd

WINDOWS, LENGTH = 3, 64


@dataclass(frozen=True)
class Diagnosis:
    """What `headscope doctor` found of one stack of layers.

    way: what was compared. others: the layers without attention, and what they are. reason: why there is
    nothing to compare.

    >>> import headscope
    >>> headscope.doctor("minilm")[0].right  # doctest: +SKIP
    """

    name: str
    family: str
    stack: str | None = None
    route: str | None = None
    layers: tuple[LayerCheck, ...] = ()
    way: str | None = None
    others: tuple[tuple[int, str], ...] = ()
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

        names = [name for name in LayerCheck.__dataclass_fields__ if "tolerance" not in name]
        rows = [{name: getattr(layer, name) for name in names} | {"right": layer.right} for layer in self.layers]
        return pd.DataFrame(rows, columns=[*names, "right"])


def doctor(model: Model | str, *, stack: str | None = None) -> list[Diagnosis]:
    """Compare the capture of a model with an independent route, on a few windows of the sample texts.

    One diagnosis per stack: one for most models, three for an encoder-decoder and two for a model of two towers,
    unless `stack` names one.

    >>> import headscope
    >>> [diagnosis] = headscope.doctor("minilm")  # doctest: +SKIP
    >>> diagnosis.verdict  # doctest: +SKIP
    'right'
    """
    model = as_model(model)
    network = model.network
    return [
        diagnose(model.name, network, one, *_sample_inputs(model, tower(network, one)))
        for one in _stacks(network, stack)
    ]


def doctor_all() -> Iterator[tuple[Family, Diagnosis]]:
    """Every family that headscope vouches for, and some that it refuses, from small networks with random weights."""
    for family in (*FAMILIES, *REFUSED):
        if family.known:
            network = small_network(family)
            for one in family.stacks:
                yield family, diagnose(family.name, network, one, *family_inputs(family, network, one))


def diagnose(name: str, network: Any, stack: str | None, inputs: Tensor, mask: Tensor | None) -> Diagnosis:
    """The proof of one stack, on one batch."""
    family = network.config.model_type
    try:
        capture = Capture(network, stack)
        way, layers = compare(capture, inputs, mask)
    except NotCaptured as problem:
        return Diagnosis(name, family, stack, reason=str(problem))
    others = tuple(capture.other_layers.items())
    return Diagnosis(name, family, capture.stack, capture.route, tuple(layers), way, others)


def family_inputs(family: Family, network: Any, stack: str | None = None) -> tuple[Tensor, Tensor | None]:
    """Random inputs for a small network, and their mask; the last text is padded."""
    generator = torch.Generator().manual_seed(1)
    part = tower(network, stack)
    if input_name(part) == "pixel_values":
        return torch.randn(2, 3, *image_size(part.config), generator=generator), None
    if family.kind == "sound":
        return torch.randn(2, 8, 24, generator=generator), None
    ids = torch.randint(5, VOCABULARY, (2, 16), generator=generator)
    mask = torch.ones_like(ids)
    mask[-1, 10:] = 0
    return ids, mask


def _sample_inputs(model: Model, network: Any) -> tuple[Tensor, Tensor | None]:
    """Windows of the sample texts and their mask; for a vision model, noise. network: the tower that takes them."""
    if input_name(network) == "pixel_values":
        noise = torch.randn(WINDOWS, network.config.num_channels, *image_size(network.config))
        return noise.to(model.device, next(network.parameters()).dtype), None
    length = min(LENGTH, model.longest or LENGTH)
    options = Options(length=length, short="pad", windows="first")
    batch = stacked(list(cut_all(sample_texts(), Cutter(model.tokenizer, options), Counts(), WINDOWS)))
    mask = torch.from_numpy(batch.mask).to(model.device)
    # The last window is cut short, so that padding is put to the test as well.
    mask[-1, length // 2 :] = 0
    return torch.from_numpy(batch.ids).to(model.device), mask


def _stacks(network: Any, asked: str | None) -> tuple[str | None, ...]:
    if asked is not None:
        return (asked,)
    return STACKS if has_two_stacks(network) else TOWERS if has_two_towers(network) else (None,)
