"""`observe` for the CPU: two passes over each A and two over the upper triangle of each C, in one thread.

The matrices of one window and head fit in the cache, those of a batch do not; so a window is finished before the next
is touched. Loops run over whole rows from 0, and sums are kept per column: the compiler turns such loops into vector
instructions without changing the order of any sum. A row is short, and every loop over it costs some time to begin: so
a few loops do much each, where the arrays that they fill are known to lie apart.
Arrays of one type and shape mean different things: they go from function to function in structures, by name, so that
no two are swapped unnoticed.
The definitions are those of `definitions`; the tests hold both to the same reference.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
import torch
from numba import boolean, float32, float64, int8, int16, int32, int64, types
from numpy.typing import NDArray
from torch import Tensor

from headscope.measure.bins import COARSE_EDGES, CUT, EQUAL_BINS, FINE_BINS, NEAR_ONE, SHIFT, THRESHOLDS, VALUE_BINS
from headscope.measure.compiling import compiled, compiled_apart, compiled_for_good
from headscope.measure.declaration import DIAGONALS, RELATIONS
from headscope.measure.definitions_torch import compared
from headscope.measure.observation import EQUAL, NO_PAIR, ROUNDING, TOGETHER, LayerSums, Tokens
from headscope.measure.seen import COUNTS, NUMBERS, Seen, places
from headscope.options import Options

STRIDE = 32
"""Rows of the triangle begin and end at multiples of this, so that no vector loop has a remainder."""
COPIES = 2
"""Copies of the spectrum, so that counting twice into one bin need not wait for memory."""
ROWS = 128
"""Rows of C that are multiplied at once, each from the first column on that any of them needs."""
BELOW_ALL = (VALUE_BINS + round(THRESHOLDS[0] * VALUE_BINS)) // 2 - 1
"""The last bin of the value spectrum that lies below all thresholds."""
LAST_THRESHOLD = len(THRESHOLDS)
NEAR_ONE_BINS = FINE_BINS - EQUAL_BINS

_COUNT, _NUMBER = places(COUNTS), places(NUMBERS)
PAIRS, REPEATS, IN_SENTENCE = _COUNT["pairs"], _COUNT["repeats"], _COUNT["together"]
BOTH, DISTANCE, LINES = _COUNT["repeats_together"], _COUNT["distance"], _COUNT["lines"]
FOCAL, FOCAL_PAIRS = _COUNT["focal"], _COUNT["focal_pairs"]
PEAK, CONTRAST, NOISE_SQUARE = _NUMBER["peak"], _NUMBER["contrast"], _NUMBER["noise_square"]
MEAN_VECTOR_SHARE = _NUMBER["mean_vector_share"]
REPEATS_EXPECTED, TOGETHER_EXPECTED = _NUMBER["repeats_expected"], _NUMBER["together_expected"]
SIGNAL_EQUAL, SIGNAL_TOGETHER = _NUMBER["signal_equal"], _NUMBER["signal_together"]
ATTENTION_TO, CARRIED_TO = _NUMBER["attention_to"], _NUMBER["carried_to"]
ON_SELF, ON_PREVIOUS, ON_NEXT = (_NUMBER["diagonals"] + DIAGONALS.index(name) for name in ("self", "previous", "next"))
KINDS_SEEN = COUNTS["lines"]

Array = NDArray[Any]


class Layer(NamedTuple):
    """Everything that the heads of one layer are observed with.

    first: the number of the first head whose attention (B, heads, S, S), lengths (B, heads, S) and output
    (B, S, heads, d) are at hand. similarity: (B, S, S) of the head that is observed, of which the pairs are set. The
    rest is of `Options`, `Tokens`, `LayerSums` and `Seen`, of all heads.
    """

    first: Annotated[int, int64]
    similarity: Annotated[Array, float32[:, :, ::1]]
    attention: Annotated[Array, float32[:, :, :, ::1]]
    lengths: Annotated[Array, float32[:, :, ::1]]
    output: Annotated[Array, float32[:, :, :, ::1]]
    threshold: Annotated[np.float32, float32]
    line_threshold: Annotated[float, float64]
    size: Annotated[Array, int64[::1]]
    part: Annotated[Array, boolean[:, ::1]]
    kind: Annotated[Array, int64[:, ::1]]
    ids: Annotated[Array, int64[:, ::1]]
    same_id: Annotated[Array, int64[:, ::1]]
    group: Annotated[Array, int64[::1]]
    flags: Annotated[Array, int8[:, :, ::1]]
    by_distance: Annotated[Array, float64[:, :, ::1]]
    coarse_edges: Annotated[Array, int64[::1]]
    attention_sum_on_lines: Annotated[Array, float64[:, :, ::1]]
    attention_sum_without_lines: Annotated[Array, float64[:, :, ::1]]
    similarity_sum: Annotated[Array, float64[:, :, ::1]]
    high_count: Annotated[Array, int16[:, :, ::1]]
    distance_histogram: Annotated[Array, int64[:, ::1]]
    spectrum: Annotated[Array, int64[:, :, ::1]]
    spectrum_of_groups: Annotated[Array, int32[:, :, :, ::1]]
    distance_spectrum: Annotated[Array, int32[:, :, ::1]]
    counts: Annotated[Array, int64[:, :, ::1]]
    numbers: Annotated[Array, float64[:, :, ::1]]


class Columns(NamedTuple):
    """What is known of the columns of one A, (S,): their sums, 1 where one is a line and where it is none, and the
    numbers of some of them."""

    received: Array
    is_line: Array
    off_line: Array
    chosen: Array


class Rows(NamedTuple):
    """What is known of one row of C, (S,): the largest above it, 1 where a token takes part, N, which N are high, and
    the cells that they are counted into: `fine`, by relation and fine bin, and `threshold`, 0 below all of them."""

    best: Array
    mask: Array
    normalised: Array
    high: Array
    fine: Array
    threshold: Array


class Spectra(NamedTuple):
    """Counts since they were last handed on. relations: (COPIES, RELATIONS + 1, FINE_BINS), the last for what is no
    pair; distances: (S, THRESHOLDS + 1), the first for what is below them."""

    relations: Array
    distances: Array


class PerToken(NamedTuple):
    """Summed over the rows of one C, (S,): N within the block, the square of N, N of equal tokens and of tokens in one
    sentence; the high pairs that a token is in, and those of them whose other token is equal. twice: at `same_id`,
    twice the high pairs that include such a token. distance, by_distance: (2 S,), the high pairs and N by j - i, from
    the middle on."""

    inside: Array
    square: Array
    equal: Array
    together: Array
    degree: Array
    equal_degree: Array
    twice: Array
    distance: Array
    by_distance: Array


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


def observe(
    attention: Tensor,
    output: Tensor,
    lengths: Tensor,
    heads: slice,
    tokens: Tokens,
    options: Options,
    sums: LayerSums,
    seen: Seen,
) -> None:
    """Add what heads of one layer show: attention (B, H, S, S), output (B, H, S, d), and the lengths of their values
    (B, H, S), of these heads; `sums` and `seen` of all heads of this layer."""
    windows, count, length, _ = attention.shape
    similarity = torch.empty(windows, length, length)
    layer = layer_of(attention, similarity, lengths, output, heads.start, tokens, options, sums, seen)
    vectors = compared(output.float(), tokens.part, options.similarity)
    for place in range(count):
        for i in range(0, length, ROWS):
            rows = vectors[:, place, i : i + ROWS]
            torch.bmm(rows, vectors[:, place, i:].mT, out=similarity[:, i : i + ROWS, i:])
        _observe(place, layer)


def layer_of(
    attention: Tensor,
    similarity: Tensor,
    lengths: Tensor,
    output: Tensor,
    first: int,
    tokens: Tokens,
    options: Options,
    sums: LayerSums,
    seen: Seen,
) -> Layer:
    return Layer(
        first=first,
        similarity=similarity.numpy(),
        attention=attention.float().contiguous().numpy(),
        lengths=lengths.float().contiguous().numpy(),
        output=output.float().transpose(1, 2).contiguous().numpy(),
        threshold=np.float32(options.threshold),
        line_threshold=options.line_threshold,
        size=tokens.size.numpy(),
        part=tokens.part.numpy(),
        kind=tokens.kind.numpy(),
        ids=tokens.ids.numpy(),
        same_id=tokens.same_id.numpy(),
        group=tokens.group.numpy(),
        flags=tokens.flags.numpy(),
        by_distance=tokens.by_distance.numpy(),
        coarse_edges=COARSE_EDGES,
        attention_sum_on_lines=sums.attention_sum_on_lines.numpy(),
        attention_sum_without_lines=sums.attention_sum_without_lines.numpy(),
        similarity_sum=sums.similarity_sum.numpy(),
        high_count=sums.high_count.numpy(),
        distance_histogram=sums.distance_histogram.numpy(),
        spectrum=sums.spectrum.numpy(),
        spectrum_of_groups=sums.spectrum_of_groups.numpy(),
        distance_spectrum=sums.distance_spectrum.numpy(),
        counts=seen.counts.numpy(),
        numbers=seen.numbers.numpy(),
    )


@compiled
def _attention(place, layer, columns, block_ends):
    """Find the lines of each window, and for each token where its block ends, (B, S); add A to the sums on lines and
    without them."""
    h = layer.first + place
    received, is_line, off_line = columns.received, columns.is_line, columns.off_line
    for b in range(len(block_ends)):
        matrix, size, kind, block_end = layer.attention[b, place], layer.size[b], layer.kind[b], block_ends[b]
        lengths = layer.lengths[b, place]
        numbers, counts = layer.numbers[b, h], layer.counts[b, h]
        received[:] = 0
        for i in range(size):
            _add(matrix[i, :size], received[:size])
        most = 0.0
        for j in range(size):
            most = max(most, received[j])
        numbers[ATTENTION_TO : ATTENTION_TO + KINDS_SEEN] = 0
        numbers[CARRIED_TO : CARRIED_TO + KINDS_SEEN] = 0
        counts[LINES : LINES + KINDS_SEEN] = 0
        begin = 0
        for j in range(size):
            numbers[ATTENTION_TO + kind[j]] += received[j]
            numbers[CARRIED_TO + kind[j]] += received[j] * lengths[j]
            is_line[j] = received[j] / most > layer.line_threshold
            off_line[j] = not is_line[j]
            if is_line[j]:
                counts[LINES + kind[j]] += 1
                block_end[begin : j + 1] = j + 1
                begin = j + 1
        block_end[begin:size] = size
        _diagonals(matrix, size, numbers)
        _add_columns(matrix, size, is_line, columns.chosen, layer.attention_sum_on_lines[h])
        _add_columns(matrix, size, off_line, columns.chosen, layer.attention_sum_without_lines[h])


@compiled
def _diagonals(matrix, size, numbers):
    own, before, after = 0.0, 0.0, 0.0
    for i in range(size):
        own += matrix[i, i]
    for i in range(1, size):
        before += matrix[i, i - 1]
        after += matrix[i - 1, i]
    numbers[ON_SELF] = own
    numbers[ON_PREVIOUS] = before
    numbers[ON_NEXT] = after


@compiled
def _add_columns(matrix, size, wanted, chosen, total):
    """Add the columns that are wanted, 1 of 0 and 1. Where they are few the others are not touched."""
    count = 0
    for j in range(size):
        if wanted[j]:
            chosen[count] = j
            count += 1
    if count < size // 4:
        for i in range(size):
            for column in chosen[:count]:
                total[i, column] += matrix[i, column]
    else:
        for i in range(size):
            for j in range(size):
                total[i, j] += matrix[i, j] * wanted[j]


@compiled
def _output(place, layer, summed, square):
    """Of the squared length of each window's Z, the share in the mean vector of the tokens that take part; NaN where Z
    is 0. summed, square: (d,), room for sums over the tokens."""
    for b in range(len(layer.output)):
        part, output = layer.part[b], layer.output[b]
        summed[:] = 0
        square[:] = 0
        for i in range(layer.size[b]):
            if part[i]:
                _add_vector(output[i, place], summed, square)
        of_sum, of_all = 0.0, 0.0
        for k in range(len(summed)):
            of_sum += summed[k] * summed[k]
            of_all += square[k]
        layer.numbers[b, layer.first + place, MEAN_VECTOR_SHARE] = of_sum / part.sum() / of_all


@compiled
def _add_vector(vector, summed, square):
    for k in range(len(vector)):
        value = np.float64(vector[k])
        summed[k] += value
        square[k] += value * value


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
def _pairs(b, h, layer, top, block_end, rows, spectra, per_token):
    """Everything that is counted over the pairs of one window and head.

    What lies in a row but is no pair, tokens already passed too, is multiplied by 0: it adds nothing and is never
    high; the spectra count it apart.
    """
    matrix, size, part, flags = layer.similarity[b], layer.size[b], layer.part[b], layer.flags[b]
    inside, square = per_token.inside, per_token.square
    of_equal, of_together, by_distance = per_token.equal, per_token.together, per_token.by_distance
    row, mask, high = rows.normalised, rows.mask, rows.high
    degree, equal_degree, distance = per_token.degree, per_token.equal_degree, per_token.distance
    similarity_sum, high_count = layer.similarity_sum[h], layer.high_count[h]
    inside[:] = 0
    square[:] = 0
    of_equal[:] = 0
    of_together[:] = 0
    by_distance[:] = 0
    for j in range(len(part)):
        mask[j] = part[j]
    length = len(part)
    end = _rounded_up(size, length)
    pairs, repeats, together, repeats_together = 0, 0, 0, 0
    for i in range(size):
        if not part[i]:
            continue
        mask[i] = 0
        begin = (i + 1) // STRIDE * STRIDE
        found = _normalise(matrix[i, begin:end], mask[begin:end], top, layer.threshold, row[begin:end], high[begin:end])
        _add_row(
            row[begin:end],
            flags[i, begin:end],
            similarity_sum[i, begin:end],
            square[begin:end],
            of_equal[begin:end],
            of_together[begin:end],
            by_distance[length + begin - i : length + end - i],
        )
        _add(row[i + 1 : block_end[i]], inside[i + 1 : block_end[i]])
        _cells(row[begin:end], flags[i, begin:end], rows.fine[begin:end], rows.threshold[begin:end])
        _count_cells(rows.fine[i + 1 : size], rows.threshold[i + 1 : size], spectra.relations, spectra.distances)
        if found:
            equal, same, both = _count_high(
                high[begin:end],
                flags[i, begin:end],
                high_count[i, begin:end],
                degree[begin:end],
                equal_degree[begin:end],
                distance[length + begin - i : length + end - i],
            )
            degree[i] += found
            equal_degree[i] += equal
            pairs += found
            repeats += equal
            together += same
            repeats_together += both
    return HighPairs(pairs=pairs, repeats=repeats, together=together, repeats_together=repeats_together)


@compiled
def _larger(row, best):
    for j in range(len(row)):
        best[j] = np.fmax(best[j], row[j])


@compiled_apart
def _normalise(similarity, mask, top, threshold, row, high):
    """N of a row and which of it are high; how many are."""
    found = np.int32(0)
    for j in range(len(row)):
        value = similarity[j] * mask[j] / top
        row[j] = value
        high[j] = np.int32(value > threshold)
        found += high[j]
    return found


@compiled_apart
def _add(row, total):
    for j in range(len(row)):
        total[j] += row[j]


@compiled_apart
def _add_row(row, flags, similarity_sum, square, equal, together, by_distance):
    for j in range(len(row)):
        value = np.float64(row[j])
        similarity_sum[j] += value
        by_distance[j] += value
        square[j] += value * value
        equal[j] += value * np.float64((flags[j] & EQUAL) != 0)
        together[j] += value * np.float64((flags[j] & TOGETHER) != 0)


@compiled_apart
def _cells(row, flags, fine, threshold):
    """The cells of a row of N: by relation and fine bin, and by threshold; see `bins`."""
    for j in range(len(row)):
        fine[j] = np.int32((np.float64(row[j]) + 1.0) * (CUT * VALUE_BINS / 2))
    for j in range(len(row)):
        bits = np.float32(np.float32(1.0) - row[j]).view(np.int32)
        near_one = min(max((np.int32(NEAR_ONE) - bits) >> np.int32(SHIFT), np.int32(0)), np.int32(NEAR_ONE_BINS - 1))
        equal = max(fine[j], np.int32(0))
        # A fifth of it, for all that fine bins can be: of the value spectrum, the bin that it lies in.
        value = (equal * np.int32(52429)) >> np.int32(18)
        threshold[j] = min(max(value, np.int32(BELOW_ALL)) - np.int32(BELOW_ALL), np.int32(LAST_THRESHOLD))
        bin_of_all = equal if equal < EQUAL_BINS else np.int32(EQUAL_BINS) + near_one
        fine[j] = bin_of_all + np.int32(flags[j]) * np.int32(FINE_BINS)


@compiled_apart
def _count_cells(fine, threshold, relations, distances):
    """fine, threshold: of the tokens after one, in their order."""
    for j in range(len(fine)):
        relations[np.uint64(j % COPIES), np.uint64(fine[j])] += 1
        distances[np.uint64(j + 1), np.uint64(threshold[j])] += 1


@compiled_apart
def _count_high(high, flags, high_count, degree, equal_degree, distance):
    """Of the high pairs of one row: those of equal tokens, within one sentence, and both."""
    equal = np.int32(0)
    same = np.int32(0)
    both = np.int32(0)
    for j in range(len(high)):
        is_equal = high[j] & np.int32((flags[j] & EQUAL) != 0)
        is_same = high[j] & np.int32((flags[j] & TOGETHER) != 0)
        high_count[j] += high[j]
        degree[j] += high[j]
        distance[j] += high[j]
        equal_degree[j] += is_equal
        equal += is_equal
        same += is_same
        both += is_equal & is_same
    return equal, same, both


@compiled
def _by_distance(b, h, layer, distance, numbers, counts):
    """What the distances of the high pairs tell, (S,): their sum, and how many would be of equal tokens, or within one
    sentence, if they were drawn from all pairs of each distance."""
    every, equal, together = layer.by_distance[b, 0], layer.by_distance[b, 1], layer.by_distance[b, 2]
    histogram = layer.distance_histogram[h]
    total = np.int64(0)
    equal_expected, together_expected = 0.0, 0.0
    for d in range(1, len(distance)):
        if distance[d]:
            histogram[d] += distance[d]
            total += d * distance[d]
            equal_expected += distance[d] * equal[d] / every[d]
            together_expected += distance[d] * together[d] / every[d]
    counts[DISTANCE] = total
    numbers[REPEATS_EXPECTED] = equal_expected
    numbers[TOGETHER_EXPECTED] = together_expected


@compiled
def _residuals(b, layer, per_token, numbers):
    """r is N less its mean at the same distance: its sum over pairs of equal tokens and within one sentence, and its
    square over all. From sums alone: (sum of N) - (pairs) x (mean), and likewise for squares."""
    length = len(per_token.square)
    every, equal, together = layer.by_distance[b, 0], layer.by_distance[b, 1], layer.by_distance[b, 2]
    by_distance = per_token.by_distance[length:]
    square = per_token.square.sum()
    rest = square
    of_equal, of_together = per_token.equal.sum(), per_token.together.sum()
    for d in range(1, length):
        if every[d] > 0:
            mean = by_distance[d] / every[d]
            rest -= by_distance[d] * mean
            of_equal -= equal[d] * mean
            of_together -= together[d] * mean
    real = rest > ROUNDING * square
    numbers[NOISE_SQUARE] = rest if real else 0.0
    numbers[SIGNAL_EQUAL] = of_equal if real else 0.0
    numbers[SIGNAL_TOGETHER] = of_together if real else 0.0


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
    return sum_inside / pairs_inside - (per_token.by_distance.sum() - sum_inside) / pairs_outside


@compiled
def _focal(ids, same_id, size, per_token):
    """The token in the most high pairs and how many include it; a pair of equal tokens counts once."""
    degree, equal_degree, twice = per_token.degree, per_token.equal_degree, per_token.twice
    twice[:] = 0
    for j in range(size):
        twice[same_id[j]] += 2 * degree[j] - equal_degree[j]
    focal = np.int64(-1)
    most = np.int64(0)
    for j in range(size):
        included = twice[same_id[j]]
        if included > most or (included == most and ids[j] < focal):
            most = included
            focal = ids[j]
    return focal, most // 2


@compiled
def _hand_on_relations(relations, edges, spectrum, of_group):
    """Add the counts by relation to the spectrum of the head, (R, F), and to that of a group of texts, (M, C), and
    begin anew."""
    for copy in range(1, COPIES):
        for place in range(len(RELATIONS) * FINE_BINS):
            relations[0, place] += relations[copy, place]
        relations[copy, :] = 0
    counted = relations[0].reshape(-1, FINE_BINS)
    for relation in range(len(RELATIONS)):
        _add(counted[relation], spectrum[relation])
    for c in range(len(edges) - 1):
        neither, equal, together, both = 0, 0, 0, 0
        for fine in range(edges[c], edges[c + 1]):
            neither += counted[0, fine]
            equal += counted[EQUAL, fine]
            together += counted[TOGETHER, fine]
            both += counted[EQUAL + TOGETHER, fine]
        of_group[0, c] += neither + equal + together + both
        of_group[1, c] += equal + both
        of_group[2, c] += together + both
    relations[0, :] = 0


@compiled
def _hand_on_distances(distances, total):
    """Add the counts by distance and threshold to those of the head, (S, T)."""
    for d in range(1, len(distances)):
        _add(distances[d, 1:], total[d])


@compiled
def _similarity(place, layer, block_ends, rows, spectra, per_token):
    """Everything that is summed and counted over the pairs of each window."""
    h = layer.first + place
    windows, length = block_ends.shape
    for b in range(windows):
        numbers, counts = layer.numbers[b, h], layer.counts[b, h]
        top = _peak(layer.similarity[b], layer.size[b], layer.part[b], rows.best)
        high_pairs = HighPairs(pairs=0, repeats=0, together=0, repeats_together=0)
        per_token.degree[:] = 0
        per_token.equal_degree[:] = 0
        per_token.distance[:] = 0
        numbers[PEAK] = top
        numbers[CONTRAST] = np.nan
        numbers[NOISE_SQUARE] = 0
        numbers[SIGNAL_EQUAL] = 0
        numbers[SIGNAL_TOGETHER] = 0
        if top > 0:
            high_pairs = _pairs(
                b=b,
                h=h,
                layer=layer,
                top=top,
                block_end=block_ends[b],
                rows=rows,
                spectra=spectra,
                per_token=per_token,
            )
            numbers[CONTRAST] = _contrast(layer.size[b], layer.part[b], block_ends[b], per_token)
            _residuals(b, layer, per_token, numbers)
            if not np.isfinite(per_token.by_distance.sum()):
                numbers[PEAK] = np.nan
        elif _has_nan(layer.similarity[b], layer.size[b]):
            numbers[PEAK] = np.nan
        counts[PAIRS] = high_pairs.pairs
        counts[REPEATS] = high_pairs.repeats
        counts[IN_SENTENCE] = high_pairs.together
        counts[BOTH] = high_pairs.repeats_together
        _by_distance(b, h, layer, per_token.distance[length:], numbers, counts)
        counts[FOCAL], counts[FOCAL_PAIRS] = _focal(layer.ids[b], layer.same_id[b], layer.size[b], per_token)
        if b == windows - 1 or layer.group[b + 1] != layer.group[b]:
            of_group = layer.spectrum_of_groups[h, layer.group[b]]
            _hand_on_relations(spectra.relations, layer.coarse_edges, layer.spectrum[h], of_group)
    _hand_on_distances(spectra.distances, layer.distance_spectrum[h])


@partial(compiled_for_good, signature=SIGNATURE)
def _observe(place, layer):
    """One head, by its place among those whose attention is at hand."""
    windows, _, length, _ = layer.attention.shape
    width = layer.output.shape[3]
    columns = Columns(
        received=np.empty(length, np.float64),
        is_line=np.empty(length, np.float32),
        off_line=np.empty(length, np.float32),
        chosen=np.empty(length, np.int64),
    )
    block_ends = np.empty((windows, length), np.int64)
    rows = Rows(
        best=np.empty(length, np.float32),
        mask=np.empty(length, np.float32),
        normalised=np.empty(length, np.float32),
        high=np.empty(length, np.int32),
        fine=np.empty(length, np.int32),
        threshold=np.empty(length, np.int32),
    )
    spectra = Spectra(
        relations=np.zeros((COPIES, (NO_PAIR + 1) * FINE_BINS), np.int32),
        distances=np.zeros((length, LAST_THRESHOLD + 1), np.int32),
    )
    per_token = PerToken(
        inside=np.empty(length, np.float64),
        square=np.empty(length, np.float64),
        equal=np.empty(length, np.float64),
        together=np.empty(length, np.float64),
        degree=np.empty(length, np.int32),
        equal_degree=np.empty(length, np.int32),
        twice=np.empty(length, np.int64),
        distance=np.empty(2 * length, np.int32),
        by_distance=np.empty(2 * length, np.float64),
    )
    _attention(place, layer, columns, block_ends)
    _output(place, layer, np.empty(width, np.float64), np.empty(width, np.float64))
    _similarity(place, layer, block_ends, rows, spectra, per_token)
