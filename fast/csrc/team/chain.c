/*
 * A dependency graph on a team: a queue of the indices that became runnable, each at most once, and every participant takes
 * from it until everything has run, or nothing can run any more.  An index is made runnable by a swap on its own state, so a
 * second time is seen wherever it happens; and when as many have finished as were ever queued, no task is left that could
 * queue another: what never became runnable is then known, and nobody waits for it.  Then the queue is closed, in one step
 * with the comparison, so what comes later from elsewhere is refused and not lost.
 */
#include "core/environment.h"
#include "core/fault.h"
#include "team/team.h"
#include <stdlib.h>

enum { IDLE_SPIN = 4096, IDLE_SLEEP = 1000000 };
#define CLOSED ((size_t)1 << (sizeof(size_t) * 8 - 1)) /* of the tail: nothing is queued any more */

struct fc_chain {
    struct fc_team *team;
    uint32_t epoch; /* of the team, when the dispatch began */
    size_t tasks;
    fc_chain_task run;
    void *context;
    _Atomic unsigned char *state; /* by index: whether it became runnable */
    _Atomic size_t *queue;        /* index + 1, or 0 where the writer has not come so far */
    _Atomic size_t twice;         /* the first index found runnable already, + 1 */
    alignas(FC_LINE) _Atomic size_t tail;
    alignas(FC_LINE) _Atomic size_t head;
    alignas(FC_LINE) _Atomic size_t finished;
    alignas(FC_LINE) fc_word32 changes; /* idle participants sleep on it */
    _Atomic uint32_t idle;
};

/* Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2 */
int fc_chain_enqueue(struct fc_chain *chain, size_t index) {
    unsigned char not_yet = 0;
    if (index >= chain->tasks) return FC_CHAIN_RANGE;
    size_t place = atomic_load(&chain->tail);
    if (place & CLOSED) return FC_CHAIN_OVER;
    if (!atomic_compare_exchange_strong(&chain->state[index], &not_yet, 1)) {
        size_t none = 0;
        if (FC_PLANTED(CHAIN_TWICE_IGNORED)) return FC_CHAIN_QUEUED;
        atomic_compare_exchange_strong(&chain->twice, &none, index + 1);
        return FC_CHAIN_TWICE;
    }
    while (!atomic_compare_exchange_weak(&chain->tail, &place, place + 1))
        if (place & CLOSED) return FC_CHAIN_OVER;
    atomic_store_explicit(&chain->queue[place], index + 1, memory_order_release);
    atomic_fetch_add(&chain->changes, 1);
    if (atomic_load(&chain->idle)) fc_wake(&chain->changes, 1);
    return FC_CHAIN_QUEUED;
}

/* Take an index that is runnable: index + 1, or 0 when there is none now. */
static size_t take(struct fc_chain *chain) {
    size_t place = atomic_load(&chain->head);
    for (;;) {
        if (place >= chain->tasks || place >= (atomic_load(&chain->tail) & ~CLOSED)) return 0;
        const size_t found = atomic_load_explicit(&chain->queue[place], memory_order_acquire);
        if (!found) return 0; /* its writer is about to ring `changes` */
        if (atomic_compare_exchange_weak(&chain->head, &place, place + 1)) return found;
    }
}

/* Finished first: it only grows, and the queue is at least as long, so equal numbers were equal at one moment: that of the swap. */
static int over(struct fc_chain *chain) {
    size_t finished = atomic_load(&chain->finished), tail = atomic_load(&chain->tail);
    if (tail & CLOSED) return 1;
    return finished == tail && (atomic_compare_exchange_strong(&chain->tail, &finished, finished | CLOSED) || finished & CLOSED);
}

/* In the child of a fork inside a task: what other threads had begun will not finish. */
static int forked(struct fc_chain *chain) { return atomic_load_explicit(&chain->team->epoch, memory_order_relaxed) != chain->epoch; }

