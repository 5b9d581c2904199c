/* Tensor objects: a reference to a storage with a shape, strides and an offset; what of them has to be quick. */
#include "python/handles.h"
#include "python/pass_on.h"
#include "core/fault.h"
#include <string.h>

static PyTypeObject *tensor_base, *newest; /* newest: the type of the newest tensor, which is there for ever */
static PyObject *slow_reshape, *slow_strides, *slow_offset, *slow_broadcast, *slow_len;

int fh_is_tensor(PyObject *object) { return Py_TYPE(object) == newest || PyObject_TypeCheck(object, tensor_base); }
static fh_tensor *of(PyObject *object) { return (fh_tensor *)object; }

/* Clauses: TENSOR-LIFE-1, FACADE-OWN-1, STORAGE-DEAD-1, SCOPE-AFTER-1 */
PyObject *fh_unusable(const fh_tensor *t) {
    if (fh_life(t) == FH_CLOSED)
        return fh_refuse(FH_UseAfterScope, "SCOPE-AFTER-1", "%R was used after its scope was closed", (PyObject *)t);
    const char *clause = fh_is_facade((PyObject *)t) ? "FACADE-OWN-1" : "TENSOR-LIFE-1";
    return fh_refuse(FH_UseAfterDeinit, clause, "%R was used after deinit", (PyObject *)t);
}

fh_tensor *fh_usable(PyObject *object) {
    if (!fh_is_handle(object)) return NULL;
    if (fh_is_usable(of(object))) return of(object);
    if (!PyErr_Occurred()) fh_unusable(of(object));
    return NULL;
}

int fh_open(fh_tensor *t) { return fh_open_for_writing(t->storage) && fh_are_usable(&t, 1); }

/* -- making */

/* Shapes are short: a call costs more than the copy. */
static void copy_entries(size_t *to, const size_t *from, int rank) {
    to[0] = from[0];
    if (rank > 1) memcpy(to + 1, from + 1, (size_t)(rank - 1) * sizeof *from);
}

/* Clause: POOL-LEAK-1: what a report would say of the storage */
static void note_shape(struct fc_storage *s, int rank, const size_t *shape) {
    struct fc_pooled *pooled = (struct fc_pooled *)s;
    pooled->rank = (uint8_t)rank;
    copy_entries(pooled->shape, shape, rank);
}

/* The memory of the tensor that ended last: the next one begins there.  Sanitizers are to see every end. */
static void *spare;
#if defined(__SANITIZE_ADDRESS__)
enum { SPARING = 0 };
#else
enum { SPARING = 1 };
#endif

/* An object with nothing set but its type. */
static fh_tensor *object_of(PyTypeObject *type) {
    void *memory = spare ? spare : PyObject_Malloc(sizeof(fh_tensor));
    spare = NULL;
    return memory ? (fh_tensor *)PyObject_Init(memory, type) : (fh_tensor *)PyErr_NoMemory();
}

static void free_object(PyObject *object) {
    if (SPARING && !spare)
        spare = object;
    else
        PyObject_Free(object);
}

PyObject *fh_tensor_over(struct fc_storage *s, int rank, const size_t *shape, const size_t *strides, size_t offset) {
    PyTypeObject *type = fh_tensor_type(s->dtype);
    fh_tensor *self = type ? object_of(type) : NULL;
    if (!self) {
        fh_let_go_silently(s);
        return NULL;
    }
    newest = type;
    self->weak = self->shape_object = self->strides_object = self->origin = self->lender = NULL;
    self->storage = s;
    self->rank = (uint8_t)rank;
    self->dtype = s->dtype;
    self->life = FH_OWNED;
    self->bare = 0;
    self->offset = offset;
    copy_entries(self->shape, shape, rank);
    copy_entries(self->strides, strides, rank);
    if (s->kind == FC_STORAGE_POOLED) note_shape(s, rank, shape);
    return (PyObject *)self;
}

