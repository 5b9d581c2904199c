/*
 * Correctly rounded ln, sin and cos in fixed point (clause NUM-ELEM-1).
 *
 * A number is n fraction limbs w[0..n-1] and an integer limb w[n], 64 bits each, the lowest first; it is never negative,
 * signs are kept apart.  A series is summed with an error below ERROR units of its last place.  When value - ERROR and
 * value + ERROR round to the same double, that is the answer; otherwise the work is repeated with one more limb.
 *
 * ERROR: every operation rounds down by less than a unit.  A term takes three of them and inherits less than its
 * predecessor's error, so it is off by less than 8 units; there are at most 110 terms (artanh: ratio 0.03; sine and cosine:
 * 0.62 / 2 and falling), doubled for the logarithm: 1760.  e * ln 2 adds 1074, or five times pi/2 adds 5.  Less than 4096.
 *
 * The loop ends: apart from the exact cases, taken out first, the results are transcendental and never lie on a border.
 * How close they come is a matter of chance: among the fewer than 2^64 arguments the closest is expected some 2^-117 of
 * the value away, and 8 limbs reach 2^-390.
 */
#include "rng/exact.h"
#include "rng/unit.h"
#include <stdlib.h>
#ifdef FC_FAULTS
#include <math.h>
#endif

enum { FX_LIMBS = 8, ERROR = 4096 };
#include "rng/exact_constants.h"

typedef struct { uint64_t w[FX_LIMBS + 1]; } fixed;

