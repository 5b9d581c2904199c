/*
 * The entries of fucina.fast._contexts behind the facade.  The Python layer has checked what arguments mean; what would go
 * wrong here without is looked at again: dtypes, numbers of elements, results that are contiguous, indices in range.
 */
#include "python/kernels.h"
#include "ops/ops.h"
#include <string.h>

enum { LARGE = 1 << 15, TENSORS = 4 }; /* LARGE: bytes read and written, or steps, from which on the GIL is released */

struct job {
    void (*compute)(const struct job *);
    fh_tensor *x, *y, *out, *second; /* two that are read and two that are written, or NULL */
    uint64_t seed;
    size_t k, work;
    double value;
    int operation, axis, flag;
};

static PyObject *wrong(void) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "operands that were not checked");
    return NULL;
}
static fh_tensor *usable(PyObject *object) {
    return fh_is_operand(object) && fh_is_usable((fh_tensor *)object) ? (fh_tensor *)object : NULL;
}
static size_t count_of(const fh_tensor *t) { return fc_count(t->rank, t->shape); }
static int is_float(int dtype) { return dtype >= FC_f16 && dtype <= FC_f64; }
static int fits(const fh_tensor *out, int dtype, size_t count) {
    return out && out->dtype == dtype && fh_is_contiguous(out) && count_of(out) == count && !out->storage->read_only;
}

/* Compute, without the GIL where it is long: the memory is pinned then, whatever other threads do to the tensors. */
static PyObject *run(const struct job *job) {
    fh_tensor *const tensors[TENSORS] = {job->x, job->y, job->out, job->second};
    size_t bytes = job->work;
    for (int k = 0; k < TENSORS; k++)
        if (tensors[k]) bytes += count_of(tensors[k]) * fh_element_size[tensors[k]->dtype];
    if (bytes < LARGE) {
        job->compute(job);
        Py_RETURN_NONE;
    }
    struct job own = *job;
    fh_tensor **const places[TENSORS] = {&own.x, &own.y, &own.out, &own.second};
    fh_tensor copies[TENSORS]; /* shapes and places, which deinit on another thread does not change */
    int pinned = 0, good = 1;
    for (; pinned < TENSORS && good; pinned++) {
        if (!tensors[pinned]) continue;
        good = fc_storage_pin(tensors[pinned]->storage);
        copies[pinned] = *tensors[pinned];
        *places[pinned] = copies + pinned;
    }
    if (good) {
        PyThreadState *state = PyEval_SaveThread();
        own.compute(&own);
        PyEval_RestoreThread(state);
    } else {
        pinned--; /* the last one was not */
        PyErr_SetString(PyExc_RuntimeError, "a tensor ended under an operation");
    }
    while (pinned--)
        if (tensors[pinned]) fc_storage_unpin(copies[pinned].storage);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static void compute_matmul(const struct job *j) {
    fc_matmul(j->x->dtype, j->x->shape[0], j->y->shape[1], j->x->shape[1], fh_first(j->x), j->x->strides, fh_first(j->y), j->y->strides,
              fh_first(j->out));
}
/* matmul(a, b, out) */
static PyObject *matmul(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_matmul};
    (void)module;
    if (count != 3) return wrong();
    const fh_tensor *a = job.x = usable(args[0]), *b = job.y = usable(args[1]);
    job.out = usable(args[2]);
    if (!a || !b || a->rank != 2 || b->rank != 2 || !is_float(a->dtype) || a->dtype != b->dtype || a->shape[1] != b->shape[0]) return wrong();
    const size_t outer[] = {a->shape[0], b->shape[1]}, all[] = {a->shape[0], b->shape[1], a->shape[1]};
    const size_t elements = fc_count(2, outer);
    if (!elements || !fits(job.out, a->dtype, elements)) return wrong();
    job.work = fc_count(3, all) ? fc_count(3, all) : LARGE;
    return run(&job);
}

#define ENTRY(name) {#name, FH_FAST(name), METH_FASTCALL, NULL}
static PyMethodDef functions[] = {
    ENTRY(matmul),
    {NULL, NULL, 0, NULL},
};

int fh_add_kernels(PyObject *module) { return PyModule_AddFunctions(module, functions); }
