/* Which arguments are plain, and arrays for the results. */
#include "python/plain.h"
#include "core/fault.h"
#include <string.h>

PyObject *plain_storages[FC_SCALAR_DTYPES];

static PyObject *array_type; /* numpy.ndarray */
static PyObject *make_empty; /* numpy.empty */

/* the buffer formats of each dtype's storage form, and its size */
static const struct {
    const char *codes;
    Py_ssize_t size;
} formats[FC_SCALAR_DTYPES] = {
    [FC_bool] = {"?", 1}, [FC_u8] = {"B", 1},   [FC_u16] = {"H", 2},  [FC_i8] = {"b", 1},      [FC_i16] = {"h", 2},
    [FC_i32] = {"il", 4}, [FC_i64] = {"lq", 8}, [FC_f16] = {"e", 2},  [FC_bf16] = {"H", 2},    [FC_f32] = {"f", 4},
    [FC_f64] = {"d", 8},  [FC_f8_e4m3] = {"B", 1}, [FC_f8_e5m2] = {"B", 1},
};

int plain_configure(PyObject *ndarray, PyObject *empty, PyObject *storages) {
    if (PyTuple_Size(storages) != FC_SCALAR_DTYPES) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "13 scalar dtypes are expected");
        return -1;
    }
    Py_INCREF(array_type = ndarray);
    Py_INCREF(make_empty = empty);
    for (int k = 0; k < FC_SCALAR_DTYPES; k++) Py_INCREF(plain_storages[k] = PyTuple_GetItem(storages, k));
    return 0;
}

int plain_is_array(PyObject *object) { return (PyObject *)Py_TYPE(object) == array_type; }

int plain_take_any(PyObject *object, int flags, Py_buffer *buffer) {
    /* PyBUF_WRITABLE is not asked for: numpy may warn then; the flag in the buffer tells */
    if (PyObject_GetBuffer(object, buffer, PyBUF_CONTIG_RO | flags) == 0) return 1;
    PyErr_Clear();
    return 0;
}

int plain_take(PyObject *object, int dtype, int writing, Py_buffer *buffer) {
    if (!plain_is_array(object) && !PyMemoryView_Check(object)) return 0;
    if (!plain_take_any(object, PyBUF_FORMAT, buffer)) return 0;
    const Py_ssize_t size = formats[dtype].size;
    const char *format = buffer->format;
    if (format && format[0] && !format[1] && strchr(formats[dtype].codes, format[0]) && buffer->itemsize == size &&
        (!writing || ((!buffer->readonly || FC_PLANTED(ENTRY_READ_ONLY_OUT)) &&
                      ((uintptr_t)buffer->buf % (size_t)size == 0 || FC_PLANTED(ENTRY_UNALIGNED_OUT)))))
        return 1;
    PyBuffer_Release(buffer);
    return 0;
}

int plain_u64(PyObject *object, uint64_t *value) {
    if (!FC_PLANT(ENTRY_BOOL_SEED, PyLong_CheckExact(object), PyLong_Check(object))) return 0;
    *value = PyLong_AsUnsignedLongLong(object);
    if (*value == UINT64_MAX && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

int plain_i64(PyObject *object, int64_t *value) {
    if (!PyLong_CheckExact(object)) return 0;
    *value = PyLong_AsLongLong(object);
    if (*value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

/* no arithmetic: a float hands out its double, Python rounds an int in integers (NUM-ENV-2) */
int plain_double(PyObject *object, double *value) {
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

int plain_apart(const Py_buffer *a, const Py_buffer *b) {
    const uintptr_t first = (uintptr_t)a->buf, second = (uintptr_t)b->buf;
    return first + (size_t)a->len <= second || second + (size_t)b->len <= first || a->len == 0;
}

PyObject *plain_new(const Py_ssize_t *lengths, int dims, Py_ssize_t last, PyObject *numpy_dtype) {
    const int all = dims + (last != -1);
    PyObject *made = NULL, *shape = all == 1 ? NULL : PyTuple_New(all);
    if (all != 1 && !shape) goto end;
    for (int k = 0; k < all; k++) {
        PyObject *length = PyLong_FromSsize_t(k < dims ? lengths[k] : last);
        if (!length) goto end;
        if (all == 1)
            shape = length;
        else
            PyTuple_SetItem(shape, k, length);
    }
    made = PyObject_CallFunctionObjArgs(make_empty, shape, numpy_dtype, NULL);
end:
    Py_XDECREF(shape);
    if (!made) PyErr_Clear();
    return made;
}
