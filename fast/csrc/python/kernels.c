/*
 * The entries of fucina.fast._contexts behind the facade.  The Python layer has checked what arguments mean; what would go
 * wrong here without is looked at again: dtypes, numbers of elements, results that are contiguous, indices in range.
 */
#include "python/kernels.h"
#include "python/contexts.h"
#include "ops/ops.h"
#include <string.h>

struct job {
    void (*compute)(const struct job *);
    fh_tensor *x, *y, *out, *second; /* two that are read and two that are written, or NULL */
    uint64_t seed;
    size_t k, work;
    double value;
    int operation, axis, flag, *failed; /* failed: set where there was no memory */
};

static PyObject *wrong(void) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "operands that were not checked");
    return NULL;
}
static size_t count_of(const fh_tensor *t) { return fc_count(t->rank, t->shape); }
static int is_float(int dtype) { return dtype >= FC_f16 && dtype <= FC_f64; }
static int fits(const fh_tensor *out, int dtype, size_t count) {
    return out && out->dtype == dtype && fh_is_contiguous(out) && count_of(out) == count && !out->storage->read_only;
}

static void compute(const void *job) { ((const struct job *)job)->compute(job); }
/* Compute, without the GIL where much is read and written, or the steps are many. */
static PyObject *run(struct job *job) {
    fh_tensor **const places[] = {&job->x, &job->y, &job->out, &job->second};
    size_t bytes = job->work;
    for (int k = 0; k < 4; k++)
        if (*places[k]) bytes += count_of(*places[k]) * fh_element_size[(*places[k])->dtype];
    if (bytes < FH_LARGE)
        compute(job);
    else if (!fh_run_long(places, 4, compute, job))
        return NULL;
    Py_RETURN_NONE;
}

static void compute_matmul(const struct job *j) {
    fc_matmul(j->x->dtype, j->x->shape[0], j->y->shape[1], j->x->shape[1], fh_first(j->x), j->x->strides, fh_first(j->y), j->y->strides,
              fh_first(j->out));
}
/* How much there is to compute; where it cannot be counted, much. */
static size_t matmul_work(const fh_tensor *a, const fh_tensor *b) {
    const size_t all[] = {a->shape[0], b->shape[1], a->shape[1]};
    const size_t work = fc_count(3, all);
    return work ? work : FH_LARGE;
}
/* matmul(a, b, out) */
static PyObject *matmul(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_matmul};
    (void)module;
    if (count != 3) return wrong();
    const fh_tensor *a = job.x = fh_usable(args[0]), *b = job.y = fh_usable(args[1]);
    job.out = fh_usable(args[2]);
    if (!a || !b || a->rank != 2 || b->rank != 2 || !is_float(a->dtype) || a->dtype != b->dtype || a->shape[1] != b->shape[0]) return wrong();
    const size_t outer[] = {a->shape[0], b->shape[1]}, elements = fc_count(2, outer);
    if (!elements || !fits(job.out, a->dtype, elements)) return wrong();
    job.work = matmul_work(a, b);
    return run(&job);
}

/* A tensor as a matrix: one axis in the first or last place, and all others together, which are put at the end of `dims`; 0
   where that takes a copy. */
static int as_matrix(fh_tensor *matrix, const fh_tensor *t, int axis, int first, size_t *dims, int *rank) {
    if (!fh_is_usable(t) || t->bare || axis >= t->rank || !fc_count(t->rank, t->shape)) return 0;
    size_t count = 1, step = 0;
    for (int k = t->rank; k--;) {
        if (k == axis || t->shape[k] == 1) continue;
        if (count == 1)
            step = t->strides[k];
        else if (t->strides[k] != step * count)
            return 0;
        count *= t->shape[k];
    }
    if (*rank + t->rank - 1 > FC_MAX_RANK) return 0;
    for (int k = 0; k < t->rank; k++)
        if (k != axis) dims[(*rank)++] = t->shape[k];
    *matrix = *t;
    matrix->rank = 2;
    matrix->shape[!first] = t->shape[axis];
    matrix->strides[!first] = t->strides[axis];
    matrix->shape[first] = count;
    matrix->strides[first] = step;
    return 1;
}