/* Clause: TENSOR-VIEW-1 */
PyObject *fh_view_of(const fh_tensor *t, int rank, const size_t *shape, const size_t *strides, size_t offset) {
    if (!fc_storage_retain(t->storage))
        return fh_refuse(FH_Overflow, "STORAGE-REF-1", "a storage has fewer than 2^30 references, got one more of %R", (PyObject *)(uintptr_t)t);
    if (FC_PLANTED(VIEW_NOT_RETAINED)) fc_storage_release(t->storage);
    fc_storage_hold(t->storage);
    return fh_tensor_over(t->storage, rank, shape, strides, offset);
}

PyObject *fh_tensor_empty(fh_pool *pool, int dtype, int rank, const size_t *shape) {
    size_t dims[FC_MAX_RANK], strides[FC_MAX_RANK];
    copy_entries(dims, shape, rank);
    if (fh_block_size[dtype] > 1) dims[rank - 1] /= fh_block_size[dtype];
    fc_row_major(rank, dims, strides);
    struct fc_storage *s = fc_pool_acquire(pool->pool, dtype, fc_count(rank, dims), fh_element_size[dtype]);
    if (!s) return fh_refuse(FH_OutOfMemory, "POOL-MEMORY-1", "no memory for a tensor of %llu storage elements", (unsigned long long)fc_count(rank, dims));
    return fh_tensor_over(s, rank, shape, strides, 0);
}

/* -- the end */

void fh_end(fh_tensor *t, int life) {
    struct fc_storage *s = t->storage;
    t->life = (uint8_t)life;
    t->storage = NULL;
    if (!s) return;
    if (t->lender)
        fc_storage_drop(s);
    else
        fh_let_go(s);
}

/* Clauses: TENSOR-LIFE-1, SCOPE-BORROW-1, FACADE-RAW-1 */
PyObject *fh_tensor_deinit(PyObject *self, PyObject *unused) {
    (void)unused;
    fh_tensor *t = of(self);
    if (t->lender) Py_RETURN_NONE;
    if (t->life == FH_OWNED) {
        FH_REQUIRE_USABLE(self);
        if (!fc_held_of(fc_life_of(t->storage))) { /* somebody gave the tensor's reference back by hand */
            t->life = FH_ENDED;
            fc_storage_drop(t->storage);
            t->storage = NULL;
            return fh_refuse(FH_OverRelease, "STORAGE-REF-1", "the reference of %R was given back already", self);
        }
        fh_end(t, FH_ENDED);
        if (PyErr_Occurred()) return NULL;
    } else if (t->life == FH_ENDED && !FC_PLANTED(DEINIT_TWICE)) {
        return fh_unusable(t);
    }
    Py_RETURN_NONE;
}

PyObject *fh_tensor_is_usable(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(fh_is_usable(of(self)));
}

/* Clause: CONTEXT-REPLACE-1: a deinit that forgives a second one */
PyObject *fh_tensor_deinit_replaced(PyObject *self, PyObject *unused) {
    if (of(self)->life != FH_OWNED) Py_RETURN_NONE;
    PyObject *result = fh_tensor_deinit(self, unused);
    if (of(self)->life == FH_ENDED) of(self)->life = FH_REPLACED;
    return result;
}

PyObject *fh_tensor_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    Py_INCREF(self);
    return self;
}

PyObject *fh_tensor_leave(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    (void)args, (void)count;
    if (of(self)->life == FH_OWNED) return fh_tensor_deinit(self, NULL);
    Py_RETURN_NONE;
}

/* Clause: SCOPE-ADOPT-1 */
PyObject *fh_tensor_adopt(PyObject *self, PyObject *unused) {
    (void)unused;
    of(self)->life = FH_SCOPED;
    Py_RETURN_NONE;
}

