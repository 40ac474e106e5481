"""What each head does, named by rule: the rules and their bounds, all of them, and which head meets which.

A head has a role only where every condition of its rule is met beyond doubt: its number lies on the right side of the
bound, and beyond every null that speaks against it, by the interval of the difference, with a false discovery rate of
5 % over the heads. Without nulls no head has a role, and a null study has none.

Which nulls speak against a role is part of its rule. Random weights always do. No head of random weights is the
counterpart of a trained one, so a head is held against the strongest of its layer there; and since other random weights
would have a stronger one now and then, it must also lie outside of what one more head of that layer could be.
Shuffled tokens speak against what needs the order of words, the sentence: they do not against the previous token, which
is a place, nor against equal tokens, which are equal in any order. Shuffled sentences leave every sentence whole, so
they speak against no role; their numbers stand beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headscope.corpus.null_kinds import CALLED, NULLS, Null
from headscope.folder.roles_file import ROLE, ROLES_COLUMNS
from headscope.folder.study_folder import StudyAt, StudyFolder
from headscope.insight import quantities
from headscope.insight.discoveries import RATE, discovered
from headscope.insight.quantities import Quantity, estimated, over_groups, scaled
from headscope.insight.sureness import too_few_texts
from headscope.measure.jackknife import Estimate, within
from headscope.measure.student import two_sided

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Condition:
    """bound: the least that the quantity must be; of one where less is more, the most. against: the nulls that it must
    be beyond."""

    quantity: Quantity
    bound: float
    against: tuple[Null, ...] = ("weights",)

    def __str__(self) -> str:
        beyond = "less than" if self.quantity.less else "more than"
        nulls = " and ".join(CALLED[null] for null in self.against)
        least = "≤" if self.quantity.less else "≥"
        return f"{self.quantity.label} {least} {self.bound:g}" + (f", and {beyond} {nulls}" if nulls else "")


@dataclass(frozen=True)
class Rule:
    """All conditions must be met; the first is the one that a head is shown by."""

    role: str
    conditions: tuple[Condition, ...]

    @property
    def shown(self) -> Quantity:
        return self.conditions[0].quantity

    def covers(self, other: Rule) -> bool:
        """Whether it asks for all that another asks for, and more."""
        return set(self.conditions) > set(other.conditions)

    def __str__(self) -> str:
        return "; ".join(map(str, self.conditions))


_ON_SEPARATORS = (Condition(quantities.ON_SEPARATORS, 0.5), Condition(quantities.SEPARATORS_LIFT, 2.0))

RULES: tuple[Rule, ...] = (
    Rule("previous token", (Condition(quantities.ON_PREVIOUS, 0.4),)),
    Rule("next token", (Condition(quantities.ON_NEXT, 0.4),)),
    Rule("repeated token", (Condition(quantities.REPEATS, 5.0), Condition(quantities.REPEAT_SIGNAL, 0.0))),
    Rule("itself", (Condition(quantities.ON_ITSELF, 0.4),)),
    Rule(
        "sentence",
        (
            Condition(quantities.IN_ONE_SENTENCE, 1.1, ("tokens", "weights")),
            Condition(quantities.SENTENCE_SIGNAL, 0.0, ("tokens", "weights")),
        ),
    ),
    Rule("focal", (Condition(quantities.FOCAL, 0.5), Condition(quantities.FOCAL_LIFT, 2.0))),
    Rule("separator, carrying", (*_ON_SEPARATORS, Condition(quantities.CARRIED, 0.5, ()))),
    Rule("separator", _ON_SEPARATORS),
    Rule("near", (Condition(quantities.DISTANCE, 0.5),)),
    Rule("broad", (Condition(quantities.HIGH_SHARE, 0.5),)),
)
"""The more special first: a head that meets several has the first of them as its role."""
FEWEST_DRAWN = 4
"""Heads of random weights that say how far one more could be off."""
ROLES = tuple(rule.role for rule in RULES)


def why_no_roles(study: StudyFolder) -> str | None:
    """One sentence where no head of a study can have a role; None where they can."""
    if study.manifest.null is not None:
        return f"This is a null study ({CALLED[study.manifest.null.kind]}): it is what others are held against."
    if isinstance(study, StudyAt):
        return "Roles are known at the study's own threshold alone."
    if study.manifest.kind != "texts":
        return "Heads have roles in studies of texts."
    if set(study.nulls) < set(NULLS):
        return f"Which heads have a role takes nulls: headscope nulls {study.folder}"
    few = next((few for one in (study, *study.nulls.values()) if (few := too_few_texts(one))), None)
    if few is not None:
        return f"No head has a role: {few}"
    return None


def roles(study: StudyFolder) -> pd.DataFrame:
    """A row per layer and head. `role` is empty where a head has none; `also` has the other rules that it meets.

    quantity, value, low, high: what shows the role, of the study; tokens, sentences, weights: the same of the nulls, of
    random weights that of the strongest head of the layer. same_in_halves: whether both halves of the texts, by their
    numbers alone, give the head the same role. falls_short: of a head without a role whose numbers meet the bounds of a
    rule, what it is not told from.
    """
    rows = study.heads[["layer", "head"]].copy()
    reason = why_no_roles(study)
    if reason is not None:
        empty = rows.assign(**{ROLE: "", "also": "", "quantity": "", "falls_short": ""})
        numbers = dict.fromkeys(("value", "low", "high", *NULLS), np.nan)
        return empty.assign(**numbers, same_in_halves=False)[list(ROLES_COLUMNS)]
    judged = [_Judged(study, rule) for rule in RULES]
    halves = [_by_value(study, half) for half in (0, 1)]
    found = []
    for place in range(len(rows)):
        met = [one for one in judged if one.met[place]]
        met = [one for one in met if not any(other.rule.covers(one.rule) for other in met)]
        shown = met[0] if met else None
        role = met[0].rule.role if met else ""
        found.append(
            {
                ROLE: role,
                "also": "; ".join(one.rule.role for one in met[1:]),
                "quantity": shown.rule.shown.label if shown else "",
                **({} if shown is None else shown.numbers(place)),
                "same_in_halves": bool(role) and all(half[place] == role for half in halves),
                "falls_short": "" if met else _falls_short(judged, place),
            }
        )
    table = pd.concat([rows.reset_index(drop=True), pd.DataFrame(found)], axis=1)
    return table.reindex(columns=list(ROLES_COLUMNS))


class _Judged:
    """One rule, held against all heads of a study."""

    def __init__(self, study: StudyFolder, rule: Rule) -> None:
        self.rule = rule
        self._study = study
        margins = [margin for condition in rule.conditions for margin in _margins(study, condition)]
        self._met_by_value = np.all([margin.found.value > 0 for margin in margins], axis=0)
        drawn = [_p_of_draws(study, condition) for condition in rule.conditions if "weights" in condition.against]
        p_values = np.max([*(_one_sided(margin.found) for margin in margins), *drawn], axis=0)
        self.met: Flags = discovered(p_values, RATE)
        self._margins = margins

    def numbers(self, place: int) -> dict[str, float]:
        shown = self.rule.shown
        value = estimated(self._study, shown)
        low, high = within(shown.unit, value)
        nulls: dict[str, float] = {null: float(_rival(self._study, null, shown).value[place]) for null in NULLS}
        return {"value": float(value.value[place]), "low": float(low[place]), "high": float(high[place]), **nulls}

    def falls_short(self, place: int) -> str | None:
        """Of a head that is over all bounds, what keeps it from the role; None where it is not over them."""
        if not all(margin.found.value[place] > 0 for margin in self._margins if margin.of is None):
            return None
        for margin in self._margins:
            if margin.of is not None and not margin.found.value[place] > 0:
                return f"{self.rule.role}, no more than {CALLED[margin.of]}"
        return f"{self.rule.role}, not beyond doubt"


@dataclass(frozen=True)
class _Margin:
    """How far heads are beyond a bound (of: None) or a null, above 0 where they are."""

    found: Estimate
    of: Null | None


def _margins(study: StudyFolder, condition: Condition) -> list[_Margin]:
    value = estimated(study, condition.quantity)
    sign = -1 if condition.quantity.less else 1
    margins = [_Margin(scaled(value - condition.bound, sign), None)]
    for null in condition.against:
        margins.append(_Margin(scaled(value - _rival(study, null, condition.quantity), sign), null))
    return margins


@lru_cache(maxsize=256)
def _rival(study: StudyFolder, null: Null, quantity: Quantity) -> Estimate:
    """What a null has of a quantity, head by head; of random weights the strongest head of each layer."""
    found = estimated(study.nulls[null], quantity)
    if null != "weights":
        return found
    heads = study.manifest.model.heads
    by_layer = found.value.reshape(-1, heads)
    worst = np.where(np.isnan(by_layer), np.inf if quantity.less else -np.inf, by_layer)
    strongest = worst.argmin(1) if quantity.less else worst.argmax(1)
    return found.at(np.repeat(np.arange(len(by_layer)) * heads + strongest, heads))


def _one_sided(margin: Estimate) -> NDArray[np.float64]:
    """How likely a margin as large is if there were none; NaN where it can't be told."""
    two_sided = margin.p_values()
    return np.where(margin.value > 0, two_sided / 2, np.where(np.isnan(two_sided), np.nan, 1.0))


