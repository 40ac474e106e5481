/* `Observing` for the CPU, and random pairs: what `kernel.py` calls.

The matrices of one window and head fit in the cache, those of a batch do not; so a window is finished before the next
is touched, whose matrices are fetched meanwhile, and all windows of a head before the next head, whose sums are others.
The definitions are those of `definitions.py`; the tests hold both to the same reference.

The order of every sum, and with it every bit, is the same on all machines (see `vectors.h`) but for the product Z times
its transpose, whose sums may round once less where the machine multiplies and adds in one step. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

enum { EQUAL = 1, TOGETHER = 2, NO_PAIR = 4, RELATIONS = 4, COPIES = 2, ROWS = 4, STRIDE = 32, SIDES = 2 };
/* The flags of a pair are those of `observation.py`. COPIES of the spectrum, so that counting twice into one bin need
not wait for memory. A column of A has one of two SIDES: off lines or on them. TALL by COLUMNS of C are multiplied at
once, in registers. Rows are as long as a multiple of STRIDE. */

enum { TALL = REGISTER == 64 ? 8 : ROWS, COLUMNS = 2 * AT_ONCE, CACHED = 1 << 18, CACHE_LINE = 64 };

/* Everything that the heads of one layer are observed with: field for field what `kernel.Layer` declares.

B windows, H heads at hand, of which `first` is the number of the first among all heads of the layer; S = length, d =
width. Strides count elements; the last axis of each array, and the last two of the attention, are dense. */
typedef struct {
    int64_t windows, heads, length, width, first, all_heads;
    int64_t attention_window, attention_head;
    int64_t output_window, output_head, output_token;
    int64_t vectors_window, vectors_head, vectors_token;
    int64_t fine_bins, equal_bins, near_one, shift, below_all, thresholds, coarse_bins, groups, sets, kinds;
    int64_t counts_width, numbers_width;
    int64_t at_pairs, at_repeats, at_together, at_repeats_together, at_distance, at_focal, at_focal_pairs, at_lines;
    int64_t at_peak, at_repeats_expected, at_together_expected, at_contrast, at_signal_equal, at_signal_together;
    int64_t at_noise_square, at_mean_vector_share, at_attention_to, at_carried_to, at_self, at_previous, at_next;
    double threshold, line_threshold, bins_per_unit, rounding;
    const float *attention, *output, *vectors, *lengths; /* (B, H, S, S), (B, H, S, d), the same, (B, H, S) */
    const int64_t *size, *kind, *ids, *same_id, *group;  /* (B,), (B, S), (B, S), (B, S), (B,) */
    const uint8_t *part;                                 /* (B, S) */
    const int8_t *flags;                                 /* (B, S, S) */
    const double *by_distance;                           /* (B, 3, S) */
    const int64_t *equal_begin; /* (B * S + 1,): where in `equal` the pairs of equal tokens of row i of window b begin */
    const int32_t *equal;       /* j of each */
    const int64_t *coarse_edges;
    double *attention_sum_on_lines, *attention_sum_without_lines, *similarity_sum; /* (all heads, S, S) */
    int16_t *high_count;
    int64_t *distance_histogram, *spectrum; /* (all heads, S), (all heads, RELATIONS, fine bins) */
    int32_t *spectrum_of_groups;            /* (all heads, groups, sets, coarse bins) */
    int32_t *distance_spectrum;             /* (all heads, S, thresholds) */
    int64_t *counts;                        /* (B, all heads, counts_width) */
    double *numbers;                        /* (B, all heads, numbers_width) */
} Layer;

/* Room for one window and head. P is S rounded up to STRIDE. */
typedef struct {
    int64_t padded;
    int64_t flag_stride;
    const int8_t *flags;        /* (B, S, flag_stride): as in the layer, or copied into longer rows */
    double *received;           /* (P,): what each column of A adds up to */
    double *wanted;             /* (B, SIDES, P): 1 for the columns off lines, then for those on lines; 0 elsewhere */
    int64_t *chosen;            /* (B, SIDES, P): their numbers */
    int64_t *chosen_count;      /* (B, SIDES) */
    int64_t *block_end;         /* (B, P): where the block of each token ends */
    float *transposed;          /* (d, P): the vectors whose products are C */
    float *similarity;          /* (P, P): C, of which the pairs are looked at */
    float *row;                 /* (P,): N */
    int16_t *high;              /* (P,): -1 where N is high, otherwise 0 */
    int32_t *cell, *threshold;  /* (P,): where N is counted: by relation and fine bin, and by threshold */
    int32_t *relations;         /* (COPIES, (NO_PAIR + 1) * fine bins): counts since they were last handed on */
    int32_t *distances;         /* (P, thresholds + 1), the first for what is below all of them; of one head */
    int16_t *degree, *equal_degree; /* (P,): high pairs that a token is in, and those of equal tokens */
    int16_t *distance;          /* (P,): high pairs by j - i */
    int64_t *twice;             /* (P,): at `same_id`, twice the high pairs that include such a token */
    double *by_distance;        /* (P,): N by j - i */
    double *summed;             /* (d,) */
    void *memory;
} Room;

