"""Columns made of what moved when heads were silenced, with how sure they are. No torch.

Sums are kept for each group of texts (see `jackknife`): (C, G) for C cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from headscope.measure.declaration import Unit
from headscope.measure.jackknife import INTERVALS_COLUMNS, Estimate, within

if TYPE_CHECKING:
    import pandas as pd

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Effect:
    """A column. made_of: the sum, divided by the count `over`; less: the sum that is taken off it first."""

    name: str
    label: str
    unit: Unit
    definition: str
    made_of: str
    over: str
    less: str | None = None
    most: float = np.inf


EFFECTS = (
    Effect(
        "hidden_change",
        "change of hidden states",
        "number",
        "Mean over all tokens of |x' - x| / |x|, x the final hidden states and x' those with the heads silenced.",
        "hidden_change",
        "tokens",
    ),
    Effect(
        "hidden_cosine",
        "cosine of hidden states",
        "difference",
        "Mean over all tokens of the cosine of x and x'.",
        "hidden_cosine",
        "tokens",
        most=1.0,
    ),
    Effect(
        "embedding_cosine",
        "cosine of embeddings",
        "difference",
        "Mean over windows of the cosine of two embeddings of the window: the means of x and of x' over its tokens.",
        "embedding_cosine",
        "windows",
        most=1.0,
    ),
    Effect(
        "loss",
        "loss",
        "number",
        "Mean over all predicted tokens of -log p, in nats, with the heads silenced.",
        "loss",
        "predicted",
    ),
    Effect(
        "loss_increase",
        "increase of the loss",
        "difference",
        "The loss less that of the undisturbed model on the same tokens.",
        "loss",
        "predicted",
        less="undisturbed_loss",
    ),
)
BY_NAME = {effect.name: effect for effect in EFFECTS}


def effects_of(sums: Arrays) -> list[Effect]:
    """Those that can be made of these sums: without a loss there is none."""
    return [effect for effect in EFFECTS if effect.made_of in sums]


def estimate(sums: Arrays, effect: Effect) -> Estimate:
    """A number a case, (C,), and what it would be without each group that holds texts."""
    part = sums[effect.made_of] - (sums[effect.less] if effect.less else 0.0)
    return ratio(part, sums[effect.over])


def undisturbed_loss(sums: Arrays) -> Estimate:
    """Of the model as it is: one number."""
    return ratio(sums["undisturbed_loss"][None], sums["predicted"])


def ratio(part: NDArray[np.float64], whole: NDArray[np.int64]) -> Estimate:
    """part (C, G) over whole (G,), both summed over groups of texts. Groups that hold nothing take no part."""
    holding = np.flatnonzero(whole)
    part, count = part[:, holding], whole[holding].astype(np.float64)
    total, all_of_it = part.sum(1), count.sum()
    others = all_of_it - count
    left_out = np.full((len(holding), len(part)), np.nan)
    np.divide((total - part.T), others[:, None], out=left_out, where=others[:, None] > 0)
    weight = np.repeat(count[:, None] / max(all_of_it, 1), len(part), 1)
    value = total / all_of_it if all_of_it else np.full(len(part), np.nan)
    return Estimate(value, left_out, weight)


def ends(effect: Effect, found: Estimate) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of 95 % intervals, no higher than such a number can be."""
    low, high = within(effect.unit, found)
    return low, np.minimum(high, effect.most)


def head_table(sums: Arrays, heads: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """A row a head; heads: (layer, head) of each case."""
    import pandas as pd

    table = pd.DataFrame(heads, columns=["layer", "head"])
    return table.assign(**{effect.name: estimate(sums, effect).value for effect in effects_of(sums)})


def intervals(sums: Arrays, heads: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """A row a head and column, as the intervals of a study: value, low, high, groups."""
    import pandas as pd

    layers, numbers = (np.array(one) for one in zip(*heads, strict=True))
    rows = []
    for effect in effects_of(sums):
        found = estimate(sums, effect)
        low, high = ends(effect, found)
        values = (layers, numbers, effect.name, found.value, low, high, found.groups)
        rows.append(pd.DataFrame(dict(zip(INTERVALS_COLUMNS, values, strict=True))))
    return pd.concat(rows, ignore_index=True)


def case_table(sums: Arrays, cases: Sequence[int]) -> pd.DataFrame:
    """A row for each of these cases: every column, and its ends as `NAME_low` and `NAME_high`."""
    import pandas as pd

    columns: dict[str, NDArray[np.float64]] = {}
    for effect in effects_of(sums):
        found = estimate(sums, effect).at(list(cases))
        low, high = ends(effect, found)
        columns |= {effect.name: found.value, f"{effect.name}_low": low, f"{effect.name}_high": high}
    return pd.DataFrame(columns)
