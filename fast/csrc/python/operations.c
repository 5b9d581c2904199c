/*
 * What tensors of the facade compute in C: add sub mul div scale add_scalar sum_all dot grad of plain arguments.  Whatever is not plain
 * goes to the Python layer, to the method of the same name with an underscore in front.
 */
#include "python/operations.h"
#include "python/nodes.h"
#include "storage/memory.h"
#include "core/fault.h"
#include "ops/ops.h"
#include <string.h>

static PyObject *slow_add, *slow_sub, *slow_mul, *slow_div, *slow_scale, *slow_add_scalar, *slow_sum_all, *slow_dot, *slow_grad;
static PyObject *rt_name, *scopes_name, *entries_name, *nothing;
/* What the Python layer knows: the formulas of add sub mul div scale sum dot add_scalar to narrow, and the type of scalars of f32. */
static PyObject *formulas, *scalar_type;
/* And what it has found out about pairs of types: (type, type): (type of their dot, axis of the first, axis of the second); and
   (type, type): (type of their sum, axes of the first, axes of the second), bytes that say which axis lies at each place of the
   result, NOWHERE for none. */
static PyObject *products, *alignments;
enum { NOWHERE = 255, PAIRS = 256 };

static fh_facade *of(PyObject *object) { return (fh_facade *)object; }

/* Let the innermost scope own a result: room first, then the entry (clauses SCOPE-RESERVE-1, SCOPE-ADOPT-1). */
static int adopt(fh_context *ctx, PyObject *result) {
    PyObject *rt = PyObject_GetAttr((PyObject *)ctx, rt_name), *scopes = rt ? PyObject_GetAttr(rt, scopes_name) : NULL;
    PyObject *entries = scopes ? PyObject_GetAttr(scopes, entries_name) : NULL, *entry = NULL;
    int good = 0;
    if (entries && !fc_memory_charge())
        fh_refuse(FH_OutOfMemory, "SCOPE-RESERVE-1", "no memory for a slot of a scope, which %R needs", result);
    else if (entries && (entry = PyTuple_Pack(3, result, Py_None, Py_None))) {
        const int open = fh_scope_is_open(ctx); /* a finalizer that the tuple set off may have closed it */
        good = !open || PyList_Append(entries, entry) == 0;
        if (good && open) of(result)->t.life = FH_SCOPED;
    }
    Py_XDECREF(rt);
    Py_XDECREF(scopes);
    Py_XDECREF(entries);
    Py_XDECREF(entry);
    return good;
}

/* Clause: FACADE-OWN-2 */
PyObject *fh_adopted(fh_context *ctx, PyObject *result) {
    if (!result || (of(result)->t.dtype != FC_f32 && !of(result)->node) || !fh_scope_is_open(ctx) || FC_PLANTED(SCOPED_SUM_FREE)) return result;
    if (!adopt(ctx, result)) Py_CLEAR(result);
    return result;
}

static PyObject *view_of(const struct fh_side *side) {
    fh_tensor *t = &side->given->t;
    const fh_tensor *along = side->along;
    return fh_are_usable(&t, 1) ? fh_view_of(t, along->rank, along->shape, along->strides, along->offset) : NULL;
}
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
static PyObject *saved_of(int operation, const struct fh_side *a, const struct fh_side *b) {
    if (operation != FC_MUL && operation != FC_DIV && operation != FH_DOT) return or_none(nothing);
    const int of_b = a->given->node || (operation == FC_DIV && b->given->node);
    PyObject *first = b->given->node ? view_of(a) : or_none(NULL);
    return pair_of(first, !first ? NULL : of_b ? view_of(b) : or_none(NULL));
}

/* What a formula is told beside: of scale the factor, of sum_all the operand's shape and that all of it was summed. */
static PyObject *constants_of(int operation, const fh_facade *a, double factor) {
    if (operation == FH_SCALE) return Py_BuildValue("(d)", factor);
    if (operation == FH_SUM) return Py_BuildValue("(NO)", fh_tuple(a->t.rank, a->t.shape), Py_None);
    return or_none(nothing);
}

