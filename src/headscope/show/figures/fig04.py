"""Fig. 4: attention on one text, and the tokens that draw it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Rectangle

from headscope.insight import choices
from headscope.insight.choices import Head
from headscope.show.figures import maps, style, tokens
from headscope.wording import head_name, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder
    from headscope.one_text.view import OneText

TITLE = "Attention on one text"
NEEDS_EXAMPLE = True
HEADS = "beside"
CAPTION = (
    "One text. Maps: attention from token i (row) to token j (column), of one head and summed over the heads of its "
    "layer. On one text attention gathers in columns: a few tokens draw it from everywhere. Below, the tokens of the "
    "text, read down the columns; a square in the colour of a head marks one of its lines: a token that draws "
    "more than a share, the line threshold, of what the most attended token draws. Compare with Fig. 2, where the "
    "columns of single texts have averaged out."
)
SIZE, LINE, LETTERS, SQUARE = 5.5, 7.4, 12, 4.2
"""Points of a token and of its line, the letters shown of a token, points of a mark."""


def shows(study: StudyFolder, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> choices.Shown:
    return choices.couples_shown(study, layers, heads, choices.PAPER_LAYERS)


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> Figure:
    """Layers: by default the paper's. Of `heads` the first, by default head 0, is shown beside each layer's sum; given
    with its layer, (3, 8), beside that."""
    view = study.example
    couples = shows(study, layers, heads).heads
    marks = {couple: set(view.lines(*couple).position.tolist()) for couple in couples}
    colours = dict(zip(couples, style.layer_colours(couples), strict=True))
    per_column = -(-view.size // columns_beside(len(couples)))
    below = (per_column + 3) * LINE / tokens.POINTS
    figure = maps.new_couples(study, len(couples), below)
    maps.draw_couples(figure, couples, lambda layer: view.attention[layer], "attention")
    axes = tokens.page(figure, 0.05, style.FOOT, style.WIDTH - 0.1, below)
    _legend(axes, colours)
    _columns(axes, view, per_column, marks, colours)
    return figure


def columns_beside(marks: int) -> int:
    """How many columns of tokens fit beside each other, with room for so many marks before each token."""
    narrowest = LETTERS * tokens.LETTER * SIZE + marks * SQUARE + 4
    return max(int((style.WIDTH - 0.1) * tokens.POINTS // narrowest), 1)


def _legend(axes: Axes, colours: dict[Head, Any]) -> None:
    text = "lines of"
    tokens.write(axes, 0, LINE, text, SIZE)
    x = (len(text) + 1) * tokens.LETTER * SIZE
    for couple, colour in colours.items():
        _square(axes, x, LINE, colour)
        text = head_name(couple)
        tokens.write(axes, x + SQUARE + 2, LINE, text, SIZE)
        x += SQUARE + (len(text) + 3) * tokens.LETTER * SIZE


def _columns(axes: Axes, view: OneText, per_column: int, marks: dict[Head, set[int]], colours: dict[Head, Any]) -> None:
    width = (style.WIDTH - 0.1) * tokens.POINTS / columns_beside(len(colours))
    for token, label in enumerate(view.labels):
        column, row = divmod(token, per_column)
        x, y = column * width, (row + 3) * LINE
        if row == 0:
            tokens.write(axes, x + len(colours) * SQUARE + 2, y - LINE, str(token), SIZE - 1, color=style.GREY)
        marked = [couple for couple in colours if token in marks[couple]]
        for couple in marked:
            _square(axes, x + list(colours).index(couple) * SQUARE, y, colours[couple])
        tokens.write(
            axes, x + len(colours) * SQUARE + 2, y, short(label, LETTERS), SIZE,
            color="black" if marked else style.GREY, weight="bold" if marked else "normal",
        )  # fmt: skip


def _square(axes: Axes, x: float, y: float, colour: Any) -> None:
    side = SQUARE - 0.7
    axes.add_patch(Rectangle((x, y - side - 0.2), side, side, color=colour, linewidth=0))
