/* Several numbers at once, in registers as wide as the machine has them.

Vectors are those of GCC and Clang. One that is wider than a register would be taken apart by GCC and carried through
memory number by number, so none is: a row is gone through AT_ONCE numbers at a time, and their doubles, which are twice
as wide, lie in two registers. Sums of doubles are kept in LANES parts on every machine, so that the order of additions
is the same: number j of a row belongs to lane j % LANES. */

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { REGISTER = 64 };
#elif defined(__AVX2__)
enum { REGISTER = 32 };
#else
enum { REGISTER = 16 };
#endif
enum { AT_ONCE = REGISTER / 4, HALVES = 2, LANES = 8, PARTS = LANES * 8 / REGISTER };
enum { STEP = AT_ONCE > LANES ? AT_ONCE : LANES, GROUPS_OF_STEP = STEP / AT_ONCE };
/* STEP numbers are whole groups of lanes and whole registers. */

typedef float Floats __attribute__((vector_size(REGISTER), aligned(4), may_alias));
typedef int32_t Ints __attribute__((vector_size(REGISTER), aligned(4), may_alias));
typedef double Half __attribute__((vector_size(REGISTER), aligned(8), may_alias));
typedef struct {
    Half half[HALVES];
} Doubles;
typedef struct {
    Half part[PARTS];
} LaneSums;

static inline Floats floats_at(const float *from) { return *(const Floats *)from; }

