"""The slider of the page: what its tables and findings say at every threshold, packed for the browser.

All numbers and sentences are made here, by what makes them everywhere; the script of the page only puts them in place.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from headscope.folder.study_folder import StudyAt, StudyFolder
from headscope.insight.every_threshold import EveryThreshold, at_every_threshold
from headscope.insight.findings import Finding
from headscope.measure.bins import THRESHOLDS
from headscope.measure.catalogue import columns
from headscope.measure.declaration import Column
from headscope.show.numbers import all_shown, shown
from headscope.wording import listed


@dataclass(frozen=True)
class Slider:
    """packed: see `_packed`. start: where the slider stands at first; own: its step there if the threshold of the study
    is one of those that it can be read at, else None. only_own: topics that do not move. beside: see `_beside`."""

    packed: str
    start: float
    own: int | None
    only_own: str
    beside: list[list[str]]


@dataclass(frozen=True)
class AtThresholds:
    """What a study says at every threshold. cells: of `heads` and `layers`, of each column that moves, for each row its
    cells at all thresholds, with blanks between them."""

    told: EveryThreshold
    cells: dict[str, dict[str, list[str]]]


def at_thresholds(study: StudyFolder) -> AtThresholds | None:
    """None for a study of an older version, which can't be read at others, and where the page is about one."""
    if isinstance(study, StudyAt) or not study.keeps_spectra:
        return None
    told = at_every_threshold(study)
    cells = {}
    for table in ("heads", "layers"):
        moving = [term for term in _known(study, table) if term.of_high_pairs]
        cells[table] = {term.name: _cells([getattr(at, table) for at in told.studies], term) for term in moving}
    return AtThresholds(told, cells)


def slider(
    study: StudyFolder, moving: AtThresholds, findings_html: Callable[[list[Finding], list[str]], str]
) -> Slider:
    """findings_html: the findings as the page shows them, and the topics that are known at the own threshold alone."""
    told = moving.told
    pages = [findings_html(told.at(place), told.only_own) for place in range(len(THRESHOLDS))]
    start = float(THRESHOLDS[np.abs(THRESHOLDS - study.manifest.options.threshold).argmin()])
    on_a_step = bool(np.isclose(start, study.manifest.options.threshold, rtol=0))
    return Slider(
        _packed({"findings": pages, **moving.cells}),
        start,
        round(start * 100) if on_a_step else None,
        listed([topic.lower() for topic in told.only_own]) if told.only_own else "",
        _beside(study, study.at(start)) if on_a_step else [],
    )


def _packed(content: dict[str, object]) -> str:
    """JSON, deflated, in base64. findings: the list at each threshold, as HTML; the rest: see `AtThresholds.cells`."""
    plain = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(plain)).decode("ascii")


def _cells(tables: list[pd.DataFrame], term: Column) -> list[str]:
    if term.name not in tables[0]:
        return [" ".join("–" * len(tables))] * len(tables[0])
    values = np.array([table[term.name].to_numpy(dtype=np.float64) for table in tables])
    return [" ".join(all_shown(row, term)) for row in values.T.tolist()]


def _known(study: StudyFolder, table: str) -> list[Column]:
    known = columns(study.manifest.gives)
    return [known[name] for name in getattr(study, table).columns if name in known]


def _beside(study: StudyFolder, at: StudyAt) -> list[list[str]]:
    """The layers' shares at the study's own threshold, mean over windows and pooled over pairs side by side: a row of
    headings, then a row for each layer. Empty where there are none."""
    known = columns(study.manifest.gives)
    terms = [
        known[name]
        for term in _known(study, "layers")
        if term.given_distance is not None and term.given_distance in at.layers
        for name in (term.name, term.given_distance)
    ]
    if not terms:
        return []
    rows = [["layer", *(f"{term.label},\u00a0%: {how}" for term in terms for how in ("windows", "pooled"))]]
    for place, layer in enumerate(study.manifest.layers):
        pairs = [(float(some.layers[term.name].iloc[place]), term) for term in terms for some in (study, at)]
        rows.append([str(layer), *(shown(value, term) for value, term in pairs)])
    return rows