/* Summed over the pairs of one window and head: N squared, N of equal tokens, in one sentence, in one block; all N. */
typedef struct {
    double square, equal, together, inside, all;
} Sums;

/* The same while they are added up. */
typedef struct {
    LaneSums square, together, inside;
} Adding;

typedef struct {
    int64_t pairs, repeats, together, repeats_together;
} HighPairs;

static const float *attention_of(const Layer *layer, int64_t b, int64_t place) {
    return layer->attention + b * layer->attention_window + place * layer->attention_head;
}

/* Whether a head's map of doubles, and with it all that a window is observed with, stays in the cache. */
static int is_small(const Layer *layer) { return layer->length * layer->length * (int64_t)sizeof(double) <= CACHED; }

static int64_t rounded_up(int64_t size, int64_t to) { return (size + to - 1) / to * to; }

/* What each of the first `size` columns of A adds up to. Rows are read as they lie in memory, some at once, so that the
sums are fetched less often. */
static void column_sums(const float *matrix, int64_t length, int64_t size, double *restrict received) {
    memset(received, 0, size * sizeof(double));
    int64_t i = 0;
    for (; i + ROWS <= size; i += ROWS) {
        const float *restrict a = matrix + i * length, *restrict b = a + length, *restrict c = b + length;
        const float *restrict d = c + length;
        for (int64_t j = 0; j < size; j++) received[j] = received[j] + a[j] + b[j] + c[j] + d[j];
    }
    for (; i < size; i++)
        for (int64_t j = 0; j < size; j++) received[j] += matrix[i * length + j];
}

/* Add the columns of one row that are wanted, 1 of 0 and 1. Where they are few the others are not touched. */
static void add_wanted(const float *restrict row, int64_t size, const double *restrict wanted,
                       const int64_t *restrict chosen, int64_t count, double *restrict total) {
    if (count < size / 4)
        for (int64_t c = 0; c < count; c++) total[chosen[c]] += row[chosen[c]];
    else
        for (int64_t j = 0; j < size; j++) total[j] += row[j] * wanted[j];
}

/* Add the A of some windows to the sums on lines and without them: row by row, so that a row of the sums is fetched once
for all of them. */
static void add_attention(const Layer *layer, const Room *room, int64_t place, int64_t from, int64_t to) {
    const int64_t length = layer->length, map = (layer->first + place) * length * length;
    double *sums[SIDES] = {layer->attention_sum_without_lines + map, layer->attention_sum_on_lines + map};
    for (int64_t i = 0; i < length; i++)
        for (int64_t b = from; b < to; b++) {
            if (i >= layer->size[b]) continue;
            const float *row = attention_of(layer, b, place) + i * length;
            for (int64_t side = 0; side < SIDES; side++) {
                const int64_t at = (b * SIDES + side) * room->padded;
                add_wanted(row, layer->size[b], room->wanted + at, room->chosen + at,
                           room->chosen_count[b * SIDES + side], sums[side] + i * length);
            }
        }
}

/* Find the lines of a window, and where the block of each token ends. */
static void observe_attention(const Layer *layer, Room *room, int64_t b, int64_t place, double *numbers,
                              int64_t *counts) {
    const int64_t length = layer->length, size = layer->size[b];
    const float *matrix = attention_of(layer, b, place);
    const float *lengths = layer->lengths + (b * layer->heads + place) * length;
    const int64_t *kind = layer->kind + b * length;
    column_sums(matrix, length, size, room->received);
    double most = 0;
    for (int64_t j = 0; j < size; j++)
        if (room->received[j] > most) most = room->received[j];
    for (int64_t k = 0; k < layer->kinds; k++) {
        numbers[layer->at_attention_to + k] = 0;
        numbers[layer->at_carried_to + k] = 0;
        counts[layer->at_lines + k] = 0;
    }
    int64_t begin = 0, *block_end = room->block_end + b * room->padded;
    for (int side = 0; side < SIDES; side++) room->chosen_count[b * SIDES + side] = 0;
    for (int64_t j = 0; j < size; j++) {
        const int is_line = room->received[j] / most > layer->line_threshold;
        numbers[layer->at_attention_to + kind[j]] += room->received[j];
        numbers[layer->at_carried_to + kind[j]] += room->received[j] * lengths[j];
        for (int side = 0; side < SIDES; side++) {
            const int64_t at = (b * SIDES + side) * room->padded;
            room->wanted[at + j] = side == is_line;
            if (side == is_line) room->chosen[at + room->chosen_count[b * SIDES + side]++] = j;
        }
        if (is_line) {
            counts[layer->at_lines + kind[j]] += 1;
            for (; begin <= j; begin++) block_end[begin] = j + 1;
        }
    }
    for (; begin < size; begin++) block_end[begin] = size;
    double own = 0, before = 0, after = 0;
    for (int64_t i = 0; i < size; i++) own += matrix[i * length + i];
    for (int64_t i = 1; i < size; i++) {
        before += matrix[i * length + i - 1];
        after += matrix[(i - 1) * length + i];
    }
    numbers[layer->at_self] = own;
    numbers[layer->at_previous] = before;
    numbers[layer->at_next] = after;
}

