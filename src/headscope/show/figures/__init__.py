"""Every figure of the paper, drawn from a study folder alone; one file a figure.

    from headscope.show import figures
    figures.draw(study, 7)                      # a matplotlib Figure
    figures.save_all(study)                     # FOLDER/figures/fig02.png, fig02.svg, ...

A figure is a module with `draw(study, ...)`, a `TITLE` and a `CAPTION` that says how to read it. `shows`, called as
`draw` is, tells which layers and heads it draws; without it, it draws all. `HEADS` where it takes single heads, given
with their layers: "single", or "beside" the sum of their layer. `NEEDS_EXAMPLE` where it shows the one text that a
study keeps, `NEEDS` where it needs words, sentences, order or patches, `NEEDS_SPECTRA` where it shows several
thresholds.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from headscope.corpus.traits import Traits
from headscope.errors import HeadscopeError
from headscope.folder.array_file import AbsentError
from headscope.garbage import without_collecting
from headscope.progress import Bar
from headscope.show.figures import (
    atlas,
    fig02,
    fig03,
    fig04,
    fig05,
    fig06,
    fig07,
    fig08,
    fig09,
    fig10,
    fig11,
    fig12,
    fig13,
    grid,
    signal,
    spectrum,
    style,
    thresholds,
)
from headscope.show.helpers import Helpers, Job
from headscope.wording import listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.folder.study_folder import StudyFolder
    from headscope.insight.choices import Shown

FIGURES: dict[str, ModuleType] = {
    "2": fig02,
    "3": fig03,
    "4": fig04,
    "5": fig05,
    "6": fig06,
    "7": fig07,
    "8": fig08,
    "9": fig09,
    "10": fig10,
    "11": fig11,
    "12": fig12,
    "13": fig13,
    "spectrum": spectrum,
    "signal": signal,
    "thresholds": thresholds,
    "atlas": atlas,
    "grid": grid,
}
"""By the number in the paper; those that it lacks by name."""
SLOW = ("4", "2", "atlas", "thresholds", "12", "9")
"""Those that take the longest to draw, the slowest first."""
FORMATS = ("png", "svg", "pdf")


def draw(study: StudyFolder, number: int | str, **choices: Any) -> Figure:
    """One figure. Choices, where the figure has them: `layers=(1, 6, 11)`, `heads=(3,)`; for the atlas `map`. Figures
    2, 4, 5 and 10 take single heads too, with their layers: `heads=[(2, 1), (5, 9)]`."""
    study.check_not_empty()
    module = _module(number)
    lacking: Traits = getattr(module, "NEEDS", frozenset()) - study.manifest.gives
    if lacking:
        raise HeadscopeError(
            f"Figure {number} needs {listed(sorted(lacking))}, which {study.manifest.kind} do not have; "
            f"there are {', '.join(drawable(study))}."
        )
    for name in choices:
        if name not in _choices_of(module):
            raise HeadscopeError(
                f"Figure {number} has no choice {name!r}; it has {', '.join(_choices_of(module)) or 'none'}."
            )
    figure: Figure = module.draw(study, **choices)
    return figure


def shown(study: StudyFolder, number: int | str, **choices: Any) -> Shown | None:
    """Which layers and heads a figure draws; None: all. Choices: as those of `draw`."""
    module = _module(number)
    if not hasattr(module, "shows"):
        return None
    found: Shown = module.shows(study, **choices)
    return found


@dataclass(frozen=True)
class Wanted:
    """A figure to be written. name: of its file, without suffix."""

    number: str
    name: str
    choices: Mapping[str, Any] = field(default_factory=dict)


def save_all(
    study: StudyFolder,
    folder: str | os.PathLike[str] | None = None,
    *,
    only: Sequence[int | str] | None = None,
    formats: Sequence[str] = ("png", "svg"),
    progress: bool = True,
    helpers: Helpers | None = None,
    **choices: Any,
) -> list[Path]:
    """Draw all figures, or only some, into a folder, by default `figures` in that of the study. A file says in its
    description which layers and heads it shows.

    A figure that has no such choice (the atlas no heads) is drawn without it. A study without an example, such as a
    part of a larger one, has no figures of one text, and one at another threshold none of what is known at its own.
    """
    wanted = []
    for number in drawable(study) if only is None else map(str, only):
        fitting = {name: value for name, value in choices.items() if name in _choices_of(_module(number))}
        wanted.append(Wanted(number, file_name(number), fitting))
    return save(
        study, wanted, folder, formats=formats, progress=progress, all_or_none=only is not None, helpers=helpers
    )


def save(
    study: StudyFolder,
    wanted: Sequence[Wanted],
    folder: str | os.PathLike[str] | None,
    *,
    formats: Sequence[str],
    progress: bool,
    all_or_none: bool = False,
    helpers: Helpers | None = None,
) -> list[Path]:
    """Write figures. all_or_none: one that the study can't have is an error, not left out. helpers: who draw too."""
    if not wanted or not formats:
        raise HeadscopeError("There is nothing to draw: name at least one figure and one format.")
    for name in formats:
        if name not in FORMATS:
            raise HeadscopeError(f"Figures can't be written as {name!r}; the formats are {', '.join(FORMATS)}.")
    target = Path(folder) if folder is not None else study.folder / f"figures{study.suffix}"
    order = slow_first(wanted)
    jobs: list[Job] = [(save_one, (wanted[place], target.absolute(), tuple(formats), all_or_none)) for place in order]
    try:
        target.mkdir(parents=True, exist_ok=True)
        with Bar("Drawing", "figures", progress) as bar:
            bar.expect(len(wanted), exact=True)
            drawing = helpers or Helpers(study.folder)
            drawing.begin(study, jobs, lambda: bar.advance(1))
            names = dict(zip(order, drawing.finish(), strict=True))
    except OSError as problem:
        raise HeadscopeError(f"Figures can't be written to {target}: {problem.strerror or problem}.") from None
    return [target / name for place in sorted(names) for name in names[place]]


