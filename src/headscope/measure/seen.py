"""What is seen of a batch, per layer, window and head: the small numbers that every measure needs.

All counts lie in one array and all other numbers in another, so that a kernel is handed two arrays and not thirty.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

import torch
from torch import Tensor

from headscope.corpus.windows import KINDS
from headscope.measure.declaration import DIAGONALS

COUNTS: Mapping[str, int] = {
    "pairs": 1,
    "repeats": 1,
    "together": 1,
    "repeats_together": 1,
    "distance": 1,
    "focal": 1,
    "focal_pairs": 1,
    "random_focal": 1,
    "random_focal_pairs": 1,
    "lines": len(KINDS),
}
NUMBERS: Mapping[str, int] = {
    "peak": 1,
    "repeats_expected": 1,
    "together_expected": 1,
    "contrast": 1,
    "signal_equal": 1,
    "signal_together": 1,
    "noise_square": 1,
    "mean_vector_share": 1,
    "diagonals": len(DIAGONALS),
    "attention_to": len(KINDS),
    "carried_to": len(KINDS),
}
"""Name -> how many numbers."""


def places(names: Mapping[str, int]) -> dict[str, int]:
    """Where each name begins."""
    return dict(zip(names, accumulate(names.values(), initial=0), strict=False))


_COUNTS, _NUMBERS = places(COUNTS), places(NUMBERS)


class Seen:
    """Per layer, window and head, (L, B, H) unless said.

    peak: m. pairs: high pairs; of them repeats: equal tokens, together: within one sentence, repeats_together: both;
    distance: the sum of their distances.
    repeats_expected, together_expected: how many would be of equal tokens, or within one sentence, if at each distance
    the high pairs were drawn from all pairs of that distance.
    focal: the focal token, -1 where there is none; focal_pairs: the high pairs that include it. random_focal,
    random_focal_pairs: the same of as many random pairs.
    contrast: block contrast, NaN where it is left out. diagonals: (L, B, H, 3), sums of A over `DIAGONALS`.
    attention_to: (L, B, H, 6), attention that each kind of token receives; carried_to: what it carries from them;
    lines: (L, B, H, 6), lines on each kind.
    signal_equal, signal_together: the sum of r over pairs of equal tokens, and within one sentence; noise_square: the
    sum of its square over all pairs. mean_vector_share: NaN where there is no output.
    """

    def __init__(self, counts: Tensor, numbers: Tensor) -> None:
        self.counts = counts
        self.numbers = numbers

    @classmethod
    def empty(cls, layers: int, windows: int, heads: int, device: torch.device) -> Seen:
        shape = (layers, windows, heads)
        return cls(
            torch.zeros(*shape, sum(COUNTS.values()), dtype=torch.int64, device=device),
            torch.zeros(*shape, sum(NUMBERS.values()), dtype=torch.float64, device=device),
        )

    def __getattr__(self, name: str) -> Tensor:
        """One of the above, as a view."""
        for block, begins, widths in (("counts", _COUNTS, COUNTS), ("numbers", _NUMBERS, NUMBERS)):
            if name in begins:
                values: Tensor = self.__dict__[block]
                begin, width = begins[name], widths[name]
                return values[..., begin] if width == 1 else values[..., begin : begin + width]
        raise AttributeError(name)

    def layer(self, index: int) -> Seen:
        """The same of one layer, (B, H), as views."""
        return Seen(self.counts[index], self.numbers[index])

    def of(self, heads: slice) -> Seen:
        """Of one layer, the same of some heads, as views."""
        return Seen(self.counts[:, heads], self.numbers[:, heads])
