/*
 * fucina.fast._contexts: what of an execution context has to be quick, which is who drives it and the arithmetic on plain
 * tensors, and the entries to the operations.  Whatever is not plain goes to the Python layer, to the method of the same
 * name with an underscore in front; it checks in the clauses' order, says what is wrong, and comes back to the entries.
 * Lives in the same shared object as _handles, over the same core.  Everything here runs with the GIL.
 */
#include "python/contexts.h"
#include "python/pass_on.h"
#include "ops/ops.h"
#include "python/kernels.h"
#include "tensor/copy.h"
#include <string.h>

static fh_context *of(PyObject *object) { return (fh_context *)object; }

static PyObject *slow_names[4], *slow_narrow, *refuse_name;
static PyTypeObject *context_base, *usual; /* usual: the type of the first context that was met */

/* -- life and drivers */

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)args, (void)keywords;
    return PyType_GenericAlloc(type, 0);
}

static void context_dealloc(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF((PyObject *)of(object)->pool);
    Py_XDECREF(of(object)->marks);
    ((freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free))(object); /* the subclass knows the garbage collector */
    Py_DECREF(type);
}

/* _begin(type of pools, pool, traced, list of marks): once, by the constructor */
static PyObject *begin(PyObject *self, PyObject *args) {
    PyObject *pool, *base, *marks;
    int traced;
    if (!PyArg_ParseTuple(args, "OOpO", &base, &pool, &traced, &marks)) return NULL;
    if (of(self)->pool || !PyType_Check(base) || !PyObject_TypeCheck(pool, (PyTypeObject *)base) || !PyList_CheckExact(marks))
        return PyErr_Format(PyExc_TypeError, "_begin(type of pools, pool, traced, list of marks), once");
    Py_INCREF(pool);
    Py_INCREF(of(self)->marks = marks);
    of(self)->pool = (fh_pool *)pool;
    of(self)->plain = !traced;
    Py_RETURN_NONE;
}

int fh_is_context(PyObject *object) {
    if (Py_TYPE(object) == usual) return 1;
    if (!PyObject_TypeCheck(object, context_base)) return 0;
    if (!usual) Py_INCREF((PyObject *)(usual = Py_TYPE(object)));
    return 1;
}

/* Clauses: CONTEXT-THREAD-1, CONTEXT-LIFE-2 */
int fh_context_enter(fh_context *ctx) {
    const unsigned long thread = PyThread_get_thread_ident();
    if (ctx->closed || !ctx->pool || (ctx->depth && ctx->driver != thread)) {
        Py_XDECREF(PyObject_CallMethodObjArgs((PyObject *)ctx, refuse_name, NULL)); /* raises */
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the context cannot be used");
        return 0;
    }
    ctx->driver = thread;
    ctx->depth++;
    return 1;
}

static PyObject *enter_call(PyObject *self, PyObject *unused) {
    (void)unused;
    if (!fh_context_enter(of(self))) return NULL;
    Py_RETURN_NONE;
}
static PyObject *leave_call(PyObject *self, PyObject *unused) {
    (void)unused;
    if (of(self)->depth) fh_context_leave(of(self));
    Py_RETURN_NONE;
}
/* _tracking(step): how many no_grad are open, after another one or one less (clause AUTOGRAD-NOGRAD-1) */
static PyObject *tracking(PyObject *self, PyObject *step) {
    const long change = PyLong_AsLong(step);
    if (change == -1 && PyErr_Occurred()) return NULL;
    if (change > 0) of(self)->untracked++;
    if (change < 0 && of(self)->untracked) of(self)->untracked--;
    return PyLong_FromSize_t(of(self)->untracked);
}
static PyObject *end(PyObject *self, PyObject *unused) {
    (void)unused;
    of(self)->closed = 1;
    Py_RETURN_NONE;
}
static PyObject *get_closed(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(of(self)->closed);
}

/* -- computing */

static int is_integer(int dtype) { return dtype >= FC_u8 && dtype <= FC_i64; }
static int is_float(int dtype) { return dtype >= FC_f16 && dtype <= FC_f64; }
static size_t count_of(const fh_tensor *t) { return fc_count(t->rank, t->shape); }

