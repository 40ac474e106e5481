"""Panels are laid out as matplotlib does it, in half of the time."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from headscope.show.figures import style
from headscope.show.figures.layout import MeasuredOnce


def panels(engine: type[ConstrainedLayoutEngine]) -> Figure:
    """Two rows of three, with titles, labels and legends of several widths."""
    figure = Figure(figsize=(7, 4), dpi=style.DPI, layout=engine(w_pad=0.04, h_pad=0.04))
    for place, axes in enumerate(figure.subplots(2, 3).ravel()):
        axes.plot([0, 10**place], [0, 10**place])
        axes.set_title(f"panel {place}")
        axes.set_ylabel("some label")
        axes.annotate("beyond", (1, 0.5), xycoords="axes fraction", annotation_clip=False)
    layout = figure.get_layout_engine()
    assert layout is not None
    layout.execute(figure)
    return figure


def maps(engine: type[ConstrainedLayoutEngine]) -> Figure:
    figure = Figure(figsize=(7, 2.5), dpi=style.DPI, layout=engine(compress=True))
    for axes in figure.subplots(1, 3):
        style.heat_map(axes, np.arange(900.0).reshape(30, 30), "attention")
        axes.set_ylabel("query i")
    layout = figure.get_layout_engine()
    assert layout is not None
    layout.execute(figure)
    return figure


@pytest.mark.parametrize("drawn", [panels, maps])
def test_panels_stand_where_matplotlib_puts_them(drawn) -> None:
    ours, theirs = (
        [axes.get_window_extent().bounds for axes in drawn(engine).axes]
        for engine in (MeasuredOnce, ConstrainedLayoutEngine)
    )
    np.testing.assert_allclose(ours, theirs, atol=0.05 * style.DPI)


@pytest.mark.parametrize("drawn", [panels, maps])
def test_nothing_sticks_out_of_a_figure_or_into_another_panel(drawn) -> None:
    figure = drawn(MeasuredOnce)
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    for place, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:place])


def test_a_panel_is_measured_anew_afterwards() -> None:
    figure = panels(MeasuredOnce)
    axes = figure.axes[0]
    before = axes.get_tightbbox()
    axes.set_title("a longer title than before\nand a second line of it")
    assert axes.get_tightbbox().height > before.height
