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
    from headscope.folder.merging import merge
    from headscope.folder.study_folder import Study, read
    from headscope.folder.verifying import Check, verify
    from headscope.insight.comparing import Comparison, compare
    from headscope.model.diagnosis import Diagnosis, doctor
    from headscope.model.loading import Model, load
    from headscope.one_text.looking import inspect
    from headscope.one_text.view import View
    from headscope.options import Options
    from headscope.run.runner import study
    from headscope.vision import ImageStudy, study_images

_HOME = {
    "Check": "headscope.folder.verifying",
    "Comparison": "headscope.insight.comparing",
    "Diagnosis": "headscope.model.diagnosis",
    "HeadscopeError": "headscope.errors",
    "ImageStudy": "headscope.vision",
    "Model": "headscope.model.loading",
    "Options": "headscope.options",
    "Study": "headscope.folder.study_folder",
    "View": "headscope.one_text.view",
    "compare": "headscope.insight.comparing",
    "doctor": "headscope.model.diagnosis",
    "inspect": "headscope.one_text.looking",
    "load": "headscope.model.loading",
    "merge": "headscope.folder.merging",
    "read": "headscope.folder.study_folder",
    "read_texts": "headscope.corpus.texts",
    "sample_texts": "headscope.corpus.texts",
    "study": "headscope.run.runner",
    "study_images": "headscope.vision",
    "verify": "headscope.folder.verifying",
}

__all__ = [
    "Check",
    "Comparison",
    "Diagnosis",
    "HeadscopeError",
    "ImageStudy",
    "Model",
    "Options",
    "Study",
    "View",
    "compare",
    "doctor",
    "inspect",
    "load",
    "merge",
    "read",
    "read_texts",
    "sample_texts",
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
