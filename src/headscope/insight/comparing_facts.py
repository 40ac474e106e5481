"""All that there is to say of a comparison, for other programs."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import pandas as pd

from headscope.folder.study_folder import StudyFolder
from headscope.insight.comparing import Compared

COMPARISON_FORMAT = 1


def comparison_facts(compared: Compared) -> dict[str, Any]:
    """Plain values that JSON has; what is not known is None."""
    return {
        "format": COMPARISON_FORMAT,
        "headscope": metadata.version("headscope"),
        "heading": compared.heading,
        "studies": [_study(label, study) for label, study in compared.studies.items()],
        "what_differs": records(compared.what_differs),
        "sentences": compared.sentences,
        "table": records(compared.table),
        "beside": records(compared.beside),
        "roles": records(compared.roles),
        "claims": compared.claims_matrix,
        "matches": records(compared.matches),
        "why_not_head_by_head": compared.why_not_head_by_head,
        "differences": records(compared.differences),
    }


def _study(label: str, study: StudyFolder) -> dict[str, Any]:
    model, source = study.manifest.model, study.manifest.source
    return {
        "label": label,
        "folder": str(study.folder),
        "model": model.name,
        "architecture": model.architecture,
        "layers": model.layers,
        "heads": model.heads,
        "weights_sha256": model.weights_sha256,
        "texts": source.name,
        "texts_sha256": source.sha256,
        "windows": study.windows,
        "windows_sha256": source.windows_sha256,
        "options": study.manifest.options.as_dict(),
    }


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A row each, by the names of its columns; None where a number is not known.

    >>> records(pd.DataFrame({"layer": [0, 1], "distance": [41.5, float("nan")]}))
    [{'layer': 0, 'distance': 41.5}, {'layer': 1, 'distance': None}]
    """
    plain = table.astype(object)
    rows = plain.where(plain.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]
