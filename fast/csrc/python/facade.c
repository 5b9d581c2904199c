/*
 * The facade's tensors: a raw tensor's fields, a node, a context.  Their types are made in the Python layer, one for each
 * dtype and tags.  What they compute is in operations.c.
 */
#include "python/operations.h"
#include <string.h>

static PyTypeObject *facade_base;
static PyObject *destroy_name, *rank_name, *basicsize_name;

static fh_facade *of(PyObject *object) { return (fh_facade *)object; }
int fh_is_facade(PyObject *object) { return PyObject_TypeCheck(object, facade_base); }
int fh_is_handle(PyObject *object) { return fh_is_tensor(object) || fh_is_facade(object); }

/* -- making */

/* Objects that have ended, for the next ones: small operations make and end one each.  They are of one size and layout, which
   is looked at where a type is given to us: none whose objects have a dict or a list of weak references in front of them. */
enum { SPARES = 16, IN_FRONT = 1 << 3 | 1 << 4 };
static fh_facade *spare[SPARES];
static int spares;

int fh_is_facade_type(PyObject *type) {
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, facade_base)) return 0;
    if (PyType_GetFlags((PyTypeObject *)type) & IN_FRONT) return 0;
    PyObject *size = PyObject_GetAttr(type, basicsize_name);
    const int ours = size && PyLong_AsLong(size) == (long)sizeof(fh_facade);
    Py_XDECREF(size);
    return ours;
}

static fh_facade *facade_alloc(PyTypeObject *type) {
    if (!spares) return (fh_facade *)PyType_GenericAlloc(type, 0);
    fh_facade *self = spare[--spares];
    fh_tensor *t = &self->t; /* its shape and strides are as many as its rank */
    t->weak = NULL;
    t->storage = NULL;
    t->shape_object = t->strides_object = t->origin = t->lender = NULL;
    t->offset = 0;
    t->rank = t->dtype = t->life = t->bare = 0;
    self->node = self->context = NULL;
    self->constructed = self->parted = 0;
    PyObject_Init((PyObject *)self, type);
    PyObject_GC_Track(self);
    return self;
}

PyObject *fh_facade_empty(PyTypeObject *type, int dtype, int bare, PyObject *context, fh_pool *pool, int rank, const size_t *shape) {
    fh_facade *self = facade_alloc(type);
    if (!self) return NULL;
    fh_tensor *t = &self->t;
    struct fc_storage *s = t->storage = fc_pool_acquire(pool->pool, dtype, fc_count(rank, shape), fh_element_size[dtype]);
    if (!s) {
        Py_DECREF(self);
        return fh_refuse(FH_OutOfMemory, "POOL-MEMORY-1", "no memory for a tensor of %llu elements", (unsigned long long)fc_count(rank, shape));
    }
    t->rank = (uint8_t)rank;
    t->dtype = (uint8_t)dtype;
    t->bare = bare != 0;
    struct fc_pooled *pooled = (struct fc_pooled *)s; /* what a report of leaks would say (clause POOL-LEAK-1) */
    pooled->rank = (uint8_t)rank;
    for (int k = 0; k < rank; k++) t->shape[k] = pooled->shape[k] = shape[k]; /* shapes are short: a call costs more */
    fc_row_major(rank, t->shape, t->strides);
    Py_INCREF(self->context = context);
    return (PyObject *)self;
}

/* A tensor that takes over the reference of a raw one. */
static fh_facade *taken_over(PyTypeObject *type, fh_tensor *raw, int bare) {
    fh_facade *self = facade_alloc(type);
    if (!self) return NULL;
    if (!fh_are_usable(&raw, 1)) {
        Py_DECREF(self);
        return NULL;
    }
    fh_tensor *t = &self->t;
    t->storage = raw->storage;
    t->origin = raw->origin;
    t->offset = raw->offset;
    t->rank = raw->rank;
    t->dtype = raw->dtype;
    t->bare = bare != 0;
    memcpy(t->shape, raw->shape, sizeof t->shape);
    memcpy(t->strides, raw->strides, sizeof t->strides);
    raw->storage = NULL;
    raw->origin = NULL;
    raw->life = FH_REPLACED;
    return self;
}

