"""`observe` for the CPU: two passes over each A and two over the upper triangle of each C, in one thread.

The matrices of one window and head fit in the cache, those of a batch do not; so a window is finished before the next
is touched. Loops run over whole rows from 0, and sums are kept per column: the compiler turns such loops into vector
instructions without changing the order of any sum.
Arrays of one type and shape mean different things: they go from function to function in structures, by name, so that
no two are swapped unnoticed.
The definitions are those of `definitions`; the tests hold both to the same reference.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, NamedTuple, get_type_hints

import numba
import numpy as np
import torch
from numba import boolean, float32, float64, int8, int16, int64, types
from numba.core.caching import FunctionCache
from numpy.typing import NDArray
from torch import Tensor

from headscope.measure.declaration import VALUE_BINS
from headscope.measure.observation import EQUAL, TOGETHER, LayerSums, Seen, Tokens
from headscope.options import Options

V = VALUE_BINS
STRIDE = 32
"""Rows of the triangle begin and end at multiples of this, so that no vector loop has a remainder."""
COPIES = 4
"""Copies of the spectrum, so that counting twice into one bin need not wait for memory."""
ROWS = 128
"""Rows of C that are multiplied at once, each from the first column on that any of them needs."""

Array = NDArray[Any]
compiled = numba.njit(error_model="numpy")
inlined = numba.njit(error_model="numpy", inline="always")
"""Where a `Layer` goes in for every window: handing over that many arrays takes longer than counting a row."""


class Layer(NamedTuple):
    """Everything that the heads of one layer are observed with.

    first: the number of the first head whose attention (B, heads, S, S) is at hand. similarity: (B, S, S) of the head
    that is observed, of which the pairs are set. The rest is of `Options`, `Tokens`, `LayerSums` and `Seen`, of all
    heads.
    """

    first: Annotated[int, int64]
    similarity: Annotated[Array, float32[:, :, ::1]]
    attention: Annotated[Array, float32[:, :, :, ::1]]
    threshold: Annotated[np.float32, float32]
    line_threshold: Annotated[float, float64]
    size: Annotated[Array, int64[::1]]
    part: Annotated[Array, boolean[:, ::1]]
    kind: Annotated[Array, int64[:, ::1]]
    ids: Annotated[Array, int64[:, ::1]]
    flags: Annotated[Array, int8[:, :, ::1]]
    equal_share: Annotated[Array, float64[:, ::1]]
    together_share: Annotated[Array, float64[:, ::1]]
    attention_sum_on_lines: Annotated[Array, float64[:, :, ::1]]
    attention_sum_without_lines: Annotated[Array, float64[:, :, ::1]]
    similarity_sum: Annotated[Array, float64[:, :, ::1]]
    high_count: Annotated[Array, int16[:, :, ::1]]
    similarity_histogram: Annotated[Array, int64[:, ::1]]
    peak: Annotated[Array, float64[:, ::1]]
    pairs: Annotated[Array, int64[:, ::1]]
    repeats: Annotated[Array, int64[:, ::1]]
    together: Annotated[Array, int64[:, ::1]]
    repeats_together: Annotated[Array, int64[:, ::1]]
    repeats_expected: Annotated[Array, float64[:, ::1]]
    together_expected: Annotated[Array, float64[:, ::1]]
    focal: Annotated[Array, int64[:, ::1]]
    focal_pairs: Annotated[Array, int64[:, ::1]]
    contrast: Annotated[Array, float64[:, ::1]]
    attention_to: Annotated[Array, float64[:, :, ::1]]
    lines: Annotated[Array, int64[:, :, ::1]]


class Rows(NamedTuple):
    """What is known of one row of C, (S,): the largest above it, 1 where a token takes part, N, which N are high, and
    their bins; the spectrum of all rows, (COPIES, V)."""

    best: Array
    mask: Array
    normalised: Array
    high: Array
    value: Array
    spectrum: Array


class PerToken(NamedTuple):
    """Summed over the rows of one C, (S,): N within the block, all of N; the high pairs that a token is in, and those
    of them whose other token is equal. distance: (2 S,), the high pairs by j - i, from the middle on."""

    inside: Array
    everything: Array
    degree: Array
    equal_degree: Array
    distance: Array


class HighPairs(NamedTuple):
    """How many there are, of them of equal tokens, within one sentence, and both."""

    pairs: int
    repeats: int
    together: int
    repeats_together: int


SIGNATURE = types.void(
    int64,
    types.BaseTuple.from_types(
        [field.__metadata__[0] for field in get_type_hints(Layer, include_extras=True).values()], Layer
    ),
)
"""Of `_observe`: given it, that is compiled or loaded when this module is, and never a second time."""


def compiled_for_good(function: Callable[..., Any], signature: Any) -> Any:
    """Compiled for these types, and kept on disk for the next run. Where nothing can be kept, it is compiled for this
    run alone; where what was kept is damaged too, and the next run keeps it anew."""
    compiling = partial(numba.njit, signature, nogil=True, error_model="numpy")
    try:
        return compiling(cache=True)(function)
    except Exception:  # of whatever kind damaged bytes cause; what is wrong with the function itself is raised below
        with suppress(RuntimeError, OSError):
            FunctionCache(function).flush()
        return compiling()(function)


def observe(
    attention: Tensor, output: Tensor, heads: slice, tokens: Tokens, options: Options, sums: LayerSums, seen: Seen
) -> None:
    """Add what heads of one layer show: attention (B, H, S, S), output (B, H, S, d) of these heads; `sums` and `seen`
    of all heads of this layer."""
    output = output.float()
    windows, count, length, _ = attention.shape
    similarity = torch.empty(windows, length, length)
    layer = layer_of(attention, similarity, heads.start, tokens, options, sums, seen)
    for place in range(count):
        for i in range(0, length, ROWS):
            rows = output[:, place, i : i + ROWS]
            torch.bmm(rows, output[:, place, i:].mT, out=similarity[:, i : i + ROWS, i:])
        _observe(place, layer)


def layer_of(
    attention: Tensor, similarity: Tensor, first: int, tokens: Tokens, options: Options, sums: LayerSums, seen: Seen
) -> Layer:
    return Layer(
        first=first,
        similarity=similarity.numpy(),
        attention=attention.float().contiguous().numpy(),
        threshold=np.float32(options.threshold),
        line_threshold=options.line_threshold,
        size=tokens.size.numpy(),
        part=tokens.part.numpy(),
        kind=tokens.kind.numpy(),
        ids=tokens.ids.numpy(),
        flags=tokens.flags.numpy(),
        equal_share=tokens.equal_share.numpy(),
        together_share=tokens.together_share.numpy(),
        attention_sum_on_lines=sums.attention_sum_on_lines.numpy(),
        attention_sum_without_lines=sums.attention_sum_without_lines.numpy(),
        similarity_sum=sums.similarity_sum.numpy(),
        high_count=sums.high_count.numpy(),
        similarity_histogram=sums.similarity_histogram.numpy(),
        peak=seen.peak.numpy(),
        pairs=seen.pairs.numpy(),
        repeats=seen.repeats.numpy(),
        together=seen.together.numpy(),
        repeats_together=seen.repeats_together.numpy(),
        repeats_expected=seen.repeats_expected.numpy(),
        together_expected=seen.together_expected.numpy(),
        focal=seen.focal.numpy(),
        focal_pairs=seen.focal_pairs.numpy(),
        contrast=seen.contrast.numpy(),
        attention_to=seen.attention_to.numpy(),
        lines=seen.lines.numpy(),
    )


@compiled
def _attention(place, layer):
    """Find the lines of each window, and add A to the sums on lines and without them.

    Returns for each token where its block ends, (B, S).
    """
    h = layer.first + place
    windows, _, length, _ = layer.attention.shape
    received = np.empty(length, np.float64)
    is_line = np.empty(length, np.float32)
    off_line = np.empty(length, np.float32)
    block_ends = np.empty((windows, length), np.int64)
    for b in range(windows):
        matrix, size, kind, block_end = layer.attention[b, place], layer.size[b], layer.kind[b], block_ends[b]
        to_kind, lines = layer.attention_to[b, h], layer.lines[b, h]
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
            is_line[j] = received[j] / most > layer.line_threshold
            off_line[j] = not is_line[j]
            if is_line[j]:
                lines[kind[j]] += 1
                block_end[begin : j + 1] = j + 1
                begin = j + 1
        block_end[begin:size] = size
        _add_columns(matrix, size, is_line, layer.attention_sum_on_lines[h])
        _add_columns(matrix, size, off_line, layer.attention_sum_without_lines[h])
    return block_ends


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


@inlined
def _pairs(b, h, layer, top, block_end, rows, per_token):
    """Everything that is counted over the pairs of one window and head.

    What lies in a row but is no pair is set to 0 there: it adds nothing, is never high, and is taken out of the
    spectrum's bin of 0 at the end.
    """
    matrix, size, part, flags = layer.similarity[b], layer.size[b], layer.part[b], layer.flags[b]
    inside, everything = per_token.inside, per_token.everything
    row, mask, high, value, spectrum = rows.normalised, rows.mask, rows.high, rows.value, rows.spectrum
    degree, equal_degree, distance = per_token.degree, per_token.equal_degree, per_token.distance
    similarity_sum, high_count = layer.similarity_sum[h], layer.high_count[h]
    inside[:] = 0
    everything[:] = 0
    mask[:] = part
    end = _rounded_up(size, len(part))
    after = part[:size].sum()
    no_pairs = 0
    pairs, repeats, together, repeats_together = 0, 0, 0, 0
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
        found = _find_high(row[begin:end], layer.threshold, high[begin:end])
        if found:
            _count_high(high[begin:end], high_count[i, begin:end], degree[begin:end])
            equal, same, both = _count_flags(high[begin:end], flags[i, begin:end], equal_degree[begin:end])
            _add(high[begin:end], distance[len(part) + begin - i : len(part) + end - i])
            degree[i] += found
            equal_degree[i] += equal
            pairs += found
            repeats += equal
            together += same
            repeats_together += both
    spectrum[0, V // 2] -= no_pairs
    return HighPairs(pairs=pairs, repeats=repeats, together=together, repeats_together=repeats_together)


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
        spectrum[np.uint64(j % COPIES), np.uint64(value[j])] += 1


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
    """Of the high pairs of one row: those of equal tokens, within one sentence, and both."""
    equal = np.int32(0)
    same = np.int32(0)
    both = np.int32(0)
    for j in range(len(high)):
        is_equal = high[j] & np.int32((flags[j] & EQUAL) != 0)
        is_same = high[j] & np.int32((flags[j] & TOGETHER) != 0)
        equal_degree[j] += is_equal
        equal += is_equal
        same += is_same
        both += is_equal & is_same
    return equal, same, both


@compiled
def _expected(distance, share):
    """High pairs by their distance, and the share of some relation among all pairs of each: how many have it."""
    total = 0.0
    for d in range(len(share)):
        total += distance[d] * share[d]
    return total


@compiled
def _contrast(size, part, block_end, per_token):
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
    sum_inside = per_token.inside.sum()
    return sum_inside / pairs_inside - (per_token.everything.sum() - sum_inside) / pairs_outside


@compiled
def _focal(ids, size, per_token):
    """The token in the most high pairs and how many include it; a pair of equal tokens counts once."""
    degree, equal_degree = per_token.degree, per_token.equal_degree
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


@partial(compiled_for_good, signature=SIGNATURE)
def _observe(place, layer):
    """One head, by its place among those whose attention is at hand."""
    h = layer.first + place
    windows, _, length, _ = layer.attention.shape
    block_ends = _attention(place, layer)
    rows = Rows(
        best=np.empty(length, np.float32),
        mask=np.empty(length, np.float32),
        normalised=np.empty(length, np.float32),
        high=np.empty(length, np.int32),
        value=np.empty(length, np.int32),
        spectrum=np.zeros((COPIES, V), np.int64),
    )
    per_token = PerToken(
        inside=np.empty(length, np.float64),
        everything=np.empty(length, np.float64),
        degree=np.empty(length, np.int32),
        equal_degree=np.empty(length, np.int32),
        distance=np.empty(2 * length, np.int32),
    )
    for b in range(windows):
        top = _peak(layer.similarity[b], layer.size[b], layer.part[b], rows.best)
        high_pairs = HighPairs(pairs=0, repeats=0, together=0, repeats_together=0)
        per_token.degree[:] = 0
        per_token.equal_degree[:] = 0
        per_token.distance[:] = 0
        layer.peak[b, h] = top
        layer.contrast[b, h] = np.nan
        if top > 0:
            high_pairs = _pairs(b=b, h=h, layer=layer, top=top, block_end=block_ends[b], rows=rows, per_token=per_token)
            layer.contrast[b, h] = _contrast(layer.size[b], layer.part[b], block_ends[b], per_token)
            if not np.isfinite(per_token.everything.sum()):
                layer.peak[b, h] = np.nan
        elif _has_nan(layer.similarity[b], layer.size[b]):
            layer.peak[b, h] = np.nan
        layer.pairs[b, h] = high_pairs.pairs
        layer.repeats[b, h] = high_pairs.repeats
        layer.together[b, h] = high_pairs.together
        layer.repeats_together[b, h] = high_pairs.repeats_together
        layer.repeats_expected[b, h] = _expected(per_token.distance[length:], layer.equal_share[b])
        layer.together_expected[b, h] = _expected(per_token.distance[length:], layer.together_share[b])
        layer.focal[b, h], layer.focal_pairs[b, h] = _focal(layer.ids[b], layer.size[b], per_token)
    for copy in range(COPIES):
        for v in range(V):
            layer.similarity_histogram[h, v] += rows.spectrum[copy, v]
