/*
 * fucina.fast._entry: the short way from Python into the core for calls with plain arguments.
 *
 * A function of this module takes the call when every argument is of the plainest kind: exact ints, floats, numpy arrays
 * proper or memoryviews that are writable, aligned, C-contiguous and of the right format.  Anything else, an error included,
 * goes to the function of the same name in the Python layer, which does the complete check and knows the words; so this file
 * never raises an exception of its own and both ways lead to the same kernels.  bits_of() and of_bits() take a Python float
 * apart and together, cast_bits() casts one pattern.  Stable ABI; the Python layer calls configure() once and bind() once
 * per function.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/dtype.h"
#include "core/fault.h"
#include "fucina.h"
#include "python/pass_on.h"
#include "team/team.h"
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { RELEASE = 2048 }; /* elements from which on the GIL is released around a kernel */

static PyObject *array_type;                  /* numpy.ndarray */
static PyObject *make_empty;                  /* numpy.empty */
static PyObject *members[FC_SCALAR_DTYPES];   /* DType.bool, DType.u8, ... */
static PyObject *storages[FC_SCALAR_DTYPES];  /* their numpy dtypes */
static PyObject *name_out, *name_saturate, *name_single_rounding;

/* the buffer formats of each dtype's storage form, and its size */
static const struct {
    const char *codes;
    Py_ssize_t size;
} formats[FC_SCALAR_DTYPES] = {
    [FC_bool] = {"?", 1}, [FC_u8] = {"B", 1},   [FC_u16] = {"H", 2},  [FC_i8] = {"b", 1},      [FC_i16] = {"h", 2},
    [FC_i32] = {"il", 4}, [FC_i64] = {"lq", 8}, [FC_f16] = {"e", 2},  [FC_bf16] = {"H", 2},    [FC_f32] = {"f", 4},
    [FC_f64] = {"d", 8},  [FC_f8_e4m3] = {"B", 1}, [FC_f8_e5m2] = {"B", 1},
};

/* Take the buffer of a numpy array proper, or a memoryview, with elements of the dtype; 0, without an exception set, when it
   is not plain. */
