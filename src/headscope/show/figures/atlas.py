"""The atlas: every head of every layer in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

from headscope.errors import HeadscopeError
from headscope.insight import choices
from headscope.insight.reach import windows_at
from headscope.show.figures import role_marks, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Atlas of all heads"
CAPTION = (
    "A cell for each head: rows are layers, columns heads, all on one colour scale. Each cell is the head's location "
    "map: the share of windows in which the tokens at positions i (down) and j (across) are a high pair; on demand its "
    "similarity map, the mean of the normalised similarity. A line along the diagonal is a head that relates "
    "neighbours; a dark frame or cross, one that relates everything to one position; an even dark shade, one that "
    "finds nearly all tokens alike; an empty cell, one with few high pairs. Where nulls were measured, a coloured "
    "frame with a letter says the role of a head; a head without one has no role."
)
Map = Literal["location", "similarity"]
ARRAYS = {"location": "high_count", "similarity": "similarity_sum"}
LABELS = {
    "location": "share of windows in which (i, j) is a high pair, √ scale",
    "similarity": "mean normalised similarity, √ scale",
}
GAP = 0.06
"""Of a cell, between cells."""
CELL_DPI = 125
LEFT, RIGHT, TOP, BAR = 0.35, 0.08, 0.32, 0.42
"""Inches round the cells; BAR: for the colour bar below them."""
LEGEND, LEGEND_COLUMNS = 0.16, 5
"""Inches of a row of the roles below the colour bar, and how many stand in it."""
NARROWEST = 5.2
"""Inches that the colour bar and its label need."""


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, map: Map = "location") -> Figure:
    """Layers: by default all. map: location or similarity."""
    if map not in get_args(Map):
        raise HeadscopeError(f"map is {map!r}; it must be {' or '.join(get_args(Map))}.")
    chosen = study.manifest.layers if layers is None else choices.layers_of(study, layers, ())
    places = [choices.place_of(study, layer) for layer in chosen]
    whole = study.arrays[ARRAYS[map]][places] / windows_at(study)
    heads = whole.shape[1]
    side = (style.WIDTH - LEFT - RIGHT) / max(heads, 6)
    cells = shrunk(whole, int(side * CELL_DPI))
    size = cells.shape[-1]
    pitch = size + max(1, round(GAP * size))
    norm, signed = style.scale(0.5, min(float(np.nanmin(cells)), 0.0), max(float(np.nanmax(cells)), 0.0) or 1.0)

    across, down = side * heads, side * len(chosen)
    roles = _roles(study, chosen)
    marks = role_marks.marked(roles)
    legend = LEGEND * -(-len(marks) // LEGEND_COLUMNS)
    height = TOP + down + BAR + legend + style.FOOT
    width = max(LEFT + across + RIGHT, NARROWEST)
    figure = style.new_figure(study, height, width)
    figure.set_layout_engine("none")
    foot = BAR + legend + style.FOOT
    axes = figure.add_axes((LEFT / width, foot / height, across / width, down / height))
    image = axes.imshow(
        mosaic(cells, pitch),
        cmap=style.SEQUENTIAL if map == "location" else signed,
        norm=norm,
        interpolation=style.SHARP,
    )
    axes.set_facecolor("#bbbbbb")
    for axis, numbers in ((axes.xaxis, range(heads)), (axes.yaxis, chosen)):
        step = 1 if side > 0.14 else 2
        axis.set_ticks(
            (np.arange(len(numbers)) * pitch + (size - 1) / 2)[::step], [str(number) for number in numbers][::step]
        )
    axes.tick_params(length=0)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.spines[:].set_visible(False)
    bar = figure.add_axes((LEFT / width, (style.FOOT + legend + 0.22) / height, 0.36, 0.08 / height))
    style.colour_bar(image, bar, LABELS[map], lying=True)
    for place, role in enumerate(roles):
        if role:
            _mark(axes, divmod(place, heads), pitch, size, *marks[role])
    if marks:
        _legend(figure, marks)
    return figure


def _roles(study: StudyFolder, layers: Sequence[int]) -> list[str]:
    """Of the heads of some layers, in the order of the cells."""
    table = study.heads
    return table[table["layer"].isin(layers)]["role"].tolist() if "role" in table else []


def _mark(axes: Axes, cell: tuple[int, int], pitch: int, size: int, colour: str, letter: str) -> None:
    """A frame about a cell, and a letter in its corner."""
    top, left = (place * pitch - 0.5 for place in cell)
    axes.add_patch(Rectangle((left, top), size, size, fill=False, edgecolor=colour, linewidth=1.3, clip_on=False))
    axes.text(
        left + size,
        top,
        letter,
        ha="right",
        va="top",
        fontsize=style.TINY,
        color="white",
        fontweight="bold",
        bbox={"boxstyle": "square,pad=0.12", "facecolor": colour, "edgecolor": "none"},
    )


def _legend(figure: Figure, marks: dict[str, tuple[str, str]]) -> None:
    handles = [Patch(facecolor=colour, label=f"{letter}  {role}") for role, (colour, letter) in marks.items()]
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(LEFT / figure.get_figwidth(), style.FOOT / figure.get_figheight()),
        ncols=min(len(marks), LEGEND_COLUMNS),
        frameon=False,
        fontsize=style.SMALL,
        borderpad=0,
        handlelength=1,
        columnspacing=1.2,
    )


def shrunk(cells: NDArray[Any], pixels: int) -> NDArray[Any]:
    """(L, H, S, S) -> (L, H, s, s), s <= pixels: means over the pairs of two different tokens in each square.

    The diagonal, which no pair is on, takes no part: it would look like a finding. NaN where a square has no pair.
    """
    length = cells.shape[-1]
    step = -(-length // max(pixels, 8))
    starts = np.arange(0, length, step)

    def summed(matrix: NDArray[Any]) -> NDArray[Any]:
        rows: NDArray[Any] = np.add.reduceat(matrix, starts, axis=-2)
        return np.asarray(np.add.reduceat(rows, starts, axis=-1))

    pairs = 1 - np.eye(length)
    counts = summed(pairs)
    return np.where(counts > 0, summed(cells * pairs) / np.maximum(counts, 1), np.nan)


def mosaic(cells: NDArray[Any], pitch: int) -> NDArray[Any]:
    """(L, H, s, s) -> one picture, a cell every `pitch` pixels, NaN between them."""
    layers, heads, size, _ = cells.shape
    picture = np.full((layers, pitch, heads, pitch), np.nan)
    picture[:, :size, :, :size] = cells.transpose(0, 2, 1, 3)
    gap = pitch - size
    return picture.reshape(layers * pitch, heads * pitch)[:-gap, :-gap]