/* One call of the core: tensors that it reads and one that it writes. */
struct call {
    int operation, axis;
    double factor;
    fh_tensor *in[2], *out;
    size_t strides[2][FC_MAX_RANK];
};
enum { SCALE = FC_DIV + 1, PLUS, SUM, SUM_AXES, CONVERT, COPY };

static void compute(const void *job) {
    const struct call *c = job;
    const fh_tensor *a = c->in[0], *b = c->in[1];
    fh_tensor *out = c->out;
    void *to = fh_first(out);
    size_t dims[FC_MAX_RANK] = {0};
    switch (c->operation) {
    case SCALE: fc_scale(a->dtype, a->rank, a->shape, fh_first(a), a->strides, c->factor, to); break;
    case PLUS: fc_with_scalar(FC_ADD, a->dtype, a->rank, a->shape, fh_first(a), a->strides, c->factor, to); break;
    case SUM_AXES: fc_sum_axes(a->dtype, a->rank, a->shape, fh_first(a), a->strides, (unsigned)c->axis, to); break;
    case SUM:
        if (c->axis < 0)
            fc_sum(a->dtype, a->rank, a->shape, fh_first(a), a->strides, to);
        else
            fc_sum_axis(a->dtype, a->rank, a->shape, fh_first(a), a->strides, c->axis, to);
        break;
    case CONVERT: fc_convert(a->dtype, out->dtype, a->rank, a->shape, fh_first(a), a->strides, to); break;
    case COPY:
        fh_storage_shape(a, dims);
        fc_copy_view(fh_first(a), fh_element_size[a->dtype], a->rank, dims, a->strides, to);
        break;
    default: fc_pointwise(c->operation, a->dtype, out->rank, out->shape, fh_first(a), c->strides[0], fh_first(b), c->strides[1], to);
    }
}

/* Run it on tensors that can be used, without the GIL where the result is large, or what is summed. */
static int run(struct call *c) {
    const size_t size = count_of(c->out) * fh_element_size[c->out->dtype];
    const size_t read = c->operation == SUM || c->operation == SUM_AXES ? count_of(c->in[0]) * fh_element_size[c->in[0]->dtype] : 0;
    if (size < FH_LARGE && read < FH_LARGE) {
        compute(c);
        return 1;
    }
    fh_tensor **const places[] = {&c->in[0], &c->in[1], &c->out};
    return fh_run_long(places, 3, compute, c);
}

/* The shape that two tensors broadcast to, and the strides of both in it; 0 where they do not (clause CONTEXT-OP-1). */
static int together(struct call *c, const fh_tensor *a, const fh_tensor *b, size_t *dims) {
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    int same = a->rank == b->rank;
    for (int k = 0; same && k < rank; k++) {
        same = (dims[k] = a->shape[k]) == b->shape[k];
        c->strides[0][k] = a->strides[k];
        c->strides[1][k] = b->strides[k];
    }
    if (same) return rank;
    for (int k = 1; k <= rank; k++) {
        const size_t m = k <= a->rank ? a->shape[a->rank - k] : 1, n = k <= b->rank ? b->shape[b->rank - k] : 1;
        if (m != n && m != 1 && n != 1) return 0;
        dims[rank - k] = n == 1 ? m : n;
        c->strides[0][rank - k] = m == 1 && n != 1 ? 0 : k <= a->rank ? a->strides[a->rank - k] : 0;
        c->strides[1][rank - k] = n == 1 && m != 1 ? 0 : k <= b->rank ? b->strides[b->rank - k] : 0;
    }
    return fc_count(rank, dims) ? rank : 0;
}

