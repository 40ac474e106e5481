"""`headscope.compare`: studies side by side, on a page, in a figure, in a notebook."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import HeadscopeError
from headscope.files import write_atomically
from headscope.folder.study_folder import StudyFolder
from headscope.insight.comparing import Compared, side_by_side
from headscope.show.objects import read

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Comparison(Compared):
    """Several studies, side by side. `headscope.compare` makes one; a notebook shows it.

    models: their labels. table: a row per model and layer. claims: a row per claim of the paper, a column per model.
    matches: heads of two models that are each other's nearest. sentences: what is common and what is not.
    roles: a row per model and role. beside: a row per model and quantity, beside chance and nulls.
    """

    def figure(self) -> Figure:
        """Six panels, a line a model: each quantity from the first layer to the last."""
        from headscope.show.figures.comparison import draw

        return draw(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, and the table beside it as .csv and .parquet."""
        from headscope.show.pages.comparison_page import page

        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise HeadscopeError(f"{target} can't be written: {problem.strerror}.") from None
        parquet = io.BytesIO()
        self.table.to_parquet(parquet, index=False)
        write_atomically(target, page(self).encode())
        write_atomically(target.with_suffix(".csv"), self.table.to_csv(index=False).encode())
        write_atomically(target.with_suffix(".parquet"), parquet.getvalue())

    def _repr_html_(self) -> str:
        from headscope.show.pages.comparison_page import snippet

        return snippet(self)


def compare(studies: Iterable[StudyFolder | str | os.PathLike[str]]) -> Comparison:
    """Put finished studies side by side.

    studies: two or more, each a `Study` or the folder of one, measured with the same options.

    >>> import headscope
    >>> comparison = headscope.compare(["minilm-study", "mpnet-study"])  # doctest: +SKIP
    >>> comparison.table  # doctest: +SKIP
    """
    opened = [study if isinstance(study, StudyFolder) else read(study) for study in studies]
    if len(opened) < 2:
        raise HeadscopeError(f"Give two or more study folders to compare; {len(opened)} was given.")
    return Comparison(side_by_side(opened))
