"""What the paper reports for bert-base-uncased, held against a study of any model.

A claim is judged by a criterion that is stated beside it. Where the study keeps groups of texts, a number must be on
one side of the criterion with its whole 95 % interval for a verdict. A claim about sentences or repeats that is met
against plain chance but not against what distance alone gives holds only by distance.

Where a study has nulls, they are judged by the same criterion. What random weights meet too, the model did not learn:
it holds without learning. A claim about language that the same windows with shuffled tokens meet holds on shuffled
tokens. A study of random weights or of shuffled tokens is its own null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from headscope.corpus.null_kinds import CALLED, NULLS, Null
from headscope.errors import HeadscopeError
from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight import judges
from headscope.insight.choices import is_random, scaled
from headscope.insight.judges import CantBeSaid, Judged
from headscope.insight.notices import notices
from headscope.insight.sureness import too_few_texts
from headscope.insight.verdicts import Verdict
from headscope.wording import in_words, model_label

PAPER_MODEL = "bert-base-uncased"
TRIED = tuple(step / 20 for step in range(1, 20))
"""Thresholds at which a claim is tried: 0.05 to 0.95."""

NO_THRESHOLD = "no threshold enters"

CLAIMS_FILE = "claims.json"
CLAIMS_FORMAT = 1
"""Of the file: raised when a field of it goes or means something else."""


@dataclass(frozen=True)
class OfNull:
    """What a null study gives by the same criterion."""

    verdict: Verdict
    measured: str
    value: float | None = None


@dataclass(frozen=True)
class Claim:
    """paper: what the paper says of BERT-12. criterion: when that holds here; needed: the same in a few words, as it
    stands beside the numbers. measured: the numbers, or why not.

    thresholds: at which of those from 0.05 to 0.95 its criterion is met, in words. value: the number that decides, with
    its interval from low to high where the claim rests on one number alone; chance: what chance gives. nulls: what the
    null studies give, by their names.
    """

    topic: str
    paper: str
    criterion: str
    needed: str
    measured: str
    verdict: Verdict
    figure: str
    thresholds: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    holds_given_distance: bool | None = None
    nulls: Mapping[str, OfNull] = field(default_factory=dict)


def claims(study: StudyFolder, *, thresholds: bool = True) -> list[Claim]:
    """Every claim of the paper, in its order. thresholds: also say at which of them each is met."""
    study.check_not_empty()
    if study.manifest.kind != "texts":
        raise HeadscopeError(f"{study.folder} is a study of images; the paper's claims are about texts.")
    few = too_few_texts(study)
    others = _at_other_thresholds(study) if thresholds else {}
    return [_judged(study, few, others, *parts) for parts in CLAIMS]


def claims_table(judged: Mapping[str, Sequence[Claim]]) -> pd.DataFrame:
    """A row per model and claim; what nulls give stands in a column each. judged: the claims, by model."""
    rows = [(model, claim) for model, found in judged.items() for claim in found]
    there = [null for null in NULLS if any(null in claim.nulls for _, claim in rows)]

    def of_null(claim: Claim, null: str) -> str:
        return f"{claim.nulls[null].verdict}: {claim.nulls[null].measured}" if null in claim.nulls else ""

    return pd.DataFrame(
        [
            {
                "model": model,
                **{name: value for name, value in asdict(claim).items() if name != "nulls"},
                **{null: of_null(claim, null) for null in there},
            }
            for model, claim in rows
        ]
    )


def claims_facts(study: StudyFolder, judged: Sequence[Claim]) -> dict[str, Any]:
    """All that there is to say of a study's claims, for other programs: what was judged, by which version, and how."""
    manifest = study.manifest
    return {
        "format": CLAIMS_FORMAT,
        "headscope": metadata.version("headscope"),
        "heading": heading(study),
        "model": manifest.model.name,
        "weights_sha256": manifest.model.weights_sha256,
        "texts": manifest.source.name,
        "texts_sha256": manifest.source.sha256,
        "windows": study.windows,
        "options": manifest.options.as_dict(),
        "notices": notices(study),
        "claims": [asdict(claim) for claim in judged],
    }


def is_paper_model(study: StudyFolder) -> bool:
    """By name and shape: the weights themselves can't be known here."""
    model = study.manifest.model
    name = Path(model.name).name
    return name == PAPER_MODEL and (model.layers, model.heads, model.head_width) == (12, 12, 64)


def heading(study: StudyFolder) -> str:
    """Says plainly whether this is the model that the claims are about."""
    if is_paper_model(study):
        return f"The paper's claims, measured on its own model, {PAPER_MODEL}"
    name = model_label(study.model_name)
    return f"The paper's claims, measured on {name}, which is not the paper's model ({PAPER_MODEL})"