/* Clauses: AUTOGRAD-TRACK-1, AUTOGRAD-VJP-1, AUTOGRAD-VJP-2, AUTOGRAD-VJP-6 */
PyObject *fh_noted(PyObject *result, int operation, const struct fh_side *a, const struct fh_side *b, PyObject *constants) {
    PyObject *shape = fh_tuple(of(result)->t.rank, of(result)->t.shape);
    PyObject *operands = b ? pair_of(or_none(a->given->node), or_none(b->given->node)) : PyTuple_Pack(1, a->given->node);
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

static int can_track(const fh_facade *f) { return formulas && fh_is_trackable(f->t.dtype); }
static int have_one_shape(const fh_tensor *a, const fh_tensor *b) {
    return a->rank == b->rank && !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape);
}

PyObject *fh_known(PyObject *pairs, PyObject *first, PyObject *second) {
    PyObject *pair = pairs ? PyTuple_Pack(2, first, second) : NULL;
    PyObject *known = pair ? PyDict_GetItemWithError(pairs, pair) : NULL;
    Py_XDECREF(pair);
    return known;
}
static PyObject *known_of(PyObject *pairs, PyObject *self, PyObject *other) {
    return fh_is_facade(other) ? fh_known(pairs, (PyObject *)Py_TYPE(self), (PyObject *)Py_TYPE(other)) : NULL;
}

/* A tensor with its axes at the places of a result's; at a place without one it has size 1. */
static fh_tensor placed(const fh_tensor *t, PyObject *places) {
    fh_tensor along = *t;
    const unsigned char *at = (const unsigned char *)PyBytes_AsString(places);
    along.rank = (uint8_t)PyBytes_Size(places);
    for (int k = 0; k < along.rank; k++) {
        along.shape[k] = at[k] == NOWHERE ? 1 : t->shape[at[k]];
        along.strides[k] = at[k] == NOWHERE ? 0 : t->strides[at[k]];
    }
    return along;
}

/* Where the axes of an operand lie in a result, as a formula is told: its shape and their places, -1 for the axis of a scalar;
   None where they are the result's. */
static PyObject *place_of(const fh_tensor *t, PyObject *places, const fh_tensor *result) {
    const unsigned char *at = (const unsigned char *)PyBytes_AsString(places);
    PyObject *axes = PyTuple_New(t->rank);
    int same = t->rank == result->rank && !memcmp(t->shape, result->shape, t->rank * sizeof *t->shape);
    for (int axis = 0; axes && axis < t->rank; axis++) {
        int place = t->bare ? -1 : 0;
        while (place >= 0 && place < result->rank && at[place] != axis) place++;
        same = same && place == axis;
        PyTuple_SetItem(axes, axis, PyLong_FromLong(place));
    }
    PyObject *shape = same ? NULL : fh_tuple(t->rank, t->shape);
    if (!same) return pair_of(shape, axes);
    Py_XDECREF(axes);
    return axes ? or_none(NULL) : NULL;
}
static PyObject *places_of(const fh_facade *a, PyObject *left, const fh_facade *b, PyObject *right, const fh_facade *result) {
    PyObject *places = pair_of(place_of(&a->t, left, &result->t), place_of(&b->t, right, &result->t));
    if (!places || PyTuple_GetItem(places, 0) != Py_None || PyTuple_GetItem(places, 1) != Py_None) return places;
    Py_DECREF(places);
    return or_none(nothing);
}

/* A sum, difference, product or quotient of tensors of two types that the Python layer has met together; NULL without an
   exception when something is not plain. */
static PyObject *aligned(fh_context *ctx, PyObject *self, int operation, PyObject *other, int tracked) {
    PyObject *known = known_of(alignments, self, other), *type, *left, *right, *result = NULL;
    if (!known || !fh_is_usable(&of(self)->t) || !fh_is_usable(&of(other)->t)) return NULL;
    Py_INCREF(known);
    if (PyArg_ParseTuple(known, "OSS", &type, &left, &right)) {
        const fh_tensor first = placed(&of(self)->t, left), second = placed(&of(other)->t, right);
        const struct fh_side a = {of(self), &first}, b = {of(other), &second};
        result = fh_quick_aligned(ctx, operation, (PyTypeObject *)type, a.given, &first, b.given, &second);
        if (result && tracked) result = fh_noted(result, operation, &a, &b, places_of(a.given, left, b.given, right, of(result)));
    }
    Py_DECREF(known);
    return result;
}