/* The rank of a sum, difference, product or quotient of plain tensors; 0 when something is not plain. */
static inline int readied(const fh_context *ctx, struct call *c, int operation, fh_tensor *a, fh_tensor *b, size_t *dims) {
    c->in[0] = a;
    c->in[1] = b;
    c->operation = operation;
    if (!ctx->plain || !fh_is_usable(a) || !fh_is_usable(b) || a->dtype != b->dtype) return 0;
    if (!is_float(a->dtype) && (!is_integer(a->dtype) || operation == FC_DIV)) return 0;
    return together(c, a, b, dims);
}
static inline PyObject *finished(struct call *c, PyObject *out) {
    if (!out) return NULL;
    c->out = (fh_tensor *)out;
    if (run(c)) return out;
    Py_DECREF(out);
    return NULL;
}
/* The same for a result that the garbage collector knows: making it may have run finalizers. */
static inline PyObject *finished_facade(struct call *c, PyObject *out) {
    if (out && !fh_are_usable(c->in, 2)) Py_CLEAR(out);
    return finished(c, out);
}

/* NULL without an exception when something is not plain. */
static PyObject *quick(fh_context *ctx, int operation, PyObject *first, PyObject *second) {
    if (!fh_is_tensor(first) || !fh_is_tensor(second)) return NULL;
    struct call c; /* not cleared: this is the shortest way to a result */
    size_t dims[FC_MAX_RANK];
    const int rank = readied(ctx, &c, operation, (fh_tensor *)first, (fh_tensor *)second, dims);
    return rank ? finished(&c, fh_tensor_empty(ctx->pool, c.in[0]->dtype, rank, dims)) : NULL;
}

/* Clauses: POLICY-ARITH-1, POLICY-TAGS-1 */
PyObject *fh_quick_binary(fh_context *ctx, int operation, fh_facade *a, fh_facade *b) {
    struct call c;
    size_t dims[FC_MAX_RANK];
    const int rank = readied(ctx, &c, operation, &a->t, &b->t, dims);
    return rank ? finished_facade(&c, fh_facade_like(a, (PyObject *)ctx, ctx->pool, rank, dims)) : NULL;
}

/* Clauses: POLICY-ARITH-1, POLICY-TAGS-1 */
PyObject *fh_quick_aligned(fh_context *ctx, int operation, PyTypeObject *type, fh_facade *a, const fh_tensor *a_along, fh_facade *b,
                           const fh_tensor *b_along) {
    struct call c;
    size_t dims[FC_MAX_RANK];
    fh_tensor first = *a_along, second = *b_along;
    const int rank = readied(ctx, &c, operation, &first, &second, dims);
    if (!rank) return NULL;
    PyObject *out = fh_facade_empty(type, a->t.dtype, 0, (PyObject *)ctx, ctx->pool, rank, dims);
    if (out && !fh_are_usable((fh_tensor *const[]){&a->t, &b->t}, 2)) Py_CLEAR(out); /* before the copies are looked at */
    return finished(&c, out);
}

/* Clause: POLICY-SCALAR-1 */
PyObject *fh_quick_scalar(fh_context *ctx, fh_facade *x, int plus, double number) {
    struct call c;
    if (!ctx->plain || !fh_is_usable(&x->t) || !is_float(x->t.dtype)) return NULL;
    c.in[0] = &x->t;
    c.in[1] = NULL;
    c.operation = plus ? PLUS : SCALE;
    c.factor = number;
    return finished_facade(&c, fh_facade_like(x, (PyObject *)ctx, ctx->pool, x->t.rank, x->t.shape));
}

static PyObject *binary(PyObject *self, int operation, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (!fh_context_enter(of(self))) return NULL;
    PyObject *result = count == 2 && !names ? quick(of(self), operation, args[0], args[1]) : NULL;
    if (!result && !PyErr_Occurred()) result = pass_on_to_method(self, slow_names[operation], args, count, names);
    fh_context_leave(of(self));
    return result;
}
/* Clauses: CONTEXT-OP-1, CONTEXT-OP-2, CONTEXT-ARITH-1, CONTEXT-ARITH-2 */
static PyObject *add(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) { return binary(self, FC_ADD, args, count, names); }
static PyObject *sub(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) { return binary(self, FC_SUB, args, count, names); }
static PyObject *mul(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) { return binary(self, FC_MUL, args, count, names); }
static PyObject *divide(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) { return binary(self, FC_DIV, args, count, names); }