def _judged(
    study: StudyFolder,
    few: str | None,
    others: dict[float, StudyFolder],
    topic: str,
    figure: str,
    paper: str,
    criterion: str,
    needed: str,
    judge: judges.Judge,
) -> Claim:
    model = study.manifest.model
    early, middle, late, last = (scaled(layer, model.layers) for layer in (1, 6, 10, 11))
    here = {
        "early": f"layer {early}",
        "middle": f"layer {middle}",
        "late": in_words(sorted({late, last})),
        "last": f"layer {last}",
        "distance": f"{judges.far(study):.3g}",
        "few": f"{0.7 * model.heads:.3g}",
        "many": f"{0.9 * model.heads:.3g}",
    }
    told = criterion.format(**here), needed.format(**here)
    try:
        found = judge(study)
    except (CantBeSaid, AbsentError) as reason:
        return Claim(topic, paper, *told, str(reason), "can't be said", figure)
    verdict = _verdict(found)
    measured = found.measured
    nulls: dict[str, OfNull] = {null: _of_null(one, judge) for null, one in study.nulls.items()}
    if verdict == "holds":
        verdict = _beside_nulls(study, nulls, judge)
        measured += "".join(_told(null, nulls[null]) for null in _SPEAKING.get(verdict, ()) if null in nulls)
    if few is not None:
        verdict, measured = "can't be said", f"{measured}; too few texts"
    elif verdict == "can't be said":
        measured += "; too few texts to be sure: the interval reaches over the criterion"
    return Claim(
        topic,
        paper,
        *told,
        measured,
        verdict,
        figure,
        _over_thresholds(judge, others) if others else "",
        found.value,
        *_interval(found),
        found.chance,
        found.given_distance,
        nulls,
    )


_SPEAKING: dict[Verdict, tuple[Null, ...]] = {
    "holds": ("weights",),
    "holds without learning": ("weights",),
    "holds on shuffled tokens": ("tokens",),
}
"""The nulls whose numbers are said beside those of the study."""


def _of_null(null: StudyFolder, judge: judges.Judge) -> OfNull:
    try:
        found = judge(null)
    except (CantBeSaid, AbsentError) as reason:
        return OfNull("can't be said", str(reason))
    return OfNull(_by_numbers(found), found.measured, found.value)


def _by_numbers(found: Judged) -> Verdict:
    """Of a null, of which there may be few windows: by its numbers, without their intervals."""
    if found.holds and found.given_distance is False:
        return "holds only by distance"
    return "holds" if found.holds else "does not hold"


def _beside_nulls(study: StudyFolder, nulls: Mapping[str, OfNull], judge: judges.Judge) -> Verdict:
    """Of a claim that holds, whether it does so where there is nothing to know."""
    itself = study.manifest.null.kind if study.manifest.null is not None else None
    meeting = {null for null, found in nulls.items() if found.verdict == "holds"} | {itself}
    if "weights" in meeting or is_random(study):
        return "holds without learning"
    if "tokens" in meeting and judge in ABOUT_LANGUAGE:
        return "holds on shuffled tokens"
    return "holds"


def _told(null: Null, found: OfNull) -> str:
    return f"; {CALLED[null]}: {found.measured}" if found.verdict != "can't be said" else ""


def _verdict(found: Judged) -> Verdict:
    """Sure where all numbers lie on the right side, or one on the wrong side, with their whole intervals."""
    holds: bool | None = found.holds
    if found.margin is not None and len(found.margin.value):
        low, high = found.margin.interval()
        if not np.isnan(low).any():
            holds = True if (low > 0).all() else False if (high < 0).any() else None
    if holds is None:
        return "can't be said"
    if holds and found.given_distance is False:
        return "holds only by distance"
    return "holds" if holds else "does not hold"


def _interval(found: Judged) -> tuple[float | None, float | None]:
    """Of the value itself, where the claim rests on one number."""
    if found.margin is None or found.value is None or not found.of_value or len(found.margin.value) != 1:
        return None, None
    (low,), (high,) = found.margin.interval()
    shift = found.value - found.margin.value[0]
    return (None, None) if np.isnan(low) else (float(low + shift), float(high + shift))


def _at_other_thresholds(study: StudyFolder) -> dict[float, StudyFolder]:
    """The study as it reads at every threshold tried; none where it does not keep what that takes."""
    try:
        return {threshold: study.at(threshold) for threshold in TRIED}
    except (AbsentError, HeadscopeError):
        return {}


