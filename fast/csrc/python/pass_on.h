/* Handing a call that C does not take to the Python layer: the arguments of a METH_FASTCALL | METH_KEYWORDS function as they came. */
#ifndef FC_PYTHON_PASS_ON_H
#define FC_PYTHON_PASS_ON_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static inline PyObject *pass_on(PyObject *callable, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    PyObject *positional = PyTuple_New(count), *keywords = named ? PyDict_New() : NULL, *result = NULL;
    if (!positional || (named && !keywords)) goto end;
    for (Py_ssize_t k = 0; k < count; k++) {
        Py_INCREF(args[k]);
        PyTuple_SetItem(positional, k, args[k]);
    }
    for (Py_ssize_t k = 0; k < named; k++)
        if (PyDict_SetItem(keywords, PyTuple_GetItem(names, k), args[count + k])) goto end;
    result = PyObject_Call(callable, positional, keywords);
end:
    Py_XDECREF(positional);
    Py_XDECREF(keywords);
    return result;
}

/* The same for the method of an object. */
static inline PyObject *pass_on_to_method(PyObject *self, PyObject *name, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *method = PyObject_GetAttr(self, name), *result = method ? pass_on(method, args, count, names) : NULL;
    Py_XDECREF(method);
    return result;
}

#endif
