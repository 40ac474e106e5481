"""A view in a notebook: static, without script or network."""

from __future__ import annotations

from headscope.one_text.describing import about_head, about_view, pairs_of_token, segments
from headscope.one_text.view import OneText
from headscope.show.pages.templates import environment
from headscope.wording import abridged, isolated, short

HEADS = 3
PAIRS = 8


def snippet(view: OneText) -> str:
    """The text coloured by the first telling head of the last layer, and the first pairs of a few heads."""
    layer = view.layers[-1]
    heads = view.telling_heads(layer, HEADS)
    pairs = pairs_of_token(view, layer, heads[0])
    focal = view.focal(layer, heads[0])
    return environment().get_template("snippet.html").render(
        about=about_view(view),
        layer=layer,
        heads=[(head, about_head(view, layer, head), view.pairs(layer, head)) for head in heads],
        top=PAIRS,
        segments=[piece._replace(characters=abridged(piece.characters)) for piece in segments(view)],
        strength=(pairs / max(int(pairs.max()), 1)).tolist(),
        focal=focal.positions if focal else [],
        short=short,
        isolated=isolated,
    )  # fmt: skip
