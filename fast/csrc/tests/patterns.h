/* Elements to feed the core with: the dtypes' sizes, and bit patterns where edges are as frequent as ordinary values. */
#ifndef FC_TESTS_PATTERNS_H
#define FC_TESTS_PATTERNS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { T_BOOL, T_U8, T_U16, T_I8, T_I16, T_I32, T_I64, T_F16, T_BF16, T_F32, T_F64, T_E4M3, T_E5M2, T_COUNT };

static const size_t dtype_size[T_COUNT] = {1, 1, 2, 1, 2, 4, 8, 2, 2, 4, 8, 1, 1};
static const char *const dtype_name[T_COUNT] = {"bool", "u8",   "u16", "i8",  "i16",     "i32",    "i64",
                                                "f16",  "bf16", "f32", "f64", "f8_e4m3", "f8_e5m2"};

/* Marsaglia's xorshift64: all that is asked of it is variety, and that it shares nothing with the streams under test. */
static inline uint64_t pattern_next(uint64_t *state) {
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

/* One element of a dtype: uniform bits, or an edge of its exponent range with mantissa bits near all-zero or all-one. */
static inline uint64_t pattern_element(int dtype, uint64_t *state) {
    const uint64_t r = pattern_next(state), pick = pattern_next(state);
    static const int mantissa_bits[T_COUNT] = {[T_F16] = 10, [T_BF16] = 7, [T_F32] = 23, [T_F64] = 52, [T_E4M3] = 3, [T_E5M2] = 2};
    const int width = (int)(8 * dtype_size[dtype]), mantissa = mantissa_bits[dtype];
    if (dtype == T_BOOL) return pick % 4 ? r & 1 : r; /* now and then a byte that no bool should hold */
    if (pick % 3 == 0) return r;
    if (!mantissa) return pick % 3 == 1 ? (uint64_t)((int64_t)(r % 9) - 4) : (UINT64_C(1) << (width - 1)) + (r % 9) - 4;
    const uint64_t exponent_mask = (UINT64_C(1) << (width - 1 - mantissa)) - 1;
    /* field 0 (subnormals), all ones (inf, NaN), or within the range of the small formats and of the integers */
    const uint64_t near_bias = (exponent_mask >> 1) + (r >> 40) % 96 - 32;
    const uint64_t exponent = pick % 3 == 1 ? (r & 1 ? 0 : exponent_mask) : near_bias;
    const uint64_t low = (r >> 8) % 8, full = (UINT64_C(1) << mantissa) - 1;
    const uint64_t fraction = r & 2 ? (pick >> 8) : r & 4 ? low : full - low;
    return (r >> 63) << (width - 1) | (exponent & exponent_mask) << mantissa | (fraction & full);
}

static inline void pattern_store(void *to, size_t size, uint64_t bits) {
    const uint8_t b8 = (uint8_t)bits;
    const uint16_t b16 = (uint16_t)bits;
    const uint32_t b32 = (uint32_t)bits;
    memcpy(to, size == 1 ? (const void *)&b8 : size == 2 ? (const void *)&b16 : size == 4 ? (const void *)&b32 : (const void *)&bits, size);
}

static inline uint64_t pattern_load(const void *from, size_t size) {
    uint8_t b8;
    uint16_t b16;
    uint32_t b32;
    uint64_t b64;
    switch (size) {
    case 1: return memcpy(&b8, from, 1), b8;
    case 2: return memcpy(&b16, from, 2), b16;
    case 4: return memcpy(&b32, from, 4), b32;
    default: return memcpy(&b64, from, 8), b64;
    }
}

static inline void pattern_fill(int dtype, uint64_t seed, void *to, size_t n) {
    uint64_t state = seed * 2 + 1;
    for (size_t i = 0; i < n; i++) pattern_store((char *)to + i * dtype_size[dtype], dtype_size[dtype], pattern_element(dtype, &state));
}

#endif
