"""Findings about high pairs: what they have in common, how far apart they lie, which tokens they share."""

from __future__ import annotations

from typing import Any

import numpy as np

from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.chance import distance_chance
from headscope.insight.choices import is_random, nearest_and_farthest, row_of
from headscope.insight.discoveries import told_from_chance
from headscope.insight.findings.finding import Finding
from headscope.insight.findings.reading import Numbers, head_rows, last_layer, layer_column, top_row
from headscope.insight.sureness import CLEARLY, over_chance, told
from headscope.wording import against_chance, capital, head_name, percent

GIVEN = "by distance alone"


def same_sentence(study: StudyFolder) -> Finding | None:
    """Against what distance alone gives, because near tokens share a sentence anyway."""
    shares, chances = layer_column(study, "same_sentence_probability"), layer_column(study, "same_sentence_chance")
    if np.isnan(shares).all():
        return None
    try:
        by_distance = layer_column(study, "same_sentence_chance_by_distance")
    except AbsentError:
        return _same_sentence_by_plain_chance(study, shares, chances)
    top = int(np.nanargmax(shares - by_distance))
    value, chance, near = float(shares[top]), float(chances[top]), float(by_distance[top])
    layer = study.manifest.layers[top]
    sure = told(study, "layers", "same_sentence_probability", top, value, "share")
    where = f"{sure}, where distance alone gives {percent(near)} and chance {percent(chance)}."
    above = _surely_above(study, shares, by_distance)
    clearly = [place for place in above if shares[place] > CLEARLY * by_distance[place]]
    if clearly:
        sentence = (
            "High pairs stay within one sentence clearly more often than their distance explains in "
            f"{len(clearly)} of {len(shares)} layers: most in layer {layer}, {where}"
        )
    elif top in above:
        sentence = (
            f"High pairs stay within one sentence little more often than their distance explains, {value / near:.2f} "
            f"times at most: in layer {layer}, {where}"
        )
    elif any(against_chance(s, c) == "above" for s, c in zip(shares, chances, strict=True)):
        sentence = (
            "High pairs stay within one sentence more often than by chance, but not surely more than their distance "
            f"explains: in layer {layer}, {where}"
        )
    else:
        sentence = f"High pairs stay within one sentence no more often than by chance: in layer {layer}, {where}"
    sentence += _heads_over(study, "same_sentence_probability", "same_sentence_chance_by_distance", "that")
    what = f"pairs in one sentence, layer {layer}"
    return Finding("Same sentence", sentence, value, what, near, figure="8", beside=GIVEN)


def _surely_above(study: StudyFolder, shares: Numbers, by_distance: Numbers) -> list[int]:
    """The layers whose difference lies above 0 with its whole interval. Where the study keeps no groups of texts, those
    that exceed it by a tenth; where it has too few texts, none."""
    difference = over_chance(study, "layers", "same_sentence_probability", "same_sentence_chance_by_distance", 1)
    if difference is None:
        return [place for place in range(len(shares)) if shares[place] > CLEARLY * by_distance[place]]
    low, _ = difference.interval()
    return np.flatnonzero(low > 0).tolist()


def _heads_over(study: StudyFolder, column: str, chance: str, what: str) -> str:
    """How many heads clearly exceed chance given distance, at a false discovery rate of 5 %; nothing where it can't be
    told."""
    over = over_chance(study, "heads", column, chance)
    if over is None or np.isnan(over.error).all():
        return ""
    count = int(told_from_chance(over).over.sum())
    return (
        f" By heads: {count or 'none'} of {len(over.value)} exceed{'s' if count == 1 else ''} {what} by a tenth or "
        "more (false discovery rate 5 %)."
    )


