/*
 * The walk back over the graph of gradients.  What is wrong is said by the Python layer; the formulas are there too.
 * Everything here runs with the GIL.
 */
#include "python/nodes.h"
#include "python/contexts.h"
#include "ops/ops.h"
#include <string.h>

static PyObject *one, *refuse, *copied; /* a tensor of one 1; what raises; what copies */
static PyObject *all_wanted, *both_wanted, *left_wanted, *right_wanted;
static PyObject *add_name, *broadcast_name;

static fh_node *of(PyObject *object) { return (fh_node *)object; }

/* Whether backward can go through a node; where not, the Python layer says why (clauses AUTOGRAD-LIFE-1, AUTOGRAD-SAVED-1). */
static int passable(const fh_node *node) {
    int good = !node->dead;
    for (Py_ssize_t k = PyTuple_Size(node->saved); good && k--;) {
        const fh_tensor *t = fh_saved_at(node->saved, k);
        good = !t || (t->storage && (fh_generation_of(t) == node->generations[k] || FC_PLANTED(SAVED_UNWATCHED)));
    }
    if (good) return 1;
    Py_XDECREF(PyObject_CallFunctionObjArgs(refuse, (PyObject *)node, NULL));
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "a node that backward cannot go through");
    return 0;
}

static fh_tensor *tensor(PyObject *object) { return (fh_tensor *)object; }
static int is_ours(const fh_tensor *t) {
    return fh_can_take_in_place(t) || (FC_PLANTED(GRADIENT_VIEW_WRITTEN) && t->offset == 0 && fh_is_contiguous(t));
}

/* a = a + b, where a is ours */
struct sum { fh_tensor *a, *b; };
static void compute_sum(const void *job) {
    const fh_tensor *a = ((const struct sum *)job)->a, *b = ((const struct sum *)job)->b;
    fc_pointwise(FC_ADD, FC_f32, a->rank, a->shape, fh_first(a), a->strides, fh_first(b), b->strides, fh_first(a));
}
static int add_to(fh_tensor *a, fh_tensor *b) {
    struct sum sum = {a, b};
    fh_tensor **const places[] = {&sum.a, &sum.b};
    Py_INCREF((PyObject *)a); /* a leaf's gradient may be dropped meanwhile */
    int good = fh_open(a) && fh_are_usable(&b, 1);
    if (good && fc_count(a->rank, a->shape) * sizeof(float) < FH_LARGE)
        compute_sum(&sum);
    else if (good)
        good = fh_run_long(places, 2, compute_sum, &sum);
    Py_DECREF((PyObject *)a);
    return good;
}

/* -- the walk: what has arrived where, and the nodes among them that are to be visited, as a heap, the latest first */
struct walk {
    PyObject *ctx, *arrived, *summed; /* summed: leaves to whose gradient that of `arrived` was added, or NULL */
    PyObject *later; /* (leaf, gradient) that arrive at the end, as what users wrote may change gradients until then; or NULL */
    fh_node **heap, *near[32];
    size_t count, room;
};

static int push(struct walk *w, fh_node *node) {
    if (w->count == w->room) {
        fh_node **more = PyMem_Malloc(2 * w->room * sizeof *more);
        if (!more) return PyErr_NoMemory(), 0;
        memcpy(more, w->heap, w->count * sizeof *more);
        if (w->heap != w->near) PyMem_Free(w->heap);
        w->heap = more;
        w->room *= 2;
    }
    size_t k = w->count++;
    for (; k && w->heap[(k - 1) / 2]->serial < node->serial; k = (k - 1) / 2) w->heap[k] = w->heap[(k - 1) / 2];
    w->heap[k] = node;
    return 1;
}
static fh_node *pop(struct walk *w) {
    fh_node *top = w->heap[0], *last = w->heap[--w->count];
    size_t k = 0;
    for (size_t child; (child = 2 * k + 1) < w->count; k = child) {
        if (child + 1 < w->count && w->heap[child + 1]->serial > w->heap[child]->serial) child++;
        if (w->heap[child]->serial < last->serial) break;
        w->heap[k] = w->heap[child];
    }
    w->heap[k] = last;
    return top;
}