def slow_first(wanted: Sequence[Wanted]) -> list[int]:
    """The places of figures in the order in which to draw them: where several draw, nobody should begin with what
    takes long when the others are done.

    >>> slow_first([Wanted("7", "fig07"), Wanted("9", "fig09"), Wanted("4", "fig04")])
    [2, 1, 0]
    """
    rank = {number: place for place, number in enumerate(SLOW)}
    return sorted(range(len(wanted)), key=lambda place: rank.get(wanted[place].number, len(SLOW)))


def save_one(
    study: StudyFolder, wanted: Wanted, folder: Path, formats: Sequence[str], all_or_none: bool = False
) -> list[str]:
    """Write a figure in several formats; the names of the files, none where it is left out."""
    names = [f"{wanted.name}.{suffix}" for suffix in formats]
    with without_collecting(), style.settings():
        try:
            figure = draw(study, wanted.number, **wanted.choices)
        except AbsentError:
            if all_or_none:
                raise
            return []
        drawn = str(shown(study, wanted.number, **wanted.choices) or "")
        for name in names:
            style.save(figure, folder / name, _module(wanted.number).TITLE, drawn)
    return names


def drawable(study: StudyFolder) -> list[str]:
    """The figures that such a study has: one of images has none of sentences, one without an example none of it, one of
    an older version none of several thresholds."""
    keeps_example = study.manifest.example is not None
    return [
        number
        for number, module in FIGURES.items()
        if getattr(module, "NEEDS", frozenset()) <= study.manifest.gives
        and (keeps_example or not getattr(module, "NEEDS_EXAMPLE", False))
        and (not getattr(module, "NEEDS_SPECTRA", False) or study.keeps_spectra)
    ]


def file_name(number: int | str) -> str:
    """Without its suffix.

    >>> file_name(7), file_name("atlas")
    ('fig07', 'atlas')
    """
    return f"fig{int(number):02d}" if str(number).isdecimal() else str(number)


def _module(number: int | str) -> ModuleType:
    if str(number) not in FIGURES:
        raise HeadscopeError(f"There is no figure {number!r}; there are {', '.join(FIGURES)}.")
    return FIGURES[str(number)]


def _choices_of(module: ModuleType) -> list[str]:
    return [name for name in inspect.signature(module.draw).parameters if name != "study"]
