"""A study on one page: what was run, findings, claims, figures, tables, definitions. No network, no other file."""

from __future__ import annotations

import os
from pathlib import Path

from headscope.files import write_atomically
from headscope.folder.study_folder import StudyFolder
from headscope.show.helpers import Helpers
from headscope.show.report.content import page, summary

__all__ = ["page", "summary", "write_report"]


def write_report(
    study: StudyFolder,
    path: str | os.PathLike[str] | None = None,
    *,
    progress: bool = False,
    helpers: Helpers | None = None,
) -> Path:
    """Write the page, by default into the study folder; that of a study at another threshold lies beside its own.

    Figures that are already drawn there are used as they are.
    """
    target = Path(path) if path is not None else study.folder / f"report{study.suffix}.html"
    write_atomically(target, page(study, progress=progress, helpers=helpers).encode())
    return target
