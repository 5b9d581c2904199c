/* FUCINA_POOL_PROFILE=1: what each participant did in a dispatch, relative to its start. */
#include "team/team.h"
#include <inttypes.h>
#include <stdio.h>

static double microseconds(uint64_t start, uint64_t moment) { return (double)(int64_t)(moment - start) * 1e-3; }

/* Clause: TEAM-PROFILE-1 */
void fc_team_show(const struct fc_team *team, uint64_t start, uint64_t end) {
    const size_t chunks = team->graph ? team->graph : atomic_load(&team->chunks);
    for (size_t i = 0; i <= team->started; i++) {
        const struct fc_trace *trace = &team->traces[i];
        fprintf(stderr, "fucina pool: participant %zu of %zu, %zu chunks, %" PRIu64 " tasks, claim +%.1f us, completion +%.1f us, join +%.1f us\n",
                i, team->started + 1, chunks, trace->tasks, microseconds(start, trace->claim), microseconds(start, trace->completion),
                microseconds(start, end));
    }
}