/* Clause: POLICY-SUM-1 */
PyObject *fh_quick_sum(fh_context *ctx, PyTypeObject *type, fh_facade *x) {
    const size_t single = 1;
    if (!ctx->plain || !fh_is_usable(&x->t) || x->t.dtype != FC_f32) return NULL;
    struct call c = {.operation = SUM, .axis = -1, .in = {&x->t}};
    return finished_facade(&c, fh_facade_empty(type, FC_f32, 1, (PyObject *)ctx, ctx->pool, 1, &single));
}

/* Clauses: POLICY-SUM-1, POLICY-RESULT-1 */
PyObject *fh_quick_sum_axis(fh_context *ctx, PyTypeObject *type, fh_facade *x, int axis) {
    size_t dims[FC_MAX_RANK] = {1};
    int rank = 0;
    if (!ctx->plain || !fh_is_usable(&x->t) || x->t.bare || axis >= x->t.rank || !count_of(&x->t)) return NULL;
    for (int k = 0; k < x->t.rank; k++)
        if (k != axis) dims[rank++] = x->t.shape[k];
    const int bare = rank == 0;
    struct call c = {.operation = SUM_AXES, .axis = 1 << axis, .in = {&x->t}};
    return finished_facade(&c, fh_facade_empty(type, fc_sum_dtype(x->t.dtype), bare, (PyObject *)ctx, ctx->pool, rank + bare, dims));
}

/* Clause: POLICY-TO-1 */
PyObject *fh_quick_convert(fh_context *ctx, PyTypeObject *type, fh_facade *x, int dtype) {
    if (!ctx->plain || !fh_is_usable(&x->t) || x->t.dtype >= FC_SCALAR_DTYPES || !count_of(&x->t)) return NULL;
    struct call c = {.operation = CONVERT, .in = {&x->t}};
    return finished_facade(&c, fh_facade_empty(type, dtype, x->t.bare, (PyObject *)ctx, ctx->pool, x->t.rank, x->t.shape));
}

/* Clause: AUTOGRAD-GRAD-1 */
PyObject *fh_quick_copy(fh_context *ctx, fh_facade *like, fh_tensor *raw) {
    if (!ctx->plain || !fh_is_usable(raw) || raw->dtype != FC_f32 || like->t.dtype != FC_f32) return NULL;
    struct call c = {.operation = COPY, .in = {raw}};
    return finished_facade(&c, fh_facade_empty(Py_TYPE((PyObject *)like), FC_f32, like->t.bare, (PyObject *)ctx, ctx->pool, raw->rank, raw->shape));
}

/* The view, or NULL without an exception where something is not plain. */
static PyObject *part_of_axis(const fh_context *ctx, PyObject *const *args) {
    size_t axis, start, length, shape[FC_MAX_RANK];
    const fh_tensor *x = (fh_tensor *)args[0];
    if (!ctx->plain || !fh_is_tensor(args[0]) || !fh_is_usable(x) || fh_block_size[x->dtype] != 1) return NULL;
    if (!fh_u64(args[1], &axis) || !fh_u64(args[2], &start) || !fh_u64(args[3], &length)) return NULL;
    if (axis >= x->rank || !length || length > x->shape[axis] || start > x->shape[axis] - length) return NULL;
    memcpy(shape, x->shape, x->rank * sizeof *shape);
    shape[axis] = length;
    return fh_view_of(x, x->rank, shape, x->strides, x->offset + start * x->strides[axis]);
}

/* Clause: CONTEXT-NARROW-1 */
static PyObject *narrow_axis(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (!fh_context_enter(of(self))) return NULL;
    PyObject *result = count == 4 && !names ? part_of_axis(of(self), args) : NULL;
    if (!result && !PyErr_Occurred()) result = pass_on_to_method(self, slow_narrow, args, count, names);
    fh_context_leave(of(self));
    return result;
}

/* _plain(shape): an f32 tensor of unspecified content; None where the Python layer has to look closer
   (clauses CONTEXT-NEW-1, CONTEXT-OWNER-1) */
static PyObject *plain(PyObject *self, PyObject *shape) {
    size_t dims[FC_MAX_RANK];
    if (!fh_context_enter(of(self))) return NULL;
    const int rank = of(self)->plain ? fh_entries(shape, dims) : 0;
    const size_t elements = rank ? fc_count(rank, dims) : 0;
    PyObject *result = NULL;
    if (elements && elements < FH_PLENTY)
        result = fh_tensor_empty(of(self)->pool, FC_f32, rank, dims);
    else
        Py_INCREF(result = Py_None);
    fh_context_leave(of(self));
    return result;
}

