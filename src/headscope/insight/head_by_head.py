"""Two studies whose heads answer to each other, head by head: base and fine-tuned, one corpus and another.

A difference is that of the second study less the first. Where both read the same texts, by their hash, each group of
texts is left out of both at once: what is hard in a text is hard for both, so the difference is surer than its parts.
Otherwise the texts are taken for independent, and the squares of the errors add up (`Estimate.less_apart`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.chance import kind_chance
from headscope.insight.choices import is_random
from headscope.insight.differing import other_tokenizers, same_model, same_shape, same_texts
from headscope.insight.discoveries import RATE, discovered
from headscope.insight.sureness import head_intervals
from headscope.measure.catalogue import columns
from headscope.measure.declaration import Column
from headscope.measure.jackknife import NotByGroup, Sure
from headscope.wording import head_name, listed, percent, ranged

DIFFERENCES = ("layer", "head", "column", "a", "b", "difference", "low", "high", "differs")
TOLD, OF_A_TOPIC = 6, 2
"""Columns that sentences and the map show, and how many of a topic: commas and full stops mostly differ alike. All are
in the table."""


def why_not(studies: Mapping[str, StudyFolder]) -> str | None:
    """Why heads do not answer to each other, in a sentence; None where they may.

    That one model was made from the other, no study says: the same shape, family and, as far as it shows, vocabulary
    are taken for enough.
    """
    if len(studies) != 2:
        return f"Head by head, two studies are compared; there are {len(studies)}."
    manifests = [study.manifest for study in studies.values()]
    if not same_shape(manifests):
        return "The models have different shapes, so their heads do not answer to each other."
    if manifests[0].layers != manifests[1].layers:
        return "Different layers were measured, so the heads are not compared one by one."
    if same_model(manifests):
        return None
    if any(map(is_random, studies.values())):
        return "Weights are random, and no head of random weights answers to that of another model."
    if manifests[0].model.family is None:
        return "The families of the models are not known, so neither is whether their heads answer to each other."
    if other_tokenizers(manifests):
        return "The models have different vocabularies, so their heads do not answer to each other."
    return None


class HeadByHead:
    """Two studies that `why_not` has nothing against, under their labels.

    table: a row per layer, head and column that both have; `a` and `b` are the two numbers, `difference` is b less a,
    from `low` to `high` its 95 % interval (NaN where there is none), `differs` whether it is told from 0 at a false
    discovery rate of 5 % among the heads of the column.
    """

    def __init__(self, studies: Mapping[str, StudyFolder]) -> None:
        self.labels = tuple(studies)
        self.a, self.b = studies.values()
        manifests = [self.a.manifest, self.b.manifest]
        self.paired = same_texts(manifests)
        """Whether groups of texts are left out of both at once."""
        self.same_model = same_model(manifests)
        self.columns = _shared(self.a, self.b)

    @cached_property
    def table(self) -> pd.DataFrame:
        return pd.concat([self._rows(name) for name in self.columns], ignore_index=True)[list(DIFFERENCES)]

    @property
    def equal(self) -> bool:
        """No number differs at all."""
        return bool(self.table["difference"].fillna(0).eq(0).all())

    @cached_property
    def effect(self) -> pd.Series:
        """Of each row of the table, how large the difference is beside that between heads: in standard deviations of
        the column over the heads of both. So tokens and shares can stand in one order."""
        by_column = self.table.groupby("column", sort=False)[["a", "b"]]
        spread = {name: pd.Series(rows.to_numpy().reshape(-1)).std(ddof=0) for name, rows in by_column}
        beside = self.table["column"].map(spread).to_numpy(np.float64)
        size = self.table["difference"].abs().to_numpy()
        return pd.Series(np.divide(size, beside, out=np.zeros(len(size)), where=beside > 0), name="effect")

    @cached_property
    def telling(self) -> list[str]:
        """Columns that say what a head does, the most telling first: by the sum of `effect` over heads that differ,
        then over all."""
        rows = self.table.assign(effect=self.effect, sure=self.effect.where(self.table["differs"], 0))
        sums = rows.groupby("column", sort=False)[["sure", "effect"]].sum()
        of_heads = sums[[self.columns[str(name)].profile for name in sums.index]]
        return of_heads.sort_values(["sure", "effect"], ascending=False, kind="stable").index.tolist()

    @property
    def shown(self) -> list[str]:
        """Of the most telling columns, those that sentences and the map show."""
        found: list[str] = []
        for name in self.telling:
            topic = self.columns[name].topic
            if sum(self.columns[other].topic == topic for other in found) < OF_A_TOPIC:
                found.append(name)
        return found[:TOLD]

    def largest(self, most: int) -> pd.DataFrame:
        """The rows of the table that differ, the largest first by `effect`; what is only chance for another column is
        left out."""
        chances = {by for column in self.columns.values() for by in (column.chance, column.given_distance)}
        rows = self.table[self.table["differs"] & ~self.table["column"].isin(chances)]
        return rows.loc[self.effect[rows.index].sort_values(ascending=False, kind="stable").index[:most]]

    def in_words(self, row: Mapping[Any, Any]) -> tuple[str, str]:
        """Both numbers of a row of the table, with their own intervals: "14 % (12 to 16)"."""
        place = self.a.manifest.layers.index(row["layer"]) * self.a.manifest.model.heads + row["head"]
        return self._told(self.a, row["column"], place, row["a"]), self._told(self.b, row["column"], place, row["b"])

    @property
    def sentences(self) -> list[str]:
        """How many heads differ, in what, and which most."""
        heads, telling = len(self.a.heads), self.telling
        if self.equal:
            return ["Every difference is exactly 0."]
        if self.table["low"].isna().all():
            return ["Which heads differ can't be said: too few texts, or an older version that kept no groups of them."]
        rate = f"false discovery rate {RATE * 100:.0f} % in each"
        differing = self.table[self.table["differs"] & self.table["column"].isin(telling)]
        if differing.empty:
            return [f"No head differs in any of {len(telling)} measures ({rate}).", *self._of_the_texts]
        places, clearly = (
            len(rows.drop_duplicates(["layer", "head"]))
            for rows in (differing, differing[self.effect[differing.index] > 1])
        )
        counts = differing["column"].value_counts()
        rest = [called(self.columns[name]) for name in telling if name not in counts]
        return [
            f"{places} of {heads} heads differ in one or more of {len(telling)} measures ({rate}), {clearly} of them "
            "in some measure by more than heads differ among themselves (one standard deviation).",
            *(self._most(name, int(counts[name])) for name in self.shown if name in counts),
            *([f"No head differs in {listed([f'“{name}”' for name in rest])}."] if rest else []),
            *self._of_the_texts,
        ]

    def _most(self, name: str, count: int) -> str:
        rows = self.table[self.table["differs"] & (self.table["column"] == name)]
        row = rows.iloc[int(rows["difference"].abs().argmax())].to_dict()
        first, second = self.in_words(row)
        most = head_name((row["layer"], row["head"]))
        return (
            f"{count} of {len(self.a.heads)} heads {'differs' if count == 1 else 'differ'} in "
            f"“{called(self.columns[name])}”, most {most}: {first} in {self.labels[0]} against {second} in "
            f"{self.labels[1]}."
        )

    @property
    def _of_the_texts(self) -> list[str]:
        """What differs before any head has seen them: chance is one number for all heads."""
        if self.paired or not {"same_sentence_chance", "repeat_chance"} <= self.columns.keys():
            return []
        (together, more), (equal, others) = (
            [self._told(study, name, 0, study.column("heads", name)[0]) for study in (self.a, self.b)]
            for name in ("same_sentence_chance", "repeat_chance")
        )
        kinds = {
            name: [kind_chance(study, [kind]) for study in (self.a, self.b)]
            for kind, name in (("sentence_end", "sentence ends"), ("comma", "commas"), ("punctuation", "other marks"))
        }
        shares = [
            f"{percent(first)} and {percent(second)} are {name}"
            for name, (first, second) in kinds.items()
            if first is not None and second is not None
        ]
        return [
            f"The texts themselves: of all pairs of tokens, {together} share a sentence in {self.labels[0]} and {more} "
            f"in {self.labels[1]}, {equal} and {others} are of equal tokens"
            f"{f'; of all tokens, {listed(shares)}' if shares else ''}."
        ]

    def _told(self, study: StudyFolder, name: str, place: int, value: float) -> str:
        ends = head_intervals(study, name)
        low, high = (None, None) if ends is None else (float(end[place]) for end in ends)
        return ranged(value, low, high, self.columns[name].unit)

    def _rows(self, name: str) -> pd.DataFrame:
        first, second = (study.column("heads", name) for study in (self.a, self.b))
        found = self._difference(name)
        low, high = found.interval()
        return pd.DataFrame(
            {
                "layer": self.a.heads["layer"],
                "head": self.a.heads["head"],
                "column": name,
                "a": first,
                "b": second,
                "difference": found.value,
                "low": low,
                "high": high,
                "differs": discovered(found.p_values()),
            }
        )

    def _difference(self, name: str) -> Sure:
        try:
            if self.paired:
                one, other = (study.jackknife.everywhere("heads", name) for study in (self.b, self.a))
                return (one - other).sure
            one, other = (study.jackknife.estimate("heads", name) for study in (self.b, self.a))
            return one.less_apart(other)
        except (AbsentError, NotByGroup):
            value = self.b.column("heads", name) - self.a.column("heads", name)
            return Sure(value, np.full(len(value), np.nan), np.ones(len(value), np.int64))


def called(column: Column) -> str:
    """What a sentence calls a column: its label, with what goes without saying under the heading of a table.

    >>> called(columns()["attention_to_comma"]), called(columns()["mean_vector_share"])
    ('attention to commas', 'share in the mean vector')
    """
    if column.topic == "attention" and not column.label.startswith("carried"):
        return f"attention {column.label}"
    return f"share {column.label}" if column.label.startswith("in ") else column.label


def _shared(a: StudyFolder, b: StudyFolder) -> dict[str, Column]:
    """The columns of numbers that both have; not the counts over all windows, which say how many windows there are."""
    return {
        name: column
        for name, column in columns(a.manifest.gives).items()
        if column.value is not None and all(name in one.heads and one.heads[name].dtype.kind == "f" for one in (a, b))
    }
