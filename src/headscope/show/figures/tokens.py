"""Text drawn token by token, in a typewriter font: its letters are equally wide, so lines can be broken unmeasured."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle

from headscope.show.pages.wording import Segment
from headscope.wording import visible

POINTS = 72
LETTER = 0.602
"""Width of a letter of DejaVu Sans Mono, of its size."""


def page(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Bare axes in which to write; all in inches, and points from the upper left corner inside."""
    across, down = figure.get_size_inches()
    axes = figure.add_axes((left / across, bottom / down, width / across, height / down))
    axes.set_in_layout(False)
    axes.set_xlim(0, width * POINTS)
    axes.set_ylim(height * POINTS, 0)
    axes.set_axis_off()
    return axes


def write(axes: Axes, x: float, y: float, text: str, size: float, **style: Any) -> None:
    """Text on the line y, exactly as it is: a dollar sign begins no formula."""
    font = FontProperties(family=["DejaVu Sans Mono", *axes.xaxis.label.get_fontfamily()], size=size)
    font.set_weight(style.pop("weight", "normal"))
    axes.text(x, y, visible(text), fontproperties=font, va="baseline", parse_math=False, clip_on=False, **style)


def letters(text: str) -> int:
    """How many letters wide a text is drawn; East Asian characters count twice, marks not at all.

    >>> letters("abc"), letters("京都")
    (3, 4)
    """
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def broken(segments: Sequence[Segment], most: int) -> list[list[tuple[int, Segment]]]:
    """Lines of at most `most` letters: (letter at which it begins, segment). A token is cut where it fills a line."""
    lines: list[list[tuple[int, Segment]]] = [[]]
    used = 0
    for segment in _spaced(segments):
        text = segment.characters
        if used + letters(text) > most and used:
            lines.append([])
            used = 0
        if segment.token is None and not used:
            continue
        while text:
            piece = text[: most - used]
            lines[-1].append((used, segment._replace(characters=piece)))
            used += letters(piece)
            text = text[len(piece) :]
            if text:
                lines.append([])
                used = 0
    return lines


def _spaced(segments: Sequence[Segment]) -> Iterator[Segment]:
    """What lies between tokens is one space; special tokens have one on either side."""
    space = Segment(" ", None)
    for segment in segments:
        if segment.token is None:
            yield space
        elif segment.special:
            yield from (space, segment, space)
        else:
            yield segment


def flow(
    axes: Axes,
    lines: Sequence[Sequence[tuple[int, Segment]]],
    size: float,
    spacing: float,
    colour_of: Callable[[int], Any],
    bars_of: Callable[[int], Sequence[Any]],
) -> None:
    """Write lines; colour_of(token) is put behind a token, bars_of(token) are colours of lines under it."""
    letter = LETTER * size
    for number, line in enumerate(lines):
        y = (number + 0.8) * spacing
        for start, segment in line:
            if segment.token is None:
                continue
            x, width = start * letter, letters(segment.characters) * letter
            colour = colour_of(segment.token)
            if colour is not None:
                axes.add_patch(Rectangle((x, y - 0.85 * size), width, 1.1 * size, color=colour, linewidth=0))
            for below, bar in enumerate(bars_of(segment.token)):
                axes.add_patch(
                    Rectangle((x, y + (0.3 + 0.24 * below) * size), width, 0.18 * size, color=bar, linewidth=0)
                )
            write(axes, x, y, segment.characters, size, color="black" if colour is not None else "#444444")
