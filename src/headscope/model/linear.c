/* What the linear layers of a model multiply: X Wᵀ + b, in the widest registers. `compiled_linear.py` calls it, after it
has shown that torch puts out the same, to the last bit.

Each sum is that of its DEEP-long parts, one after the other, and goes through each part in order: as MKL does it, which
torch multiplies with, where it makes use of narrower registers than the machine has. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

/* TALL rows by WIDE columns of the result are summed at once, in registers. PANELS of WIDE columns of Wᵀ, DEEP long, lie
in the cache together, so that rows are fetched less often. */
enum { DEEP = 192, TALL = 8, ACROSS = REGISTER == 64 ? 3 : 1, WIDE = ACROSS * AT_ONCE, PANELS = 8 };

/* Field for field what `compiled_linear.Product` declares. Strides count elements; rows are dense. One of the strides of
the weights is 1: by `weight_in` one goes from what enters to the next that does, by `weight_out` to what comes out. */
typedef struct {
    int64_t rows, in, out, given_row, weight_in, weight_out;
    const float *given, *weight, *bias; /* (rows, in), (out, in) or (in, out), (out,) or NULL */
    float *result;                      /* (rows, out) */
} Product;

static int64_t smaller_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* WIDE columns of Wᵀ from n on, zeros after the last: (deep, WIDE). */
static void pack(const Product *of, int64_t n, int64_t k, int64_t deep, float *restrict panel) {
    const int64_t wide = smaller_of(of->out - n, WIDE);
    const float *weight = of->weight + n * of->weight_out + k * of->weight_in;
    if (of->weight_in == 1) {
        transpose(weight, of->weight_out, wide, deep, panel, WIDE);
        return;
    }
    for (int64_t i = 0; i < deep; i++) {
        memcpy(panel + i * WIDE, weight + i * of->weight_in, wide * sizeof(float));
        memset(panel + i * WIDE + wide, 0, (WIDE - wide) * sizeof(float));
    }
}

/* Add to TALL rows of the result, from row m and column n on, what `deep` of their products make, from k on. */
static void add_tile(const Product *of, const float *restrict panel, int64_t m, int64_t n, int64_t k, int64_t deep) {
    const int64_t wide = smaller_of(of->out - n, WIDE);
    const float *row[TALL];
    for (int r = 0; r < TALL; r++) row[r] = of->given + smaller_of(m + r, of->rows - 1) * of->given_row + k;
    Floats sums[TALL][ACROSS] = {};
    for (int64_t i = 0; i < deep; i++, panel += WIDE)
        for (int r = 0; r < TALL; r++)
            for (int c = 0; c < ACROSS; c++) sums[r][c] += floats_at(panel + c * AT_ONCE) * row[r][i];
    for (int r = 0; r < TALL && m + r < of->rows; r++) {
        float *result = of->result + (m + r) * of->out + n, part[WIDE];
        memcpy(part, sums[r], sizeof(part));
        if (k)
            for (int64_t j = 0; j < wide; j++) result[j] += part[j];
        else if (of->bias)
            for (int64_t j = 0; j < wide; j++) result[j] = of->bias[n + j] + part[j];
        else
            memcpy(result, part, wide * sizeof(float));
    }
}

/* Whether this build has registers wider than those that MKL makes use of on any processor. */
int headscope_has_widest_registers(void) { return REGISTER == 64; }

int64_t headscope_product_bytes(void) { return sizeof(Product); }

/* 0 where there is no memory for it, and nothing is done. */
int headscope_multiply(const Product *of) {
    float *panels = aligned_alloc(64, PANELS * DEEP * WIDE * sizeof(float));
    if (!panels) return 0;
    for (int64_t k = 0; k < of->in; k += DEEP) {
        const int64_t deep = smaller_of(of->in - k, DEEP);
        for (int64_t begin = 0; begin < of->out; begin += PANELS * WIDE) {
            const int64_t end = smaller_of(begin + PANELS * WIDE, of->out);
            for (int64_t n = begin; n < end; n += WIDE) pack(of, n, k, deep, panels + (n - begin) * DEEP);
            for (int64_t m = 0; m < of->rows; m += TALL)
                for (int64_t n = begin; n < end; n += WIDE) add_tile(of, panels + (n - begin) * DEEP, m, n, k, deep);
        }
    }
    free(panels);
    return 1;
}
