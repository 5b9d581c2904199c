/* Floats and their bit patterns, by a copy of the bytes: no arithmetic, so neither flags nor flushing. */
#ifndef FC_BITS_H
#define FC_BITS_H
#include "core/inline.h"
#include <stdint.h>
#include <string.h>

FC_INLINE uint32_t f32_bits(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
FC_INLINE float f32_value(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
FC_INLINE uint64_t f64_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
FC_INLINE double f64_value(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
