"""A view as a picture: attention and similarity of a few heads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from headscope.one_text.telling import Place
from headscope.one_text.view import OneText
from headscope.show.figures.layout import MeasuredOnce
from headscope.show.figures.style import GREY, TINY, ShownFigure, heat_map, styled, title
from headscope.wording import model_label, short

WIDTH, ROW = 5.2, 2.4
"""Inches; a row of two maps a head."""


@styled
def draw(view: OneText, heads: Sequence[Place]) -> Figure:
    """A row a head: A with its lines marked above it, and N."""
    figure = ShownFigure(figsize=(WIDTH, ROW * len(heads) + 0.3), layout=MeasuredOnce())
    axes = figure.subplots(len(heads), 2, squeeze=False)
    for (left, right), (layer, head) in zip(axes, heads, strict=True):
        heat_map(left, view.attention[layer, head], "attention")
        left.set_ylabel("token i")
        title(left, f"Attention, layer {layer}, head {head}", head)
        lines = view.lines(layer, head).position.to_numpy()
        top = left.get_xaxis_transform()
        left.plot(lines, np.full(len(lines), 1.01), "v", transform=top, color=GREY, markersize=2, clip_on=False)
        heat_map(right, view.normalised[layer, head], "N", diverging=True, power=1, top=1)
        title(right, f"Similarity, {int(view.high(layer, head).sum()) // 2:,} high pairs", head)
    for below in axes[-1]:
        below.set_xlabel("token j")
    told = f"{short(model_label(view.model_name), 40)} · {view.size} tokens · threshold {view.threshold:g}"
    figure.supxlabel(told, fontsize=TINY, color=GREY, x=0.995, ha="right", parse_math=False)
    return figure
