"""The verdicts that a claim may have: how tables mark them, and how sentences count them over claims and models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from headscope.wording import listed

Verdict = Literal[
    "holds",
    "holds only by distance",
    "holds without learning",
    "holds on shuffled tokens",
    "does not hold",
    "can't be said",
]


@dataclass(frozen=True)
class Mark:
    """How a verdict is shown. symbol: in tables; letter: where a terminal has no symbols. tone: what it comes to: yes,
    no, near (met, but not for the paper's reason) or open. many: of several claims, as in "2 hold"."""

    symbol: str
    letter: str
    tone: Literal["yes", "no", "near", "open"]
    many: str


VERDICTS: dict[Verdict, Mark] = {
    "holds": Mark("●", "y", "yes", "hold"),
    "holds only by distance": Mark("◐", "d", "near", "hold only by distance"),
    "holds without learning": Mark("△", "w", "near", "hold without learning"),
    "holds on shuffled tokens": Mark("□", "s", "near", "hold on shuffled tokens"),
    "does not hold": Mark("○", "n", "no", "do not hold"),
    "can't be said": Mark("·", "?", "open", "can't be said"),
}
"""Without learning: random weights meet the criterion too. On shuffled tokens: the same windows with their tokens
shuffled meet it too."""

MANY = {"model": "models", "study": "studies"}
NAMED = 2
"""Models that a sentence names; of more it says how many they are."""


def counted_verdicts(verdicts: Sequence[str]) -> str:
    """
    >>> counted_verdicts(["holds", "does not hold", "holds"])
    '2 hold, 1 does not hold'
    """
    counts = {verdict: verdicts.count(verdict) for verdict in VERDICTS}
    return ", ".join(
        f"{count} {verdict if count == 1 else VERDICTS[verdict].many}" for verdict, count in counts.items() if count
    )


def verdicts_in_words(
    verdicts: pd.DataFrame, drawn: Sequence[str] = (), each: Literal["model", "study"] = "model"
) -> list[str]:
    """What holds where, in sentences. verdicts: a row a claim, under its topic; a column a model. drawn: the models of
    random weights. each: what a column is called."""
    models = verdicts.shape[1]
    holding = (verdicts == "holds").sum(axis=1)
    trained = verdicts.drop(columns=list(drawn))
    tones = verdicts.map(lambda verdict: VERDICTS[verdict].tone)
    # A claim may not hold where it can be said, and can't be said elsewhere: the last sentence tells where.
    nowhere = tones.isin(["no", "open"]).all(axis=1) & (tones == "no").any(axis=1)
    return [
        _by_model((verdicts == "holds").sum(), len(verdicts)),
        f"Claims that hold in every {each}: {_quoted(verdicts.index[holding == models])}.",
        *(_in_trained(trained) if 0 < trained.shape[1] < models else []),
        *_in_some(holding[(holding > 0) & (holding < models)], models, MANY[each]),
        f"Claims that hold in no {each}: {_quoted(verdicts.index[nowhere])}.",
        *(
            f"Claims that {mark.many}: {_places(verdicts == verdict, MANY[each])}."
            for verdict, mark in VERDICTS.items()
            if mark.tone in ("near", "open") and (verdicts == verdict).any(axis=None)
        ),
    ]


def _by_model(held: pd.Series, claims: int) -> str:
    (name, count), *others = held.items()
    counts = [
        f"{count} {'holds' if count == 1 else 'hold'} in {name}",
        *(f"{count} in {name}" for name, count in others),
    ]
    return f"Of the paper's {claims} claims, {listed(counts)}."


def _in_trained(verdicts: pd.DataFrame) -> list[str]:
    """A model of random weights would hide what is common to all others."""
    return [f"Claims that hold in every trained model: {_quoted(verdicts.index[(verdicts == 'holds').all(axis=1)])}."]


def _in_some(holding: pd.Series, models: int, called: str) -> list[str]:
    """holding: in how many models each of these claims holds."""
    counts = sorted(set(holding), reverse=True)
    told = "; ".join(f"{_quoted(holding.index[holding == count])} in {count} of {models}" for count in counts)
    return [f"Claims that hold in some {called}: {told}."] if counts else []


def _places(found: pd.DataFrame, called: str) -> str:
    """Claims, each with the models where something was found."""
    told = []
    for topic, row in found[found.any(axis=1)].iterrows():
        names = [str(name) for name in found.columns[row]]
        where = listed(names) if len(names) <= NAMED else f"{len(names)} of {len(row)} {called}"
        told.append(f"“{topic}” ({where})")
    return ", ".join(told)


def _quoted(topics: Iterable[str]) -> str:
    return ", ".join(f"“{topic}”" for topic in topics) or "none"
