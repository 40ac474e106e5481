"""What chance gives, where the tables do not already say it. None: it can't be told from this study."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.windows import KINDS
from headscope.folder.study_folder import StudyFolder


def kind_chance(study: StudyFolder, kinds: Sequence[str]) -> float | None:
    """The share of tokens of some kinds: what attention spread evenly would give them."""
    if "token_kind_count" not in study.arrays:
        return None
    counts = study.arrays["token_kind_count"][0, 0]
    return float(counts[[KINDS.index(kind) for kind in kinds]].sum() / counts.sum())


def attention_chance(study: StudyFolder, back: int = 0) -> float:
    """The mean weight on the token so many before, or on itself, where attention is spread evenly: one in as many
    tokens as a window has, or, where no token attends to those after it, as there are up to it."""
    if not is_causal(study):
        return float(study.arrays["windows"][0, 0] / study.arrays["tokens"][0, 0])
    windows = layer_attention(study).sum(
        (0, 2)
    )  # in proportion: those that are so long, each row of which adds up to 1
    shares = (windows / np.arange(1, len(windows) + 1))[back:]
    return float(shares.sum() / windows[back:].sum())


def is_causal(study: StudyFolder) -> bool:
    """Whether no token attends to the one after it."""
    return not study.column("heads", "attention_next").any()


def layer_attention(study: StudyFolder) -> NDArray[Any]:
    """(L, S, S): A summed over windows and over the heads of a layer."""
    if "layer_attention" in study.arrays:
        return study.arrays["layer_attention"]
    summed: NDArray[Any] = study.arrays["attention_sum"].sum(1)
    return summed


def tokens_a_window(study: StudyFolder) -> float:
    """How many there are on average; where windows are padded, less than their length."""
    return float(study.arrays["tokens"][0, 0] / study.arrays["windows"][0, 0])


def distance_chance(study: StudyFolder) -> float | None:
    """The mean distance of all pairs: of patches on their grid, of tokens (S + 1) / 3; known where all tokens of whole
    windows take part."""
    if study.grid is not None:
        return study.grid.mean_distance
    length = study.manifest.options.length
    whole = study.arrays["tokens"][0, 0] == study.arrays["windows"][0, 0] * length
    return (length + 1) / 3 if whole and study.manifest.options.special == "keep" else None
