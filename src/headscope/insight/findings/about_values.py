"""Findings about the values of N and C, without high pairs: signal and noise, blocks, the spectrum, the mean vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.folder.study_folder import StudyFolder
from headscope.insight.choices import head_at
from headscope.insight.findings.finding import Finding, Quantity
from headscope.insight.findings.reading import layer_column, layers_at, standing_for, top_place
from headscope.wording import head_name, in_words, percent

GAP = (0.1, 0.6)
"""Where the paper finds few values of N."""
FEWEST_LINES = 4
"""A window, that cut it into blocks."""


def signal(study: StudyFolder) -> Finding | None:
    """Which relation leaves the larger trace in N beyond distance: no threshold enters."""
    called = {"signal_to_noise_repeat": "equal tokens", "signal_to_noise_sentence": "tokens of one sentence"}
    values = {column: study.column("heads", column) for column in called}
    places = {column: place for column in called if (place := top_place(values[column])) is not None}
    if not places:
        return None
    made_of = {column: Quantity("heads", (column,), (place,)) for column, place in places.items()}
    heads = {column: head_at(study, place) for column, place in places.items()}
    largest = max(places, key=lambda column: values[column][places[column]])
    value = float(values[largest][places[largest]])
    found = value >= 0.1
    claim = (
        "Beyond distance and without any threshold, similarity tells "
        if found
        else "No relation leaves a trace in the similarity beyond distance: at most "
    )
    told = (f"{called[c]} by {made_of[c].told(study, 'difference')} in {head_name(heads[c])}" for c in heads)
    return Finding(
        "Signal and noise",
        f"{claim}{' and '.join(told)} (signal over noise; 0 is no trace",
        ").",
        value,
        f"signal over noise, {called[largest]}, {head_name(heads[largest])}",
        0.0,
        "difference",
        figure="signal",
        quantity=made_of[largest],
        heads=tuple(dict.fromkeys(heads.values())),
        nothing_there=not found,
        against=("tokens", "weights") if largest == "signal_to_noise_sentence" else ("weights",),
    )


def blocks(study: StudyFolder) -> Finding | None:
    """Of heads whose lines cut a window into some blocks. With a line or two, mostly on the first and the last token, a
    block is the whole text, and its contrast says no more than that these tokens are unlike all others."""
    contrasts, lines = (study.column("heads", name) for name in ("block_contrast", "lines_per_window"))
    cutting = (lines >= FEWEST_LINES) & (lines <= study.manifest.options.length / 3)
    place = top_place(np.where(cutting, contrasts, np.nan))
    if place is None:
        return None
    value, head = float(contrasts[place]), head_at(study, place)
    quantity = Quantity("heads", ("block_contrast",), (place,))
    sure, found = quantity.told(study, "difference"), value > 0.02
    if found:
        claim = (
            f"Outputs are more alike between two lines than across them: in {head_name(head)}, with "
            f"{lines[place]:.0f} lines a window, N is {sure} higher within a block than elsewhere"
        )
    else:
        claim = (
            "Lines do not part what is alike: the largest difference between N within a block and elsewhere is "
            f"{sure}, in {head_name(head)}"
        )
    return Finding(
        "Blocks",
        claim,
        ".",
        value,
        f"block contrast, {head_name(head)}",
        0.0,
        "difference",
        figure="5",
        quantity=quantity,
        heads=(head,),
        nothing_there=not found,
    )


def mean_vector(study: StudyFolder) -> Finding | None:
    """How much of the outputs is the same for all tokens: with much of it, most pairs are alike."""
    shares, numbers = layer_column(study, "mean_vector_share"), study.manifest.layers
    if np.isnan(shares).all() or study.manifest.options.similarity == "centred":
        return None
    top, least = int(np.nanargmax(shares)), int(np.nanargmin(shares))
    value, quantity = float(shares[top]), Quantity("layers", ("mean_vector_share",), (top,))
    claim = (
        f"In layer {numbers[top]}, {quantity.told(study, 'share')} of the squared length of the outputs lies in the "
        "mean vector of the window, the same for all tokens"
    )
    rest = f"; least in layer {numbers[least]}, {percent(float(shares[least]))}" if top != least else ""
    rest += ". With the similarity centred it is taken out." if value > 0.5 else "."
    what = f"in the mean vector, layer {numbers[top]}"
    return Finding("The mean vector", claim, rest, value, what, quantity=quantity, layers=layers_at(study, top, least))


def spectrum(study: StudyFolder) -> Finding | None:
    low, middle = value_shares(study.arrays["similarity_histogram"].sum((0, 1)))
    if np.isnan(low):
        return None
    threshold = study.manifest.options.threshold
    bounds = f"between {GAP[0]} and {GAP[1]}"
    inside = GAP[0] <= threshold <= GAP[1]
    if low + middle < 0.1:
        parts_little = f", so the threshold {threshold:g} parts little" if threshold <= GAP[1] else ""
        meaning = f"nearly all lie above{parts_little}"
    elif middle < 0.1:
        where = "so the threshold {:g} cuts in a gap" if inside else "a gap, but the threshold {:g} lies outside of it"
        meaning = f"few, {where.format(threshold)}"
    elif middle < low:
        meaning = f"no gap, so how many pairs are high depends on the threshold {threshold:g}"
    else:
        meaning = f"so many that how many pairs are high depends much on the threshold {threshold:g}"
    claim = f"Of all values of N, {percent(low)} are below {GAP[0]} and {percent(middle)} {bounds}: {meaning}"
    return Finding("Threshold", claim, ".", middle, f"values of N {bounds}", figure="spectrum")


def crowded(study: StudyFolder) -> Finding | None:
    """Layers in which most pairs are high: their shares can't stray far from chance."""
    possible = study.arrays["similarity_histogram"].sum((1, 2))
    shares = np.divide(study.layers["pairs"], possible, out=np.zeros(len(possible)), where=possible > 0)
    full = np.flatnonzero(shares > 0.5)
    if not len(full):
        return None
    top = int(shares.argmax())
    numbers = study.manifest.layers
    named = standing_for(study, full, shares)
    where = in_words([numbers[place] for place in full])
    if len(named) > 3:
        where, named = f"{len(full)} of {len(shares)} layers", (top,)
    many = f"more than half of all pairs are high, {percent(shares[top])} in layer {numbers[top]}"
    claim = (
        f"In {where}, {many if len(full) > 1 else f'{percent(shares[top])} of all pairs are high'}: the outputs there "
        "point much the same way, so shares of high pairs must lie near chance"
    )
    return Finding(
        "Crowded layers",
        claim,
        ".",
        float(shares[top]),
        f"pairs that are high, layer {numbers[top]}",
        figure="spectrum",
        layers=layers_at(study, *named),
    )


def value_shares(histogram: NDArray[Any]) -> tuple[float, float]:
    """The shares of N below 0.1, and from 0.1 to 0.6, of a value spectrum (200,); NaN where it is empty."""
    low, high = (round((bound + 1) * len(histogram) / 2) for bound in GAP)
    total = histogram.sum()
    return (histogram[:low].sum() / total, histogram[low:high].sum() / total) if total else (np.nan, np.nan)
