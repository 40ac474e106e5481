"""A study of images: distance on the grid of patches, and attention on the first token, by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.corpus.traits import PATCHES
from headscope.insight.chance import distance_chance
from headscope.insight.choices import nearest_and_farthest, place_of_head
from headscope.show.figures import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Distance on the grid, and attention on the first token"
NEEDS = PATCHES
CAPTION = (
    "A dot for each head, a line for the mean of each layer. Left: how far apart the two patches of a high pair are, "
    "in patches; the dashed line is the mean over all pairs of patches. Low dots are heads that relate neighbouring "
    "patches. Right: the share of all attention that goes to the first token, which is no patch."
)


@style.styled
def draw(study: StudyFolder) -> Figure:
    figure = style.new_figure(study, 2.4 + style.FOOT)
    near, first = figure.subplots(1, 2)
    for axes, column, label in (
        (near, "mean_distance", "Mean distance of high pairs, in patches"),
        (first, "attention_to_first", "Attention on the first token, share"),
    ):
        axes.scatter(study.heads["layer"], study.column("heads", column), s=6, color=style.head_colour(1), label="head")
        axes.plot(
            study.layers["layer"],
            study.column("layers", column),
            color=style.head_colour(0),
            linewidth=1.2,
            label="layer",
        )
        axes.set_xlabel("layer")
        axes.margins(y=0.08)
        axes.set_ylim(bottom=0)
        axes.xaxis.get_major_locator().set_params(integer=True)
        style.title(axes, label)
    for head in nearest_and_farthest(study):
        style.name_dot(near, study, head, study.column("heads", "mean_distance")[place_of_head(study, head)])
    chance = distance_chance(study)
    if chance is not None:
        near.axhline(chance, label="all pairs of patches", **style.CHANCE)
    near.legend(loc="best")
    return figure
