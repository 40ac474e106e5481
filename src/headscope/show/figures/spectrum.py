"""The value spectrum: how often N has which value. A gap about the threshold justifies it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.insight import choices
from headscope.show.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Values of the normalised similarity"
CAPTION = (
    "How often the normalised similarity N of two tokens has which value, over all pairs of tokens, windows and heads "
    "of a layer. The dashed line is the threshold: pairs to the right of it are high pairs, and the legend says how "
    "many of all pairs they are. A valley between about 0.1 and 0.6, shaded, would mean that the choice of the "
    "threshold matters little. Values below -1 are counted in the first bin. Note the logarithmic axis."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None) -> choices.Shown:
    return choices.Shown(tuple(choices.layers_of(study, layers, choices.PAPER_LAYERS)))


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None) -> Figure:
    """Layers: by default the paper's."""
    chosen = shows(study, layers).layers
    threshold = study.manifest.options.threshold
    figure = style.new_figure(study, 2.6 + style.FOOT, style.WIDTH * 0.7)
    axes = figure.subplots()
    axes.axvspan(0.1, 0.6, color=style.PALE, linewidth=0)
    for layer, colour in zip(chosen, style.layer_colours(chosen), strict=True):
        counts = spectrum(study, layer)
        total = counts.sum()
        if not total:
            axes.plot([], [], color=colour, label=f"layer {layer}: no positive similarity")
            continue
        high = study.layers.set_index("layer").pairs[layer] / total
        label = f"layer {layer}: {high:.1%} above {threshold:g}"
        bins = np.linspace(-1, 1, len(counts) + 1)
        axes.stairs(counts / total, bins, baseline=None, color=colour, linewidth=1.1, label=label)
    axes.axvline(threshold, **style.CHANCE)
    if any(spectrum(study, layer).any() for layer in chosen):
        style.logarithmic(axes)
    else:
        axes.set_ylim(0, 1)
    axes.set_xlim(-1, 1)
    axes.set_xlabel("normalised similarity N of two tokens")
    axes.set_ylabel("share of pairs")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left")
    return figure


def spectrum(study: StudyFolder, layer: int) -> NDArray[Any]:
    """(200,): how many pairs of all heads of a layer have which value."""
    counts: NDArray[Any] = study.arrays["similarity_histogram"][choices.place_of(study, layer)].sum(0)
    return counts
