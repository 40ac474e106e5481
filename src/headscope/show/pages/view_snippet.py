"""A view in a notebook: static, without script or network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.one_text.describing import (
    about_head,
    about_view,
    nothing_singled_out,
    pairs_of_token,
    segments,
    stands_out,
)
from headscope.show.pages.templates import environment
from headscope.wording import abridged, isolated, short

if TYPE_CHECKING:
    from headscope.show.objects import View

HEADS = 3
PAIRS = 8


def snippet(view: View) -> str:
    """The text coloured by the most telling head, and the first pairs of a few."""
    heads = view.telling_heads(count=HEADS)
    pairs = pairs_of_token(view, *heads[0])
    focal = view.focal(*heads[0])
    return environment().get_template("snippet.html").render(
        about=about_view(view),
        about_study=view.about_study,
        goes_on=f"The text goes on: this is a window of {view.size} tokens." if view.continues else None,
        in_study=view.in_study(*heads[0]),
        notice=nothing_singled_out(view),
        heads=[(place, stands_out(view, *place), about_head(view, *place), view.pairs(*place)) for place in heads],
        top=PAIRS,
        segments=[piece._replace(characters=abridged(piece.characters)) for piece in segments(view)],
        strength=(pairs / max(int(pairs.max()), 1)).tolist(),
        focal=focal.positions if focal else [],
        short=short,
        isolated=isolated,
    )  # fmt: skip
