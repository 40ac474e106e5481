"""What the paper reports for bert-base-uncased, held against a study of any model.

A claim is judged by a criterion that is stated beside it. The paper's layers 1, 6, 10 and 11 of 12 stand for the layers
at the same depth of other models; its distances, given for windows of 128 tokens, are scaled to the window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headscope.corpus.windows import COMMA, SENTENCE_END, WORD
from headscope.errors import HeadscopeError
from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.chance import distance_chance, kind_chance
from headscope.insight.choices import place_of, scaled
from headscope.insight.findings import value_shares
from headscope.wording import in_words, model_label, percent

PAPER_MODEL = "bert-base-uncased"
PAPER_LENGTH = 128

Verdict = Literal["holds", "does not hold", "can't be said"]


@dataclass(frozen=True)
class Claim:
    """paper: what the paper says of BERT-12. criterion: when that holds here. measured: the numbers, or why not."""

    topic: str
    paper: str
    criterion: str
    measured: str
    verdict: Verdict
    figure: str


def claims(study: StudyFolder) -> list[Claim]:
    """Every claim of the paper, in its order."""
    study.check_not_empty()
    return [_judged(study, *parts) for parts in CLAIMS]


def claims_table(study: StudyFolder) -> pd.DataFrame:
    """The same as a DataFrame, a row a claim."""
    return pd.DataFrame([asdict(claim) for claim in claims(study)])


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


class _CantBeSaid(Exception):
    """With the reason, for the user."""


Judge = Callable[[StudyFolder], tuple[bool, str]]
"""Whether the claim holds, and the numbers that decide it."""


def _judged(study: StudyFolder, topic: str, figure: str, paper: str, criterion: str, judge: Judge) -> Claim:
    model, length = study.manifest.model, study.manifest.options.length
    early, middle, late, last = (scaled(layer, model.layers) for layer in (1, 6, 10, 11))
    told = criterion.format(
        early=f"layer {early}",
        middle=f"layer {middle}",
        late=in_words(sorted({late, last})),
        last=f"layer {last}",
        distance=f"{50 * length / PAPER_LENGTH:.3g}",
        few=f"{0.7 * model.heads:.3g}",
        many=f"{0.9 * model.heads:.3g}",
    )
    verdict: Verdict
    try:
        holds, measured = judge(study)
        verdict = "holds" if holds else "does not hold"
    except (_CantBeSaid, AbsentError) as reason:
        measured, verdict = str(reason), "can't be said"
    return Claim(topic, paper, told, measured, verdict, figure)


def _layers(study: StudyFolder, *paper: int) -> list[int]:
    """The layers that stand for those of the paper; all different, and all measured."""
    chosen = [scaled(layer, study.manifest.model.layers) for layer in paper]
    if len(set(chosen)) < len(chosen):
        raise _CantBeSaid("The model has too few layers for an early, a middle and a last one.")
    for layer in chosen:
        if layer not in study.manifest.layers:
            raise _CantBeSaid(f"Layer {layer} was not measured.")
    return chosen


def _of_layer(study: StudyFolder, column: str, layer: int) -> float:
    value = float(study.column("layers", column)[place_of(study, layer)])
    if np.isnan(value):
        raise _CantBeSaid(f"Layer {layer} has no high pairs.")
    return value


def _of_heads(study: StudyFolder, column: str, layer: int) -> NDArray[np.float64]:
    """(H,)"""
    values = study.column("heads", column)[(study.heads["layer"] == layer).to_numpy()]
    if np.isnan(values).all():
        raise _CantBeSaid(f"Layer {layer} has no high pairs.")
    return values


def near_diagonal(attention: NDArray[Any]) -> float:
    """The share of rows whose largest element lies within one step of the diagonal; mean over layers.

    (L, H, S, S), summed over heads. The first and the last column are left out: special tokens draw attention from
    everywhere.
    """
    inner = attention.sum(1)[:, :, 1:-1]
    steps = np.abs(inner.argmax(-1) + 1 - np.arange(inner.shape[1]))
    return float((steps <= 1).mean())


def _near(study: StudyFolder, layer: int) -> float:
    return sum(_of_layer(study, f"attention_{name}", layer) for name in ("self", "previous", "next"))


def _summed_on_diagonal(study: StudyFolder) -> tuple[bool, str]:
    share = near_diagonal(study.arrays["attention_sum"])
    return share > 0.5, f"{percent(share)} of the rows, over {study.windows:,} windows"


def _one_text_off_diagonal(study: StudyFolder) -> tuple[bool, str]:
    try:
        share = near_diagonal(np.asarray(study.example.attention))
    except HeadscopeError:
        raise _CantBeSaid("The study keeps no example text.") from None
    return share < 0.5, f"{percent(share)} of the rows, on the example text"


def _early_on_first(study: StudyFolder) -> tuple[bool, str]:
    (layer,) = _layers(study, 1)
    received = study.arrays["attention_sum"][place_of(study, layer)].sum((0, 1))
    top = int(received.argmax())
    share = percent(_of_layer(study, "attention_to_first", layer))
    return top == 0, f"position {top} draws most; the first token receives {share}"


def _middle_on_diagonal(study: StudyFolder) -> tuple[bool, str]:
    early, middle, last = _layers(study, 1, 6, 11)
    shares = [_near(study, layer) for layer in (early, middle, last)]
    told = ", ".join(
        f"layer {layer}: {percent(share)}" for layer, share in zip((early, middle, last), shares, strict=True)
    )
    return shares[1] > 1.1 * max(shares[0], shares[2]), told


def _late_on_separators(study: StudyFolder) -> tuple[bool, str]:
    layers = sorted({*_layers(study, 10), *_layers(study, 11)})
    counts = study.arrays["line_kind_count"][[place_of(study, layer) for layer in layers]].sum((0, 1))
    marks, content = counts[[SENTENCE_END, COMMA]].sum(), counts[SENTENCE_END : WORD + 1].sum()
    if not content:
        raise _CantBeSaid("All lines are on the first token and other special tokens.")
    told = f"{percent(marks / content)} of the lines that are not on special tokens"
    chance = kind_chance(study, ("sentence_end", "comma"))
    return marks > content / 2, told + (f"; they are {percent(chance)} of the tokens" if chance is not None else "")


def _values_with_gap(study: StudyFolder) -> tuple[bool, str]:
    (last,) = _layers(study, 11)
    low, middle = value_shares(study.arrays["similarity_histogram"][place_of(study, last)].sum(0))
    if np.isnan(low):
        raise _CantBeSaid(f"Layer {last} has no positive similarity.")
    return low > 0.5 and middle < 0.1, f"{percent(low)} below 0.1, {percent(middle)} between 0.1 and 0.6"


def _one_far_head(study: StudyFolder) -> tuple[bool, str]:
    (last,) = _layers(study, 11)
    distances = _of_heads(study, "mean_distance", last)
    limit = 50 * study.manifest.options.length / PAPER_LENGTH
    far = np.flatnonzero(distances >= limit)
    told = f"{len(far)} of {len(distances)} heads; {np.nanmin(distances):.0f} to {np.nanmax(distances):.0f} tokens"
    usual = distance_chance(study)
    return len(far) == 1, told + (f", pairs at random {usual:.0f}" if usual is not None else "")


def _far_head_repeats(study: StudyFolder) -> tuple[bool, str]:
    (last,) = _layers(study, 11)
    distances, repeats = (_of_heads(study, name, last) for name in ("mean_distance", "repeat_probability"))
    chance = float(np.nanmean(_of_heads(study, "repeat_chance", last)))
    far, most = int(np.nanargmax(distances)), int(np.nanargmax(repeats))
    told = f"farthest: head {far}, {percent(repeats[far])} repeats; most repeats: head {most}, {percent(repeats[most])}"
    return far == most and repeats[far] > 2 * chance, f"{told}; chance {percent(chance)}"


def _in_one_sentence(study: StudyFolder) -> tuple[bool, str]:
    (last,) = _layers(study, 11)
    shares, chances = (_of_heads(study, name, last) for name in ("same_sentence_probability", "same_sentence_chance"))
    chance, least = float(np.nanmean(chances)), float(np.nanmin(shares))
    told = f"{percent(least)} to {percent(float(np.nanmax(shares)))} over the heads; chance {percent(chance)}"
    return least > 1 / 3 and bool(np.nanmin(shares / chances) > 1.1), told


def _one_focal_token(study: StudyFolder) -> tuple[bool, str]:
    (last,) = _layers(study, 11)
    shares = _of_heads(study, "focal_share", last)
    told = f"{percent(float(np.nanmin(shares)))} to {percent(float(np.nanmax(shares)))} over the heads"
    return bool(np.nanmin(shares) > 0.5), told


def _focal_tokens_differ(study: StudyFolder) -> tuple[bool, str]:
    (last,) = _layers(study, 11)
    heads = study.manifest.model.heads
    if heads < 4:
        raise _CantBeSaid(f"The model has {heads} heads in a layer, too few to tell.")
    unique = _of_layer(study, "unique_focal_tokens", last)
    return 0.7 * heads <= unique <= 0.9 * heads, f"{unique:.1f} of {heads}"


def _distance_by_depth(study: StudyFolder) -> tuple[bool, str]:
    layers = _layers(study, 1, 6, 11)
    early, middle, last = (_of_layer(study, "mean_distance", layer) for layer in layers)
    told = ", ".join(
        f"layer {layer}: {distance:.1f}" for layer, distance in zip(layers, (early, middle, last), strict=True)
    )
    usual = distance_chance(study)
    return middle < 0.9 * last < 0.81 * early, told + (f"; pairs at random {usual:.0f}" if usual is not None else "")


CLAIMS: tuple[tuple[str, str, str, str, Judge], ...] = (
    (
        "Diagonal, many texts",
        "2",
        "Summed over many texts, attention lies on the diagonal or one step beside it.",
        "In the layers' summed maps, the largest weight of more than half of all rows lies within one step of the "
        "diagonal (first and last column left out).",
        _summed_on_diagonal,
    ),
    (
        "Diagonal, one text",
        "4",
        "On one text it does not.",
        "On one text the same share of rows is below half.",
        _one_text_off_diagonal,
    ),
    (
        "First layers",
        "2",
        "In the first layers attention goes most often to [CLS].",
        "In {early}, no position receives more attention than the first.",
        _early_on_first,
    ),
    (
        "Middle layers",
        "2",
        "In layer 6 attention lies near the diagonal; in the first layers it is dispersed.",
        "Attention to the token itself and its neighbours is in {middle} over 1.1 times that in {early} and {last}.",
        _middle_on_diagonal,
    ),
    (
        "Last layers",
        "3",
        "In the last layers attention forms columns on full stops and commas.",
        "In {late}, more than half of the lines on ordinary tokens are on sentence ends or commas.",
        _late_on_separators,
    ),
    (
        "Values of N",
        "spectrum",
        "Most values of N are below 0.1, few between 0.1 and 0.6.",
        "In {last}, more than half are below 0.1 and less than a tenth between 0.1 and 0.6.",
        _values_with_gap,
    ),
    (
        "One head looks far",
        "7",
        "In layer 11 every head but head 8 has a mean distance below 50.",
        "In {last}, exactly one head has a mean distance of {distance} tokens or more.",
        _one_far_head,
    ),
    (
        "It finds equal tokens",
        "6",
        "That head finds equal tokens across the whole text.",
        "In {last}, the head with the greatest mean distance also pairs equal tokens most, more than twice chance.",
        _far_head_repeats,
    ),
    (
        "Same sentence",
        "8",
        "High pairs lie in one sentence more than 33 % of the time, where a window holds 3 to 4 sentences.",
        "In {last}, above 33 % and clearly above chance (by a tenth) in every head.",
        _in_one_sentence,
    ),
    (
        "Focal token",
        "11",
        "The high pairs of a head mostly include one focal token.",
        "In {last}, the focal share is above a half in every head.",
        _one_focal_token,
    ),
    (
        "Different focal tokens",
        "11",
        "The 12 heads have about 9 to 10 different focal tokens.",
        "In {last}, the heads have {few} to {many} different ones on average.",
        _focal_tokens_differ,
    ),
    (
        "Distance by depth",
        "13",
        "Distances are spread out in layer 1, extremely short in layer 6, short but longer in layer 11.",
        "The mean distance of {middle} is clearly (by a tenth) below that of {last}, and that of {last} clearly below "
        "that of {early}.",
        _distance_by_depth,
    ),
)
