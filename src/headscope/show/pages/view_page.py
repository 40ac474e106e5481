"""A view on one page: the viewer with one text inside it; where scripts are blocked, a picture and tables."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

from headscope.one_text.describing import about_view
from headscope.show.figures.style import settings
from headscope.show.pages.view_snippet import snippet
from headscope.show.view_picture import draw
from headscope.show.viewer.page import frame
from headscope.show.viewer.text_page import text_page
from headscope.wording import head_name

if TYPE_CHECKING:
    from headscope.one_text.telling import Place
    from headscope.show.objects import View

MOST_IN_A_NOTEBOOK = 144 * 256**2
"""Heads times tokens times tokens; what is larger would weigh a notebook down."""


def page(view: View, layer: int, head: int) -> str:
    """The whole page, opened at one head."""
    return text_page(view, (layer, head), view.study, _picture(view, (layer, head)) + snippet(view))


def in_notebook(view: View) -> str:
    """The viewer in a frame, and beneath it what is shown where frames or scripts are not."""
    static = snippet(view)
    if len(view.layers) * view.heads * view.size**2 > MOST_IN_A_NOTEBOOK:
        return f"<p>view.html() gives a page with every head; it is too large for a cell.</p>{static}"
    framed = frame(page(view, *view.telling_heads(count=1)[0]), about_view(view))
    summary = "The same without scripts (a notebook that is not trusted shows only this)"
    return f"{framed}<details><summary>{summary}</summary>{static}</details>"


def _picture(view: View, place: Place) -> str:
    buffer = io.BytesIO()
    with settings():
        draw(view, [place]).savefig(buffer, format="png", dpi=110)
    content = base64.b64encode(buffer.getvalue()).decode("ascii")
    alternative = f"Attention and similarity of {head_name(place)}"
    return f'<p><img alt="{alternative}" src="data:image/png;base64,{content}"></p>'