/* Clause: POLICY-DOT-1 */
PyObject *fh_quick_dot(fh_context *ctx, PyTypeObject *type, fh_facade *a, int axis, fh_facade *b, int other_axis) {
    fh_tensor left, right;
    size_t dims[FC_MAX_RANK] = {1};
    int rank = 0;
    if (!ctx->plain || !is_float(a->t.dtype) || a->t.dtype != b->t.dtype) return NULL;
    if (!as_matrix(&left, &a->t, axis, 0, dims, &rank) || !as_matrix(&right, &b->t, other_axis, 1, dims, &rank) || left.shape[1] != right.shape[0])
        return NULL;
    const int bare = rank == 0;
    const size_t elements = fc_count(rank += bare, dims);
    if (!elements || elements >= FH_PLENTY) return NULL;
    PyObject *made = fh_facade_empty(type, a->t.dtype, bare, (PyObject *)ctx, ctx->pool, rank, dims);
    if (!made) return NULL;
    if (!fh_are_usable((fh_tensor *const[]){&a->t, &b->t}, 2)) {
        Py_DECREF(made);
        return NULL;
    }
    struct job job = {.compute = compute_matmul, .x = &left, .y = &right, .out = (fh_tensor *)made, .work = matmul_work(&left, &right)};
    PyObject *done = run(&job);
    if (!done) Py_CLEAR(made);
    Py_XDECREF(done);
    return made;
}

static void compute_scalar(const struct job *j) {
    fc_with_scalar(j->operation, j->x->dtype, j->x->rank, j->x->shape, fh_first(j->x), j->x->strides, j->value, fh_first(j->out));
}
static PyObject *with_scalar(int operation, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_scalar, .operation = operation};
    if (count != 3) return wrong();
    job.x = fh_usable(args[0]);
    job.out = fh_usable(args[2]);
    job.value = PyFloat_AsDouble(args[1]);
    if (PyErr_Occurred() || !job.x || !is_float(job.x->dtype) || !fits(job.out, job.x->dtype, count_of(job.x))) return wrong();
    return run(&job);
}
/* add_scalar(x, value, out) */
static PyObject *add_scalar(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    return with_scalar(FC_ADD, args, count);
}
/* max_scalar(x, value, out) */
static PyObject *max_scalar(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    return with_scalar(FC_MAXIMUM, args, count);
}

static void compute_unary(const struct job *j) {
    fc_unary(j->operation, j->x->dtype, j->x->rank, j->x->shape, fh_first(j->x), j->x->strides, fh_first(j->out));
}
/* unary(RSQRT or SQRT, x, out) */
static PyObject *unary(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_unary};
    size_t operation;
    (void)module;
    if (count != 3 || !fh_u64(args[0], &operation) || operation < FC_RSQRT || operation > FC_SQRT) return wrong();
    job.operation = (int)operation;
    job.x = fh_usable(args[1]);
    job.out = fh_usable(args[2]);
    if (!job.x || !is_float(job.x->dtype) || !fits(job.out, job.x->dtype, count_of(job.x))) return wrong();
    return run(&job);
}

static void compute_sum(const struct job *j) {
    fc_sum_axes(j->x->dtype, j->x->rank, j->x->shape, fh_first(j->x), j->x->strides, (unsigned)j->k, fh_first(j->out));
}
/* sum_axes(x, mask, out): bit k of the mask is axis k */
static PyObject *sum_axes(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_sum};
    (void)module;
    if (count != 3 || !fh_u64(args[1], &job.k)) return wrong();
    job.x = fh_usable(args[0]);
    job.out = fh_usable(args[2]);
    if (!job.x || job.x->dtype > FC_f64 || job.k >> job.x->rank) return wrong();
    size_t left = 1;
    for (int axis = 0; axis < job.x->rank; axis++) left *= job.k >> axis & 1 ? 1 : job.x->shape[axis];
    if (!fits(job.out, fc_sum_dtype(job.x->dtype), left)) return wrong();
    return run(&job);
}

