"""Models side by side: each quantity from the first layer to the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from headscope.insight.roles import roles_by_layer
from headscope.insight.sureness import layer_intervals
from headscope.show.figures.layout import MeasuredOnce
from headscope.show.figures.role_marks import marked
from headscope.show.figures.style import CHANCE, WIDTH, ShownFigure, head_colour, styled, title

if TYPE_CHECKING:
    from headscope.insight.comparing import Compared

HEIGHT = 6.4
MARKERS = "os^Dv<>P"


@styled
def draw(comparison: Compared) -> Figure:
    """A panel for each quantity, a line a model, with 95 % intervals where there are any; dashed: what chance gives."""
    from headscope.insight.comparing import QUANTITIES

    layout = MeasuredOnce(w_pad=0.05, h_pad=0.05, rect=(0, 0.07, 1, 0.93))
    figure = ShownFigure(figsize=(WIDTH, HEIGHT), layout=layout)
    panels = figure.subplots(-(-len(QUANTITIES) // 3), 3, sharex=True)
    for axes in panels.flat[len(QUANTITIES) :]:
        axes.set_axis_off()
    for axes, (column, quantity) in zip(panels.flat, QUANTITIES.items(), strict=False):
        for number, (name, table) in enumerate(comparison.table.groupby("model", sort=False)):
            axes.plot(
                table["depth"],
                table[column],
                color=head_colour(number),
                marker=MARKERS[number % len(MARKERS)],
                markersize=3,
                linewidth=1.2,
                label=name,
            )
            ends = layer_intervals(comparison.studies[str(name)], quantity.column) if quantity.column else None
            if ends is not None:
                axes.vlines(table["depth"], *ends, color=head_colour(number), linewidth=1)
        if isinstance(quantity.chance, str):
            one = comparison.table[quantity.chance].nunique() == 1
            for number, (_, table) in enumerate(comparison.table.groupby("model", sort=False)):
                colour = "black" if one else head_colour(number)
                axes.plot(table["depth"], table[quantity.chance], **CHANCE | {"color": colour})
        elif quantity.chance is not None:
            axes.axhline(quantity.chance, **CHANCE)
        title(axes, quantity.label)
        axes.set_xlim(-0.03, 1.03)
        if axes.get_ylim()[0] > 0 and quantity.chance != 1:
            axes.set_ylim(bottom=0)
    for axes in panels.flat[len(QUANTITIES) - 3 : len(QUANTITIES)]:
        axes.tick_params(labelbottom=True)
        axes.set_xlabel("relative depth: 0 first layer, 1 last")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    legend = figure.legend(handles, labels, loc="lower center", ncols=min(len(labels), 4), frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)
    return figure


ROLE_HEIGHT = 1.1
"""Inches of a model's panel."""


@styled
def draw_roles(comparison: Compared) -> Figure:
    """A panel a model, a bar a layer: the share of its heads that has each role. Models without nulls are left out."""
    roles = {name: study.roles for name, study in comparison.studies.items()}
    shown = {name: table for name, table in roles.items() if table is not None}
    height = ROLE_HEIGHT * len(shown) + 0.75
    layout = MeasuredOnce(w_pad=0.05, h_pad=0.05, rect=(0, 0.45 / height, 1, 1 - 0.45 / height))
    figure = ShownFigure(figsize=(WIDTH, height), layout=layout)
    marks = marked(comparison.roles[comparison.roles["heads"] > 0]["role"])
    for axes, (name, table) in zip(figure.subplots(len(shown), 1, squeeze=False)[:, 0], shown.items(), strict=True):
        heads = comparison.studies[name].manifest.model.heads
        counts = roles_by_layer(table).reindex(columns=list(marks), fill_value=0)
        bottom = np.zeros(len(counts))
        for role, (colour, _) in marks.items():
            share = counts[role].to_numpy() / heads
            axes.bar(counts.index, share, 0.85, bottom=bottom, color=colour, label=role)
            bottom += share
        axes.set_ylim(0, 1)
        axes.set_xlim(counts.index.min() - 0.6, counts.index.max() + 0.6)
        axes.xaxis.get_major_locator().set_params(integer=True)
        title(axes, name)
        axes.set_ylabel("share of heads")
    axes.set_xlabel("layer")
    handles = [Patch(facecolor=colour, label=role) for role, (colour, _) in marks.items()]
    figure.legend(handles=handles, loc="lower center", ncols=min(len(marks), 5) or 1, frameon=False)
    return figure
