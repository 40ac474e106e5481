"""A comparison on one page that opens without a network."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from headscope.show.pages.templates import environment

if TYPE_CHECKING:
    from headscope.insight.comparing import Compared

MATCHES = 24
"""The closest ones, shown on the page; all are in `Comparison.matches`."""


def page(comparison: Compared) -> str:
    return environment().get_template("compare.html").render(**_parts(comparison))


def snippet(comparison: Compared) -> str:
    """For notebooks."""
    return environment().get_template("compare_parts.html").render(**_parts(comparison))


def _parts(comparison: Compared) -> dict[str, Any]:
    return {
        "comparison": comparison,
        "about": [_about(name, study) for name, study in comparison.studies.items()],
        "figure": Markup(_svg(comparison)),
        "claims": comparison.claims.to_dict("records"),
        "rows": comparison.table.to_dict("records"),
        "matches": comparison.matches.head(MATCHES).to_dict("records"),
        "same_texts": comparison.same_texts,
    }


def _about(name: str, study: Any) -> dict[str, Any]:
    model = study.manifest.model
    return {
        "name": name,
        "architecture": model.architecture or "unknown",
        "layers": model.layers,
        "heads": model.heads,
        "windows": f"{study.windows:,}",
        "texts": study.manifest.source.name,
    }


def _svg(comparison: Compared) -> str:
    from headscope.show.figures.comparison import draw
    from headscope.show.figures.style import settings

    buffer = io.StringIO()
    with settings():
        draw(comparison).savefig(buffer, format="svg", metadata={"Date": None})
    drawn = buffer.getvalue()
    return drawn[drawn.index("<svg") :]