PyObject *fh_facade_view(fh_facade *x, PyObject *context, const size_t *shape, size_t offset) {
    PyObject *raw = fh_view_of(&x->t, x->t.rank, shape, x->t.strides, offset);
    fh_facade *self = raw ? taken_over(Py_TYPE((PyObject *)x), (fh_tensor *)raw, 0) : NULL;
    Py_XDECREF(raw);
    if (self) Py_INCREF(self->context = context);
    return (PyObject *)self;
}

/* facade_over(type, context or None, raw, node or None, constructed): a tensor that takes over the reference of a raw one,
   which is consumed; on error it is as it was (clause FACADE-NEW-1) */
static PyObject *over(PyObject *module, PyObject *args) {
    PyObject *type, *context, *object, *node;
    int constructed;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOOp", &type, &context, &object, &node, &constructed)) return NULL;
    fh_tensor *raw = (fh_tensor *)object;
    if (!fh_is_facade_type(type) || !fh_is_tensor(object) || raw->life != FH_OWNED ||
        raw->lender || !fh_is_usable(raw))
        return PyErr_Format(PyExc_ValueError, "facade_over(type, context, raw tensor of the caller's, node, constructed)");
    PyObject *number = PyObject_GetAttr(type, rank_name);
    const long rank = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    if (PyErr_Occurred()) return NULL;
    if (rank != (raw->rank == 1 && raw->shape[0] == 1 && rank == 0 ? 0 : raw->rank))
        return PyErr_Format(PyExc_ValueError, "a tensor of another rank");
    fh_facade *self = taken_over((PyTypeObject *)type, raw, rank == 0);
    if (!self) return NULL;
    self->constructed = constructed != 0;
    if (context != Py_None) Py_INCREF(self->context = context);
    if (node != Py_None) Py_INCREF(self->node = node);
    return (PyObject *)self;
}

static PyObject *facade_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)args, (void)keywords;
    return fh_refuse_type(FH_DTypeMismatch, "FACADE-TYPE-2", "a %U is made by its constructors, such as zeros(ctx, shape)", type);
}

/* Clause: FACADE-RAW-1 */
static PyObject *as_raw_tensor(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    const fh_tensor *t = &of(self)->t;
    PyTypeObject *type = fh_tensor_type(t->dtype);
    fh_tensor *raw = type ? (fh_tensor *)PyType_GenericAlloc(type, 0) : NULL;
    if (!raw) return NULL;
    fc_storage_hold(raw->storage = t->storage);
    Py_INCREF(raw->lender = self);
    raw->rank = t->rank;
    raw->dtype = t->dtype;
    raw->offset = t->offset;
    memcpy(raw->shape, t->shape, sizeof raw->shape);
    memcpy(raw->strides, t->strides, sizeof raw->strides);
    return (PyObject *)raw;
}

/* -- the end */

/* After the storage was let go: the node is destroyed, unless that was consumed with it; what was raised first comes out.  A
   destroyed node stays: an operation that this tensor ended under still finds that it tracks. */
static PyObject *parted(PyObject *self, PyObject *result, int destroyed) {
    fh_facade *f = of(self);
    if (f->t.storage || f->parted) return result;
    f->parted = 1;
    struct fh_pending pending;
    fh_pending_save(&pending);
    if (f->node && destroyed) Py_XDECREF(PyObject_CallMethodObjArgs(f->node, destroy_name, NULL));
    if (!destroyed) Py_CLEAR(f->node);
    Py_CLEAR(f->context);
    fh_pending_restore(&pending, self, 0);
    if (PyErr_Occurred()) Py_CLEAR(result);
    return result;
}

/* Clauses: FACADE-OWN-1, AUTOGRAD-LIFE-1 */
static PyObject *deinit(PyObject *self, PyObject *unused) { return parted(self, fh_tensor_deinit(self, unused), 1); }
static PyObject *deinit_replaced(PyObject *self, PyObject *unused) { return parted(self, fh_tensor_deinit_replaced(self, unused), 1); }
static PyObject *leave(PyObject *self, PyObject *const *args, Py_ssize_t count) { return parted(self, fh_tensor_leave(self, args, count), 1); }
/* Clauses: FACADE-OWN-2, SCOPE-CLOSE-1 */
static PyObject *close_scoped(PyObject *self, PyObject *unused) { return parted(self, fh_tensor_close(self, unused), 1); }

