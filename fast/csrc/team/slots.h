/* Memory of which every participant needs its own, while it works on a piece: who asks gets one of `count` that nobody has. */
#ifndef FC_TEAM_SLOTS_H
#define FC_TEAM_SLOTS_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { FC_SLOTS = 64 };

/* a bit for each slot; all zero to begin with */
typedef _Atomic uint64_t fc_slots;

/* A slot below count; count when there is none left. */
static inline size_t fc_slot_take(fc_slots *slots, size_t count) {
    for (size_t k = 0; k < count; k++)
        if (!(atomic_fetch_or(slots, UINT64_C(1) << k) >> k & 1)) return k;
    return count;
}
static inline void fc_slot_give(fc_slots *slots, size_t slot) { atomic_fetch_and(slots, ~(UINT64_C(1) << slot)); }

#endif
