"""How a model outside the attention interface is captured."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hooked:
    """Where hooks find Z and A in a family that does not use the attention interface.

    attention: the class of the module that computes one layer's attention.
    projection: the name, inside it, of the output projection; what enters it are the joined head outputs.
    weights: which element of the module's output is the attention map, when the model is asked for attentions.
    """

    attention: str
    projection: str
    weights: int = 1
