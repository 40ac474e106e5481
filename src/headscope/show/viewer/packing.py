"""What the viewer's script is given: one text in every head, small enough to lie inside a page.

Z less its mean row travels as 16-bit whole numbers, each row with its own scale, so that the browser has C and N for
every way to compare outputs and every threshold. Where that rounding would carry a pair over the threshold of the
view, N of the library stands beside it: at that threshold the browser's high pairs are the library's, one by one. A
travels as bytes, column by column: square roots of small weights, coarse, since only colours show them, and 15 bits of
the others.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.windows import KINDS
from headscope.measure.definitions import attention_lines, compared, context_similarity, normalise, pairs_among
from headscope.one_text.alike import most_alike
from headscope.one_text.describing import about_view, nothing_singled_out, segments, stands_out
from headscope.one_text.telling import Place
from headscope.one_text.view import OneText
from headscope.wording import isolated, model_label, short

Array = NDArray[Any]

FINE = 2**15 - 1
"""Steps from 0 to the largest number of a row of Z, and from 0 to 1 of a weight."""
LONG = 256
"""Tokens beyond which more weights are kept coarse, and coarser."""
STRONG = 128
"""The first byte that stands for a weight which is kept in 15 bits."""
SLACK = 3e-6
"""So near to the threshold, the last digits decide, and those of a browser may differ."""
ALIKE = 6
"""Heads most alike that are named of each head."""


def pack(view: OneText) -> dict[str, Any]:
    """All that the page shows of one text; what a study says of it comes from `of_study`."""
    alike = most_alike(view, ALIKE)
    return {
        "kind": "text",
        "model": model_label(view.model_name),
        "about": about_view(view),
        "origin": view.origin,
        "continues": view.continues,
        "notice": nothing_singled_out(view),
        "layers": view.layers,
        "heads": view.heads,
        "size": view.size,
        "width": int(np.asarray(view.output).shape[-1]),
        "threshold": view.threshold,
        "lineThreshold": view.line_threshold,
        "similarity": view.similarity_option,
        "small": small(view.size),
        "levels": levels(view.size),
        "part": view.part.astype(int).tolist(),
        "special": view.special.astype(int).tolist(),
        "labels": [short(label) for label in view.labels],
        "ids": view.ids.tolist(),
        "sentences": view.sentence.tolist(),
        "kinds": [KINDS[kind] for kind in view.kind.tolist()],
        "segments": [[piece.characters, piece.token] for piece in segments(view)],
        "telling": view.telling_heads(),
        "own": _own_numbers(view),
        "measured": [
            [_head(view, layer, head, alike[layer, head]) for head in range(view.heads)] for layer in view.layers
        ],
    }


def packed_output(output: Array) -> tuple[NDArray[np.int16], NDArray[np.float32], NDArray[np.float32]]:
    """Z (S, d) -> whole numbers (S, d), the scale of each row (S,) and the mean row (d,): Z is about the mean and the
    one times the other. The mean apart, since it may be far larger than what tells rows from each other."""
    mean = output.mean(0, dtype=np.float64).astype(np.float32)
    rest = output.astype(np.float64) - mean
    scale = (np.abs(rest).max(-1) / FINE).astype(np.float32)
    whole = np.rint(np.divide(rest, scale[:, None], out=np.zeros(rest.shape), where=scale[:, None] > 0))
    return np.clip(whole, -FINE, FINE).astype(np.int16), scale, mean


def unpacked_output(whole: NDArray[np.int16], scale: NDArray[np.float32], mean: NDArray[np.float32]) -> Array:
    """What the browser has of Z."""
    rows: Array = whole * scale[:, None].astype(np.float64) + mean
    return rows


def packed_attention(attention: Array) -> NDArray[np.uint8]:
    """A (S, S) -> the bytes of its columns, one after the other, then the second bytes of strong weights."""
    weights = np.clip(attention.T.reshape(-1), 0, 1)
    bound = small(len(attention))
    strong = weights >= bound
    fine = np.rint(FINE * weights[strong]).astype(np.int64)
    first = np.rint(levels(len(attention)) * np.sqrt(np.minimum(weights, bound) / bound)).astype(np.uint8)
    first[strong] = STRONG + (fine >> 8)
    return np.concatenate([first, (fine & 255).astype(np.uint8)])


def small(size: int) -> float:
    """Weights below it are kept coarse, in a text of that many tokens."""
    return 1 / 32 if size > LONG else 1 / 64


def levels(size: int) -> int:
    """In how many steps."""
    return 6 if size > LONG else 16


def exact_values(view: OneText, layer: int, head: int) -> list[tuple[int, float]]:
    """Pairs that rounded outputs put on the wrong side of the threshold, or too near to it: i * S + j, and N."""
    rounded = unpacked_output(*packed_output(view.output[layer, head]))
    similarity = context_similarity(compared(rounded, view.part, view.similarity_option))
    there = np.triu(normalise(similarity, pairs_among(view.part)), 1)
    here = np.triu(view.normalised[layer, head], 1)
    limit = np.float32(view.threshold)
    wrong = ((there > limit) != (here > limit)) | ((np.abs(there - limit) < SLACK) & (there != 0))
    places = np.flatnonzero(wrong)
    return list(zip(places.tolist(), here.reshape(-1)[places].tolist(), strict=True))


def deflated(array: Array) -> str:
    """By the quickest way: others make it smaller by 3 %, in twice the time."""
    return base64.b64encode(zlib.compress(array.tobytes(), 1)).decode("ascii")


def _head(view: OneText, layer: int, head: int, alike: list[tuple[Place, float]]) -> dict[str, Any]:
    whole, scale, mean = packed_output(view.output[layer, head])
    floats = np.concatenate([mean, scale]).astype("<f4").view(np.uint8)
    little = np.concatenate([floats, whole.astype("<i2").reshape(-1).view(np.uint8)])
    return {
        "standsOut": isolated(stands_out(view, layer, head) or ""),
        "crowded": bool(view.singled_out[layer, head].crowded),
        "lines": np.flatnonzero(attention_lines(view.attention[layer, head], view.line_threshold)).tolist(),
        "exact": exact_values(view, layer, head),
        "alike": [[*place, round(value, 3)] for place, value in alike],
        "z": deflated(little),
        "a": deflated(packed_attention(view.attention[layer, head])),
    }


def _own_numbers(view: OneText) -> dict[str, list[list[float]]]:
    """Columns of a study that follow from A alone, of this text: a row a layer, a number a head."""
    attention = np.asarray(view.attention)
    size = view.size
    found: dict[str, Array] = {
        name: np.diagonal(attention, offset, -2, -1).mean(-1, dtype=np.float64)
        for name, offset in (("attention_self", 0), ("attention_previous", -1), ("attention_next", 1))
        if abs(offset) < size
    }
    received = attention.sum(-2, dtype=np.float64)
    for number, kind in enumerate(KINDS):
        found[f"attention_to_{kind}"] = received[..., view.kind == number].sum(-1) / received.sum(-1)
    return {name: np.round(values, 6).tolist() for name, values in found.items()}