/* The result of plain arguments; NULL without an exception when something is not plain. */
static PyObject *plain(fh_context *ctx, PyObject *self, int operation, PyObject *other) {
    fh_facade *a = of(self), *b = NULL;
    double factor = 0;
    if (operation == FH_SCALE || operation == FH_ADD_SCALAR) {
        if (!PyFloat_CheckExact(other)) return NULL;
        factor = PyFloat_AsDouble(other);
    } else if (operation <= FC_DIV) {
        if (Py_TYPE(other) != Py_TYPE(self) && !fh_is_facade(other)) return NULL;
        b = of(other);
    }
    const int tracked = !ctx->untracked && (a->node || (b && b->node));
    if (tracked && !can_track(a)) return NULL;
    if (b && (Py_TYPE(other) != Py_TYPE(self) || (tracked && !have_one_shape(&a->t, &b->t)))) return aligned(ctx, self, operation, other, tracked);
    PyObject *result;
    if (operation == FH_SUM)
        result = scalar_type ? fh_quick_sum(ctx, (PyTypeObject *)scalar_type, a) : NULL;
    else
        result = b ? fh_quick_binary(ctx, operation, a, b) : fh_quick_scalar(ctx, a, operation == FH_ADD_SCALAR, factor);
    if (!tracked || !result) return result;
    return fh_noted(result, operation, &(struct fh_side){a, &a->t}, b ? &(struct fh_side){b, &b->t} : NULL, constants_of(operation, a, factor));
}

/* The dot of tensors of two types that the Python layer has met together; NULL without an exception when something is not plain. */
static PyObject *plain_dot(fh_context *ctx, PyObject *self, PyObject *other) {
    PyObject *known = known_of(products, self, other), *type, *result = NULL;
    if (!known) return NULL;
    int axis, other_axis;
    fh_facade *a = of(self), *b = of(other);
    const int tracked = !ctx->untracked && (a->node || b->node);
    Py_INCREF(known);
    if (PyArg_ParseTuple(known, "Oii", &type, &axis, &other_axis) && !(tracked && !can_track(a)))
        result = fh_quick_dot(ctx, (PyTypeObject *)type, a, axis, b, other_axis);
    Py_DECREF(known);
    if (!tracked || !result) return result;
    PyObject *constants = Py_BuildValue("(NNii)", fh_tuple(a->t.rank, a->t.shape), fh_tuple(b->t.rank, b->t.shape), axis, other_axis);
    return fh_noted(result, FH_DOT, &(struct fh_side){a, &a->t}, &(struct fh_side){b, &b->t}, constants);
}

/* Clause: POLICY-DOT-1 */
FH_PLAIN(dot, 1, plain_dot(ctx, self, args[1]), slow_dot)

/* Clause: AUTOGRAD-GRAD-1 */
FH_OPERATION(grad) {
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

/* facade_knows(formulas of add sub mul div scale sum dot add_scalar to narrow, type of scalars of f32): once, by the Python layer */
static PyObject *knows(PyObject *module, PyObject *args) {
    PyObject *given, *type;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &given, &type)) return NULL;
    if (PyTuple_Size(given) != FH_OPERATIONS || !fh_is_facade_type(type))
        return PyErr_Format(PyExc_TypeError, "facade_knows(formulas of the operations, type of scalars)");
    fh_put(&formulas, given);
    fh_put(&scalar_type, type);
    Py_RETURN_NONE;
}

