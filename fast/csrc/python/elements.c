/* The elements of a tensor: as arrays and buffers, copied, and changed in place. */
#include "python/handles.h"
#include "ops/ops.h"
#include "tensor/copy.h"
#include <string.h>


static fh_tensor *of(PyObject *object) { return (fh_tensor *)object; }

/* -- elements */

/* _pin(start, count, writable): bytes of storage elements, with a pin; the range must lie in the storage */
PyObject *fh_pin_range(PyObject *self, PyObject *args) {
    unsigned long long start, count;
    int writable;
    if (!PyArg_ParseTuple(args, "KKp", &start, &count, &writable)) return NULL;
    FH_REQUIRE_USABLE(self);
    struct fc_storage *s = of(self)->storage;
    const size_t size = fh_element_size[s->dtype], capacity = fh_capacity(s);
    if (start > capacity || count > capacity - start) return PyErr_Format(PyExc_ValueError, "bytes outside the storage");
    return fh_pin(s, (size_t)start * size, (size_t)count * size, writable);
}

struct piece {
    const fh_tensor *t;
    size_t dims[FC_MAX_RANK];
    unsigned char *to;
    size_t start, count;
    int all;
};

static void copy(const struct piece *p, const unsigned char *first) {
    const size_t size = fh_element_size[p->t->dtype];
    if (p->all)
        fc_copy_view(first, size, p->t->rank, p->dims, p->t->strides, p->to);
    else
        fc_copy_range(first, size, p->t->rank, p->dims, p->t->strides, p->start, p->count, p->to);
}