/* Put a sum in the place of what has arrived, which ends; steals the sum, which may be NULL. */
static int replaced(struct walk *w, PyObject *node, PyObject *old, PyObject *sum) {
    if (!sum) return 0;
    Py_INCREF(old);
    const int good = PyDict_SetItem(w->arrived, node, sum) == 0;
    fh_finish(good ? old : sum);
    Py_DECREF(old);
    Py_DECREF(sum);
    return good;
}
static int is_summed(const struct walk *w, PyObject *leaf) { return w->summed && PySet_Contains(w->summed, leaf) == 1; }
/* The gradient that a leaf has, plus what has arrived there. */
static int sum_up(struct walk *w, PyObject *leaf, PyObject *first) {
    if (!w->summed && !(w->summed = PySet_New(NULL))) return 0;
    return replaced(w, leaf, first, PyObject_CallMethodObjArgs(w->ctx, add_name, of(leaf)->gradient, first, NULL)) && PySet_Add(w->summed, leaf) == 0;
}

/* A gradient comes to a node: it is kept, or added to what is there (clauses AUTOGRAD-BACK-1, AUTOGRAD-BACK-2). */
static int arrive(struct walk *w, PyObject *node, PyObject *gradient) {
    if (w->later && of(node)->leaf) {
        PyObject *pair = PyTuple_Pack(2, node, gradient);
        const int good = pair && PyList_Append(w->later, pair) == 0;
        Py_XDECREF(pair);
        return good;
    }
    PyObject *first = PyDict_GetItemWithError(w->arrived, node);
    if (!first) {
        if (PyErr_Occurred() || PyDict_SetItem(w->arrived, node, gradient)) return 0;
        return of(node)->leaf ? passable(of(node)) : push(w, of(node));
    }
    if (of(node)->leaf && of(node)->gradient && !is_summed(w, node)) {
        if (!sum_up(w, node, first)) return 0;
        first = PyDict_GetItemWithError(w->arrived, node);
        if (!first) return 0;
    }
    if (FC_PLANTED(ARRIVED_ONCE)) {
        fh_finish(gradient);
        return 1;
    }
    if (is_ours(tensor(first))) {
        if (!add_to(tensor(first), tensor(gradient))) return 0;
    } else if (!replaced(w, node, first, PyObject_CallMethodObjArgs(w->ctx, add_name, first, gradient, NULL))) {
        return 0;
    }
    fh_finish(gradient);
    return 1;
}

/* What each operand wants, as the formula is told. */
static PyObject *wanted_of(PyObject *operands) {
    const Py_ssize_t count = PyTuple_Size(operands);
    PyObject *known = NULL;
    if (count == 1 && PyTuple_GetItem(operands, 0) != Py_None) known = all_wanted;
    if (count == 2) {
        const int left = PyTuple_GetItem(operands, 0) != Py_None, right = PyTuple_GetItem(operands, 1) != Py_None;
        known = left && right ? both_wanted : left ? left_wanted : right ? right_wanted : NULL;
    }
    if (known) {
        Py_INCREF(known);
        return known;
    }
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t k = 0; made && k < count; k++) PyTuple_SetItem(made, k, PyBool_FromLong(PyTuple_GetItem(operands, k) != Py_None));
    return made;
}

static int is_gradient(PyObject *object) {
    return fh_is_tensor(object) && tensor(object)->dtype == FC_f32 && fh_is_usable(tensor(object)) && !tensor(object)->lender;
}