/* What GCC makes of these in general takes several instructions; where the machine has one, it is named. `larger_float`
is the second where either is NaN. */
#if defined(__AVX512F__)
typedef __mmask16 Mask;
static inline Mask has(Ints v, int32_t bit) { return _mm512_test_epi32_mask((__m512i)v, _mm512_set1_epi32(bit)); }
static inline Mask has_not(Ints v, int32_t bit) { return _mm512_testn_epi32_mask((__m512i)v, _mm512_set1_epi32(bit)); }
static inline Mask above(Floats a, Floats b) { return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ); }
static inline Mask is_less(Ints a, Ints b) { return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b); }
static inline Floats kept(Mask mask, Floats v) { return (Floats)_mm512_maskz_mov_ps(mask, (__m512)v); }
static inline Ints either(Mask mask, Ints one, Ints other) {
    return (Ints)_mm512_mask_mov_epi32((__m512i)other, mask, (__m512i)one);
}
static inline Ints larger(Ints a, Ints b) { return (Ints)_mm512_max_epi32((__m512i)a, (__m512i)b); }
static inline Ints smaller(Ints a, Ints b) { return (Ints)_mm512_min_epi32((__m512i)a, (__m512i)b); }
static inline Floats larger_float(Floats a, Floats b) { return (Floats)_mm512_max_ps((__m512)a, (__m512)b); }
static inline Ints ints_at(const int8_t *from) {
    return (Ints)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from));
}
static inline void put_shorts(int16_t *to, Mask v) { _mm256_storeu_si256((__m256i *)to, _mm256_movm_epi16(v)); }
static inline int64_t number_of(Mask v) { return __builtin_popcount(v); }
static inline Doubles as_doubles(Floats v) {
    return (Doubles){{(Half)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v)),
                      (Half)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1))}};
}
static inline Ints as_ints(Doubles v) {
    const __m256i low = _mm512_cvttpd_epi32((__m512d)v.half[0]), high = _mm512_cvttpd_epi32((__m512d)v.half[1]);
    return (Ints)_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
#else
typedef Ints Mask; /* all bits set, or none */
static inline Mask has(Ints v, int32_t bit) { return (v & bit) != 0; }
static inline Mask has_not(Ints v, int32_t bit) { return (v & bit) == 0; }
static inline Mask above(Floats a, Floats b) { return a > b; }
static inline Mask is_less(Ints a, Ints b) { return a < b; }
static inline Floats kept(Mask mask, Floats v) { return (Floats)((Ints)v & mask); }
#if defined(__AVX2__)
static inline Ints either(Mask mask, Ints one, Ints other) {
    return (Ints)_mm256_blendv_epi8((__m256i)other, (__m256i)one, (__m256i)mask);
}
static inline Ints larger(Ints a, Ints b) { return (Ints)_mm256_max_epi32((__m256i)a, (__m256i)b); }
static inline Ints smaller(Ints a, Ints b) { return (Ints)_mm256_min_epi32((__m256i)a, (__m256i)b); }
static inline Floats larger_float(Floats a, Floats b) { return (Floats)_mm256_max_ps((__m256)a, (__m256)b); }
static inline Ints ints_at(const int8_t *from) {
    return (Ints)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from));
}
static inline void put_shorts(int16_t *to, Mask v) {
    const __m128i low = _mm256_castsi256_si128((__m256i)v), high = _mm256_extracti128_si256((__m256i)v, 1);
    _mm_storeu_si128((__m128i *)to, _mm_packs_epi32(low, high));
}
static inline int64_t number_of(Mask v) { return __builtin_popcount(_mm256_movemask_ps((__m256)v)); }
static inline Doubles as_doubles(Floats v) {
    return (Doubles){{(Half)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v)),
                      (Half)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1))}};
}
static inline Ints as_ints(Doubles v) {
    return (Ints)_mm256_set_m128i(_mm256_cvttpd_epi32((__m256d)v.half[1]), _mm256_cvttpd_epi32((__m256d)v.half[0]));
}
#else
static inline Ints either(Mask mask, Ints one, Ints other) { return (one & mask) | (other & ~mask); }
static inline Ints larger(Ints a, Ints b) { return either(a > b, a, b); }
static inline Ints smaller(Ints a, Ints b) { return either(a < b, a, b); }
static inline Floats larger_float(Floats a, Floats b) { return (Floats)either(a > b, (Ints)a, (Ints)b); }
static inline Ints ints_at(const int8_t *from) { return (Ints){from[0], from[1], from[2], from[3]}; }
static inline void put_shorts(int16_t *to, Mask v) {
    for (int n = 0; n < AT_ONCE; n++) to[n] = (int16_t)v[n];
}
static inline int64_t number_of(Mask v) { return -((int64_t)v[0] + v[1] + v[2] + v[3]); }
#if defined(__SSE2__)
static inline Doubles as_doubles(Floats v) {
    return (Doubles){{(Half)_mm_cvtps_pd((__m128)v), (Half)_mm_cvtps_pd(_mm_movehl_ps((__m128)v, (__m128)v))}};
}
static inline Ints as_ints(Doubles v) {
    return (Ints)_mm_unpacklo_epi64(_mm_cvttpd_epi32((__m128d)v.half[0]), _mm_cvttpd_epi32((__m128d)v.half[1]));
}
#else
static inline Doubles as_doubles(Floats v) { return (Doubles){{{v[0], v[1]}, {v[2], v[3]}}}; }
static inline Ints as_ints(Doubles v) {
    return (Ints){(int32_t)v.half[0][0], (int32_t)v.half[0][1], (int32_t)v.half[1][0], (int32_t)v.half[1][1]};
}
#endif
#endif
#endif

static inline Mask both(Mask a, Mask b) { return a & b; }
static inline Ints at_least(Ints v, int32_t least) { return larger(v, (Ints){} + least); }
static inline Ints at_most(Ints v, int32_t most) { return smaller(v, (Ints){} + most); }
/* 0, 1, 2, ... */
static inline Ints counted_up(void) {
    Ints places;
    for (int n = 0; n < AT_ONCE; n++) places[n] = n;
    return places;
}

