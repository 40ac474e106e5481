"""Studies whose numbers are made up, for the tests of what is said about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headscope.corpus.windows import KINDS
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


def made_up(
    layers: Any = None, heads: Any = None, arrays: Any = None, numbers: Any = None, depth: Any = None, **options: Any
) -> StudyFolder:
    """What a finding reads of a study, made up: 100 whole windows of 128 tokens, a tenth of them sentence ends."""
    layers = pd.DataFrame(layers or {})
    kinds = np.zeros((1, 1, len(KINDS)), dtype=np.int64)
    kinds[..., KINDS.index("first")], kinds[..., KINDS.index("sentence_end")] = 100, 1280
    kinds[..., KINDS.index("special")], kinds[..., KINDS.index("word")] = 100, 12800 - 1480
    numbers = numbers or list(range(max(len(layers), 1)))
    return made_up_study(
        layers=layers,
        heads=pd.DataFrame(heads or {}),
        arrays={
            "windows": np.full((1, 1), 100),
            "tokens": np.full((1, 1), 12800),
            "token_kind_count": kinds,
            "layer_attention": np.ones((1, 128, 128)),
            **(arrays or {}),
        },
        numbers=numbers,
        model={"heads": 12, "layers": depth or numbers[-1] + 1},
        **options,
    )


def attention_on(sentence_end: list[float], **more: Any) -> dict[str, Any]:
    """Columns of layers: attention on sentence ends, and none on other punctuation."""
    zeros = [0.0] * len(sentence_end)
    return {
        "attention_to_sentence_end": sentence_end,
        "attention_to_comma": zeros,
        "attention_to_punctuation": zeros,
        **more,
    }


def heads(**columns: Any) -> dict[str, Any]:
    """Columns of the heads of one layer."""
    count = len(next(iter(columns.values())))
    table = {"layer": [0] * count, "head": list(range(count)), "pairs_per_window": [50.0] * count}
    return {**table, "repeat_chance": [0.01] * count, "mean_distance": [20.0] * count, **columns}
