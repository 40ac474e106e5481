"""A network that a user has loaded: is it one that can be measured, and is its tokenizer one for it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headscope.errors import HeadscopeError


def check_network(network: Any, tokenizer: Any, asked: Sequence[str]) -> None:
    """Refuse what can't be taken. asked: arguments that were given and are for models that are loaded by name."""
    import transformers

    kind, of = type(network).__name__, type(tokenizer).__name__
    if not isinstance(network, transformers.PreTrainedModel):
        raise HeadscopeError(
            f"The model is of type {kind}; give a name, or a network of transformers with its tokenizer."
        )
    if asked:
        raise HeadscopeError(f"{asked[0]} is for a model that is loaded by name; {kind} is taken as it is.")
    takes = network.main_input_name
    if takes not in ("pixel_values", "input_ids"):
        raise HeadscopeError(f"{kind} takes {takes}; headscope measures models that take texts or images.")
    needed = "image processor" if takes == "pixel_values" else "tokenizer"
    if tokenizer is None:
        raise HeadscopeError(f"{kind} needs its {needed}; give headscope.load(network, tokenizer=...).")
    if not callable(tokenizer) or hasattr(tokenizer, "all_special_ids") != (takes == "input_ids"):
        raise HeadscopeError(f"tokenizer is of type {of}; give the {needed} of {kind}, loaded.")
    if network.training:
        raise HeadscopeError(f"{kind} is in training mode, where dropout changes its heads; call network.eval().")