PyObject *fh_remembered(PyObject **pairs, PyObject *first, PyObject *second, PyObject *known) {
    PyObject *pair = known ? PyTuple_Pack(2, first, second) : NULL;
    int good = pair && (*pairs || (*pairs = PyDict_New()));
    if (good && PyDict_Size(*pairs) >= PAIRS) PyDict_Clear(*pairs); /* who makes that many types pays for finding out */
    good = good && PyDict_SetItem(*pairs, pair, known) == 0;
    Py_XDECREF(pair);
    Py_XDECREF(known);
    if (!good) return NULL;
    Py_RETURN_NONE;
}
static int are_types(PyObject *type, PyObject *other, PyObject *made) {
    return fh_is_facade_type(type) && fh_is_facade_type(other) && fh_is_facade_type(made);
}

/* facade_product(type, other type, type of their dot, axis, axis) */
static PyObject *knows_product(PyObject *module, PyObject *args) {
    PyObject *type, *other, *made;
    int axis, other_axis;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOii", &type, &other, &made, &axis, &other_axis)) return NULL;
    if (!are_types(type, other, made) || axis < 0 || axis >= FC_MAX_RANK || other_axis < 0 || other_axis >= FC_MAX_RANK)
        return PyErr_Format(PyExc_TypeError, "facade_product(type, other type, type of their dot, axis, axis)");
    return fh_remembered(&products, type, other, Py_BuildValue("(Oii)", made, axis, other_axis));
}

static int are_places(PyObject *places, Py_ssize_t rank) {
    const unsigned char *at = (const unsigned char *)PyBytes_AsString(places);
    if (PyBytes_Size(places) != rank) return 0;
    for (Py_ssize_t k = 0; k < rank; k++)
        if (at[k] >= FC_MAX_RANK && at[k] != NOWHERE) return 0;
    return 1;
}
/* facade_alignment(type, other type, type of their sum, places, places) */
static PyObject *knows_alignment(PyObject *module, PyObject *args) {
    PyObject *type, *other, *made, *left, *right;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOSS", &type, &other, &made, &left, &right)) return NULL;
    const Py_ssize_t rank = PyBytes_Size(left);
    if (!are_types(type, other, made) || !rank || rank > FC_MAX_RANK || !are_places(left, rank) || !are_places(right, rank))
        return PyErr_Format(PyExc_TypeError, "facade_alignment(type, other type, type of their sum, places, places)");
    return fh_remembered(&alignments, type, other, Py_BuildValue("(OOO)", made, left, right));
}

/* Clauses: POLICY-ARITH-1, POLICY-TAGS-1, POLICY-SCALAR-1 */
FH_PLAIN(add, 1, plain(ctx, self, FC_ADD, args[1]), slow_add)
FH_PLAIN(sub, 1, plain(ctx, self, FC_SUB, args[1]), slow_sub)
FH_PLAIN(mul, 1, plain(ctx, self, FC_MUL, args[1]), slow_mul)
FH_PLAIN(div, 1, plain(ctx, self, FC_DIV, args[1]), slow_div)
FH_PLAIN(scale, 1, plain(ctx, self, FH_SCALE, args[1]), slow_scale)
FH_PLAIN(add_scalar, 1, plain(ctx, self, FH_ADD_SCALAR, args[1]), slow_add_scalar)
FH_PLAIN(sum_all, 0, plain(ctx, self, FH_SUM, NULL), slow_sum_all)

static PyMethodDef functions[] = {
    {"facade_knows", knows, METH_VARARGS, NULL},
    {"facade_product", knows_product, METH_VARARGS, NULL},
    {"facade_alignment", knows_alignment, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int fh_add_operations(PyObject *module) {
    static const struct {
        PyObject **place;
        const char *name;
    } names[] = {
        {&slow_add, "_add"}, {&slow_sub, "_sub"}, {&slow_mul, "_mul"}, {&slow_div, "_div"}, {&slow_scale, "_scale"},
        {&slow_add_scalar, "_add_scalar"}, {&slow_sum_all, "_sum_all"}, {&slow_dot, "_dot"}, {&slow_grad, "_grad"},
        {&rt_name, "_rt"}, {&scopes_name, "scopes"}, {&entries_name, "_entries"},
    };
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!(*names[k].place = PyUnicode_InternFromString(names[k].name))) return -1;
    if (!(nothing = PyTuple_New(0))) return -1;
    return PyModule_AddFunctions(module, functions) || fh_add_singles(module) ? -1 : 0;
}