/* Give the operands what a formula returned; whatever does not arrive ends. */
static int deliver(struct walk *w, PyObject *operands, PyObject *given) {
    const Py_ssize_t count = PyTuple_Size(operands);
    int good = PyTuple_Size(given) == count;
    if (!good) PyErr_SetString(PyExc_ValueError, "a formula must give each operand a gradient or None");
    for (Py_ssize_t k = 0; k < PyTuple_Size(given); k++) {
        PyObject *gradient = PyTuple_GetItem(given, k), *operand = good ? PyTuple_GetItem(operands, k) : Py_None;
        if (gradient == Py_None) continue;
        if (good && !is_gradient(gradient)) {
            PyErr_SetString(PyExc_ValueError, "a gradient must be a raw tensor of f32 that has not ended");
            good = 0;
        }
        if (!fh_is_tensor(gradient)) continue;
        if (!good || operand == Py_None)
            fh_finish(gradient);
        else if (!arrive(w, operand, gradient)) {
            good = 0;
            fh_finish(gradient);
        }
    }
    return good;
}

/* Visit the latest node. */
static int visit(struct walk *w) {
    fh_node *node = pop(w);
    PyObject *g = PyDict_GetItemWithError(w->arrived, (PyObject *)node), *operands = node->operands, *saved = node->saved;
    PyObject *formula = node->formula, *constants = node->constants, *wanted, *given = NULL;
    if (!g) return 0;
    Py_INCREF((PyObject *)node);
    Py_INCREF(g);
    int good = PyDict_DelItem(w->arrived, (PyObject *)node) == 0 && passable(node);
    if (good) {
        Py_INCREF(operands);
        Py_INCREF(saved);
        Py_INCREF(formula);
        Py_INCREF(constants);
        wanted = wanted_of(operands);
        PyObject *returned = wanted ? PyObject_CallFunctionObjArgs(formula, w->ctx, g, saved, constants, wanted, NULL) : NULL;
        if (returned) given = PySequence_Tuple(returned);
        Py_XDECREF(returned);
        Py_XDECREF(wanted);
        Py_DECREF(constants);
        Py_DECREF(formula);
        Py_DECREF(saved);
    }
    fh_finish(g);
    Py_DECREF(g);
    if (good) {
        good = given && deliver(w, operands, given);
        Py_XDECREF(given);
        Py_DECREF(operands);
    }
    Py_DECREF(node);
    return good;
}

/* Put the gradients on the leaves: first whatever can fail, then the rest (clauses AUTOGRAD-BACK-2, AUTOGRAD-GRAD-1). */
static int commit(struct walk *w) {
    PyObject *leaf, *gradient;
    for (Py_ssize_t at = 0; PyDict_Next(w->arrived, &at, &leaf, &gradient);) {
        PyObject *held = of(leaf)->gradient;
        if (!held || is_summed(w, leaf)) {
            if (!is_ours(tensor(gradient)) && !replaced(w, leaf, gradient, PyObject_CallFunctionObjArgs(copied, w->ctx, gradient, NULL))) return 0;
        } else if (!is_ours(tensor(held)) && !sum_up(w, leaf, gradient)) {
            return 0;
        }
    }
    for (Py_ssize_t at = 0; PyDict_Next(w->arrived, &at, &leaf, &gradient);) {
        PyObject *held = of(leaf)->gradient;
        if (held && !is_summed(w, leaf)) {
            if (!FC_PLANTED(SECOND_BACKWARD_LOST) && !add_to(tensor(held), tensor(gradient))) return 0;
            fh_finish(gradient);
            continue;
        }
        fh_put(&tensor(gradient)->origin, NULL); /* nobody has to end it */
        if (held) fh_finish(held);
        fh_put(&of(leaf)->gradient, gradient);
    }
    return 1;
}

