"""Fig. 7: how far apart the two tokens of a high pair are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.traits import ORDER
from headscope.insight import choices
from headscope.insight.chance import distance_chance
from headscope.show.figures import style
from headscope.show.figures.rows import Rows, layer_panels, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Distance between the tokens of high pairs"
NEEDS = ORDER
CAPTION = (
    "A row for each head: the distribution of j - i over all its high pairs. Close to the left edge means that the "
    "head relates neighbours; a long tail, that it relates tokens across the whole window. The dashed curve is what "
    "pairs picked at random would give: near pairs are more numerous than far ones. The thick mark and the number "
    "are the mean distance in tokens. Heights go by the square root of the share of pairs, on one scale for all rows "
    "of a panel."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> choices.Shown:
    return choices.rows_shown(study, layers, heads, choices.LAST)


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> Figure:
    """Layers: by default the last one. Heads: by default all."""
    chosen = shows(study, layers, heads).layers
    shown = choices.heads_of(study, heads, choices.all_heads(study))
    chance = expected(study)

    def rows_of(layer: int) -> Rows:
        histogram = study.arrays["distance_histogram"][choices.place_of(study, layer)][shown]
        return Rows(
            counts=histogram[:, 1:],
            edges=edges(histogram.shape[-1]),
            labels=[f"head {head}" for head in shown],
            colours=[style.head_colour(head) for head in shown],
            means=study.heads[study.heads.layer == layer].set_index("head").mean_distance[shown].to_numpy(),
            mean_format="{:.1f}",
            expected=chance,
        )

    figure = layer_panels(study, chosen, shown, rows_of, "distance j − i in tokens")
    legend(figure, chance=chance is not None)
    return figure


def edges(length: int) -> NDArray[Any]:
    """(S,): of a bin for each distance from 1 to S - 1, with the distance in its middle."""
    return np.arange(length) + 0.5


def expected(study: StudyFolder) -> NDArray[Any] | None:
    """(S - 1,): the distribution over distances 1, 2, ... of all pairs; None where the study can't tell it."""
    if distance_chance(study) is None:
        return None
    counts = np.arange(study.manifest.options.length - 1, 0, -1)
    shares: NDArray[Any] = counts / counts.sum()
    return shares
