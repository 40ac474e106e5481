"""A study of images: distance on the grid of patches, and attention on the first token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from headscope.show.figures.style import CHANCE, WIDTH, head_colour, styled, title

if TYPE_CHECKING:
    from headscope.vision import ImageStudy


@styled
def draw(study: ImageStudy) -> Figure:
    """A dot a head, a line a layer's mean; dashed: all pairs of patches."""
    figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
    near, first = figure.subplots(1, 2)
    for axes, column, label in (
        (near, "mean_distance", "mean distance of high pairs, patches"),
        (first, "attention_to_first", "attention on the first token, share"),
    ):
        axes.scatter(study.heads["layer"], study.heads[column], s=6, color=head_colour(1))
        axes.plot(study.layers["layer"], study.layers[column], color=head_colour(0), linewidth=1.2)
        axes.set_xlabel("layer")
        axes.set_ylim(bottom=0)
        title(axes, label)
    near.axhline(study.distance_chance, **CHANCE)
    return figure
