/* Attention as nearly all families write it out: softmax(Q Kᵀ · scaling + mask) V, some heads of a layer in all windows
of a batch. `compiled_attention.py` calls it, after it has shown that a model's own function is this.

A row of A is made while it is in the cache, and multiplied with the values at once. Where a mask ends a row, as in a
decoder, nothing is computed that is 0. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

/* TOGETHER rows of A are made before they are multiplied with V. In registers, at once: ROWS by COLUMNS of Q times the
transpose of K, and OF_TOGETHER by VALUES of A times V. */
enum { TOGETHER = 8, ROWS = 4, ACROSS = REGISTER == 64 ? 4 : 2, COLUMNS = ACROSS * AT_ONCE };
enum { OF_TOGETHER = REGISTER == 64 ? 8 : 4, VALUES = 2 * AT_ONCE };

/* Field for field what `compiled_attention.Call` declares. B windows, H heads at hand, of which `first` is the number of
the first among all heads of the layer; `sharing` neighbouring heads have one key. Strides count elements; the last axis
of each array is dense, and the attention wholly. */
typedef struct {
    int64_t windows, heads, first, sharing, queries, keys, width, value_width;
    int64_t query_window, query_head, query_token;
    int64_t key_window, key_head, key_token;
    int64_t value_window, value_head, value_token;
    int64_t output_window, output_head, output_token;
    int64_t mask_window, mask_head, mask_token;
    int64_t end_window, end_head, end_token;
    int64_t adds;
    double scaling;
    const float *query, *key, *value; /* (B, all heads, S, d), (B, G, K, d), (B, G, K, e) */
    float *output, *attention;        /* (B, all heads, S, e), (B, H, S, K) */
    const float *mask;                /* (B, all heads, S, K): added to the scores; or NULL */
    const int64_t *end;               /* (B, all heads, S): after the last key that a query looks at; or NULL */
    /* adds: whether the mask does anything but hide what lies behind an end. */
} Call;

/* Room for one head and window. P is K rounded up to COLUMNS, E is e rounded up to VALUES. */
typedef struct {
    int64_t padded, value_padded;
    float *transposed; /* (d, P): keys */
    float *values;     /* (P, E) */
    float *rows;       /* (TOGETHER, P) */
    int bounded;       /* whether no score and no value can be infinite or NaN */
    void *memory;
} Room;

static const float LOWEST = -87.0f; /* e to what is lower counts as 0 */

static int64_t rounded_up(int64_t size, int64_t to) { return (size + to - 1) / to * to; }

/* e to the x, for x up to 0: as a power of 2 and a polynomial, to the last bit or the one before. NaN stays NaN. */
static inline Floats exponential(Floats x) {
    const Floats lowest = (Floats){} + LOWEST, bounded = larger_float(lowest, x);
    const Floats to_whole = (Floats){} + 12582912.0f; /* 1.5 * 2^23: what is added to it is rounded */
    const Floats shifted = bounded * 1.44269504088896341f + to_whole, power = shifted - to_whole;
    const Floats rest = (bounded - power * 0.693359375f) - power * -2.12194440e-4f;
    Floats sum = (Floats){} + 1.9875691500e-4f;
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    sum = sum * rest * rest + rest + 1.0f;
    const Ints exponent = ((Ints)shifted - (Ints)to_whole + 127) << 23;
    return kept(~above(lowest, x), sum * (Floats)exponent);
}

/* The sum of the squares of `count` vectors, `stride` apart. */
static float squares(const float *vectors, int64_t stride, int64_t count, int64_t width) {
    Floats sum = {};
    float rest = 0;
    for (int64_t i = 0; i < count; i++, vectors += stride) {
        int64_t k = 0;
        for (; k + AT_ONCE <= width; k += AT_ONCE) sum += floats_at(vectors + k) * floats_at(vectors + k);
        for (; k < width; k++) rest += vectors[k] * vectors[k];
    }
    return sum_of(sum) + rest;
}

static void pad_values(const Call *call, Room *room, const float *value) {
    for (int64_t j = 0; j < call->keys; j++)
        memcpy(room->values + j * room->value_padded, value + j * call->value_token, call->value_width * sizeof(float));
}

/* After the last key that query i of a head looks at. Where there may be infinity it looks at all: 0 times infinity is
no 0, and what is hidden shows. */
static inline int64_t end_of(const Call *call, const Room *room, int64_t b, int64_t h, int64_t i) {
    if (!call->end || !room->bounded) return call->keys;
    const int64_t end = call->end[b * call->end_window + h * call->end_head + i * call->end_token];
    return end < call->keys ? end : call->keys;
}

/* The scores of ROWS queries, from row i on, before they are scaled. */
static void multiply_keys(const Call *call, Room *room, const float *query, int64_t i, float *rows, int64_t end) {
    const int64_t padded = room->padded, last = call->queries - 1;
    const float *row[ROWS];
    for (int r = 0; r < ROWS; r++) row[r] = query + (i + r < last ? i + r : last) * call->query_token;
    for (int64_t j = 0; j < end; j += COLUMNS) {
        Floats sums[ROWS][ACROSS] = {};
        const float *column = room->transposed + j;
        for (int64_t k = 0; k < call->width; k++, column += padded)
            for (int r = 0; r < ROWS; r++)
                for (int c = 0; c < ACROSS; c++) sums[r][c] += floats_at(column + c * AT_ONCE) * row[r][k];
        for (int r = 0; r < ROWS; r++)
            for (int c = 0; c < ACROSS; c++) *(Floats *)(rows + r * padded + j + c * AT_ONCE) = sums[r][c];
    }
}

