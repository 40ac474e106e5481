"""Fig. 6: how often the two tokens of a high pair are equal; a: all high pairs, b: those within one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.corpus.traits import WORDS
from headscope.insight import choices
from headscope.show.figures import style
from headscope.show.figures.rows import Rows, draw_rows, figure_height, legend, share_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Repeated tokens among high pairs"
NEEDS = WORDS
CAPTION = (
    "A row for each head: the distribution over windows of the share of high pairs whose two tokens are equal. "
    "a: of all high pairs; b: of the high pairs within one sentence. Far to the right means that the head pairs a "
    "token with its own repetitions; the dashed line marks the share that picking pairs at random would give, the "
    "dotted one that of random pairs that lie as far apart. The thick mark, with its 95 % interval over texts, and the "
    "number are the mean over windows. Windows without such pairs are left out. "
    "Heights go by the square root of the share of windows, on one scale for all rows of a panel."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> choices.Shown:
    return choices.rows_shown(study, layers, heads, choices.LAST)


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> Figure:
    """Layers: by default the last one. Heads: by default all."""
    chosen = shows(study, layers, heads).layers
    shown = choices.heads_of(study, heads, choices.all_heads(study))
    figure = style.new_figure(study, figure_height(len(shown), len(chosen)))
    panels = {layer: _panels(study, layer, shown) for layer in chosen}
    limit = max(occupied(rows) for pair in panels.values() for rows in pair)
    grid = figure.subplots(len(chosen), 2, squeeze=False)
    for line, (layer, pair) in zip(grid, panels.items(), strict=True):
        for axes, rows, letter, which in zip(line, pair, "ab", ("", " within a sentence"), strict=True):
            draw_rows(axes, rows, f"{letter}   Layer {layer}")
            axes.set_xlim(0, limit)
            axes.set_xlabel(f"share of high pairs{which} with equal tokens")
    legend(figure, chance=True, given_distance="repeat_chance_by_distance" in study.heads)
    return figure


def _panels(study: StudyFolder, layer: int, heads: Sequence[int]) -> tuple[Rows, Rows]:
    decimals = "{:.3f}"
    return (
        share_rows(study, layer, heads, "repeat_histogram", "repeat_probability", "repeat_chance", decimals),
        share_rows(
            study, layer, heads, "repeat_in_sentence_histogram", "repeat_probability_in_sentence", None, decimals
        ),
    )


def occupied(rows: Rows) -> float:
    """Up to where there is anything to see, in tenths."""
    last = int(np.flatnonzero(rows.counts.any(0)).max(initial=0))
    return max(0.2, float(np.ceil(np.round(10 * rows.edges[last + 1], 6)) / 10))
