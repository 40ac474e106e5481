"""The judges of the paper's claims: each holds one claim against the numbers of a study.

The paper's layers 1, 6, 10 and 11 of 12 stand for the layers at the same depth of other models; its distances, given
for windows of 128 tokens, are scaled to the window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.corpus.windows import COMMA, SENTENCE_END, WORD
from headscope.errors import HeadscopeError
from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.chance import distance_chance, kind_chance, layer_attention, tokens_a_window
from headscope.insight.choices import place_of, scaled
from headscope.insight.findings import value_shares
from headscope.insight.sureness import CLEARLY, estimate, told
from headscope.measure.bins import COARSE_EDGES, CUT, threshold_place
from headscope.measure.declaration import SETS, Arrays, Ratio
from headscope.measure.jackknife import Estimate, within
from headscope.wording import counted, percent, ranged

PAPER_LENGTH, PAPER_FAR = 128, 50
"""Tokens of the paper's windows, and from how many on it says of high pairs that they lie far apart."""
Numbers = NDArray[np.float64]


class CantBeSaid(Exception):
    """With the reason, for the user."""


@dataclass(frozen=True)
class Judged:
    """holds: whether the criterion is met. measured: the numbers that decide it, in words. margin: how far each of them
    is on the right side of the criterion, above 0 where it is met; None where the study does not tell how sure they
    are. given_distance: whether it is met against what distance alone gives, too; None where distance has no part.
    value, chance: what was measured, and what chance gives. of_value: the first margin is the value less a bound."""

    holds: bool
    measured: str
    margin: Estimate | None = None
    given_distance: bool | None = None
    value: float | None = None
    chance: float | None = None
    of_value: bool = True


Judge = Callable[[StudyFolder], Judged]


def layers_of(study: StudyFolder, *paper: int) -> list[int]:
    """The layers that stand for those of the paper; all different, and all measured."""
    chosen = [scaled(layer, study.manifest.model.layers) for layer in paper]
    if len(set(chosen)) < len(chosen):
        raise CantBeSaid("The model has too few layers for an early, a middle and a last one.")
    for layer in chosen:
        if layer not in study.manifest.layers:
            raise CantBeSaid(f"Layer {layer} was not measured.")
    return chosen


def _of_layer(study: StudyFolder, column: str, layer: int) -> float:
    value = float(study.column("layers", column)[place_of(study, layer)])
    if np.isnan(value):
        raise CantBeSaid(f"Layer {layer} has no high pairs.")
    return value


def _rows(study: StudyFolder, layer: int) -> NDArray[np.bool_]:
    """Of the table `heads`, those of a layer."""
    return (study.heads["layer"] == layer).to_numpy()


def _of_heads(study: StudyFolder, column: str, layer: int) -> Numbers:
    """(H,)"""
    values = study.column("heads", column)[_rows(study, layer)]
    if np.isnan(values).all():
        raise CantBeSaid(f"Layer {layer} has no high pairs.")
    return values


def _sure(study: StudyFolder, column: str, layer: int, value: float, unit: Any) -> str:
    return told(study, "layers", column, place_of(study, layer), value, unit)


def _layer_estimates(study: StudyFolder, layers: Sequence[int], *columns: str) -> list[Estimate] | None:
    """The sum of some columns in each of some layers."""
    found = estimate(study, "layers", *columns)
    return None if found is None else [found.at([place_of(study, layer)]) for layer in layers]


def _together(*margins: Estimate) -> Estimate:
    """All of several numbers."""
    return Estimate(
        np.concatenate([margin.value for margin in margins]),
        np.concatenate([margin.left_out for margin in margins], 1),
        np.concatenate([margin.weight for margin in margins], 1),
    )


def _minus(one: Estimate, other: Estimate, times: float) -> Estimate:
    return one.joined(other, lambda a, b: a - times * b)


def _over(found: Estimate, bound: float) -> Estimate:
    """How far numbers exceed a bound."""
    return Estimate(found.value - bound, found.left_out - bound, found.weight)


def _known(found: Estimate) -> Estimate:
    """Only heads that have the number at all."""
    return found.at(~np.isnan(found.value))