def _same_sentence_by_plain_chance(study: StudyFolder, shares: Numbers, chances: Numbers) -> Finding:
    """For a study from before chance given distance was measured."""
    top = int(np.nanargmax(shares - chances))
    value, chance, layer = float(shares[top]), float(chances[top]), study.manifest.layers[top]
    sentence = (
        f"Within one sentence lie {percent(value)} of the high pairs of layer {layer}, where chance gives "
        f"{percent(chance)}; how much of that is their short distance, this study can't tell."
    )
    return Finding("Same sentence", sentence, value, f"pairs in one sentence, layer {layer}", chance, figure="8")


def repeats(study: StudyFolder) -> Finding | None:
    """Against what distance alone gives, where the study knows it."""
    try:
        rows = head_rows(study, "repeat_probability", "repeat_chance", "repeat_chance_by_distance")
        by, called = "repeat_chance_by_distance", "what distance alone gives"
    except AbsentError:
        rows = head_rows(study, "repeat_probability", "repeat_chance")
        by, called = "repeat_chance", "what chance gives"
    head = top_row(rows, "repeat_probability")
    if head is None:
        return None
    value, chance = float(head["repeat_probability"]), float(head[by])
    if chance == 0:
        return None
    sure = told(study, "heads", "repeat_probability", rows.index(head), value, "share")
    if value >= 2 * chance:
        sentence = (
            f"{capital(head_name(head))} pairs equal tokens most: {sure} of its high pairs, "
            f"{value / chance:.0f} times {called} ({percent(chance)})."
        )
    else:
        sentence = (
            f"No head pairs equal tokens much more than {called.removeprefix('what ').removesuffix(' gives')}: at most "
            f"{sure} of the high pairs, in {head_name(head)}, where {called.removeprefix('what ')} {percent(chance)}."
        )
    if by != "repeat_chance":
        sentence += _heads_over(study, "repeat_probability", by, "it")
    if not is_random(study):
        sentence += (
            " How much of that is built in, not learned, a study with random weights tells (--model random:NAME)."
        )
    what = f"pairs of equal tokens, {head_name(head)}"
    beside = "chance" if by == "repeat_chance" else GIVEN
    return Finding("Repeated tokens", sentence, value, what, chance, figure="6", beside=beside)


def distant_repeats(study: StudyFolder) -> Finding | None:
    """The head that finds equal tokens across the whole text: its pairs lie as far apart as pairs at random."""
    usual = distance_chance(study)
    if usual is None:
        return None
    far = [
        row
        for row in head_rows(study, "repeat_probability", "repeat_chance", "mean_distance")
        if row["repeat_probability"] >= max(0.2, 10 * row["repeat_chance"])
        and row["repeat_probability"] >= 2 * row.get("repeat_chance_by_distance", 0)
        and row["mean_distance"] >= 0.9 * usual
    ]
    head = top_row(far, "repeat_probability")
    if head is None:
        return None
    sentence = (
        f"{capital(head_name(head))} finds equal tokens across the whole text: they are "
        f"{percent(head['repeat_probability'])} of its high pairs, which lie {head['mean_distance']:.0f} tokens apart "
        f"on average, about as far as pairs at random ({usual:.0f})."
    )
    length = study.manifest.options.length
    what = f"mean distance, {head_name(head)}"
    return Finding("Repeats far apart", sentence, head["mean_distance"], what, usual, "tokens", length, figure="10")


def distance_by_depth(study: StudyFolder) -> Finding | None:
    distances = layer_column(study, "mean_distance")
    if np.isnan(distances[[0, -1]]).any():
        return None
    usual, numbers, length = distance_chance(study), study.manifest.layers, study.manifest.options.length
    least = int(np.nanargmin(distances))
    last = len(distances) - 1
    told = {
        least: f"in layer {numbers[least]} (the least)",
        0: f"in layer {numbers[0]}",
        last: f"in {last_layer(study)}",
    }
    parts = [f"{_tokens(distances[place])} {words}" for place, words in sorted(told.items())]
    parts[0] = parts[0].replace(" in ", f" {_steps(study)} in ", 1)
    sentence = f"High pairs span on average {' and '.join([', '.join(parts[:-1]), parts[-1]][not parts[1:] :])}"
    sentence += f"; pairs at random span {_tokens(usual)}." if usual is not None else "."
    what = f"mean distance, layer {numbers[least]}"
    return Finding(
        "Distance",
        sentence,
        float(distances[least]),
        what,
        usual,
        "tokens",
        length,
        figure="13" if study.grid is None else "grid",
    )


