"""The atlas: every head of every layer in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from matplotlib.colors import PowerNorm
from numpy.typing import NDArray

from headscope.errors import HeadscopeError
from headscope.figures import choices, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.results import Study

TITLE = "Atlas of all heads"
CAPTION = (
    "A cell for each head: rows are layers, columns heads, all on one colour scale. Each cell is the head's location "
    "map, the share of windows in which the tokens at positions i (down) and j (across) are a high pair, or, on demand, "
    "its similarity map, the mean of the normalised similarity. A line along the diagonal is a head that relates "
    "neighbours; a cross or frame, one that relates everything to one position; an even shade, one that finds nearly all "
    "tokens alike; an empty cell, one with few high pairs."
)
Map = Literal["location", "similarity"]
GAP = 0.06
"""Of a cell, between cells."""


@style.styled
def draw(study: Study, *, layers: Sequence[int] | None = None, map: Map = "location") -> Figure:
    """Layers: by default all. map: location or similarity."""
    if map not in get_args(Map):
        raise HeadscopeError(f"map is {map!r}; it must be {' or '.join(get_args(Map))}.")
    chosen = choices.layers_of(study, layers, ()) if layers is not None else study.manifest["layers"]
    places = [choices.place_of(study, layer) for layer in chosen]
    cells = study.arrays["high_count" if map == "location" else "similarity_sum"][places] / study.windows
    heads = cells.shape[1]
    width = style.WIDTH if heads >= 6 else 1.2 + heads
    side = (width - 0.9) / heads
    figure = style.new_figure(study, max(side * len(chosen) + 0.55, 1.6), width)
    axes = figure.subplots()
    small = shrunk(cells, int(side * style.DPI))
    size = small.shape[-1]
    pitch = size + max(1, round(GAP * size))
    high = float(np.abs(small).max()) or 1.0
    lowest = float(small.min())
    norm = style.SignedPower(0.5, high) if lowest < 0 else PowerNorm(0.5, 0, high)
    image = axes.imshow(
        mosaic(small, pitch), cmap=style.DIVERGING if lowest < 0 else style.SEQUENTIAL, norm=norm, interpolation="auto"
    )
    middle = (size - 1) / 2
    step = 1 if side > 0.16 else 2
    axes.set_xticks(np.arange(0, heads, step) * pitch + middle, [f"{head}" for head in range(0, heads, step)])
    axes.set_yticks(np.arange(len(chosen)) * pitch + middle, [f"{layer}" for layer in chosen])
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.spines[:].set_visible(False)
    label = "share of windows in which (i, j) is a high pair" if map == "location" else "mean normalised similarity"
    style.colour_bar(axes, image, f"{label}, √ scale", (1.02, 0, 0.02, 1))
    return figure


def shrunk(cells: NDArray[Any], pixels: int) -> NDArray[np.float64]:
    """(L, H, S, S) -> (L, H, s, s), s <= pixels: means over squares. The last square of a side may be smaller."""
    length = cells.shape[-1]
    step = -(-length // max(pixels, 8))
    starts = np.arange(0, length, step)
    sizes = np.diff(np.append(starts, length))
    summed = np.add.reduceat(np.add.reduceat(cells, starts, axis=-1), starts, axis=-2)
    return np.asarray(summed / (sizes[:, None] * sizes), dtype=np.float64)


def mosaic(cells: NDArray[np.float64], pitch: int) -> NDArray[np.float64]:
    """(L, H, s, s) -> one picture, a cell every `pitch` pixels, NaN between them."""
    layers, heads, size, _ = cells.shape
    picture = np.full((layers, pitch, heads, pitch), np.nan)
    picture[:, :size, :, :size] = cells.transpose(0, 2, 1, 3)
    gap = pitch - size
    return picture.reshape(layers * pitch, heads * pitch)[:-gap, :-gap]
