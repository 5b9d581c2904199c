/*
 * A team: the thread that dispatches, participant 0, and up to FC_MAX_THREADS - 1 workers that live as long as the team.
 *
 * A dispatch is published in one 64-bit word, the ticket: which dispatch it is, and the next unclaimed chunk.  Whoever wants
 * a chunk reads the ticket, then what there is to do, and claims the chunk by a compare-and-swap on the ticket.  If that
 * succeeds the dispatch is still the one that was read, and it cannot end before the chunk has been reported.  So the join
 * waits for chunks, never for workers: a worker that wakes late finds nothing to claim and harms nobody, and chunks that no
 * worker comes for are run by the dispatcher.  team.pml is a model of this protocol.
 */
#ifndef FC_TEAM_H
#define FC_TEAM_H
#include "fucina.h"
#include "team/wait.h"
#include <pthread.h>
#include <stdalign.h>

#ifndef FC_MAX_THREADS
#define FC_MAX_THREADS 64
#endif

enum {
    FC_LINE = 128, /* bytes that processors pass between each other at once: two lines of 64, because they fetch pairs */
    FC_SPIN = 32768,
    FC_JOIN_SPIN = 1000000,
    FC_JOIN_SPIN_SHORT = 4096, /* of an oversubscribed team, and of any join that has slept once */
    FC_JOIN_SLEEP = 1000000,   /* nanoseconds */
};

uint64_t fc_team_clock(void); /* nanoseconds */

/* what a participant did in a dispatch; written by it alone, read after the join (FUCINA_POOL_PROFILE=1) */
struct fc_trace {
    alignas(FC_LINE) uint64_t claim, completion; /* of the first task, of the last; without one: first look, found none */
    uint64_t tasks;
};

/* The steps of a participant; nothing where the trace is NULL. */
static inline void fc_trace_come(struct fc_trace *trace) {
    if (trace) *trace = (struct fc_trace){fc_team_clock(), 0, 0};
}
static inline void fc_trace_begin(struct fc_trace *trace) {
    if (trace && !trace->tasks) trace->claim = fc_team_clock();
}
static inline void fc_trace_end(struct fc_trace *trace, size_t tasks) {
    if (!trace) return;
    trace->completion = fc_team_clock();
    trace->tasks += tasks;
}
static inline void fc_trace_go(struct fc_trace *trace) {
    if (trace && !trace->tasks) trace->completion = fc_team_clock();
}

/* Whose threads also need a place elsewhere, such as in an interpreter: called on each thread, first and last. */
struct fc_team_host {
    void *(*arrive)(void);
    void (*leave)(void *arrived); /* not in the child of a fork, where the thread is the only one */
};

struct fc_seat {
    struct fc_team *team;
    pthread_t thread;
    uint32_t index, epoch, bell; /* which participant, in which process since its birth, the bell when it started */
    const struct fc_team_host *host;
};

struct fc_team {
    /* what there is to do: written by the dispatcher before the ticket */
    _Atomic(fc_team_task) run;
    _Atomic(void *) context;
    _Atomic size_t chunks, stride; /* a claim is `stride` consecutive chunks */
    _Atomic uint32_t claims;
    alignas(FC_LINE) _Atomic uint64_t ticket;
    alignas(FC_LINE) fc_word32 bell; /* rung once per dispatch; workers sleep on it */
    alignas(FC_LINE) fc_word32 sleepers;
    alignas(FC_LINE) fc_word32 done; /* claims that workers have completed in this dispatch; the join sleeps on it, unwoken */
    alignas(FC_LINE) _Atomic uint32_t arrived; /* workers that are through with this dispatch; counted while profiling only */
    alignas(FC_LINE) _Atomic int busy;         /* one dispatcher at a time; what follows belongs to it */
    _Atomic int stop, abandoned, left; /* the last two of a team whose begun task nobody waits for */
    _Atomic uint32_t epoch; /* raised in the child of a fork: the workers are not there */
    _Atomic int home;           /* the CPU from which sleepers were last woken, -1 for none */
    _Atomic(void *) dispatcher; /* which thread has the team: the address of a variable of its own */
    const struct fc_team_host *host; /* NULL, or the team starts threads in fc_team_start only */
    fc_word32 born;                  /* threads of this start that have arrived at the host */
    size_t workers, started; /* wanted, running */
    size_t graph;            /* how many tasks the chain has whose places the chunks are; 0 where the chunks are the tasks */
    uint32_t begun;          /* the epoch of a dispatch that is joined later */
    uint32_t spin, join_spin;
    int profiling, ready, closed;
    struct fc_seat seats[FC_MAX_THREADS]; /* one more than there are workers: an array has no length 0 */
    struct fc_trace traces[FC_MAX_THREADS];
    struct fc_team *next, *previous; /* all teams of the process, for fork */
};

/* A team in memory of the caller's, all zero; starts no thread. */
void fc_team_make(struct fc_team *team, size_t workers);
/* Ends the workers.  The caller has the team (fc_team_take). */
void fc_team_end(struct fc_team *team);
int fc_team_take(struct fc_team *team);
void fc_team_give(struct fc_team *team);
/* Whether this thread is inside a task of some team: a dispatch from there is nested. */
int fc_team_inside(void);
/* Whether this thread is a worker's. */
int fc_team_worker(void);
/* Start the threads of a team whose host has to be asked, unless somebody has the team.  It comes back when each has arrived, so
   a caller who excludes forks in the meantime excludes them from every arrival. */
void fc_team_start(struct fc_team *team, const struct fc_team_host *host);
/* How long the threads of a team wait, on a machine that runs so many threads at once. */
void fc_team_pace(struct fc_team *team, size_t cores);
/* A dispatch of a team that the caller has; FC_TEAM_SERIAL, and nothing has run, when no worker could be started.  `graph` is 0, or
   the number of tasks of a chain, whose chunks trace them: the caller then runs it without workers too. */
int fc_team_dispatch(struct fc_team *team, size_t chunks, size_t graph, fc_team_task run, void *context);
/* Every chunk in order on this thread, each in the default environment. */
void fc_team_serial(size_t chunks, fc_team_task run, void *context);
/* The trace of this thread, which takes part in a dispatch of the team; NULL unless profiling. */
struct fc_trace *fc_team_trace(struct fc_team *team);
/* One line per participant on stderr. */
void fc_team_show(const struct fc_team *team, uint64_t start, uint64_t end);

#endif