static int take(PyObject *object, int dtype, int writing, Py_buffer *buffer) {
    if ((PyObject *)Py_TYPE(object) != array_type && !PyMemoryView_Check(object)) return 0;
    /* PyBUF_WRITABLE is not asked for: numpy may warn then; the flag in the buffer tells */
    if (PyObject_GetBuffer(object, buffer, PyBUF_CONTIG_RO | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        return 0;
    }
    const Py_ssize_t size = formats[dtype].size;
    const char *format = buffer->format;
    if (format && format[0] && !format[1] && strchr(formats[dtype].codes, format[0]) && buffer->itemsize == size &&
        (!writing || ((!buffer->readonly || FC_PLANTED(ENTRY_READ_ONLY_OUT)) &&
                      ((uintptr_t)buffer->buf % (size_t)size == 0 || FC_PLANTED(ENTRY_UNALIGNED_OUT)))))
        return 1;
    PyBuffer_Release(buffer);
    return 0;
}

static int take_u64(PyObject *object, uint64_t *value) {
    if (!FC_PLANT(ENTRY_BOOL_SEED, PyLong_CheckExact(object), PyLong_Check(object))) return 0;
    *value = PyLong_AsUnsignedLongLong(object);
    if (*value == UINT64_MAX && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

static int take_i64(PyObject *object, int64_t *value) {
    if (!PyLong_CheckExact(object)) return 0;
    *value = PyLong_AsLongLong(object);
    if (*value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* no arithmetic: a float hands out its double, Python rounds an int in integers (NUM-ENV-2) */
static int take_double(PyObject *object, double *value) {
    if (PyFloat_CheckExact(object)) {
        *value = PyFloat_AsDouble(object);
        return 1;
    }
    if (!PyLong_CheckExact(object)) return 0;
    *value = PyLong_AsDouble(object);
    if (*value == -1.0 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

struct call {
    uint64_t u[3];
    int64_t i[2];
    double d[2];
    Py_buffer out;
    size_t n;
};

/*
 * Take the arguments by a pattern: u a u64, i an i64, d a double, f q ? the output of f32, i64 or bool.  The output is
 * taken last, so that there is nothing to give back when another argument is not plain.
 */
static int take_call(const char *pattern, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, struct call *call) {
    if (kwnames || nargs != (Py_ssize_t)strlen(pattern)) return 0;
    uint64_t *u = call->u;
    int64_t *i = call->i;
    double *d = call->d;
    PyObject *out = NULL;
    int dtype = FC_f32;
    for (; *pattern; pattern++, args++) {
        switch (*pattern) {
        case 'u':
            if (!take_u64(*args, u++)) return 0;
            break;
        case 'i':
            if (!take_i64(*args, i++)) return 0;
            break;
        case 'd':
            if (!take_double(*args, d++)) return 0;
            break;
        default:
            dtype = *pattern == 'f' ? FC_f32 : *pattern == 'q' ? FC_i64 : FC_bool;
            out = *args;
        }
    }
    if (!take(out, dtype, 1, &call->out)) return 0;
    call->n = (size_t)(call->out.len / formats[dtype].size);
    return 1;
}

/* RNG-RANGE-1: first + n <= 2^64 */
static int in_range(uint64_t first, size_t n) {
    return n == 0 || first <= -(uint64_t)n || FC_PLANTED(ENTRY_END_UNCHECKED);
}

/*
 * X(name, pattern, condition, kernel): the fills.  S and F are the seed and the first index, N the length; a status other
 * than FC_OK sends the call to the Python layer, which raises.
 */
#define S call.u[0]
#define F call.u[1]
#define N call.n
#define F32 ((float *)call.out.buf)
#define I64 ((int64_t *)call.out.buf)
#define FC_FILLS(X)                                                                                                         \
    X(gaussian_fill, "ufd", 1, fc_gaussian(S, 0, call.d[0], F32, N))                                                        \
    X(gaussian_fill_at, "uufd", in_range(F, N), fc_gaussian(S, F, call.d[0], F32, N))                                       \
    X(gaussian_fill_at_fast, "uufd", in_range(F, N), fc_gaussian_fast(S, F, call.d[0], F32, N))                             \
    X(uniform_fill, "ufdd", 1, fc_uniform(S, 0, call.d[0], call.d[1], F32, N))                                              \
    X(uniform_fill_at, "uufdd", in_range(F, N), fc_uniform(S, F, call.d[0], call.d[1], F32, N))                             \
    X(kaiming_uniform_fill, "ufu", call.u[1] > 0, fc_kaiming_uniform(S, 0, call.u[1], F32, N))                              \
    X(kaiming_uniform_fill_at, "uufu", in_range(F, N) && call.u[2] > 0, fc_kaiming_uniform(S, F, call.u[2], F32, N))        \
    X(normal_fill, "ufdd", 1, fc_normal(S, 0, call.d[0], call.d[1], F32, N))                                                \
    X(normal_fill_at, "uufdd", in_range(F, N), fc_normal(S, F, call.d[0], call.d[1], F32, N))                               \
    X(gumbel_fill, "uf", 1, fc_gumbel(S, 0, F32, N))                                                                        \
    X(gumbel_fill_at, "uuf", in_range(F, N), fc_gumbel(S, F, F32, N))                                                       \
    X(randint_fill, "uqii", call.i[0] < call.i[1], fc_randint(S, 0, call.i[0], call.i[1], I64, N))                          \
    X(randint_fill_at, "uuqii", in_range(F, N) && call.i[0] < call.i[1], fc_randint(S, F, call.i[0], call.i[1], I64, N))    \
    X(randperm_fill, "uq", 1, fc_randperm(S, I64, N))                                                                       \
    X(dropout_mask, "uu?d", in_range(F, N), fc_dropout_mask(S, F, call.d[0], call.out.buf, N))

enum {
#define X(name, pattern, condition, kernel) FILL_##name,
    FC_FILLS(X)
#undef X
    FUNCTION_at,
    FUNCTION_cast_array,
    FUNCTIONS
};

static PyObject *python_layer[FUNCTIONS]; /* the complete functions */

#define X(name, pattern, condition, kernel)                                                                                 \
    static PyObject *entry_##name(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {           \
        struct call call;                                                                                                   \
        (void)module;                                                                                                       \
        if (take_call(pattern, args, nargs, kwnames, &call)) {                                                              \
            fc_status status = FC_BAD_BOUNDS;                                                                               \
            if (condition) {                                                                                                \
                PyThreadState *state = N >= RELEASE ? PyEval_SaveThread() : NULL;                                           \
                status = kernel;                                                                                            \
                if (state) PyEval_RestoreThread(state);                                                                     \
            }                                                                                                               \
            PyBuffer_Release(&call.out);                                                                                    \
            if (status == FC_OK) Py_RETURN_NONE;                                                                            \
        }                                                                                                                   \
        return pass_on(python_layer[FILL_##name], args, nargs, kwnames);                                                                \
    }
FC_FILLS(X)
#undef X

static PyObject *entry_at(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    uint64_t seed, i;
    (void)module;
    if (nargs == 2 && !kwnames && take_u64(args[0], &seed) && take_u64(args[1], &i))
        return PyLong_FromUnsignedLongLong(fc_at(seed, i));
    return pass_on(python_layer[FUNCTION_at], args, nargs, kwnames);
}

static int scalar_index(PyObject *dtype) {
    int k = 0;
    while (k < FC_SCALAR_DTYPES && members[k] != dtype) k++;
    return k;
}

/* The keywords of cast_array; 0 when they are not plain. */
static int take_keywords(PyObject *const *values, PyObject *kwnames, PyObject **out, uint32_t *mode) {
    const Py_ssize_t names = kwnames ? PyTuple_Size(kwnames) : 0;
    for (Py_ssize_t k = 0; k < names; k++) {
        PyObject *name = PyTuple_GetItem(kwnames, k), *value = values[k];
        if (name == name_out) {
            *out = value == Py_None ? NULL : value;
        } else {
            const uint32_t flag = name == name_saturate          ? FC_CAST_SATURATE
                                  : name == name_single_rounding ? FC_CAST_SINGLE_ROUNDING
                                                                 : 0;
            if (!flag || (value != Py_True && value != Py_False)) return 0;
            if (value == Py_True) *mode |= flag;
        }
    }
    return 1;
}

/* A new array of the shape of a buffer. */
static PyObject *empty_like(const Py_buffer *buffer, int dtype) {
    PyObject *made = NULL, *shape = buffer->ndim == 1 ? PyLong_FromSsize_t(buffer->shape[0]) : PyTuple_New(buffer->ndim);
    if (!shape) return NULL;
    for (int k = 0; buffer->ndim != 1 && k < buffer->ndim; k++) {
        PyObject *length = PyLong_FromSsize_t(buffer->shape[k]);
        if (!length) goto end;
        PyTuple_SetItem(shape, k, length);
    }
    made = PyObject_CallFunctionObjArgs(make_empty, shape, storages[dtype], NULL);
end:
    Py_DECREF(shape);
    return made;
}

static PyObject *entry_cast_array(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *out = NULL, *result = NULL;
    Py_buffer source, target;
    uint32_t mode = 0;
    (void)module;
    if (nargs != 3 || !take_keywords(args + 3, kwnames, &out, &mode)) goto python;
    const int from = scalar_index(args[0]), to = scalar_index(args[1]);
    if (from == FC_SCALAR_DTYPES || to == FC_SCALAR_DTYPES || !take(args[2], from, 0, &source)) goto python;
    if (out) {
        Py_INCREF(out);
    } else {
        out = empty_like(&source, to);
        if (!out) {
            PyErr_Clear();
            PyBuffer_Release(&source);
            goto python;
        }
    }
    if ((PyObject *)Py_TYPE(out) == array_type && take(out, to, 1, &target)) {
        const size_t n = (size_t)(source.len / formats[from].size);
        const uintptr_t a = (uintptr_t)source.buf, b = (uintptr_t)target.buf;
        const int apart = a + (size_t)source.len <= b || b + (size_t)target.len <= a || n == 0;
        if ((apart || FC_PLANTED(ENTRY_OVERLAP)) && (size_t)(target.len / formats[to].size) == n) {
            PyThreadState *state = n >= RELEASE ? PyEval_SaveThread() : NULL;
            const fc_status status = fc_cast(from, to, mode, source.buf, target.buf, n);
            if (state) PyEval_RestoreThread(state);
            if (status == FC_OK) result = out;
        }
        PyBuffer_Release(&target);
    }
    PyBuffer_Release(&source);
    if (result) return result;
    Py_DECREF(out);
python:
    return pass_on(python_layer[FUNCTION_cast_array], args, nargs, kwnames);
}

static PyMethodDef functions[FUNCTIONS] = {
#define X(name, pattern, condition, kernel) \
    {#name, (PyCFunction)(void (*)(void))entry_##name, METH_FASTCALL | METH_KEYWORDS, NULL},
    FC_FILLS(X)
#undef X
    {"at", (PyCFunction)(void (*)(void))entry_at, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"cast_array", (PyCFunction)(void (*)(void))entry_cast_array, METH_FASTCALL | METH_KEYWORDS, NULL},
};

/* bind(name, function, module name, documentation): the fast function that falls back on the given one */
static PyObject *bind(PyObject *module, PyObject *args) {
    const char *name, *documentation;
    PyObject *function, *home;
    if (!PyArg_ParseTuple(args, "sOUs", &name, &function, &home, &documentation)) return NULL;
    for (int k = 0; k < FUNCTIONS; k++) {
        if (strcmp(functions[k].ml_name, name) != 0) continue;
        char *kept = malloc(strlen(documentation) + 1); /* for as long as the process lives, like the function */
        if (!kept) return PyErr_NoMemory();
        functions[k].ml_doc = strcpy(kept, documentation);
        Py_INCREF(function);
        python_layer[k] = function;
        /* bound to the module, so that it pickles by its name */
        return PyCFunction_NewEx(&functions[k], module, home);
    }
    PyErr_Format(PyExc_LookupError, "_entry has no function %s", name);
    return NULL;
}

/* configure(ndarray, empty, members, storages): what the functions have to recognise and to make */
static PyObject *configure(PyObject *module, PyObject *args) {
    PyObject *ndarray, *empty, *dtypes, *numpy_dtypes;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO!O!", &ndarray, &empty, &PyTuple_Type, &dtypes, &PyTuple_Type, &numpy_dtypes)) return NULL;
    if (PyTuple_Size(dtypes) != FC_SCALAR_DTYPES || PyTuple_Size(numpy_dtypes) != FC_SCALAR_DTYPES) {
        PyErr_SetString(PyExc_ValueError, "13 scalar dtypes are expected");
        return NULL;
    }
    Py_INCREF(ndarray);
    Py_INCREF(empty);
    array_type = ndarray;
    make_empty = empty;
    for (int k = 0; k < FC_SCALAR_DTYPES; k++) {
        Py_INCREF(members[k] = PyTuple_GetItem(dtypes, k));
        Py_INCREF(storages[k] = PyTuple_GetItem(numpy_dtypes, k));
    }
    Py_RETURN_NONE;
}

/* The pattern of a float.  Python's own ways compare the double with -1.0, which a subnormal or a signalling NaN answers
   with a flag, or a trap (NUM-ENV-3). */
static PyObject *bits_of(PyObject *module, PyObject *number) {
    uint64_t bits;
    (void)module;
    if (!PyFloat_Check(number)) {
        PyErr_SetString(PyExc_TypeError, "a float is required");
        return NULL;
    }
    const double value = PyFloat_AsDouble(number);
    memcpy(&bits, &value, sizeof bits);
    return PyLong_FromUnsignedLongLong(bits);
}

static PyObject *of_bits(PyObject *module, PyObject *number) {
    const uint64_t bits = PyLong_AsUnsignedLongLong(number);
    double value;
    (void)module;
    if (bits == UINT64_MAX && PyErr_Occurred()) return NULL;
    memcpy(&value, &bits, sizeof value);
    return PyFloat_FromDouble(value);
}

/* cast_bits(source index, target index, mode, pattern) */
static PyObject *cast_bits(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    int64_t source, target, mode;
    uint64_t bits, result;
    (void)module;
    if (nargs == 4 && take_i64(args[0], &source) && take_i64(args[1], &target) && take_i64(args[2], &mode) &&
        take_u64(args[3], &bits) && fc_cast_bits((int)source, (int)target, (uint32_t)mode, bits, &result) == FC_OK)
        return PyLong_FromUnsignedLongLong(result);
    PyErr_SetString(PyExc_ValueError, "cast_bits(source index, target index, mode, pattern)");
    return NULL;
}

/* -- tasks of a team that are Python functions */

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

/* Raise what was kept; 0 when nothing was. */
static int raised(struct tasks *tasks) {
    if (!tasks->type) return 0;
    PyErr_Restore(tasks->type, tasks->value, tasks->traceback);
    tasks->type = tasks->value = tasks->traceback = NULL;
    return 1;
}

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

/* In the child of a fork that lost tasks the caller says so, which comes before what a task raised.  Clause: TEAM-FORK-2 */
static PyObject *context_of_loss(struct tasks *tasks, int outcome) {
    PyObject *error = outcome == FC_TEAM_FORKED && raised(tasks) ? take_error() : NULL;
    if (!error) Py_INCREF(error = Py_None);
    return error;
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
    PyObject *error = context_of_loss(&tasks, outcome);
    if (!raised(&tasks)) return Py_BuildValue("iN", outcome, error);
    Py_DECREF(error);
    return NULL;
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
    PyObject *error = context_of_loss(&tasks, outcome);
    if (!raised(&tasks)) return Py_BuildValue("iNinn", outcome, error, report.violation, (Py_ssize_t)report.index, (Py_ssize_t)report.count);
    Py_DECREF(error);
    return NULL;
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

static PyMethodDef methods[] = {
    {"team_chunks", team_chunks, METH_VARARGS, NULL},
    {"team_chained", team_chained, METH_VARARGS, NULL},
    {"chain_enqueue", chain_enqueue, METH_VARARGS, NULL},
    {"team_begin", team_begin, METH_VARARGS, NULL},
    {"team_finish", team_finish, METH_VARARGS, NULL},
    {"team_within", team_within, METH_O, NULL},
    {"team_drop", team_drop, METH_VARARGS, NULL},
    {"team_ending", team_ending, METH_NOARGS, NULL},
    {"cast_bits", (PyCFunction)(void (*)(void))cast_bits, METH_FASTCALL, NULL},
    {"bits_of", bits_of, METH_O, NULL},
    {"of_bits", of_bits, METH_O, NULL},
    {"bind", bind, METH_VARARGS, NULL},
    {"configure", configure, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_entry", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__entry(void) {
    name_out = PyUnicode_InternFromString("out");
    name_saturate = PyUnicode_InternFromString("saturate");
    name_single_rounding = PyUnicode_InternFromString("single_rounding");
    if (!name_out || !name_saturate || !name_single_rounding) return NULL;
    interpreter = PyInterpreterState_Get();
    return PyModule_Create(&definition);
}
