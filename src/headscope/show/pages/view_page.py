"""A view on one page: every head, no network. What the page draws is inside it, compressed.

The matrices of a head travel as bytes. N: the upper triangle; up to 63 stand for -1 up to the threshold, from 128 on
for what is above it, so that a byte tells exactly whether a pair is high; of high pairs a second byte follows at the
end, so that tables show what other displays show. A: square roots, so that small weights are not lost. What only
colours show is kept coarse: it halves the page.
"""

from __future__ import annotations

import base64
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.one_text.describing import (
    about_head,
    about_lines,
    about_view,
    nothing_singled_out,
    segments,
    stands_out,
)
from headscope.show.pages.templates import environment
from headscope.wording import isolated, short

if TYPE_CHECKING:
    from headscope.show.objects import View

COARSE = 63
"""The largest byte of N up to the threshold, and of A."""
HIGH = 128
"""The first byte that stands for a high pair."""
FINEST = 2**15 - 1
"""Steps from the threshold to 1, in the two bytes of a high pair."""


def page(view: View, layer: int, head: int) -> str:
    """The whole page, opened at one head."""
    return environment().get_template("page.html").render(
        about=about_view(view),
        notice=nothing_singled_out(view),
        view=view,
        segments=segments(view),
        data=_data(view, layer, head),
    )  # fmt: skip


def similarity_bytes(normalised: NDArray[Any], threshold: float) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """N (S, S) -> the bytes of its upper triangle, row by row, and the second bytes of its high pairs."""
    values = normalised[np.triu_indices(len(normalised), 1)]
    high = values > threshold
    fine = np.rint(FINEST * np.clip((values[high] - threshold) / (1 - threshold), 0, 1)).astype(np.int64)
    coarse = np.rint(COARSE * (np.clip(values, -1, threshold) + 1) / (threshold + 1)).astype(np.uint8)
    coarse[high] = HIGH + (fine >> 8)
    return coarse, (fine & 255).astype(np.uint8)


def attention_bytes(attention: NDArray[Any]) -> NDArray[np.uint8]:
    """A (S, S) -> bytes, row by row."""
    weights: NDArray[np.uint8] = np.rint(COARSE * np.sqrt(np.clip(attention, 0, 1))).astype(np.uint8)
    return weights.reshape(-1)


def _data(view: View, layer: int, head: int) -> dict[str, Any]:
    """What the script of the page reads."""
    return {
        "layers": view.layers,
        "heads": view.heads,
        "layer": layer,
        "head": head,
        "threshold": view.threshold,
        "labels": [short(label) for label in view.labels],
        "ids": view.ids.tolist(),
        "sentences": view.sentence.tolist(),
        "measured": [[_head(view, layer, head) for head in range(view.heads)] for layer in view.layers],
    }


def _head(view: View, layer: int, head: int) -> dict[str, Any]:
    focal = view.focal(layer, head)
    similarity, more_of_high = similarity_bytes(view.normalised[layer, head], view.threshold)
    matrices = np.concatenate([similarity, attention_bytes(view.attention[layer, head]), more_of_high])
    return {
        "pairs": len(more_of_high),
        "standsOut": isolated(stands_out(view, layer, head) or ""),
        "about": isolated(about_head(view, layer, head)),
        "aboutLines": isolated(about_lines(view, layer, head)),
        "inStudy": isolated(view.in_study(layer, head) or ""),
        "lines": view.lines(layer, head).position.tolist(),
        "focal": focal.positions if focal else [],
        "matrices": base64.b64encode(zlib.compress(matrices.tobytes(), 6)).decode("ascii"),
    }
