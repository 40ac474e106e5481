"""What a study shows, in sentences computed from its numbers.

Each finding is a small pure function of the study. It says what the numbers support and changes its words with them;
it is absent where there is nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from headscope.corpus.windows import SEPARATORS
from headscope.folder.array_file import AbsentError
from headscope.folder.study_folder import StudyFolder
from headscope.insight.chance import attention_chance, distance_chance, kind_chance
from headscope.insight.choices import is_random, nearest_and_farthest, row_of
from headscope.insight.discoveries import told_from_chance
from headscope.insight.sureness import CLEARLY, over_chance, told
from headscope.measure.declaration import Unit
from headscope.wording import against_chance, capital, head_name, in_words, percent

PUNCTUATION = ("sentence_end", "comma", "punctuation")
GIVEN = "by distance alone"
GAP = (0.1, 0.6)
"""Where the paper finds few values of N."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """A sentence, the number that supports it, and what chance gives (None where chance has no meaning).

    what: what `value` is. full: the most it could be, for bars. figure: the one of `figures.FIGURES` that shows it.
    beside: what `chance` is called.
    """

    topic: str
    sentence: str
    value: float
    what: str
    chance: float | None = None
    unit: Unit = "share"
    full: float = 1.0
    figure: str | None = None
    beside: str = "chance"


def findings(study: StudyFolder) -> list[Finding]:
    """The most telling first; those that need high pairs are absent where a model has none, and those that need what
    the study does not have: words, where it is of images, or what its version did not keep."""
    found = []
    for find in FINDERS:
        try:
            finding = find(study)
        except AbsentError:
            continue
        if finding is not None:
            found.append(finding)
    return found


def punctuation(study: StudyFolder) -> Finding | None:
    return _drawn(study, "Punctuation", PUNCTUATION, "punctuation", figure="4")


def first_token(study: StudyFolder) -> Finding | None:
    return _drawn(study, "First token", ("first",), "the first token", figure="2")


def special_tokens(study: StudyFolder) -> Finding | None:
    """Absent where there are none, or where they draw next to nothing."""
    if _layers(study, "attention_to_special").max() < 0.05:
        return None
    return _drawn(study, "Special tokens", ("special",), "special tokens other than the first", figure="2")


def _drawn(study: StudyFolder, topic: str, kinds: Sequence[str], called: str, figure: str) -> Finding | None:
    """Attention that tokens of some kinds draw: where most, and in the last layer. Absent without such tokens."""
    columns = [f"attention_to_{kind}" for kind in kinds]
    shares = sum(_layers(study, name) for name in columns)
    assert isinstance(shares, np.ndarray)
    chance = kind_chance(study, kinds)
    if chance == 0:
        return None
    numbers, top = study.manifest.layers, int(shares.argmax())
    if chance is not None and against_chance(shares[top], chance) != "above":
        sentence = (
            f"No layer favours {called}: at most {percent(shares[top])} of attention, in layer {numbers[top]}, "
            f"goes to what is {percent(chance)} of the tokens."
        )
        where, value = f"layer {numbers[top]}", float(shares[top])
    else:
        most = around_peak(shares)
        where, value = in_words([numbers[place] for place in most]), float(shares[most].mean())
        verb, whose = ("puts", "its") if len(most) == 1 else ("put", "their")
        sure = told(study, "layers", columns, most, value, "share")
        sentence = f"{capital(where)} {verb} {sure} of {whose} attention on {called}"
        sentence += f" ({percent(chance)} of the tokens)" if chance is not None else ""
        sentence += f"; {_last(study)} {percent(shares[-1])}." if most[-1] != len(shares) - 1 else "."
    return Finding(topic, sentence, value, f"attention on {called}, {where}", chance, figure=figure)


def lines(study: StudyFolder) -> Finding | None:
    shares = _layers(study, "line_separator_share")
    if np.isnan(shares).all():
        return None
    chance = kind_chance(study, SEPARATORS)
    most, least = around_peak(shares), int(np.nanargmin(shares))
    value, numbers = float(shares[most].mean()), study.manifest.layers
    where = in_words([numbers[place] for place in most])
    if chance is not None and against_chance(np.nanmax(shares), chance) != "above":
        sentence = (
            f"Attention lines do not favour separators: {percent(value)} stand on them in {where}, and they are "
            f"{percent(chance)} of the tokens."
        )
    else:
        sure = told(study, "layers", "line_separator_share", most, value, "share")
        sentence = f"In {where}, {sure} of the attention lines stand on separators"
        sentence += f" ({percent(chance)} of the tokens)" if chance is not None else ""
        sentence += f"; in layer {numbers[least]}, {percent(shares[least])}." if least not in most else "."
    return Finding("Lines", sentence, value, f"lines on separators, {where}", chance, figure="3")


def same_sentence(study: StudyFolder) -> Finding | None:
    """Against what distance alone gives, because near tokens share a sentence anyway."""
    shares, chances = _layers(study, "same_sentence_probability"), _layers(study, "same_sentence_chance")
    if np.isnan(shares).all():
        return None
    try:
        by_distance = _layers(study, "same_sentence_chance_by_distance")
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
        rows = _heads(study, "repeat_probability", "repeat_chance", "repeat_chance_by_distance")
        by, called = "repeat_chance_by_distance", "what distance alone gives"
    except AbsentError:
        rows = _heads(study, "repeat_probability", "repeat_chance")
        by, called = "repeat_chance", "what chance gives"
    head = _top(rows, "repeat_probability")
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


def signal(study: StudyFolder) -> Finding | None:
    """Which relation leaves the larger trace in N beyond distance: no threshold enters."""
    called = {"signal_to_noise_repeat": "equal tokens", "signal_to_noise_sentence": "tokens of one sentence"}
    largest = {}
    for column, name in called.items():
        rows = _heads(study, column)
        head = _top(rows, column)
        if head is not None:
            sure = told(study, "heads", column, rows.index(head), float(head[column]), "difference")
            largest[column] = head, f"{name} by {sure} in {head_name(head)}"
    if not largest:
        return None
    column, (head, _) = max(largest.items(), key=lambda item: item[1][0][item[0]])
    value = float(head[column])
    if value < 0.1:
        sentence = "No relation leaves a trace in the similarity beyond distance: at most "
    else:
        sentence = "Beyond distance and without any threshold, similarity tells "
    sentence += f"{' and '.join(told_of for _, told_of in largest.values())} (signal over noise; 0 is no trace)."
    what = f"signal over noise, {called[column]}, {head_name(head)}"
    return Finding("Signal and noise", sentence, value, what, 0.0, "difference", figure="signal")


def carried(study: StudyFolder) -> Finding | None:
    """Whether the separators that draw attention move anything."""
    drawn, moved = (
        [f"{what}_to_{kind}" for kind in (*PUNCTUATION, "first", "special")] for what in ("attention", "carried")
    )
    attention, carries = (sum(_layers(study, name) for name in names) for names in (drawn, moved))
    assert isinstance(attention, np.ndarray)
    assert isinstance(carries, np.ndarray)
    if np.isnan(carries).all() or not study.manifest.model.carried_by:
        return None
    most = around_peak(attention)
    numbers = study.manifest.layers
    where = in_words([numbers[place] for place in most])
    paid, value = float(attention[most].mean()), float(carries[most].mean())
    sure_paid, sure = (
        told(study, "layers", names, most, number, "share") for names, number in ((drawn, paid), (moved, value))
    )
    meaning = (
        "less than it seems" if value < 0.75 * paid else "more than it seems" if value > 1.25 * paid else "as much"
    )
    sentence = (
        f"In {where}, separators draw {sure_paid} of the attention and bring {sure} of what it carries, each "
        f"weight times the length of the value it brings: {meaning}."
    )
    what = f"carried from separators, {where}"
    return Finding("What attention carries", sentence, value, what, paid, beside="attention")


def mean_vector(study: StudyFolder) -> Finding | None:
    """How much of the outputs is the same for all tokens: with much of it, most pairs are alike."""
    shares, numbers = _layers(study, "mean_vector_share"), study.manifest.layers
    if np.isnan(shares).all() or study.manifest.options.similarity == "centred":
        return None
    top, least = int(np.nanargmax(shares)), int(np.nanargmin(shares))
    value = float(shares[top])
    sure = told(study, "layers", "mean_vector_share", top, value, "share")
    sentence = (
        f"In layer {numbers[top]}, {sure} of the squared length of the outputs lies in the mean vector of the window, "
        "the same for all tokens"
    )
    sentence += f"; least in layer {numbers[least]}, {percent(float(shares[least]))}" if top != least else ""
    sentence += ". With --similarity centred it is taken out." if value > 0.5 else "."
    return Finding("The mean vector", sentence, value, f"in the mean vector, layer {numbers[top]}")


def distant_repeats(study: StudyFolder) -> Finding | None:
    """The head that finds equal tokens across the whole text: its pairs lie as far apart as pairs at random."""
    usual = distance_chance(study)
    if usual is None:
        return None
    far = [
        row
        for row in _heads(study, "repeat_probability", "repeat_chance", "mean_distance")
        if row["repeat_probability"] >= max(0.2, 10 * row["repeat_chance"])
        and row["repeat_probability"] >= 2 * row.get("repeat_chance_by_distance", 0)
        and row["mean_distance"] >= 0.9 * usual
    ]
    head = _top(far, "repeat_probability")
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
    distances = _layers(study, "mean_distance")
    if np.isnan(distances[[0, -1]]).any():
        return None
    usual, numbers, length = distance_chance(study), study.manifest.layers, study.manifest.options.length
    least = int(np.nanargmin(distances))
    last = len(distances) - 1
    told = {least: f"in layer {numbers[least]} (the least)", 0: f"in layer {numbers[0]}", last: f"in {_last(study)}"}
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
    shares, numbers = _layers(study, "focal_share"), study.manifest.layers
    if np.isnan(shares).all():
        return None
    chances = _layers(study, "focal_chance") if "focal_chance" in study.layers else np.full(len(shares), np.nan)
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
    unique, numbers = _layers(study, "unique_focal_tokens"), study.manifest.layers
    heads = study.manifest.model.heads
    if heads == 1 or not unique.any():
        return None
    top, least = int(unique.argmax()), int(unique.argmin())
    value = float(unique[top])
    sure = told(study, "layers", "unique_focal_tokens", top, value, "count")
    sentence = f"The {heads} heads of layer {numbers[top]} have {sure} different focal tokens in a window"
    chance = None
    if "unique_focal_chance" in study.layers:
        chance = float(_layers(study, "unique_focal_chance")[top])
        sentence += f", where random pairs give {chance:.1f}"
    sentence += f", the most of all layers; those of layer {numbers[least]} have {unique[least]:.1f}" * (top != least)
    what = f"different focal tokens, layer {numbers[top]}"
    return Finding("Division of labour", sentence + ".", value, what, chance, "count", heads, figure="11")


def blocks(study: StudyFolder) -> Finding | None:
    contrasts, numbers = _layers(study, "block_contrast"), study.manifest.layers
    if np.isnan(contrasts).all():
        return None
    top = int(np.nanargmax(contrasts))
    value = float(contrasts[top])
    sure = told(study, "layers", "block_contrast", top, value, "difference")
    if value > 0.02:
        sentence = (
            f"Outputs are more alike between two lines than across them: in layer {numbers[top]}, N is {sure} "
            "higher within a block than elsewhere."
        )
    else:
        sentence = (
            f"Lines do not part what is alike: the largest difference between N within a block and elsewhere is "
            f"{round(value, 2) + 0.0:.2f}, in layer {numbers[top]}."
        )
    return Finding("Blocks", sentence, value, f"block contrast, layer {numbers[top]}", 0.0, "difference", figure="5")


def neighbours(study: StudyFolder) -> Finding:
    called = {"self": "itself", "previous": "the token before it", "next": "the token after it"}
    table = pd.DataFrame({f"attention_{name}": study.column("heads", f"attention_{name}") for name in called})
    many = int((table.max(axis=1) >= 0.5).sum())
    place = int(table.max(axis=1).to_numpy().argmax())
    head, name = study.heads.iloc[place].to_dict(), table.columns[int(table.iloc[place].to_numpy().argmax())]
    target = called[name.removeprefix("attention_")]
    value, chance = float(head[name]), attention_chance(study)
    if value < 2 * chance:
        sentence = (
            "No head looks at neighbours: the most that a token gives to itself or to one beside it is "
            f"{percent(value)} of its attention, in {head_name(head)}; evenly spread it would be {percent(chance)}."
        )
    else:
        sure = told(study, "heads", name, place, value, "share")
        sentence = f"In {head_name(head)}, a token gives {sure} of its attention to {target}"
        sentence += f", where evenly spread it would be {percent(chance)}. "
        sentence += {0: "No head gives", 1: "It is the only head that gives"}.get(many, f"{many} heads give")
        sentence += " half or more to one such place."
    return Finding("Neighbours", sentence, value, f"attention to {target}, {head_name(head)}", chance, figure="2")


def spectrum(study: StudyFolder) -> Finding | None:
    low, middle = value_shares(study.arrays["similarity_histogram"].sum((0, 1)))
    if np.isnan(low):
        return None
    threshold = study.manifest.options.threshold
    bounds = f"between {GAP[0]} and {GAP[1]}"
    if low + middle < 0.1:
        meaning = f"nearly all lie above, so the threshold {threshold:g} parts little"
    elif middle < 0.1:
        meaning = f"few, so the threshold {threshold:g} cuts in a gap"
    elif middle < low:
        meaning = f"no gap, so how many pairs are high depends on the threshold {threshold:g}"
    else:
        meaning = f"so many that how many pairs are high depends much on the threshold {threshold:g}"
    sentence = f"Of all values of N, {percent(low)} are below {GAP[0]} and {percent(middle)} {bounds}: {meaning}."
    return Finding("Threshold", sentence, middle, f"values of N {bounds}", figure="spectrum")


def crowded(study: StudyFolder) -> Finding | None:
    """Layers in which most pairs are high: their shares can't stray far from chance."""
    possible = study.arrays["similarity_histogram"].sum((1, 2))
    shares = np.divide(study.layers["pairs"], possible, out=np.zeros(len(possible)), where=possible > 0)
    full = np.flatnonzero(shares > 0.5)
    if not len(full):
        return None
    top = int(shares.argmax())
    numbers = study.manifest.layers
    where = in_words([numbers[place] for place in full])
    many = f"more than half of all pairs are high, {percent(shares[top])} in layer {numbers[top]}"
    sentence = (
        f"In {where}, {many if len(full) > 1 else f'{percent(shares[top])} of all pairs are high'}: the outputs there "
        "point much the same way, so shares of high pairs must lie near chance."
    )
    return Finding("Crowded layers", sentence, float(shares[top]), f"pairs that are high, layer {numbers[top]}")


