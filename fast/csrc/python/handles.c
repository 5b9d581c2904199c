/*
 * fucina.fast._handles: what the objects of the memory chapters have in common, and the module itself.  It lives in the same
 * shared object as _native and _entry, over the same core.  Stable ABI; the Python layer calls configure() once.
 */
#include "python/handles.h"
#include "storage/memory.h"
#include <stdarg.h>

#define FC_DTYPE(name, kind, block, bytes, properties, logical, accumulator) bytes,
const size_t fh_element_size[FC_DTYPES] = {
#include "core/dtypes.def"
};
#undef FC_DTYPE
#define FC_DTYPE(name, kind, block, bytes, properties, logical, accumulator) (block) ? (block) : 1,
const size_t fh_block_size[FC_DTYPES] = {
#include "core/dtypes.def"
};
#undef FC_DTYPE

PyObject *fh_element[FC_DTYPES], *fh_ndarray, *fh_release_type, *fh_no_hook, *fh_shadow_type, *fh_shape_type;
static PyObject *error_types[FH_ERROR_COUNT], *leaf_types[2][FC_DTYPES], *make_leaf;

/* Clauses: ERR-NAME-1, ERR-MSG-1 */
PyObject *fh_refuse(int error, const char *clause, const char *format, ...) {
    va_list values;
    va_start(values, format);
    PyObject *message = PyUnicode_FromFormatV(format, values);
    va_end(values);
    if (!message) return NULL;
    PyObject *args = PyTuple_Pack(1, message), *keywords = Py_BuildValue("{ss}", "clause", clause);
    PyObject *exception = args && keywords ? PyObject_Call(error_types[error], args, keywords) : NULL;
    if (exception) PyErr_SetObject(error_types[error], exception);
    Py_XDECREF(exception);
    Py_XDECREF(args);
    Py_XDECREF(keywords);
    Py_DECREF(message);
    return NULL;
}

PyObject *fh_refuse_type(int error, const char *clause, const char *format, PyTypeObject *type) {
    PyObject *name = PyType_GetName(type);
    if (name) fh_refuse(error, clause, format, name);
    Py_XDECREF(name);
    return NULL;
}

void fh_pending_save(struct fh_pending *pending) { PyErr_Fetch(&pending->type, &pending->value, &pending->trace); }

void fh_pending_restore(struct fh_pending *pending, PyObject *culprit, int silent) {
    if (PyErr_Occurred()) {
        if (!silent && !pending->type) return;
        PyErr_WriteUnraisable(culprit);
    }
    PyErr_Restore(pending->type, pending->value, pending->trace);
}

static PyTypeObject *leaf_type(int family, int dtype) {
    PyObject **place = &leaf_types[family][dtype];
    if (!*place) { /* the factory keeps what it makes, and the same one whoever asks */
        PyObject *made = PyObject_CallFunction(make_leaf, "ii", family, dtype);
        if (!made) return NULL;
        if (*place)
            Py_DECREF(made);
        else
            *place = made;
    }
    return (PyTypeObject *)*place;
}
PyTypeObject *fh_buffer_type(int dtype) { return leaf_type(0, dtype); }
PyTypeObject *fh_tensor_type(int dtype) { return leaf_type(1, dtype); }

PyObject *fh_leaf(PyObject *base, PyObject *name, destructor dealloc) {
    PyType_Slot slots[] = {{Py_tp_dealloc, FH_SLOT(dealloc)}, {0, NULL}};
    PyObject *encoded = PyUnicode_AsUTF8String(name), *bases = PyTuple_Pack(1, base), *made = NULL;
    if (encoded && bases) {
        PyType_Spec spec = {PyBytes_AsString(encoded), 0, 0, Py_TPFLAGS_DEFAULT, slots};
        made = PyType_FromSpecWithBases(&spec, bases);
    }
    Py_XDECREF(encoded);
    Py_XDECREF(bases);
    return made;
}

PyObject *fh_tuple(int rank, const size_t *entries) {
    PyObject *tuple = PyTuple_New(rank);
    for (int k = 0; tuple && k < rank; k++) {
        PyObject *entry = PyLong_FromSize_t(entries[k]);
        if (!entry) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SetItem(tuple, k, entry);
    }
    return tuple;
}

PyObject *fh_only(PyObject *const *args, Py_ssize_t count, PyObject *names, const char *name) {
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (count + named == 1 && (!named || PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), name) == 0)) return args[0];
    return PyErr_Format(PyExc_TypeError, "exactly one argument is required: %s", name);
}

