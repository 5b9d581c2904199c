/*
 * Block formats by the short way into the core: each function returns its result, or NULL without an exception where an
 * argument is not plain or the call is an error.
 */
#ifndef FC_PYTHON_BLOCK_CALLS_H
#define FC_PYTHON_BLOCK_CALLS_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define FC_BLOCK_CALLS(X) X(dequantize) X(quantize) X(dequantize_rows)

#define X(name) PyObject *plain_##name(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
FC_BLOCK_CALLS(X)
#undef X

/* configure_blocks(members, structs, may_reject): the 27 dtypes, their numpy dtypes, and whether their encoder may reject */
PyObject *block_calls_configure(PyObject *module, PyObject *args);

#endif
