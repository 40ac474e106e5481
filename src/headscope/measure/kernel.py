"""`observe` for the CPU: two passes over each A and two over the upper triangle of each C, in one thread.

The matrices of one window and head fit in the cache, those of a batch do not; so a window is finished before the next
is touched. Loops run over whole rows from 0, and sums are kept per column: the compiler turns such loops into vector
instructions without changing the order of any sum.
The definitions are those of `similarity`; the tests hold both to the same reference.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numba
import numpy as np
import torch
from numba.core.caching import FunctionCache
from torch import Tensor

from headscope.measure.declaration import VALUE_BINS
from headscope.measure.observation import Seen, Sums, Tokens
from headscope.options import Options

V = VALUE_BINS
STRIDE = 32
"""Rows of the triangle begin and end at multiples of this, so that no vector loop has a remainder."""
LANES = 4
"""Copies of the spectrum, so that counting twice into one bin need not wait for memory."""
ROWS = 128
"""Rows of C that are multiplied at once, each from the first column on that any of them needs."""

compiled = numba.njit(error_model="numpy")
TYPES = (
    "void(i8, i8, f4[:,:,::1], f4[:,:,:,::1], i8[::1], b1[:,::1], i8[:,::1], i8[:,::1], i1[:,:,::1], f4, f8, "
    "f8[:,:,::1], f8[:,:,::1], f8[:,:,::1], i2[:,:,::1], i8[:,::1], "
    "f8[:,::1], i8[:,::1], i8[:,::1], i8[:,::1], i8[:,::1], i8[:,::1], i8[:,::1], f8[:,::1], f8[:,:,::1], i8[:,:,::1])"
)
"""Of the arguments of `_observe`: given them, it is compiled or loaded when this module is, and never a second time."""


def compiled_for_good(function: Callable[..., Any], types: str) -> Any:
    """Compiled for these types, and kept on disk for the next run. Where nothing can be kept, it is compiled for this
    run alone; where what was kept is damaged too, and the next run keeps it anew."""
    compiling = partial(numba.njit, types, nogil=True, error_model="numpy")
    try:
        return compiling(cache=True)(function)
    except Exception:  # of whatever kind damaged bytes cause; what is wrong with the function itself is raised below
        with suppress(RuntimeError, OSError):
            FunctionCache(function).flush()
        return compiling()(function)


def observe(
    attention: Tensor, output: Tensor, heads: slice, tokens: Tokens, options: Options, sums: Sums, seen: Seen
) -> None:
    """Add what heads of one layer show: attention (B, H, S, S), output (B, H, S, d) of these heads; `sums` and `seen`
    of all heads of this layer."""
    output = output.float()
    windows, count, length, _ = attention.shape
    similarity = torch.empty(windows, length, length)
    arguments = (
        similarity.numpy(),
        attention.float().contiguous().numpy(),
        tokens.size.numpy(),
        tokens.part.numpy(),
        tokens.kind.numpy(),
        tokens.ids.numpy(),
        tokens.flags.numpy(),
        np.float32(options.threshold),
        options.line_threshold,
        sums.attention_sum_on_lines.numpy(),
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
    for place in range(count):
        for i in range(0, length, ROWS):
            rows = output[:, place, i : i + ROWS]
            torch.bmm(rows, output[:, place, i:].mT, out=similarity[:, i : i + ROWS, i:])
        _observe(place, heads.start + place, *arguments)


@compiled
def _attention(
    matrix, size, kind, line_threshold, received, is_line, off_line, block_end, on_lines, without_lines, to_kind, lines
):  # fmt: skip
    """Find the lines, and for each token the end of its block; add A to the sums on lines and without them."""
    received[:] = 0
    for i in range(size):
        _add(matrix[i, :size], received[:size])
    most = 0.0
    for j in range(size):
        most = max(most, received[j])
    to_kind[:] = 0
    lines[:] = 0
    begin = 0
    for j in range(size):
        to_kind[kind[j]] += received[j]
        is_line[j] = received[j] / most > line_threshold
        off_line[j] = not is_line[j]
        if is_line[j]:
            lines[kind[j]] += 1
            block_end[begin : j + 1] = j + 1
            begin = j + 1
    block_end[begin:size] = size
    _add_columns(matrix, size, is_line, on_lines)
    _add_columns(matrix, size, off_line, without_lines)


@compiled
def _add_columns(matrix, size, chosen, total):
    """Add the columns that are chosen, 1 of 0 and 1. Where they are few the others are not touched."""
    columns = np.flatnonzero(chosen[:size])
    if len(columns) < size // 4:
        for i in range(size):
            for column in columns:
                total[i, column] += matrix[i, column]
    else:
        for i in range(size):
            for j in range(size):
                total[i, j] += matrix[i, j] * chosen[j]


@compiled
def _rounded_up(size, length):
    return min(length, (size + STRIDE - 1) // STRIDE * STRIDE)


@compiled
def _peak(matrix, size, part, best):
    """m: the largest element of C over the pairs that take part; -inf where there is none.

    Column i is complete when row i is reached; what later rows write into it is not looked at.
    """
    best[:] = -np.inf
    top = np.float32(-np.inf)
    end = _rounded_up(size, len(part))
    for i in range(size):
        if part[i]:
            if best[i] > top:
                top = best[i]
            begin = (i + 1) // STRIDE * STRIDE
            _larger(matrix[i, begin:end], best[begin:end])
    return top


@compiled
def _has_nan(matrix, size):
    """Whether a pair is NaN."""
    end = _rounded_up(size, len(matrix))
    for i in range(size):
        begin = (i + 1) // STRIDE * STRIDE
        if np.isnan(matrix[i, begin:end].sum()):
            return True
    return False


@compiled
def _pairs(
    matrix, top, size, part, mask, flags, threshold, block_end, row, high, value,
    inside, everything, degree, equal_degree, counts, similarity_sum, high_count, spectrum,
):  # fmt: skip
    """Everything that is counted over the pairs of one window and head.

    What lies in a row but is no pair is set to 0 there: it adds nothing, is never high, and is taken out of the
    spectrum's bin of 0 at the end.
    """
    inside[:] = 0
    everything[:] = 0
    end = _rounded_up(size, len(part))
    after = part[:size].sum()
    no_pairs = 0
    for i in range(size):
        if not part[i]:
            continue
        after -= 1
        begin = (i + 1) // STRIDE * STRIDE
        no_pairs += end - begin - after
        _normalise(matrix[i, begin:end], mask[begin:end], top, row[begin:end])
        row[begin : i + 1] = 0
        _add_twice(row[begin:end], similarity_sum[i, begin:end], everything[begin:end])
        _add(row[i + 1 : block_end[i]], inside[i + 1 : block_end[i]])
        _count_values(row[begin:end], value[begin:end], spectrum)
        found = _find_high(row[begin:end], threshold, high[begin:end])
        if found:
            _count_high(high[begin:end], high_count[i, begin:end], degree[begin:end])
            equal, same, both = _count_flags(high[begin:end], flags[i, begin:end], equal_degree[begin:end])
            degree[i] += found
            equal_degree[i] += equal
            counts[0] += found
            counts[1] += equal
            counts[2] += same
            counts[3] += both
    spectrum[0, V // 2] -= no_pairs


@compiled
def _larger(row, best):
    for j in range(len(row)):
        best[j] = np.fmax(best[j], row[j])


@compiled
def _normalise(similarity, mask, top, row):
    for j in range(len(row)):
        row[j] = similarity[j] * mask[j] / top


@compiled
def _add(row, total):
    for j in range(len(row)):
        total[j] += row[j]


@compiled
def _add_twice(row, one, other):
    for j in range(len(row)):
        one[j] += row[j]
        other[j] += row[j]


@compiled
def _count_values(row, value, spectrum):
    for j in range(len(row)):
        value[j] = np.int32((np.float64(row[j]) + 1.0) * (V / 2))
    for j in range(len(row)):
        value[j] = min(max(value[j], np.int32(0)), np.int32(V - 1))
    for j in range(len(row)):
        spectrum[np.uint64(j % LANES), np.uint64(value[j])] += 1


@compiled
def _find_high(row, threshold, high):
    found = np.int32(0)
    for j in range(len(row)):
        high[j] = np.int32(row[j] > threshold)
        found += high[j]
    return found


@compiled
def _count_high(high, high_count, degree):
    for j in range(len(high)):
        high_count[j] += high[j]
        degree[j] += high[j]


@compiled
def _count_flags(high, flags, equal_degree):
    """flags: 1 equal tokens, 2 one sentence."""
    equal = np.int32(0)
    same = np.int32(0)
    both = np.int32(0)
    for j in range(len(high)):
        is_equal = high[j] & flags[j]
        is_same = high[j] & (flags[j] >> 1)
        equal_degree[j] += is_equal
        equal += is_equal
        same += is_same
        both += is_equal & is_same
    return equal, same, both


@compiled
def _contrast(inside, everything, size, part, block_end):
    """Mean of N over the pairs of one block, less its mean over the others; NaN where either has none."""
    taking_part = 0
    pairs_inside = 0
    begin = 0
    while begin < size:
        members = part[begin : block_end[begin]].sum()
        pairs_inside += members * (members - 1) // 2
        taking_part += members
        begin = block_end[begin]
    pairs_outside = taking_part * (taking_part - 1) // 2 - pairs_inside
    if pairs_inside == 0 or pairs_outside == 0:
        return np.nan
    sum_inside = inside.sum()
    return sum_inside / pairs_inside - (everything.sum() - sum_inside) / pairs_outside


@compiled
def _focal(ids, size, degree, equal_degree):
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


@partial(compiled_for_good, types=TYPES)
def _observe(
    place, h, similarity, attention, size, part, kind, ids, flags, threshold, line_threshold,
    attention_sum_on_lines, attention_sum_without_lines, similarity_sum, high_count, similarity_histogram,
    peak, pairs, repeats, together, repeats_together, focal, focal_pairs, contrast, attention_to, lines,
):  # fmt: skip
    """One head, h: similarity (B, S, S), of which the pairs are set; its attention is at `place` of (B, H, S, S).
    Everything else is of all heads."""
    windows, _, length, _ = attention.shape
    received = np.empty(length, np.float64)
    is_line = np.empty(length, np.float32)
    off_line = np.empty(length, np.float32)
    block_end = np.empty((windows, length), np.int64)
    for b in range(windows):
        _attention(
            attention[b, place], size[b], kind[b], line_threshold, received, is_line, off_line, block_end[b],
            attention_sum_on_lines[h], attention_sum_without_lines[h], attention_to[b, h], lines[b, h],
        )  # fmt: skip
    row = np.empty(length, np.float32)
    best = np.empty(length, np.float32)
    mask = np.empty(length, np.float32)
    high = np.empty(length, np.int32)
    value = np.empty(length, np.int32)
    inside = np.empty(length, np.float64)
    everything = np.empty(length, np.float64)
    degree = np.empty(length, np.int32)
    equal_degree = np.empty(length, np.int32)
    counts = np.empty(4, np.int64)
    spectrum = np.zeros((LANES, V), np.int64)
    for b in range(windows):
        matrix = similarity[b]
        top = _peak(matrix, size[b], part[b], best)
        peak[b, h] = top
        counts[:] = 0
        degree[:] = 0
        equal_degree[:] = 0
        contrast[b, h] = np.nan
        if top > 0:
            mask[:] = part[b]
            _pairs(
                matrix, top, size[b], part[b], mask, flags[b], threshold, block_end[b], row, high, value,
                inside, everything, degree, equal_degree, counts, similarity_sum[h], high_count[h], spectrum,
            )  # fmt: skip
            contrast[b, h] = _contrast(inside, everything, size[b], part[b], block_end[b])
            if not np.isfinite(everything.sum()):
                peak[b, h] = np.nan
        elif _has_nan(matrix, size[b]):
            peak[b, h] = np.nan
        pairs[b, h] = counts[0]
        repeats[b, h] = counts[1]
        together[b, h] = counts[2]
        repeats_together[b, h] = counts[3]
        focal[b, h], focal_pairs[b, h] = _focal(ids[b], size[b], degree, equal_degree)
    for lane in range(LANES):
        for v in range(V):
            similarity_histogram[h, v] += spectrum[lane, v]
