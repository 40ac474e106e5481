"""A comparison on one page that opens without a network."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from headscope.corpus.null_kinds import NULLS
from headscope.insight.comparing import QUANTITIES
from headscope.insight.differing import shortened
from headscope.insight.head_by_head import called
from headscope.show.figures import difference_map
from headscope.show.figures.comparison import draw, draw_roles
from headscope.show.figures.style import settings
from headscope.show.pages.templates import environment
from headscope.wording import ranged

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.insight.comparing import Compared
    from headscope.insight.head_by_head import HeadByHead

MATCHES = 24
"""The closest ones, shown on the page; all are in `Comparison.matches`."""
LARGEST = 24
"""The largest differences likewise; all are in `Comparison.differences`."""


def page(comparison: Compared) -> str:
    return environment().get_template("compare.html").render(**_parts(comparison))


def snippet(comparison: Compared) -> str:
    """For notebooks."""
    return environment().get_template("compare_snippet.html").render(**_parts(comparison))


def _parts(comparison: Compared) -> dict[str, Any]:
    return {
        "comparison": comparison,
        "about": [_about(name, study) for name, study in comparison.studies.items()],
        "figure": Markup(_svg(draw(comparison))),
        "roles": _roles(comparison),
        "roles_figure": Markup(_svg(draw_roles(comparison))) if len(comparison.roles) else "",
        "beside": _beside(comparison),
        "claims": comparison.claims.to_dict("records"),
        "rows": comparison.table.to_dict("records"),
        "matches": comparison.matches.head(MATCHES).to_dict("records"),
        "what_differs": [[row[0], *map(shortened, row[1:])] for row in comparison.what_differs.to_numpy().tolist()],
        "head_by_head": comparison.head_by_head and _head_by_head(comparison.head_by_head),
    }


def _head_by_head(found: HeadByHead) -> dict[str, Any]:
    largest = found.largest(LARGEST).to_dict("records")
    return {
        "sentences": found.sentences,
        "paired": found.paired,
        "same_model": found.same_model,
        "map": "" if found.equal else Markup(_svg(difference_map.draw(found))),
        "rows": [
            [
                f"{row['layer']}, {row['head']}",
                called(found.columns[row["column"]]),
                *found.in_words(row),
                _difference(row, found.columns[row["column"]].unit),
            ]
            for row in largest
        ],
        "in_all": int(found.table["differs"].sum()),
    }


def _difference(row: dict[Any, Any], unit: str) -> str:
    """With its sign; of shares in percentage points, which are no shares of anything."""
    by = 100 if unit == "share" else 1
    value, low, high = (row[name] * by for name in ("difference", "low", "high"))
    told = ranged(value, low, high, unit if by == 1 else "points")
    return ("+" + told if row["difference"] > 0 else told).replace("-", "−")


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


def _roles(comparison: Compared) -> list[list[str]]:
    """A row a role: its name, then for each model how many heads, early, middle and late."""
    rows = []
    for role, found in comparison.roles.groupby("role", sort=False):
        cells = found.set_index("model")
        told = [
            f"{cells.heads[name]} ({cells.early[name]}, {cells.middle[name]}, {cells.late[name]})"
            if name in cells.index
            else "–"
            for name in comparison.models
        ]
        rows.append([str(role), *told])
    return rows


def _beside(comparison: Compared) -> list[list[str]]:
    """A row per model and quantity; none where no study has nulls."""
    table = comparison.beside
    if table.empty or table[list(NULLS)].isna().all(axis=None):
        return []

    def number(value: float) -> str:
        return "–" if np.isnan(value) else f"{value:.2f}"

    return [
        [
            row["model"],
            QUANTITIES[row["quantity"]].label,
            str(row["layer"]),
            *(number(row[name]) for name in ("value", "chance", *NULLS)),
        ]
        for row in table.to_dict("records")
    ]


def _svg(figure: Figure) -> str:
    buffer = io.StringIO()
    with settings():
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    drawn = buffer.getvalue()
    return drawn[drawn.index("<svg") :]