/* _copy(address, start, count): elements of the row-major order to memory that the caller keeps in place */
PyObject *fh_copy_elements(PyObject *self, PyObject *args) {
    unsigned long long address, start, count;
    if (!PyArg_ParseTuple(args, "KKK", &address, &start, &count)) return NULL;
    FH_REQUIRE_USABLE(self);
    const fh_tensor *t = of(self);
    struct fc_storage *s = t->storage;
    const size_t all = fh_storage_count(t);
    if (start > all || count > all - start) return PyErr_Format(PyExc_IndexError, "elements outside the tensor");
    if (!count) Py_RETURN_NONE;
    struct piece piece = {t, {0}, (unsigned char *)(uintptr_t)address, (size_t)start, (size_t)count, start == 0 && count == all};
    fh_storage_shape(t, piece.dims);
    if (count * fh_element_size[s->dtype] < FH_LARGE) {
        copy(&piece, fh_first(t));
        Py_RETURN_NONE;
    }
    if (!fc_storage_pin(s)) return fh_unusable(t); /* the memory stays whatever other threads do */
    const unsigned char *first = fh_first(t);
    PyThreadState *state = PyEval_SaveThread();
    copy(&piece, first);
    PyEval_RestoreThread(state);
    fc_storage_unpin(s);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* _add(other): both contiguous, of one shape, apart or the same; counts as one mutable access */
PyObject *fh_add(PyObject *self, PyObject *object) {
    if (!fh_is_tensor(object)) return PyErr_Format(PyExc_TypeError, "a tensor is required");
    FH_REQUIRE_USABLE(self);
    FH_REQUIRE_USABLE(object);
    fh_tensor *t = of(self), *other = of(object);
    const size_t n = fh_storage_count(t);
    if (t->dtype != other->dtype || fh_storage_count(other) != n || !fh_is_contiguous(t) || !fh_is_contiguous(other))
        return PyErr_Format(PyExc_ValueError, "tensors of one kind are required");
    if (!fh_open(t)) return NULL;
    FH_REQUIRE_USABLE(object);
    struct fc_storage *s = t->storage, *its = other->storage;
    if (!fc_storage_pin(s)) return fh_unusable(t);
    if (!fc_storage_pin(its)) {
        fc_storage_unpin(s);
        return fh_unusable(other);
    }
    void *values = s->data + t->offset * fh_element_size[s->dtype];
    const void *terms = its->data + other->offset * fh_element_size[s->dtype];
    const int dtype = s->dtype;
    const size_t step = 1;
    PyThreadState *state = n * fh_element_size[dtype] >= FH_LARGE ? PyEval_SaveThread() : NULL;
    fc_pointwise(FC_ADD, dtype, 1, &n, values, &step, terms, &step, values);
    if (state) PyEval_RestoreThread(state);
    fc_storage_unpin(its);
    fc_storage_unpin(s);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* _scale(float): contiguous; counts as one mutable access */
PyObject *fh_scale(PyObject *self, PyObject *factor) {
    if (!PyFloat_Check(factor)) return PyErr_Format(PyExc_TypeError, "a float is required");
    const double value = PyFloat_AsDouble(factor);
    FH_REQUIRE_USABLE(self);
    fh_tensor *t = of(self);
    if (!fh_is_contiguous(t)) return PyErr_Format(PyExc_ValueError, "a contiguous tensor is required");
    if (!fh_open(t)) return NULL;
    struct fc_storage *s = t->storage;
    if (!fc_storage_pin(s)) return fh_unusable(t);
    const size_t n = fh_storage_count(t), step = 1;
    void *values = fh_first(t);
    const int dtype = s->dtype;
    PyThreadState *state = n * fh_element_size[dtype] >= FH_LARGE ? PyEval_SaveThread() : NULL;
    fc_scale(dtype, 1, &n, values, &step, value, values);
    if (state) PyEval_RestoreThread(state);
    fc_storage_unpin(s);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* -- arrays */

/* Clauses: TENSOR-DATA-1, STORAGE-PIN-1: the elements of a contiguous tensor, one-dimensional */
static PyObject *window(const fh_tensor *t, int writable) {
    const size_t count = fh_storage_count(t), size = fh_element_size[t->dtype];
    PyObject *memory = fh_pin(t->storage, t->offset * size, count * size, writable), *array = NULL;
    PyObject *length = memory ? PyLong_FromSize_t(count) : NULL;
    if (length) array = PyObject_CallFunctionObjArgs(fh_ndarray, length, fh_element[t->dtype], memory, NULL);
    Py_XDECREF(length);
    Py_XDECREF(memory);
    return array;
}
PyObject *fh_data(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    if (of(self)->storage->read_only || !fh_is_contiguous(of(self))) return PyObject_CallMethod(self, "_data", NULL);
    return fh_open(of(self)) ? window(of(self), 1) : NULL;
}
PyObject *fh_data_const(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    if (!fh_is_contiguous(of(self))) return PyObject_CallMethod(self, "_data_const", NULL);
    return window(of(self), 0);
}

/* Whether two places of the view may be the same element; an axis of size 1 is nowhere. */
static int repeats(int rank, const size_t *dims, const size_t *strides) {
    size_t reach = 1;
    uint32_t done = 0;
    for (int turn = 0; turn < rank; turn++) {
        int least = -1;
        for (int k = 0; k < rank; k++)
            if (!(done >> k & 1) && dims[k] > 1 && (least < 0 || strides[k] < strides[least])) least = k;
        if (least < 0) break;
        if (strides[least] < reach) return 1;
        reach += (dims[least] - 1) * strides[least];
        done |= 1u << least;
    }
    return 0;
}

/* _writable(): whether the elements may be handed out to be written */
static int is_writable(const fh_tensor *t) {
    size_t dims[FC_MAX_RANK] = {0};
    fh_storage_shape(t, dims);
    return !t->storage->read_only && !repeats(t->rank, dims, t->strides);
}
PyObject *fh_writable(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return PyBool_FromLong(is_writable(of(self)));
}

/* The elements as an array in their shape, with a pin; no mutable access yet (TENSOR-ARRAY-1, STORAGE-PIN-1). */
static PyObject *array_of(const fh_tensor *t, int writable) {
    const size_t size = fh_element_size[t->dtype];
    const int axes = t->bare ? 0 : t->rank;
    size_t dims[FC_MAX_RANK] = {0}, steps[FC_MAX_RANK], last = 0;
    fh_storage_shape(t, dims);
    for (int k = 0; k < t->rank; k++) {
        steps[k] = dims[k] > 1 ? t->strides[k] * size : 0;
        last += (dims[k] - 1) * steps[k];
    }
    PyObject *memory = fh_pin(t->storage, t->offset * size, last + size, writable);
    if (!memory) return NULL;
    PyObject *shape = fh_tuple(axes, dims), *strides = fh_tuple(axes, steps), *zero = PyLong_FromLong(0), *array = NULL;
    if (shape && strides && zero)
        array = PyObject_CallFunctionObjArgs(fh_ndarray, shape, fh_element[t->dtype], memory, zero, strides, NULL);
    if (!array && (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_OverflowError))) {
        PyErr_Clear();
        fh_refuse(FH_ExportRefused, "TENSOR-ARRAY-1", "no array can have the shape %R", shape);
    }
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_XDECREF(zero);
    Py_DECREF(memory);
    return array;
}

/* _exported(): the array, writable where that can be (TENSOR-ARRAY-1, STORAGE-GEN-1) */
PyObject *fh_exported(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    const int writable = is_writable(of(self));
    PyObject *array = array_of(of(self), writable);
    if (array && writable && !fh_open(of(self))) Py_CLEAR(array);
    return array;
}

/* The elements as a buffer: what numpy makes of the array, which holds the pin; one that is refused is no access
   (TENSOR-ARRAY-1, STORAGE-GEN-1). */
int fh_export(PyObject *self, Py_buffer *view, int flags) {
    view->obj = NULL;
    if (!fh_is_usable(of(self))) {
        fh_unusable(of(self));
        return -1;
    }
    const int writable = is_writable(of(self));
    PyObject *array = array_of(of(self), writable);
    if (!array) return -1;
    const int status = PyObject_GetBuffer(array, view, flags);
    if (status) {
        PyErr_Clear();
        fh_refuse(FH_ExportRefused, "TENSOR-ARRAY-1", "%R cannot be exported as this kind of buffer", self);
    } else if (writable && !fh_open(of(self))) {
        PyBuffer_Release(view);
    }
    Py_DECREF(array);
    return PyErr_Occurred() ? -1 : 0;
}

