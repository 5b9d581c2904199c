/* The cast loop in plain C: one element after the other, for the compiler to vectorise.  Right on any CPU and byte order. */
#ifndef FC_PLAIN_H
#define FC_PLAIN_H
#include "bridge/element.h"
#include "bridge/pairs.h"
#include "core/kernels.h"

/* Element i of an array of any alignment. */
#define FC_READ(type, name) \
    type name;              \
    memcpy(&name, (const char *)in + i * sizeof name, sizeof name)
#define FC_WRITE(type, value)                                           \
    do {                                                                \
        const type element_ = (type)(value);                            \
        memcpy((char *)out + i * sizeof element_, &element_, sizeof element_); \
    } while (0)

/* The raw pattern, zero-extended. */
FC_INLINE uint64_t load_bits(int source, const void *in, size_t i) {
    switch (fc_size_of(source)) {
    case 1: { FC_READ(uint8_t, x); return x; }
    case 2: { FC_READ(uint16_t, x); return x; }
    case 4: { FC_READ(uint32_t, x); return x; }
    default: { FC_READ(uint64_t, x); return x; }
    }
}

/* Integers of at most 32 bits, and bool (clause BRIDGE-BOOL-2: any byte but 0 is true). */
FC_INLINE int32_t load_i32(int source, const void *in, size_t i) {
    switch (source) {
    case FC_bool: { FC_READ(uint8_t, x); return FC_PLANT(TRUE_ALL_ONES, x != 0, -(x != 0)); }
    case FC_u8: { FC_READ(uint8_t, x); return x; }
    case FC_u16: { FC_READ(uint16_t, x); return x; }
    case FC_i8: { FC_READ(int8_t, x); return x; }
    case FC_i16: { FC_READ(int16_t, x); return x; }
    default: { FC_READ(int32_t, x); return x; }
    }
}

FC_INLINE int64_t load_i64(int source, const void *in, size_t i) {
    if (source != FC_i64) return load_i32(source, in, i);
    FC_READ(int64_t, x);
    return x;
}

/* A source that f32 holds, and i32 rounded once, as f32 bits. */
FC_INLINE uint32_t load_narrow(int source, const void *in, size_t i) {
    switch (source) {
    case FC_f16: { FC_READ(uint16_t, x); return f32_from_f16(x); }
    case FC_bf16: { FC_READ(uint16_t, x); return f32_from_bf16(x); }
    case FC_f32: { FC_READ(uint32_t, x); return x; }
    case FC_f8_e4m3: { FC_READ(uint8_t, x); return f32_from_e4m3(x); }
    case FC_f8_e5m2: { FC_READ(uint8_t, x); return f32_from_e5m2(x); }
    default: return f32_bits((float)load_i32(source, in, i));
    }
}

/* Any source as f64 bits: exact but for i64, which is rounded once, or to odd for a later single rounding. */
FC_INLINE uint64_t load_f64(int source, int mode, const void *in, size_t i) {
    if (source == FC_f64) return load_bits(source, in, i);
    if (source == FC_i64) {
        const int64_t v = load_i64(source, in, i);
        return f64_bits(f64_from_i64(mode & FC_CAST_SINGLE_ROUNDING ? i64_to_odd(v) : v));
    }
    if (is_integer(source)) return f64_bits((double)load_i32(source, in, i));
    return f64_from_f32(load_narrow(source, in, i));
}

/* Any source as f32 bits: what f32 does not hold goes through f64, rounded to odd under single rounding unless f32 is the target. */
FC_INLINE uint32_t load_f32(int source, int target, int mode, const void *in, size_t i) {
    if (FC_PLANTED(F64_F16_ROUNDED_ONCE) && source == FC_f64 && target == FC_f16) mode |= FC_CAST_SINGLE_ROUNDING;
    if (FC_PLANTED(I64_F32_ROUNDED_ONCE) && source == FC_i64 && target == FC_f32) mode |= FC_CAST_SINGLE_ROUNDING;
    const int single = mode & FC_CAST_SINGLE_ROUNDING, wide = source == FC_f64 || source == FC_i64 || (source == FC_i32 && single);
    if (!wide) return load_narrow(source, in, i);
    const uint64_t u = load_f64(source, mode, in, i);
    /* two bits more than the target keeps; the subnormals of bf16 are those of f32, which has these places there too */
    return f32_from_f64(single && target != FC_f32 ? round_to_odd(u, target == FC_bf16 ? 40 : 29) : u);
}

