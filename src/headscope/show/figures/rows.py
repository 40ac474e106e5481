"""Distributions one above the other, a row a head: twelve curves in one frame could not be told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch
from numpy.typing import NDArray

from headscope.insight import choices
from headscope.insight.sureness import head_intervals
from headscope.measure.catalogue import columns
from headscope.show.figures import style

if TYPE_CHECKING:
    from headscope.folder.study_folder import StudyFolder

FULL = 0.92
"""Height of the highest bar of a panel, where 1 is the distance between rows."""
MEAN: dict[str, Any] = {"color": "black", "linewidth": 1.2}
INTERVAL: dict[str, Any] = {"color": "black", "linewidth": 2.2}
GIVEN_DISTANCE: dict[str, Any] = {"color": "black", "linewidth": 0.9, "linestyle": ":"}


@dataclass(frozen=True)
class Rows:
    """R distributions over the same bins.

    counts: (R, bins); edges: (bins + 1,). means, chance, given_distance: (R,), NaN where there is none; given_distance:
    what chance gives for pairs as far apart. interval: of the means, from and to, (2, R). expected: (bins,), the
    distribution that chance gives, drawn over every row.
    """

    counts: NDArray[Any]
    edges: NDArray[Any]
    labels: Sequence[str]
    colours: Sequence[Any]
    means: NDArray[Any]
    mean_format: str
    chance: NDArray[Any] | None = None
    given_distance: NDArray[Any] | None = None
    interval: NDArray[Any] | None = None
    expected: NDArray[Any] | None = None

    @property
    def shares(self) -> NDArray[Any]:
        """(R, bins): each row divided by its sum; 0 where it is empty."""
        whole = self.counts.sum(1, keepdims=True)
        shares: NDArray[Any] = np.divide(self.counts, whole, out=np.zeros(self.counts.shape), where=whole > 0)
        return shares


def share_rows(
    study: StudyFolder,
    layer: int,
    heads: Sequence[int],
    histogram: str,
    mean: str,
    chance: str | None = None,
    mean_format: str = "{:.2f}",
) -> Rows:
    """A row for each head: its bins on 0..1 in the array `histogram`, the columns `mean` and `chance` of the table, and
    what else is known of the mean."""
    counts = study.arrays[histogram][choices.place_of(study, layer)][list(heads)]
    table = study.heads[study.heads.layer == layer].set_index("head").loc[list(heads)]
    known = columns(study.manifest.gives)[mean]
    ends = head_intervals(study, mean)
    of_layer = (study.heads["layer"] == layer).to_numpy()
    return Rows(
        counts=counts,
        edges=np.linspace(0, 1, counts.shape[-1] + 1),
        labels=[f"head {head}" for head in heads],
        colours=[style.head_colour(head) for head in heads],
        means=table[mean].to_numpy(),
        mean_format=mean_format,
        chance=None if chance is None or chance not in table else table[chance].to_numpy(),
        given_distance=table[known.given_distance].to_numpy() if known.given_distance in table else None,
        interval=None if ends is None else np.array([end[of_layer][list(heads)] for end in ends]),
    )


def draw_rows(axes: Axes, rows: Rows, title: str) -> None:
    """Heights are square roots of shares, on one scale for the panel: rare values stay visible beside common ones."""
    shares = rows.shares
    expected = np.zeros(1) if rows.expected is None else rows.expected
    highest = float(max(shares.max(initial=0), expected.max(initial=0))) or 1.0
    every, full = np.arange(len(shares)), shares.any(1)
    axes.hlines(every, 0, 1, transform=axes.get_yaxis_transform(), color=style.GREY, linewidth=0.3, zorder=0)
    for row in every[~full]:
        axes.annotate(
            "no high pairs", (0.5, row), (0, 2), ("axes fraction", "data"), "offset points",
            ha="center", color=style.GREY, fontsize=style.SMALL, style="italic",
        )  # fmt: skip
    for row in every[full]:
        _draw_row(axes, rows, row, shares[row], highest)
    _draw_marks(axes, rows, every[full])
    axes.set_xlim(rows.edges[0], rows.edges[-1])
    axes.set_ylim(len(shares) - 1 + 0.12, -1)
    axes.set_yticks(np.arange(len(shares)) - 0.25, rows.labels)
    axes.tick_params(axis="y", length=0)
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.set_title(title, loc="left")
    note: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    note |= {"color": style.GREY, "fontsize": style.TINY, "annotation_clip": False}
    percent = f"{highest:.0%}" if highest >= 0.1 else f"{highest:.1%}"
    axes.annotate(f"full height {percent}, √ scale", (1, 1), (-4, 4), ha="right", **note)
    axes.annotate("mean", (1, 1), (3, 4), **note)


def _draw_row(axes: Axes, rows: Rows, row: int, share: NDArray[Any], highest: float) -> None:
    colour = rows.colours[row]
    top = row - height(share, highest)
    # Axes.stairs would look for the limits of the panel along every step; they are set anyway.
    axes.add_artist(
        StepPatch(
            top, rows.edges, baseline=row, fill=True, facecolor=style.paler(colour), edgecolor=colour, linewidth=0.5,
            label=rows.labels[row],
        )
    )  # fmt: skip
    if rows.expected is not None:
        curve = np.append(row - height(rows.expected, highest), row)
        axes.plot((rows.edges[1:] + rows.edges[:-1]) / 2, curve[:-1], **{**style.CHANCE, "linewidth": 0.6})
    axes.annotate(
        rows.mean_format.format(rows.means[row]), (1, row), (3, 1), ("axes fraction", "data"), "offset points",
        fontsize=style.SMALL,
    )  # fmt: skip


def _draw_marks(axes: Axes, rows: Rows, places: NDArray[Any]) -> None:
    """Mean, interval and what chance gives, of all rows that have some."""
    for values, tall, look in (
        (rows.chance, FULL, style.CHANCE),
        (rows.given_distance, FULL, GIVEN_DISTANCE),
        (rows.means, 0.7, MEAN),
    ):
        if values is not None:
            axes.vlines(values[places], places - tall, places, **look)
    if rows.interval is not None:
        axes.hlines(places - 0.35, *rows.interval[:, places], **INTERVAL)


def height(share: NDArray[Any], highest: float) -> NDArray[Any]:
    """How high a share is drawn, in rows."""
    drawn: NDArray[Any] = FULL * np.sqrt(share / highest)
    return drawn


def layer_panels(
    study: StudyFolder, layers: Sequence[int], heads: Sequence[int], rows_of: Callable[[int], Rows], label: str
) -> Figure:
    """A panel for each layer, up to three beside each other, a row for each head."""
    columns = min(len(layers), 3)
    lines = -(-len(layers) // columns)
    figure = style.new_figure(
        study, figure_height(len(heads), lines), style.WIDTH if columns > 1 else 0.7 * style.WIDTH
    )
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(layers) :]:
        axes.set_axis_off()
    for axes, layer in zip(grid.flat, layers, strict=False):
        draw_rows(axes, rows_of(layer), f"Layer {layer}")
        axes.set_xlabel(label)
    return figure


def legend(figure: Figure, chance: bool, given_distance: bool = False) -> None:
    """At the foot: what the marks are."""
    marks = [Line2D([], [], label="mean, 95 % interval", **MEAN)]
    if chance:
        marks.append(Line2D([], [], label="chance", **style.CHANCE))
    if given_distance:
        marks.append(Line2D([], [], label="given distance", **GIVEN_DISTANCE))
    drawn = figure.legend(
        handles=marks,
        loc="lower left",
        bbox_to_anchor=(0, 0),
        ncols=len(marks),
        handlelength=2,
        borderaxespad=0.1,
        columnspacing=1.2,
        handletextpad=0.5,
    )
    drawn.set_in_layout(False)


def figure_height(rows: int, panels: int = 1) -> float:
    """Inches that so many rows of so many panels, one above the other, need."""
    return style.FOOT + 0.05 + panels * (0.5 + rows * (0.24 if rows <= 16 else 0.17))
