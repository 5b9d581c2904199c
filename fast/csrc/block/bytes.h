/* Fields of a packed block: little-endian in memory, at any address. */
#ifndef FC_BLOCK_BYTES_H
#define FC_BLOCK_BYTES_H
#include "bridge/element.h"
#include "core/bits.h"

FC_INLINE uint16_t read_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
FC_INLINE uint32_t read_u32(const uint8_t *p) { return read_u16(p) | (uint32_t)read_u16(p + 2) << 16; }
FC_INLINE void write_u16(uint8_t *p, uint16_t x) {
    p[0] = (uint8_t)x;
    p[1] = (uint8_t)(x >> 8);
}
FC_INLINE void write_u32(uint8_t *p, uint32_t x) {
    write_u16(p, (uint16_t)x);
    write_u16(p + 2, (uint16_t)(x >> 16));
}

/* A scale field: an f16, widened exactly, or rounded to nearest even; where a NaN is stored its sign must not depend on the
   processor (BLOCK-ROUND-1). */
FC_INLINE float read_scale(const uint8_t *p) { return f32_value(f32_from_f16(read_u16(p))); }
FC_INLINE uint16_t f16_of(float x) { return (uint16_t)(x == x ? f16_from_f32(f32_bits(x), 0) : 0xfe00); }
FC_INLINE float widened(uint16_t h) { return f32_value(f32_from_f16(h)); }

#endif
