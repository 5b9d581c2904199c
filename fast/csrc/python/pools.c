/* Pool objects. */
#include "python/handles.h"
#include "python/pass_on.h"
#include <stdlib.h>

static PyTypeObject *pool_base;
static PyObject *slow_acquire;
static fh_pool *of(PyObject *object) { return (fh_pool *)object; }

/* The pool is opened with the object, so that there is none without. */
static PyObject *pool_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)args, (void)keywords;
    fh_pool *self = (fh_pool *)PyType_GenericAlloc(type, 0);
    if (self && !(self->pool = fc_pool_open())) {
        Py_DECREF(self);
        return fh_refuse(FH_OutOfMemory, "POOL-MEMORY-1", "no memory for a pool");
    }
    return (PyObject *)self;
}

static void pool_dealloc(PyObject *object) {
    fh_pool *self = of(object);
    PyTypeObject *type = Py_TYPE(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    if (self->pool) {
        if (!self->closed) fc_pool_close(self->pool);
        fc_pool_drop(self->pool);
    }
    ((freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free))(object); /* the Python layer's subclass knows the garbage collector */
    Py_DECREF(type);
}

static PyObject *handed_out(struct fc_storage *s) {
    if (!s) Py_RETURN_NONE; /* the Python layer says why */
    PyObject *buffer = fh_buffer_of(s);
    if (!buffer) fc_storage_destroy(s);
    fc_storage_drop(s);
    return buffer;
}

/* Clauses: POOL-SIZE-1, POOL-FIT-1, POOL-LIFO-1, POOL-COUNT-1, POOL-MEMORY-1 */
static PyObject *acquire_f32(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    size_t length;
    if (count != 1 || names || of(self)->closed || of(self)->traced || !fh_u64(args[0], &length) || !length)
        return pass_on_to_method(self, slow_acquire, args, count, names);
    struct fc_storage *s = fc_pool_acquire(of(self)->pool, FC_f32, length, sizeof(float));
    return s ? handed_out(s) : fh_refuse(FH_OutOfMemory, "POOL-MEMORY-1", "no memory for a pooled buffer of %R elements", args[0]);
}

/* _trace(): from now on, the Python layer notes where each buffer was acquired */
static PyObject *trace(PyObject *self, PyObject *unused) {
    (void)unused;
    of(self)->traced = 1;
    Py_RETURN_NONE;
}

/* _acquire(dtype index, length): a buffer, or None where there is no memory or the pool is closed */
static PyObject *acquire(PyObject *self, PyObject *args) {
    int dtype;
    unsigned long long length;
    if (!PyArg_ParseTuple(args, "iK", &dtype, &length)) return NULL;
    if (dtype < 0 || dtype >= FC_DTYPES || (dtype == FC_f32 && !length)) return PyErr_Format(PyExc_ValueError, "no such buffer");
    return handed_out(fc_pool_acquire(of(self)->pool, dtype, (size_t)length, fh_element_size[dtype]));
}

/* _scratch(length, element size): the same with a slab of bytes */
static PyObject *scratch(PyObject *self, PyObject *args) {
    unsigned long long length, element;
    if (!PyArg_ParseTuple(args, "KK", &length, &element)) return NULL;
    if (!element) return PyErr_Format(PyExc_ValueError, "an element has bytes");
    return handed_out(fc_pool_scratch(of(self)->pool, (size_t)length, (size_t)element));
}

/* _empty(dtype index, shape): a contiguous tensor of unspecified content; the shape is checked and has elements */
static PyObject *empty(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    size_t dtype, dims[FC_MAX_RANK];
    const int rank = count == 2 && fh_u64(args[0], &dtype) && dtype < FC_DTYPES ? fh_entries(args[1], dims) : 0;
    if (!rank || !fc_count(rank, dims) || dims[rank - 1] % fh_block_size[dtype])
        return PyErr_Format(PyExc_ValueError, "_empty(dtype index, shape)");
    return fh_tensor_empty(of(self), (int)dtype, rank, dims);
}

/* _counters: cached buffers, cached slabs, cached bytes, outstanding, cap (POOL-COUNT-1) */
static PyObject *get_counters(PyObject *self, void *unused) {
    struct fc_pool_counters counters;
    (void)unused;
    fc_pool_counters(of(self)->pool, &counters);
    return Py_BuildValue("KKKKK", (unsigned long long)counters.cached_buffers, (unsigned long long)counters.cached_slabs,
                         (unsigned long long)counters.cached_bytes, (unsigned long long)counters.outstanding,
                         (unsigned long long)counters.cap);
}

static PyObject *set_cap(PyObject *self, PyObject *value) {
    const unsigned long long cap = PyLong_AsUnsignedLongLong(value);
    if (cap == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    fc_pool_set_cap(of(self)->pool, (size_t)cap);
    Py_RETURN_NONE;
}

static PyObject *get_closed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(of(self)->closed);
}

/* _close(): free what is cached */
static PyObject *close_pool(PyObject *self, PyObject *unused) {
    (void)unused;
    if (!of(self)->closed) {
        of(self)->closed = 1;
        fc_pool_close(of(self)->pool);
    }
    Py_RETURN_NONE;
}

/* What a report says of one storage: (dtype index or None, shape, origin or None). */
static PyObject *leak(struct fc_storage *s) {
    const struct fc_pooled *pooled = (struct fc_pooled *)s;
    const size_t length = pooled->scratch ? pooled->asked : fh_capacity(s);
    PyObject *dtype = pooled->scratch ? Py_None : PyLong_FromLong(s->dtype), *origin = fh_origin(s);
    if (pooled->scratch) Py_INCREF(dtype);
    return Py_BuildValue("NNO", dtype, pooled->rank ? fh_tuple(pooled->rank, pooled->shape) : fh_tuple(1, &length),
                         origin ? origin : Py_None);
}

/* _outstanding(): what is out, oldest first (POOL-LEAK-1) */
static PyObject *outstanding(PyObject *self, PyObject *unused) {
    (void)unused;
    size_t room = fc_pool_outstanding(of(self)->pool, NULL, 0);
    struct fc_storage **found = calloc(room ? room : 1, sizeof *found);
    if (!found) return PyErr_NoMemory();
    const size_t count = fc_pool_outstanding(of(self)->pool, found, room);
    if (count < room) room = count;
    PyObject *list = PyList_New(0);
    for (size_t k = 0; k < room; k++) {
        PyObject *row = list ? leak(found[k]) : NULL;
        if (list && (!row || PyList_Append(list, row))) Py_CLEAR(list);
        Py_XDECREF(row);
        fc_storage_drop(found[k]);
    }
    free(found);
    return list;
}

/* set_origin(buffer, text): note where a storage was made */
static PyObject *set_origin(PyObject *module, PyObject *args) {
    PyObject *buffer, *origin;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &buffer, &origin)) return NULL;
    if (!fh_is_buffer(buffer)) return PyErr_Format(PyExc_TypeError, "a buffer is required");
    return PyBool_FromLong(fh_set_origin(((fh_buffer *)buffer)->storage, origin));
}

