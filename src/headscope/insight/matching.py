"""Heads of different models that do the same: matched by what was measured of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headscope.measure.catalogue import columns

PROFILE = tuple(column.name for column in columns().values() if column.profile)
"""The columns of the table `heads` that say what a head does."""
PLACE = ["layer", "head"]


def match_heads(heads: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The heads of every two models that are each other's nearest, the closest first.

    A head's profile is its rank in each column of PROFILE among all heads of all models, 0 to 1. `difference` is the
    mean difference of two profiles: 0 for twins, 1/3 for two heads that have nothing in common. `chance` is the mean
    difference of such matches after the columns of the second model were shuffled among its heads.
    Heads without high pairs have no profile and no match.
    """
    ranked = _profiles(heads)
    found = []
    for one, other in combinations(heads, 2):
        first, second = ranked[one], ranked[other]
        if first.empty or second.empty:
            continue
        here, there, difference = _mutual(_columns(first), _columns(second))
        chance = _mutual(_columns(first), _shuffled(_columns(second)))[2].mean()
        found.append(
            pd.DataFrame(
                {
                    "model": one,
                    "layer": first["layer"].to_numpy()[here],
                    "head": first["head"].to_numpy()[here],
                    "other_model": other,
                    "other_layer": second["layer"].to_numpy()[there],
                    "other_head": second["head"].to_numpy()[there],
                    "difference": difference,
                    "chance": chance,
                }
            )
        )
    if not found:
        names = ["model", *PLACE, "other_model", "other_layer", "other_head", "difference", "chance"]
        return pd.DataFrame(columns=names)
    return pd.concat(found).sort_values("difference", kind="stable", ignore_index=True)


def nearest_heads(heads: pd.DataFrame, count: int) -> list[list[tuple[int, int, float]]]:
    """Of each row of a study's `heads`, the other heads of the same model whose profiles differ least: layer, head and
    difference, as `match_heads` has it. A head without high pairs has none."""
    ranked = _profiles({"": heads})[""]
    rows = ranked.index.get_level_values(-1)
    profiles = _columns(ranked)
    places = ranked[PLACE].to_numpy().tolist()
    found: list[list[tuple[int, int, float]]] = [[] for _ in range(len(heads))]
    for row, profile in zip(rows, profiles, strict=True):
        apart = np.abs(profiles - profile).mean(1)
        apart[rows == row] = np.inf
        nearest = np.argsort(apart, kind="stable")[:count]
        found[row] = [(*places[k], round(float(apart[k]), 3)) for k in nearest if np.isfinite(apart[k])]
    return found


def _profiles(heads: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    shared = [name for name in PROFILE if all(name in table for table in heads.values())]
    whole = pd.concat({name: table[[*PLACE, *shared]] for name, table in heads.items()}, names=["model"])
    whole = whole.dropna(subset=[name for name in ("mean_distance",) if name in shared])
    whole[shared] = whole[shared].rank(pct=True).fillna(0.5)
    models = whole.index.get_level_values("model")
    return {name: whole[models == name] for name in heads}


def _columns(profiles: pd.DataFrame) -> NDArray[np.float64]:
    """(heads, columns)"""
    return profiles.drop(columns=PLACE).to_numpy(dtype=np.float64)


def _mutual(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Rows of two arrays that are each other's nearest, and how far apart they are."""
    apart = np.abs(first[:, None] - second[None]).mean(-1)
    nearest = apart.argmin(1)
    rows = np.flatnonzero(apart.argmin(0)[nearest] == np.arange(len(first)))
    return rows, nearest[rows], apart[rows, nearest[rows]]


def _shuffled(profiles: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.random.default_rng(0).permuted(profiles, axis=0)