/* Of the squared length of a window's Z, the share in the mean vector of the tokens that take part; NaN where Z is
0. */
static double mean_vector_share(const Layer *layer, Room *room, int64_t b, int64_t place) {
    const uint8_t *part = layer->part + b * layer->length;
    const float *output = layer->output + b * layer->output_window + place * layer->output_head;
    double *restrict summed = room->summed;
    double of_sum = 0, of_all = 0, members = 0;
    LaneSums squares = {};
    memset(summed, 0, layer->width * sizeof(double));
    for (int64_t i = 0; i < layer->size[b]; i++) {
        if (!part[i]) continue;
        const float *vector = output + i * layer->output_token;
        members += 1;
        int64_t k = 0;
        for (; k + STEP <= layer->width; k += STEP)
            for (int g = 0; g < GROUPS_OF_STEP; g++) {
                const Doubles value = as_doubles(floats_at(vector + k + g * AT_ONCE));
                for (int n = 0; n < HALVES; n++) ((Half *)(summed + k + g * AT_ONCE))[n] += value.half[n];
                add_squares(&squares, g, value);
            }
        for (; k < layer->width / LANES * LANES; k++) {
            summed[k] += vector[k];
            ((double *)&squares)[k % LANES] += (double)vector[k] * vector[k];
        }
        for (; k < layer->width; k++) {
            summed[k] += vector[k];
            of_all += (double)vector[k] * vector[k];
        }
    }
    for (int64_t k = 0; k < layer->width; k++) of_sum += summed[k] * summed[k];
    return of_sum / members / (of_all + total_of(&squares));
}

/* C, from the block of its diagonal on. */
static void multiply(const Layer *layer, Room *room, int64_t b, int64_t place) {
    const int64_t padded = room->padded, size = layer->size[b], width = layer->width, token = layer->vectors_token;
    const float *vectors = layer->vectors + b * layer->vectors_window + place * layer->vectors_head;
    float *restrict transposed = room->transposed;
    transpose(vectors, token, size, width, transposed, padded);
    for (int64_t j = 0; j < size; j += COLUMNS)
        for (int64_t i = 0; i < size && i < j + COLUMNS; i += TALL) {
            Floats sums[TALL][COLUMNS / AT_ONCE] = {};
            const float *row = transposed + i, *column = transposed + j;
            for (int64_t k = 0; k < width; k++, row += padded, column += padded)
                for (int r = 0; r < TALL; r++)
                    for (int c = 0; c < COLUMNS / AT_ONCE; c++) sums[r][c] += ((const Floats *)column)[c] * row[r];
            for (int r = 0; r < TALL; r++)
                for (int c = 0; c < COLUMNS / AT_ONCE; c++)
                    *(Floats *)(room->similarity + (i + r) * padded + j + c * AT_ONCE) = sums[r][c];
        }
}

/* m: the largest element of C over the pairs that take part, NaN passed over; -inf where there is none. */
static float peak(const Layer *layer, const Room *room, int64_t b) {
    const int64_t size = layer->size[b];
    const uint8_t *part = layer->part + b * layer->length;
    const Floats lowest = (Floats){} - INFINITY;
    Floats best = lowest;
    for (int64_t i = 0; i < size; i++) {
        if (!part[i]) continue;
        const int8_t *flags = room->flags + (b * layer->length + i) * room->flag_stride;
        const float *row = room->similarity + i * room->padded;
        for (int64_t j = (i + 1) / STEP * STEP; j < size; j += AT_ONCE) {
            const Mask pair = has_not(ints_at(flags + j), NO_PAIR);
            /* The second is taken where the first is NaN. */
            best = larger_float((Floats)either(pair, *(const Ints *)(row + j), (Ints)lowest), best);
        }
    }
    return largest_of(best);
}

