"""Findings about high pairs: what they have in common, how far apart they lie, which tokens they share."""

from __future__ import annotations

import numpy as np

from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.chance import distance_chance
from headscope.insight.choices import Head, head_at, is_random, nearest_and_farthest, place_of_head
from headscope.insight.discoveries import told_from_chance
from headscope.insight.findings.finding import Finding, Quantity
from headscope.insight.findings.reading import (
    Numbers,
    last_layer,
    layer_column,
    layers_at,
    top_place,
)
from headscope.insight.sureness import CLEARLY, over_chance
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
    above = _surely_above(study, shares, by_distance)
    excess, lift = shares - by_distance, shares / np.where(by_distance > 0, by_distance, np.nan)
    clearly = [place for place in above if shares[place] > CLEARLY * by_distance[place]]
    by_plain_chance = [
        place
        for place, both in enumerate(zip(shares, chances, strict=True))
        if not above and against_chance(*both) == "above"
    ]
    if above and not clearly:
        top = max(above, key=lambda place: float(lift[place]))
    else:
        known: list[int] = np.flatnonzero(~np.isnan(excess)).tolist()
        top = max(clearly or by_plain_chance or known, key=lambda place: float(excess[place]))
    value, chance, near = float(shares[top]), float(chances[top]), float(by_distance[top])
    quantity = Quantity("layers", ("same_sentence_probability",), (top,))
    layer = study.manifest.layers[top]
    if clearly:
        claim = (
            "High pairs stay within one sentence clearly more often than their distance explains in "
            f"{len(clearly)} of {len(shares)} layers: most in layer {layer}"
        )
    elif above:
        claim = (
            f"High pairs stay within one sentence little more often than their distance explains, {value / near:.2f} "
            f"times at most: in layer {layer}"
        )
    elif by_plain_chance:
        claim = (
            "High pairs stay within one sentence more often than by chance, but not surely more than their distance "
            f"explains: in layer {layer}"
        )
    else:
        claim = f"High pairs stay within one sentence no more often than by chance: in layer {layer}"
    claim += (
        f", {quantity.told(study, 'share')}, where distance alone gives {percent(near)} and chance {percent(chance)}"
    )
    return Finding(
        "Same sentence",
        claim,
        f".{_heads_over(study, 'same_sentence_probability', 'same_sentence_chance_by_distance', 'that')}",
        value,
        f"pairs in one sentence, layer {layer}",
        near,
        figure="8",
        beside=GIVEN,
        quantity=quantity,
        by_chance=Quantity("layers", ("same_sentence_chance_by_distance",), (top,)),
        layers=(layer,),
        nothing_there=not above,
        against=("tokens", "weights"),
    )


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
    return Finding(
        "Same sentence",
        f"Within one sentence lie {percent(value)} of the high pairs of layer {layer}, where chance gives "
        f"{percent(chance)}",
        "; how much of that is their short distance, this study can't tell.",
        value,
        f"pairs in one sentence, layer {layer}",
        chance,
        figure="8",
        quantity=Quantity("layers", ("same_sentence_probability",), (top,)),
        by_chance=Quantity("layers", ("same_sentence_chance",), (top,)),
        layers=(layer,),
    )


