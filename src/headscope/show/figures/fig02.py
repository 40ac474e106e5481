"""Fig. 2: attention summed over all texts, one head and the whole layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from headscope.insight import choices
from headscope.insight.reach import windows_at
from headscope.show.figures import maps, style
from headscope.wording import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Attention summed over all texts"
HEADS = "beside"
CAPTION = (
    "Each map holds the attention weights between token positions, averaged over all windows: row i is the token "
    "that attends, column j the token that is attended to. Left of each couple: one head; right: the sum over all "
    "heads of the layer. Dark means much attention; each map has a scale of its own, and where it ends in an arrow "
    "a few cells lie beyond it. A dark diagonal means that tokens attend to themselves or, one step beside it, to a "
    "neighbour; a dark column, that one position draws attention from everywhere. Under each map: the share of "
    "attention that goes to the first token, to other special tokens, to the token before, itself and the token after."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> choices.Shown:
    return choices.couples_shown(study, layers, heads, choices.PAPER_LAYERS)


NAMED = (
    (("attention_to_first", "first token"), ("attention_to_special", "other special")),
    (("attention_previous", "before"), ("attention_self", "itself"), ("attention_next", "after")),
)
"""Columns that are written under the maps, and how they are called there."""


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> Figure:
    """Layers: by default the paper's. Of `heads` the first, by default head 0, is shown beside each layer's sum; given
    with its layer, (3, 8), beside that."""
    couples = shows(study, layers, heads).heads
    figure = maps.new_couples(study, len(couples), row=maps.ROW + 0.2)
    maps.draw_couples(
        figure,
        couples,
        lambda layer: mean_attention(study, layer),
        "mean attention",
        lambda layer, head: in_numbers(study, layer, head),
    )
    return figure


def in_numbers(study: StudyFolder, layer: int, head: int | None) -> str:
    """How much of the attention of a head, or of a layer, goes where a map shows it in a line that is one cell wide."""
    table = "layers" if head is None else "heads"
    place = choices.place_of(study, layer) if head is None else choices.place_of_head(study, (layer, head))
    return "\n".join(
        ", ".join(
            f"{called} {percent(study.column(table, name)[place])}" for name, called in line if name in study.heads
        )
        for line in NAMED
    )


def mean_attention(study: StudyFolder, layer: int, name: str = "attention_sum") -> NDArray[Any]:
    """(H, S, S): attention of each head of a layer, averaged over the windows that have both tokens."""
    mean: NDArray[Any] = study.arrays[name][choices.place_of(study, layer)] / windows_at(study)
    return mean
