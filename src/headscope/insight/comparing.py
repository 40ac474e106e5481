"""Studies side by side: what differs, the same quantities by relative depth, the paper's claims, heads that match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headscope.corpus.windows import SEPARATORS
from headscope.errors import HeadscopeError
from headscope.folder.manifest import Manifest
from headscope.folder.study_folder import StudyAt, StudyFolder
from headscope.insight.chance import distance_chance, kind_chance
from headscope.insight.choices import is_random
from headscope.insight.claims import CLAIMS_FORMAT, Claim, claims, claims_facts
from headscope.insight.comparing_importance import importance_in_words
from headscope.insight.comparing_roles import roles_by_depth, roles_in_words, strongest, with_nulls
from headscope.insight.differing import heading, same_model, same_texts, what_differs
from headscope.insight.head_by_head import DIFFERENCES, HeadByHead, why_not
from headscope.insight.matching import match_heads
from headscope.insight.sureness import CLEARLY
from headscope.insight.verdicts import verdicts_in_words
from headscope.measure.catalogue import columns
from headscope.speaking import option
from headscope.wording import listed, percent

SAME = ("length", "threshold", "line_threshold", "special", "similarity")
"""Options that change what the numbers mean: studies that differ in one can't stand side by side."""


@dataclass(frozen=True)
class Quantity:
    """A column of the table: how a figure names it; chance: the column of what chance gives, or a number; column: that
    of a study's layers that it is, whose intervals it has; less: the smaller, the more telling."""

    label: str
    chance: str | float | None = None
    column: str | None = None
    less: bool = False


QUANTITIES: dict[str, Quantity] = {
    "distance": Quantity("mean distance of high pairs, tokens", "distance_chance", "mean_distance", True),
    "same_sentence_over_distance": Quantity("same sentence, times by distance", 1),
    "repeats_over_distance": Quantity("equal tokens, times by distance", 1),
    "signal_to_noise_sentence": Quantity("same sentence, signal over noise", 0, "signal_to_noise_sentence"),
    "signal_to_noise_repeat": Quantity("equal tokens, signal over noise", 0, "signal_to_noise_repeat"),
    "attention_on_separators": Quantity("attention on separators, share", "separators_chance"),
    "unique_focal_share": Quantity("different focal tokens, a head", "unique_focal_chance"),
    "block_contrast": Quantity("block contrast", 0, "block_contrast"),
}


