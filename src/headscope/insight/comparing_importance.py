"""What heads are worth in several models, where ablations lie in the folders of their studies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.errors import HeadscopeError
from headscope.folder.ablation_folder import ablation_of
from headscope.folder.study_folder import StudyFolder
from headscope.insight.importance import DEPTH, WITHIN, predictors, sentence
from headscope.wording import listed

if TYPE_CHECKING:
    import pandas as pd


def importance_in_words(studies: Mapping[str, StudyFolder]) -> list[str]:
    """A sentence for each model that has an ablation; of several, which measures tell in all of them."""
    told, found = [], []
    for name, study in studies.items():
        try:
            ablation = ablation_of(study)
            if ablation is None or ablation.heads is None:
                continue
            heads = list(zip(ablation.heads["layer"].tolist(), ablation.heads["head"].tolist(), strict=True))
            table = predictors(heads, ablation.importance, study)
        except HeadscopeError as problem:
            told.append(str(problem))
            continue
        told.append(f"{name}. {sentence(ablation, table)}")
        found.append(signs(table))
    if len(found) > 1:
        common = sorted(set.intersection(*found))
        named = [f"{column} ({'more' if sign > 0 else 'less'})" for column, sign in common] or ["nothing"]
        told.append(f"Within layers, what tells a head that matters in all {len(found)} ablations: {listed(named)}.")
    return told


def signs(table: pd.DataFrame) -> set[tuple[str, int]]:
    """The columns that are told from 0 within layers, and in which direction."""
    some = table[(table["where"] == WITHIN) & table["found"] & (table["column"] != DEPTH)]
    return {(str(row["column"]), 1 if row["correlation"] > 0 else -1) for row in some.to_dict("records")}
