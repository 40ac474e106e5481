"""The section of the page on what each head does: a map of roles, their rules, and the numbers they rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.corpus.null_kinds import CALLED, NULLS
from headscope.folder.study_folder import StudyFolder
from headscope.insight.roles import rules_of, summary, why_no_roles
from headscope.show.figures.role_marks import marked


@dataclass(frozen=True)
class Mark:
    """Of a role: its colour and letter, and the rule that gives it."""

    role: str
    colour: str
    letter: str
    rule: str
    heads: int


@dataclass(frozen=True)
class MapCell:
    letter: str
    colour: str
    says: str


@dataclass(frozen=True)
class RolesShown:
    """summary: in a sentence, or why there are none. map: a row a layer: its number, then a cell a head."""

    summary: str
    marks: list[Mark]
    map: list[tuple[int, list[MapCell]]]
    headings: list[str]
    rows: list[list[str]]


def roles_shown(study: StudyFolder) -> RolesShown:
    table = study.roles
    if table is None:
        return RolesShown(why_no_roles(study) or "", [], [], [], [])
    counts = table["role"].value_counts()
    rules = rules_of(table["role"])
    marks = marked(table["role"])
    shown = [Mark(role, *mark, rules[role], int(counts[role])) for role, mark in marks.items()]
    records = table.to_dict("records")
    by_layer = [
        (layer, [_cell(row, marks) for row in records if row["layer"] == layer]) for layer in study.manifest.layers
    ]
    named = [row for row in records if row["role"]]
    headings = [
        "layer",
        "head",
        "role",
        "also",
        "shown by",
        "value",
        "95 %",
        *(CALLED[null] for null in NULLS),
        "halves",
    ]
    return RolesShown(summary(study, table), shown, by_layer, headings, [_row(row) for row in named])


def _cell(row: dict[Any, Any], marks: dict[str, tuple[str, str]]) -> MapCell:
    where = f"Layer {row['layer']}, head {row['head']}"
    if not row["role"]:
        short = f": {row['falls_short']}" if row["falls_short"] else ""
        return MapCell("", "", f"{where}: no role{short}")
    colour, letter = marks[row["role"]]
    return MapCell(letter, colour, f"{where}: {row['role']}, {row['quantity']} {_number(row['value'])}")


def _row(row: dict[Any, Any]) -> list[str]:
    return [
        str(row["layer"]),
        str(row["head"]),
        row["role"],
        row["also"],
        row["quantity"],
        _number(row["value"]),
        "–" if np.isnan(row["low"]) else f"{_number(row['low'])} to {_number(row['high'])}",
        *(_number(row[null]) for null in NULLS),
        "same" if row["same_in_halves"] else "differ",
    ]


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"
