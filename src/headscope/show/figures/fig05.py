"""Fig. 5: the lines of one head cut its similarity matrix into blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.insight import choices
from headscope.measure.definitions import attention_lines
from headscope.show.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Lines cut the similarity matrix into blocks"
NEEDS_EXAMPLE = True
HEADS = "single"
CAPTION = (
    "One head on one text. Above: its attention, with dark columns, the lines, on the tokens that draw much of it; and "
    "the similarity C of its outputs for every two tokens, red where they point the same way, blue where they point "
    "apart. Below: C with the lines and their transposes drawn in; and the mean of C in each rectangle that they cut. "
    "Squares along the diagonal that are redder than their surroundings are stretches of text, closed by a line, whose "
    "tokens the head makes alike. Unless another is asked for, it is the head whose blocks stand out most on this "
    "text, among heads with a few lines on it."
)
FEWEST = 5
"""Lines: with fewer there is hardly a block to see."""
TRIED = 40


def shows(study: StudyFolder, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> choices.Shown:
    if choices.are_single(heads):
        chosen = choices.single_heads(study, heads)
    elif heads is not None:
        head = choices.heads_of(study, heads, ())[0]
        chosen = [(layer, head) for layer in choices.layers_of(study, layers, choices.LAST)]
    else:
        among = study.manifest.layers if layers is None else choices.layers_of(study, layers, ())
        chosen = [most_telling(study, among)]
    return choices.Shown(tuple(dict.fromkeys(layer for layer, _ in chosen)), tuple(chosen))


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> Figure:
    """By default the most telling head; `layers`: of these. `heads`: the first of them, in each layer or the last; or
    all that are given with their layers, (3, 8)."""
    view = study.example
    chosen = shows(study, layers, heads).heads
    figure = style.new_figure(study, 3.9 * len(chosen) + style.FOOT, 0.75 * style.WIDTH, maps=True)
    grid = figure.subplots(2 * len(chosen), 2, squeeze=False)
    for number, (layer, head) in enumerate(chosen):
        attention, similarity, cut, means = grid[2 * number : 2 * number + 2].flat
        matrix, blocks = view.similarity[layer, head], view.blocks(layer, head)
        style.heat_map(attention, view.attention[layer, head], "attention")
        style.title(attention, f"Attention, layer {layer}, head {head}", head)
        for axes in (similarity, cut):
            style.heat_map(axes, matrix, "similarity C", diverging=True)
        style.title(similarity, "Similarity C")
        lines = view.lines(layer, head).position.to_numpy()
        for place in lines:
            cut.axhline(place, color="black", linewidth=0.4)
            cut.axvline(place, color="black", linewidth=0.4)
        style.title(cut, f"C with its {len(lines)} lines" if len(lines) != 1 else "C with its line")
        style.heat_map(means, blocks.means[np.ix_(blocks.of, blocks.of)], "mean of C", diverging=True)
        style.title(means, f"Mean of C in {len(blocks.means)} × {len(blocks.means)} blocks")
        attention.set_ylabel("query i")
        attention.set_xlabel("key j")
        cut.set_ylabel("token i")
        for axes in (similarity, cut, means):
            axes.set_xlabel("token j")
    return figure


def most_telling(study: StudyFolder, layers: Sequence[int]) -> tuple[int, int]:
    """(layer, head) whose blocks stand out most on this text, among heads with a few lines on it if there are any.

    Of many heads only those are tried whose blocks stand out most over all texts.
    """
    view = study.example
    table = study.heads[study.heads.layer.isin(layers)].sort_values("block_contrast", ascending=False, kind="stable")
    places = list(zip(table["layer"].tolist(), table["head"].tolist(), strict=True))
    lines = attention_lines(np.asarray(view.attention), view.line_threshold).sum(-1)
    few = [
        (layer, head) for layer, head in places if FEWEST <= lines[view.attention.place(layer), head] <= view.size / 3
    ]
    return max((few or places)[:TRIED], key=lambda place: np.nan_to_num(view.blocks(*place).contrast, nan=-np.inf))
