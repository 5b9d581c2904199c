/*
 * fucina.fast._entry: the short way from Python into the core for calls with plain arguments.
 *
 * A function of this module takes the call when every argument is plain (python/plain.h).  Anything else, an error included,
 * goes to the function of the same name in the Python layer, which does the complete check and knows the words; so this file
 * never raises an exception of its own and both ways lead to the same kernels.  Here are the streams and the casts; block
 * formats are in python/block_calls.c, teams in python/teams.c.  bits_of() and of_bits() take a Python float apart and
 * together, cast_bits() casts one pattern.  Stable ABI; the Python layer calls configure() once and bind() once per function.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/dtype.h"
#include "core/fault.h"
#include "fucina.h"
#include "python/block_calls.h"
#include "python/pass_on.h"
#include "python/plain.h"
#include "python/teams.h"
#include <stdlib.h>
#include <string.h>

enum { RELEASE = 2048 }; /* elements from which on the GIL is released around a kernel */

static PyObject *members[FC_SCALAR_DTYPES]; /* DType.bool, DType.u8, ... */
static PyObject *name_out, *name_saturate, *name_single_rounding;

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
            if (!plain_u64(*args, u++)) return 0;
            break;
        case 'i':
            if (!plain_i64(*args, i++)) return 0;
            break;
        case 'd':
            if (!plain_double(*args, d++)) return 0;
            break;
        default:
            dtype = *pattern == 'f' ? FC_f32 : *pattern == 'q' ? FC_i64 : FC_bool;
            out = *args;
        }
    }
    if (!plain_take(out, dtype, 1, &call->out)) return 0;
    call->n = (size_t)(call->out.len / call->out.itemsize);
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
#define X(name) FUNCTION_##name,
    FC_BLOCK_CALLS(X)
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

#define X(name)                                                                                                             \
    static PyObject *entry_##name(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {           \
        PyObject *result = plain_##name(args, nargs, kwnames);                                                              \
        (void)module;                                                                                                       \
        return result ? result : pass_on(python_layer[FUNCTION_##name], args, nargs, kwnames);                              \
    }
FC_BLOCK_CALLS(X)
#undef X

static PyObject *entry_at(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    uint64_t seed, i;
    (void)module;
    if (nargs == 2 && !kwnames && plain_u64(args[0], &seed) && plain_u64(args[1], &i))
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

static PyObject *entry_cast_array(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *out = NULL, *result = NULL;
    Py_buffer source, target;
    uint32_t mode = 0;
    (void)module;
    if (nargs != 3 || !take_keywords(args + 3, kwnames, &out, &mode)) goto python;
    const int from = scalar_index(args[0]), to = scalar_index(args[1]);
    if (from == FC_SCALAR_DTYPES || to == FC_SCALAR_DTYPES || !plain_take(args[2], from, 0, &source)) goto python;
    if (out) {
        Py_INCREF(out);
    } else {
        const int dims = source.ndim;
        out = plain_new(source.shape, dims ? dims - 1 : 0, dims ? source.shape[dims - 1] : -1, plain_storages[to]);
        if (!out) {
            PyBuffer_Release(&source);
            goto python;
        }
    }
    if (plain_is_array(out) && plain_take(out, to, 1, &target)) {
        const size_t n = (size_t)(source.len / source.itemsize);
        if ((plain_apart(&source, &target) || FC_PLANTED(ENTRY_OVERLAP)) && (size_t)(target.len / target.itemsize) == n) {
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
#define X(name) {#name, (PyCFunction)(void (*)(void))entry_##name, METH_FASTCALL | METH_KEYWORDS, NULL},
    FC_BLOCK_CALLS(X)
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
    if (PyTuple_Size(dtypes) != FC_SCALAR_DTYPES) {
        PyErr_SetString(PyExc_ValueError, "13 scalar dtypes are expected");
        return NULL;
    }
    if (plain_configure(ndarray, empty, numpy_dtypes)) return NULL;
    for (int k = 0; k < FC_SCALAR_DTYPES; k++) Py_INCREF(members[k] = PyTuple_GetItem(dtypes, k));
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
    if (nargs == 4 && plain_i64(args[0], &source) && plain_i64(args[1], &target) && plain_i64(args[2], &mode) &&
        plain_u64(args[3], &bits) && fc_cast_bits((int)source, (int)target, (uint32_t)mode, bits, &result) == FC_OK)
        return PyLong_FromUnsignedLongLong(result);
    PyErr_SetString(PyExc_ValueError, "cast_bits(source index, target index, mode, pattern)");
    return NULL;
}

static PyMethodDef methods[] = {
    {"cast_bits", (PyCFunction)(void (*)(void))cast_bits, METH_FASTCALL, NULL},
    {"bits_of", bits_of, METH_O, NULL},
    {"of_bits", of_bits, METH_O, NULL},
    {"bind", bind, METH_VARARGS, NULL},
    {"configure", configure, METH_VARARGS, NULL},
    {"configure_blocks", block_calls_configure, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_entry", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__entry(void) {
    name_out = PyUnicode_InternFromString("out");
    name_saturate = PyUnicode_InternFromString("saturate");
    name_single_rounding = PyUnicode_InternFromString("single_rounding");
    if (!name_out || !name_saturate || !name_single_rounding) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module && fh_add_teams(module)) Py_CLEAR(module);
    return module;
}
