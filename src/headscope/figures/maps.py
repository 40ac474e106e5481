"""Couples of maps, one head beside the sum of its layer, as Figs. 2 and 4 have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure, SubFigure
from numpy.typing import NDArray

from headscope.figures import style

if TYPE_CHECKING:
    from headscope.results import Study

ROW = 1.85
"""Inches of a row of maps."""


def head_and_layer(
    study: Study,
    layers: Sequence[int],
    head: int,
    maps_of: Callable[[int], NDArray[Any]],
    label: str,
    below: float = 0,
) -> tuple[Figure, SubFigure | None]:
    """Two couples a row; maps_of(layer) gives (H, S, S). `below`: inches kept free under the maps, and their part."""
    couples = 2 if len(layers) > 1 else 1
    rows = -(-len(layers) // couples)
    width = style.WIDTH if couples == 2 or below else style.WIDTH * 0.62
    figure = style.new_figure(study, rows * ROW + below + 0.15, width)
    parts = figure.subfigures(2, 1, height_ratios=[rows * ROW, below], squeeze=False)[:, 0] if below else [figure]
    grid = parts[0].subplots(rows, 2 * couples, squeeze=False)
    for axes in grid.flat[2 * len(layers) :]:
        axes.set_axis_off()
    for number, layer in enumerate(layers):
        whole = maps_of(layer)
        one, summed = grid.flat[2 * number : 2 * number + 2]
        style.heat_map(one, whole[head])
        style.title(one, f"Layer {layer}, head {head}", head)
        style.heat_map(summed, whole.sum(0), f"{label}, √ scale")
        style.title(summed, f"Layer {layer}, sum of heads")
        one.set_ylabel("query i")
        one.set_xlabel("key j")
        summed.set_xlabel("key j")
    return figure, parts[1] if below else None