class Compared:
    """Several studies, side by side. See `headscope.compare`.

    models: their labels. heading: what they are to each other. what_differs: a row for each fact that differs, a
    column per model. table: a row per model and layer. claims: a row per claim of the paper, a column per model.
    matches: heads of two models that are each other's nearest. sentences: what is common and what is not.
    roles: a row per model and role. beside: a row per model and quantity, beside chance and nulls.
    differences: of two studies of the same shape, a row per layer, head and column: what the second has less the first.
    """

    def __init__(self, studies: Mapping[str, StudyFolder]) -> None:
        self.studies = dict(studies)

    @property
    def models(self) -> list[str]:
        """The labels of the studies, in order."""
        return list(self.studies)

    @property
    def _manifests(self) -> list[Manifest]:
        return [study.manifest for study in self.studies.values()]

    @property
    def heading(self) -> str:
        """What the studies are to each other: "The same model on different texts"."""
        return heading(self._manifests)

    @cached_property
    def what_differs(self) -> pd.DataFrame:
        """A row for each fact that is not the same in all studies, a column per model; weights, texts and windows by
        their hashes. None: there is none, or it is not known."""
        return what_differs(dict(zip(self.models, self._manifests, strict=True)))

    @property
    def same_model(self) -> bool:
        """Whether the studies are of the same weights."""
        return same_model(self._manifests)

    @property
    def same_texts(self) -> bool:
        """Whether they are of the same windows."""
        return same_texts(self._manifests)

    @property
    def why_not_head_by_head(self) -> str | None:
        """One sentence where heads can't be compared one by one; None where they can."""
        return why_not(self.studies)

    @cached_property
    def head_by_head(self) -> HeadByHead | None:
        """Of two studies whose heads answer to each other."""
        return None if self.why_not_head_by_head else HeadByHead(self.studies)

    @property
    def differences(self) -> pd.DataFrame:
        """A row per layer, head and column that both studies have: `a`, `b`, and `difference`, b less a, from `low` to
        `high` its 95 % interval; `differs`: it is told from 0 at a false discovery rate of 5 % among the heads of the
        column. No rows where heads do not answer to each other: `why_not_head_by_head` says why."""
        return pd.DataFrame(columns=list(DIFFERENCES)) if self.head_by_head is None else self.head_by_head.table

    @property
    def of_texts(self) -> bool:
        """Not of images, of which the paper claims nothing."""
        return all(study.manifest.kind == "texts" for study in self.studies.values())

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row per model and layer."""
        found = []
        for name, study in self.studies.items():
            nulls: dict[str, pd.DataFrame] = {null: _by_depth(name, one) for null, one in study.nulls.items()}
            found.append(with_nulls(_by_depth(name, study), nulls, list(QUANTITIES)))
        return pd.concat(found, ignore_index=True)

    @cached_property
    def roles(self) -> pd.DataFrame:
        """A row per model and role: how many heads, and how many in each third of the depth."""
        return roles_by_depth(self.studies)

    @cached_property
    def beside(self) -> pd.DataFrame:
        """A row per model and quantity, at the layer where it is most: its value, beside chance and nulls."""
        chances = {name: quantity.chance for name, quantity in QUANTITIES.items()}
        return strongest(self.table, chances, {name for name, quantity in QUANTITIES.items() if quantity.less})

    @cached_property
    def judged(self) -> dict[str, list[Claim]]:
        """Every claim of the paper, by model; studies of images are refused."""
        return {name: claims(study) for name, study in self.studies.items()}

    @cached_property
    def claims(self) -> pd.DataFrame:
        """A row per claim of the paper, a column per model: the verdict."""
        judged = self.judged if self.of_texts else {name: [] for name in self.models}
        first = next(iter(judged.values()))
        verdicts = {name: [claim.verdict for claim in found] for name, found in judged.items()}
        return pd.DataFrame(
            {"claim": [claim.topic for claim in first], "paper": [claim.paper for claim in first]} | verdicts
        )

    @property
    def claims_in_words(self) -> list[str]:
        """Which claims hold in which models."""
        drawn = [name for name, study in self.studies.items() if is_random(study)]
        verdicts = self.claims.set_index("claim")[self.models]
        return verdicts_in_words(verdicts, drawn, "study" if self.same_model else "model")

    @property
    def claims_facts(self) -> dict[str, Any]:
        """Which claims hold in which models, and all that there is to say of each, for other programs."""
        facts = [{"label": name, **claims_facts(self.studies[name], found)} for name, found in self.judged.items()]
        return {
            "format": CLAIMS_FORMAT,
            "headscope": facts[0]["headscope"],
            "same_texts": self.same_texts,
            "matrix": self.claims_matrix,
            "sentences": self.claims_in_words,
            "studies": facts,
        }

    @property
    def claims_matrix(self) -> list[dict[str, Any]]:
        """Which claim holds in which model, for other programs."""
        return [
            {
                "topic": row["claim"],
                "paper": row["paper"],
                "verdicts": {name: row[name] for name in self.models},
                "holds_in": sum(row[name] == "holds" for name in self.models),
            }
            for row in self.claims.to_dict("records")
        ]

    @cached_property
    def matches(self) -> pd.DataFrame:
        """Heads of two models that are each other's nearest, the most alike first."""
        return match_heads({name: study.heads for name, study in self.studies.items()})

    @property
    def sentences(self) -> list[str]:
        """What differs head by head, then what is common and what is not."""
        return [*([] if self.head_by_head is None else self.head_by_head.sentences), *self.common]

    @cached_property
    def common(self) -> list[str]:
        """What is common and what is not, by depth, roles, claims and profiles."""
        if not self.of_texts:
            shortest = _extreme(
                self, "distance", "The mean distance is shortest", "{:.1f} patches".format, largest=False
            )
            return [shortest, *_focal(self), *_matches_in_words(self)]
        return [
            _above_chance(self, "same_sentence", "High pairs lie within one sentence"),
            _above_chance(self, "repeats", "High pairs are of equal tokens"),
            _extreme(self, "distance", "The mean distance is shortest", "{:.0f} tokens".format, largest=False),
            _extreme(self, "attention_on_separators", "Separators draw most attention", percent),
            *_focal(self),
            *roles_in_words(self.studies),
            *importance_in_words(self.studies),
            *self.claims_in_words,
            *_matches_in_words(self),
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.models)})"