def _p_of_draws(study: StudyFolder, condition: Condition) -> NDArray[np.float64]:
    """How likely one more head of random weights would have as much: by the spread of those of its layer, or of all
    where a layer has fewer than `FEWEST_DRAWN`; (L * H,)."""
    heads = study.manifest.model.heads
    sign = -1 if condition.quantity.less else 1
    value = sign * estimated(study, condition.quantity).value
    drawn = sign * estimated(study.nulls["weights"], condition.quantity).value.reshape(-1, heads)
    if heads < FEWEST_DRAWN:
        drawn = np.tile(drawn.reshape(1, -1), (len(drawn), 1))
    found = []
    for layer, mine in zip(drawn, value.reshape(-1, heads), strict=True):
        known = layer[~np.isnan(layer)]
        if len(known) < 2:
            found.append(np.full(heads, np.nan))
            continue
        reach = float(known.std(ddof=1)) * np.sqrt(1 + 1 / len(known))
        apart = mine - known.mean()
        t = np.divide(apart, reach, out=np.where(apart > 0, np.inf, 0.0), where=reach > 0)
        found.append(np.where(t > 0, two_sided(t, len(known) - 1) / 2, 1.0))
    return np.concatenate(found)


def _by_value(study: StudyFolder, half: int) -> list[str]:
    """The role of each head as half of the groups of texts, every other one, would have it by its numbers alone."""
    groups = [group for group in study.jackknife.holding if group % 2 == half]
    given = ["" for _ in range(len(study.heads))]
    for rule in reversed(RULES):
        met = np.all([_met_by_value(study, condition, groups) for condition in rule.conditions], axis=0)
        given = [rule.role if met[place] else role for place, role in enumerate(given)]
    return given