static PyMethodDef methods[] = {
    {"acquire", FH_FAST(acquire_f32), METH_FASTCALL | METH_KEYWORDS,
     "acquire($self, length)\n--\n\nReturn an f32 storage of at least ``length`` elements, of unspecified content, with one reference."
     "\n\nClauses: POOL-SIZE-1, POOL-FIT-1, POOL-LIFO-1, POOL-COUNT-1, POOL-MEMORY-1"},
    {"_trace", trace, METH_NOARGS, NULL},
    {"_acquire", acquire, METH_VARARGS, NULL},
    {"_scratch", scratch, METH_VARARGS, NULL},
    {"_empty", FH_FAST(empty), METH_FASTCALL, NULL},
    {"_set_cap", set_cap, METH_O, NULL},
    {"_close", close_pool, METH_NOARGS, NULL},
    {"_outstanding", outstanding, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getters[] = {
    {"_counters", get_counters, NULL, NULL, NULL},
    {"_closed", get_closed, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(fh_pool, weak), READONLY, NULL}, {NULL, 0, 0, 0, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_new, FH_SLOT(pool_new)},    {Py_tp_dealloc, FH_SLOT(pool_dealloc)}, {Py_tp_methods, methods}, {Py_tp_getset, getters},
    {Py_tp_members, members}, {0, NULL},
};
static PyType_Spec spec = {"fucina.fast._handles.Pool", sizeof(fh_pool), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
static PyMethodDef functions[] = {{"set_origin", set_origin, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

int fh_add_pools(PyObject *module) {
    pool_base = (PyTypeObject *)PyType_FromSpec(&spec);
    slow_acquire = PyUnicode_InternFromString("_acquire_f32");
    if (!pool_base || !slow_acquire || PyModule_AddFunctions(module, functions)) return -1;
    return PyModule_AddObjectRef(module, "Pool", (PyObject *)pool_base);
}