/* Clauses: SCOPE-CLOSE-1, SCOPE-AFTER-1 */
PyObject *fh_tensor_close(PyObject *self, PyObject *unused) {
    (void)unused;
    fh_end(of(self), FH_CLOSED);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* Clauses: TENSOR-LIFE-2, FACADE-OWN-1 */
void fh_tensor_clear(fh_tensor *t, int warned) {
    struct fc_storage *s = t->storage;
    t->storage = NULL;
    if (s && !s->owner && !t->origin && !t->lender && !warned) {
        fh_let_go(s);
    } else if (s || t->origin || t->lender) {
        struct fh_pending pending;
        fh_pending_save(&pending);
        if (s && t->origin && t->life == FH_OWNED)
            PyErr_WarnFormat(PyExc_ResourceWarning, 1, "a tensor made at %U was not deinited", t->origin);
        else if (s && warned && t->life == FH_OWNED)
            PyErr_WarnFormat(PyExc_ResourceWarning, 1, "a tensor of type %R was not deinited", (PyObject *)Py_TYPE((PyObject *)(uintptr_t)t));
        if (PyErr_Occurred()) PyErr_WriteUnraisable(NULL);
        if (s && t->lender)
            fc_storage_drop(s);
        else if (s)
            fh_let_go(s);
        Py_XDECREF(t->lender);
        fh_pending_restore(&pending, NULL, 1);
    }
    Py_XDECREF(t->shape_object);
    Py_XDECREF(t->strides_object);
    Py_XDECREF(t->origin);
}

static void tensor_dealloc(PyObject *object) {
    fh_tensor *t = of(object);
    PyTypeObject *type = Py_TYPE(object);
    if (t->weak) PyObject_ClearWeakRefs(object);
    if (t->storage || t->shape_object || t->strides_object || t->origin || t->lender) fh_tensor_clear(t, 0);
    free_object(object);
    Py_DECREF(type);
}

/* -- fields */

static PyObject *entries_object(PyObject **place, int rank, const size_t *entries) {
    if (!*place) {
        PyObject *tuple = fh_tuple(rank, entries);
        if (!tuple) return NULL;
        PyObject *made = PyObject_CallMethod((PyObject *)&PyTuple_Type, "__new__", "OO", fh_shape_type, tuple);
        Py_DECREF(tuple);
        if (!made) return NULL;
        fh_put(place, made);
        Py_DECREF(made);
    }
    Py_INCREF(*place);
    return *place;
}

/* Clause: TENSOR-TYPE-1 */
static PyObject *get_shape(PyObject *self, void *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return entries_object(&of(self)->shape_object, of(self)->rank, of(self)->shape);
}
static PyObject *get_strides(PyObject *self, void *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return entries_object(&of(self)->strides_object, of(self)->rank, of(self)->strides);
}
static PyObject *get_offset(PyObject *self, void *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return PyLong_FromSize_t(of(self)->offset);
}
static PyObject *get_buffer(PyObject *self, void *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return fh_buffer_of(of(self)->storage);
}
PyObject *fh_tensor_scope_owned(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(of(self)->life == FH_SCOPED || of(self)->life == FH_CLOSED);
}
PyObject *fh_tensor_origin(PyObject *self, void *unused) {
    (void)unused;
    PyObject *origin = of(self)->origin ? of(self)->origin : Py_None;
    Py_INCREF(origin);
    return origin;
}
int fh_tensor_set_origin(PyObject *self, PyObject *origin, void *unused) {
    (void)unused;
    if (origin && origin != Py_None && !PyUnicode_Check(origin)) {
        fh_refuse_type(FH_DTypeMismatch, "TENSOR-LIFE-2", "origin must be a str or None, got an object of type %U", Py_TYPE(origin));
        return -1;
    }
    fh_put(&of(self)->origin, origin == Py_None ? NULL : origin);
    return 0;
}

/* _state: what repr shows, of a dead tensor too: (life, references, shape, strides, offset) */
PyObject *fh_tensor_state(PyObject *self, void *unused) {
    (void)unused;
    const fh_tensor *t = of(self);
    const int life = t->lender ? ((const fh_tensor *)t->lender)->life : t->life;
    return Py_BuildValue("iKNNn", life, (unsigned long long)(t->storage ? fc_refs_of(fc_life_of(t->storage)) : 0),
                         fh_tuple(t->rank, t->shape), fh_tuple(t->rank, t->strides), (Py_ssize_t)t->offset);
}

/* -- geometry */

/* Clause: TENSOR-GEOM-1 */
static PyObject *get_rank(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return PyLong_FromLong(of(self)->rank);
}
static PyObject *get_len(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    const size_t count = fc_count(of(self)->rank, of(self)->shape);
    return count ? PyLong_FromSize_t(count) : PyObject_CallMethodObjArgs(self, slow_len, NULL);
}
static PyObject *storage_len(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return PyLong_FromSize_t(fh_storage_count(of(self)));
}
/* Clause: TENSOR-GEOM-2 */
PyObject *fh_tensor_is_contiguous(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return PyBool_FromLong(fh_is_contiguous(of(self)));
}
/* Clause: TENSOR-TAKE-1 */
PyObject *fh_tensor_can_take_in_place(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    return PyBool_FromLong(fh_can_take_in_place(of(self)));
}

/* -- views: the plain case here, everything else in the Python layer */

/* Clause: TENSOR-VIEW-1 */
PyObject *fh_tensor_clone_view(PyObject *self, PyObject *unused) {
    (void)unused;
    FH_REQUIRE_USABLE(self);
    const fh_tensor *t = of(self);
    return fh_view_of(t, t->rank, t->shape, t->strides, t->offset);
}

/* Clause: TENSOR-VIEW-2 */
static PyObject *reshape(PyObject *self, PyObject *const *args, Py_ssize_t given, PyObject *names) {
    PyObject *shape = fh_only(args, given, names, "new_shape");
    if (!shape) return NULL;
    FH_REQUIRE_USABLE(self);
    const fh_tensor *t = of(self);
    size_t dims[FC_MAX_RANK], strides[FC_MAX_RANK];
    const int rank = fh_entries(shape, dims);
    if (rank && fh_block_size[t->dtype] == 1) {
        const size_t count = fc_count(rank, dims);
        if (count && count == fc_count(t->rank, t->shape) && (fc_is_row_major(t->rank, t->shape, t->strides) || FC_PLANTED(RESHAPE_STRIDED))) {
            fc_row_major(rank, dims, strides);
            return fh_view_of(t, rank, dims, strides, FC_PLANT(RESHAPE_OFFSET_LOST, t->offset, 0));
        }
    }
    return PyObject_CallMethodObjArgs(self, slow_reshape, shape, NULL);
}

/* The view, or NULL without an exception where it is not plain. */
static PyObject *plain_view(const fh_tensor *t, PyObject *shape, PyObject *strides, size_t delta) {
    size_t dims[FC_MAX_RANK], steps[FC_MAX_RANK], offset;
    const int rank = fh_entries(shape, dims);
    if (rank && fh_block_size[t->dtype] == 1 && fh_entries(strides, steps) == rank && fc_count(rank, dims) && !__builtin_add_overflow(t->offset, delta, &offset) &&
        fc_view_fits(rank, dims, steps, offset, fh_capacity(t->storage)))
        return fh_view_of(t, rank, dims, steps, offset);
    return NULL;
}

/* Clause: TENSOR-VIEW-3 */
static PyObject *view_with_strides(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    FH_REQUIRE_USABLE(self);
    if (count == 2 && !names) {
        PyObject *view = plain_view(of(self), args[0], args[1], 0);
        if (view || PyErr_Occurred()) return view;
    }
    return pass_on_to_method(self, slow_strides, args, count, names);
}
static PyObject *view_with_strides_offset(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    size_t delta;
    FH_REQUIRE_USABLE(self);
    if (count == 3 && !names && fh_u64(args[2], &delta)) {
        PyObject *view = plain_view(of(self), args[0], args[1], delta);
        if (view || PyErr_Occurred()) return view;
    }
    return pass_on_to_method(self, slow_offset, args, count, names);
}

/* Clause: TENSOR-VIEW-4 */
static PyObject *broadcast_to(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *target = fh_only(args, count, names, "target_shape");
    if (!target) return NULL;
    FH_REQUIRE_USABLE(self);
    const fh_tensor *t = of(self);
    size_t dims[FC_MAX_RANK], strides[FC_MAX_RANK];
    const int rank = fh_entries(target, dims);
    if (rank && fc_count(rank, dims) && fc_broadcast(t->rank, t->shape, t->strides, rank, dims, strides) &&
        fh_block_size[t->dtype] == 1)
        return fh_view_of(t, rank, dims, strides, t->offset);
    return PyObject_CallMethodObjArgs(self, slow_broadcast, target, NULL);
}

/* _borrows(): whether it lives on another tensor's reference (clause FACADE-RAW-1) */
static PyObject *borrows(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(of(self)->lender != NULL);
}

/* _view(shape, strides, offset): a view that the Python layer has checked; looked at again, for nothing may lie outside */
PyObject *fh_tensor_checked_view(PyObject *self, PyObject *args) {
    PyObject *shape, *strides;
    unsigned long long offset;
    size_t dims[FC_MAX_RANK], steps[FC_MAX_RANK], blocks[FC_MAX_RANK];
    if (!PyArg_ParseTuple(args, "OOK", &shape, &strides, &offset)) return NULL;
    FH_REQUIRE_USABLE(self);
    const fh_tensor *t = of(self);
    const int rank = fh_entries(shape, dims);
    if (!rank || fh_entries(strides, steps) != rank || dims[rank - 1] % fh_block_size[t->dtype]) goto wrong;
    memcpy(blocks, dims, sizeof dims);
    blocks[rank - 1] /= fh_block_size[t->dtype];
    if (!fc_count(rank, blocks) || !fc_view_fits(rank, blocks, steps, (size_t)offset, fh_capacity(t->storage))) goto wrong;
    return fh_view_of(t, rank, dims, steps, (size_t)offset);
wrong:
    return PyErr_Format(PyExc_ValueError, "a view outside its storage");
}

/* tensor_over(buffer, shape): a contiguous tensor that takes over one reference to a storage */
static PyObject *over(PyObject *module, PyObject *args) {
    PyObject *buffer, *shape;
    size_t dims[FC_MAX_RANK], blocks[FC_MAX_RANK], strides[FC_MAX_RANK];
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &buffer, &shape)) return NULL;
    const int rank = fh_is_buffer(buffer) ? fh_entries(shape, dims) : 0;
    struct fc_storage *s = rank ? ((fh_buffer *)buffer)->storage : NULL;
    if (!s || !fc_is_live(s) || dims[rank - 1] % fh_block_size[s->dtype]) goto wrong;
    memcpy(blocks, dims, sizeof dims);
    blocks[rank - 1] /= fh_block_size[s->dtype];
    const size_t count = fc_count(rank, blocks);
    if (!count || count > fh_capacity(s)) goto wrong;
    fc_row_major(rank, blocks, strides);
    fc_storage_hold(s);
    fc_storage_retain(s); /* so that on error the caller's reference stays */
    PyObject *made = fh_tensor_over(s, rank, dims, strides, 0);
    if (made) fc_storage_release(s);
    return made;