def repeats(study: StudyFolder) -> Finding | None:
    """Against what distance alone gives, where the study knows it."""
    by = _repeat_chance(study)
    given_distance = by != "repeat_chance"
    called = "distance alone gives" if given_distance else "chance gives"
    shares, chances = study.column("heads", "repeat_probability"), study.column("heads", by)
    top = top_place(shares)
    if top is None or not (chances[~np.isnan(shares)] > 0).any():
        return None
    well_over = (shares >= 2 * chances) & (chances > 0)
    found = bool(well_over.any())
    place = int(np.nanargmax(np.where(well_over, shares, np.nan))) if found else top
    value, chance, head = float(shares[place]), float(chances[place]), head_at(study, place)
    quantity = Quantity("heads", ("repeat_probability",), (place,))
    sure = quantity.told(study, "share")
    if found:
        among = "" if place == top else f"Of the heads with twice what {called} or more, "
        named = head_name(head) if among else capital(head_name(head))
        claim = (
            f"{among}{named} pairs equal tokens most: {sure} of its high pairs, "
            f"{value / chance:.0f} times what {called} ({percent(chance)}"
        )
        rest = ")."
    else:
        claim = (
            f"No head pairs equal tokens much more than {called.removesuffix(' gives')}: at most {sure} of the high "
            f"pairs, in {head_name(head)}, where {called} {percent(chance)}"
        )
        rest = "."
    learned = " How much of that is built in, not learned, nulls tell (headscope nulls)."
    return Finding(
        "Repeated tokens",
        claim,
        rest + (_heads_over(study, "repeat_probability", by, "it") if given_distance else ""),
        value,
        f"pairs of equal tokens, {head_name(head)}",
        chance,
        figure="6",
        beside=GIVEN if given_distance else "chance",
        quantity=quantity,
        by_chance=Quantity("heads", (by,), (place,)),
        heads=(head,),
        nothing_there=not found,
        learned="" if is_random(study) else learned,
    )


def _repeat_chance(study: StudyFolder) -> str:
    """The column that repeats are held against."""
    return "repeat_chance_by_distance" if "repeat_chance_by_distance" in study.heads else "repeat_chance"


def distant_repeats(study: StudyFolder) -> Finding | None:
    """The head that finds equal tokens across the whole text: its pairs lie as far apart as pairs at random."""
    usual = distance_chance(study)
    if usual is None:
        return None
    by = _repeat_chance(study)
    shares, chances, by_chance, distances = (
        study.column("heads", name) for name in ("repeat_probability", "repeat_chance", by, "mean_distance")
    )
    many = (shares >= np.maximum(0.2, 10 * chances)) & (shares >= 2 * by_chance)
    place = top_place(np.where(many & (distances >= 0.9 * usual), shares, np.nan))
    if place is None:
        return None
    head, quantity = head_at(study, place), Quantity("heads", ("repeat_probability",), (place,))
    as_far = "about as far as" if distances[place] <= 1.1 * usual else "farther than"
    return Finding(
        "Repeats far apart",
        f"{capital(head_name(head))} finds equal tokens across the whole text: its high pairs lie "
        f"{distances[place]:.0f} tokens apart on average, {as_far} pairs at random ({usual:.0f}), and "
        f"{quantity.told(study, 'share')} of them are of equal tokens",
        ".",
        float(shares[place]),
        f"pairs of equal tokens, {head_name(head)}",
        float(by_chance[place]),
        figure="10",
        beside=GIVEN if by != "repeat_chance" else "chance",
        quantity=quantity,
        by_chance=Quantity("heads", (by,), (place,)),
        heads=(head,),
    )


def distance_by_depth(study: StudyFolder) -> Finding | None:
    distances = layer_column(study, "mean_distance")
    if np.isnan(distances[[0, -1]]).any():
        return None
    usual, numbers, length = distance_chance(study), study.manifest.layers, study.manifest.options.length
    least, last = int(np.nanargmin(distances)), len(distances) - 1
    told = {least: f"in layer {numbers[least]} (the least)", 0: f"in layer {numbers[0]}"}
    told[last] = f"in {last_layer(study)}"
    parts = [f"{_tokens(distances[place])} {words}" for place, words in sorted(told.items())]
    parts[0] = parts[0].replace(" in ", f" {_steps(study)} in ", 1)
    claim = f"High pairs span on average {' and '.join([', '.join(parts[:-1]), parts[-1]][not parts[1:] :])}"
    claim += f"; pairs at random span {_tokens(usual)}" if usual is not None else ""
    return Finding(
        "Distance",
        claim,
        ".",
        float(distances[least]),
        f"mean distance, layer {numbers[least]}",
        usual,
        "tokens",
        length,
        figure="13" if study.grid is None else "grid",
        quantity=Quantity("layers", ("mean_distance",), (least,), lower_is_more=True),
        layers=layers_at(study, *told),
    )