/* -- entries for the Python layer, which has checked; what would go wrong here without is looked at again */

static PyObject *wrong(void) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "operands that were not checked");
    return NULL;
}
/* Whether a result fits; where it was the caller's, the write is counted. */
static int opened(fh_tensor *out, int dtype, size_t count, int given) {
    return out && out->dtype == dtype && fh_is_contiguous(out) && count_of(out) == count && !(given && !fh_open_for_writing(out->storage));
}

/* Run it after opening the result, which may have ended tensors. */
static int run_opened(struct call *c) { return fh_are_usable(c->in, 2) && fh_are_usable(&c->out, 1) && run(c); }

/* pointwise(operation, a, b, out, given) */
static PyObject *pointwise(PyObject *module, PyObject *args) {
    PyObject *first, *second, *result;
    struct call c = {0};
    size_t dims[FC_MAX_RANK];
    int given;
    (void)module;
    if (!PyArg_ParseTuple(args, "iOOOp", &c.operation, &first, &second, &result, &given)) return NULL;
    const fh_tensor *a = c.in[0] = fh_usable(first), *b = c.in[1] = fh_usable(second);
    c.out = fh_usable(result);
    if (!a || !b || c.operation < 0 || c.operation > FC_DIV || a->dtype != b->dtype || !(is_float(a->dtype) || is_integer(a->dtype))) return wrong();
    const int rank = together(&c, a, b, dims);
    if (!rank || !opened(c.out, a->dtype, fc_count(rank, dims), given) || c.out->rank != rank ||
        memcmp(dims, c.out->shape, (size_t)rank * sizeof *dims))
        return wrong();
    if (!run_opened(&c)) return NULL;
    Py_RETURN_NONE;
}

/* scale(x, factor, out, given) */
static PyObject *scale(PyObject *module, PyObject *args) {
    PyObject *x, *result;
    struct call c = {.operation = SCALE};
    int given;
    (void)module;
    if (!PyArg_ParseTuple(args, "OdOp", &x, &c.factor, &result, &given)) return NULL;
    c.in[0] = fh_usable(x);
    c.out = fh_usable(result);
    if (!c.in[0] || !is_float(c.in[0]->dtype) || !opened(c.out, c.in[0]->dtype, count_of(c.in[0]), given)) return wrong();
    if (!run_opened(&c)) return NULL;
    Py_RETURN_NONE;
}

/* sum(x, axis or -1, out) */
static PyObject *sum(PyObject *module, PyObject *args) {
    PyObject *x, *result;
    struct call c = {.operation = SUM};
    (void)module;
    if (!PyArg_ParseTuple(args, "OiO", &x, &c.axis, &result)) return NULL;
    c.in[0] = fh_usable(x);
    c.out = fh_usable(result);
    if (!c.in[0] || c.axis < -1 || c.axis >= c.in[0]->rank || c.in[0]->dtype > FC_f64) return wrong();
    const size_t count = c.axis < 0 ? 1 : count_of(c.in[0]) / c.in[0]->shape[c.axis];
    if (!opened(c.out, fc_sum_dtype(c.in[0]->dtype), count, 0)) return wrong();
    if (!run_opened(&c)) return NULL;
    Py_RETURN_NONE;
}

/* convert(x, out) */
static PyObject *convert(PyObject *module, PyObject *args) {
    PyObject *x, *result;
    struct call c = {.operation = CONVERT};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &x, &result)) return NULL;
    c.in[0] = fh_usable(x);
    c.out = fh_usable(result);
    if (!c.in[0] || !c.out || c.in[0]->dtype >= FC_SCALAR_DTYPES || c.out->dtype >= FC_SCALAR_DTYPES ||
        !opened(c.out, c.out->dtype, count_of(c.in[0]), 0))
        return wrong();
    if (!run_opened(&c)) return NULL;
    Py_RETURN_NONE;
}