/* Chunk 0 is the dispatcher's.  In the child of a fork it runs what nobody had begun, and a worker nothing more. */
static void participate(void *context, size_t chunk) {
    struct fc_chain *chain = context;
    struct fc_trace *trace = fc_team_trace(chain->team);
    for (;;) {
        uint32_t seen = atomic_load(&chain->changes);
        size_t found = take(chain);
        for (uint32_t turn = IDLE_SPIN; !found && turn; turn--) {
            if (over(chain)) return;
            fc_pause();
            seen = atomic_load(&chain->changes);
            found = take(chain);
        }
        if (!found) {
            if (forked(chain)) return;
            atomic_fetch_add(&chain->idle, 1);
            if (!over(chain)) fc_wait(&chain->changes, seen, IDLE_SLEEP);
            atomic_fetch_sub(&chain->idle, 1);
            continue;
        }
        fc_trace_begin(trace);
        (void)fc_environment_enter();
        chain->run(chain->context, found - 1, chain);
        if (chunk && forked(chain)) return;
        fc_trace_end(trace, FC_PLANT(PROFILE_OF_PLACES, 1, trace && !trace->tasks));
        atomic_fetch_add(&chain->finished, 1);
        if (over(chain) && atomic_load(&chain->idle)) {
            atomic_fetch_add(&chain->changes, 1);
            fc_wake(&chain->changes, UINT32_MAX);
        }
    }
}

/* What is in the queue became runnable; a state alone may be that of a late comer who has been refused. */
static void report(struct fc_chain *chain, struct fc_chain_report *out) {
    const size_t twice = atomic_load(&chain->twice), queued = atomic_load(&chain->tail) & ~CLOSED;
    const size_t missing = chain->tasks - queued;
    for (size_t place = 0; place < queued; place++) {
        const size_t index = atomic_load_explicit(&chain->queue[place], memory_order_relaxed) - 1;
        atomic_store_explicit(&chain->state[index], 2, memory_order_relaxed);
    }
    for (size_t i = chain->tasks; missing && i-- > 0;)
        if (atomic_load_explicit(&chain->state[i], memory_order_relaxed) != 2) out->index = i;
    if (twice) {
        out->violation = FC_CHAIN_TWICE;
        out->index = twice - 1;
    } else if (missing) {
        out->violation = FC_CHAIN_MISSING;
        out->count = missing;
    }
}

void fc_chain_free(struct fc_chain *chain) {
    if (!chain) return;
    free(chain->queue);
    free(chain->state);
    free(chain);
}

/* Clauses: TEAM-CHAIN-1, TEAM-CHAIN-2, TEAM-CHAIN-3, TEAM-ENV-1, TEAM-FORK-2 */
int fc_team_chained(struct fc_team *team, size_t tasks, size_t initial, fc_chain_task run, void *context, struct fc_chain_report *out) {
    *out = (struct fc_chain_report){FC_CHAIN_QUEUED, 0, 0, NULL};
    if (!team->workers || fc_team_inside() || !fc_team_take(team)) return FC_TEAM_SERIAL;
    int outcome = FC_TEAM_OUT_OF_MEMORY;
    struct fc_chain *chain = aligned_alloc(FC_LINE, (sizeof *chain + FC_LINE - 1) / FC_LINE * FC_LINE);
    _Atomic unsigned char *state = calloc(tasks ? tasks : 1, sizeof *state);
    _Atomic size_t *queue = calloc(tasks ? tasks : 1, sizeof *queue);
    if (chain && state && queue) {
        const fc_environment caller = fc_environment_enter();
        *chain = (struct fc_chain){.team = team, .tasks = tasks, .run = run, .context = context, .state = state, .queue = queue};
        chain->epoch = atomic_load(&team->epoch);
        for (size_t i = 0; i < initial && i < tasks; i++) fc_chain_enqueue(chain, i);
        /* one place for each participant; whoever comes last finds everything over */
        outcome = tasks ? fc_team_dispatch(team, team->workers + 1, tasks, participate, chain) : FC_TEAM_PARALLEL;
        if (outcome == FC_TEAM_FORKED && over(chain)) outcome = FC_TEAM_PARALLEL; /* the others had nothing to do */
        if (outcome == FC_TEAM_PARALLEL) report(chain, out);
        atomic_fetch_or(&chain->tail, CLOSED);
        fc_environment_leave(caller);
        out->chain = chain;
    } else {
        free(chain);
        free(queue);
        free(state);
    }
    fc_team_give(team);
    return outcome;
}
