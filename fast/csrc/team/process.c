/* The team that the library's own bulk functions share: one per process, made by the first call that is large enough. */
#include "core/environment.h"
#include "team/bulk.h"
#include "team/team.h"

static struct fc_team process_team;
static pthread_once_t made = PTHREAD_ONCE_INIT;
static void make(void) { fc_team_make(&process_team, 0); }

/* Whether the caller has the team now, in the size that is asked for. */
static int take(void) {
    if (fc_team_inside()) return 0;
    const size_t workers = fc_cpu_thread_count(FC_MAX_THREADS) - 1;
    if (!workers) return 0;
    pthread_once(&made, make);
    if (!fc_team_take(&process_team)) return 0;
    if (process_team.workers != workers) {
        fc_team_end(&process_team);
        process_team.workers = workers;
    }
    return 1;
}

/* Clauses: TEAM-SERIAL-1, TEAM-LAZY-1, TEAM-ENV-1 */
void fc_team_run(size_t chunks, fc_team_task run, void *context) {
    int outcome = FC_TEAM_SERIAL;
    const fc_environment caller = fc_environment_enter();
    if (chunks > 1 && take()) {
        outcome = fc_team_dispatch(&process_team, chunks, 0, run, context);
        fc_team_give(&process_team);
    }
    if (outcome == FC_TEAM_SERIAL) fc_team_serial(chunks, run, context);
    fc_environment_leave(caller);
}

/* Clause: TEAM-END-1 */
void fc_team_shut(void) {
    pthread_once(&made, make);
    if (fc_team_inside() || !fc_team_take(&process_team)) return; /* in use by a thread that outlives the main one */
    fc_team_end(&process_team);
    fc_team_give(&process_team);
}

/* -- bulk work in pieces */
struct bulk {
    fc_piece *piece;
    void *context;
    size_t n, step;
    const char *caller; /* its `here`; the next two are written by that thread alone */
    uint64_t last;      /* when it ended its last piece */
    size_t mine;        /* how many it has done */
    fc_word32 others;   /* how many the others have done, by whom it is written; counted while sharing always only */
};

static _Thread_local char here;

/*
 * Tests compare what several threads did with what one did.  For them a switch makes sure that it was several: the caller does
 * not rest, and after its first piece it waits for another thread's, a second at most.
 */
enum { COMPANY = 1000000000 };
static _Atomic int always;
static _Atomic uint64_t shared;

static int sharing_always(void) { return atomic_load_explicit(&always, memory_order_relaxed); }

/* Clause: TEAM-BULK-1 */
void fc_bulk_share_always(int on) { atomic_store(&always, on); }
uint64_t fc_bulk_shared_calls(void) { return atomic_load(&shared); }

static void run_piece(void *context, size_t chunk) {
    struct bulk *bulk = context;
    const size_t start = chunk * bulk->step, left = bulk->n - start;
    bulk->piece(bulk->context, start, left < bulk->step ? left : bulk->step);
    if (bulk->caller != &here) {
        if (!sharing_always()) return;
        atomic_fetch_add(&bulk->others, 1);
        fc_wake(&bulk->others, 1); /* the caller's memory is there as long as this piece has not been reported */
        return;
    }
    bulk->last = fc_team_clock();
    bulk->mine++;
    /* inside, because nobody comes to pieces that run serially */
    if (sharing_always() && fc_team_inside() && !atomic_load(&bulk->others)) fc_wait(&bulk->others, 0, COMPANY);
}

/*
 * A worker that another process has pushed off its core keeps the piece that it claimed, and the join waits for a time slice
 * or several: longer than the whole work takes one thread.  How long that is, the caller's own pieces tell.  After such a
 * loss the caller works alone for REST times as long as was lost, so where cores are not free the team costs one REST-th.
 * A team that was asked to be larger than the machine is taken at its word.
 */
enum { REST = 32, LONGEST_REST = 1000000000 };
static _Atomic uint64_t rested; /* until then the caller works alone */

static int resting(void) {
    const uint64_t until = atomic_load_explicit(&rested, memory_order_relaxed);
    return until && fc_team_clock() < until;
}

static void judge(const struct bulk *bulk, size_t pieces, uint64_t begin) {
    if (!bulk->mine) return;
    const uint64_t end = fc_team_clock(), alone = (bulk->last - begin) * pieces / bulk->mine;
    if (end - begin <= alone) return;
    const uint64_t rest = (end - begin - alone) * REST;
    atomic_store_explicit(&rested, end + (rest < LONGEST_REST ? rest : LONGEST_REST), memory_order_relaxed);
}

/* Clause: TEAM-BULK-1 */
void fc_bulk(size_t n, size_t least, size_t grain, fc_piece *piece, void *context) {
    enum { PIECES = 16 }; /* per participant: what one is late is a sixteenth of its part */
    size_t participants;
#ifdef FC_SHARE_ALL /* a build for bench/threshold_rows.py, which looks for the thresholds */
    least = 2;
#endif
    if (n < least || fc_team_inside() || (participants = fc_cpu_thread_count(FC_MAX_THREADS)) == 1) {
        piece(context, 0, n);
        return;
    }
    const int may_rest = participants <= fc_schedulable_cores() && !sharing_always();
    if (may_rest && resting()) {
        piece(context, 0, n);
        return;
    }
    const size_t even = n / (participants * PIECES);
    struct bulk bulk = {piece, context, n, even > grain ? even / grain * grain : grain, &here, 0, 0, 0};
    const size_t pieces = (n + bulk.step - 1) / bulk.step;
    const uint64_t begin = fc_team_clock();
    fc_team_run(pieces, run_piece, &bulk);
    if (bulk.mine < pieces) atomic_fetch_add_explicit(&shared, 1, memory_order_relaxed);
    if (may_rest && pieces > 1) judge(&bulk, pieces, begin);
}
