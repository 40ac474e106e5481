"""What users hold in their hands: a study, a view and a segmentation that show themselves."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError
from headscope.folder.study_folder import StudyAt, StudyFolder
from headscope.one_text.telling import Place
from headscope.one_text.view import OneText
from headscope.segments.cut_text import CutText

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class View(OneText):
    """One text, looked at closely in every head; `headscope.inspect` makes one. A notebook shows it.

    study: of the same model; what it says of a head is shown beside what the head does here.

    >>> import headscope
    >>> view = headscope.inspect("minilm", "The cat sat. The cat slept.")  # doctest: +SKIP
    >>> view.tokens, view.attention[5, 8], view.pairs(layer=5, head=8)  # doctest: +SKIP
    """

    study: StudyFolder | None = None

    def html(self, layer: int | None = None, head: int | None = None) -> str:
        """One self-contained page with every head, opened at one: by default at the most telling one of the layer, or
        of all; a head without a layer is one of the last."""
        from headscope.show.pages.view_page import page

        if head is None:
            return page(self, *self.telling_heads(layer, 1)[0])
        return page(self, self.layers[self.attention.place(-1 if layer is None else layer)], head)

    def in_study(self, layer: int, head: int) -> str | None:
        """What the study says of a head: its role, its numbers with their intervals. None without a study."""
        if self.study is None:
            return None
        return self._about_heads.get((layer, head), f"The study did not measure layer {layer}.")

    @cached_property
    def _about_heads(self) -> dict[Place, str]:
        from headscope.insight.about_heads import about_heads

        return {} if self.study is None else about_heads(self.study)

    @property
    def about_study(self) -> str | None:
        """Which study stands beside it, and in what it was measured otherwise."""
        from headscope.insight.about_heads import about_study_beside

        return None if self.study is None else about_study_beside(self, self.study)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from headscope.show.pages.view_page import in_notebook

        return in_notebook(self)


class Study(StudyFolder):
    """A finished study, read from its folder; neither the model nor the texts are needed. A notebook shows it.

    `heads` and `layers` are DataFrames, `arrays` a mapping of numpy arrays, `manifest` says what was run. `intervals`:
    how sure each number is; `beside`: what it is held against; `roles`: what each head does, after `headscope.nulls`.

    >>> import headscope
    >>> study = headscope.read("wiki")  # doctest: +SKIP
    >>> study.heads.nlargest(3, "repeat_probability")[["layer", "head", "repeat_probability"]]  # doctest: +SKIP
    >>> study.intervals.query("column == 'mean_distance' and head == -1")  # doctest: +SKIP
    >>> study.figure(7)  # doctest: +SKIP
    """

    @cached_property
    def example(self) -> View:
        """The one text that the study keeps, for figures that show one."""
        return View.load(self.folder)

    @cached_property
    def stability(self) -> pd.DataFrame:
        """Would other texts give the same order of heads? A row per column of `heads`, see `insight.stability`."""
        from headscope.insight.stability import stability

        return stability(self)

    @cached_property
    def beside(self) -> pd.DataFrame:
        """Every number beside what it is held against: a row per layer, head (-1: the layer) and column, with its
        interval, chance, what distance alone gives, and what each null gives after `headscope.nulls`.

        >>> study.beside.query("column == 'same_sentence_probability' and head == -1")  # doctest: +SKIP
        """
        from headscope.insight.beside import beside

        return beside(self)

    def at(self, threshold: float) -> ShownAt:
        """The study as it reads at another threshold, 0.05 to 0.95 in steps of 0.01, without a new run.

        What is made of high pairs is pooled over all pairs there, not a mean over windows; what is known at the study's
        own threshold alone is absent.

        >>> study.at(0.2).heads  # doctest: +SKIP
        """
        return ShownAt(self, threshold)

    def figure(self, number: int | str, **choices: Any) -> Figure:
        """A figure of the paper, by its number; also "spectrum", "signal", "thresholds" and "atlas". Choices:
        `layers=(1, 6)`, `heads=(3,)`; see `figures.draw`."""
        from headscope.show.figures import draw

        return draw(self, number, **choices)

    def figures(
        self, folder: str | os.PathLike[str] | None = None, *, findings: bool = False, **choices: Any
    ) -> list[Path]:
        """Draw all figures into a folder, by default `figures` in that of the study; see `figures.save_all`.

        findings: instead, those that findings refer to, at the layers and heads that they name, as
        `fig08-findings.png` and the like; see `figures.of_findings.save_findings`.
        """
        from headscope.show.figures import save_all
        from headscope.show.figures.of_findings import save_findings

        return save_findings(self, folder, **choices) if findings else save_all(self, folder, **choices)

    def report(self, path: str | os.PathLike[str] | None = None, threshold: float | None = None) -> Path:
        """Write everything on one page that opens without a network; by default report.html in the folder.

        threshold: write it as the study reads at another one, by default to report-0.20.html or the like.
        """
        from headscope.show.report import write_report

        return write_report(self if threshold is None else self.at(threshold), path)

    def _repr_html_(self) -> str:
        """In a notebook: what was run, findings, the layers."""
        from headscope.show.report import summary

        return summary(self)


class ShownAt(StudyAt, Study):
    """A study at another threshold, with figures and a report like every study."""

    own: Study

    def at(self, threshold: float) -> ShownAt:
        return self.own.at(threshold)

    @cached_property
    def example(self) -> View:
        """The one text that the study keeps, with its high pairs at this threshold."""
        return replace(self.own.example, threshold=self.high.threshold)


class Segmentation(CutText):
    """A text cut into segments; `headscope.segment` makes one. A notebook shows it.

    `segments` is a list, `to_frame()` a DataFrame, `heads` the choice of heads, `scores` how clear a boundary is at
    each of the `places` where one could be.

    >>> import headscope
    >>> cut = headscope.segment("minilm", Path("talk.txt"))  # doctest: +SKIP
    >>> cut.to_frame()  # doctest: +SKIP
    """

    def html(self) -> str:
        """One page with the segments tinted and the scores beneath; it needs no network."""
        from headscope.show.pages.segments_page import page

        return page([self])

    def save_html(self, path: str | os.PathLike[str]) -> Path:
        """Write the page."""
        return save_html([self], path)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from headscope.show.pages.segments_page import snippet

        return snippet(self)


def save_html(cuts: Sequence[CutText], path: str | os.PathLike[str]) -> Path:
    """Write several segmentations on one page."""
    from headscope.show.pages.segments_page import page

    file = Path(path)
    try:
        file.write_text(page(cuts), "utf-8")
    except OSError as problem:
        raise HeadscopeError(f"{file} can't be written: {problem.strerror or problem}.") from None
    return file


def read(folder: str | os.PathLike[str]) -> Study:
    """Open a study folder; neither the model nor the texts are needed.

    >>> import headscope
    >>> headscope.read("wiki").heads  # doctest: +SKIP
    """
    return Study(folder)
