"""Distributions one above the other, a row a head: twelve curves in one frame could not be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from headscope.figures.style import GREY, SMALL, TINY

FULL = 0.92
"""Height of the highest bar of a panel, where 1 is the distance between rows."""
CHANCE = {"color": "black", "linewidth": 0.8, "linestyle": (0, (2, 1.2))}
MEAN = {"color": "black", "linewidth": 1.2}


@dataclass(frozen=True)
class Rows:
    """R distributions over the same bins.

    counts: (R, bins); edges: (bins + 1,); means, chance: (R,), NaN where there is none. expected: (bins,), the
    distribution that chance gives, drawn over every row.
    """

    counts: NDArray[Any]
    edges: NDArray[np.float64]
    labels: Sequence[str]
    colours: Sequence[Any]
    means: NDArray[np.float64]
    mean_format: str
    chance: NDArray[np.float64] | None = None
    expected: NDArray[np.float64] | None = None

    @property
    def shares(self) -> NDArray[np.float64]:
        """(R, bins): each row divided by its sum; 0 where it is empty."""
        whole = self.counts.sum(1, keepdims=True)
        return np.divide(self.counts, whole, out=np.zeros(self.counts.shape), where=whole > 0)


def draw_rows(axes: Axes, rows: Rows, of: str) -> None:
    """Heights are square roots of shares, on one scale for the panel: rare values stay visible beside common ones."""
    shares = rows.shares
    highest = max(shares.max(initial=0), 0 if rows.expected is None else rows.expected.max(initial=0)) or 1.0
    for row, share in enumerate(shares):
        axes.axhline(row, color=GREY, linewidth=0.3, zorder=0)
        if not share.any():
            middle = 0.5 * (rows.edges[0] + rows.edges[-1])
            axes.text(middle, row - 0.1, "no high pairs", ha="center", color=GREY, fontsize=SMALL, style="italic")
            continue
        top = row - height(share, highest)
        axes.stairs(top, rows.edges, baseline=row, fill=True, color=rows.colours[row], label=rows.labels[row])
        if rows.expected is not None:
            axes.stairs(row - height(rows.expected, highest), rows.edges, baseline=None, **{**CHANCE, "linewidth": 0.5})
        if rows.chance is not None:
            axes.vlines(rows.chance[row], row - FULL, row, **CHANCE)
        axes.vlines(rows.means[row], row - 0.7, row, **MEAN)
        axes.annotate(
            rows.mean_format.format(rows.means[row]), (1, row), (3, 0), ("axes fraction", "data"), "offset points",
            fontsize=SMALL,
        )  # fmt: skip
    axes.set_ylim(len(shares) - 1 + 0.12, -1.08)
    axes.set_yticks(range(len(shares)), rows.labels)
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(rows.edges[0], rows.edges[-1])
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.annotate(
        "mean", (1, 1), (3, 1), "axes fraction", "offset points", fontsize=TINY, color=GREY, annotation_clip=False
    )
    axes.annotate(
        f"full height {highest:.2g} of {of}, square-root scale", (1, 1), (-2, 1), "axes fraction", "offset points",
        ha="right", fontsize=TINY, color=GREY, annotation_clip=False,
    )  # fmt: skip


def height(share: NDArray[np.float64], highest: float) -> NDArray[np.float64]:
    """How high a share is drawn, in rows."""
    return FULL * np.sqrt(share / highest)


def legend(figure: Figure, chance: str | None) -> None:
    """Below all panels: what the marks are."""
    marks = [Line2D([], [], label="mean", **MEAN)]
    if chance is not None:
        marks.append(Line2D([], [], label=chance, **CHANCE))
    figure.legend(handles=marks, loc="outside upper right", ncols=len(marks), handlelength=2.2)


def figure_height(rows: int, panels: int = 1) -> float:
    """Inches that so many rows of so many panels, one above the other, need."""
    return 0.45 + panels * (0.5 + rows * (0.24 if rows <= 16 else 0.17))