static void compute_dropout(const struct job *j) {
    fc_dropout(j->x->dtype, j->x->rank, j->x->shape, fh_first(j->x), j->x->strides, j->seed, j->value, fh_first(j->out));
}
/* dropout(x, seed, p, out) */
static PyObject *dropout(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_dropout};
    size_t seed;
    (void)module;
    if (count != 4 || !fh_u64(args[1], &seed)) return wrong();
    job.seed = seed;
    job.x = fh_usable(args[0]);
    job.out = fh_usable(args[3]);
    job.value = PyFloat_AsDouble(args[2]);
    if (PyErr_Occurred() || !(job.value >= 0 && job.value < 1 - 0x1p-25)) return wrong(); /* what rounds to an f32 below 1 */
    if (!job.x || job.x->dtype == FC_f64 || !is_float(job.x->dtype) || !fits(job.out, job.x->dtype, count_of(job.x))) return wrong();
    return run(&job);
}

/* -- order */
static void compute_argmax(const struct job *j) {
    fc_argmax(j->x->dtype, j->x->rank, j->x->shape, fh_first(j->x), j->x->strides, j->axis, (int64_t *)(void *)fh_first(j->out));
}
/* of one tensor of numbers along an axis */
static int along(struct job *job, PyObject *x, PyObject *axis) {
    size_t at;
    job->x = fh_usable(x);
    if (!job->x || job->x->dtype > FC_f64 || !fh_u64(axis, &at) || at >= job->x->rank) return 0;
    job->axis = (int)at;
    return 1;
}
/* argmax(x, axis, out) */
static PyObject *argmax(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_argmax};
    (void)module;
    if (count != 3 || !along(&job, args[0], args[1])) return wrong();
    job.out = fh_usable(args[2]);
    if (!fits(job.out, FC_i64, count_of(job.x) / job.x->shape[job.axis])) return wrong();
    return run(&job);
}

static void compute_sort(const struct job *j) {
    void *out = fh_first(j->out);
    *j->failed = !(j->operation ? fc_argsort(j->x->dtype, j->x->rank, j->x->shape, fh_first(j->x), j->x->strides, j->axis, j->flag, out)
                                : fc_sort(j->x->dtype, j->x->rank, j->x->shape, fh_first(j->x), j->x->strides, j->axis, j->flag, out));
}
static void compute_top_k(const struct job *j) {
    *j->failed = !fc_top_k(j->x->dtype, j->x->rank, j->x->shape, fh_first(j->x), j->x->strides, j->axis, j->k, fh_first(j->out),
                           (int64_t *)(void *)fh_first(j->second));
}
static PyObject *run_with_memory(struct job *job) {
    int failed = 0;
    job->failed = &failed;
    PyObject *result = run(job);
    if (!result || !failed) return result;
    Py_DECREF(result);
    return fh_refuse(FH_OutOfMemory, "STORAGE-FAULT-1", "no memory to sort %R in", (PyObject *)job->x);
}
static PyObject *sort_into(int indices, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_sort, .operation = indices};
    if (count != 4 || !along(&job, args[0], args[1])) return wrong();
    job.out = fh_usable(args[3]);
    job.flag = PyObject_IsTrue(args[2]);
    if (job.flag < 0 || !fits(job.out, indices ? FC_i64 : job.x->dtype, count_of(job.x))) return wrong();
    return run_with_memory(&job);
}
/* argsort(x, axis, descending, out) */
static PyObject *argsort(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    return sort_into(1, args, count);
}
/* sort(x, axis, descending, out) */
static PyObject *sort(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    return sort_into(0, args, count);
}
/* top_k(x, axis, k, values, indices) */
static PyObject *top_k(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_top_k};
    size_t elements;
    (void)module;
    if (count != 5 || !along(&job, args[0], args[1]) || !is_float(job.x->dtype) || !fh_u64(args[2], &job.k)) return wrong();
    job.out = fh_usable(args[3]);
    job.second = fh_usable(args[4]);
    if (!job.k || __builtin_mul_overflow(count_of(job.x) / job.x->shape[job.axis], job.k, &elements)) return wrong();
    if (!fits(job.out, job.x->dtype, elements) || !fits(job.second, FC_i64, elements)) return wrong();
    return run_with_memory(&job);
}