/* Whether a pair of C is NaN. */
static int has_nan(const Layer *layer, const Room *room, int64_t b) {
    for (int64_t i = 0; i < layer->size[b]; i++)
        for (int64_t j = i + 1; j < layer->size[b]; j++)
            if (layer->part[b * layer->length + i] && layer->part[b * layer->length + j] &&
                isnan(room->similarity[i * room->padded + j]))
                return 1;
    return 0;
}

/* N of row i, which of it are high, and into which cells it is counted (see `bins.py`). What is no pair is 0, never
high, and counted apart. Returns how many are high, and how many of these lie within one sentence. */
static inline HighPairs normalise(const Layer *layer, const Room *room, const float *restrict similarity,
                                  const int8_t *restrict flags, int64_t b, int64_t i, float top, Adding *sums) {
    const float threshold = (float)layer->threshold;
    const int32_t near_one = (int32_t)layer->near_one, shift = (int32_t)layer->shift;
    const int32_t below = (int32_t)layer->below_all, last = (int32_t)layer->thresholds;
    const int32_t equal_bins = (int32_t)layer->equal_bins, fine_bins = (int32_t)layer->fine_bins;
    const double scale = layer->bins_per_unit;
    const int64_t size = layer->size[b], first = (i + 1) / STEP * STEP;
    float *restrict rows = room->row;
    int16_t *restrict highs = room->high;
    int32_t *restrict cells = room->cell, *restrict thresholds = room->threshold;
    /* Places, counted from the end of the block. */
    Ints place = counted_up() + (int32_t)(first - room->block_end[b * room->padded + i]);
    Adding here = *sums;
    HighPairs found = {0, 0, 0, 0};
    for (int64_t begin = first; begin < size; begin += STEP)
        for (int g = 0; g < GROUPS_OF_STEP; g++) {
            const int64_t j = begin + g * AT_ONCE;
            const Ints flag = ints_at(flags + j);
            const Mask is_together = has(flag, TOGETHER);
            const Floats row = kept(has_not(flag, NO_PAIR), floats_at(similarity + j) / top);
            *(Floats *)(rows + j) = row;
            const Doubles value = as_doubles(row);
            add_squares(&here.square, g, value);
            add_kept(&here.together, g, is_together, row, value);
            add_kept(&here.inside, g, is_less(place, (Ints){}), row, value);
            place += AT_ONCE;
            const Mask high = above(row, (Floats){} + threshold);
            put_shorts(highs + j, high);
            found.pairs += number_of(high);
            found.together += number_of(both(high, is_together));
            const Ints equal = at_least(as_ints(scaled(value, 1.0, scale)), 0);
            const Ints after = (near_one - (Ints)(1.0f - row)) >> shift;
            const Ints near = at_most(at_least(after, 0), fine_bins - equal_bins - 1);
            /* A fifth of it, for all that fine bins can be: of the value spectrum, the bin that it lies in. */
            const Ints bin = (equal * 52429) >> 18;
            *(Ints *)(thresholds + j) = at_most(at_least(bin, below) - below, last);
            *(Ints *)(cells + j) =
                either(is_less(equal, (Ints){} + equal_bins), equal, equal_bins + near) + flag * fine_bins;
        }
    *sums = here;
    return found;
}

static inline void count_cells(const Layer *layer, const Room *room, int64_t i, int64_t size) {
    const int64_t width = layer->thresholds + 1;
    const int32_t *restrict cell = room->cell, *restrict threshold = room->threshold;
    int32_t *one = room->relations, *other = room->relations + (NO_PAIR + 1) * layer->fine_bins;
    int32_t *distances = room->distances + width;
    int64_t j = i + 1;
    for (; j + 1 < size; j += 2) {
        one[cell[j]]++;
        distances[threshold[j]]++;
        other[cell[j + 1]]++;
        distances[width + threshold[j + 1]]++;
        distances += 2 * width;
    }
    if (j < size) {
        one[cell[j]]++;
        distances[threshold[j]]++;
    }
}

static inline void add_row(const float *restrict row, int64_t count, double *restrict similarity_sum,
                           double *restrict by_distance) {
    for (int64_t j = 0; j < count; j++) {
        similarity_sum[j] += row[j];
        by_distance[j] += row[j];
    }
}

/* The high pairs of one row, wherever they are counted. */
static inline void count_high(const int16_t *restrict high, int64_t count, int16_t *restrict high_count,
                              int16_t *restrict degree, int16_t *restrict distance) {
    for (int64_t j = 0; j < count; j++) {
        high_count[j] -= high[j];
        degree[j] -= high[j];
        distance[j] -= high[j];
    }
}

