"""Null studies: the same windows with nothing to find in them, as studies beside the one that they are held against."""

from __future__ import annotations

from collections.abc import Mapping

from headscope.folder.array_file import AbsentError
from headscope.folder.manifest import MANIFEST
from headscope.folder.study_folder import StudyAt, StudyFolder

FOLDER = "nulls"
CALLED = {"tokens": "shuffled tokens", "sentences": "shuffled sentences", "weights": "random weights"}
"""The name of a null, which is that of its folder -> how sentences call it."""


def null_studies(study: StudyFolder) -> Mapping[str, StudyFolder]:
    """Those that lie finished in the folder of a study and have its layers and heads, by name. Those of a study at
    another threshold are read there too; one that can't be is left out."""
    if isinstance(study, StudyAt):
        return at_threshold(null_studies(study.own), study.high.threshold)
    folders = {name: study.folder / FOLDER / name for name in CALLED}
    found = {name: StudyFolder(folder) for name, folder in folders.items() if (folder / MANIFEST).is_file()}
    return {name: null for name, null in found.items() if _shape(null) == _shape(study)}


def at_threshold(nulls: Mapping[str, StudyFolder], threshold: float) -> Mapping[str, StudyFolder]:
    """Null studies as they read at another threshold, without those that can't be read there."""
    found = {}
    for name, null in nulls.items():
        try:
            found[name] = null.at(threshold)
        except AbsentError:
            continue
    return found


def _shape(study: StudyFolder) -> tuple[list[int], int]:
    return study.manifest.layers, study.manifest.model.heads
