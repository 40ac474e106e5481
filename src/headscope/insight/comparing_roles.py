"""Roles and nulls of several models, side by side: which heads each has, where, and how its numbers stand to nulls."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from headscope.corpus.null_kinds import NULLS
from headscope.folder.study_folder import StudyFolder
from headscope.insight.choices import is_random
from headscope.insight.roles import ROLES
from headscope.wording import listed

THIRDS = ("early", "middle", "late")
"""Of a model's depth."""


def third(layer: int, layers: int) -> str:
    """
    >>> [third(layer, 6) for layer in range(6)]
    ['early', 'early', 'middle', 'middle', 'late', 'late']
    """
    return THIRDS[min(layer * 3 // layers, 2)]


def roles_by_depth(studies: Mapping[str, StudyFolder]) -> pd.DataFrame:
    """A row per model and role that any of them has: how many of its heads, and how many in each third of its depth.
    Models whose nulls were not measured are left out."""
    rows = []
    tables = {name: study.roles for name, study in studies.items() if study.roles is not None}
    there = {role for table in tables.values() for role in table["role"]}
    for name, table in tables.items():
        thirds = table["layer"].map(lambda layer, study=studies[name]: third(layer, study.manifest.model.layers))
        for role in ROLES:
            if role in there:
                mine = table["role"] == role
                counts = {which: int((mine & (thirds == which)).sum()) for which in THIRDS}
                rows.append({"model": name, "role": role, "heads": int(mine.sum()), "of": len(table), **counts})
    return pd.DataFrame(rows, columns=["model", "role", "heads", "of", *THIRDS])


def roles_in_words(studies: Mapping[str, StudyFolder]) -> list[str]:
    """How many heads of each model have a role, which roles all models have, and whose nulls are missing."""
    table = roles_by_depth(studies)
    missing = [name for name, study in studies.items() if study.roles is None]
    told = []
    if len(table):
        models = list(dict.fromkeys(table["model"]))
        sums = table.groupby("model", sort=False)[["heads"]].sum()["heads"]
        of = table.groupby("model", sort=False)["of"].first()
        told.append(f"Heads with a role: {listed([f'{sums[name]} of {of[name]} in {name}' for name in models])}.")
        trained = [name for name in models if not is_random(studies[name])]
        held = table[(table["heads"] > 0) & table["model"].isin(trained)].groupby("role")["model"].nunique()
        everywhere = [role for role in ROLES if held.get(role, 0) == len(trained)]
        if len(trained) > 1:
            told.append(f"Roles that every trained model has: {', '.join(everywhere) or 'none'}.")
    if missing and len(missing) < len(studies):
        told.append(f"No nulls were measured for {listed(missing)}: headscope nulls FOLDER.")
    elif missing:
        told.append("No nulls were measured, so no head has a role: headscope nulls FOLDER, for each study.")
    return told


def with_nulls(table: pd.DataFrame, nulls: Mapping[str, pd.DataFrame], quantities: list[str]) -> pd.DataFrame:
    """The table of a model, a row a layer, with a column for each quantity and null: `distance_weights` and so on. NaN
    where a null was not measured."""
    found = table.copy()
    for null in NULLS:
        for name in quantities:
            found[f"{name}_{null}"] = nulls[null][name].to_numpy() if null in nulls else np.nan
    return found


def strongest(table: pd.DataFrame, quantities: Mapping[str, str | float | None], least: set[str]) -> pd.DataFrame:
    """A row per model and quantity, at the layer where it is most (for those in `least`, least): its value there beside
    chance and nulls. quantities: name -> the column, or number, of what chance gives."""
    rows: list[dict[str, object]] = []
    for model, mine in table.groupby("model", sort=False):
        for name, chance in quantities.items():
            values = mine[name].to_numpy(np.float64)
            if np.isnan(values).all():
                continue
            place = int(np.nanargmin(values) if name in least else np.nanargmax(values))
            row = mine.iloc[place]
            by_chance = row[chance] if isinstance(chance, str) else chance
            rows.append(
                {
                    "model": model,
                    "quantity": name,
                    "layer": int(row["layer"]),
                    "value": float(row[name]),
                    "chance": np.nan if by_chance is None else float(by_chance),
                }
            )
            rows[-1] |= {null: float(row[f"{name}_{null}"]) for null in NULLS}
    return pd.DataFrame(rows, columns=["model", "quantity", "layer", "value", "chance", *NULLS])