/* Clauses BRIDGE-BOOL-1, BRIDGE-TRUTHY-1: a float is true unless its magnitude bits are all zero. */
FC_INLINE uint8_t truth(int source, const void *in, size_t i) {
    const uint64_t bits = load_bits(source, in, i);
    if (is_integer(source)) return bits != 0;
    const uint64_t sign = UINT64_C(1) << (8 * fc_size_of(source) - 1), magnitude = FC_PLANT(MINUS_ZERO_TRUE, bits & ~sign, bits);
    return FC_PLANT(FLOAT_BOOL_TRUNCATED, magnitude != 0, i64_from_f64(f64_value(load_f64(source, 0, in, i))) != 0);
}

/* Clause BRIDGE-INT-3. */
FC_INLINE int32_t saturated(int source, int32_t low, int32_t high, const void *in, size_t i) {
    if (source == FC_f64) return i32_from_f64(f64_value(load_bits(source, in, i)), low, high);
    return i32_from_f32(f32_value(load_f32(source, FC_f32, 0, in, i)), low, high);
}

FC_INLINE void cast_element(int source, int target, int mode, const void *in, void *out, size_t i) {
#define FC_INTEGER(type, low, high)                                            \
    do {                                                                       \
        if (is_integer(source)) FC_WRITE(type, load_i64(source, in, i));       \
        else FC_WRITE(type, saturated(source, low, high, in, i));              \
    } while (0)
    switch (target) {
    case FC_bool: FC_WRITE(uint8_t, truth(source, in, i)); break;
    case FC_u8: FC_INTEGER(uint8_t, 0, UINT8_MAX); break;
    case FC_u16: FC_INTEGER(uint16_t, 0, UINT16_MAX); break;
    case FC_i8: FC_INTEGER(int8_t, INT8_MIN, INT8_MAX); break;
    case FC_i16: FC_INTEGER(int16_t, INT16_MIN, INT16_MAX); break;
    case FC_i32: FC_INTEGER(int32_t, INT32_MIN, INT32_MAX); break;
    case FC_i64:
        if (is_integer(source)) FC_WRITE(int64_t, load_i64(source, in, i));
        else FC_WRITE(int64_t, i64_from_f64(f64_value(load_f64(source, 0, in, i))));
        break;
    case FC_f16: FC_WRITE(uint16_t, f16_from_f32(load_f32(source, target, mode, in, i), mode)); break;
    case FC_bf16: FC_WRITE(uint16_t, bf16_from_f32(load_f32(source, target, mode, in, i), mode)); break;
    case FC_f32: FC_WRITE(uint32_t, load_f32(source, target, mode, in, i)); break;
    case FC_f64: FC_WRITE(uint64_t, load_f64(source, mode, in, i)); break;
    case FC_f8_e4m3: FC_WRITE(uint8_t, e4m3_from_f32(load_f32(source, target, mode, in, i), mode)); break;
    default: FC_WRITE(uint8_t, e5m2_from_f32(load_f32(source, target, mode, in, i), mode)); break;
    }
#undef FC_INTEGER
}

/* Clauses: BRIDGE-FLOAT-1, BRIDGE-INT-1, BRIDGE-INT-2, BRIDGE-BOOL-2, BRIDGE-SCALAR-2 */
FC_INLINE void cast_elements(int source, int target, int mode, const void *restrict in, void *restrict out, size_t n) {
    if (source == target) {
        memcpy(out, in, n * fc_size_of(source));
        return;
    }
    if (FC_PLANTED(CAST_TAIL_DROPPED) && n > 64) n = n / 16 * 16;
    for (size_t i = 0; i < n; i++) cast_element(source, target, mode, in, out, i);
}

#define FC_CAST_LOOP(source, target, mode, in, out, n, self) cast_elements(FC_##source, FC_##target, mode, in, out, n)

#endif