/* The pairs of equal tokens of one row, which are few: their N, and those of them that are high. */
static inline void observe_equal(const Layer *layer, const Room *room, const int8_t *flags, int64_t row, int64_t i, Sums *sums,
                                 HighPairs *high) {
    for (int64_t place = layer->equal_begin[row]; place < layer->equal_begin[row + 1]; place++) {
        const int32_t j = layer->equal[place];
        sums->equal += room->row[j];
        if (!room->high[j]) continue;
        high->repeats += 1;
        high->repeats_together += (flags[j] & TOGETHER) != 0;
        room->equal_degree[i] += 1;
        room->equal_degree[j] += 1;
    }
}

/* While row i of a window and head is counted, have that row of the next one's A and vectors fetched: they come from far
away, and counting asks nothing of memory. */
static inline void fetch_ahead(const Layer *layer, int64_t b, int64_t place, int64_t i) {
    const int64_t next = b + 1 < layer->windows ? b + 1 : 0;
    const int64_t next_place = next ? place : place + 1;
    if (next_place == layer->heads || !is_small(layer)) return;
    const char *row = (const char *)(attention_of(layer, next, next_place) + i * layer->length);
    for (int64_t byte = 0; byte < layer->length * 4; byte += CACHE_LINE) __builtin_prefetch(row + byte, 0, 2);
    const char *vector = (const char *)(layer->output + next * layer->output_window + next_place * layer->output_head +
                                        i * layer->output_token);
    for (int64_t byte = 0; byte < layer->width * 4; byte += CACHE_LINE) __builtin_prefetch(vector + byte, 0, 2);
}

/* Everything that is summed and counted over the pairs of one window and head. */
static HighPairs observe_pairs(const Layer *layer, Room *room, int64_t b, int64_t place, float top, Sums *sums) {
    const int64_t length = layer->length, size = layer->size[b], h = layer->first + place;
    const uint8_t *part = layer->part + b * length;
    HighPairs all = {0, 0, 0, 0};
    Adding lanes = {};
    sums->equal = sums->all = 0;
    for (int64_t i = 0; i < size; i++) {
        fetch_ahead(layer, b, place, i);
        if (!part[i]) continue;
        const int8_t *flags = room->flags + (b * length + i) * room->flag_stride;
        const HighPairs found =
            normalise(layer, room, room->similarity + i * room->padded, flags, b, i, top, &lanes);
        const int64_t cell = (h * length + i) * length + i + 1, after = size - i - 1;
        add_row(room->row + i + 1, after, layer->similarity_sum + cell, room->by_distance + 1);
        count_cells(layer, room, i, size);
        observe_equal(layer, room, flags, b * length + i, i, sums, &all);
        if (found.pairs) {
            count_high(room->high + i + 1, after, layer->high_count + cell, room->degree + i + 1, room->distance + 1);
            room->degree[i] += (int16_t)found.pairs;
            all.pairs += found.pairs;
            all.together += found.together;
        }
    }
    sums->square = total_of(&lanes.square);
    sums->together = total_of(&lanes.together);
    sums->inside = total_of(&lanes.inside);
    for (int64_t d = 1; d < size; d++) sums->all += room->by_distance[d];
    return all;
}

/* What the distances of the high pairs tell: their sum, and how many would be of equal tokens, or within one sentence,
if they were drawn from all pairs of each distance. */
static void observe_distances(const Layer *layer, const Room *room, int64_t b, int64_t h, double *numbers,
                              int64_t *counts) {
    const int64_t length = layer->length;
    const double *every = layer->by_distance + b * 3 * length, *equal = every + length, *together = equal + length;
    int64_t *histogram = layer->distance_histogram + h * length, total = 0;
    double equal_expected = 0, together_expected = 0;
    for (int64_t d = 1; d < layer->size[b]; d++) {
        const int64_t pairs = room->distance[d];
        if (!pairs) continue;
        histogram[d] += pairs;
        total += d * pairs;
        equal_expected += pairs * equal[d] / every[d];
        together_expected += pairs * together[d] / every[d];
    }
    counts[layer->at_distance] = total;
    numbers[layer->at_repeats_expected] = equal_expected;
    numbers[layer->at_together_expected] = together_expected;
}

/* r is N less its mean at the same distance: its sum over pairs of equal tokens and within one sentence, and its square
over all. From sums alone: (sum of N) - (pairs) x (mean), and likewise for squares. */
static void observe_residuals(const Layer *layer, const Room *room, int64_t b, const Sums *sums, double *numbers) {
    const int64_t length = layer->length;
    const double *every = layer->by_distance + b * 3 * length, *equal = every + length, *together = equal + length;
    double rest = sums->square, of_equal = sums->equal, of_together = sums->together;
    for (int64_t d = 1; d < layer->size[b]; d++) {
        if (every[d] <= 0) continue;
        const double mean = room->by_distance[d] / every[d];
        rest -= room->by_distance[d] * mean;
        of_equal -= equal[d] * mean;
        of_together -= together[d] * mean;
    }
    const int real = rest > layer->rounding * sums->square;
    numbers[layer->at_noise_square] = real ? rest : 0;
    numbers[layer->at_signal_equal] = real ? of_equal : 0;
    numbers[layer->at_signal_together] = real ? of_together : 0;
}

