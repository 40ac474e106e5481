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

from headscope.starting import without_collecting

if TYPE_CHECKING:
    from headscope.checking import Check, verify
    from headscope.comparison import Comparison, compare
    from headscope.diagnosis import Diagnosis, doctor
    from headscope.errors import HeadscopeError
    from headscope.looking import inspect
    from headscope.merging import merge
    from headscope.models import Model, load
    from headscope.options import Options
    from headscope.results import Study, read
    from headscope.runner import study
    from headscope.texts import read_texts, sample_texts
    from headscope.view import View
    from headscope.vision import ImageStudy, study_images

_HOME = {
    "Check": "checking",
    "Comparison": "comparison",
    "Diagnosis": "diagnosis",
    "HeadscopeError": "errors",
    "ImageStudy": "vision",
    "Model": "models",
    "Options": "options",
    "Study": "results",
    "View": "view",
    "compare": "comparison",
    "doctor": "diagnosis",
    "inspect": "looking",
    "load": "models",
    "merge": "merging",
    "read": "results",
    "read_texts": "texts",
    "sample_texts": "texts",
    "study": "runner",
    "study_images": "vision",
    "verify": "checking",
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
        value = getattr(importlib.import_module(f"headscope.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
