"""Fig. 12: similarity summed over the heads of a layer, on one text and over all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from headscope.insight import choices
from headscope.insight.reach import windows_at
from headscope.show.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Similarity maps by layer"
NEEDS_EXAMPLE = True
CAPTION = (
    "Similarity of the outputs of every two tokens, summed over the heads of an early, a middle and the last layer. "
    "Above: C on one text; below: the normalised similarity N, averaged over all windows. Red where the outputs point "
    "the same way, blue where they point apart. Dark along the diagonal: tokens near each other are made alike; dark "
    "squares: so are the tokens of one stretch of text; a dark cross: one token is like all others. Each map has a "
    "scale of its own; those below begin where their values do, not at 0, and white there is the least."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None) -> choices.Shown:
    return choices.Shown(tuple(choices.layers_of(study, layers, choices.EARLY_MIDDLE_LAST)))


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None) -> Figure:
    """Layers: by default an early, a middle and the last one."""
    view = study.example
    chosen = shows(study, layers).layers
    side = style.WIDTH / max(len(chosen), 3)
    figure = style.new_figure(study, 1.86 * side + style.FOOT, side * max(len(chosen), 1.2), maps=True)
    grid = figure.subplots(2, len(chosen), squeeze=False)
    for (above, below), layer in zip(grid.T, chosen, strict=True):
        style.heat_map(above, view.similarity[layer].sum(0), "C, sum of heads", diverging=True)
        style.title(above, f"Layer {layer}, one text")
        style.heat_map(below, mean_normalised(study, layer), "mean of N, sum of heads", spread=True)
        style.title(below, f"Layer {layer}, all texts")
        below.set_xlabel("token j")
    for axes in grid[:, 0]:
        axes.set_ylabel("token i")
    return figure


def mean_normalised(study: StudyFolder, layer: int) -> NDArray[Any]:
    """(S, S): N averaged over the windows that have both positions, summed over the heads of a layer."""
    summed: NDArray[Any] = study.arrays["similarity_sum"][choices.place_of(study, layer)].sum(0) / windows_at(study)
    return summed
