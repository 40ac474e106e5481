"""Fig. 7: how far apart the two tokens of a high pair are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.figures import choices, style
from headscope.figures.rows import Rows, draw_rows, figure_height, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.results import Study

TITLE = "Distance between the tokens of high pairs"
CAPTION = (
    "A row for each head: the distribution of j - i over all its high pairs. Close to the left edge means that the head "
    "relates neighbours; a long tail, that it relates tokens across the whole window. The dashed curve is what pairs "
    "picked at random would give: near tokens are more numerous than far ones. The thick mark and the number are the "
    "mean distance in tokens."
)


@style.styled
def draw(study: Study, *, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None) -> Figure:
    """Layers: by default the last one. Heads: by default all."""
    chosen = choices.layers_of(study, layers, choices.LAST)
    shown = choices.heads_of(study, heads, choices.all_heads(study))
    columns = min(len(chosen), 3)
    lines = -(-len(chosen) // columns)
    width = style.WIDTH * (0.7, 1, 1)[columns - 1]
    figure = style.new_figure(study, figure_height(len(shown), lines), width)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(chosen) :]:
        axes.set_axis_off()
    for axes, layer in zip(grid.flat, chosen, strict=False):
        histogram = study.arrays["distance_histogram"][choices.place_of(study, layer)][shown]
        table = study.heads[study.heads.layer == layer].set_index("head").loc[shown]
        rows = Rows(
            counts=histogram[:, 1:],
            edges=edges(histogram),
            labels=[f"head {head}" for head in shown],
            colours=[style.head_colour(head) for head in shown],
            means=table["mean_distance"].to_numpy(),
            mean_format="{:.1f}",
            expected=expected(study),
        )
        draw_rows(axes, rows, "pairs")
        axes.set_title(f"Layer {layer}", loc="left", pad=11)
        axes.set_xlabel("distance j − i in tokens")
    legend(figure, None if expected(study) is None else "chance")
    return figure


def edges(histogram: NDArray[Any]) -> NDArray[np.float64]:
    """(..., S) -> (S,): a bin for each distance from 1 to S - 1, the distance in its middle."""
    return np.arange(histogram.shape[-1]) + 0.5


def expected(study: Study) -> NDArray[np.float64] | None:
    """(S - 1,): the distribution over distances 1, 2, ... of all pairs of a full window.

    None where windows are padded or tokens left out: then the study does not say how many pairs there were.
    """
    options = study.manifest["options"]
    if options["short"] == "pad" or options["special"] == "drop":
        return None
    counts = np.arange(options["length"] - 1, 0, -1, dtype=np.float64)
    return counts / counts.sum()
