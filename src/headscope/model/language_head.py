"""The language-model head of a checkpoint: what makes predictions of tokens out of final hidden states.

headscope reads networks without it. Where a loss is wanted, the checkpoint is read again by the class that its config
names, and the head is called through that class: whatever it does beside its matrix, scaling or capping for example,
is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from headscope.errors import HeadscopeError
from headscope.model.capture import own_modules
from headscope.model.carrying import TOLERANCE
from headscope.model.folder_checks import folder_of_transformer
from headscope.model.forwards import calling_instead
from headscope.model.loading import RANDOM, Model, offline, read_network, readable
from headscope.model.places import folder_of
from headscope.model.resuming import body_of
from headscope.model.stacks import has_two_stacks
from headscope.model.weight_checks import check_finite, weight_files

Predicts = Literal["next token", "masked tokens"]
"""What a head is trained for."""
_FIRST_TOKEN, _PROBE = 5, 8
"""Tokens on which the head is tried."""
_AUTO = {"next token": "AutoModelForCausalLM", "masked tokens": "AutoModelForMaskedLM"}


class NoHead(HeadscopeError):
    """A model has no language-model head, and why."""


def predicts(network: Any) -> Predicts | None:
    """What the head of a network predicts; None where it has none."""
    named = type(network).__name__
    return next((kind for kind in get_args(Predicts) if named in _class_names(network.config, kind)), None)


def with_head(model: Model) -> Model:
    """The same model with the language-model head of its checkpoint. NoHead: there is none, and why.

    That the checkpoint holds the weights of the model is checked, tensor by tensor.
    """
    if predicts(model.network) is not None:
        _check_called(model.name, model.network)
        return model
    config = model.network.config
    if has_two_stacks(model.network):
        raise NoHead(f"{model.name} has an encoder and a decoder, of which headscope takes no loss.")
    found = [
        (kind, name)
        for kind in get_args(Predicts)
        for name in (getattr(config, "architectures", None) or ())
        if name in _class_names(config, kind)
    ]
    if not found:
        named = ", ".join(getattr(config, "architectures", None) or ()) or "none"
        raise NoHead(f"{model.name} has no language-model head (its config.json names the architecture {named}).")
    if model.name.startswith(RANDOM):
        raise NoHead(f"{model.name} has random weights, of which a loss says nothing.")
    import transformers

    try:
        folder = folder_of_transformer(folder_of(model.name, weights=True))
    except HeadscopeError as problem:
        raise NoHead(
            f"The checkpoint of {model.name} is not at hand, so its language-model head can't be read: {problem}"
        ) from None

    [(_, name), *_] = found
    network_class = getattr(transformers, name)
    kind = next(model.network.parameters()).dtype
    with offline(), readable(folder):
        try:
            network, _ = read_network(model.name, network_class, deepcopy(config), kind, weight_files(folder))
        except HeadscopeError as problem:
            raise NoHead(
                f"The checkpoint of {model.name} names {name}, but does not hold its language-model head."
            ) from problem
    network = network.eval().requires_grad_(False)
    check_finite(model.name, network)
    network = network.to(model.device)
    _check_same(model, network)
    _check_called(model.name, network)
    return replace(model, network=network)


def _class_names(config: Any, kind: Predicts) -> tuple[str, ...]:
    """The classes of this family that predict so."""
    import transformers

    found = getattr(transformers, _AUTO[kind])._model_mapping.get(type(config), None)
    classes = found if isinstance(found, list | tuple) else [found]
    return tuple(one.__name__ for one in classes if one is not None)


def _check_same(model: Model, network: Any) -> None:
    there = body_of(network).state_dict()
    for name, tensor in model.network.state_dict().items():
        if name in there and not torch.equal(there[name], tensor):
            raise NoHead(
                f"{model.name} is not what its checkpoint holds ({name} differs), so the head there is not its own."
            )


def _check_called(name: str, network: Any) -> None:
    """What the head makes of final hidden states must be what the whole network puts out. Tried on a copy: a pass may
    change a network for good."""
    network = own_modules(network)
    vocabulary = int(network.config.get_text_config().vocab_size)
    ids = (_FIRST_TOKEN + torch.arange(_PROBE, device=next(network.parameters()).device))[None] % vocabulary
    try:
        with torch.inference_mode():
            whole = network(input_ids=ids).logits[0].float()
            states = body_of(network)(input_ids=ids).last_hidden_state[0]
            ids[0, -1] = _FIRST_TOKEN % vocabulary
            with_another_end = network(input_ids=ids).logits[0].float()
        found = logits(network, states).float()
    except HeadscopeError:
        raise
    except Exception as problem:
        reason = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
        raise NoHead(f"The language-model head of {name} can't be called by itself ({reason}).") from None
    tolerance = TOLERANCE[states.dtype] * float(whole.abs().max())
    if found.shape != whole.shape or not float((found - whole).abs().max()) <= tolerance:
        raise NoHead(
            f"The language-model head of {name} can't be called by itself: from the final hidden states it makes other "
            "predictions than the whole model."
        )
    if predicts(network) == "next token" and not float((with_another_end - whole)[:-1].abs().max()) <= tolerance:
        raise NoHead(f"{name} sees the tokens that its head is to predict, so a loss of the next token says nothing.")


class _Handed:
    """What a body returns to the head: the final hidden states, and nothing else that it may be asked for."""

    def __init__(self, states: Tensor) -> None:
        self.last_hidden_state = states

    def __getitem__(self, place: int | slice) -> Any:
        return () if isinstance(place, slice) else self.last_hidden_state if place == 0 else None

    def __getattr__(self, name: str) -> None:
        return None


@contextmanager
def _handing(network: Any, states: Tensor) -> Iterator[None]:
    """The body, and the decoder in it, which some families call past the body, put out these states."""
    body = body_of(network)
    decoder = getattr(body, "decoder", None)
    called = [body, decoder] if isinstance(decoder, nn.Module) else [body]
    with calling_instead(dict.fromkeys(called, lambda *given, **named: _Handed(states))):
        yield


def logits(network: Any, states: Tensor) -> Tensor:
    """What the head makes of final hidden states: (N, D) -> (N, V). Each is taken by itself."""
    with torch.inference_mode(), _handing(network, states[None]):
        ids = torch.zeros(1, len(states), dtype=torch.long, device=states.device)
        found: Tensor = network(input_ids=ids).logits
    return found[0]
