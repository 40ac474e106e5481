"""Models side by side: the same quantities by relative depth, the paper's claims, and heads that match."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from headscope.corpus.windows import SEPARATORS
from headscope.errors import HeadscopeError
from headscope.files import write_atomically
from headscope.folder.study_folder import Study, read
from headscope.insight.chance import distance_chance, kind_chance
from headscope.insight.claims import claims
from headscope.insight.matching import match_heads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SAME = ("length", "threshold", "line_threshold", "special", "short")
"""Options that change what the numbers mean: studies that differ in one can't stand side by side."""


@dataclass(frozen=True)
class Quantity:
    """A column of the table: how a figure names it; chance: the column of what chance gives, or a number."""

    label: str
    chance: str | float | None = None


QUANTITIES: dict[str, Quantity] = {
    "distance": Quantity("mean distance of high pairs, tokens", "distance_chance"),
    "same_sentence_over_chance": Quantity("same sentence, times chance", 1),
    "repeats_over_chance": Quantity("equal tokens, times chance", 1),
    "attention_on_separators": Quantity("attention on separators, share", "separators_chance"),
    "unique_focal_share": Quantity("different focal tokens, a head"),
    "block_contrast": Quantity("block contrast", 0),
}


class Comparison:
    """Several studies, side by side. `headscope.compare` makes one.

    models: their labels. table: a row per model and layer. claims: a row per claim of the paper, a column per model.
    matches: heads of two models that are each other's nearest. sentences: what is common and what is not.
    """

    def __init__(self, studies: Mapping[str, Study]) -> None:
        self.studies = dict(studies)

    @property
    def models(self) -> list[str]:
        return list(self.studies)

    @property
    def same_texts(self) -> bool:
        return len({study.manifest["texts"]["name"] for study in self.studies.values()}) == 1

    @cached_property
    def table(self) -> pd.DataFrame:
        return pd.concat([_by_depth(name, study) for name, study in self.studies.items()], ignore_index=True)

    @cached_property
    def claims(self) -> pd.DataFrame:
        judged = {name: claims(study) for name, study in self.studies.items()}
        first = next(iter(judged.values()))
        verdicts = {name: [claim.verdict for claim in found] for name, found in judged.items()}
        return pd.DataFrame(
            {"claim": [claim.topic for claim in first], "paper": [claim.paper for claim in first]} | verdicts
        )

    @cached_property
    def matches(self) -> pd.DataFrame:
        return match_heads({name: study.heads for name, study in self.studies.items()})

    @cached_property
    def sentences(self) -> list[str]:
        return [
            _above_chance(self, "same_sentence_over_chance", "High pairs lie within one sentence"),
            _above_chance(self, "repeats_over_chance", "High pairs are of equal tokens"),
            _extreme(self, "distance", "The mean distance is shortest", "{:.0f} tokens", largest=False),
            _extreme(self, "attention_on_separators", "Separators draw most attention", "{:.0%}"),
            _focal(self),
            *_claims_in_words(self),
            *_matches_in_words(self),
        ]

    def figure(self) -> Figure:
        """Six panels, a line a model: each quantity from the first layer to the last."""
        from headscope.show.figures.comparison import draw

        return draw(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page, and the table beside it as .csv and .parquet."""
        from headscope.show.pages.comparison import page

        target = Path(path)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise HeadscopeError(f"{target} can't be written: {problem.strerror}.") from None
        parquet = io.BytesIO()
        self.table.to_parquet(parquet, index=False)
        write_atomically(target, page(self).encode())
        write_atomically(target.with_suffix(".csv"), self.table.to_csv(index=False).encode())
        write_atomically(target.with_suffix(".parquet"), parquet.getvalue())

    def _repr_html_(self) -> str:
        from headscope.show.pages.comparison import snippet

        return snippet(self)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.models)})"


def compare(studies: Iterable[Study | str | os.PathLike[str]]) -> Comparison:
    """Put finished studies side by side.

    studies: two or more, each a `Study` or the folder of one, measured with the same options.

    >>> import headscope
    >>> comparison = headscope.compare(["minilm-study", "mpnet-study"])  # doctest: +SKIP
    >>> comparison.table  # doctest: +SKIP
    """
    opened = [study if isinstance(study, Study) else read(study) for study in studies]
    if len(opened) < 2:
        raise HeadscopeError(f"Give two or more study folders to compare; {len(opened)} was given.")
    for study in opened[1:]:
        for option in SAME:
            here, there = opened[0].manifest["options"][option], study.manifest["options"][option]
            if here != there:
                raise HeadscopeError(
                    f"{opened[0].folder} was measured with --{option.replace('_', '-')} {here}, {study.folder} with "
                    f"{there}; only studies with the same can be compared."
                )
    return Comparison(dict(zip(_labels(opened), opened, strict=True)))


def _labels(studies: list[Study]) -> list[str]:
    """Short names of the models; of those that are the same, the folders' names too."""
    short = []
    for study in studies:
        name = study.model_name
        random = "random " if name.startswith("random:") else ""
        stack = study.manifest["model"].get("stack")
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


def _by_depth(name: str, study: Study) -> pd.DataFrame:
    layers = study.layers
    deepest = study.manifest["model"]["layers"] - 1
    return pd.DataFrame(
        {
            "model": name,
            "layer": layers["layer"],
            "depth": layers["layer"] / max(deepest, 1),
            "distance": layers["mean_distance"],
            "distance_chance": _or_nan(distance_chance(study)),
            "same_sentence": layers["same_sentence_probability"],
            "same_sentence_chance": layers["same_sentence_chance"],
            "same_sentence_over_chance": layers["same_sentence_probability"] / layers["same_sentence_chance"],
            "repeats": layers["repeat_probability"],
            "repeat_chance": layers["repeat_chance"],
            "repeats_over_chance": layers["repeat_probability"] / layers["repeat_chance"],
            "attention_on_separators": layers[[f"attention_to_{kind}" for kind in SEPARATORS]].sum(axis=1),
            "separators_chance": _or_nan(kind_chance(study, SEPARATORS)),
            "unique_focal_tokens": layers["unique_focal_tokens"],
            "unique_focal_share": layers["unique_focal_tokens"] / study.manifest["model"]["heads"],
            "block_contrast": layers["block_contrast"],
        }
    )


def _or_nan(chance: float | None) -> float:
    return np.nan if chance is None else chance


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _above_chance(comparison: Comparison, column: str, opening: str) -> str:
    """Above chance means by a tenth, in the mean over the layers."""
    means = comparison.table.groupby("model", sort=False)[column].mean()
    above = [name for name in comparison.models if means[name] > 1.1]
    told = ", ".join(f"{name} {means[name]:.2f}" for name in comparison.models if not np.isnan(means[name]))
    where = (
        "in all models" if len(above) == len(comparison.models) else f"in {_listed(above)}" if above else "in no model"
    )
    return f"{opening} more often than chance {where} (times chance, mean over the layers: {told})."


def _extreme(comparison: Comparison, column: str, opening: str, form: str, *, largest: bool = True) -> str:
    told = []
    for name, table in comparison.table.groupby("model", sort=False):
        values = table.set_index("layer")[column].dropna()
        if len(values):
            place = int(values.argmax() if largest else values.argmin())
            told.append(f"in layer {values.index[place]} of {name} ({form.format(values.iloc[place])})")
    return f"{opening} {_listed(told)}." if told else f"{opening} nowhere: there are no high pairs."


def _focal(comparison: Comparison) -> str:
    last = comparison.table.groupby("model", sort=False).last()
    heads = {name: study.manifest["model"]["heads"] for name, study in comparison.studies.items()}
    unique = last["unique_focal_tokens"]
    told = [f"{unique[name]:.1f} of {heads[name]} in {name}" for name in comparison.models]
    return f"In the last layer the heads have different focal tokens: {_listed(told)}."


def _claims_in_words(comparison: Comparison) -> list[str]:
    verdicts = comparison.claims.set_index("claim")[comparison.models]
    everywhere = verdicts.index[(verdicts == "holds").all(axis=1)].tolist()
    nowhere = verdicts.index[(verdicts != "holds").all(axis=1)].tolist()
    held = [int((verdicts[name] == "holds").sum()) for name in comparison.models]
    first, *others = zip(held, comparison.models, strict=True)
    counts = [f"{first[0]} hold in {first[1]}", *(f"{count} in {name}" for count, name in others)]
    told = [f"Of the paper's {len(verdicts)} claims, {_listed(counts)}."]
    if everywhere:
        told.append(f"Claims that hold in every model: {', '.join(f'“{name}”' for name in everywhere)}.")
    if nowhere:
        told.append(f"Claims that hold in no model: {', '.join(f'“{name}”' for name in nowhere)}.")
    return told


def _matches_in_words(comparison: Comparison) -> list[str]:
    told = []
    for (one, other), found in comparison.matches.groupby(["model", "other_model"], sort=False):
        told.append(
            f"{len(found)} {'pair' if len(found) == 1 else 'pairs'} of heads of {one} and {other} are each other's "
            f"nearest; their profiles differ by "
            f"{found['difference'].mean():.2f} on average, where shuffled heads give {found['chance'].iloc[0]:.2f}."
        )
    return told