FC_INLINE fixed fixed_constant(const uint64_t *limbs, int n) {
    fixed r = {{0}};
    memcpy(r.w, limbs + FX_LIMBS - n, sizeof r.w[0] * (size_t)(n + 1));
    return r;
}
/* mantissa * 2^exponent, rounded down */
FC_INLINE fixed fixed_of(uint64_t mantissa, int exponent, int n) {
    fixed r = {{0}};
    const int at = 64 * n + exponent;
    if (at < 0) {
        if (at > -64) r.w[0] = mantissa >> -at;
        return r;
    }
    r.w[at / 64] = mantissa << at % 64;
    if (at % 64 && at / 64 < n) r.w[at / 64 + 1] = mantissa >> (64 - at % 64);
    return r;
}
FC_INLINE int is_zero(const fixed *a, int n) {
    uint64_t any = 0;
    for (int i = 0; i <= n; i++) any |= a->w[i];
    return any == 0;
}
FC_INLINE int is_less(const fixed *a, const fixed *b, int n) {
    for (int i = n; i >= 0; i--)
        if (a->w[i] != b->w[i]) return a->w[i] < b->w[i];
    return 0;
}
FC_INLINE fixed add(const fixed *a, const fixed *b, int n) {
    fixed r = {{0}};
    fc_u128 carry = 0;
    for (int i = 0; i <= n; i++) {
        carry += (fc_u128)a->w[i] + b->w[i];
        r.w[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return r;
}
/* a >= b */
FC_INLINE fixed subtract(const fixed *a, const fixed *b, int n) {
    fixed r = {{0}};
    uint64_t borrow = 0;
    for (int i = 0; i <= n; i++) {
        const fc_u128 d = (fc_u128)a->w[i] - b->w[i] - borrow;
        r.w[i] = (uint64_t)d;
        borrow = (uint64_t)(d >> 64) & 1;
    }
    return r;
}
/* a and b with signs (1: negative): returns the magnitude of the sum and sets its sign */
FC_INLINE fixed add_signed(int a_sign, const fixed *a, int b_sign, const fixed *b, int *sign, int n) {
    const int b_leads = a_sign != b_sign && is_less(a, b, n);
    *sign = b_leads ? b_sign : a_sign;
    if (a_sign == b_sign) return add(a, b, n);
    return b_leads ? subtract(b, a, n) : subtract(a, b, n);
}
FC_INLINE fixed times(const fixed *a, uint64_t k, int n) {
    fixed r = {{0}};
    fc_u128 carry = 0;
    for (int i = 0; i <= n; i++) {
        carry += (fc_u128)a->w[i] * k;
        r.w[i] = (uint64_t)carry;
        carry >>= 64;
    }
    return r;
}
FC_INLINE fixed divide(const fixed *a, uint64_t k, int n) {
    fixed r = {{0}};
    uint64_t rest = 0;
    for (int i = n; i >= 0; i--) {
        const fc_u128 dividend = (fc_u128)rest << 64 | a->w[i];
        r.w[i] = (uint64_t)(dividend / k);
        rest = (uint64_t)(dividend % k);
    }
    return r;
}
FC_INLINE fixed multiply(const fixed *a, const fixed *b, int n) {
    uint64_t product[2 * FX_LIMBS + 2] = {0};
    fixed r = {{0}};
    for (int i = 0; i <= n; i++) {
        fc_u128 carry = 0;
        for (int j = 0; j <= n; j++) {
            carry += (fc_u128)a->w[i] * b->w[j] + product[i + j];
            product[i + j] = (uint64_t)carry;
            carry >>= 64;
        }
        product[i + n + 1] = (uint64_t)carry;
    }
    memcpy(r.w, product + n, sizeof r.w[0] * (size_t)(n + 1));
    return r;
}

/* significand * 2^exponent for a significand in [2^52, 2^53] and a normal result, by its bits */
static double assembled(uint64_t significand, int exponent) {
    return f64_value(((uint64_t)(exponent + 1074) << 52) + significand); /* the leading one adds 1 to the exponent field */
}
/* to nearest, ties to even; a is no subnormal double */
FC_INLINE double nearest(const fixed *a, int n) {
    int top = n;
    while (top >= 0 && !a->w[top]) top--;
    if (top < 0) return 0;
    const int lead = __builtin_clzll(a->w[top]);
    uint64_t leading = a->w[top] << lead, rest = 0;
    if (top) {
        if (lead) leading |= a->w[top - 1] >> (64 - lead);
        rest = a->w[top - 1] << lead;
    }
    for (int i = top - 2; i >= 0; i--) rest |= a->w[i];
    const uint64_t half = 0x400, below = leading & 0x7ff, significand = leading >> 11;
    const uint64_t up = below > half || (below == half && (rest || (significand & 1)));
    return assembled(significand + up, 64 * (top - n) - lead + 11);
}
/* Whether everything within ERROR units of a rounds to one double, which is then the result. */
FC_INLINE int settled(int negative, const fixed *a, int n, double *result) {
    const fixed error = {{ERROR}};
    if (!is_less(&error, a, n)) return 0;
    const fixed low = subtract(a, &error, n), high = add(a, &error, n);
    const double x = nearest(&low, n);
    if (x != nearest(&high, n)) return 0;
    *result = negative ? -x : x;
    return 1;
}

static const double not_a_number = __builtin_nan("");

/* x = mantissa * 2^exponent for a positive finite x; mantissa in [2^52, 2^53) unless x is subnormal */
static uint64_t taken_apart(double x, int *exponent) {
    const uint64_t bits = f64_bits(x), field = bits >> 52, fraction = bits & (UINT64_C(0xfffffffffffff));
    *exponent = (field ? (int)field : 1) - 1075;
    return field ? fraction | UINT64_C(1) << 52 : fraction;
}

/* ln(m / whole) + e ln 2 with n limbs, if they settle it.
   ln y = 2 artanh s = 2 (s + s^3/3 + s^5/5 + ...), s = (y - 1) / (y + 1), |s| < 0.172 */
FC_INLINE int ln_with(uint64_t m, uint64_t whole, int e, int n, double *result) {
    const int negative = m < whole;
    const fixed difference = fixed_of(negative ? whole - m : m - whole, 0, n), s = divide(&difference, m + whole, n);
    const fixed square = multiply(&s, &s, n);
    fixed term = s, sum = s;
    for (uint64_t k = 3; !is_zero(&term, n); k += 2) {
        term = multiply(&term, &square, n);
        const fixed part = divide(&term, k, n);
        sum = add(&sum, &part, n);
    }
    sum = times(&sum, 2, n);
    const fixed ln2 = fixed_constant(LN_2, n), scaled = times(&ln2, (uint64_t)(e < 0 ? -e : e), n);
    int sign;
    const fixed total = add_signed(negative, &sum, e < 0, &scaled, &sign, n);
    return settled(sign, &total, n, result);
}

/* Clause: NUM-ELEM-1.  x > 0 and finite, NaN otherwise.  x = 2^e m / whole with m / whole in [0.7, 1.42) */
double fc_ln(double x) {
    if (!(x > 0 && x < __builtin_inf())) return not_a_number;
    if (x == 1) return 0;
#ifdef FC_FAULTS
    if (FC_PLANTED(LIBM_LOG)) return log(x);
#endif
    int e;
    uint64_t m = taken_apart(x, &e);
    const int lead = __builtin_clzll(m) - 11;
    m <<= lead; /* in [2^52, 2^53) */
    e += 52 - lead;
    const uint64_t one = UINT64_C(1) << 52;
    uint64_t whole = one; /* what m counts as 1 */
    if (m > UINT64_C(0x16a09e667f3bcd)) {
        whole = one << 1;
        e++;
    }
    double result = not_a_number;
    if (ln_with(m, whole, e, 2, &result)) return result; /* a constant number of limbs, which the compiler unrolls */
    for (int n = 3; n <= FX_LIMBS; n++)
        if (ln_with(m, whole, e, n, &result)) return result;
    abort();
}

/* sin(mantissa * 2^exponent + quarters * pi/2) with n limbs, if they settle it: the nearest multiple of pi/2 taken off, then
   the Taylor series */
FC_INLINE int sine_with(uint64_t mantissa, int exponent, int quarters, int n, double *result) {
    const fixed half_pi = fixed_constant(HALF_PI, n), quarter_pi = divide(&half_pi, 2, n);
    fixed r = fixed_of(mantissa, exponent, n);
    int negative = 0, j = quarters;
    for (; !negative && is_less(&quarter_pi, &r, n); j++) r = add_signed(0, &r, 1, &half_pi, &negative, n);
    const fixed square = multiply(&r, &r, n);
    const int cosine = j & 1;
    fixed term = cosine ? fixed_of(1, 0, n) : r, plus = term, minus = fixed_of(0, 0, n);
    for (uint64_t i = cosine ? 1 : 2; !is_zero(&term, n); i += 4) { /* two terms a turn */
        term = multiply(&term, &square, n);
        term = divide(&term, i * (i + 1), n);
        minus = add(&minus, &term, n);
        term = multiply(&term, &square, n);
        term = divide(&term, (i + 2) * (i + 3), n);
        plus = add(&plus, &term, n);
    }
    const fixed total = subtract(&plus, &minus, n);
    return settled((cosine ? 0 : negative) ^ (j >> 1 & 1), &total, n, result);
}

/* sin(x + quarters * pi/2) for 2^-27 <= x < 8 */
static double turned_sine(double x, int quarters) {
    int exponent;
    const uint64_t mantissa = taken_apart(x, &exponent);
    double result = not_a_number;
    if (sine_with(mantissa, exponent, quarters, 2, &result)) return result;
    for (int n = 3; n <= FX_LIMBS; n++)
        if (sine_with(mantissa, exponent, quarters, n, &result)) return result;
    abort();
}

/* Below 2^-27 the second term of each series is less than a quarter of a unit in the last place. */
#define SMALL 0x1p-27

/* Clause: NUM-ELEM-1.  0 <= x < 8, NaN otherwise */
double fc_sin(double x) {
    if (!(x >= 0 && x < 8)) return not_a_number;
    return x < SMALL ? x : turned_sine(x, 0);
}
/* Clause: NUM-ELEM-1.  0 <= x < 8, NaN otherwise */
double fc_cos(double x) {
    if (!(x >= 0 && x < 8)) return not_a_number;
    return x < SMALL ? 1 : turned_sine(x, 1);
}

/* Clause: RNG-GAUSS-1 */
float fc_exact_gaussian(uint64_t seed, uint64_t i, double scale) {
    const double ua = fc_unit_open_zero(fc_word(seed, i & ~UINT64_C(1))), ub = fc_unit(fc_word(seed, i | 1));
    const double r = __builtin_sqrt(-2.0 * fc_ln(ua)), angle = FC_TAU * ub;
    return (float)(r * (i & 1 ? fc_sin(angle) : fc_cos(angle)) * scale);
}

/* Clause: RNG-GUMBEL-1 */
float fc_exact_gumbel(uint64_t seed, uint64_t i) {
    return (float)-fc_ln(-fc_ln(fc_unit_open(fc_word(seed, i))));
}
