"""What chance gives, where the tables do not already say it. None: it can't be told from this study."""

from __future__ import annotations

from collections.abc import Sequence

from headscope.corpus.windows import KINDS
from headscope.folder.study_folder import StudyFolder


def kind_chance(study: StudyFolder, kinds: Sequence[str]) -> float | None:
    """The share of tokens of some kinds: what attention spread evenly would give them."""
    if "token_kind_count" not in study.arrays:
        return None
    counts = study.arrays["token_kind_count"][0, 0]
    return float(counts[[KINDS.index(kind) for kind in kinds]].sum() / counts.sum())


def attention_chance(study: StudyFolder) -> float:
    """The mean weight on any one token where attention is spread evenly: one in as many tokens as a window has."""
    return float(study.arrays["windows"][0, 0] / study.arrays["tokens"][0, 0])


def distance_chance(study: StudyFolder) -> float | None:
    """The mean distance of all pairs: of patches on their grid, of tokens (S + 1) / 3; known where all tokens of whole
    windows take part."""
    if study.grid is not None:
        return study.grid.mean_distance
    length = study.manifest.options.length
    whole = study.arrays["tokens"][0, 0] == study.arrays["windows"][0, 0] * length
    return (length + 1) / 3 if whole and study.manifest.options.special == "keep" else None
