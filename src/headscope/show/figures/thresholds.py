"""The paper's conclusions at every threshold: which of them depend on the choice of 0.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from headscope.corpus.traits import TEXT
from headscope.insight import choices, judges
from headscope.insight.chance import distance_chance
from headscope.insight.findings import GAP
from headscope.measure.bins import THRESHOLDS
from headscope.show.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "What depends on the threshold"
NEEDS = TEXT
NEEDS_SPECTRA = True
CAPTION = (
    "What the study would say at any threshold, from 0.05 to 0.95; the grey line is the threshold it has, and the band "
    "is where the paper finds few values of N. Where a curve is level over the band, the choice of the threshold "
    "matters little. A lift is a share divided by what chance gives: solid, by chance given distance, so that 1 is "
    "what distance alone explains; dotted, by plain chance. Below: how many heads exceed chance by more than a tenth, "
    "and how many heads of the last layer look far, as the paper's head 8 does: a mean distance of 50 tokens or more, "
    "scaled to the window. All shares are pooled over the pairs of all windows; the tables of the study hold means "
    "over windows instead. Focal tokens are known at its own threshold alone."
)
PLAIN: dict[str, Any] = {"linestyle": (0, (1, 1.4)), "linewidth": 0.9}
SENTENCE, REPEAT = "#004b87", "#b47800"
"""Two of the colours of heads, apart for every reader and from those of the layers."""


def shows(study: StudyFolder, layers: Sequence[int] | None = None) -> choices.Shown:
    return choices.Shown(tuple(choices.layers_of(study, layers, choices.EARLY_MIDDLE_LAST)))


@style.styled
def draw(study: StudyFolder, *, layers: Sequence[int] | None = None) -> Figure:
    """Layers: by default an early, a middle and the last one."""
    chosen = shows(study, layers).layers
    places = [choices.place_of(study, layer) for layer in chosen]
    colours = style.layer_colours(chosen)
    at = [study.at(threshold) for threshold in THRESHOLDS]

    def of_layers(name: str) -> NDArray[np.float64]:
        """(T, layers shown)"""
        return np.array([some.column("layers", name)[places] for some in at])

    def of_heads(name: str) -> NDArray[np.float64]:
        """(T, L x H)"""
        return np.array([some.column("heads", name) for some in at])

    figure = style.new_figure(study, 3.7 + style.FOOT)
    panels = figure.subplots(2, 3, sharex=True).ravel()
    for axes, title in zip(panels, TITLES, strict=True):
        style.title(axes, title)
        axes.axvspan(*GAP, color=style.PALE, linewidth=0)
        axes.axvline(study.manifest.options.threshold, color=style.GREY, linewidth=0.8)
        axes.set_xlim(0, 1)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[3:]:
        axes.set_xlabel("threshold")
    many, distance, sentence, repeat, heads, far = panels

    _curves(many, of_layers("pairs_per_window"), colours)
    many.set_ylabel("pairs")
    if (of_layers("pairs") > 0).any():
        style.logarithmic(many)
    _curves(distance, of_layers("mean_distance"), colours)
    usual = distance_chance(study)
    if usual is not None:
        distance.axhline(usual, **style.CHANCE)
    distance.set_ylabel("tokens")
    _from_zero(distance)
    for axes, name in ((sentence, "same_sentence"), (repeat, "repeat")):
        shares = of_layers(f"{name}_probability")
        _curves(axes, _lift(shares, of_layers(f"{name}_chance_by_distance")), colours)
        _curves(axes, _lift(shares, of_layers(f"{name}_chance")), colours, **PLAIN)
        axes.axhline(1, **style.CHANCE)
        axes.set_ylabel("lift")
        _from_zero(axes)
    for name, colour in (("same_sentence", SENTENCE), ("repeat", REPEAT)):
        shares = of_heads(f"{name}_probability")
        for chance, look in ((f"{name}_chance_by_distance", {}), (f"{name}_chance", PLAIN)):
            heads.plot(THRESHOLDS, (_lift(shares, of_heads(chance)) > OVER).sum(1), color=colour, **look)
    last = np.repeat(study.manifest.layers, study.manifest.model.heads) == study.manifest.layers[-1]
    limit = judges.far(study)
    far.plot(THRESHOLDS, (of_heads("mean_distance")[:, last] >= limit).sum(1), color=colours[-1])
    for axes, most in ((heads, len(last)), (far, last.sum())):
        axes.set_ylim(-0.03 * most, 1.03 * most)
        axes.set_ylabel(f"of {most} heads")
    heads.legend(handles=[Line2D([], [], color=c, label=n) for n, c in (("sentence", SENTENCE), ("repeats", REPEAT))])
    many.legend(handles=[Line2D([], [], color=c, label=f"layer {n}") for n, c in zip(chosen, colours, strict=True)])
    distance.legend(handles=[Line2D([], [], label="chance", **style.CHANCE)])
    sentence.legend(
        handles=[
            Line2D([], [], color=style.GREY, label="by distance"),
            Line2D([], [], color=style.GREY, label="by plain chance", **PLAIN),
        ]
    )
    return figure


OVER = 1.1
"""Lift from which a head exceeds chance: a tenth, as everywhere."""
TITLES = (
    "high pairs a window",
    "mean distance",
    "same sentence",
    "repeated tokens",
    "heads over chance",
    "last layer: heads that look far",
)


def _curves(axes: Axes, values: NDArray[np.float64], colours: Sequence[Any], **look: Any) -> None:
    """values: (T, curves)"""
    for curve, colour in zip(values.T, colours, strict=True):
        axes.plot(THRESHOLDS, curve, color=colour, **look)


def _from_zero(axes: Axes) -> None:
    """Up to a little over the highest of what is drawn, so that no curve hides on the frame."""
    axes.set_ylim(0, 1.06 * max(axes.get_ylim()[1], 1e-9))


def _lift(shares: NDArray[np.float64], chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """NaN where chance gives nothing."""
    lift: NDArray[np.float64] = np.full(shares.shape, np.nan)
    np.divide(shares, chances, out=lift, where=chances > 0)
    return lift
