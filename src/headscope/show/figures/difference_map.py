"""Two studies head by head: a map of the heads for each of the most telling columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from headscope.insight.head_by_head import called
from headscope.measure.declaration import Unit
from headscope.show.figures.layout import MeasuredOnce
from headscope.show.figures.style import GREY, PALE, SHARP, SMALL, WIDTH, ShownFigure, colour_bar, scale, styled, title
from headscope.wording import capital, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.insight.head_by_head import HeadByHead

ACROSS = 3
"""Panels in a row."""
CELL, LOWEST, HIGHEST = 0.16, 0.9, 4.0
"""Inches: of a layer, and of a panel."""
ROOM, LEGEND = 0.45, 0.2
"""Inches above and below a panel, and at the foot of the figure."""
UNITS: dict[Unit, str] = {"share": "percentage points", "tokens": "tokens"}
"""What a colour bar says."""


@styled
def draw(found: HeadByHead, columns: Sequence[str] | None = None) -> Figure:
    """columns: by default those that tell most."""
    chosen = found.shown if columns is None else list(columns)
    across = min(len(chosen), ACROSS)
    down = -(-len(chosen) // across)
    layers = len(found.a.manifest.layers)
    legend = LEGEND * (1 if across > 1 else 2)
    height = down * (min(max(layers * CELL, LOWEST), HIGHEST) + ROOM) + legend
    foot = legend / height
    layout = MeasuredOnce(w_pad=0.06, h_pad=0.05, rect=(0, foot, 1, 1 - foot))
    figure = ShownFigure(figsize=(WIDTH * (0.1 + 0.9 * across / ACROSS), height), layout=layout)
    panels = figure.subplots(down, across, squeeze=False)
    for axes, name in zip(panels.flat, chosen, strict=False):
        _panel(axes, found, name)
    for axes in panels.flat[len(chosen) :]:
        axes.set_axis_off()
    first, second = (short(label, 40) for label in found.labels)
    apart = "   " if across > 1 else "\n"
    told = apart.join([f"red: more in {second}", f"blue: more in {first}", "dot: differs (false discovery rate 5 %)"])
    figure.text(0.5, 0.06 / height, told, ha="center", fontsize=SMALL, parse_math=False, in_layout=False)
    return figure


def _panel(axes: Axes, found: HeadByHead, name: str) -> None:
    """A cell a head: layers down, heads across."""
    column, layers = found.columns[name], found.a.manifest.layers
    rows = found.table[found.table["column"] == name]
    values = rows["difference"].to_numpy(np.float64).reshape(len(layers), -1)
    values = values * (100 if column.unit == "share" else 1)
    top = float(np.nanmax(np.abs(values), initial=0)) or 1.0
    norm, colours = scale(1, -top, top)
    image = axes.imshow(values, cmap=colours, norm=norm, aspect="auto", interpolation=SHARP)
    axes.set_facecolor(PALE)
    axes.patch.set(hatch="////", edgecolor=GREY, linewidth=0)  # shows where a study has no such number
    down, across = np.nonzero(rows["differs"].to_numpy(bool).reshape(values.shape))
    # White about black: a dot is seen on every colour.
    axes.plot(across, down, "o", color="black", markersize=2.6, markeredgecolor="white", markeredgewidth=0.5)
    axes.set_xlim(-0.5, values.shape[1] - 0.5)
    axes.set_ylim(len(layers) - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    step = -(-len(layers) // 8)
    axes.set_yticks(range(0, len(layers), step), [str(layer) for layer in layers[::step]])
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    title(axes, capital(called(column)))
    colour_bar(image, axes.inset_axes((1.03, 0, 0.04, 1)), UNITS.get(column.unit, ""))
