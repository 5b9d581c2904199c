/*
 * The facade's tensors: a raw tensor's fields, a node, a context.  Their types are made in the Python layer, one for each
 * dtype and tags; add sub mul div scale sum_all dot grad of plain arguments are done here, everything else there.
 */
#include "python/contexts.h"
#include "python/nodes.h"
#include "storage/memory.h"
#include "python/pass_on.h"
#include "core/fault.h"
#include "ops/ops.h"
#include <string.h>

static PyTypeObject *facade_base;
static PyObject *slow_names[5], *slow_sum_all, *slow_dot, *slow_grad, *destroy_name, *rt_name, *scopes_name, *entries_name, *rank_name, *basicsize_name;
/* What the Python layer knows: the formulas of add sub mul div scale sum_all dot, and the type of scalars of f32; and what it
   has found out about pairs of types: (type, type): (axis of the first, axis of the second, type of their dot). */
static PyObject *formulas, *scalar_type, *products, *nothing;
enum { SCALE = FC_DIV + 1, SUM_ALL, DOT, OPERATIONS, PRODUCTS = 256 };

static fh_facade *of(PyObject *object) { return (fh_facade *)object; }
int fh_is_facade(PyObject *object) { return PyObject_TypeCheck(object, facade_base); }
int fh_is_handle(PyObject *object) { return fh_is_tensor(object) || fh_is_facade(object); }

/* -- making */

/* Objects that have ended, for the next ones: small operations make and end one each.  They are of one size, which is looked
   at where the Python layer gives us a type. */
enum { SPARES = 16 };
static fh_facade *spare[SPARES];
static int spares;

static int is_our_type(PyObject *type) {
    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, facade_base)) return 0;
    PyObject *size = PyObject_GetAttr(type, basicsize_name);
    const int ours = size && PyLong_AsLong(size) == (long)sizeof(fh_facade);
    Py_XDECREF(size);
    return ours;
}

static fh_facade *facade_alloc(PyTypeObject *type) {
    if (!spares) return (fh_facade *)PyType_GenericAlloc(type, 0);
    fh_facade *self = spare[--spares];
    memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
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
        return fh_refuse(FH_OutOfMemory, "POOL-MEMORY-1", "no memory for a tensor");
    }
    t->rank = (uint8_t)rank;
    t->dtype = (uint8_t)dtype;
    t->bare = bare != 0;
    memcpy(t->shape, shape, (size_t)rank * sizeof *shape);
    fc_row_major(rank, t->shape, t->strides);
    struct fc_pooled *pooled = (struct fc_pooled *)s; /* what a report of leaks would say (clause POOL-LEAK-1) */
    pooled->rank = (uint8_t)rank;
    memcpy(pooled->shape, shape, (size_t)rank * sizeof *shape);
    Py_INCREF(self->context = context);
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
    if (!is_our_type(type) || !fh_is_tensor(object) || raw->life != FH_OWNED ||
        raw->lender || !fh_is_usable(raw))
        return PyErr_Format(PyExc_ValueError, "facade_over(type, context, raw tensor of the caller's, node, constructed)");
    PyObject *number = PyObject_GetAttr(type, rank_name);
    const long rank = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    if (PyErr_Occurred()) return NULL;
    if (rank != (raw->rank == 1 && raw->shape[0] == 1 && rank == 0 ? 0 : raw->rank))
        return PyErr_Format(PyExc_ValueError, "a tensor of another rank");
    fh_facade *self = facade_alloc((PyTypeObject *)type);
    if (!self) return NULL;
    fh_tensor *t = &self->t;
    t->storage = raw->storage;
    t->origin = raw->origin;
    t->offset = raw->offset;
    t->rank = raw->rank;
    t->dtype = raw->dtype;
    t->bare = rank == 0;
    memcpy(t->shape, raw->shape, sizeof t->shape);
    memcpy(t->strides, raw->strides, sizeof t->strides);
    raw->storage = NULL;
    raw->origin = NULL;
    raw->life = FH_REPLACED;
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