/* One row of scores -> attention, 0 from `end` to `to`. */
static void soften(const Call *call, float *row, const float *mask, int64_t end, int64_t to) {
    const float scaling = (float)call->scaling;
    Floats most = (Floats){} - INFINITY, sum = {};
    for (int64_t j = end; j < rounded_up(end, AT_ONCE); j++) row[j] = -INFINITY;
    for (int64_t j = 0; j < end; j += AT_ONCE) {
        Floats scaled = floats_at(row + j) * scaling;
        if (mask) {
            float added[AT_ONCE] = {};
            memcpy(added, mask + j, (j + AT_ONCE <= end ? AT_ONCE : end - j) * sizeof(float));
            scaled += floats_at(added);
        }
        *(Floats *)(row + j) = scaled;
        most = larger_float(most, scaled);
    }
    const float top = largest_of(most);
    for (int64_t j = 0; j < end; j += AT_ONCE) {
        const Floats raised = exponential(floats_at(row + j) - top);
        *(Floats *)(row + j) = raised;
        sum += raised;
    }
    const float share = 1 / sum_of(sum);
    for (int64_t j = 0; j < end; j += AT_ONCE) *(Floats *)(row + j) = floats_at(row + j) * share;
    memset(row + end, 0, (to - end) * sizeof(float));
}

/* Z of OF_TOGETHER queries, from row i on. */
static void multiply_values(const Call *call, Room *room, const float *rows, int64_t i, int64_t end, float *output) {
    for (int64_t e = 0; e < call->value_width; e += VALUES) {
        Floats sums[OF_TOGETHER][2] = {};
        const float *value = room->values + e;
        for (int64_t j = 0; j < end; j++, value += room->value_padded)
            for (int r = 0; r < OF_TOGETHER; r++)
                for (int c = 0; c < 2; c++) sums[r][c] += floats_at(value + c * AT_ONCE) * rows[r * room->padded + j];
        const int64_t wanted = call->value_width - e < VALUES ? call->value_width - e : VALUES;
        for (int r = 0; r < OF_TOGETHER && i + r < call->queries; r++)
            memcpy(output + (i + r) * call->output_token + e, sums[r], wanted * sizeof(float));
    }
}

static void attend(const Call *call, Room *room, int64_t b, int64_t place) {
    const int64_t h = call->first + place, padded = room->padded;
    const int adds = call->mask && (call->adds || !room->bounded);
    const float *mask = adds ? call->mask + b * call->mask_window + h * call->mask_head : NULL;
    const float *query = call->query + b * call->query_window + h * call->query_head;
    float *attention = call->attention + (b * call->heads + place) * call->queries * call->keys;
    float *output = call->output + b * call->output_window + h * call->output_head;
    for (int64_t i = 0; i < call->queries; i += TOGETHER) {
        int64_t end = 0;
        for (int64_t r = i; r < i + TOGETHER && r < call->queries; r++)
            if (end_of(call, room, b, h, r) > end) end = end_of(call, room, b, h, r);
        for (int64_t r = 0; r < TOGETHER; r += ROWS)
            multiply_keys(call, room, query, i + r, room->rows + r * padded, end);
        for (int64_t r = 0; r < TOGETHER; r++) {
            float *row = room->rows + r * padded;
            if (i + r >= call->queries) break;
            soften(call, row, mask ? mask + (i + r) * call->mask_token : NULL, end_of(call, room, b, h, i + r), end);
            memcpy(attention + (i + r) * call->keys, row, end * sizeof(float));
            memset(attention + (i + r) * call->keys + end, 0, (call->keys - end) * sizeof(float));
        }
        for (int64_t r = 0; r < TOGETHER; r += OF_TOGETHER)
            multiply_values(call, room, room->rows + r * padded, i + r, end, output);
    }
}

static int make_room(const Call *call, Room *room) {
    room->padded = rounded_up(call->keys, COLUMNS);
    room->value_padded = rounded_up(call->value_width, VALUES);
    const int64_t transposed = rounded_up(call->width, AT_ONCE) * room->padded;
    const int64_t values = call->keys * room->value_padded, rows = TOGETHER * room->padded;
    const int64_t bytes = rounded_up((transposed + values + rows) * (int64_t)sizeof(float), 64);
    room->memory = aligned_alloc(64, bytes);
    if (!room->memory) return 0;
    memset(room->memory, 0, bytes);
    room->transposed = room->memory;
    room->values = room->transposed + transposed;
    room->rows = room->values + values;
    return 1;
}

/* Whether this build has registers that make it faster than what torch does. */
int headscope_has_wide_registers(void) { return REGISTER >= 32; }

int64_t headscope_call_bytes(void) { return sizeof(Call); }

/* A and Z of the heads at hand, in all windows. 0 where there is no memory for it, and nothing is done. */
int headscope_attend(const Call *call) {
    Room room = {};
    if (!make_room(call, &room)) return 0;
    for (int64_t b = 0; b < call->windows; b++) {
        int64_t packed = -1;
        float of_keys = 0;
        for (int64_t place = 0; place < call->heads; place++) {
            const int64_t h = call->first + place, g = h / call->sharing;
            if (g != packed) {
                const float *key = call->key + b * call->key_window + g * call->key_head;
                const float *value = call->value + b * call->value_window + g * call->value_head;
                transpose(key, call->key_token, call->keys, call->width, room.transposed, room.padded);
                pad_values(call, &room, value);
                of_keys = squares(key, call->key_token, call->keys, call->width) +
                          squares(value, call->value_token, call->keys, call->value_width);
                packed = g;
            }
            const float *query = call->query + b * call->query_window + h * call->query_head;
            room.bounded = isfinite(of_keys + squares(query, call->query_token, call->queries, call->width));
            attend(call, &room, b, place);
        }
    }
    free(room.memory);
    return 1;
}