def near_diagonal(attention: NDArray[Any]) -> float:
    """The share of rows whose largest element lies within one step of the diagonal; mean over layers.

    (L, S, S), of all heads of a layer. The first and the last column are left out: special tokens draw attention from
    everywhere. So are rows that no window is long enough for.
    """
    inner = attention[:, :, 1:-1]
    steps = np.abs(inner.argmax(-1) + 1 - np.arange(inner.shape[1]))
    return float((steps <= 1)[attention.any(-1)].mean())


def summed_on_diagonal(study: StudyFolder) -> Judged:
    share = near_diagonal(layer_attention(study))
    return Judged(share > 0.5, f"{percent(share)} of the rows, over {counted(study.windows, 'window')}", value=share)


def one_text_off_diagonal(study: StudyFolder) -> Judged:
    try:
        share = near_diagonal(np.asarray(study.example.attention).sum(1))
    except HeadscopeError:
        raise CantBeSaid("The study keeps no example text.") from None
    if not summed_on_diagonal(study).holds:
        raise CantBeSaid(f"{percent(share)} of the rows, on the example text; but over many texts it is not so either.")
    return Judged(share < 0.5, f"{percent(share)} of the rows, on the example text", value=share)


def early_on_first(study: StudyFolder) -> Judged:
    (layer,) = layers_of(study, 1)
    received = layer_attention(study)[place_of(study, layer)].sum(0)
    top = int(received.argmax())
    value = _of_layer(study, "attention_to_first", layer)
    share = _sure(study, "attention_to_first", layer, value, "share")
    return Judged(
        top == 0,
        f"position {top} draws most; the first token receives {share}",
        value=value,
        chance=kind_chance(study, ("first",)),
    )


def middle_on_diagonal(study: StudyFolder) -> Judged:
    layers = layers_of(study, 1, 6, 11)
    columns = [f"attention_{name}" for name in ("self", "previous", "next")]
    early, middle, last = (sum(_of_layer(study, name, layer) for name in columns) for layer in layers)
    words = ", ".join(
        f"layer {layer}: {told(study, 'layers', columns, place_of(study, layer), share, 'share')}"
        for layer, share in zip(layers, (early, middle, last), strict=True)
    )
    found = _layer_estimates(study, layers, *columns)
    margin = None
    if found is not None:
        margin = _together(_minus(found[1], found[0], CLEARLY), _minus(found[1], found[2], CLEARLY))
    return Judged(middle > CLEARLY * max(early, last), words, margin, value=middle)


def late_on_separators(study: StudyFolder) -> Judged:
    layers = sorted({*layers_of(study, 10), *layers_of(study, 11)})
    places = [place_of(study, layer) for layer in layers]

    def share(arrays: Arrays) -> Ratio:
        counts = arrays["line_kind_count"][places].sum((0, 1))
        return Ratio(counts[[[SENTENCE_END, COMMA]]].sum(-1, keepdims=True), _content(counts)[None, None])

    counts = study.arrays["line_kind_count"][places].sum((0, 1))
    if not _content(counts):
        raise CantBeSaid("All lines are on the first token and other special tokens.")
    value = float(counts[[SENTENCE_END, COMMA]].sum() / _content(counts))
    found = _made(study, share)
    words = f"{_in_words(found, value)} of the lines that are not on special tokens"
    chance = kind_chance(study, ("sentence_end", "comma"))
    words += f"; they are {percent(chance)} of the tokens" if chance is not None else ""
    return Judged(value > 0.5, words, found and _over(found, 0.5), value=value, chance=chance)


def _content(lines: NDArray[Any]) -> Any:
    """Lines on tokens that are not special, of counts by kind."""
    return lines[SENTENCE_END : WORD + 1].sum()


def values_with_gap(study: StudyFolder) -> Judged:
    (last,) = layers_of(study, 11)
    place = place_of(study, last)
    low, middle = value_shares(study.arrays["similarity_histogram"][place].sum(0))
    if np.isnan(low):
        raise CantBeSaid(f"Layer {last} has no positive similarity.")

    def below(first: float | None, end: float) -> Callable[[Arrays], Ratio]:
        """The share of values from one bound to another."""
        bounds = [0 if bound is None else _coarse(bound) for bound in (first, end)]

        def share(arrays: Arrays) -> Ratio:
            counts = arrays["spectrum_of_groups"][place, :, SETS.index("all")].sum(0)
            return Ratio(counts[slice(*bounds)].sum()[None, None], counts.sum()[None, None])

        return share

    under, between = _made(study, below(None, 0.1)), _made(study, below(0.1, 0.6))
    margin = None
    if under is not None and between is not None:
        margin = _together(_over(under, 0.5), _over(_negative(between), -0.1))
    words = f"{_in_words(under, low)} below 0.1, {_in_words(between, middle)} between 0.1 and 0.6"
    return Judged(low > 0.5 and middle < 0.1, words, margin, value=low)


