"""A view in the terminal: tables of high pairs, and the text with its tokens coloured."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from headscope.display.wording import about_head, about_lines, about_view, pairs_of_token, segments, short, visible
from headscope.view import View

SHADES = ("#fdebd6", "#fbc890", "#f59e42", "#d96d0f")
"""Backgrounds of tokens, from few high pairs to many; black text is readable on all."""


def show(console: Console, view: View, layer: int, heads: Iterable[int], top: int) -> None:
    """Print the chosen heads of one layer, `top` pairs of each; 0 prints all."""
    console.print(Text(visible(about_view(view)), "bold"))
    if view.continues:
        console.print(f"The text goes on: this is its first window of {view.size} tokens.", style="dim")
    for head in heads:
        console.print()
        console.print(_head(view, layer, head, top, console.color_system is not None))


def _head(view: View, layer: int, head: int, top: int, coloured: bool) -> RenderableType:
    parts: list[RenderableType] = [
        Text(f"Layer {layer}, head {head}", "bold"),
        Text(about_head(view, layer, head)),
        Text(about_lines(view, layer, head), "dim"),
    ]
    pairs = view.pairs(layer, head)
    if len(pairs):
        shown = pairs.head(top) if top else pairs
        marked = None if coloured else {*shown.i, *shown.j}
        parts += [_pairs(shown, len(pairs) - len(shown)), _text(view, layer, head, marked)]
    return Group(*parts)


def _pairs(shown: pd.DataFrame, more: int) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name, side in (("i", "right"), ("token", "left"), ("j", "right"), ("token", "left")):
        table.add_column(name, justify=side, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    for name in ("distance", "N"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in shown.to_dict("records"):
        notes = [note for note, true in (("same sentence", row["same_sentence"]), ("equal", row["equal"])) if true]
        table.add_row(
            str(row["i"]),
            Text(short(row["token_i"]), "bold"),
            str(row["j"]),
            Text(short(row["token_j"]), "bold"),
            str(row["distance"]),
            f"{row['value']:.2f}",
            Text(", ".join(notes), "dim"),
        )
    below = [Text(f"and {more:,} more (--top 0 for all, --csv FILE for a table)", "dim")] if more else []
    return Padding(Group(table, *below), (1, 0, 1, 2), expand=False)


def _text(view: View, layer: int, head: int, marked: set[int] | None) -> RenderableType:
    """Tokens coloured by how many high pairs they are in, the focal token underlined; or the marked ones in «»."""
    pairs = pairs_of_token(view, layer, head)
    focal = view.focal(layer, head)
    places = set(focal.positions) if focal else set()
    told = Text()
    for characters, token, special in segments(view):
        shown = visible(characters)
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
