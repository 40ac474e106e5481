"""`observe` for the CPU: one pass over each A and two over the upper triangle of each C, parallel over heads.

The matrices of one window and head fit in the cache, those of a batch do not; so every window is finished before the
next is touched, and sums are kept in rows that the compiler turns into vector instructions.
The definitions are those of `similarity`; the tests hold both to the same reference.
"""

from __future__ import annotations

import numba
import numpy as np
from torch import Tensor

from headscope.observation import Seen, Sums, Tokens, equal_tokens, same_sentence
from headscope.options import Options
from headscope.similarity import VALUE_BINS
from headscope.windows import KINDS

K = len(KINDS)
V = VALUE_BINS


def observe(
    attention: Tensor, output: Tensor, tokens: Tokens, options: Options, sums: Sums, seen: Seen
) -> None:
    """Add what one layer shows: attention (B, H, S, S), output (B, H, S, d); `seen` of this layer, (B, H)."""
    output = output.float()
    similarity = output @ output.mT
    flags = tokens.flags.numpy()
    _observe(
        attention.float().contiguous().numpy(),
        similarity.numpy(),
        tokens.size.numpy(),
        tokens.part.numpy(),
        tokens.kind.numpy(),
        tokens.ids.numpy(),
        flags,
        np.float32(options.threshold),
        options.line_threshold,
        sums.attention_sum.numpy(),
        sums.attention_sum_without_lines.numpy(),
        sums.similarity_sum.numpy(),
        sums.high_count.numpy(),
        sums.similarity_histogram.numpy(),
        seen.peak.numpy(),
        seen.pairs.numpy(),
        seen.repeats.numpy(),
        seen.together.numpy(),
        seen.repeats_together.numpy(),
        seen.focal.numpy(),
        seen.focal_pairs.numpy(),
        seen.contrast.numpy(),
        seen.attention_to.numpy(),
        seen.lines.numpy(),
    )