/* copy(x, out): of the same dtype; of blocks, x is contiguous */
static PyObject *copy(PyObject *module, PyObject *args) {
    PyObject *x, *result;
    struct call c = {.operation = COPY};
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &x, &result)) return NULL;
    c.in[0] = fh_usable(x);
    c.out = fh_usable(result);
    if (!c.in[0] || !c.out || !opened(c.out, c.in[0]->dtype, count_of(c.in[0]), 0) ||
        c.out->rank != c.in[0]->rank || memcmp(c.out->shape, c.in[0]->shape, c.out->rank * sizeof *c.out->shape))
        return wrong();
    if (!run_opened(&c)) return NULL;
    Py_RETURN_NONE;
}

/* has_zero(x): of an integer dtype */
static PyObject *has_zero(PyObject *module, PyObject *object) {
    fh_tensor *x = fh_usable(object);
    (void)module;
    if (!x || !is_integer(x->dtype)) return wrong();
    return PyBool_FromLong(fc_has_zero(x->dtype, x->rank, x->shape, fh_first(x), x->strides));
}

#define ARITHMETIC(name, what) \
    #name "($self, /, a, b, *, out=None)\n--\n\n" what "\n\nClauses: CONTEXT-OP-1, CONTEXT-OP-2, CONTEXT-ARITH-1, CONTEXT-ARITH-2"
static PyMethodDef methods[] = {
    {"add", FH_FAST(add), METH_FASTCALL | METH_KEYWORDS, ARITHMETIC(add, "Return a + b.")},
    {"sub", FH_FAST(sub), METH_FASTCALL | METH_KEYWORDS, ARITHMETIC(sub, "Return a - b.")},
    {"mul", FH_FAST(mul), METH_FASTCALL | METH_KEYWORDS, ARITHMETIC(mul, "Return a * b.")},
    {"div", FH_FAST(divide), METH_FASTCALL | METH_KEYWORDS, ARITHMETIC(div, "Return a / b, of integers truncated.")},
    {"narrow_axis", FH_FAST(narrow_axis), METH_FASTCALL | METH_KEYWORDS,
     "narrow_axis($self, /, x, axis, start, length)\n--\n\nReturn a view of the indices ``start`` to ``start + length - 1`` of one axis.\n\n"
     "Clauses: CONTEXT-NARROW-1"},
    {"_plain", plain, METH_O, NULL},
    {"_begin", begin, METH_VARARGS, NULL},
    {"_tracking", tracking, METH_O, NULL},
    {"_enter", enter_call, METH_NOARGS, NULL},
    {"_leave", leave_call, METH_NOARGS, NULL},
    {"_end", end, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getters[] = {{"_closed", get_closed, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_new, FH_SLOT(context_new)}, {Py_tp_dealloc, FH_SLOT(context_dealloc)}, {Py_tp_methods, methods}, {Py_tp_getset, getters}, {0, NULL},
};
static PyType_Spec spec = {"fucina.fast._contexts.Context", sizeof(fh_context), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
static PyMethodDef functions[] = {
    {"pointwise", pointwise, METH_VARARGS, NULL}, {"scale", scale, METH_VARARGS, NULL}, {"sum", sum, METH_VARARGS, NULL},
    {"convert", convert, METH_VARARGS, NULL},     {"copy", copy, METH_VARARGS, NULL},   {"has_zero", has_zero, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_contexts", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__contexts(void);
PyMODINIT_FUNC PyInit__contexts(void) {
    static const char *const names[4] = {"_add", "_sub", "_mul", "_div"};
    PyObject *module = PyModule_Create(&definition), *type = PyType_FromSpec(&spec);
    context_base = (PyTypeObject *)type;
    for (int k = 0; k < 4; k++) slow_names[k] = PyUnicode_InternFromString(names[k]);
    slow_narrow = PyUnicode_InternFromString("_narrow_axis");
    refuse_name = PyUnicode_InternFromString("_refuse_use");
    if (!module || !type || !slow_names[3] || !slow_narrow || !refuse_name || PyModule_AddObjectRef(module, "Context", type) || fh_add_kernels(module))
        Py_CLEAR(module);
    return module; /* the type is kept: fh_is_context asks for it */
}
