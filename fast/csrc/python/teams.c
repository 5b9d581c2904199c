/*
 * Tasks of a team that are Python functions: what fucina.fast._entry has for thread_mod.py.  A dispatch runs them with the GIL on
 * the threads of the core's team, in the float environment and the signal mask that the clauses say, and raises what they raised.
 */
#include "python/teams.h"
#include "core/fault.h"
#include "fucina.h"
#include "team/team.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

/* What a dispatch of Python tasks has to remember; changed by whoever has the GIL, read by the dispatcher after the join. */
struct tasks {
    PyObject *run;
    size_t worst; /* the lowest index that raised */
    PyObject *type, *value, *traceback;
    int interrupted; /* by what is no Exception, such as KeyboardInterrupt: no further task begins */
    PyObject *chain; /* the capsule that tasks enqueue on */
    sigset_t mask;   /* of the thread that dispatched */
};

/*
 * Workers block signals, and a process inherits the mask of the thread that starts it, over an exec too: one that a task
 * started could not be terminated.  So a Python task has the mask of the thread that dispatched.  Clause: TEAM-SIGNAL-1
 */
static void open_mask(const sigset_t *mask, sigset_t *before) {
    if (fc_team_worker()) pthread_sigmask(SIG_SETMASK, mask, before);
}
static void close_mask(const sigset_t *before) {
    if (fc_team_worker()) pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Keep the error that is set if it comes before the one that is kept: an interrupt first, then the lowest index. */
static void note(struct tasks *tasks, size_t index) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    const int interrupt = !PyErr_GivenExceptionMatches(type, PyExc_Exception);
    if (!tasks->type || (interrupt && !tasks->interrupted) || (interrupt == tasks->interrupted && index < tasks->worst)) {
        PyObject *old[] = {tasks->type, tasks->value, tasks->traceback};
        tasks->type = type;
        tasks->value = value;
        tasks->traceback = traceback;
        tasks->worst = index;
        tasks->interrupted = interrupt; /* before a reference goes, which may let another task run */
        for (int k = 0; k < 3; k++) Py_XDECREF(old[k]);
    } else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
    }
}

/*
 * A worker keeps one thread state for its life: PyGILState_Ensure would make one for each task and delete it again, and without
 * the GIL it takes a lock of the interpreter's, which a fork of another thread at that moment would leave locked in the child.
 * So states are made while the dispatcher holds the GIL, who waits for them (fc_team_start), and go while their worker does.
 */
static PyInterpreterState *interpreter;
static _Atomic int ending; /* the process is: a worker that asked for the GIL might never come back, and whoever joins it */

static void *arrive(void) { return PyThreadState_New(interpreter); }

static void leave(void *state) {
    if (!state || atomic_load(&ending)) return;
    PyEval_RestoreThread(state);
    PyGILState_Release(PyGILState_UNLOCKED); /* it was made with a count of one, so this deletes it */
}

static const struct fc_team_host python = {arrive, leave};

/* team_ending(): threads that end from now on leave their states where they are */
static PyObject *team_ending(PyObject *module, PyObject *none) {
    (void)module, (void)none;
    atomic_store(&ending, 1);
    Py_RETURN_NONE;
}

static void free_chain(PyObject *capsule) { fc_chain_free(PyCapsule_GetPointer(capsule, NULL)); }

static void run_python(struct tasks *tasks, size_t index, struct fc_chain *chain) {
    const PyGILState_STATE state = PyGILState_Ensure();
    if (!tasks->interrupted) {
        PyObject *result = NULL;
        sigset_t before;
        open_mask(&tasks->mask, &before);
        if (!chain)
            result = PyObject_CallFunction(tasks->run, "n", (Py_ssize_t)index);
        else if (tasks->chain || (tasks->chain = PyCapsule_New(chain, NULL, free_chain)))
            result = PyObject_CallFunction(tasks->run, "nO", (Py_ssize_t)index, tasks->chain);
        if (!result) note(tasks, FC_PLANT(LATEST_EXCEPTION, index, (size_t)-1 - index));
        Py_XDECREF(result);
        close_mask(&before);
    }
    PyGILState_Release(state);
}
static void run_chunk(void *context, size_t index) { run_python(context, index, NULL); }
static void run_chained(void *context, size_t index, struct fc_chain *chain) { run_python(context, index, chain); }

/* Take the error that is set as an exception with its traceback; NULL when none is. */
static PyObject *take_error(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!type) return NULL;
    PyErr_NormalizeException(&type, &value, &traceback);
    if (traceback) PyException_SetTraceback(value, traceback);
    Py_DECREF(type);
    Py_XDECREF(traceback);
    return value;
}

/* Raise what was kept: NULL then, else None.  But in the child of a fork that lost tasks the caller says so, which comes before what
   a task raised: that is returned.  Clauses: TEAM-RAISE-1, TEAM-FORK-2 */
static PyObject *lost(const struct tasks *tasks, int outcome) {
    if (!tasks->type) Py_RETURN_NONE;
    PyErr_Restore(tasks->type, tasks->value, tasks->traceback);
    return outcome == FC_TEAM_FORKED ? take_error() : NULL;
}