def _shorter(one: StudyFolder, other: StudyFolder) -> StudyFolder:
    """That with the shorter windows."""
    return min(one, other, key=lambda study: study.manifest.options.length)


def side_by_side(studies: Sequence[StudyFolder]) -> dict[str, StudyFolder]:
    """Studies under their labels; those that can't stand side by side are refused."""
    opened = list(studies)
    for study in opened:
        study.check_not_empty()
    for study in opened[1:]:
        if isinstance(study, StudyAt) != isinstance(opened[0], StudyAt):
            raise HeadscopeError(
                f"Of {opened[0].folder} and {study.folder} one is read at another threshold, so its shares are pooled "
                "over pairs, and the other's are means over windows; read both by study.at, or neither."
            )
        if study.manifest.kind != opened[0].manifest.kind:
            raise HeadscopeError(
                f"{opened[0].folder} is a study of {opened[0].manifest.kind}, {study.folder} one of "
                f"{study.manifest.kind}; only studies of the same can be compared."
            )
        for name in SAME:
            here, there = (getattr(one.manifest.options, name) for one in (opened[0], study))
            if here != there and not (name == "length" and _shorter(opened[0], study).manifest.of_whole_texts):
                raise HeadscopeError(
                    f"{opened[0].folder} was measured with {option(name, here)}, {study.folder} with "
                    f"{there}; only studies with the same can be compared."
                )
    return dict(zip(_labels(opened), opened, strict=True))


def _labels(studies: list[StudyFolder]) -> list[str]:
    """Short names of the models; of those that are the same, the folders' names too."""
    short = []
    for study in studies:
        name = study.model_name
        random = "random " if name.startswith("random:") else ""
        stack = study.manifest.model.stack
        short.append(random + Path(name.removeprefix("random:")).name + (f" {stack}" if stack else ""))
    doubled = {name for name in short if short.count(name) > 1}
    labels = [
        f"{name} ({study.folder.name})" if name in doubled else name for name, study in zip(short, studies, strict=True)
    ]
    if len(set(labels)) < len(labels):
        labels = [f"{name} ({study.folder})" for name, study in zip(short, studies, strict=True)]
    if len(set(labels)) < len(labels):
        raise HeadscopeError("The same study folder was given twice.")
    return labels


def _by_depth(name: str, study: StudyFolder) -> pd.DataFrame:
    deepest = study.manifest.model.layers - 1
    layer = study.column("layers", "layer")
    column = {
        name: _where_there_is(study, name)
        for name in (
            "mean_distance",
            "same_sentence_probability",
            "repeat_probability",
            "unique_focal_tokens",
            "unique_focal_chance",
            "block_contrast",
            "signal_to_noise_sentence",
            "signal_to_noise_repeat",
            *(f"attention_to_{kind}" for kind in SEPARATORS),
        )
    }
    known = columns(study.manifest.gives)
    relations = [known.get(name) for name in ("same_sentence_probability", "repeat_probability")]
    by_chance = [_where_there_is(study, term.chance if term else None) for term in relations]
    by_distance = [_where_there_is(study, term.given_distance if term else None) for term in relations]
    return pd.DataFrame(
        {
            "model": name,
            "layer": layer.astype(np.int64),
            "depth": layer / max(deepest, 1),
            "distance": column["mean_distance"],
            "distance_chance": _or_nan(distance_chance(study)),
            "same_sentence": column["same_sentence_probability"],
            "same_sentence_chance": by_chance[0],
            "same_sentence_over_chance": column["same_sentence_probability"] / by_chance[0],
            "same_sentence_over_distance": column["same_sentence_probability"] / by_distance[0],
            "repeats": column["repeat_probability"],
            "repeat_chance": by_chance[1],
            "repeats_over_chance": column["repeat_probability"] / by_chance[1],
            "repeats_over_distance": column["repeat_probability"] / by_distance[1],
            "signal_to_noise_sentence": column["signal_to_noise_sentence"],
            "signal_to_noise_repeat": column["signal_to_noise_repeat"],
            "attention_on_separators": sum(column[f"attention_to_{kind}"] for kind in SEPARATORS),
            "separators_chance": _or_nan(kind_chance(study, SEPARATORS)),
            "unique_focal_tokens": column["unique_focal_tokens"],
            "unique_focal_share": column["unique_focal_tokens"] / study.manifest.model.heads,
            "unique_focal_chance": column["unique_focal_chance"] / study.manifest.model.heads,
            "block_contrast": column["block_contrast"],
        }
    )