/* Let arrive what was kept. */
static int catch_up(struct walk *w) {
    PyObject *pairs = w->later;
    int good = 1;
    w->later = NULL;
    for (Py_ssize_t k = 0; k < PyList_Size(pairs); k++) {
        PyObject *pair = PyList_GetItem(pairs, k), *gradient = PyTuple_GetItem(pair, 1);
        good = good && arrive(w, PyTuple_GetItem(pair, 0), gradient);
        if (!good) fh_finish(gradient);
    }
    Py_DECREF(pairs);
    return good;
}

/* End every gradient that did not come to a leaf. */
static void drop(struct walk *w) {
    PyObject *node, *gradient;
    struct fh_pending pending;
    fh_pending_save(&pending);
    for (Py_ssize_t k = w->later ? PyList_Size(w->later) : 0; k--;) fh_finish(PyTuple_GetItem(PyList_GetItem(w->later, k), 1));
    for (Py_ssize_t at = 0; PyDict_Next(w->arrived, &at, &node, &gradient);)
        if (of(node)->gradient != gradient) fh_finish(gradient);
    fh_pending_restore(&pending, NULL, 1);
}

static int run(PyObject *ctx, fh_node *root) {
    struct walk w = {.ctx = ctx, .heap = w.near, .room = sizeof w.near / sizeof *w.near};
    w.arrived = PyDict_New();
    if (root->foreign && !(w.later = PyList_New(0))) Py_CLEAR(w.arrived);
    PyObject *first = w.arrived ? PyObject_CallMethodObjArgs(one, broadcast_name, root->shape, NULL) : NULL;
    int good = first && arrive(&w, (PyObject *)root, first);
    while (good && w.count) good = visit(&w);
    if (good && w.later) good = catch_up(&w);
    if (good) good = commit(&w);
    if (!good && w.arrived) drop(&w);
    if (w.heap != w.near) PyMem_Free(w.heap);
    Py_XDECREF(first);
    Py_XDECREF(w.later);
    Py_XDECREF(w.summed);
    Py_XDECREF(w.arrived);
    return good;
}

/* backward(ctx, root) */
static PyObject *backward(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 2 || !fh_is_context(args[0]) || !fh_is_node(args[1]) || !one) return PyErr_Format(PyExc_TypeError, "backward(ctx, node)");
    PyObject *ctx = args[0], *root = args[1];
    if (!fh_context_enter((fh_context *)ctx)) return NULL;
    int good = 1;
    for (Py_ssize_t k = PyTuple_Size(of(root)->shape); good && k--;) good = PyLong_AsLong(PyTuple_GetItem(of(root)->shape, k)) == 1;
    if (good)
        good = run(ctx, of(root));
    else
        Py_XDECREF(PyObject_CallFunctionObjArgs(refuse, root, NULL));
    fh_context_leave((fh_context *)ctx);
    if (!good || PyErr_Occurred()) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "backward cannot start here");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* configure(a tensor of one 1, what raises for a node, what copies a gradient) */
static PyObject *configure(PyObject *module, PyObject *args) {
    PyObject *tensor_of_one, *raises, *copies;
    (void)module;
    if (!PyArg_ParseTuple(args, "OOO", &tensor_of_one, &raises, &copies)) return NULL;
    fh_put(&one, tensor_of_one);
    fh_put(&refuse, raises);
    fh_put(&copied, copies);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"configure", configure, METH_VARARGS, NULL},
    {"backward", FH_FAST(backward), METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

int fh_add_backward(PyObject *module) {
    all_wanted = PyTuple_Pack(1, Py_True);
    both_wanted = PyTuple_Pack(2, Py_True, Py_True);
    left_wanted = PyTuple_Pack(2, Py_True, Py_False);
    right_wanted = PyTuple_Pack(2, Py_False, Py_True);
    add_name = PyUnicode_InternFromString("add");
    broadcast_name = PyUnicode_InternFromString("broadcast_to");
    if (!all_wanted || !both_wanted || !left_wanted || !right_wanted || !add_name || !broadcast_name) return -1;
    return PyModule_AddFunctions(module, functions);
}