@numba.njit(parallel=True, cache=True, nogil=True, error_model="numpy")
def _observe(
    attention, similarity, size, part, kind, ids, flags, threshold, line_threshold,
    attention_sum, attention_sum_without_lines, similarity_sum, high_count, similarity_histogram,
    peak, pairs, repeats, together, repeats_together, focal, focal_pairs, contrast, attention_to, lines,
):  # fmt: skip
    windows, heads, length, _ = attention.shape
    for h in numba.prange(heads):
        received = np.empty(length, np.float64)
        keep = np.empty(length, np.float32)
        block_end = np.empty((windows, length), np.int64)
        for b in range(windows):
            _attention(
                attention[b, h], size[b], kind[b], line_threshold, received, keep, block_end[b],
                attention_sum[h], attention_sum_without_lines[h], attention_to[b, h], lines[b, h],
            )  # fmt: skip
        row = np.empty(length, np.float32)
        best = np.empty(length, np.float32)
        high = np.empty(length, np.int32)
        value = np.empty(length, np.int32)
        inside = np.empty(length, np.float64)
        everything = np.empty(length, np.float64)
        degree = np.empty(length, np.int32)
        equal_degree = np.empty(length, np.int32)
        counts = np.empty(4, np.int64)
        spectrum = np.zeros((4, V + 1), np.int64)
        for b in range(windows):
            matrix = similarity[b, h]
            top = _peak(matrix, size[b], part[b], best)
            peak[b, h] = top
            counts[:] = 0
            contrast[b, h] = np.nan
            degree[:] = 0
            equal_degree[:] = 0
            if top > 0:
                _pairs(
                    matrix, top, size[b], part[b], flags[b], threshold, block_end[b], row, high, value,
                    inside, everything, degree, equal_degree, counts, similarity_sum[h], high_count[h], spectrum,
                )  # fmt: skip
                contrast[b, h] = _contrast(inside, everything, size[b], part[b], block_end[b])
                if not np.isfinite(everything[: size[b]].sum()):
                    peak[b, h] = np.nan
            pairs[b, h] = counts[0]
            repeats[b, h] = counts[1]
            together[b, h] = counts[2]
            repeats_together[b, h] = counts[3]
            focal[b, h], focal_pairs[b, h] = _focal(ids[b], size[b], degree, equal_degree)
        for lane in range(4):
            for v in range(V):
                similarity_histogram[h, v] += spectrum[lane, v]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _attention(
    matrix, size, kind, line_threshold, received, keep, block_end, total, without, to_kind, lines
):  # fmt: skip
    """Add A to its sums; find the lines, and for each token the end of its block."""
    received[:] = 0
    for i in range(size):
        for j in range(size):
            total[i, j] += matrix[i, j]
            received[j] += matrix[i, j]
    most = 0.0
    for j in range(size):
        most = max(most, received[j])
    to_kind[:] = 0
    lines[:] = 0
    begin = 0
    for j in range(size):
        to_kind[kind[j]] += received[j]
        is_line = received[j] / most > line_threshold
        keep[j] = 0.0 if is_line else 1.0
        if is_line:
            lines[kind[j]] += 1
            block_end[begin : j + 1] = j + 1
            begin = j + 1
    block_end[begin:size] = size
    for i in range(size):
        for j in range(size):
            without[i, j] += matrix[i, j] * keep[j]


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _peak(matrix, size, part, best):  # fmt: skip
    """m: the largest element of C over the pairs that take part; -inf where there is none."""
    best[:] = -np.inf
    for i in range(size):
        if part[i]:
            for j in range(i + 1, size):
                best[j] = matrix[i, j] if matrix[i, j] > best[j] else best[j]
    top = np.float32(-np.inf)
    for j in range(size):
        if part[j] and best[j] > top:
            top = best[j]
    return top


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pairs(
    matrix, top, size, part, flags, threshold, block_end, row, high, value,
    inside, everything, degree, equal_degree, counts, similarity_sum, high_count, spectrum,
):  # fmt: skip
    """Everything that is counted over the pairs of one window and head. flags: 1 equal tokens, 2 one sentence."""
    inside[:] = 0
    everything[:] = 0
    for i in range(size):
        if not part[i]:
            continue
        for j in range(i + 1, size):
            row[j] = matrix[i, j] / top if part[j] else np.float32(0)
        for j in range(i + 1, size):
            similarity_sum[i, j] += row[j]
            everything[j] += row[j]
        for j in range(i + 1, block_end[i]):
            inside[j] += row[j]
        for j in range(i + 1, size):
            v = np.int32(np.floor((np.float64(row[j]) + 1.0) * (V / 2)))
            value[j] = min(max(v, 0), V - 1) if part[j] else V
        for j in range(i + 1, size):
            spectrum[j & 3, value[j]] += 1
        found = np.int32(0)
        for j in range(i + 1, size):
            high[j] = np.int32(row[j] > threshold)
            found += high[j]
        if found:
            equal = np.int32(0)
            same = np.int32(0)
            both = np.int32(0)
            for j in range(i + 1, size):
                high_count[i, j] += high[j]
                is_equal = high[j] & flags[i, j]
                is_same = high[j] & (flags[i, j] >> 1)
                degree[j] += high[j]
                equal_degree[j] += is_equal
                equal += is_equal
                same += is_same
                both += is_equal & is_same
            degree[i] += found
            equal_degree[i] += equal
            counts[0] += found
            counts[1] += equal
            counts[2] += same
            counts[3] += both


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _contrast(inside, everything, size, part, block_end):  # fmt: skip
    """Mean of N over the pairs of one block, less its mean over the others; NaN where either has none."""
    taking_part = 0
    pairs_inside = 0
    begin = 0
    while begin < size:
        members = 0
        for j in range(begin, block_end[begin]):
            members += part[j]
        pairs_inside += members * (members - 1) // 2
        taking_part += members
        begin = block_end[begin]
    pairs_outside = taking_part * (taking_part - 1) // 2 - pairs_inside
    if pairs_inside == 0 or pairs_outside == 0:
        return np.nan
    sum_inside = inside[:size].sum()
    sum_outside = everything[:size].sum() - sum_inside
    return sum_inside / pairs_inside - sum_outside / pairs_outside


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _focal(ids, size, degree, equal_degree):  # fmt: skip
    """The token in the most high pairs and how many include it; a pair of equal tokens counts once."""
    focal = np.int64(-1)
    most = np.int64(0)
    counted = np.zeros(size, np.bool_)
    for i in range(size):
        if counted[i] or degree[i] == 0:
            continue
        twice = np.int64(0)
        for j in range(i, size):
            if ids[j] == ids[i]:
                counted[j] = True
                twice += 2 * degree[j] - equal_degree[j]
        if twice > most or (twice == most and ids[i] < focal):
            most = twice
            focal = ids[i]
    return focal, most // 2