/* Mean of N over the pairs of one block, less its mean over the others; NaN where either has none. */
static double block_contrast(const Layer *layer, const Room *room, int64_t b, const Sums *sums) {
    const uint8_t *part = layer->part + b * layer->length;
    const int64_t *block_end = room->block_end + b * room->padded;
    int64_t taking_part = 0, pairs_inside = 0;
    for (int64_t begin = 0; begin < layer->size[b]; begin = block_end[begin]) {
        int64_t members = 0;
        for (int64_t i = begin; i < block_end[begin]; i++) members += part[i];
        pairs_inside += members * (members - 1) / 2;
        taking_part += members;
    }
    const int64_t pairs_outside = taking_part * (taking_part - 1) / 2 - pairs_inside;
    if (!pairs_inside || !pairs_outside) return NAN;
    return sums->inside / pairs_inside - (sums->all - sums->inside) / pairs_outside;
}

/* The token in the most high pairs and how many include it; a pair of equal tokens counts once. */
static void observe_focal(const Layer *layer, const Room *room, int64_t b, int64_t *counts) {
    const int64_t length = layer->length, size = layer->size[b];
    const int64_t *ids = layer->ids + b * length, *same_id = layer->same_id + b * length;
    int64_t focal = -1, most = 0;
    memset(room->twice, 0, length * sizeof(int64_t));
    for (int64_t j = 0; j < size; j++) room->twice[same_id[j]] += 2 * room->degree[j] - room->equal_degree[j];
    for (int64_t j = 0; j < size; j++) {
        const int64_t included = room->twice[same_id[j]];
        if (included > most || (included == most && ids[j] < focal)) {
            most = included;
            focal = ids[j];
        }
    }
    counts[layer->at_focal] = focal;
    counts[layer->at_focal_pairs] = most / 2;
}

/* Add the counts by relation to the spectrum of the head and to that of a group of texts, and begin anew. */
static void hand_on_relations(const Layer *layer, Room *room, int64_t h, int64_t group) {
    const int64_t fine = layer->fine_bins, cells = RELATIONS * fine;
    int32_t *restrict counted = room->relations;
    const int32_t *restrict copy = room->relations + (NO_PAIR + 1) * fine;
    int64_t *restrict spectrum = layer->spectrum + h * cells;
    int32_t *of_group = layer->spectrum_of_groups + (h * layer->groups + group) * layer->sets * layer->coarse_bins;
    for (int64_t cell = 0; cell < cells; cell++) counted[cell] += copy[cell];
    for (int64_t cell = 0; cell < cells; cell++) spectrum[cell] += counted[cell];
    for (int64_t c = 0; c < layer->coarse_bins; c++) {
        int32_t found[RELATIONS] = {};
        for (int64_t bin = layer->coarse_edges[c]; bin < layer->coarse_edges[c + 1]; bin++)
            for (int relation = 0; relation < RELATIONS; relation++) found[relation] += counted[relation * fine + bin];
        const int32_t both = found[EQUAL + TOGETHER];
        of_group[c] += found[0] + found[EQUAL] + found[TOGETHER] + both;
        of_group[layer->coarse_bins + c] += found[EQUAL] + both;
        of_group[2 * layer->coarse_bins + c] += found[TOGETHER] + both;
    }
    memset(room->relations, 0, COPIES * (NO_PAIR + 1) * fine * sizeof(int32_t));
}

/* Add the counts by distance and threshold to those of the head, and begin anew. */
static void hand_on_distances(const Layer *layer, Room *room, int64_t h) {
    const int64_t width = layer->thresholds;
    for (int64_t d = 1; d < layer->length; d++) {
        const int32_t *restrict from = room->distances + d * (width + 1) + 1;
        int32_t *restrict into = layer->distance_spectrum + (h * layer->length + d) * width;
        for (int64_t t = 0; t < width; t++) into[t] += from[t];
    }
    memset(room->distances, 0, room->padded * (width + 1) * sizeof(int32_t));
}

