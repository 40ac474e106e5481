"""A view in the terminal: tables of high pairs, and the text with its tokens coloured."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from headscope.one_text.describing import (
    about_head,
    about_lines,
    about_view,
    nothing_singled_out,
    pairs_of_token,
    segments,
    stands_out,
)
from headscope.one_text.telling import Place
from headscope.wording import abridged, short, visible

if TYPE_CHECKING:
    from headscope.show.objects import View

SHADES = ("#fdebd6", "#fbc890", "#f59e42", "#d96d0f")
"""Backgrounds of tokens, from few high pairs to many; black text is readable on all."""
COLUMNS = ((True, ""), (False, "bold"), (True, ""), (False, "bold"), (True, ""), (True, ""), (False, "dim"))
"""Of the table of pairs: right-aligned, and the style."""


def show(console: Console, view: View, heads: Iterable[Place], top: int) -> None:
    """Print the chosen heads, `top` pairs of each; 0 prints all."""
    console.print(Text(visible(about_view(view)), "bold"))
    if view.continues:
        console.print(f"The text goes on: this is a window of {view.size} tokens.", style="dim")
    if view.about_study is not None:
        console.print(f"{visible(view.about_study)}.", style="dim", markup=False)
    if (notice := nothing_singled_out(view)) is not None:
        console.print(notice, style="yellow", markup=False)
    for layer, head in heads:
        console.print()
        console.print(_head(view, layer, head, top, console.color_system is not None))


def _head(view: View, layer: int, head: int, top: int, coloured: bool) -> RenderableType:
    parts: list[RenderableType] = [
        Text(f"Layer {layer}, head {head}", "bold"),
        *(Text(why) for why in [stands_out(view, layer, head)] if why is not None),
        Text(about_head(view, layer, head)),
        Text(about_lines(view, layer, head), "dim"),
        *(Text(visible(told), "cyan") for told in [view.in_study(layer, head)] if told is not None),
    ]
    pairs = view.pairs(layer, head)
    if len(pairs):
        shown = pairs.head(top) if top else pairs
        marked = None if coloured else {*shown.i, *shown.j}
        parts += [_pairs(shown, len(pairs) - len(shown)), _text(view, layer, head, marked)]
    return Group(*parts)


def _pairs(shown: pd.DataFrame, more: int) -> RenderableType:
    """A table as one text: rich's own takes a minute for the thousands of rows that `--top 0` may have."""
    rows = [("i", "token", "j", "token", "distance", "N", "")]
    for row in shown.to_dict("records"):
        notes = [note for note, true in (("same sentence", row["same_sentence"]), ("equal", row["equal"])) if true]
        numbers = str(row["distance"]), f"{row['value']:.2f}"
        rows.append(
            (str(row["i"]), short(row["token_i"]), str(row["j"]), short(row["token_j"]), *numbers, ", ".join(notes))
        )
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    table = Text(no_wrap=True, overflow="ellipsis")
    for number, cells in enumerate(rows):
        for cell, width, (to_the_right, style) in zip(cells, widths, COLUMNS, strict=True):
            space = " " * (width - cell_len(cell))
            table.append(space + cell if to_the_right else cell + space, style if number else "dim")
            table.append("  ")
        table.append("\n")
    if more:
        table.append(f"and {more:,} more (--top 0 for all, --csv FILE for a table)\n", "dim")
    return Padding(table, (1, 0, 0, 2), expand=False)


def _text(view: View, layer: int, head: int, marked: set[int] | None) -> RenderableType:
    """Tokens coloured by how many high pairs they are in, the focal token underlined; or the marked ones in «»."""
    pairs = pairs_of_token(view, layer, head)
    focal = view.focal(layer, head)
    places = set(focal.positions) if focal else set()
    told = Text()
    for characters, token, special in segments(view):
        shown = visible(abridged(characters))
        if special and token:
            told.append(" ")
        if marked is not None:
            told.append(f"«{shown}»" if token in marked else shown)
        elif token is None or not pairs[token]:
            told.append(shown, "dim" if special else "")
        else:
            shade = SHADES[min(int(len(SHADES) * pairs[token] / pairs.max()), len(SHADES) - 1)]
            told.append(shown, f"{'bold underline ' if token in places else ''}black on {shade}")
        if special:
            told.append(" ")
    return Padding(told, (0, 0, 0, 2), expand=False)
