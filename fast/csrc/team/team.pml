/*
 * The team's protocol (team.c, told in team.h): a dispatcher and WORKERS workers, DISPATCHES dispatches.
 *
 *     spin -a team.pml && gcc -O2 -DSAFETY -DCOLLAPSE -o pan pan.c && ./pan -m100000
 *
 * Checked: every chunk of every dispatch runs exactly once, in its own dispatch and with that dispatch's description; no state
 * is without a next step before the end (a lost wake-up or a lost report would be one).  With -DOPEN the ticket is not
 * closed before the description changes, the fault that the C test once met: the checker finds it too.
 *
 * The words are as in C: ticket (dispatch, index), bell, sleepers, done.  A worker spins 0 turns, the shortest budget: more
 * turns only add looks at the bell.  The join of C sleeps with a time limit and looks again, here it waits for the count.
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef DISPATCHES
#define DISPATCHES 2
#endif
/* dispatch n, from 1 on, has n + 1 chunks: the next one has more, which is what a late worker could mistake */
#define CHUNKS_OF(n) ((n) + 1)
#define MOST CHUNKS_OF(DISPATCHES)
#define CLOSED 15

/* what there is to do: the number of the dispatch stands for run and context */
byte job, claims;
/* the ticket, one 64-bit word in C: read and swapped as a whole */
byte ticket_dispatch, ticket_index = CLOSED;
byte bell, sleepers, done;
bool asleep[3];
bool stop;
byte ran[DISPATCHES * MOST];
byte ended;

inline run_chunk(description, index) {
    d_step {
        assert(description >= 1 && index < CHUNKS_OF(description));
        ran[(description - 1) * MOST + index]++;
        assert(ran[(description - 1) * MOST + index] == 1);
    }
}

/* claim and run until nothing is left; the same for everybody */
inline work(count) {
    count = 0;
    atomic { seen_dispatch = ticket_dispatch; seen_index = ticket_index; }
    do
    :: seen_claims = claims;
       seen_job = job;
       if
       :: seen_index >= seen_claims -> break
       :: else ->
          atomic { /* the compare-and-swap */
              if
              :: ticket_dispatch == seen_dispatch && ticket_index == seen_index ->
                 ticket_index++;
                 won = true
              :: else ->
                 seen_dispatch = ticket_dispatch;
                 seen_index = ticket_index;
                 won = false
              fi
          }
          if
          :: won ->
             assert(seen_job == seen_dispatch); /* the description read is that of the dispatch claimed from */
             run_chunk(seen_job, seen_index);
             count++;
             seen_index++
          :: else
          fi
       fi
    od;
    skip;
    d_step { seen_dispatch = 0; seen_index = 0; seen_claims = 0; seen_job = 0; won = false } /* dead: fewer states */
}

inline ring() {
    bell++;
    if /* wakes all: fewer is the same for those that sleep on */
    :: sleepers > 0 -> d_step { asleep[0] = false; asleep[1] = false; asleep[2] = false }
    :: else
    fi
}

active [WORKERS] proctype worker() {
    byte heard = 0, count, seen_dispatch, seen_index, seen_claims, seen_job, me = _pid;
    bool won;
    do
    :: if
       :: bell == heard ->
          sleepers++;
          do
          :: bell != heard -> break
          :: atomic { bell == heard -> asleep[me] = true } /* the futex looks at the word and sleeps in one step */
             !asleep[me]
          od;
          sleepers--
       :: else
       fi;
       heard = bell;
       if
       :: stop -> break
       :: else
       fi;
       work(count);
       if
       :: count > 0 -> atomic { done = done + count; count = 0 }
       :: else
       fi
    od;
    ended++
}

active proctype dispatcher() {
    byte n, count, seen_dispatch, seen_index, seen_claims, seen_job, i;
    bool won;
    for (n : 1 .. DISPATCHES) {
#ifndef OPEN
        atomic { ticket_dispatch = n; ticket_index = CLOSED }
#endif
        job = n;
        claims = CHUNKS_OF(n);
        done = 0;
        atomic { ticket_dispatch = n; ticket_index = 1 }
        ring();
        run_chunk(n, 0);
        work(count);
        (done == CHUNKS_OF(n) - 1 - count); /* the join: a state from which this never comes true is a deadlock */
        for (i : 0 .. CHUNKS_OF(n) - 1) {
            assert(ran[(n - 1) * MOST + i] == 1)
        }
    }
    stop = true;
    ring();
    (ended == WORKERS)
}
