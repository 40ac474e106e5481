"""Heads removed one after the other: in which order, and how many at each step of a curve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headscope.errors import HeadscopeError
from headscope.folder.ablation_folder import Row
from headscope.folder.study_folder import StudyFolder
from headscope.speaking import option

Head = tuple[int, int]
Case = tuple[Head, ...]
RANDOM_ORDERS, STEPS = 5, 12
RANDOM = "random"


@dataclass(frozen=True)
class Order:
    """In which order heads are removed. column: of the table `heads` of a study; falling: the highest first."""

    name: str
    kind: Literal["importance", "measure", "random"]
    column: str | None = None
    falling: bool = False


def parse_order(text: str) -> Order:
    """
    >>> parse_order("measure:-focal_share")
    Order(name='measure:-focal_share', kind='measure', column='focal_share', falling=True)
    """
    if text == "importance":
        return Order(text, "importance")
    if text == RANDOM:
        return Order(text, "random")
    match = re.fullmatch(r"measure:(-?)(\w+)", text)
    if match is None:
        raise HeadscopeError(
            f"{option('order')} is {text!r}; it must be importance, measure:COLUMN, measure:-COLUMN or random."
        )
    return Order(text, "measure", match[2], bool(match[1]))


def removed_at(heads: int, steps: int) -> list[int]:
    """How many of the heads are gone at each step; at the last, all.

    >>> removed_at(10, 4)
    [2, 5, 8, 10]
    """
    return sorted({round(heads * step / steps) for step in range(1, steps + 1)} - {0})


def ordered(values: NDArray[np.float64], falling: bool = False) -> list[int]:
    """Places from the lowest value to the highest, or the other way; equal ones as they stand, unknown ones last."""
    key = -values if falling else values
    places: list[int] = np.argsort(np.where(np.isnan(key), np.inf, key), kind="stable").tolist()
    return places


def curve_cases(
    heads: Sequence[Head],
    orders: Sequence[Order],
    random_orders: int,
    steps: int,
    seed: int,
    importance: NDArray[np.float64] | None,
    study: StudyFolder | None,
) -> tuple[tuple[Case, ...], list[Row]]:
    """Every set of heads that is to be silenced, each once, and the rows of the curve that are made of them.

    importance: of each of the heads. Random orders, named `random 1` and so on, are drawn from the seed.
    """
    sequences: dict[str, list[int]] = {}
    for order in orders:
        if order.kind == "importance":
            assert importance is not None
            sequences[order.name] = ordered(importance)
        elif order.column is not None:
            assert study is not None
            sequences[order.name] = ordered(_column(study, order.column, heads), order.falling)
    for number in range(1, max(random_orders, int(any(one.kind == "random" for one in orders))) + 1):
        draws = np.random.default_rng([abs(seed), number])
        sequences[f"{RANDOM} {number}"] = draws.permutation(len(heads)).tolist()
    cases: dict[Case, int] = {}
    rows = []
    for name, sequence in sequences.items():
        for removed in removed_at(len(heads), steps):
            case = tuple(sorted(heads[place] for place in sequence[:removed]))
            rows.append(Row(name, removed, cases.setdefault(case, len(cases))))
    return tuple(cases), rows


def _column(study: StudyFolder, column: str, heads: Sequence[Head]) -> NDArray[np.float64]:
    """A column of a study at these heads."""
    table = study.heads
    names = zip(table["layer"].tolist(), table["head"].tolist(), strict=True)
    values = dict(zip(names, study.column("heads", column).tolist(), strict=True))
    lacking = next((head for head in heads if head not in values), None)
    if lacking is not None:
        raise HeadscopeError(
            f"{study.folder} did not measure head {lacking[0]}:{lacking[1]}; give a study of the same layers, or "
            f"{option('layers')}."
        )
    return np.array([values[head] for head in heads])