/* After the storage was let go: the node is destroyed, unless that was consumed with it; what was raised first comes out. */
static PyObject *parted(PyObject *self, PyObject *result, int destroyed) {
    fh_facade *f = of(self);
    if (f->t.storage || !(f->node || f->context)) return result;
    struct fh_pending pending;
    fh_pending_save(&pending);
    PyObject *node = f->node, *context = f->context;
    f->node = f->context = NULL;
    if (node && destroyed) Py_XDECREF(PyObject_CallMethodObjArgs(node, destroy_name, NULL));
    Py_XDECREF(node);
    Py_XDECREF(context);
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
        return fh_refuse(FH_Overflow, "STORAGE-REF-1", "a storage has fewer than 2^30 references");
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

/* -- operations on plain arguments */

/* Let the innermost scope own a result: room first, then the entry (clauses SCOPE-RESERVE-1, SCOPE-ADOPT-1). */
static int adopt(fh_context *ctx, PyObject *result) {
    PyObject *rt = PyObject_GetAttr((PyObject *)ctx, rt_name), *scopes = rt ? PyObject_GetAttr(rt, scopes_name) : NULL;
    PyObject *entries = scopes ? PyObject_GetAttr(scopes, entries_name) : NULL, *entry = NULL;
    int good = 0;
    if (entries && !fc_memory_charge())
        fh_refuse(FH_OutOfMemory, "SCOPE-RESERVE-1", "no memory for a slot of a scope");
    else if (entries && (entry = PyTuple_Pack(3, result, Py_None, Py_None)))
        good = PyList_Append(entries, entry) == 0;
    if (good) of(result)->t.life = FH_SCOPED;
    Py_XDECREF(rt);
    Py_XDECREF(scopes);
    Py_XDECREF(entries);
    Py_XDECREF(entry);
    return good;
}

/* A result under an open scope is adopted where it is of f32 or has a node (clause FACADE-OWN-2). */
static PyObject *adopted(fh_context *ctx, PyObject *result) {
    if (!result || (of(result)->t.dtype != FC_f32 && !of(result)->node) || !fh_scope_is_open(ctx) || FC_PLANTED(SCOPED_SUM_FREE)) return result;
    if (!adopt(ctx, result)) Py_CLEAR(result);
    return result;
}

static PyObject *view_of(const fh_tensor *t) { return fh_view_of(t, t->rank, t->shape, t->strides, t->offset); }
static PyObject *or_none(PyObject *object) {
    PyObject *found = object ? object : Py_None;
    Py_INCREF(found);
    return found;
}
/* A tuple of two objects that are stolen; NULL where one of them is. */
static PyObject *pair_of(PyObject *first, PyObject *second) {
    PyObject *tuple = first && second ? PyTuple_Pack(2, first, second) : NULL;
    Py_XDECREF(first);
    Py_XDECREF(second);
    return tuple;
}

/* The saved operands of a product or quotient, as its formula wants them. */
static PyObject *saved_of(int operation, fh_facade *a, fh_facade *b) {
    if (operation != FC_MUL && operation != FC_DIV && operation != DOT) return or_none(nothing);
    const int of_b = a->node || (operation == FC_DIV && b->node);
    PyObject *first = b->node ? view_of(&a->t) : or_none(NULL);
    return pair_of(first, !first ? NULL : of_b ? view_of(&b->t) : or_none(NULL));
}

/* What a formula is told beside: of scale the factor, of sum_all the operand's shape and that all of it was summed. */
static PyObject *constants_of(int operation, const fh_facade *a, double factor) {
    if (operation == SCALE) return Py_BuildValue("(d)", factor);
    if (operation == SUM_ALL) return Py_BuildValue("(NO)", fh_tuple(a->t.rank, a->t.shape), Py_None);
    return or_none(nothing);
}

/* Give a result its node, with constants that are stolen; NULL with an exception, and then it has ended
   (clauses AUTOGRAD-TRACK-1, AUTOGRAD-VJP-1, AUTOGRAD-VJP-2, AUTOGRAD-VJP-6). */
static PyObject *noted(PyObject *result, int operation, fh_facade *a, fh_facade *b, PyObject *constants) {
    PyObject *shape = fh_tuple(of(result)->t.rank, of(result)->t.shape);
    PyObject *operands = b ? pair_of(or_none(a->node), or_none(b->node)) : PyTuple_Pack(1, a->node);
    PyObject *saved = saved_of(operation, a, b);
    if (shape && constants && operands && saved)
        of(result)->node = fh_node_new(shape, operands, saved, PyTuple_GetItem(formulas, operation), constants);
    Py_XDECREF(shape);
    Py_XDECREF(constants);
    Py_XDECREF(operands);
    Py_XDECREF(saved);
    if (!of(result)->node) Py_CLEAR(result);
    return result;
}

static int can_track(const fh_facade *f) { return formulas && f->t.dtype >= FC_f16 && f->t.dtype <= FC_f32; }
static int have_one_shape(const fh_tensor *a, const fh_tensor *b) {
    return a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

/* The result of plain arguments; NULL without an exception when something is not plain. */
static PyObject *plain(fh_context *ctx, PyObject *self, int operation, PyObject *other) {
    fh_facade *a = of(self), *b = NULL;
    double factor = 0;
    if (operation == SCALE) {
        if (!PyFloat_CheckExact(other)) return NULL;
        factor = PyFloat_AsDouble(other);
    } else if (operation <= FC_DIV) {
        if (Py_TYPE(other) != Py_TYPE(self)) return NULL;
        b = of(other);
    }
    const int tracked = !ctx->untracked && (a->node || (b && b->node));
    if (tracked && (!can_track(a) || (b && !have_one_shape(&a->t, &b->t)))) return NULL;
    PyObject *result;
    if (operation == SUM_ALL)
        result = scalar_type ? fh_quick_sum(ctx, (PyTypeObject *)scalar_type, a) : NULL;
    else
        result = b ? fh_quick_binary(ctx, operation, a, b) : fh_quick_scale(ctx, a, factor);
    return tracked && result ? noted(result, operation, a, b, constants_of(operation, a, factor)) : result;
}

/* The dot of tensors of two types that the Python layer has met together; NULL without an exception when something is not plain. */
static PyObject *plain_dot(fh_context *ctx, PyObject *self, PyObject *other) {
    PyObject *types = products && fh_is_facade(other) ? PyTuple_Pack(2, Py_TYPE(self), Py_TYPE(other)) : NULL;
    PyObject *known = types ? PyDict_GetItemWithError(products, types) : NULL, *type, *result = NULL;
    Py_XDECREF(types);
    if (!known) return NULL;
    int axis, other_axis;
    fh_facade *a = of(self), *b = of(other);
    const int tracked = !ctx->untracked && (a->node || b->node);
    Py_INCREF(known);
    if (PyArg_ParseTuple(known, "iiO", &axis, &other_axis, &type) && !(tracked && !can_track(a)))
        result = fh_quick_dot(ctx, (PyTypeObject *)type, a, axis, b, other_axis);
    Py_DECREF(known);
    if (!tracked || !result) return result;
    return noted(result, DOT, a, b, Py_BuildValue("(NNii)", fh_tuple(a->t.rank, a->t.shape), fh_tuple(b->t.rank, b->t.shape), axis, other_axis));
}

static PyObject *quick(PyObject *self, int operation, PyObject *const *args) {
    fh_context *ctx = (fh_context *)args[0];
    if (!fh_context_enter(ctx)) return NULL;
    PyObject *result = adopted(ctx, plain(ctx, self, operation, operation == SUM_ALL ? NULL : args[1]));
    fh_context_leave(ctx);
    return result;
}

static PyObject *operate(PyObject *self, int operation, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (count == (operation == SUM_ALL ? 1 : 2) && !names && fh_is_context(args[0])) {
        PyObject *result = quick(self, operation, args);
        if (result || PyErr_Occurred()) return result;
    }
    return pass_on_to_method(self, operation == SUM_ALL ? slow_sum_all : slow_names[operation], args, count, names);
}

/* Clause: POLICY-DOT-1 */
static PyObject *dot(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (count == 2 && !names && fh_is_context(args[0])) {
        fh_context *ctx = (fh_context *)args[0];
        if (!fh_context_enter(ctx)) return NULL;
        PyObject *result = adopted(ctx, plain_dot(ctx, self, args[1]));
        fh_context_leave(ctx);
        if (result || PyErr_Occurred()) return result;
    }
    return pass_on_to_method(self, slow_dot, args, count, names);
}

/* Clause: AUTOGRAD-GRAD-1 */
static PyObject *grad(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *result = NULL, *gradient = of(self)->node ? fh_leaf_gradient(of(self)->node) : NULL;
    if (count == 1 && !names && gradient && fh_is_usable(&of(self)->t) && fh_is_context(args[0])) {
        fh_context *ctx = (fh_context *)args[0];
        if (!fh_context_enter(ctx)) return NULL;
        Py_INCREF(gradient);
        result = fh_quick_copy(ctx, of(self), (fh_tensor *)gradient);
        Py_DECREF(gradient);
        fh_context_leave(ctx);
        if (result || PyErr_Occurred()) return result;
    }
    return pass_on_to_method(self, slow_grad, args, count, names);
}

/* facade_knows(formulas of add sub mul div scale sum_all dot, type of scalars of f32): once, by the Python layer */
static PyObject *knows(PyObject *module, PyObject *args) {
    PyObject *given, *type;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &given, &type)) return NULL;
    if (PyTuple_Size(given) != OPERATIONS || !is_our_type(type))
        return PyErr_Format(PyExc_TypeError, "facade_knows(formulas of seven operations, type of scalars)");
    fh_put(&formulas, given);
    fh_put(&scalar_type, type);
    Py_RETURN_NONE;
}

