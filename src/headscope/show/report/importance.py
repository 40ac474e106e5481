"""The section of the page on what each head is worth, where an ablation lies in the folder of the study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.errors import HeadscopeError
from headscope.folder.ablation_folder import AblationFolder, ablation_of
from headscope.folder.study_folder import StudyFolder
from headscope.insight.importance import ALL, WITHIN, predictors, sentence
from headscope.show.figures import importance, style
from headscope.show.report.pictures import data_uri
from headscope.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST = 12
"""Columns that are shown, those with the strongest correlation."""
HEADINGS = ["column", "all heads", "95 % over texts", "within layers", "95 % over texts"]


@dataclass(frozen=True)
class ImportancePicture:
    """As the page shows a figure."""

    id: str
    title: str
    caption: str
    source: str
    width: int
    height: int
    label: str = ""
    drawn: str = ""
    topics: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImportanceShown:
    """lines: what was found, a sentence each. rows: columns of the study, and how they go with what a head is worth."""

    lines: list[str]
    pictures: list[ImportancePicture] = field(default_factory=list)
    headings: list[str] = field(default_factory=lambda: HEADINGS)
    rows: list[list[str]] = field(default_factory=list)


def importance_shown(study: StudyFolder) -> ImportanceShown | None:
    """None where the study has no ablation, or one of other weights."""
    try:
        ablation = ablation_of(study)
        return None if ablation is None else _shown(study, ablation)
    except HeadscopeError as problem:
        return ImportanceShown([str(problem)])


def _shown(study: StudyFolder, ablation: AblationFolder) -> ImportanceShown:
    facts = ablation.manifest
    lines = [
        f"Heads were silenced, their outputs replaced by {_INSTEAD[facts.by]}, over "
        f"{counted(facts.counts.windows, 'window')} of {facts.options.length} tokens."
    ]
    if facts.undisturbed_loss is not None:
        lines.append(f"The undisturbed model has a loss of {facts.undisturbed_loss:.3f} ({facts.predicts}).")
    pictures, rows = [], []
    if ablation.heads is not None:
        names = list(zip(ablation.heads["layer"].tolist(), ablation.heads["head"].tolist(), strict=True))
        table = predictors(names, ablation.importance, study)
        lines.append(sentence(ablation, table))
        rows = _rows(table)
        drawn = importance.draw(ablation, study)
        pictures.append(_picture("importance", importance.TITLE, importance.CAPTION, drawn))
    if ablation.curve is not None:
        drawn = importance.draw_curve(ablation)
        pictures.append(_picture("pruning", importance.CURVE_TITLE, importance.CURVE_CAPTION, drawn))
    return ImportanceShown(lines, pictures, rows=rows)


_INSTEAD = {"mean": "their means over the corpus", "zero": "zeros", "shuffle": "those on another window"}


def _rows(table: pd.DataFrame) -> list[list[str]]:
    """The strongest over all heads, and the same columns within layers."""
    within = table[table["where"] == WITHIN].set_index("column")
    rows = []
    for row in table[table["where"] == ALL].head(MOST).to_dict("records"):
        other = within.loc[row["column"]].to_dict() if row["column"] in within.index else {}
        rows.append([row["column"], *_told(row), *_told(other)])
    return rows


def _told(row: Mapping[Any, Any]) -> tuple[str, str]:
    """A correlation, with a star where it is told from 0, and its interval."""
    if not row or np.isnan(row["correlation"]):
        return "–", "–"
    ends = "–" if np.isnan(row["low"]) else f"{row['low']:+.2f} to {row['high']:+.2f}"
    return f"{row['correlation']:+.2f}{' *' if row['found'] else ''}", ends


def _picture(name: str, title: str, caption: str, figure: Figure) -> ImportancePicture:
    from PIL import Image

    return ImportancePicture(f"fig-{name}", title, caption, *data_uri(Image.fromarray(style.pixels(figure))))
