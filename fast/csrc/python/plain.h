/*
 * Plain arguments, the only ones that the short way from Python into the core takes (python/entry.c, python/block_calls.c):
 * exact ints and floats, numpy arrays proper, memoryviews.  Whatever is not plain is no error: these functions say so and
 * leave no exception behind, and the call goes to the Python layer.
 */
#ifndef FC_PYTHON_PLAIN_H
#define FC_PYTHON_PLAIN_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "core/dtype.h"
#include <stdint.h>

extern PyObject *plain_storages[FC_SCALAR_DTYPES]; /* the numpy dtypes of the scalar dtypes */

/* Call once: ndarray, empty, and the numpy dtypes; -1 with an exception. */
int plain_configure(PyObject *ndarray, PyObject *empty, PyObject *storages);

int plain_is_array(PyObject *object); /* a numpy array proper, no subclass */

/* Take the buffer of an array or a memoryview, C-contiguous, with elements of the dtype; with `writing` also writable and
   aligned.  To be released if the answer is 1. */
int plain_take(PyObject *object, int dtype, int writing, Py_buffer *buffer);

/* Take a buffer that may hold anything; C-contiguous.  `flags` on top of PyBUF_CONTIG_RO. */
int plain_take_any(PyObject *object, int flags, Py_buffer *buffer);

int plain_u64(PyObject *object, uint64_t *value);
int plain_i64(PyObject *object, int64_t *value);
int plain_double(PyObject *object, double *value);

/* Whether two buffers share no byte. */
int plain_apart(const Py_buffer *a, const Py_buffer *b);

/* A new array of a numpy dtype: its shape is `dims` lengths, and then `last`, if that is not -1. */
PyObject *plain_new(const Py_ssize_t *lengths, int dims, Py_ssize_t last, PyObject *numpy_dtype);

#endif