def _coarse(bound: float) -> int:
    """The coarse bin that begins at a bound."""
    return int(np.flatnonzero(threshold_place(bound) * CUT == COARSE_EDGES)[0])


def _negative(found: Estimate) -> Estimate:
    return Estimate(-found.value, -found.left_out, found.weight)


def _made(study: StudyFolder, value: Callable[[Arrays], Ratio]) -> Estimate | None:
    """One number, (1, 1), of a function of the states; None where the study does not tell how sure it is."""
    try:
        return study.jackknife.made("heads", value)
    except (AbsentError, KeyError):
        return None


def _in_words(found: Estimate | None, value: float) -> str:
    low, high = (None, None) if found is None else (float(end[0]) for end in within("share", found))
    return ranged(value, low, high, "share")


def far(study: StudyFolder) -> float:
    """The paper's bound, scaled to the windows."""
    return PAPER_FAR * tokens_a_window(study) / PAPER_LENGTH


def one_far_head(study: StudyFolder) -> Judged:
    (last,) = layers_of(study, 11)
    distances = _of_heads(study, "mean_distance", last)
    limit = far(study)
    beyond_it = np.flatnonzero(distances >= limit)
    spread = f"{np.nanmin(distances):.0f} to {np.nanmax(distances):.0f} tokens"
    words = f"{len(beyond_it)} of {len(distances)} heads; {spread}"
    usual = distance_chance(study)
    words += f", pairs at random {usual:.0f}" if usual is not None else ""
    found = estimate(study, "heads", "mean_distance")
    margin = None
    if found is not None:
        # The farthest must lie beyond the limit, and the second farthest within it.
        beyond = _known(_over(found.at(_rows(study, last)), limit))
        order = np.argsort(beyond.value)[::-1]
        margin = _together(beyond.at(order[:1]), _negative(beyond.at(order[1:2])))
    return Judged(len(beyond_it) == 1, words, margin, value=float(len(beyond_it)), of_value=False)


def far_head_repeats(study: StudyFolder) -> Judged:
    (last,) = layers_of(study, 11)
    distances, repeats = (_of_heads(study, name, last) for name in ("mean_distance", "repeat_probability"))
    farthest, most = int(np.nanargmax(distances)), int(np.nanargmax(repeats))
    chance = float(np.nanmean(_of_heads(study, "repeat_chance", last)))
    words = (
        f"farthest: head {farthest}, {percent(repeats[farthest])} repeats; "
        f"most repeats: head {most}, {percent(repeats[most])}"
    )
    holds = farthest == most and repeats[farthest] > 2 * chance
    given_distance, words_of_distance = None, ""
    if "repeat_chance_by_distance" in study.heads:
        near = float(_of_heads(study, "repeat_chance_by_distance", last)[farthest])
        given_distance = bool(farthest == most and repeats[farthest] > 2 * near)
        words_of_distance = f", distance {percent(near)}"
    margin = _far_and_most(study, last, farthest) if farthest == most else None
    words += f"; chance {percent(chance)}{words_of_distance}"
    return Judged(bool(holds), words, margin, given_distance, float(repeats[farthest]), chance, of_value=False)


def _far_and_most(study: StudyFolder, layer: int, head: int) -> Estimate | None:
    """How far the repeats of a head exceed twice chance, and those of the next head."""
    repeats, chances = (estimate(study, "heads", name) for name in ("repeat_probability", "repeat_chance"))
    if repeats is None or chances is None:
        return None
    rows = np.flatnonzero(_rows(study, layer))
    mine = repeats.at(rows[[head]])
    others = [row for row in rows if row != rows[head] and not np.isnan(repeats.value[row])]
    margins = [_minus(mine, chances.at(rows[[head]]), 2)]
    if others:
        next_most = max(others, key=lambda row: repeats.value[row])
        margins.append(_minus(mine, repeats.at([next_most]), 1))
    return _together(*margins)


