"""Figures at the layers and heads that findings name, so that each finding can be seen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.choices import Head, Shown, place_of_head
from headscope.insight.findings import Finding, findings
from headscope.show import figures
from headscope.show.helpers import Helpers

MOST = 6
"""Layers and single heads in a picture: with more of them it gets too small to read."""


@dataclass(frozen=True)
class Version:
    """A figure as findings need it. topics: of these; part: which of several pictures, where one does not hold all."""

    number: str
    topics: tuple[str, ...]
    layers: tuple[int, ...]
    heads: tuple[Head, ...]
    part: int

    @property
    def wanted(self) -> figures.Wanted:
        """
        >>> Version("8", ("Same sentence",), (5,), (), 1).wanted
        Wanted(number='8', name='fig08-findings', choices={'layers': (5,)})
        """
        asked: dict[str, Any] = {"layers": self.layers, "heads": self.heads}
        if not hasattr(figures.FIGURES[self.number], "HEADS"):
            asked = {"layers": tuple(sorted({*self.layers, *(layer for layer, _ in self.heads)}))}
        part = f"-{self.part}" if self.part > 1 else ""
        name = f"{figures.file_name(self.number)}-findings{part}"
        return figures.Wanted(self.number, name, {name: value for name, value in asked.items() if value})


def versions(study: StudyFolder, found: Sequence[Finding]) -> list[Version]:
    """Of every figure that a finding refers to and that does not draw its layers and heads by itself, a version with
    those of all such findings; several where they do not fit into one. In the order of the findings."""
    made: dict[str, list[Version]] = {}
    drawable = figures.drawable(study)
    for finding in found:
        number = finding.figure
        if number is None or number not in drawable or _drawn_anyway(study, finding):
            continue
        of_number = made.setdefault(number, [])
        before = of_number[-1] if of_number else Version(number, (), (), (), 1)
        version = _with(study, before, finding)
        if of_number and len({*version.layers, *(layer for layer, _ in version.heads)}) > MOST:
            of_number.append(_with(study, Version(number, (), (), (), before.part + 1), finding))
        else:
            of_number[-1:] = [version]
    return [version for of_number in made.values() for version in of_number]


def _drawn_anyway(study: StudyFolder, finding: Finding) -> bool:
    """Whether the figure draws what the finding names when nothing is asked for, or can't be drawn at all."""
    assert finding.figure is not None
    try:
        drawn: Shown | None = figures.shown(study, finding.figure)
    except AbsentError:
        return True
    return drawn is None or drawn.draws(finding.layers, finding.heads)


def _with(study: StudyFolder, version: Version, finding: Finding) -> Version:
    """A version that shows one more finding. Beside the sum of a layer stands the head that has most of what the
    finding says of the layer, unless one is named."""
    layers, heads = {*version.layers, *finding.layers}, {*version.heads, *finding.heads}
    if getattr(figures.FIGURES[version.number], "HEADS", None) == "beside":
        alone = layers - {layer for layer, _ in heads}
        heads |= {head for layer in alone if (head := telling_head(study, finding, layer)) is not None}
    return Version(
        version.number, (*version.topics, finding.topic), tuple(sorted(layers)), tuple(sorted(heads)), version.part
    )


def telling_head(study: StudyFolder, finding: Finding, layer: int) -> Head | None:
    """The head of a layer that has most of what a finding's number is made of."""
    if finding.quantity is None or layer not in finding.layers:
        return None
    first = place_of_head(study, (layer, 0))
    rows = slice(first, first + study.manifest.model.heads)
    values = np.sum([study.column("heads", name)[rows] for name in finding.quantity.columns], 0)
    return None if np.isnan(values).all() else (layer, int(np.nanargmax(values)))


def save_findings(
    study: StudyFolder,
    folder: str | os.PathLike[str] | None = None,
    *,
    only: Sequence[int | str] | None = None,
    formats: Sequence[str] = ("png", "svg"),
    progress: bool = True,
    helpers: Helpers | None = None,
) -> list[Path]:
    """Draw figures at the layers and heads that the findings name, `fig08-findings.png` and the like, by default into
    `figures` in the folder of the study; only: these. None where all findings are drawn anyway."""
    numbers = None if only is None else {str(number) for number in only}
    made = versions(study, findings(study))
    wanted = [version.wanted for version in made if numbers is None or version.number in numbers]
    if not wanted:
        return []
    return figures.save(study, wanted, folder, formats=formats, progress=progress, helpers=helpers)