/* team_chunks(team, count, run): (outcome, error), after run(index) for each index; raises what a task raised, but in the child of
   a fork that lost tasks, where it is the error */
static PyObject *team_chunks(PyObject *module, PyObject *args) {
    unsigned long long address;
    Py_ssize_t count;
    struct tasks tasks = {0};
    int outcome;
    (void)module;
    if (!PyArg_ParseTuple(args, "KnO", &address, &count, &tasks.run)) return NULL;
    struct fc_team *team = (struct fc_team *)(uintptr_t)address;
    pthread_sigmask(SIG_SETMASK, NULL, &tasks.mask);
    if (count > 1 && fc_team_workers(team) && !fc_team_inside()) fc_team_start(team, &python);
    Py_BEGIN_ALLOW_THREADS
    outcome = fc_team_chunks(team, (size_t)count, run_chunk, &tasks);
    Py_END_ALLOW_THREADS
    PyObject *error = lost(&tasks, outcome);
    return error ? Py_BuildValue("iN", outcome, error) : NULL;
}

/* team_chained(team, count, initial, run): (outcome, error, violation, index, count), after run(index, chain) for each index */
static PyObject *team_chained(PyObject *module, PyObject *args) {
    unsigned long long address;
    Py_ssize_t count, initial;
    struct tasks tasks = {0};
    struct fc_chain_report report;
    int outcome;
    (void)module;
    if (!PyArg_ParseTuple(args, "KnnO", &address, &count, &initial, &tasks.run)) return NULL;
    struct fc_team *team = (struct fc_team *)(uintptr_t)address;
    pthread_sigmask(SIG_SETMASK, NULL, &tasks.mask);
    if (count && fc_team_workers(team) && !fc_team_inside()) fc_team_start(team, &python);
    Py_BEGIN_ALLOW_THREADS
    outcome = fc_team_chained(team, (size_t)count, (size_t)initial, run_chained, &tasks, &report);
    Py_END_ALLOW_THREADS
    if (tasks.chain)
        Py_DECREF(tasks.chain); /* a task may have kept it: the memory goes with the last who can enqueue */
    else
        fc_chain_free(report.chain);
    PyObject *error = lost(&tasks, outcome);
    if (!error) return NULL;
    return Py_BuildValue("iNinn", outcome, error, report.violation, (Py_ssize_t)report.index, (Py_ssize_t)report.count);
}

/* chain_enqueue(chain, index): FC_CHAIN_QUEUED and its siblings */
static PyObject *chain_enqueue(PyObject *module, PyObject *args) {
    PyObject *capsule;
    Py_ssize_t index;
    (void)module;
    if (!PyArg_ParseTuple(args, "On", &capsule, &index)) return NULL;
    struct fc_chain *chain = PyCapsule_GetPointer(capsule, NULL);
    return chain ? PyLong_FromLong(fc_chain_enqueue(chain, (size_t)index)) : NULL;
}

/* -- one task beside the caller; what was begun is an address in a list, put there and taken here, where no signal comes between */

/* From the end of the task on it holds no Python object: what the garbage collector cannot see here would keep whoever the task
   and its outcome refer to, the worker among them, and its thread, for ever. */
struct single {
    PyObject *run, *outcome; /* a list of the worker's: what run() returned, what it raised */
    sigset_t mask;
    struct single *outer; /* the task inside of which this thread runs it */
    int ended, abandoned;
};
static _Thread_local struct single *current;

static int within(const struct single *single) {
    const struct single *at = current;
    while (at && at != single) at = at->outer;
    return single && at;
}

static void free_single(struct single *single) {
    PyObject *run = single->run, *outcome = single->outcome;
    free(single);
    Py_XDECREF(run);
    Py_XDECREF(outcome);
}

/* Put a reference of the caller's into a list of two, which takes it; NULL is None. */
static void put(PyObject *list, Py_ssize_t place, PyObject *object) {
    if (!object) Py_INCREF(object = Py_None);
    if (PyList_SetItem(list, place, object) != 0) PyErr_Clear();
}

/* Take what is there, and leave None; NULL for None. */
static PyObject *take_from(PyObject *list, Py_ssize_t place) {
    PyObject *object = PyList_GetItem(list, place);
    if (!object) PyErr_Clear();
    if (!object || object == Py_None) return NULL;
    Py_INCREF(object);
    put(list, place, NULL);
    return object;
}

static void run_single(void *context, size_t index) {
    struct single *single = context;
    const PyGILState_STATE state = PyGILState_Ensure();
    sigset_t before;
    (void)index;
    single->outer = current;
    current = single;
    open_mask(&single->mask, &before);
    PyObject *run = single->run, *outcome = single->outcome, *result = PyObject_CallObject(run, NULL);
    PyObject *error = result ? NULL : take_error();
    current = single->outer;
    single->run = single->outcome = NULL;
    single->ended = 1;
    if (single->abandoned) {
        free_single(single);
        Py_XDECREF(result);
        Py_XDECREF(error);
    } else {
        put(outcome, 0, result);
        put(outcome, 1, error);
    }
    Py_DECREF(run); /* the last may be that of the worker, whose end frees what `context` points to */
    Py_DECREF(outcome);
    close_mask(&before);
    PyGILState_Release(state);
}