def _least_lift(shares: Numbers, chances: Numbers) -> float:
    """The smallest multiple of chance, over the heads of which both are known; 0 where there is none."""
    known = ~np.isnan(shares) & (chances > 0)
    return float(np.min(shares[known] / chances[known], initial=np.inf)) if known.any() else 0.0


def in_one_sentence(study: StudyFolder) -> Judged:
    (last,) = layers_of(study, 11)
    shares, chances = (_of_heads(study, name, last) for name in ("same_sentence_probability", "same_sentence_chance"))
    chance, least = float(np.nanmean(chances)), float(np.nanmin(shares))
    words = f"{percent(least)} to {percent(float(np.nanmax(shares)))} over the heads; chance {percent(chance)}"
    holds = least > 1 / 3 and bool(_least_lift(shares, chances) > CLEARLY)
    given_distance = None
    if "same_sentence_chance_by_distance" in study.heads:
        near = _of_heads(study, "same_sentence_chance_by_distance", last)
        given_distance = bool(_least_lift(shares, near) > CLEARLY)
        words += f", distance alone {percent(float(np.nanmin(near)))} to {percent(float(np.nanmax(near)))}"
    found, by_chance = (estimate(study, "heads", f"same_sentence_{name}") for name in ("probability", "chance"))
    margin = None
    if found is not None and by_chance is not None:
        rows = _rows(study, last)
        mine, others = found.at(rows), by_chance.at(rows)
        margin = _known(_together(_over(mine, 1 / 3), _minus(mine, others, CLEARLY)))
    return Judged(holds, words, margin, given_distance, least, chance)


def one_focal_token(study: StudyFolder) -> Judged:
    (last,) = layers_of(study, 11)
    shares = _of_heads(study, "focal_share", last)
    words = f"{percent(float(np.nanmin(shares)))} to {percent(float(np.nanmax(shares)))} over the heads"
    chance = None
    if "focal_chance" in study.heads:
        chances = _of_heads(study, "focal_chance", last)
        chance = float(np.nanmean(chances))
        words += f"; random pairs {percent(float(np.nanmin(chances)))} to {percent(float(np.nanmax(chances)))}"
    found = estimate(study, "heads", "focal_share")
    margin = found and _known(_over(found.at(_rows(study, last)), 0.5))
    return Judged(bool(np.nanmin(shares) > 0.5), words, margin, value=float(np.nanmin(shares)), chance=chance)


def focal_tokens_differ(study: StudyFolder) -> Judged:
    (last,) = layers_of(study, 11)
    heads = study.manifest.model.heads
    if heads < 4:
        raise CantBeSaid(f"The model has {heads} heads in a layer, too few to tell.")
    unique = _of_layer(study, "unique_focal_tokens", last)
    words = f"{_sure(study, 'unique_focal_tokens', last, unique, 'count')} of {heads}"
    chance = None
    if "unique_focal_chance" in study.layers:
        chance = _of_layer(study, "unique_focal_chance", last)
        words += f"; random pairs {chance:.1f}"
    found = _layer_estimates(study, [last], "unique_focal_tokens")
    margin = None
    if found is not None:
        margin = _together(_over(found[0], 0.7 * heads), _over(_negative(found[0]), -0.9 * heads))
    return Judged(0.7 * heads <= unique <= 0.9 * heads, words, margin, value=unique, chance=chance)


def distance_by_depth(study: StudyFolder) -> Judged:
    layers = layers_of(study, 1, 6, 11)
    early, middle, last = (_of_layer(study, "mean_distance", layer) for layer in layers)
    words = ", ".join(
        f"layer {layer}: {_sure(study, 'mean_distance', layer, distance, 'tokens')}"
        for layer, distance in zip(layers, (early, middle, last), strict=True)
    )
    usual = distance_chance(study)
    words += f"; pairs at random {usual:.0f}" if usual is not None else ""
    found = _layer_estimates(study, layers, "mean_distance")
    margin = None
    if found is not None:
        margin = _together(_negative(_minus(found[1], found[2], 0.9)), _negative(_minus(found[2], found[0], 0.9)))
    return Judged(middle < 0.9 * last < 0.81 * early, words, margin, value=middle, chance=usual)
