"""What was proved of a capture, as a study keeps it."""

from __future__ import annotations

from dataclasses import dataclass


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

    @property
    def sentence(self) -> str:
        z = f"Z to {_short(max(self.output, self.default))}, {self.layers} layers"
        if self.attention is None:
            return f"captured exactly: {z}; the model returns no A to compare"
        return f"captured exactly: A to {_short(self.attention)}, {z}"


def _short(difference: float) -> str:
    return f"{difference:.0e}".replace("e-0", "e-") if difference else "0"
