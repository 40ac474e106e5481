"""Couples of maps, one head beside the sum of its layer, as Figs. 2 and 4 have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from numpy.typing import NDArray

from headscope.insight.choices import Head
from headscope.show.figures import style

if TYPE_CHECKING:
    from headscope.folder.study_folder import StudyFolder

ROW = 1.52
"""Inches of a row of maps."""


def new_couples(study: StudyFolder, couples: int, below: float = 0, row: float = ROW) -> Figure:
    """A figure for so many couples, two a row of so many inches; `below`: inches kept free under all of them."""
    rows = -(-couples // 2)
    single = couples == 1 and not below
    height = rows * row + below + style.FOOT
    return style.new_figure(study, height, style.WIDTH / 2 if single else style.WIDTH, below=below, maps=True)


def draw_couples(
    figure: Figure,
    couples: Sequence[Head],
    maps_of: Callable[[int], NDArray[Any]],
    label: str,
    under: Callable[[int, int | None], str] = lambda layer, head: "",
) -> None:
    """A head and the sum of its layer each; maps_of(layer) gives (H, S, S). under(layer, head): what is written under
    each map, head None: under that of the layer."""
    abreast = min(len(couples), 2)
    grid = figure.subplots(-(-len(couples) // abreast), 2 * abreast, squeeze=False)
    for axes in grid.flat[2 * len(couples) :]:
        axes.set_axis_off()
    for number, (layer, head) in enumerate(couples):
        whole = maps_of(layer)
        one, summed = grid.flat[2 * number : 2 * number + 2]
        style.heat_map(one, whole[head], label)
        style.title(one, f"Layer {layer}, head {head}", head)
        style.heat_map(summed, whole.sum(0), label)
        style.title(summed, f"Layer {layer}, sum of heads")
        one.set_ylabel("query i")
        for axes, of in ((one, head), (summed, None)):
            axes.set_xlabel("key j")
            axes.annotate(
                under(layer, of), (0, 0), (0, -20), "axes fraction", "offset points",
                va="top", fontsize=style.TINY, color=style.GREY,
            )  # fmt: skip
