"""The measures, written slowly and obviously from the method's definitions: loops over windows, heads and pairs.

Nothing here is shared with the code under test.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np

KINDS = ["first", "special", "sentence_end", "comma", "punctuation", "word"]


@dataclass
class Example:
    """One window: attention (L, H, S, S), output (L, H, S, d), lengths of the values (L, H, S); the rest per token, but
    for the number of its text."""

    attention: np.ndarray
    output: np.ndarray
    ids: list[int]
    sentence: list[int]
    kind: list[int]
    special: list[bool]
    size: int
    lengths: np.ndarray
    text: int = 0


def compared(output: np.ndarray, part: list[int], how: str) -> np.ndarray:
    if how == "centred":
        return output - np.array([sum(output[i, k] for i in part) / len(part) for k in range(output.shape[1])])
    if how == "cosine":
        return np.array([row / (math.sqrt(sum(x * x for x in row.tolist())) or 1) for row in output])
    return output


def similarity(output: np.ndarray) -> np.ndarray:
    tokens = len(output)
    matrix = np.zeros((tokens, tokens), dtype=np.float32)
    for i in range(tokens):
        for j in range(tokens):
            if i != j:
                matrix[i, j] = np.float32(np.dot(output[i].astype(np.float64), output[j].astype(np.float64)))
    return matrix


def lines_of(attention: np.ndarray, size: int, threshold: float) -> list[int]:
    received = [math.fsum(float(attention[i, j]) for i in range(size)) for j in range(size)]
    top = max(received)
    return [j for j in range(size) if top > 0 and received[j] / top > threshold]


def share_histogram(shares: list[tuple[int, int]]) -> np.ndarray:
    histogram = np.zeros(50, dtype=np.int64)
    for part, whole in shares:
        histogram[min(49, part * 50 // whole)] += 1
    return histogram


def fine_bin(n: np.float32) -> int:
    """Bins of 0.002; from 0.99 on by the bits of 1 - N, eight to each halving."""
    if math.floor((float(n) + 1) * 500) < 995:
        return max(0, math.floor((float(n) + 1) * 500))
    below = int(np.float32(1 - n).view(np.int32))
    return 995 + min(139, max(0, (int(np.float32(0.01).view(np.int32)) - below) // 2**20))


def auc(related: list[float], others: list[float]) -> float:
    """How often one of the first is larger; equal ones count half."""
    if not related or not others:
        return math.nan
    ordered = np.sort(others)
    lower, not_higher = (np.searchsorted(ordered, related, side) for side in ("left", "right"))
    return float((lower + not_higher).sum()) / 2 / (len(related) * len(others))


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


class Head:
    """All that is measured of one head over many windows."""

    def __init__(self, length: int) -> None:
        self.windows = 0
        self.attention_sum = np.zeros((length, length))
        self.attention_sum_without_lines = np.zeros((length, length))
        self.similarity_sum = np.zeros((length, length))
        self.high_count = np.zeros((length, length), dtype=np.int64)
        self.distance_histogram = np.zeros(length, dtype=np.int64)
        self.similarity_histogram = np.zeros(200, dtype=np.int64)
        self.repeat: list[tuple[int, int]] = []
        self.repeat_in_sentence: list[tuple[int, int]] = []
        self.same_sentence: list[tuple[int, int]] = []
        self.focal_share: list[tuple[int, int]] = []
        self.repeat_chance: list[float] = []
        self.same_sentence_chance: list[float] = []
        self.repeat_by_distance: list[float] = []
        self.same_sentence_by_distance: list[float] = []
        self.focal: list[int | None] = []
        self.diagonal: dict[str, list[float]] = defaultdict(list)
        self.to_kind = np.zeros(6)
        self.lines = np.zeros(6, dtype=np.int64)
        self.contrast: list[float] = []
        self.carried = np.zeros(6)
        self.mean_vector: list[float] = []
        self.signal: dict[str, list[float]] = {"together": [], "equal": []}
        self.noise: list[float] = []
        self.values: list[tuple[int, bool, bool]] = []
        self.spectrum = np.zeros((4, 1135), dtype=np.int64)
        self.distance_spectrum = np.zeros((length, 91), dtype=np.int32)

    def add(
        self, window: Example, attention: np.ndarray, output: np.ndarray, lengths: np.ndarray, options: dict
    ) -> None:
        size = window.size
        self.windows += 1
        lines = lines_of(attention, size, options["line_threshold"])
        for i in range(size):
            for j in range(size):
                weight = float(attention[i, j])
                self.attention_sum[i, j] += weight
                if j not in lines:
                    self.attention_sum_without_lines[i, j] += weight
                self.to_kind[window.kind[j]] += weight
                self.carried[window.kind[j]] += weight * float(lengths[j])
                if j - i in (-1, 0, 1):
                    self.diagonal[{-1: "previous", 0: "self", 1: "next"}[j - i]].append(weight)
        for j in lines:
            self.lines[window.kind[j]] += 1
        self._add_pairs(window, lines, output, options)

    def _add_pairs(self, window: Example, lines: list[int], output: np.ndarray, options: dict) -> None:
        def takes_part(i: int) -> bool:
            return i < window.size and not (options["special"] == "drop" and window.special[i])

        def equal(i: int, j: int) -> bool:
            return window.ids[i] == window.ids[j]

        def one_sentence(i: int, j: int) -> bool:
            return window.sentence[i] >= 0 and window.sentence[i] == window.sentence[j]

        part = [i for i in range(window.size) if takes_part(i)]
        pairs = [(i, j) for i in part for j in part if i < j]
        Z = output[part].astype(np.float64)
        if (Z != 0).any():
            average = Z.sum(0) / len(part)
            self.mean_vector.append(len(part) * float(average @ average) / float((Z * Z).sum()))
        C = similarity(compared(output, part, options["similarity"]))
        m = max((C[i, j] for i, j in pairs), default=-math.inf)
        high: list[tuple[int, int]] = []
        if m > 0:
            N = {(i, j): C[i, j] / m for i, j in pairs}
            block = [sum(line < i for line in lines) for i in range(window.size)]
            inside = [float(N[p]) for p in pairs if block[p[0]] == block[p[1]]]
            outside = [float(N[p]) for p in pairs if block[p[0]] != block[p[1]]]
            if inside and outside:
                self.contrast.append(mean(inside) - mean(outside))
            self._add_residuals(N, equal, one_sentence)
            for (i, j), n in N.items():
                self.values.append((fine_bin(n), equal(i, j), one_sentence(i, j)))
                self.spectrum[equal(i, j) + 2 * one_sentence(i, j), fine_bin(n)] += 1
                hundredths = math.floor((float(n) + 1) * 100) - 100
                if hundredths >= 5:
                    self.distance_spectrum[j - i, min(hundredths, 95) - 5] += 1
                self.similarity_sum[i, j] += float(n)
                self.similarity_sum[j, i] += float(n)
                self.similarity_histogram[max(0, min(199, math.floor((float(n) + 1) * 100)))] += 1
                if n > np.float32(options["threshold"]):
                    high.append((i, j))
        for i, j in high:
            self.high_count[i, j] += 1
            self.high_count[j, i] += 1
            self.distance_histogram[j - i] += 1
        if not high:
            self.focal.append(None)
            return
        repeats = [p for p in high if equal(*p)]
        together = [p for p in high if one_sentence(*p)]
        self.repeat.append((len(repeats), len(high)))
        self.same_sentence.append((len(together), len(high)))
        if together:
            self.repeat_in_sentence.append((sum(equal(*p) for p in together), len(together)))
        self.repeat_chance.append(sum(equal(*p) for p in pairs) / len(pairs))
        self.same_sentence_chance.append(sum(one_sentence(*p) for p in pairs) / len(pairs))
        self.repeat_by_distance.append(by_distance(high, pairs, equal))
        self.same_sentence_by_distance.append(by_distance(high, pairs, one_sentence))
        includes = Counter(token for i, j in high for token in {window.ids[i], window.ids[j]})
        most = max(includes.values())
        self.focal.append(min(token for token, count in includes.items() if count == most))
        self.focal_share.append((most, len(high)))

    def _add_residuals(self, N: dict[tuple[int, int], np.float32], equal, one_sentence) -> None:
        """N less its mean over the pairs of the same distance; what is but rounding counts as 0."""
        at_distance = defaultdict(list)
        for (i, j), n in N.items():
            at_distance[j - i].append(float(n))
        r = {(i, j): float(n) - mean(at_distance[j - i]) for (i, j), n in N.items()}
        if sum(x * x for x in r.values()) <= 1e-12 * sum(float(n) ** 2 for n in N.values()):
            r = dict.fromkeys(r, 0.0)
        self.noise += [x * x for x in r.values()]
        self.signal["equal"] += [x for p, x in r.items() if equal(*p)]
        self.signal["together"] += [x for p, x in r.items() if one_sentence(*p)]

    def _signal_to_noise(self, relation: str) -> float:
        if not self.signal[relation]:
            return math.nan
        noise = math.sqrt(mean(self.noise))
        return mean(self.signal[relation]) / noise if noise else 0.0

    def row(self) -> dict[str, float]:
        pairs = int(self.high_count.sum()) // 2
        distances = [d for d, count in enumerate(self.distance_histogram) for _ in range(count)]
        lines = int(self.lines.sum())
        return {
            "windows": self.windows,
            "pairs": pairs,
            "pairs_per_window": pairs / self.windows,
            "mean_distance": mean([float(d) for d in distances]),
            "repeat_probability": mean([a / b for a, b in self.repeat]),
            "repeat_probability_in_sentence": mean([a / b for a, b in self.repeat_in_sentence]),
            "repeat_chance": mean(self.repeat_chance),
            "same_sentence_probability": mean([a / b for a, b in self.same_sentence]),
            "same_sentence_chance": mean(self.same_sentence_chance),
            "focal_share": mean([a / b for a, b in self.focal_share]),
            "attention_self": mean(self.diagonal["self"]),
            "attention_previous": mean(self.diagonal["previous"]),
            "attention_next": mean(self.diagonal["next"]),
            **{f"attention_to_{kind}": self.to_kind[k] / self.to_kind.sum() for k, kind in enumerate(KINDS)},
            "lines_per_window": lines / self.windows,
            "line_separator_share": self.lines[:5].sum() / lines if lines else math.nan,
            "block_contrast": mean(self.contrast),
            "same_sentence_chance_by_distance": mean(self.same_sentence_by_distance),
            "repeat_chance_by_distance": mean(self.repeat_by_distance),
            "signal_to_noise_sentence": self._signal_to_noise("together"),
            "signal_to_noise_repeat": self._signal_to_noise("equal"),
            "same_sentence_auc": auc([v for v, _, t in self.values if t], [v for v, _, t in self.values if not t]),
            "repeat_auc": auc([v for v, e, _ in self.values if e], [v for v, e, _ in self.values if not e]),
            "mean_vector_share": mean(self.mean_vector),
            **{
                f"carried_to_{kind}": self.carried[k] / self.carried.sum() if self.carried.sum() else math.nan
                for k, kind in enumerate(KINDS)
            },
        }

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "attention_sum": self.attention_sum,
            "attention_sum_without_lines": self.attention_sum_without_lines,
            "similarity_sum": self.similarity_sum,
            "high_count": self.high_count,
            "distance_histogram": self.distance_histogram,
            "similarity_histogram": self.similarity_histogram,
            "spectrum": self.spectrum,
            "distance_spectrum": self.distance_spectrum,
            "repeat_histogram": share_histogram(self.repeat),
            "repeat_in_sentence_histogram": share_histogram(self.repeat_in_sentence),
            "same_sentence_histogram": share_histogram(self.same_sentence),
            "focal_share_histogram": share_histogram(self.focal_share),
        }


def by_distance(high: list[tuple[int, int]], pairs: list[tuple[int, int]], relation) -> float:
    """The share of a relation among pairs that lie as far apart as the high pairs do, drawn at random."""
    at_distance = defaultdict(list)
    for i, j in pairs:
        at_distance[j - i].append(relation(i, j))
    share = {distance: sum(found) / len(found) for distance, found in at_distance.items()}
    return sum(share[j - i] for i, j in high) / len(high)


def measure(windows: list[Example], options: dict) -> tuple[dict[str, np.ndarray], list[dict], list[float]]:
    """Arrays by name, the rows of the heads table, and the mean number of unique focal tokens a layer."""
    layers, heads, length = windows[0].attention.shape[:3]
    measured = [[Head(length) for _ in range(heads)] for _ in range(layers)]
    for window in windows:
        for layer in range(layers):
            for head in range(heads):
                of_head = (array[layer, head] for array in (window.attention, window.output, window.lengths))
                measured[layer][head].add(window, *of_head, options)
    arrays = {
        name: np.array([[head.arrays()[name] for head in row] for row in measured]) for name in measured[0][0].arrays()
    }
    unique = np.zeros((layers, heads + 1), dtype=np.int64)
    for layer, row in enumerate(measured):
        for window in range(len(windows)):
            unique[layer, len({head.focal[window] for head in row} - {None})] += 1
    arrays["unique_focal_histogram"] = unique
    rows = [
        {"layer": layer, "head": h, **head.row()} for layer, row in enumerate(measured) for h, head in enumerate(row)
    ]
    return arrays, rows, [float(np.dot(counts, range(heads + 1)) / counts.sum()) for counts in unique]


def at_threshold(windows: list[Example], options: dict, threshold: float) -> tuple[list[dict], list[dict]]:
    """What a study says at another threshold of each head, and of each layer: all pairs of all windows together."""
    layers, heads = windows[0].attention.shape[:2]
    found = [[_pooled(windows, options, threshold, layer, head) for head in range(heads)] for layer in range(layers)]
    rows = [_pooled_row([found[layer][head]], windows, options) for layer in range(layers) for head in range(heads)]
    return rows, [_pooled_row(found[layer], windows, options) for layer in range(layers)]


def _taking_part(window: Example, options: dict) -> list[tuple[int, int]]:
    part = [i for i in range(window.size) if not (options["special"] == "drop" and window.special[i])]
    return [(i, j) for i in part for j in part if i < j]


def _relation(window: Example, i: int, j: int) -> tuple[bool, bool]:
    return window.ids[i] == window.ids[j], window.sentence[i] >= 0 and window.sentence[i] == window.sentence[j]


def _similarities(window: Example, options: dict, layer: int, head: int) -> dict[tuple[int, int], float]:
    """C of every pair."""
    pairs = _taking_part(window, options)
    part = sorted({i for pair in pairs for i in pair})
    C = similarity(compared(window.output[layer, head], part, options["similarity"]))
    return {(i, j): C[i, j] for i, j in pairs}


def _normalised(window: Example, options: dict, layer: int, head: int) -> dict[tuple[int, int], float]:
    """N of every pair; none where m <= 0."""
    found = _similarities(window, options, layer, head)
    m = max(found.values(), default=-math.inf)
    return {pair: float(value / m) for pair, value in found.items()} if m > 0 else {}


def is_near(windows: list[Example], options: dict, threshold: float, rounding: float) -> bool:
    """Whether rounding may decide: m is next to 0 in some window and head, or an N next to the threshold."""
    for window in windows:
        for layer, head in np.ndindex(window.attention.shape[:2]):
            m = max(_similarities(window, options, layer, head).values(), default=-math.inf)
            values = _normalised(window, options, layer, head).values()
            if abs(m) <= rounding or any(abs(value - threshold) <= rounding for value in values):
                return True
    return False


def _pooled(windows: list[Example], options: dict, threshold: float, layer: int, head: int) -> dict[str, list]:
    """(distance, equal, in one sentence) of the high pairs, and of all pairs of windows that have a similarity."""
    high, every = [], []
    for window in windows:
        for (i, j), value in _normalised(window, options, layer, head).items():
            told = (j - i, *_relation(window, i, j))
            every.append(told)
            if math.floor((value + 1) * 100) >= 100 + round(threshold * 100):
                high.append(told)
    return {"high": high, "every": every}


def _pooled_row(found: list[dict[str, list]], windows: list[Example], options: dict) -> dict[str, float]:
    """Of one head, or of all heads of a layer."""
    high = [pair for head in found for pair in head["high"]]
    every = [pair for head in found for pair in head["every"]]
    at_distance = defaultdict(list)
    for window in windows:
        for i, j in _taking_part(window, options):
            at_distance[j - i].append(_relation(window, i, j))
    equal, together = (
        {distance: mean([float(pair[which]) for pair in pairs]) for distance, pairs in at_distance.items()}
        for which in (0, 1)
    )
    return {
        "pairs": len(high),
        "pairs_per_window": len(high) / len(windows) / len(found),
        "mean_distance": mean([float(d) for d, _, _ in high]),
        "repeat_probability": mean([float(e) for _, e, _ in high]),
        "repeat_probability_in_sentence": mean([float(e) for _, e, t in high if t]),
        "repeat_chance": mean([float(e) for _, e, _ in every]),
        "same_sentence_probability": mean([float(t) for _, _, t in high]),
        "same_sentence_chance": mean([float(t) for _, _, t in every]),
        "same_sentence_chance_by_distance": mean([together[d] for d, _, _ in high]),
        "repeat_chance_by_distance": mean([equal[d] for d, _, _ in high]),
    }
