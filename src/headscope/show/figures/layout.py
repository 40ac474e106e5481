"""Where panels stand in a figure."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox


class MeasuredOnce(ConstrainedLayoutEngine):
    """Constrained layout, in half of its time.

    Matplotlib lays panels out, and does it again when they have their size. What takes long is to find out how far
    tick labels, titles and colour bars stick out of a panel; that hardly changes with its size, so it is found once.
    """

    def execute(self, fig: Figure) -> None:
        panels: Any = fig.axes
        for axes in panels:
            for one in (axes, *axes.child_axes):
                one.spines[:].set_in_layout(False)  # no larger than their panel, and slow to say so
            axes.get_tightbbox = _Measured(axes)
        try:
            super().execute(fig)
        finally:
            for axes in panels:
                del axes.get_tightbbox  # the method of all panels is there again


class _Measured:
    """Stands in for `get_tightbbox` of a panel: measures it when it is called first."""

    def __init__(self, axes: Axes) -> None:
        self._axes = axes
        self._measure = axes.get_tightbbox
        self._sticks_out: tuple[float, float, float, float] | None = None

    def __call__(self, *given: Any, **options: Any) -> Bbox | None:
        if self._sticks_out is None:
            box = self._measure(*given, **options)
            if box is None:
                return None
            panel = self._axes.get_window_extent()
            self._sticks_out = (panel.x0 - box.x0, panel.y0 - box.y0, box.x1 - panel.x1, box.y1 - panel.y1)
            return box
        self._axes.apply_aspect()
        panel = self._axes.get_window_extent()
        left, below, right, above = self._sticks_out
        return Bbox.from_extents(panel.x0 - left, panel.y0 - below, panel.x1 + right, panel.y1 + above)