int fh_u64(PyObject *object, size_t *value) {
    if (!PyLong_CheckExact(object)) return 0;
    const unsigned long long found = PyLong_AsUnsignedLongLong(object);
    if (found == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    *value = (size_t)found;
    return 1;
}

int fh_entries(PyObject *object, size_t *entries) {
    Py_ssize_t rank;
    if (PyTuple_Check(object)) {
        rank = PyTuple_Size(object);
        if (rank < 1 || rank > FC_MAX_RANK) return 0;
        for (Py_ssize_t k = 0; k < rank; k++)
            if (!fh_u64(PyTuple_GetItem(object, k), entries + k)) return 0;
    } else if (PyList_CheckExact(object)) {
        rank = PyList_Size(object);
        if (rank < 1 || rank > FC_MAX_RANK) return 0;
        for (Py_ssize_t k = 0; k < rank; k++)
            if (!fh_u64(PyList_GetItem(object, k), entries + k)) return 0;
    } else {
        return 0;
    }
    return (int)rank;
}

static int keep_all(PyObject **places, PyObject *tuple, Py_ssize_t count) {
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != count) {
        PyErr_SetString(PyExc_ValueError, "a tuple of another length is expected");
        return 0;
    }
    for (Py_ssize_t k = 0; k < count; k++) Py_INCREF(places[k] = PyTuple_GetItem(tuple, k));
    return 1;
}

/* configure(errors, numpy dtypes, ndarray, Release, HostShadow, Shape, factory of leaf types) */
static PyObject *configure(PyObject *module, PyObject *args) {
    PyObject *errors, *elements;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOOOO", &errors, &elements, &fh_ndarray, &fh_release_type, &fh_shadow_type, &fh_shape_type,
                          &make_leaf) ||
        !keep_all(error_types, errors, FH_ERROR_COUNT) || !keep_all(fh_element, elements, FC_DTYPES))
        return NULL;
    Py_INCREF(fh_ndarray);
    Py_INCREF(fh_release_type);
    Py_INCREF(fh_shadow_type);
    Py_INCREF(fh_shape_type);
    Py_INCREF(make_leaf);
    fh_no_hook = PyObject_CallObject(fh_release_type, NULL);
    if (!fh_no_hook) return NULL;
    Py_RETURN_NONE;
}

/* The names of the errors, in the order in which configure() takes them. */
static PyObject *error_names(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
#define X(name) "s"
    static const char format[] = "(" FH_ERRORS(X) ")";
#undef X
#define X(name) , #name
    return Py_BuildValue(format FH_ERRORS(X));
#undef X
}

/* Clause: STORAGE-FAULT-1 */
static PyObject *fail_allocation(PyObject *module, PyObject *number) {
    const unsigned long long n = PyLong_AsUnsignedLongLong(number);
    (void)module;
    if (n == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    fc_memory_fail(n);
    Py_RETURN_NONE;
}

/* Clause: STORAGE-FAULT-1 */
static PyObject *allocation_count(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(fc_memory_count());
}

int fh_run_long(fh_tensor **const *places, int count, void (*compute)(const void *), const void *job) {
    fh_tensor *tensors[FH_AT_ONCE], copies[FH_AT_ONCE];
    int seen = 0, good = 1;
    for (; seen < count && good; seen++) {
        fh_tensor *t = tensors[seen] = *places[seen];
        if (!t) continue;
        good = fc_storage_pin(t->storage);
        copies[seen] = *t;
        *places[seen] = copies + seen;
    }
    if (good) {
        PyThreadState *state = PyEval_SaveThread();
        compute(job);
        PyEval_RestoreThread(state);
    } else {
        seen--; /* the last one was not pinned */
        *places[seen] = tensors[seen];
        PyErr_SetString(PyExc_RuntimeError, "a tensor ended under an operation");
    }
    while (seen--) {
        if (!tensors[seen]) continue;
        *places[seen] = tensors[seen];
        fc_storage_unpin(copies[seen].storage);
    }
    return !PyErr_Occurred();
}

/* Count an allocation of the Python layer; False when it is the one that fails. */
static PyObject *charge(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return PyBool_FromLong(fc_memory_charge());
}

static PyMethodDef methods[] = {
    {"configure", configure, METH_VARARGS, NULL},
    {"error_names", error_names, METH_NOARGS, NULL},
    {"fail_allocation", fail_allocation, METH_O, NULL},
    {"allocation_count", allocation_count, METH_NOARGS, NULL},
    {"charge", charge, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_handles", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__handles(void) {
    PyObject *module = PyModule_Create(&definition);
    if (module && (fh_add_buffers(module) || fh_add_tensors(module) || fh_add_pools(module) || fh_add_dlpack(module) || fh_add_facade(module)))
        Py_CLEAR(module);
    return module;
}