def silent(study: StudyFolder) -> Finding | None:
    """Heads without a single high pair."""
    none = int((study.heads["pairs"] == 0).sum())
    if not none:
        return None
    sentence = f"{none} of {len(study.heads)} heads have no high pair in any window, so their shares are left empty."
    return Finding("Silent heads", sentence, none / len(study.heads), "heads without a high pair")


FINDERS: tuple[Callable[[StudyFolder], Finding | None], ...] = (
    punctuation,
    same_sentence,
    repeats,
    signal,
    carried,
    distance_by_depth,
    distant_repeats,
    lines,
    first_token,
    special_tokens,
    blocks,
    neighbours,
    focal,
    unique_focal,
    distance_of_heads,
    spectrum,
    mean_vector,
    crowded,
    silent,
)


def value_shares(histogram: NDArray[Any]) -> tuple[float, float]:
    """The shares of N below 0.1, and from 0.1 to 0.6, of a value spectrum (200,); NaN where it is empty."""
    low, high = (round((bound + 1) * len(histogram) / 2) for bound in GAP)
    total = histogram.sum()
    return (histogram[:low].sum() / total, histogram[low:high].sum() / total) if total else (np.nan, np.nan)


def around_peak(shares: Numbers) -> NDArray[np.int64]:
    """The unbroken range about the largest share in which all are at least three quarters of it.

    >>> around_peak(np.array([0.1, 0.4, 0.5, 0.45, 0.2]))
    array([1, 2, 3])
    """
    peak = int(np.nanargmax(shares))
    low = np.flatnonzero(~(shares >= 0.75 * shares[peak]))
    return np.arange(max(low[low < peak], default=-1) + 1, min(low[low > peak], default=len(shares)))


def _layers(study: StudyFolder, column: str) -> Numbers:
    """A column of the layers' table."""
    return study.column("layers", column)


def _heads(study: StudyFolder, *columns: str) -> list[dict[Any, Any]]:
    """The rows of the heads' table, which must have these columns."""
    for column in columns:
        study.column("heads", column)
    return study.heads.to_dict("records")


def _top(rows: list[dict[Any, Any]], column: str) -> dict[Any, Any] | None:
    """The row with the largest value; None where no row has one."""
    known = [row for row in rows if not np.isnan(row[column])]
    return max(known, key=lambda row: row[column]) if known else None


def _last(study: StudyFolder) -> str:
    """The last layer measured, which need not be the model's."""
    number = study.manifest.layers[-1]
    return "the last layer" if number == study.manifest.model.layers - 1 else f"layer {number}"


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