/* facade_product(type, axis, type, axis, type of the result): what dot of two types is, found out once */
static PyObject *knows_product(PyObject *module, PyObject *args) {
    PyObject *type, *other, *made;
    int axis, other_axis;
    (void)module;
    if (!PyArg_ParseTuple(args, "OiOiO", &type, &axis, &other, &other_axis, &made)) return NULL;
    if (!is_our_type(type) || !is_our_type(other) || !is_our_type(made) || axis < 0 || axis >= FC_MAX_RANK || other_axis < 0 || other_axis >= FC_MAX_RANK)
        return PyErr_Format(PyExc_TypeError, "facade_product(type, axis, type, axis, type of the result)");
    if (!products && !(products = PyDict_New())) return NULL;
    if (PyDict_Size(products) >= PRODUCTS) PyDict_Clear(products); /* who makes that many types pays for finding out */
    PyObject *types = PyTuple_Pack(2, type, other), *known = Py_BuildValue("(iiO)", axis, other_axis, made);
    const int good = types && known && PyDict_SetItem(products, types, known) == 0;
    Py_XDECREF(types);
    Py_XDECREF(known);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
/* Clauses: POLICY-ARITH-1, POLICY-TAGS-1, POLICY-SCALAR-1 */
#define OPERATION(name, operation) \
    static PyObject *name(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) { return operate(self, operation, args, count, names); }
OPERATION(add, FC_ADD)
OPERATION(sub, FC_SUB)
OPERATION(mul, FC_MUL)
OPERATION(divide, FC_DIV)
OPERATION(scale, SCALE)
OPERATION(sum_all, SUM_ALL)

#define BINARY(name, what) #name "($self, ctx, other)\n--\n\n" what "\n\nClauses: POLICY-TAGS-1, POLICY-ARITH-1, POLICY-MIXED-1, AUTOGRAD-VJP-1"
static PyMethodDef methods[] = {
    {"add", FH_FAST(add), METH_FASTCALL | METH_KEYWORDS, BINARY(add, "Return the sum.")},
    {"sub", FH_FAST(sub), METH_FASTCALL | METH_KEYWORDS, BINARY(sub, "Return the difference.")},
    {"mul", FH_FAST(mul), METH_FASTCALL | METH_KEYWORDS, BINARY(mul, "Return the product, element by element.")},
    {"div", FH_FAST(divide), METH_FASTCALL | METH_KEYWORDS, BINARY(div, "Return the quotient, of integers truncated.")},
    {"scale", FH_FAST(scale), METH_FASTCALL | METH_KEYWORDS, "scale($self, ctx, number)\n--\n\nReturn the tensor times a number.\n\nClauses: POLICY-SCALAR-1, AUTOGRAD-VJP-1"},
    {"sum_all", FH_FAST(sum_all), METH_FASTCALL | METH_KEYWORDS, "sum_all($self, ctx)\n--\n\nReturn the sum of all elements, a scalar.\n\nClauses: POLICY-SUM-1, POLICY-RESULT-1, AUTOGRAD-VJP-2"},
    {"dot", FH_FAST(dot), METH_FASTCALL | METH_KEYWORDS,
     "dot($self, ctx, other, axis=None)\n--\n\nReturn the sums of products along an axis that both tensors have.\n\n"
     "Parameters\n----------\nctx : ExecContext\n    The context.\nother : Tensor\n    Of the same dtype.\naxis : str, optional\n"
     "    The tag of the axis; without, the only one that they have in common.\n\n"
     "Raises\n------\nDTypeMismatch, UseAfterDeinit, UseAfterScope, InvalidDType\n    No two tensors of one dtype of floats.\n"
     "InvalidTag\n    There is no such axis; others are in common too.\n"
     "ShapeMismatch, InvalidShape, Overflow, OutOfMemory\n    Its sizes differ; there is no such result.\n\n"
     "Clauses: POLICY-DOT-1, AUTOGRAD-VJP-6"},
    {"grad", FH_FAST(grad), METH_FASTCALL | METH_KEYWORDS, "grad($self, ctx)\n--\n\nReturn a copy of a leaf's gradient, the caller's; None where there is none.\n\nClauses: AUTOGRAD-GRAD-1"},
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
static PyMethodDef functions[] = {{"facade_over", over, METH_VARARGS, NULL}, {"facade_knows", knows, METH_VARARGS, NULL},
                                  {"facade_product", knows_product, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};

int fh_add_facade(PyObject *module) {
    static const char *const names[5] = {"_add", "_sub", "_mul", "_div", "_scale"};
    facade_base = (PyTypeObject *)PyType_FromSpec(&spec);
    for (int k = 0; k < 5; k++) slow_names[k] = PyUnicode_InternFromString(names[k]);
    destroy_name = PyUnicode_InternFromString("destroy");
    slow_sum_all = PyUnicode_InternFromString("_sum_all");
    slow_dot = PyUnicode_InternFromString("_dot");
    slow_grad = PyUnicode_InternFromString("_grad");
    rt_name = PyUnicode_InternFromString("_rt");
    scopes_name = PyUnicode_InternFromString("scopes");
    entries_name = PyUnicode_InternFromString("_entries");
    basicsize_name = PyUnicode_InternFromString("__basicsize__");
    nothing = PyTuple_New(0);
    rank_name = PyUnicode_InternFromString("rank");
    if (!facade_base || !slow_names[4] || !slow_dot || !slow_grad || !destroy_name || !entries_name || !basicsize_name || !nothing || !rank_name || PyModule_AddFunctions(module, functions)) return -1;
    return PyModule_AddObjectRef(module, "Facade", (PyObject *)facade_base);
}