def _where_there_is(study: StudyFolder, name: str | None) -> NDArray[np.float64]:
    """A column of the layers; NaN where the study has none such."""
    if name is None or name not in study.layers:
        return np.full(len(study.layers), np.nan)
    return study.column("layers", name)


def _or_nan(chance: float | None) -> float:
    return np.nan if chance is None else chance


def _above_chance(comparison: Compared, relation: str, opening: str) -> str:
    """Above means by a tenth, in the mean over the layers; against what distance alone gives, where studies know it."""
    means = comparison.table.groupby("model", sort=False)[f"{relation}_over_distance"].mean()
    plain = comparison.table.groupby("model", sort=False)[f"{relation}_over_chance"].mean()
    known = [name for name in comparison.models if not np.isnan(means[name])]
    above = [name for name in known if means[name] > CLEARLY]
    if not known:
        figures = ", ".join(f"{name} {plain[name]:.2f}" for name in comparison.models if not np.isnan(plain[name]))
        return f"{opening}, times chance, mean over the layers: {figures}; what distance alone gives is not known."
    told = ", ".join(f"{name} {means[name]:.2f} (plain chance {plain[name]:.2f})" for name in known)
    everywhere = len(above) == len(comparison.models)
    where = "in all of them" if everywhere else f"in {listed(above)}" if above else "in none of them"
    return f"{opening} more often than their distance explains {where} (times, mean over the layers: {told})."


def _extreme(
    comparison: Compared, column: str, opening: str, told_as: Callable[[float], str], *, largest: bool = True
) -> str:
    told = []
    for name, table in comparison.table.groupby("model", sort=False):
        values = table.set_index("layer")[column].dropna()
        if len(values):
            place = int(values.argmax() if largest else values.argmin())
            told.append(f"in layer {values.index[place]} of {name} ({told_as(float(values.iloc[place]))})")
    return f"{opening} {listed(told)}." if told else f"{opening} nowhere: there are no high pairs."


def _focal(comparison: Compared) -> list[str]:
    last = comparison.table.groupby("model", sort=False).tail(1).set_index("model")
    heads = {name: study.manifest.model.heads for name, study in comparison.studies.items()}
    unique = last["unique_focal_tokens"].dropna()
    told = [f"{unique[name]:.1f} of {heads[name]} in {name}" for name in comparison.models if name in unique]
    return [f"In the last layer the heads have different focal tokens: {listed(told)}."] if told else []


def _matches_in_words(comparison: Compared) -> list[str]:
    told = []
    for (one, other), found in comparison.matches.groupby(["model", "other_model"], sort=False):
        told.append(
            f"{len(found)} {'pair' if len(found) == 1 else 'pairs'} of heads of {one} and {other} are each other's "
            f"nearest; their profiles differ by "
            f"{found['difference'].mean():.2f} on average, where shuffled heads give {found['chance'].iloc[0]:.2f}."
            f"{_in_place(comparison, found)}"
        )
    return told


def _in_place(comparison: Compared, found: pd.DataFrame) -> str:
    """Nothing in a profile knows the number of a head: where nearest heads have the same, one model is likely made from
    the other."""
    if comparison.head_by_head is None:
        return ""
    in_place = (found["layer"] == found["other_layer"]) & (found["head"] == found["other_head"])
    return f" {int(in_place.sum())} of the pairs have the same layer and head."