static struct single *begun_in(PyObject *list) {
    PyObject *address = PyList_Size(list) > 0 ? PyList_GetItem(list, 0) : NULL;
    return address ? PyLong_AsVoidPtr(address) : NULL;
}

/* team_begin(team, run, begun, outcome): whether run() was begun; `begun` is then no longer empty, and `outcome`, two long, takes
   what becomes of it */
static PyObject *team_begin(PyObject *module, PyObject *args) {
    unsigned long long address;
    PyObject *run, *list, *outcome;
    (void)module;
    if (!PyArg_ParseTuple(args, "KOO!O!", &address, &run, &PyList_Type, &list, &PyList_Type, &outcome)) return NULL;
    struct fc_team *team = (struct fc_team *)(uintptr_t)address;
    if (begun_in(list)) Py_RETURN_FALSE; /* in the child of a fork too, whoever had begun it */
    struct single *single = calloc(1, sizeof *single);
    PyObject *pointer = single ? PyLong_FromVoidPtr(single) : NULL;
    if (!pointer || PyList_Append(list, pointer)) {
        Py_XDECREF(pointer);
        free(single);
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    }
    Py_DECREF(pointer);
    Py_INCREF(single->run = run);
    Py_INCREF(single->outcome = outcome);
    pthread_sigmask(SIG_SETMASK, NULL, &single->mask);
    fc_team_start(team, &python);
    /* first to be found in the list, then begun: with the GIL, whoever finds it here waits for what follows */
    if (fc_team_begin(team, run_single, single)) Py_RETURN_TRUE;
    PyList_SetSlice(list, PyList_Size(list) - 1, PyList_Size(list), NULL);
    free_single(single);
    Py_RETURN_FALSE;
}

/* team_within(begun): whether the caller is inside that very task */
static PyObject *team_within(PyObject *module, PyObject *list) {
    (void)module;
    return PyBool_FromLong(within(begun_in(list)));
}

/* team_finish(team, begun, outcome): None when nothing was begun, else (outcome, result), once; raises what the task raised */
static PyObject *team_finish(PyObject *module, PyObject *args) {
    unsigned long long address;
    PyObject *list, *outcome, *found;
    int how;
    (void)module;
    if (!PyArg_ParseTuple(args, "KO!O!", &address, &PyList_Type, &list, &PyList_Type, &outcome)) return NULL;
    struct fc_team *team = (struct fc_team *)(uintptr_t)address;
    struct single *single = begun_in(list);
    if (!single) Py_RETURN_NONE;
    PyList_SetSlice(list, 0, PyList_Size(list), NULL);
    fc_team_await(team);
    Py_BEGIN_ALLOW_THREADS
    how = fc_team_finish(team);
    Py_END_ALLOW_THREADS
    if (single->ended) how = FC_TEAM_PARALLEL; /* before the fork, in a child that cannot know whether its thread has said so */
    free_single(single);
    PyObject *error = take_from(outcome, 1), *result = take_from(outcome, 0);
    if (error) {
        PyObject *type = (PyObject *)Py_TYPE(error);
        Py_INCREF(type);
        Py_XDECREF(result);
        PyErr_Restore(type, error, PyException_GetTraceback(error));
        return NULL;
    }
    found = Py_BuildValue("iO", how, result ? result : Py_None);
    Py_XDECREF(result);
    return found;
}

/* team_drop(team, begun): free a team that nobody has any more; a task that was begun runs to its end, and what becomes of it is dropped */
static PyObject *team_drop(PyObject *module, PyObject *args) {
    unsigned long long address;
    PyObject *list;
    (void)module;
    if (!PyArg_ParseTuple(args, "KO!", &address, &PyList_Type, &list)) return NULL;
    struct fc_team *team = (struct fc_team *)(uintptr_t)address;
    struct single *single = begun_in(list);
    if (single) {
        PyList_SetSlice(list, 0, PyList_Size(list), NULL);
        /* within it, when this is the child of a fork in that task: its thread comes back to both */
        const int waits = !single->ended && fc_team_threads(team), back = within(single);
        single->abandoned = waits;
        fc_team_abandon(team, back);
        if (!waits && !back) free_single(single);
    } else {
        Py_BEGIN_ALLOW_THREADS
        fc_team_free(team);
        Py_END_ALLOW_THREADS
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"team_chunks", team_chunks, METH_VARARGS, NULL},
    {"team_chained", team_chained, METH_VARARGS, NULL},
    {"chain_enqueue", chain_enqueue, METH_VARARGS, NULL},
    {"team_begin", team_begin, METH_VARARGS, NULL},
    {"team_finish", team_finish, METH_VARARGS, NULL},
    {"team_within", team_within, METH_O, NULL},
    {"team_drop", team_drop, METH_VARARGS, NULL},
    {"team_ending", team_ending, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int fh_add_teams(PyObject *module) {
    interpreter = PyInterpreterState_Get();
    return PyModule_AddFunctions(module, functions);
}
