"""`headscope.compare`: studies side by side, on a page, in a figure, in a notebook."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError
from headscope.files import write_atomically
from headscope.folder.study_folder import StudyFolder
from headscope.insight.comparing import Compared, side_by_side
from headscope.insight.comparing_facts import comparison_facts
from headscope.show.objects import read

if TYPE_CHECKING:
    from matplotlib.figure import Figure

StudyOrFolder = StudyFolder | str | os.PathLike[str]
DIFFERENCES = "-differences.csv"


class Comparison(Compared):
    """Several studies, side by side. `headscope.compare` makes one; a notebook shows it.

    models: their labels. heading: what they are to each other. what_differs: a row for each fact that differs, a
    column per model. table: a row per model and layer. claims: a row per claim of the paper, a column per model.
    matches: heads of two models that are each other's nearest. sentences: what is common and what is not.
    roles: a row per model and role. beside: a row per model and quantity, beside chance and nulls.
    differences: of two studies of the same shape, a row per layer, head and column: what the second has less the first.

    >>> import headscope
    >>> comparison = headscope.compare("base", "tuned")  # doctest: +SKIP
    >>> comparison.sentences, comparison.table  # doctest: +SKIP
    """

    def figure(self) -> Figure:
        """A panel a quantity, a line a model: each quantity from the first layer to the last."""
        from headscope.show.figures.comparison import draw

        return draw(self)

    def difference_map(self, columns: Sequence[str] | None = None) -> Figure:
        """Of two studies of the same shape: layers by heads, coloured by what the second has less the first, a dot
        where a head differs. columns: of `differences`; by default the six that tell most.

        >>> import headscope
        >>> headscope.compare("base", "tuned").difference_map(["mean_distance"])  # doctest: +SKIP
        """
        from headscope.show.figures.difference_map import draw

        if self.head_by_head is None:
            raise HeadscopeError(f"There is no map of differences. {self.why_not_head_by_head}")
        known = self.head_by_head.columns
        if columns is not None and (not columns or not set(columns) <= known.keys()):
            raise HeadscopeError(f"columns is {columns!r}; it must be a list of some of {', '.join(known)}.")
        return draw(self.head_by_head, columns)

    @property
    def facts(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        return comparison_facts(self)

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the page, and beside it the table as .csv and .parquet, all of it as .json, and where heads are
        compared one by one their differences as -differences.csv. The files are returned, the page first."""
        from headscope.show.pages.comparison_page import page

        target, *_, differences = files_of(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise HeadscopeError(f"{target} can't be written: {problem.strerror}.") from None
        parquet = io.BytesIO()
        self.table.to_parquet(parquet, index=False)
        content = {
            target: page(self).encode(),
            target.with_suffix(".csv"): self.table.to_csv(index=False).encode(),
            target.with_suffix(".parquet"): parquet.getvalue(),
            target.with_suffix(".json"): (json.dumps(self.facts, indent=1, allow_nan=False) + "\n").encode(),
        }
        if self.head_by_head is not None:
            content[differences] = self.differences.to_csv(index=False).encode()
        for file, written in content.items():
            write_atomically(file, written)
        if differences not in content:
            differences.unlink(missing_ok=True)  # of the comparison that stood here before
        return list(content)

    def _repr_html_(self) -> str:
        from headscope.show.pages.comparison_page import snippet

        return snippet(self)


def files_of(path: str | os.PathLike[str]) -> list[Path]:
    """All files that a comparison saved at `path` may have, the page first, that of differences last."""
    target = Path(path)
    if target.suffix != ".html":
        raise HeadscopeError(
            f"A comparison is saved as a page, so {target} must end with .html; its tables go beside it as .csv, "
            ".parquet and .json."
        )
    beside = [target.with_suffix(suffix) for suffix in (".csv", ".parquet", ".json")]
    return [target, *beside, target.with_name(target.stem + DIFFERENCES)]


def compare(*studies: StudyOrFolder | Iterable[StudyOrFolder]) -> Comparison:
    """Put finished studies side by side.

    studies: two or more, or one list of them; each a `Study` or the folder of one, measured with the same options. Two
    of models of the same shape are compared head by head, too: `differences` is what the second has less the first.

    >>> import headscope
    >>> comparison = headscope.compare("wiki", "news")  # doctest: +SKIP
    >>> comparison.heading  # doctest: +SKIP
    'The same model on different texts'
    >>> comparison.differences.query("differs")  # doctest: +SKIP
    >>> headscope.compare(["minilm-study", "mpnet-study", "gte-study"]).table  # doctest: +SKIP
    """
    one = studies[0] if len(studies) == 1 else None
    given = studies if one is None or isinstance(one, str) or not isinstance(one, Iterable) else tuple(one)
    opened = [_opened(study) for study in given]
    if len(opened) < 2:
        was = "was" if len(opened) == 1 else "were"
        raise HeadscopeError(f"Give two or more study folders to compare; {len(opened)} {was} given.")
    return Comparison(side_by_side(opened))


def _opened(study: object) -> StudyFolder:
    if isinstance(study, StudyFolder):
        return study
    if isinstance(study, str | os.PathLike):
        return read(study)
    raise HeadscopeError(f"compare takes studies or their folders; {study!r:.60} is {type(study).__name__}.")
