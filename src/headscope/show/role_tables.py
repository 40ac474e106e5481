"""Roles in the terminal: of one study layer by layer, of several models side by side."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from headscope.folder.study_folder import StudyFolder
from headscope.insight.comparing import Compared
from headscope.insight.roles import roles_by_layer


def by_layer(study: StudyFolder) -> Table | None:
    """How many heads of each layer have which role; None where none has any."""
    counts = roles_by_layer(study.roles) if study.roles is not None else None
    if counts is None or not len(counts.columns):
        return None
    table = _table("layer", *counts.columns, "none")
    heads = study.manifest.model.heads
    for layer, row in counts.iterrows():
        table.add_row(str(layer), *(_count(count) for count in row), str(heads - int(row.sum())))
    return table


def by_model(comparison: Compared) -> Table:
    """A row a role, a column a model: how many of its heads, and how many early, in the middle and late."""
    models = list(dict.fromkeys(comparison.roles["model"]))
    table = _table("role", *map(escape, models))
    table.columns[0].justify = "left"
    for role, found in comparison.roles.groupby("role", sort=False):
        cells = found.set_index("model")
        told = [
            f"{cells.heads[name]} ({cells.early[name]}, {cells.middle[name]}, {cells.late[name]})"
            if cells.heads[name]
            else "·"
            for name in models
        ]
        table.add_row(str(role), *told)
    return table


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, justify="right")
    return table


def _count(count: int) -> str:
    return str(count) if count else "·"