static void observe_similarity(const Layer *layer, Room *room, int64_t b, int64_t place, double *numbers,
                               int64_t *counts) {
    const int64_t h = layer->first + place, padded = room->padded;
    HighPairs high = {0, 0, 0, 0};
    Sums sums;
    multiply(layer, room, b, place);
    const float top = peak(layer, room, b);
    memset(room->degree, 0, padded * sizeof(int16_t));
    memset(room->equal_degree, 0, padded * sizeof(int16_t));
    memset(room->distance, 0, padded * sizeof(int16_t));
    memset(room->by_distance, 0, padded * sizeof(double));
    numbers[layer->at_peak] = top;
    numbers[layer->at_contrast] = NAN;
    numbers[layer->at_noise_square] = numbers[layer->at_signal_equal] = numbers[layer->at_signal_together] = 0;
    if (top > 0) {
        high = observe_pairs(layer, room, b, place, top, &sums);
        numbers[layer->at_contrast] = block_contrast(layer, room, b, &sums);
        observe_residuals(layer, room, b, &sums, numbers);
        if (!isfinite(sums.all)) numbers[layer->at_peak] = NAN;
    } else if (has_nan(layer, room, b)) {
        numbers[layer->at_peak] = NAN;
    }
    counts[layer->at_pairs] = high.pairs;
    counts[layer->at_repeats] = high.repeats;
    counts[layer->at_together] = high.together;
    counts[layer->at_repeats_together] = high.repeats_together;
    observe_distances(layer, room, b, h, numbers, counts);
    observe_focal(layer, room, b, counts);
}

/* Hands out parts of one block of memory, each at a multiple of 64 bytes. */
static void *part_of(char **memory, int64_t bytes) {
    void *here = *memory;
    if (*memory) *memory += rounded_up(bytes, 64);
    return here;
}

/* Lays out a room in memory that begins at `memory`; where that is NULL, only counts: returns the bytes it takes. */
static int64_t lay_out(const Layer *layer, Room *room, char *memory) {
    const int64_t padded = room->padded, doubles = padded * sizeof(double), ints = padded * sizeof(int32_t);
    const int64_t shorts = padded * sizeof(int16_t);
    const int64_t flags = room->flag_stride == layer->length ? 0 : layer->windows * layer->length * room->flag_stride;
    const struct {
        void **where;
        int64_t bytes;
    } parts[] = {
        {(void **)&room->flags, flags},
        {(void **)&room->received, doubles},
        {(void **)&room->wanted, layer->windows * SIDES * doubles},
        {(void **)&room->chosen, layer->windows * SIDES * doubles},
        {(void **)&room->chosen_count, layer->windows * SIDES * (int64_t)sizeof(int64_t)},
        {(void **)&room->block_end, layer->windows * doubles},
        {(void **)&room->twice, doubles},
        {(void **)&room->by_distance, doubles},
        {(void **)&room->summed, layer->width * (int64_t)sizeof(double)},
        {(void **)&room->transposed, layer->width * padded * (int64_t)sizeof(float)},
        {(void **)&room->similarity, padded * padded * (int64_t)sizeof(float)},
        {(void **)&room->row, ints},
        {(void **)&room->high, shorts},
        {(void **)&room->cell, ints},
        {(void **)&room->threshold, ints},
        {(void **)&room->degree, shorts},
        {(void **)&room->equal_degree, shorts},
        {(void **)&room->distance, shorts},
        {(void **)&room->relations, COPIES * (NO_PAIR + 1) * layer->fine_bins * (int64_t)sizeof(int32_t)},
        {(void **)&room->distances, padded * (layer->thresholds + 1) * (int64_t)sizeof(int32_t)},
    };
    int64_t bytes = 0;
    for (size_t p = 0; p < sizeof(parts) / sizeof(parts[0]); p++) {
        if (memory) *parts[p].where = part_of(&memory, parts[p].bytes);
        bytes += rounded_up(parts[p].bytes, 64);
    }
    return bytes;
}

static int make_room(const Layer *layer, Room *room) {
    room->padded = rounded_up(layer->length, STRIDE);
    room->flag_stride = layer->length % STEP ? room->padded : layer->length;
    room->memory = aligned_alloc(64, lay_out(layer, room, NULL));
    if (!room->memory) return 0;
    lay_out(layer, room, room->memory);
    memset(room->relations, 0, COPIES * (NO_PAIR + 1) * layer->fine_bins * sizeof(int32_t));
    memset(room->distances, 0, room->padded * (layer->thresholds + 1) * sizeof(int32_t));
    if (room->flag_stride == layer->length) {
        room->flags = layer->flags;
        return 1;
    }
    int8_t *flags = (int8_t *)room->flags;
    memset(flags, NO_PAIR, layer->windows * layer->length * room->flag_stride);
    for (int64_t row = 0; row < layer->windows * layer->length; row++)
        memcpy(flags + row * room->flag_stride, layer->flags + row * layer->length, layer->length);
    return 1;
}

