"""Fig. 8: how often the two tokens of a high pair are in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headscope.figures import choices, style
from headscope.figures.rows import draw_rows, figure_height, legend
from headscope.figures.shares import share_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.results import Study

TITLE = "High pairs within one sentence"
CAPTION = (
    "A row for each head: the distribution over windows of the share of high pairs whose two tokens are in the same "
    "sentence. The dashed line is chance: the share among all pairs of the same windows. A head whose mean, the thick "
    "mark, lies to the right of it keeps to sentences; one whose mean lies on it pays no heed to them. Windows without "
    "high pairs are left out."
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
        rows = share_rows(
            study, layer, shown, "same_sentence_histogram", "same_sentence_probability", "same_sentence_chance"
        )
        draw_rows(axes, rows, "windows")
        axes.set_title(f"Layer {layer}", loc="left", pad=11)
        axes.set_xlabel("share of high pairs within one sentence")
    legend(figure, "chance")
    return figure
