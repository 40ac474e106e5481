"""Fig. 11: a: share of the high pairs that include the focal token; b: how many focal tokens a layer has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator

from headscope.insight import choices
from headscope.insight.sureness import layer_intervals
from headscope.show.figures import style
from headscope.show.figures.rows import Rows, draw_rows, figure_height, legend, share_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Focal tokens"
CAPTION = (
    "The focal token of a head in a window is the token that occurs in the most of its high pairs. a: a row for each "
    "head, the distribution over windows of the share of high pairs that include it; 1 means that every pair has this "
    "token. b: a row for each layer, the distribution over windows of the number of different focal tokens that its "
    "heads have; far to the right means that every head has one of its own. The dashed line is what as many "
    "random pairs give. The thick mark, with its 95 % interval over texts, and the number are the mean over windows. "
    "Heights go by the square root of the share of windows, on one scale for all rows of a panel."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> choices.Shown:
    return choices.rows_shown(study, layers, heads, choices.LAST)


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> Figure:
    """a: by default all heads of the last layer. b: by default all layers."""
    of_heads = shows(study, layers, heads).layers
    of_layers = study.manifest.layers if layers is None else of_heads
    shown = choices.heads_of(study, heads, choices.all_heads(study))
    lines = -(-(len(of_heads) + 1) // 2)
    figure = style.new_figure(study, figure_height(max(len(shown), len(of_layers)), lines))
    *left, right = figure.subplots(lines, 2, squeeze=False).ravel()[: len(of_heads) + 1]
    for axes, layer in zip(left, of_heads, strict=True):
        focal = share_rows(study, layer, shown, "focal_share_histogram", "focal_share", "focal_chance")
        draw_rows(axes, focal, f"a   Layer {layer}")
        axes.set_xlabel("share of high pairs with the focal token")
    draw_rows(right, unique_rows(study, of_layers), "b   All heads of a layer")
    right.set_xlabel("number of different focal tokens")
    right.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    for axes in figure.axes[len(of_heads) + 1 :]:
        axes.set_axis_off()
    legend(figure, chance="focal_chance" in study.heads)
    return figure


def unique_rows(study: StudyFolder, layers: Sequence[int]) -> Rows:
    """A row for each layer: over windows, how many different focal tokens its heads have."""
    places = [choices.place_of(study, layer) for layer in layers]
    counts = study.arrays["unique_focal_histogram"][places]
    chance = study.layers.get("unique_focal_chance")
    ends = layer_intervals(study, "unique_focal_tokens")
    return Rows(
        counts=counts,
        edges=np.arange(counts.shape[-1] + 1) - 0.5,
        labels=[f"layer {layer}" for layer in layers],
        colours=style.layer_colours(layers),
        means=study.layers.set_index("layer").loc[list(layers), "unique_focal_tokens"].to_numpy(),
        mean_format="{:.1f}",
        chance=None if chance is None else chance.to_numpy()[places],
        interval=None if ends is None else np.array(ends)[:, places],
    )
