"""Findings about the values of N and C, without high pairs: signal and noise, blocks, the spectrum, the mean vector."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headscope.folder.study_folder import StudyFolder
from headscope.insight.findings.finding import Finding
from headscope.insight.findings.reading import head_rows, layer_column, top_row
from headscope.insight.sureness import told
from headscope.wording import head_name, in_words, percent

GAP = (0.1, 0.6)
"""Where the paper finds few values of N."""


def signal(study: StudyFolder) -> Finding | None:
    """Which relation leaves the larger trace in N beyond distance: no threshold enters."""
    called = {"signal_to_noise_repeat": "equal tokens", "signal_to_noise_sentence": "tokens of one sentence"}
    largest = {}
    for column, name in called.items():
        rows = head_rows(study, column)
        head = top_row(rows, column)
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


def blocks(study: StudyFolder) -> Finding | None:
    contrasts, numbers = layer_column(study, "block_contrast"), study.manifest.layers
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


def mean_vector(study: StudyFolder) -> Finding | None:
    """How much of the outputs is the same for all tokens: with much of it, most pairs are alike."""
    shares, numbers = layer_column(study, "mean_vector_share"), study.manifest.layers
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


def value_shares(histogram: NDArray[Any]) -> tuple[float, float]:
    """The shares of N below 0.1, and from 0.1 to 0.6, of a value spectrum (200,); NaN where it is empty."""
    low, high = (round((bound + 1) * len(histogram) / 2) for bound in GAP)
    total = histogram.sum()
    return (histogram[:low].sum() / total, histogram[low:high].sum() / total) if total else (np.nan, np.nan)
