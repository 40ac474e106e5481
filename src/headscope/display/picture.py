"""A view as a picture: attention and similarity of a few heads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from headscope.display.wording import short
from headscope.figures.style import GREY, TINY, heat_map, settings, title
from headscope.view import View

WIDTH, ROW = 5.2, 2.4
"""Inches; a row of two maps a head."""


def draw(view: View, layer: int, heads: Sequence[int]) -> Figure:
    """A row a head: A with its lines marked above it, and N."""
    with settings():
        figure = Figure(figsize=(WIDTH, ROW * len(heads) + 0.3), layout="constrained")
        axes = figure.subplots(len(heads), 2, squeeze=False)
        for (left, right), head in zip(axes, heads, strict=True):
            heat_map(left, view.attention[layer, head], "attention")
            title(left, f"Attention, layer {layer}, head {head}", head)
            lines = view.lines(layer, head).position.to_numpy()
            left.plot(lines, np.full(len(lines), 1.01), "v", transform=left.get_xaxis_transform(), color=GREY,
                      markersize=2, clip_on=False)  # fmt: skip
            heat_map(right, view.normalised[layer, head], "N", diverging=True, power=1, top=1)
            left.set_ylabel("token i")
            title(right, f"Similarity, {int(view.high(layer, head).sum()) // 2:,} high pairs", head)
        for below in axes[-1]:
            below.set_xlabel("token j")
        figure.supxlabel(
            f"{short(Path(view.model_name).name, 40)} · {view.size} tokens · threshold {view.threshold:g}",
            fontsize=TINY, color=GREY, x=0.995, ha="right", parse_math=False,
        )  # fmt: skip
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    return figure