/* _consumed(): the reference in a raw tensor; a further deinit does nothing (clause POLICY-TAKE-1) */
static PyObject *consumed(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    fh_tensor *t = &of(self)->t;
    if (t->life != FH_OWNED) return PyErr_Format(PyExc_ValueError, "a tensor of the caller's is consumed");
    fc_storage_hold(t->storage);
    if (!fc_storage_retain(t->storage)) { /* so that on error the reference stays */
        fc_storage_drop(t->storage);
        return fh_refuse(FH_Overflow, "STORAGE-REF-1", "a storage has fewer than 2^30 references, got one more of %R", self);
    }
    PyObject *raw = fh_tensor_over(t->storage, t->rank, t->shape, t->strides, t->offset);
    if (!raw) return NULL;
    fh_end(t, FH_REPLACED); /* not the last reference */
    return parted(self, raw, 0);
}

static int facade_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(of(self)->node);
    Py_VISIT(of(self)->context);
    Py_VISIT((PyObject *)Py_TYPE(self));
    return 0;
}
static int facade_clear(PyObject *self) {
    Py_CLEAR(of(self)->node);
    Py_CLEAR(of(self)->context);
    return 0;
}

/* Clauses: FACADE-OWN-1, AUTOGRAD-LIFE-1: the node lives on where another one needs it */
static void facade_dealloc(PyObject *object) {
    fh_facade *f = of(object);
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (f->t.weak) PyObject_ClearWeakRefs(object);
    fh_tensor_clear(&f->t, f->constructed);
    Py_XDECREF(f->node);
    Py_XDECREF(f->context);
    if (spares < SPARES)
        spare[spares++] = f;
    else
        PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* -- looking */

static PyObject *get_shape(PyObject *self, void *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    fh_tensor *t = &of(self)->t;
    if (!t->shape_object && !(t->shape_object = fh_tuple(t->bare ? 0 : t->rank, t->shape))) return NULL;
    Py_INCREF(t->shape_object);
    return t->shape_object;
}
/* of the raw tensor: for a scalar (1,) */
static PyObject *get_raw_shape(PyObject *self, void *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return fh_tuple(of(self)->t.rank, of(self)->t.shape);
}
static PyObject *get_raw_strides(PyObject *self, void *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return fh_tuple(of(self)->t.rank, of(self)->t.strides);
}
static PyObject *get_raw_offset(PyObject *self, void *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return PyLong_FromSize_t(of(self)->t.offset);
}
static PyObject *get_requires_grad(PyObject *self, void *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return PyBool_FromLong(of(self)->node != NULL);
}
static PyObject *get_node(PyObject *self, void *unused) {
    (void)unused;
    PyObject *node = of(self)->node ? of(self)->node : Py_None;
    Py_INCREF(node);
    return node;
}
static PyObject *get_context(PyObject *self, void *unused) {
    (void)unused;
    PyObject *context = of(self)->context ? of(self)->context : Py_None;
    Py_INCREF(context);
    return context;
}
static PyObject *check(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    Py_RETURN_NONE;
}

#define BINARY(name, what) #name "($self, ctx, other)\n--\n\n" what "\n\nClauses: POLICY-TAGS-1, POLICY-ARITH-1, POLICY-MIXED-1, AUTOGRAD-VJP-1"
static PyMethodDef methods[] = {
    {"add", FH_FAST(fh_op_add), METH_FASTCALL | METH_KEYWORDS, BINARY(add, "Return the sum.")},
    {"sub", FH_FAST(fh_op_sub), METH_FASTCALL | METH_KEYWORDS, BINARY(sub, "Return the difference.")},
    {"mul", FH_FAST(fh_op_mul), METH_FASTCALL | METH_KEYWORDS, BINARY(mul, "Return the product, element by element.")},
    {"div", FH_FAST(fh_op_div), METH_FASTCALL | METH_KEYWORDS, BINARY(div, "Return the quotient, of integers truncated.")},
    {"scale", FH_FAST(fh_op_scale), METH_FASTCALL | METH_KEYWORDS, "scale($self, ctx, number)\n--\n\nReturn the tensor times a number.\n\nClauses: POLICY-SCALAR-1, AUTOGRAD-VJP-1"},
    {"sum_all", FH_FAST(fh_op_sum_all), METH_FASTCALL | METH_KEYWORDS, "sum_all($self, ctx)\n--\n\nReturn the sum of all elements, a scalar.\n\nClauses: POLICY-SUM-1, POLICY-RESULT-1, AUTOGRAD-VJP-2"},
    {"dot", FH_FAST(fh_op_dot), METH_FASTCALL | METH_KEYWORDS,
     "dot($self, ctx, other, axis=None)\n--\n\nReturn the sums of products along an axis that both tensors have.\n\n"
     "Parameters\n----------\nctx : ExecContext\n    The context.\nother : Tensor\n    Of the same dtype.\naxis : str, optional\n"
     "    The tag of the axis; without, the only one that they have in common.\n\n"
     "Raises\n------\nDTypeMismatch, UseAfterDeinit, UseAfterScope, InvalidDType\n    No two tensors of one dtype of floats.\n"
     "InvalidTag\n    There is no such axis; others are in common too.\n"
     "ShapeMismatch, InvalidShape, Overflow, OutOfMemory\n    Its sizes differ; there is no such result.\n\n"
     "Clauses: POLICY-DOT-1, AUTOGRAD-VJP-6"},
    {"sum", FH_FAST(fh_op_sum), METH_FASTCALL | METH_KEYWORDS,
     "sum($self, ctx, axes=None, *, keep_dims=False)\n"
     "--\n"
     "\n"
     "Return the sums along an axis, several, or all.\n"
     "\n"
     "Parameters\n"
     "----------\n"
     "ctx : ExecContext\n"
     "    The context.\n"
     "axes : str, int, tuple or list, optional\n"
     "    One axis or several; without, all.\n"
     "keep_dims : bool\n"
     "    Whether they stay with size 1.\n"
     "\n"
     "Returns\n"
     "-------\n"
     "Tensor\n"
     "    Of f32 for 16-bit floats, of i64 for integers and bools, else of the same dtype.\n"
     "\n"
     "Raises\n"
     "------\n"
     "InvalidDType, InvalidTag, DTypeMismatch\n"
     "    Blocks and f8; no such axes; no bool.\n"
     "EmptySelection, Overflow, OutOfMemory\n"
     "    An empty tuple; there is no such result.\n"
     "\n"
     "Clauses: POLICY-SUM-1, POLICY-RESULT-1, AUTOGRAD-VJP-2"},
    {"add_scalar", FH_FAST(fh_op_add_scalar), METH_FASTCALL | METH_KEYWORDS,
     "add_scalar($self, ctx, number)\n"
     "--\n"
     "\n"
     "Return the tensor plus a number.\n"
     "\n"
     "Parameters\n"
     "----------\n"
     "ctx : ExecContext\n"
     "    The context.\n"
     "number : float\n"
     "    Rounded to f32; for f64 to f64.\n"
     "\n"
     "Raises\n"
     "------\n"
     "InvalidDType\n"
     "    Not of f16, bf16, f32 or f64.\n"
     "DTypeMismatch, OutOfMemory\n"
     "    No number; there is no memory.\n"
     "\n"
     "Clauses: POLICY-SCALAR-1, AUTOGRAD-VJP-1"},
    {"to", FH_FAST(fh_op_to), METH_FASTCALL | METH_KEYWORDS,
     "to($self, ctx, dtype)\n"
     "--\n"
     "\n"
     "Return a new tensor with every element converted to another dtype.\n"
     "\n"
     "Parameters\n"
     "----------\n"
     "ctx : ExecContext\n"
     "    The context.\n"
     "dtype : DType\n"
     "    A scalar dtype; for blocks f32.\n"
     "\n"
     "Raises\n"
     "------\n"
     "InvalidDType\n"
     "    No such conversion.\n"
     "OutOfMemory\n"
     "    There is no memory.\n"
     "\n"
     "Clauses: POLICY-TO-1, AUTOGRAD-VJP-3"},
    {"narrow", FH_FAST(fh_op_narrow), METH_FASTCALL | METH_KEYWORDS,
     "narrow($self, ctx, axis, start, length)\n"
     "--\n"
     "\n"
     "Return a view of the indices ``start`` to ``start + length - 1`` of an axis.\n"
     "\n"
     "Raises\n"
     "------\n"
     "InvalidDType, InvalidTag\n"
     "    Of blocks; there is no such axis.\n"
     "InvalidInteger, IndexOutOfBounds, InvalidDataLength, Overflow, EmptySelection\n"
     "    The range does not lie within the axis, or is empty.\n"
     "\n"
     "Clauses: FACADE-VIEW-2, CONTEXT-NARROW-1"},
    {"grad", FH_FAST(fh_op_grad), METH_FASTCALL | METH_KEYWORDS, "grad($self, ctx)\n--\n\nReturn a copy of a leaf's gradient, the caller's; None where there is none.\n\nClauses: AUTOGRAD-GRAD-1"},
    {"data", fh_data, METH_NOARGS, "data($self)\n--\n\nReturn the elements of a contiguous tensor as a flat array to write to.\n\nClauses: FACADE-LOOK-1, TENSOR-DATA-1"},
    {"data_const", fh_data_const, METH_NOARGS, "data_const($self)\n--\n\nReturn the elements of a contiguous tensor as a flat array to read.\n\nClauses: FACADE-LOOK-1, TENSOR-DATA-1"},
    {"as_raw_tensor", as_raw_tensor, METH_NOARGS, "as_raw_tensor($self)\n--\n\nReturn the raw tensor below, which owns nothing.\n\nClauses: FACADE-RAW-1"},
    {"deinit", deinit, METH_NOARGS, "deinit($self)\n--\n\nGive the reference back and destroy the node; of a tensor that a scope owns, nothing.\n\nClauses: FACADE-OWN-1, AUTOGRAD-LIFE-1"},
    {"__enter__", fh_tensor_enter, METH_NOARGS, NULL},
    {"__exit__", FH_FAST(leave), METH_FASTCALL, NULL},
    {"_check", check, METH_NOARGS, NULL},
    {"_is_usable", fh_tensor_is_usable, METH_NOARGS, NULL},
    {"_is_contiguous", fh_tensor_is_contiguous, METH_NOARGS, NULL},
    {"_can_take_in_place", fh_tensor_can_take_in_place, METH_NOARGS, NULL},
    {"_clone_view", fh_tensor_clone_view, METH_NOARGS, NULL},
    {"_view", fh_tensor_checked_view, METH_VARARGS, NULL},
    {"_exported", fh_exported, METH_NOARGS, NULL},
    {"_deinit_replaced", deinit_replaced, METH_NOARGS, NULL},
    {"_consumed", consumed, METH_NOARGS, NULL},
    {"_adopt", fh_tensor_adopt, METH_NOARGS, NULL},
    {"_close", close_scoped, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getters[] = {
    {"shape", get_shape, NULL, "The sizes of the axes.", NULL},
    {"requires_grad", get_requires_grad, NULL, "Whether gradients are tracked.", NULL},
    {"scope_owned", fh_tensor_scope_owned, NULL, "Whether an exec scope owns it, or owned it.", NULL},
    {"origin", fh_tensor_origin, fh_tensor_set_origin, "Where it was made, if that is traced.", NULL},
    {"_raw_shape", get_raw_shape, NULL, NULL, NULL},
    {"_raw_strides", get_raw_strides, NULL, NULL, NULL},
    {"_raw_offset", get_raw_offset, NULL, NULL, NULL},
    {"_node", get_node, NULL, NULL, NULL},
    {"_context", get_context, NULL, NULL, NULL},
    {"_state", fh_tensor_state, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(fh_tensor, weak), READONLY, NULL}, {NULL, 0, 0, 0, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_new, FH_SLOT(facade_new)}, {Py_tp_dealloc, FH_SLOT(facade_dealloc)}, {Py_tp_traverse, FH_SLOT(facade_traverse)},
    {Py_tp_clear, FH_SLOT(facade_clear)}, {Py_tp_methods, methods}, {Py_tp_getset, getters}, {Py_tp_members, members},
    {Py_bf_getbuffer, FH_SLOT(fh_export)}, {0, NULL},
};
static PyType_Spec spec = {"fucina.fast._handles.Facade", sizeof(fh_facade), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
static PyMethodDef functions[] = {{"facade_over", over, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

int fh_add_facade(PyObject *module) {
    facade_base = (PyTypeObject *)PyType_FromSpec(&spec);
    destroy_name = PyUnicode_InternFromString("destroy");
    basicsize_name = PyUnicode_InternFromString("__basicsize__");
    rank_name = PyUnicode_InternFromString("rank");
    if (!facade_base || !destroy_name || !basicsize_name || !rank_name || PyModule_AddFunctions(module, functions) || fh_add_operations(module)) return -1;
    return PyModule_AddObjectRef(module, "Facade", (PyObject *)facade_base);
}
