/* The floating-point control and status register of the calling thread, for the tests of clauses NUM-ENV-2 and NUM-ENV-3. */
#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
uint32_t control_get(void) { return _mm_getcsr(); }
void control_set(uint32_t value) { _mm_setcsr(value); }
#else
#error "these tests know MXCSR only"
#endif
