"""Fig. 2: attention summed over all texts, one head and the whole layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from headscope.insight import choices
from headscope.show.figures import maps, style

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
    "neighbour; a dark column, that one position draws attention from everywhere."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> choices.Shown:
    return choices.couples_shown(study, layers, heads, choices.PAPER_LAYERS)


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> Figure:
    """Layers: by default the paper's. Of `heads` the first, by default head 0, is shown beside each layer's sum; given
    with its layer, (3, 8), beside that."""
    couples = shows(study, layers, heads).heads
    figure = maps.new_couples(study, len(couples))
    maps.draw_couples(figure, couples, lambda layer: mean_attention(study, layer), "mean attention")
    return figure


def mean_attention(study: StudyFolder, layer: int, name: str = "attention_sum") -> NDArray[Any]:
    """(H, S, S): attention of each head of a layer, averaged over windows."""
    mean: NDArray[Any] = study.arrays[name][choices.place_of(study, layer)] / study.windows
    return mean
