/*
 * What tensors of the facade compute in C of one tensor and its axis or a dtype: sum to narrow.  The Python layer tells what
 * it found out about a type and such an argument; whatever is not plain goes there, as in operations.c.
 */
#include "python/operations.h"
#include <string.h>

/* (type, axis): (type of the sum, place of the axis); (type, dtype): (type of the result, dtype's number); (type, axis): place. */
static PyObject *sums, *conversions, *places;
static PyObject *slow_sum, *slow_to, *slow_narrow;
static PyTypeObject *dtype_type; /* of the dtypes in `conversions` */

static fh_facade *of(PyObject *object) { return (fh_facade *)object; }
/* only what hashes and compares as itself is looked up */
static PyObject *known_axis(PyObject *pairs, PyObject *self, PyObject *axis) {
    return PyUnicode_CheckExact(axis) ? fh_known(pairs, (PyObject *)Py_TYPE(self), axis) : NULL;
}

/* Where the axes of an operand lie in its sum: -1 for the one that went; None where all did (clause AUTOGRAD-VJP-2). */
static PyObject *along_of(const fh_tensor *t, int gone) {
    if (t->rank == 1) {
        Py_INCREF(Py_None);
        return Py_None;
    }
    PyObject *axes = PyTuple_New(t->rank);
    for (int k = 0; axes && k < t->rank; k++) PyTuple_SetItem(axes, k, PyLong_FromLong(k == gone ? -1 : k - (k > gone)));
    return axes;
}
static PyObject *tracked(PyObject *self, PyObject *result, int operation, PyObject *constants) {
    return fh_noted(result, operation, &(struct fh_side){of(self), &of(self)->t}, NULL, constants);
}

static PyObject *plain_sum(fh_context *ctx, PyObject *self, PyObject *axis) {
    PyObject *known = known_axis(sums, self, axis), *type, *result = NULL;
    fh_facade *x = of(self);
    int at;
    if (!known) return NULL;
    Py_INCREF(known);
    if (PyArg_ParseTuple(known, "Oi", &type, &at)) result = fh_quick_sum_axis(ctx, (PyTypeObject *)type, x, at);
    if (result && fh_tracks(ctx, x, of(result)->t.dtype))
        result = tracked(self, result, FH_SUM, Py_BuildValue("(NN)", fh_tuple(x->t.rank, x->t.shape), along_of(&x->t, at)));
    Py_DECREF(known);
    return result;
}

static PyObject *plain_to(fh_context *ctx, PyObject *self, PyObject *dtype) {
    PyObject *known = Py_TYPE(dtype) == dtype_type ? fh_known(conversions, (PyObject *)Py_TYPE(self), dtype) : NULL, *type, *result = NULL;
    int number;
    if (!known) return NULL;
    Py_INCREF(known);
    if (PyArg_ParseTuple(known, "Oi", &type, &number)) result = fh_quick_convert(ctx, (PyTypeObject *)type, of(self), number);
    if (result && fh_tracks(ctx, of(self), number)) result = tracked(self, result, FH_TO, PyTuple_New(0));
    Py_DECREF(known);
    return result;
}

static PyObject *plain_narrow(fh_context *ctx, PyObject *self, PyObject *const *args) {
    PyObject *known = known_axis(places, self, args[0]);
    fh_tensor *t = &of(self)->t;
    size_t start, length, shape[FC_MAX_RANK];
    if (!known || !ctx->plain || !fh_is_usable(t) || t->bare) return NULL;
    const long at = PyLong_AsLong(known);
    if (at < 0 || at >= t->rank || !fh_u64(args[1], &start) || !fh_u64(args[2], &length)) return NULL;
    if (!length || length > t->shape[at] || start > t->shape[at] - length) return NULL;
    memcpy(shape, t->shape, sizeof shape);
    shape[at] = length;
    PyObject *result = fh_facade_view(of(self), (PyObject *)ctx, shape, t->offset + start * t->strides[at]);
    if (!result || !fh_tracks(ctx, of(self), t->dtype)) return result;
    return tracked(self, result, FH_NARROW, Py_BuildValue("(Nln)", fh_tuple(t->rank, t->shape), at, (Py_ssize_t)start));
}

/* -- the methods */

/* Clauses: POLICY-SUM-1, POLICY-TO-1, FACADE-VIEW-2 */
FH_PLAIN(sum, 1, plain_sum(ctx, self, args[1]), slow_sum)
FH_PLAIN(to, 1, plain_to(ctx, self, args[1]), slow_to)
FH_PLAIN(narrow, 3, plain_narrow(ctx, self, args + 1), slow_narrow)

/* -- what the Python layer tells; once for a type and an argument */

/* facade_sum(type, axis, type of the sum, place of the axis) */
static PyObject *knows_sum(PyObject *module, PyObject *args) {
    PyObject *type, *axis, *made;
    int at;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOi", &type, &axis, &made, &at)) return NULL;
    if (!PyUnicode_CheckExact(axis)) Py_RETURN_NONE;
    if (!fh_is_facade_type(type) || !fh_is_facade_type(made) || at < 0 || at >= FC_MAX_RANK)
        return PyErr_Format(PyExc_TypeError, "facade_sum(type, axis, type of the sum, place of the axis)");
    return fh_remembered(&sums, type, axis, Py_BuildValue("(Oi)", made, at));
}
/* facade_conversion(type, dtype, type of the result, the dtype's number) */
static PyObject *knows_conversion(PyObject *module, PyObject *args) {
    PyObject *type, *dtype, *made;
    int number;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOi", &type, &dtype, &made, &number)) return NULL;
    if (!fh_is_facade_type(type) || !fh_is_facade_type(made) || number < 0 || number >= FC_SCALAR_DTYPES || (dtype_type && Py_TYPE(dtype) != dtype_type))
        return PyErr_Format(PyExc_TypeError, "facade_conversion(type, dtype, type of the result, the dtype's number)");
    if (!dtype_type) Py_INCREF((PyObject *)(dtype_type = Py_TYPE(dtype)));
    return fh_remembered(&conversions, type, dtype, Py_BuildValue("(Oi)", made, number));
}
/* facade_axis(type, axis, place of the axis): of a type of scalar dtype */
static PyObject *knows_axis(PyObject *module, PyObject *args) {
    PyObject *type, *axis;
    int at;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOi", &type, &axis, &at)) return NULL;
    if (!PyUnicode_CheckExact(axis)) Py_RETURN_NONE;
    if (!fh_is_facade_type(type) || at < 0 || at >= FC_MAX_RANK) return PyErr_Format(PyExc_TypeError, "facade_axis(type, axis, place of the axis)");
    return fh_remembered(&places, type, axis, PyLong_FromLong(at));
}

static PyMethodDef functions[] = {
    {"facade_sum", knows_sum, METH_VARARGS, NULL},
    {"facade_conversion", knows_conversion, METH_VARARGS, NULL},
    {"facade_axis", knows_axis, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int fh_add_singles(PyObject *module) {
    slow_sum = PyUnicode_InternFromString("_sum");
    slow_to = PyUnicode_InternFromString("_to");
    slow_narrow = PyUnicode_InternFromString("_narrow");
    if (!slow_sum || !slow_to || !slow_narrow) return -1;
    return PyModule_AddFunctions(module, functions);
}
