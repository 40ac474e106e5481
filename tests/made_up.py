"""Studies whose numbers are made up, for the tests of what is said about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from headscope.folder.manifest import CountFacts, Manifest, ModelFacts, SourceFacts
from headscope.folder.study_folder import StudyFolder
from headscope.options import Options


def made_up_study(
    *,
    layers: pd.DataFrame,
    heads: pd.DataFrame,
    arrays: dict[str, Any],
    numbers: list[int],
    model: dict[str, Any],
    windows: int = 100,
    example: Any = None,
    **options: Any,
) -> StudyFolder:
    """As if read from a folder."""
    study = StudyFolder.__new__(StudyFolder)
    study.folder = Path("made-up")
    study.manifest = Manifest(
        "0.0.0",
        ModelFacts(**{"name": "made-up", **model}),
        SourceFacts("made up"),
        Options(**options),
        numbers,
        CountFacts(windows=windows),
    )
    study.__dict__.update(layers=layers, heads=heads, arrays=arrays)
    if example is not None:
        study.__dict__["example"] = example
    return study
