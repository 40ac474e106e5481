"""What a study says of each of its heads in a sentence, to stand beside the same head on one text."""

from __future__ import annotations

import numpy as np

from headscope.folder.study_folder import StudyFolder
from headscope.insight.sureness import head_intervals
from headscope.measure.catalogue import columns
from headscope.one_text.telling import Place
from headscope.one_text.view import OneText
from headscope.wording import named, percent, ranged, short

TOLD = {
    "pairs_per_window": "{} high pairs a window",
    "mean_distance": "mean distance {}",
    "same_sentence_probability": "one sentence {}",
    "repeat_probability": "equal tokens {}",
    "attention_self": "attention on itself {}",
    "attention_previous": "on the previous {}",
    "attention_next": "on the next {}",
}
"""Column of `heads` -> how its number is said."""


def about_heads(study: StudyFolder) -> dict[Place, str]:
    """(layer, head) -> its role, where it has one, and its numbers with their 95 % intervals. What is not there is left
    out: what the study does not have, and shares of no pairs."""
    table = study.heads
    told: list[list[str]] = [[f"role “{short(role)}”"] if role else [] for role in table.get("role", [""] * len(table))]
    for name, words in TOLD.items():
        if name not in table:
            continue
        column = columns(study.manifest.gives)[name]
        values = table[name].to_numpy(dtype=np.float64)
        low, high = head_intervals(study, name) or np.full((2, len(values)), np.nan)
        given_distance = column.given_distance if column.given_distance in table else None
        for place in np.flatnonzero(~np.isnan(values)):
            said = words.format(ranged(values[place], low[place], high[place], column.unit))
            if given_distance is not None:
                said += f", by distance {percent(table[given_distance].iloc[place])}"
            told[place].append(said)
    places = zip(table["layer"].tolist(), table["head"].tolist(), strict=True)
    return {place: f"In the study: {'; '.join(parts)}." for place, parts in zip(places, told, strict=True)}


def about_study_beside(view: OneText, study: StudyFolder) -> str:
    """Which study it is, and in what it was measured otherwise than the text."""
    options = study.manifest.options
    other = [
        f"{name} {theirs}, not {ours}"
        for name, theirs, ours in (
            ("threshold", f"{options.threshold:g}", f"{view.threshold:g}"),
            ("similarity", options.similarity, view.similarity_option),
            ("special tokens", options.special, view.special_option),
        )
        if theirs != ours
    ]
    told = f"Beside it: the study in {named(study.folder)}, {study.extent}"
    return f"{told}, measured with {', '.join(other)}" if other else told
