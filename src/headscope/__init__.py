"""headscope measures what every attention head of a transformer puts out, over a whole corpus.

For example:

    import headscope

    model = headscope.load("minilm")                      # built in; or a hub id, or a folder
    study = headscope.study(model, texts, out="wiki")     # every head, every text
    study.heads                                           # a DataFrame
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from headscope.garbage import without_collecting

if TYPE_CHECKING:
    from headscope.corpus.texts import read_texts, sample_texts
    from headscope.errors import HeadscopeError
    from headscope.folder.verifying import Check, verify
    from headscope.jobs.ablating import ablate
    from headscope.jobs.inspecting import inspect
    from headscope.jobs.merging import merge
    from headscope.jobs.null_studies import nulls
    from headscope.jobs.segmenting import segment
    from headscope.jobs.studying import study, study_images
    from headscope.measure.catalogue import columns
    from headscope.model.diagnosis import Diagnosis, doctor
    from headscope.model.loading import Model, load
    from headscope.model.silencing import silenced
    from headscope.options import Options
    from headscope.show.ablation import Ablation
    from headscope.show.claims import claims
    from headscope.show.comparison import Comparison, compare
    from headscope.show.objects import Segmentation, Study, View, read

_HOME = {
    "Ablation": "headscope.show.ablation",
    "Check": "headscope.folder.verifying",
    "Comparison": "headscope.show.comparison",
    "Diagnosis": "headscope.model.diagnosis",
    "HeadscopeError": "headscope.errors",
    "Model": "headscope.model.loading",
    "Options": "headscope.options",
    "Segmentation": "headscope.show.objects",
    "Study": "headscope.show.objects",
    "View": "headscope.show.objects",
    "ablate": "headscope.jobs.ablating",
    "claims": "headscope.show.claims",
    "columns": "headscope.measure.catalogue",
    "compare": "headscope.show.comparison",
    "doctor": "headscope.model.diagnosis",
    "inspect": "headscope.jobs.inspecting",
    "load": "headscope.model.loading",
    "merge": "headscope.jobs.merging",
    "nulls": "headscope.jobs.null_studies",
    "read": "headscope.show.objects",
    "read_texts": "headscope.corpus.texts",
    "sample_texts": "headscope.corpus.texts",
    "segment": "headscope.jobs.segmenting",
    "silenced": "headscope.model.silencing",
    "study": "headscope.jobs.studying",
    "study_images": "headscope.jobs.studying",
    "verify": "headscope.folder.verifying",
}

__all__ = [
    "Ablation",
    "Check",
    "Comparison",
    "Diagnosis",
    "HeadscopeError",
    "Model",
    "Options",
    "Segmentation",
    "Study",
    "View",
    "ablate",
    "claims",
    "columns",
    "compare",
    "doctor",
    "inspect",
    "load",
    "merge",
    "nulls",
    "read",
    "read_texts",
    "sample_texts",
    "segment",
    "silenced",
    "study",
    "study_images",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `import headscope` does not import torch."""
    if name not in _HOME:
        raise AttributeError(f"module 'headscope' has no attribute {name!r}")
    with without_collecting():
        value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
