"""Which part of a network is captured: one of the stacks of an encoder-decoder, one of two towers, or all of it."""

from __future__ import annotations

import inspect
from typing import Any

from transformers import PreTrainedModel

from headscope.errors import HeadscopeError
from headscope.model.recording import NotCaptured
from headscope.speaking import option

STACKS = ("encoder", "decoder", "cross")
"""Of an encoder-decoder: self attention of either, and the decoder's attention to the encoder."""
TOWERS = ("text", "vision")
"""Of a model that compares texts with images."""


def chosen_stack(network: Any, name: str, stack: str | None) -> str | None:
    """The stack asked for, or the first there is; None where the network has but one. name: of the model, in words."""
    known = STACKS if has_two_stacks(network) else TOWERS if has_two_towers(network) else ()
    if stack is None:
        return known[0] if known else None
    if stack in known:
        return stack
    if known:
        raise HeadscopeError(f"{option('stack')} is {stack!r}; it must be {', '.join(known[:-1])} or {known[-1]}.")
    kind = "models of two towers" if stack in TOWERS else "encoder-decoders"
    raise HeadscopeError(f"{option('stack', stack)} is for {kind}; the {name} has one stack of layers.")


def has_two_stacks(network: Any) -> bool:
    """An encoder and a decoder; told by what it takes, because T5's encoder alone has the same configuration."""
    return "decoder_input_ids" in inspect.signature(network.forward).parameters


def has_two_towers(network: Any) -> bool:
    """A model for texts beside one for images, as in CLIP."""
    return all(isinstance(getattr(network, f"{name}_model", None), PreTrainedModel) for name in TOWERS)


def tower(network: Any, stack: str | None) -> Any:
    """The part of a network that a stack belongs to: one of two towers, otherwise all of it."""
    return getattr(network, f"{stack}_model") if stack in TOWERS and has_two_towers(network) else network


def input_name(network: Any) -> str:
    """What a network takes; some take over the name of another kind of model."""
    name = network.main_input_name
    if not isinstance(name, str):
        return ", ".join(name)
    parameters = inspect.signature(network.forward).parameters
    return "pixel_values" if name not in parameters and "pixel_values" in parameters else name


def image_size(config: Any) -> tuple[int, int]:
    """Height and width of the images that a vision model takes."""
    size = getattr(config, "image_size", None)
    if not isinstance(size, int | list | tuple):
        raise NotCaptured(
            f"The configuration of family {config.model_type} names no one size of its images, which headscope needs."
        )
    return (size, size) if isinstance(size, int) else (size[0], size[1])
