"""An ablation that shows itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import HeadscopeError
from headscope.folder.ablation_folder import AblationFolder
from headscope.folder.manifest import MANIFEST as STUDY_MANIFEST
from headscope.folder.study_folder import StudyFolder
from headscope.insight.importance import sentence
from headscope.wording import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = ("importance", "curve")
MOST = 5
"""Heads that are named in a summary."""


class Ablation(AblationFolder):
    """A finished ablation, read from its folder; `headscope.ablate` makes one. Neither model nor texts are needed.

    `heads`, `intervals`, `curve` and `sets` are DataFrames, None where they were not measured; `manifest` says what was
    run, with the loss of the undisturbed model.

    >>> import headscope
    >>> ablation = headscope.ablate("minilm", out="worth")  # doctest: +SKIP
    >>> ablation.heads.nlargest(3, "hidden_change")  # doctest: +SKIP
    """

    def summary(self) -> list[str]:
        """What was found, a sentence or a table a line."""
        told = [*self._run(), *self._of_heads(), *self._of_sets(), *self._of_curve()]
        if self.predictors is not None:
            told.append(sentence(self, self.predictors))
        return [*told, *self._files()]

    def figure(self, name: str = "importance", study: StudyFolder | str | os.PathLike[str] | None = None) -> Figure:
        """importance: every head, beside its role where a study with nulls is given, by default the one that the
        ablation was held against; curve: what is left over the heads removed."""
        from headscope.show.figures.importance import draw, draw_curve

        if name not in FIGURES:
            raise HeadscopeError(f"There is no figure {name!r} of an ablation; there are {' and '.join(FIGURES)}.")
        return draw_curve(self) if name == "curve" else draw(self, self._beside(study))

    def figures(self, study: StudyFolder | str | os.PathLike[str] | None = None) -> list[Path]:
        """Draw what was measured into the folder `figures`, as PNG and SVG."""
        from headscope.show.figures.importance import CURVE_TITLE, TITLE
        from headscope.show.figures.style import save

        wanted = {"importance": TITLE} if self.heads is not None else {}
        wanted |= {"curve": CURVE_TITLE} if self.curve is not None else {}
        written = []
        for name, title in wanted.items():
            drawn = self.figure(name, study)
            for kind in ("png", "svg"):
                path = self.folder / "figures" / f"{name}.{kind}"
                path.parent.mkdir(exist_ok=True)
                save(drawn, path, title)
                written.append(path)
        return written

    def _beside(self, study: StudyFolder | str | os.PathLike[str] | None) -> StudyFolder | None:
        """The study given, or that of the ablation where it still is."""
        if study is not None:
            return study if isinstance(study, StudyFolder) else StudyFolder(study)
        named = self.manifest.study
        return StudyFolder(named) if named is not None and (Path(named) / STUDY_MANIFEST).is_file() else None

    def _run(self) -> list[str]:
        facts = self.manifest
        model, counts = facts.model, facts.counts
        lines = [
            f"{model.name}: {counted(len(facts.layers), 'layer')} x {counted(model.heads, 'head')}, silenced by "
            f"{facts.by}, over {counted(counts.windows, 'window')} of {facts.options.length} tokens from "
            f"{counted(counts.texts, 'text')}, in {facts.seconds or 0:.1f} s"
        ]
        if facts.undisturbed_loss is not None:
            low, high = facts.undisturbed_loss_low, facts.undisturbed_loss_high
            within = "" if low is None or high is None else f" ({low:.3f} to {high:.3f})"
            lines.append(f"Loss of the undisturbed model ({facts.predicts}): {facts.undisturbed_loss:.3f}{within}")
        elif facts.no_loss:
            lines.append(f"No loss: {facts.no_loss}")
        return [*lines, *facts.notices]

    def _of_heads(self) -> list[str]:
        table = self.heads
        if table is None:
            return []
        worth = self.importance.value
        low, high = self.importance.interval()
        order = worth.argsort()[::-1]
        named = [
            f"  {table['layer'][place]}:{table['head'][place]}  {worth[place]:.4g}"
            + ("" if low[place] != low[place] else f" ({low[place]:.3g} to {high[place]:.3g})")
            for place in order[:MOST]
        ]
        return [f"Heads that matter most, by {self.worth}:", *named]

    def _of_sets(self) -> list[str]:
        return [] if self.sets is None else [self.sets.to_string(index=False)]

    def _of_curve(self) -> list[str]:
        if self.curve is None:
            return []
        column = "loss" if self.manifest.predicts else "embedding_cosine"
        wide = self.curve.pivot(index="removed", columns="order", values=column)
        return [f"{column} with so many heads removed:", wide.to_string(float_format=lambda value: f"{value:.3f}")]

    def _files(self) -> list[str]:
        return [f"Tables: {self.folder / ('ablation.csv' if self.heads is not None else 'ablation.json')}"]
