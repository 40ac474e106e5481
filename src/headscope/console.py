"""The one door to the terminal: what is printed shows itself, and steers nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from headscope.wording import visible


class _Door(Console):
    """Colours are rich's own; names of models, files and folders pass as text."""

    def render_str(self, text: str, **settings: Any) -> Text:
        """Before it is measured, so that tables leave room for what is shown."""
        return super().render_str(visible(text), **settings)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def console(**settings: Any) -> Console:
    """Where tables, bars and coloured sentences are printed."""
    return _Door(highlight=False, **settings)


def say(sentence: str, *, error: bool = False) -> None:
    """One plain line on standard output or standard error."""
    print(visible(sentence), file=sys.stderr if error else sys.stdout)
