"""A view in a notebook: static, without script or network."""

from __future__ import annotations

from headscope.one_text.view import View
from headscope.show.pages.templates import environment
from headscope.show.pages.wording import about_head, about_view, abridged, isolated, pairs_of_token, segments, short

HEADS = 3
PAIRS = 8


def snippet(view: View) -> str:
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