def _over_thresholds(judge: judges.Judge, others: dict[float, StudyFolder]) -> str:
    """Where a criterion is met, by the numbers alone: pooled over pairs, they have no intervals."""
    if judge in FREE_OF_THRESHOLD:
        return NO_THRESHOLD
    try:
        met = [threshold for threshold, study in others.items() if _verdict(judge(study)) == "holds"]
    except (CantBeSaid, AbsentError):
        return "known at the study's own threshold only"
    if not met:
        return f"met at none from {TRIED[0]:.2f} to {TRIED[-1]:.2f}"
    if len(met) == len(others):
        return f"met at all from {TRIED[0]:.2f} to {TRIED[-1]:.2f}"
    runs: list[list[float]] = []
    for place, threshold in enumerate(others):
        if threshold in met:
            if runs and place and list(others)[place - 1] == runs[-1][-1]:
                runs[-1].append(threshold)
            else:
                runs.append([threshold])
    parts = (f"{run[0]:.2f} to {run[-1]:.2f}" if len(run) > 1 else f"{run[0]:.2f}" for run in runs)
    return f"met at {', '.join(parts)}"


ABOUT_LANGUAGE = (
    judges.late_on_separators,
    judges.far_head_repeats,
    judges.in_one_sentence,
    judges.one_focal_token,
    judges.focal_tokens_differ,
)
"""Judges of what depends on which words there are, and on their order; the others are about places and values."""

FREE_OF_THRESHOLD = (
    judges.summed_on_diagonal,
    judges.one_text_off_diagonal,
    judges.early_on_first,
    judges.middle_on_diagonal,
    judges.late_on_separators,
    judges.values_with_gap,
)
"""Judges of attention, and of all values of N."""

CLAIMS: tuple[tuple[str, str, str, str, str, judges.Judge], ...] = (
    (
        "Diagonal, many texts",
        "2",
        "Summed over many texts, attention lies on the diagonal or one step beside it.",
        "In the layers' summed maps, the largest weight of more than half of all rows lies within one step of the "
        "diagonal (first and last column left out).",
        "over 50 % with their largest weight within one step of the diagonal",
        judges.summed_on_diagonal,
    ),
    (
        "Diagonal, one text",
        "4",
        "On one text it does not.",
        "On one text the same share of rows is below half.",
        "below 50 % with their largest weight there",
        judges.one_text_off_diagonal,
    ),
    (
        "First layers",
        "2",
        "In the first layers attention goes most often to [CLS].",
        "In {early}, no position receives more attention than the first.",
        "position 0 draws most in {early}",
        judges.early_on_first,
    ),
    (
        "Middle layers",
        "2",
        "In layer 6 attention lies near the diagonal; in the first layers it is dispersed.",
        "Attention to the token itself and its neighbours is in {middle} over 1.1 times that in {early} and {last}.",
        "attention to itself and its neighbours, in {middle} over 1.1 times the others",
        judges.middle_on_diagonal,
    ),
    (
        "Last layers",
        "3",
        "In the last layers attention forms columns on full stops and commas.",
        "In {late}, more than half of the lines on ordinary tokens are on sentence ends or commas.",
        "over 50 % on sentence ends and commas in {late}",
        judges.late_on_separators,
    ),
    (
        "Values of N",
        "spectrum",
        "Most values of N are below 0.1, few between 0.1 and 0.6.",
        "In {last}, more than half are below 0.1 and less than a tenth between 0.1 and 0.6.",
        "over 50 % and below 10 % in {last}",
        judges.values_with_gap,
    ),
    (
        "One head looks far",
        "7",
        "In layer 11 every head but head 8 has a mean distance below 50.",
        "In {last}, exactly one head has a mean distance of {distance} tokens or more.",
        "exactly 1 head of {last} with a mean distance of {distance} tokens or more",
        judges.one_far_head,
    ),
    (
        "It finds equal tokens",
        "6",
        "That head finds equal tokens across the whole text.",
        "In {last}, the head with the greatest mean distance also pairs equal tokens most, more than twice chance.",
        "one and the same head of {last}, with over twice chance",
        judges.far_head_repeats,
    ),
    (
        "Same sentence",
        "8",
        "High pairs lie in one sentence more than 33 % of the time, where a window holds 3 to 4 sentences.",
        "In every head of {last}, above 33 %, and a tenth or more above chance and above what distance alone gives.",
        "over 33 %, over 1.1 times chance and over 1.1 times distance alone in every head of {last}",
        judges.in_one_sentence,
    ),
    (
        "Focal token",
        "11",
        "The high pairs of a head mostly include one focal token.",
        "In {last}, the focal share is above a half in every head.",
        "over 50 % with one token in every head of {last}",
        judges.one_focal_token,
    ),
    (
        "Different focal tokens",
        "11",
        "The 12 heads have about 9 to 10 different focal tokens.",
        "In {last}, the heads have {few} to {many} different ones on average.",
        "{few} to {many} different ones in {last}",
        judges.focal_tokens_differ,
    ),
    (
        "Distance by depth",
        "13",
        "Distances are spread out in layer 1, extremely short in layer 6, short but longer in layer 11.",
        "The mean distance of {middle} is clearly (by a tenth) below that of {last}, and that of {last} clearly below "
        "that of {early}.",
        "mean distance, {middle} below {last} below {early}, each by a tenth",
        judges.distance_by_depth,
    ),
)