static double *numbers_of(const Layer *layer, int64_t b, int64_t h) {
    return layer->numbers + (b * layer->all_heads + h) * layer->numbers_width;
}

static int64_t *counts_of(const Layer *layer, int64_t b, int64_t h) {
    return layer->counts + (b * layer->all_heads + h) * layer->counts_width;
}

int64_t headscope_layer_bytes(void) { return sizeof(Layer); }

/* Everything that the heads at hand show, over all windows. 0 where there is no memory for it, and nothing is done. */
int headscope_observe(const Layer *layer) {
    Room room;
    if (!make_room(layer, &room)) return 0;
    for (int64_t place = 0; place < layer->heads; place++) {
        const int64_t h = layer->first + place;
        for (int64_t b = 0; b < layer->windows; b++) {
            double *numbers = numbers_of(layer, b, h);
            int64_t *counts = counts_of(layer, b, h);
            observe_attention(layer, &room, b, place, numbers, counts);
            if (is_small(layer)) add_attention(layer, &room, place, b, b + 1);
            numbers[layer->at_mean_vector_share] = mean_vector_share(layer, &room, b, place);
            observe_similarity(layer, &room, b, place, numbers, counts);
            if (b == layer->windows - 1 || layer->group[b + 1] != layer->group[b])
                hand_on_relations(layer, &room, h, layer->group[b]);
        }
        if (!is_small(layer)) add_attention(layer, &room, place, 0, layer->windows);
        hand_on_distances(layer, &room, h);
    }
    free(room.memory);
    return 1;
}

static uint64_t mixed(uint64_t state) {
    state = (state ^ (state >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    state = (state ^ (state >> 27)) * UINT64_C(0x94D049BB133111EB);
    return state ^ (state >> 31);
}

/* `random_pairs.focal_of_random_pairs`, which says what this does. value: (tokens,). counts, focal, included: (layers,
heads). 0 where there is no memory for it. */
int headscope_random_pairs(const int64_t *value, int64_t tokens, int64_t values, const int64_t *counts, int64_t layers,
                           int64_t heads, uint64_t begin, int64_t *focal, int64_t *included) {
    const int64_t pairs = tokens * (tokens - 1) / 2;
    uint32_t *every = malloc((2 * pairs + 1) * sizeof(uint32_t)), *order = every + pairs;
    int64_t *most_after = malloc((2 * pairs + 1 + values) * sizeof(int64_t));
    int64_t *chosen = most_after + pairs + 1, *degree = chosen + pairs;
    if (!every || !most_after) {
        free(every);
        free(most_after);
        return 0;
    }
    int64_t place = 0;
    for (int64_t i = 0; i < tokens; i++)
        for (int64_t j = i + 1; j < tokens; j++) every[place++] = (uint32_t)(value[i] << 16 | value[j]);
    for (int64_t h = 0; h < heads; h++) {
        int64_t wanted = 0, most = 0;
        for (int64_t layer = 0; layer < layers; layer++)
            if (counts[layer * heads + h] > wanted) wanted = counts[layer * heads + h];
        const uint64_t state = begin + (uint64_t)h * UINT64_C(0xD1B54A32D192ED03);
        for (int64_t drawn = 0; drawn < wanted; drawn++) {
            const uint64_t number = mixed(state + (uint64_t)(drawn + 1) * UINT64_C(0x9E3779B97F4A7C15));
            chosen[drawn] = drawn + (int64_t)(((number >> 32) * (uint64_t)(pairs - drawn)) >> 32);
        }
        memcpy(order, every, pairs * sizeof(uint32_t));
        memset(degree, 0, values * sizeof(int64_t));
        for (int64_t drawn = 0; drawn < wanted; drawn++) {
            const uint32_t pair = order[chosen[drawn]];
            order[chosen[drawn]] = order[drawn];
            const int64_t a = pair >> 16, b = pair & 0xFFFF;
            const int64_t with_a = ++degree[a] << 16 | (0xFFFF - a);
            most = with_a > most ? with_a : most;
            degree[b] += a != b;
            const int64_t with_b = degree[b] << 16 | (0xFFFF - b);
            most = with_b > most ? with_b : most;
            most_after[drawn + 1] = most;
        }
        for (int64_t layer = 0; layer < layers; layer++) {
            const int64_t count = counts[layer * heads + h];
            focal[layer * heads + h] = count > 0 ? 0xFFFF - (most_after[count] & 0xFFFF) : -1;
            included[layer * heads + h] = count > 0 ? most_after[count] >> 16 : 0;
        }
    }
    free(every);
    free(most_after);
    return 1;
}
