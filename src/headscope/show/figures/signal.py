"""Signal over noise by depth: what each relation leaves in N beyond distance, without a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import MaxNLocator

from headscope.corpus.traits import ORDER, SENTENCES, WORDS
from headscope.insight.choices import head_at
from headscope.insight.sureness import layer_intervals
from headscope.show.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder

TITLE = "Signal over noise by depth"
NEEDS = WORDS | SENTENCES | ORDER
CAPTION = (
    "How far the similarity N of equal tokens, and of tokens of one sentence, lies above that of other pairs as far "
    "apart in the same window, in units of the noise: the root mean square of N about its mean at each distance. The "
    "line is the layer, over all its heads, with 95 % intervals over texts; the dots are its heads. At 0 the relation "
    "leaves no trace beyond distance. No threshold enters."
)
RELATIONS = (("signal_to_noise_repeat", "equal tokens"), ("signal_to_noise_sentence", "one sentence"))


@style.styled
def draw(study: StudyFolder) -> Figure:
    """A panel for each relation, each on its own scale."""
    figure = style.new_figure(study, 2.7 + style.FOOT)
    panels = figure.subplots(1, len(RELATIONS))
    for number, (axes, (column, called)) in enumerate(zip(panels, RELATIONS, strict=True)):
        _panel(axes, study, column, called, number)
    panels[0].set_ylabel("signal / noise")
    return figure


def _panel(axes: Axes, study: StudyFolder, column: str, called: str, number: int) -> None:
    layers, values = study.column("layers", "layer"), study.column("layers", column)
    colour = style.head_colour(number)
    heads = study.column("heads", column)
    axes.scatter(study.column("heads", "layer"), heads, s=5, color=style.paler(colour), linewidths=0, label="heads")
    axes.plot(layers, values, color=colour, linewidth=1.3, label="layer")
    interval = layer_intervals(study, column)
    if interval is not None:
        reach = np.abs(np.array(interval) - values)
        axes.errorbar(layers, values, reach, fmt="o", markersize=3, color=colour, linewidth=1, capsize=2, label="95 %")
    axes.axhline(0, **style.CHANCE)
    style.title(axes, called.capitalize())
    axes.set_xlabel("layer")
    axes.spines[["top", "right"]].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    if not np.isnan(heads).all():
        top = int(np.nanargmax(heads))
        style.name_dot(axes, study, head_at(study, top), heads[top])
    axes.legend(loc="best")
