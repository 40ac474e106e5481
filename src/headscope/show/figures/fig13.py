"""Fig. 13: how far apart the tokens of high pairs are, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headscope.corpus.traits import ORDER
from headscope.insight import choices
from headscope.insight.chance import distance_chance
from headscope.show.figures import style
from headscope.show.figures.fig07 import edges, expected

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Distance of high pairs by layer"
NEEDS = ORDER
CAPTION = (
    "A curve for each layer: the distribution of the distance j - i over the high pairs of all its heads. One that is "
    "high at the left and falls off fast belongs to a layer that relates neighbours. The dashed line is what pairs "
    "picked at random would give. Note the logarithmic axis."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None) -> choices.Shown:
    return choices.Shown(tuple(choices.layers_of(study, layers, choices.EARLY_MIDDLE_LAST)))


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None) -> Figure:
    """Layers: by default an early, a middle and the last one."""
    chosen = shows(study, layers).layers
    histograms = study.arrays["distance_histogram"]
    bins = edges(histograms.shape[-1])
    figure = style.new_figure(study, 2.6 + style.FOOT, style.WIDTH * 0.7)
    axes = figure.subplots()
    for layer, colour in zip(chosen, style.layer_colours(chosen), strict=True):
        histogram = histograms[choices.place_of(study, layer)].sum(0)
        if not histogram.any():
            axes.plot([], [], color=colour, label=f"layer {layer}: no high pairs")
            continue
        mean = study.layers.set_index("layer").mean_distance[layer]
        label = f"layer {layer}: mean {mean:.1f}"
        axes.stairs(histogram[1:] / histogram.sum(), bins, baseline=None, color=colour, linewidth=1.3, label=label)
    chance, mean_chance = expected(study), distance_chance(study)
    if chance is not None and mean_chance is not None:
        axes.plot(bins[:-1] + 0.5, chance, label=f"chance: mean {mean_chance:.1f}", **style.CHANCE)
    if chance is not None or any(histograms[choices.place_of(study, layer)].any() for layer in chosen):
        style.logarithmic(axes)
    axes.set_xlim(bins[0], bins[-1])
    axes.set_xlabel("distance j − i in tokens")
    axes.set_ylabel("share of high pairs")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="best")
    return figure
