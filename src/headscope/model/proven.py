"""What was proved of a capture, as a study keeps it."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Proof:
    """That a capture is what the model computes, on some windows of its own study.

    attention, output, default: greatest differences over all layers (see LayerCheck). way: what was compared.
    implementation: the attention that the model was loaded with.
    """

    attention: float | None
    output: float
    default: float
    layers: int
    windows: int
    tokens: int
    way: str
    implementation: str

    def joined(self, other: Proof) -> Proof:
        """Of the windows of both."""
        known = [one.attention for one in (self, other) if one.attention is not None]
        return replace(
            self,
            attention=max(known, default=None),
            output=max(self.output, other.output),
            default=max(self.default, other.default),
            windows=self.windows + other.windows,
        )

    @property
    def sentence(self) -> str:
        attention = "" if self.attention is None else f"A to {short(self.attention)}, "
        unseen = "; it returns no A to compare" if self.attention is None else ""
        default = "" if self.implementation == "eager" else f"; Z under {self.implementation} to {short(self.default)}"
        how = "to rounding" if self.attention or self.output else "exactly"
        return f"captured {how}: {attention}Z to {short(self.output)}, {self.layers} layers{default}{unseen}"


def short(difference: float) -> str:
    """
    >>> short(3.4e-07), short(0.0)
    ('3e-7', '0')
    """
    return f"{difference:.0e}".replace("e-0", "e-") if difference else "0"