wrong:
    return PyErr_Format(PyExc_ValueError, "tensor_over(live buffer, shape that fits)");
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)args, (void)keywords;
    return fh_refuse_type(FH_DTypeMismatch, "TENSOR-TYPE-1", "%U is made by its constructors, such as zeros(shape)", type);
}

static PyObject *make_leaf(PyObject *module, PyObject *args) {
    PyObject *base, *name;
    (void)module;
    if (!PyArg_ParseTuple(args, "OU", &base, &name)) return NULL;
    PyObject *leaf = fh_leaf(base, name, tensor_dealloc), *size = leaf ? PyObject_GetAttrString(leaf, "__basicsize__") : NULL;
    if (size && PyLong_AsLong(size) != (long)sizeof(fh_tensor)) { /* fh_tensor_over would leave its fields as they come */
        Py_CLEAR(leaf);
        PyErr_Format(PyExc_TypeError, "%U has fields of its own", name);
    }
    if (!size) Py_CLEAR(leaf);
    Py_XDECREF(size);
    return leaf;
}

static Py_ssize_t length(PyObject *self) {
    if (!fh_is_usable(of(self))) {
        fh_unusable(of(self));
        return -1;
    }
    const size_t count = fc_count(of(self)->rank, of(self)->shape);
    if (count && count <= PY_SSIZE_T_MAX) return (Py_ssize_t)count;
    fh_refuse(FH_Overflow, "TENSOR-GEOM-1", "len() must lie below 2^63, got the elements of %R", self);
    return -1;
}