def distance_of_heads(study: StudyFolder) -> Finding | None:
    ends = nearest_and_farthest(study)
    if len(ends) < 2:
        return None
    near, far = ends
    place = place_of_head(study, near)
    return Finding(
        "Range of heads",
        f"The shortest-ranged head is {head_name(near)}: {_range(study, near)}",
        f". The longest-ranged is {head_name(far)}: {_range(study, far)}.",
        float(study.column("heads", "mean_distance")[place]),
        f"mean distance, {head_name(near)}",
        distance_chance(study),
        "tokens",
        study.manifest.options.length,
        figure="7" if study.grid is None else "grid",
        quantity=Quantity("heads", ("mean_distance",), (place,), lower_is_more=True),
        heads=(near, far),
    )


def focal(study: StudyFolder) -> Finding | None:
    shares, numbers = layer_column(study, "focal_share"), study.manifest.layers
    if np.isnan(shares).all():
        return None
    chances = layer_column(study, "focal_chance") if "focal_chance" in study.layers else np.full(len(shares), np.nan)
    excess = shares - chances
    top = int(np.nanargmax(shares if np.isnan(excess).all() else excess))
    least = int(np.nanargmin(shares))
    value, chance = float(shares[top]), float(chances[top])
    quantity = Quantity("layers", ("focal_share",), (top,))
    claim = f"In layer {numbers[top]}, one token alone takes part in {quantity.told(study, 'share')} of a head's "
    claim += "high pairs" + ("" if np.isnan(chance) else f", where as many random pairs have one in {percent(chance)}")
    return Finding(
        "Focal token",
        claim,
        f"; least in layer {numbers[least]}, {percent(shares[least])}." if top != least else ".",
        value,
        f"focal share, layer {numbers[top]}",
        None if np.isnan(chance) else chance,
        figure="11",
        quantity=quantity,
        by_chance=Quantity("layers", ("focal_chance",), (top,)),
        layers=layers_at(study, top, least),
    )


def unique_focal(study: StudyFolder) -> Finding | None:
    unique, numbers = layer_column(study, "unique_focal_tokens"), study.manifest.layers
    heads = study.manifest.model.heads
    if heads == 1 or not unique.any():
        return None
    top, least = int(unique.argmax()), int(unique.argmin())
    quantity = Quantity("layers", ("unique_focal_tokens",), (top,))
    sure = quantity.told(study, "count")
    claim = f"The {heads} heads of layer {numbers[top]} have {sure} different focal tokens in a window"
    claim += ", the most of all layers" if top != least else ""
    chance = None
    if "unique_focal_chance" in study.layers:
        chance = float(layer_column(study, "unique_focal_chance")[top])
        claim += f", where random pairs give {chance:.1f}"
    return Finding(
        "Division of labour",
        claim,
        f"; those of layer {numbers[least]} have {unique[least]:.1f}." if top != least else ".",
        float(unique[top]),
        f"different focal tokens, layer {numbers[top]}",
        chance,
        "count",
        heads,
        figure="11",
        quantity=quantity,
        by_chance=Quantity("layers", ("unique_focal_chance",), (top,)),
        layers=layers_at(study, top, least),
    )


def silent(study: StudyFolder) -> Finding | None:
    """Heads without a single high pair."""
    none = int((study.heads["pairs"] == 0).sum())
    if not none:
        return None
    claim = f"{none} of {len(study.heads)} heads have no high pair in any window, so their shares are left empty"
    share = none / len(study.heads)
    return Finding("Silent heads", claim, ".", share, "heads without a high pair", figure="atlas")


def _tokens(distance: float) -> str:
    return f"{distance:.0f}" if distance >= 10 else f"{distance:.1f}"


def _steps(study: StudyFolder) -> str:
    """What a distance is counted in."""
    return "tokens" if study.grid is None else "patches"


def _range(study: StudyFolder, head: Head) -> str:
    place = place_of_head(study, head)
    distance, many = (study.column("heads", name)[place] for name in ("mean_distance", "pairs_per_window"))
    pairs = f"{many:,.0f}" if many >= 10 else f"{many:.1f}"
    window = "a window" if study.grid is None else "an image"
    return f"{_tokens(distance)} {_steps(study)} on average over {pairs} high pairs {window}"
