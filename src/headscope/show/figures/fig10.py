"""Fig. 10: where in the window high pairs lie."""

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

TITLE = "Where high pairs lie"
HEADS = "single"
CAPTION = (
    "Location maps: the share of windows in which the tokens at positions i and j are a high pair. Dark along the "
    "diagonal means a head of short range, which relates neighbours; dark far from it, one of long range; a dark "
    "frame or cross, that one position, often the first or the last, pairs with everything. Shown are the heads with "
    "the smallest and the largest mean distance of the whole study, unless others are asked for; heads with fewer "
    "than ten high pairs a window are passed over where there are others. Each map has a scale of its own."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> choices.Shown:
    if choices.are_single(heads):
        chosen = choices.single_heads(study, heads)
    elif heads is not None:
        of_layers = choices.layers_of(study, layers, choices.LAST)
        chosen = [(layer, head) for layer in of_layers for head in choices.heads_of(study, heads, ())]
    else:
        among = None if layers is None else choices.layers_of(study, layers, ())
        chosen = choices.nearest_and_farthest(study, among)
    return choices.Shown((), tuple(chosen))


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> Figure:
    """By default two heads, see CAPTION; layers: the two ends among these. Heads: these, in each layer or the last; or
    single ones, given with their layers: (3, 8)."""
    chosen = shows(study, layers, heads).heads
    columns = min(max(len(chosen), 1), 2)
    lines = max(-(-len(chosen) // columns), 1)
    figure = style.new_figure(study, 3.0 * lines + style.FOOT, style.WIDTH * columns / 2, maps=True)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(chosen) :]:
        axes.set_axis_off()
    if not chosen:
        style.nothing(grid[0, 0])
    for axes, (layer, head) in zip(grid.flat, chosen, strict=False):
        row = choices.row_of(study, layer, head)
        style.heat_map(axes, location(study, layer, head), "share of windows")
        style.title(axes, f"Layer {layer}, head {head}: mean distance {row.mean_distance:.1f}", head)
        axes.set_xlabel("token j")
        axes.set_ylabel("token i")
        if not row.pairs:
            style.nothing(axes)
    return figure


def location(study: StudyFolder, layer: int, head: int) -> NDArray[Any]:
    """(S, S): share of the windows that have both positions in which (i, j) is a high pair."""
    share: NDArray[Any] = study.arrays["high_count"][choices.place_of(study, layer), head] / windows_at(study)
    return share
