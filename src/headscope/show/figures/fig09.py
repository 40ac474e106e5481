"""Fig. 9: the high pairs of a few heads on one text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Rectangle

from headscope.insight import choices
from headscope.one_text.describing import segments
from headscope.show.figures import style, tokens
from headscope.wording import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder
    from headscope.one_text.view import OneText

TITLE = "High pairs of a few heads on one text"
NEEDS_EXAMPLE = True
CAPTION = (
    "One text. Above: for each head its high pairs, the most alike first: position and token of both, and their "
    "normalised similarity N. Below: the text. A token that is in one of the pairs shown has a background, the same "
    "colour wherever the same token stands, grey for tokens that are seldom in them; the lines under it have the "
    "colours of the heads that pair it."
)
MOST = 18
"""Pairs shown of a head: as many as the longest table in the paper has."""
SIZE, LINE = 5.5, 7.6
TEXT, TEXT_LINE = 6.5, 12.0
TABLES = 3
"""Beside each other."""
LETTERS = 16
"""Shown of a token in a table."""


def shows(study: StudyFolder, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> choices.Shown:
    layer = choices.layers_of(study, layers, choices.LAST)[-1]
    chosen = choices.heads_of(study, heads, sorted(head for _, head in study.example.telling_heads(layer)))
    return choices.Shown((), tuple((layer, head) for head in chosen))


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> Figure:
    """Of `layers` the last, by default the last measured. Heads: by default three that single out some pairs."""
    view = study.example
    shown = shows(study, layers, heads).heads
    layer, chosen = shown[0][0], [head for _, head in shown]
    pairs = {head: view.pairs(layer, head) for head in chosen}
    members = {head: set(table[:MOST].i) | set(table[:MOST].j) for head, table in pairs.items()}
    colours = token_colours(view, pairs)

    width = style.WIDTH - 0.1
    rows = -(-len(chosen) // TABLES)
    table_height = (min(max(len(table) for table in pairs.values()), MOST) + 3.5) * LINE / tokens.POINTS
    lines = tokens.broken(segments(view), int(width * tokens.POINTS / (tokens.LETTER * TEXT)))
    text_height = (len(lines) + 0.4) * TEXT_LINE / tokens.POINTS
    height = rows * table_height + text_height + style.FOOT
    figure = style.new_figure(study, height)
    figure.set_layout_engine("none")
    for number, head in enumerate(chosen):
        line, place = divmod(number, TABLES)
        left = 0.05 + place * width / TABLES
        axes = tokens.page(figure, left, height - (line + 1) * table_height, width / TABLES, table_height)
        _table(axes, view, layer, head, pairs[head], colours)
    axes = tokens.page(figure, 0.05, style.FOOT, width, text_height)
    tokens.flow(
        axes, lines, TEXT, TEXT_LINE,
        lambda token: colours[int(view.ids[token])] if any(token in each for each in members.values()) else None,
        lambda token: [style.head_colour(head) for head in chosen if token in members[head]],
    )  # fmt: skip
    return figure


def token_colours(view: OneText, pairs: dict[int, Any]) -> dict[int, str]:
    """Token id -> colour: one for each token that is in the most of the pairs shown, grey for all others."""
    counts = Counter(
        int(view.ids[place]) for table in pairs.values() for side in ("i", "j") for place in table[side][:MOST]
    )
    known = dict(zip([token for token, _ in counts.most_common()], style.TOKEN_COLOURS, strict=False))
    return {token: known.get(token, "#dddddd") for token in counts}


def _table(axes: Axes, view: OneText, layer: int, head: int, table: Any, colours: dict[int, str]) -> None:
    letter = tokens.LETTER * SIZE
    second = (LETTERS + 5) * letter
    shown = f"{MOST} of {len(table):,}" if len(table) > MOST else f"{len(table)}"
    axes.add_patch(Rectangle((0, LINE - 5), 5, 5, color=style.head_colour(head), linewidth=0))
    axes.text(8, LINE, f"Layer {layer}, head {head}", fontsize=style.TITLE, va="baseline")
    if table.empty:
        axes.text(0, 3 * LINE, "no high pairs", color=style.GREY, style="italic", va="baseline")
        return
    axes.text(
        2 * second + 4 * letter, LINE, f"{shown} high pairs" if len(table) > 1 else "1 high pair",
        fontsize=style.SMALL, color=style.GREY, va="baseline", ha="right",
    )  # fmt: skip
    for x, name in ((0, "  i token"), (second, "  j token"), (2 * second, "   N")):
        tokens.write(axes, x, 2.2 * LINE, name, SIZE, color=style.GREY)
    labels = view.labels
    for row, pair in enumerate(table[:MOST].itertuples()):
        y = (row + 3.3) * LINE
        for x, place in ((0, pair.i), (second, pair.j)):
            label = short(labels[place], LETTERS)
            tokens.write(axes, x, y, f"{place:>3}", SIZE, color=style.GREY)
            axes.add_patch(
                Rectangle(
                    (x + 4 * letter, y - 0.85 * SIZE), tokens.letters(label) * letter, 1.1 * SIZE,
                    color=colours[int(view.ids[place])], linewidth=0,
                )
            )  # fmt: skip
            tokens.write(axes, x + 4 * letter, y, label, SIZE)
        tokens.write(axes, 2 * second, y, f"{pair.value:.2f}", SIZE)