static PyMethodDef methods[] = {
    {"rank", get_rank, METH_NOARGS, "rank($self)\n--\n\nReturn the number of axes.\n\nClauses: TENSOR-GEOM-1"},
    {"len", get_len, METH_NOARGS, "len($self)\n--\n\nReturn the number of logical elements; Overflow from 2^64 on.\n\nClauses: TENSOR-GEOM-1"},
    {"storage_len", storage_len, METH_NOARGS, "storage_len($self)\n--\n\nReturn the number of storage elements.\n\nClauses: TENSOR-GEOM-1, TENSOR-BLOCK-1"},
    {"is_contiguous", fh_tensor_is_contiguous, METH_NOARGS, "is_contiguous($self)\n--\n\nReturn whether the strides are exactly the row-major ones.\n\nClauses: TENSOR-GEOM-2"},
    {"can_take_in_place", fh_tensor_can_take_in_place, METH_NOARGS, "can_take_in_place($self)\n--\n\nReturn whether an operation that consumes it may write into its storage.\n\nClauses: TENSOR-TAKE-1"},
    {"clone_view", fh_tensor_clone_view, METH_NOARGS, "clone_view($self)\n--\n\nReturn the same view once more.\n\nClauses: TENSOR-VIEW-1"},
    {"reshape", FH_FAST(reshape), METH_FASTCALL | METH_KEYWORDS, "reshape($self, new_shape)\n--\n\nReturn a contiguous tensor in another shape.\n\nClauses: TENSOR-VIEW-2, TENSOR-BLOCK-2"},
    {"view_with_strides", FH_FAST(view_with_strides), METH_FASTCALL | METH_KEYWORDS, "view_with_strides($self, shape, strides)\n--\n\nReturn a view from the tensor's first element on.\n\nClauses: TENSOR-VIEW-3, TENSOR-BLOCK-2"},
    {"view_with_strides_offset", FH_FAST(view_with_strides_offset), METH_FASTCALL | METH_KEYWORDS, "view_with_strides_offset($self, shape, strides, offset_delta)\n--\n\nReturn a view from offset_delta storage elements after the tensor's first on.\n\nClauses: TENSOR-VIEW-3, TENSOR-BLOCK-2"},
    {"broadcast_to", FH_FAST(broadcast_to), METH_FASTCALL | METH_KEYWORDS, "broadcast_to($self, target_shape)\n--\n\nReturn a view that repeats the tensor to a shape.\n\nClauses: TENSOR-VIEW-4"},
    {"data", fh_data, METH_NOARGS, "data($self)\n--\n\nReturn the elements of a contiguous tensor as an array to write to.\n\nClauses: TENSOR-DATA-1, STORAGE-GEN-1, STORAGE-PIN-1"},
    {"data_const", fh_data_const, METH_NOARGS, "data_const($self)\n--\n\nReturn the elements of a contiguous tensor as an array to read.\n\nClauses: TENSOR-DATA-1, STORAGE-PIN-1"},
    {"data_checked", fh_data, METH_NOARGS, "data_checked($self)\n--\n\nReturn what data() returns: nothing here is unchecked.\n\nClauses: TENSOR-DATA-1"},
    {"data_const_checked", fh_data_const, METH_NOARGS, "data_const_checked($self)\n--\n\nReturn what data_const() returns: nothing here is unchecked.\n\nClauses: TENSOR-DATA-1"},
    {"deinit", fh_tensor_deinit, METH_NOARGS, "deinit($self)\n--\n\nGive the reference back; of a tensor that a scope owns, nothing.\n\nClauses: TENSOR-LIFE-1, SCOPE-BORROW-1"},
    {"__enter__", fh_tensor_enter, METH_NOARGS, NULL},
    {"__exit__", FH_FAST(fh_tensor_leave), METH_FASTCALL, NULL},
    {"_is_usable", fh_tensor_is_usable, METH_NOARGS, NULL},
    {"_deinit_replaced", fh_tensor_deinit_replaced, METH_NOARGS, NULL},
    {"_borrows", borrows, METH_NOARGS, NULL},
    {"_adopt", fh_tensor_adopt, METH_NOARGS, NULL},
    {"_close", fh_tensor_close, METH_NOARGS, NULL},
    {"_exported", fh_exported, METH_NOARGS, NULL},
    {"_writable", fh_writable, METH_NOARGS, NULL},
    {"_view", fh_tensor_checked_view, METH_VARARGS, NULL},
    {"_pin", fh_pin_range, METH_VARARGS, NULL},
    {"_copy", fh_copy_elements, METH_VARARGS, NULL},
    {"_add", fh_add, METH_O, NULL},
    {"_scale", fh_scale, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getters[] = {
    {"buffer", get_buffer, NULL, "The storage, without a reference of its own.", NULL},
    {"shape", get_shape, NULL, "The sizes.", NULL},
    {"strides", get_strides, NULL, "The steps along the axes, in storage elements.", NULL},
    {"offset", get_offset, NULL, "Where the first element lies, in storage elements.", NULL},
    {"scope_owned", fh_tensor_scope_owned, NULL, "Whether an exec scope owns it, or owned it.", NULL},
    {"origin", fh_tensor_origin, fh_tensor_set_origin, "Where it was made, if that is traced.", NULL},
    {"_state", fh_tensor_state, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(fh_tensor, weak), READONLY, NULL}, {NULL, 0, 0, 0, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_new, FH_SLOT(tensor_new)},  {Py_tp_dealloc, FH_SLOT(tensor_dealloc)}, {Py_tp_methods, methods}, {Py_tp_getset, getters},
    {Py_tp_members, members}, {Py_bf_getbuffer, FH_SLOT(fh_export)},       {Py_sq_length, FH_SLOT(length)},   {0, NULL},
};
static PyType_Spec spec = {"fucina.fast._handles.Tensor", sizeof(fh_tensor), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
static PyMethodDef functions[] = {
    {"tensor_over", over, METH_VARARGS, NULL},
    {"tensor_leaf", make_leaf, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int fh_add_tensors(PyObject *module) {
    tensor_base = (PyTypeObject *)PyType_FromSpec(&spec);
    slow_reshape = PyUnicode_InternFromString("_reshape");
    slow_strides = PyUnicode_InternFromString("_view_with_strides");
    slow_offset = PyUnicode_InternFromString("_view_with_strides_offset");
    slow_broadcast = PyUnicode_InternFromString("_broadcast_to");
    slow_len = PyUnicode_InternFromString("_len");
    if (!tensor_base || !slow_len || PyModule_AddFunctions(module, functions)) return -1;
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)tensor_base);
}
