"""Fig. 8: how often the two tokens of a high pair are in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headscope.corpus.traits import SENTENCES
from headscope.insight import choices
from headscope.show.figures import style
from headscope.show.figures.rows import layer_panels, legend, share_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "High pairs within one sentence"
NEEDS = SENTENCES
CAPTION = (
    "A row for each head: the distribution over windows of the share of high pairs whose two tokens are in the same "
    "sentence. The dashed line is chance: the share among all pairs of the same windows; the dotted line is chance "
    "given distance: the share among pairs that lie as far apart. A head whose mean, the thick mark with its 95 % "
    "interval over texts, lies to the right of the dotted line keeps to sentences; one whose mean lies on it is merely "
    "near-sighted. Windows without high pairs are left out. Heights go by the square root of the share of windows, on "
    "one scale for all rows of a panel."
)


def shows(study: StudyFolder, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> choices.Shown:
    return choices.rows_shown(study, layers, heads, choices.LAST)


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None, heads: choices.Heads | None = None) -> Figure:
    """Layers: by default the last one. Heads: by default all."""
    chosen = shows(study, layers, heads).layers
    shown = choices.heads_of(study, heads, choices.all_heads(study))
    columns = ("same_sentence_histogram", "same_sentence_probability", "same_sentence_chance")
    figure = layer_panels(
        study,
        chosen,
        shown,
        lambda layer: share_rows(study, layer, shown, *columns),
        "share of high pairs within one sentence",
    )
    legend(figure, chance=True, given_distance="same_sentence_chance_by_distance" in study.heads)
    return figure