/* -- rows */
static int64_t *indices_of(const fh_tensor *t) { return (int64_t *)(void *)fh_first(t); }
/* Contiguous i64 that all lie in [0, rows). */
static int are_indices(const fh_tensor *t, size_t rows) {
    if (!t || t->dtype != FC_i64 || !fh_is_contiguous(t)) return 0;
    const int64_t *index = indices_of(t);
    const size_t n = count_of(t);
    uint64_t most = 0;
    for (size_t k = 0; k < n; k++) most = (uint64_t)index[k] > most ? (uint64_t)index[k] : most;
    return most < rows;
}
static void compute_gather(const struct job *j) {
    fc_gather_rows(fh_element_size[j->x->dtype], j->x->rank, j->x->shape, fh_first(j->x), j->x->strides, indices_of(j->y), count_of(j->y),
                   fh_first(j->out));
}
/* gather_rows(table, indices, out) */
static PyObject *gather_rows(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_gather};
    size_t elements;
    (void)module;
    if (count != 3) return wrong();
    job.x = fh_usable(args[0]);
    job.y = fh_usable(args[1]);
    job.out = fh_usable(args[2]);
    if (!job.x || job.x->dtype >= FC_SCALAR_DTYPES || !are_indices(job.y, job.x->shape[0])) return wrong();
    if (__builtin_mul_overflow(count_of(job.x) / job.x->shape[0], count_of(job.y), &elements)) return wrong();
    if (!fits(job.out, job.x->dtype, elements)) return wrong();
    return run(&job);
}

static void compute_scatter(const struct job *j) {
    fc_scatter_add_rows(j->x->rank, j->x->shape, (const float *)(const void *)fh_first(j->x), j->x->strides, indices_of(j->y), j->out->shape[0],
                        (float *)(void *)fh_first(j->out));
}
/* scatter_add_rows(g, indices, out) */
static PyObject *scatter_add_rows(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    struct job job = {.compute = compute_scatter};
    (void)module;
    if (count != 3) return wrong();
    job.x = fh_usable(args[0]);
    job.y = fh_usable(args[1]);
    job.out = fh_usable(args[2]);
    if (!job.x || job.x->dtype != FC_f32 || !job.out || !are_indices(job.y, job.out->shape[0]) || count_of(job.y) != job.x->shape[0]) return wrong();
    if (count_of(job.x) / job.x->shape[0] != count_of(job.out) / job.out->shape[0] || !fits(job.out, FC_f32, count_of(job.out))) return wrong();
    return run(&job);
}

#define ENTRY(name) {#name, FH_FAST(name), METH_FASTCALL, NULL}
static PyMethodDef functions[] = {
    ENTRY(matmul),      ENTRY(add_scalar),       ENTRY(max_scalar), ENTRY(unary), ENTRY(sum_axes),
    ENTRY(dropout),     ENTRY(argmax),           ENTRY(argsort),    ENTRY(sort),  ENTRY(top_k),
    ENTRY(gather_rows), ENTRY(scatter_add_rows), {NULL, NULL, 0, NULL},
};

int fh_add_kernels(PyObject *module) {
    return PyModule_AddFunctions(module, functions) || PyModule_AddIntConstant(module, "RSQRT", FC_RSQRT) ||
           PyModule_AddIntConstant(module, "SQRT", FC_SQRT);
}