def _met_by_value(study: StudyFolder, condition: Condition, groups: Collection[int]) -> Flags:
    sign = -1 if condition.quantity.less else 1
    value = over_groups(study, condition.quantity, groups)
    met: Flags = sign * (value - condition.bound) > 0
    for null in condition.against:
        met &= sign * (value - _rival(study, null, condition.quantity).value) > 0
    return met


def _falls_short(judged: Sequence[_Judged], place: int) -> str:
    return next((reason for one in judged if (reason := one.falls_short(place)) is not None), "")


def roles_by_layer(table: pd.DataFrame) -> pd.DataFrame:
    """Roles -> how many heads of each layer have them: a row a layer, a column a role that occurs, in their order."""
    there = [role for role in ROLES if role in set(table[ROLE])]
    return pd.crosstab(table["layer"], table[ROLE]).reindex(columns=there)


def rules_of(roles: Iterable[str]) -> dict[str, str]:
    """What each of some roles takes, in words."""
    return {rule.role: str(rule) for rule in RULES if rule.role in set(roles)}


def summary(study: StudyFolder, table: pd.DataFrame) -> str:
    """In one sentence: how many heads have a role, and which."""
    named = table[table[ROLE] != ""]
    if named.empty:
        return why_no_roles(study) or f"None of {len(table)} heads has a role: none stands over every null."
    counts = named[ROLE].value_counts()
    told = ", ".join(f"{role} {counts[role]}" for role in ROLES if role in counts)
    same = int(named["same_in_halves"].sum())
    return (
        f"{len(named)} of {len(table)} heads have a role ({told}); {same} of {len(named)} have the same in both halves "
        "of the texts."
    )