/* (v + offset) * scale */
static inline Doubles scaled(Doubles v, double offset, double scale) {
    for (int n = 0; n < HALVES; n++) v.half[n] = (v.half[n] + offset) * scale;
    return v;
}
/* Of group `g` of a step. */
static inline void add_squares(LaneSums *to, int g, Doubles v) {
    for (int n = 0; n < HALVES; n++) to->part[(g * HALVES + n) % PARTS] += v.half[n] * v.half[n];
}
/* The numbers that the mask keeps; v: the same as doubles. */
static inline void add_kept(LaneSums *to, int g, Mask mask, Floats row, Doubles v) {
#if defined(__AVX512F__)
    (void)row, (void)g;
    to->part[0] = (Half)_mm512_mask_add_pd((__m512d)to->part[0], (__mmask8)mask, (__m512d)to->part[0], (__m512d)v.half[0]);
    to->part[0] =
        (Half)_mm512_mask_add_pd((__m512d)to->part[0], (__mmask8)(mask >> 8), (__m512d)to->part[0], (__m512d)v.half[1]);
#else
    v = as_doubles(kept(mask, row));
    for (int n = 0; n < HALVES; n++) to->part[(g * HALVES + n) % PARTS] += v.half[n];
#endif
}
static inline double total_of(const LaneSums *sums) {
    double lanes[LANES], total = 0;
    memcpy(lanes, sums, sizeof(lanes));
    for (int lane = 0; lane < LANES; lane++) total += lanes[lane];
    return total;
}

/* Half with half, as often as it takes: operations that wait for each other are few. */
static inline float largest_of(Floats v) {
    float lanes[AT_ONCE];
    memcpy(lanes, &v, sizeof(lanes));
    for (int left = AT_ONCE / 2; left; left /= 2)
        for (int n = 0; n < left; n++) lanes[n] = lanes[n + left] > lanes[n] ? lanes[n + left] : lanes[n];
    return lanes[0];
}
static inline float sum_of(Floats v) {
    float lanes[AT_ONCE];
    memcpy(lanes, &v, sizeof(lanes));
    for (int left = AT_ONCE / 2; left; left /= 2)
        for (int n = 0; n < left; n++) lanes[n] += lanes[n + left];
    return lanes[0];
}

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t FourInts __attribute__((vector_size(16)));

/* rows (count, width), `stride` apart, -> columns (width, padded), of which the first `count` are written, and zeros up to
`padded`. */
static inline void transpose(const float *rows, int64_t stride, int64_t count, int64_t width, float *restrict columns,
                             int64_t padded) {
    const int64_t whole = count / 4 * 4, wide = width / 4 * 4;
    for (int64_t i = 0; i < whole; i += 4) {
        const float *row = rows + i * stride;
        float *restrict to = columns + i;
        for (int64_t k = 0; k < wide; k += 4) {
            const Four a = *(const Four *)(row + k), b = *(const Four *)(row + stride + k);
            const Four c = *(const Four *)(row + 2 * stride + k), d = *(const Four *)(row + 3 * stride + k);
            const Four ab = __builtin_shuffle(a, b, (FourInts){0, 4, 1, 5}), ba = __builtin_shuffle(a, b, (FourInts){2, 6, 3, 7});
            const Four cd = __builtin_shuffle(c, d, (FourInts){0, 4, 1, 5}), dc = __builtin_shuffle(c, d, (FourInts){2, 6, 3, 7});
            *(Four *)(to + k * padded) = __builtin_shuffle(ab, cd, (FourInts){0, 1, 4, 5});
            *(Four *)(to + (k + 1) * padded) = __builtin_shuffle(ab, cd, (FourInts){2, 3, 6, 7});
            *(Four *)(to + (k + 2) * padded) = __builtin_shuffle(ba, dc, (FourInts){0, 1, 4, 5});
            *(Four *)(to + (k + 3) * padded) = __builtin_shuffle(ba, dc, (FourInts){2, 3, 6, 7});
        }
        for (int64_t k = wide; k < width; k++)
            for (int64_t n = 0; n < 4; n++) to[k * padded + n] = row[n * stride + k];
    }
    for (int64_t k = 0; k < width; k++) {
        for (int64_t i = whole; i < count; i++) columns[k * padded + i] = rows[i * stride + k];
        for (int64_t i = count; i < padded; i++) columns[k * padded + i] = 0;
    }
}
