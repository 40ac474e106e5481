"""Fig. 3: summed attention of a layer, without its lines, and without its diagonals too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.traits import ORDER
from headscope.insight import choices
from headscope.show.figures import style
from headscope.show.figures.fig02 import mean_attention

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Summed attention without its lines and diagonals"
NEEDS = ORDER
CAPTION = (
    "Attention of all heads of a layer, averaged over windows and summed over heads: row i attends to column j. Left: "
    "all of it. Middle: the lines of each window and head set to 0 before summing; a line is a column that draws more "
    "than a share, the line threshold, of what the most attended column draws. Right: the diagonal and its two "
    "neighbours set to 0 as well. What is left on the right is attention that goes neither to the few most attended "
    "tokens nor to neighbours. Each map has a scale of its own: compare the numbers beside the bars, not the shades."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None) -> choices.Shown:
    return choices.Shown(tuple(choices.layers_of(study, layers, choices.LAST)))


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None) -> Figure:
    """Layers: by default the last one."""
    chosen = shows(study, layers).layers
    figure = style.new_figure(study, 2.2 * len(chosen) + style.FOOT, maps=True)
    grid = figure.subplots(len(chosen), 3, squeeze=False)
    for row, layer in zip(grid, chosen, strict=True):
        whole = mean_attention(study, layer).sum(0)
        without = mean_attention(study, layer, "attention_sum_without_lines").sum(0)
        matrices = (whole, without, without_diagonals(without))
        names = (f"Layer {layer}, sum of heads", "lines set to 0", "lines and diagonals set to 0")
        for axes, matrix, name in zip(row, matrices, names, strict=True):
            style.heat_map(axes, matrix, "mean attention")
            style.title(axes, name)
            axes.set_xlabel("key j")
        row[0].set_ylabel("query i")
    return figure


def without_diagonals(matrix: NDArray[Any]) -> NDArray[Any]:
    """(S, S), 0 where |i - j| <= 1."""
    place = np.arange(len(matrix))
    return np.where(np.abs(place[:, None] - place) <= 1, 0, matrix)