def distance_of_heads(study: StudyFolder) -> Finding | None:
    ends = nearest_and_farthest(study)
    if len(ends) < 2:
        return None
    near, far = (row_of(study, *end).to_dict() for end in ends)
    sentence = (
        f"The shortest-ranged head is {head_name(near)}: {_range(study, near)}. "
        f"The longest-ranged is {head_name(far)}: {_range(study, far)}."
    )
    length, what = study.manifest.options.length, f"mean distance, {head_name(near)}"
    value = float(near["mean_distance"])
    figure = "7" if study.grid is None else "grid"
    return Finding("Range of heads", sentence, value, what, distance_chance(study), "tokens", length, figure=figure)


def focal(study: StudyFolder) -> Finding | None:
    shares, numbers = layer_column(study, "focal_share"), study.manifest.layers
    if np.isnan(shares).all():
        return None
    chances = layer_column(study, "focal_chance") if "focal_chance" in study.layers else np.full(len(shares), np.nan)
    excess = shares - chances
    top = int(np.nanargmax(shares if np.isnan(excess).all() else excess))
    least = int(np.nanargmin(shares))
    value, chance = float(shares[top]), float(chances[top])
    sure = told(study, "layers", "focal_share", top, value, "share")
    sentence = f"In layer {numbers[top]}, one token alone takes part in {sure} of a head's high pairs"
    sentence += "" if np.isnan(chance) else f", where as many random pairs have one in {percent(chance)}"
    sentence += f"; least in layer {numbers[least]}, {percent(shares[least])}." if top != least else "."
    known = None if np.isnan(chance) else chance
    return Finding("Focal token", sentence, value, f"focal share, layer {numbers[top]}", known, figure="11")


def unique_focal(study: StudyFolder) -> Finding | None:
    unique, numbers = layer_column(study, "unique_focal_tokens"), study.manifest.layers
    heads = study.manifest.model.heads
    if heads == 1 or not unique.any():
        return None
    top, least = int(unique.argmax()), int(unique.argmin())
    value = float(unique[top])
    sure = told(study, "layers", "unique_focal_tokens", top, value, "count")
    sentence = f"The {heads} heads of layer {numbers[top]} have {sure} different focal tokens in a window"
    chance = None
    if "unique_focal_chance" in study.layers:
        chance = float(layer_column(study, "unique_focal_chance")[top])
        sentence += f", where random pairs give {chance:.1f}"
    sentence += f", the most of all layers; those of layer {numbers[least]} have {unique[least]:.1f}" * (top != least)
    what = f"different focal tokens, layer {numbers[top]}"
    return Finding("Division of labour", sentence + ".", value, what, chance, "count", heads, figure="11")


def silent(study: StudyFolder) -> Finding | None:
    """Heads without a single high pair."""
    none = int((study.heads["pairs"] == 0).sum())
    if not none:
        return None
    sentence = f"{none} of {len(study.heads)} heads have no high pair in any window, so their shares are left empty."
    return Finding("Silent heads", sentence, none / len(study.heads), "heads without a high pair")


def _tokens(distance: float) -> str:
    return f"{distance:.0f}" if distance >= 10 else f"{distance:.1f}"


def _steps(study: StudyFolder) -> str:
    """What a distance is counted in."""
    return "tokens" if study.grid is None else "patches"


def _range(study: StudyFolder, head: dict[Any, Any]) -> str:
    many = head["pairs_per_window"]
    pairs = f"{many:,.0f}" if many >= 10 else f"{many:.1f}"
    window = "a window" if study.grid is None else "an image"
    return f"{_tokens(head['mean_distance'])} {_steps(study)} on average over {pairs} high pairs {window}"
