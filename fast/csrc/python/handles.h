/*
 * The Python objects of the memory chapters and of the facade, for the C files that make and read them (module
 * fucina.fast._handles).
 *
 * A buffer object is one of any number of handles to a storage; a tensor holds a reference to one.  Both are leaves of
 * types in the Python layer, one for each dtype, which do the complete checks and know the words: a function here takes
 * plain arguments and hands everything else to the method of the same name with an underscore in front.  A tensor of the
 * facade is the same structure and some more, of another type.
 * Everything here runs with the GIL.
 */
#ifndef FC_PYTHON_HANDLES_H
#define FC_PYTHON_HANDLES_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include "core/dtype.h"
#include "core/fault.h"
#include "storage/pool.h"
#include "storage/storage.h"
#include "tensor/geometry.h"

/* a function as a type's slot */
#define FH_SLOT(function) (void *)(uintptr_t)(function)

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    struct fc_storage *storage; /* with a holder, but no reference */
} fh_buffer;

enum { FH_OWNED, FH_SCOPED, FH_REPLACED, FH_ENDED, FH_CLOSED };

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    struct fc_storage *storage; /* with a reference and a holder; NULL at the end */
    PyObject *shape_object, *strides_object; /* made when asked for, or NULL */
    PyObject *origin; /* where it was made, if that is traced, or NULL */
    PyObject *lender; /* the facade's tensor whose reference this one lives on, without one of its own, or NULL */
    size_t offset, shape[FC_MAX_RANK], strides[FC_MAX_RANK];
    uint8_t rank, dtype, life;
    uint8_t bare; /* shown without axes: a scalar of the facade, whose shape here is (1,) */
} fh_tensor;

/* A tensor whose axes have names: what its type says (clause FACADE-TYPE-1).  The garbage collector knows it. */
typedef struct {
    fh_tensor t;
    PyObject *node, *context; /* or NULL; the node stays to the end of the object, destroyed with the tensor */
    uint8_t constructed;      /* by a constructor: whoever forgets it is told (clause FACADE-OWN-1) */
    uint8_t parted;           /* from its storage, its node destroyed */
} fh_facade;

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    struct fc_pool *pool;
    int closed, traced;
} fh_pool;

/* -- errors */
#define FH_ERRORS(X)                                                                                                        \
    X(UseAfterDeinit) X(UseAfterScope) X(OverRelease) X(ReadOnlyStorage) X(DTypeMismatch) X(OutOfMemory) X(NotCopyable)     \
    X(ExportRefused) X(Overflow)
enum {
#define X(name) FH_##name,
    FH_ERRORS(X)
#undef X
    FH_ERROR_COUNT
};
/* Set an exception of fucina.spec.errors; returns NULL. */
PyObject *fh_refuse(int error, const char *clause, const char *format, ...);
/* The same with the name of a type in place of %U. */
PyObject *fh_refuse_type(int error, const char *clause, const char *format, PyTypeObject *type);

/* Let a place refer to something else. */
static inline void fh_put(PyObject **place, PyObject *object) {
    PyObject *old = *place;
    Py_XINCREF(object);
    *place = object;
    Py_XDECREF(old);
}

/* An exception that was set before a call into Python, put back after it; one that the call set is reported as unraisable
   where `silent`, and else takes its place. */
struct fh_pending { PyObject *type, *value, *trace; };
void fh_pending_save(struct fh_pending *pending);
void fh_pending_restore(struct fh_pending *pending, PyObject *culprit, int silent);

/* -- dtypes */
extern const size_t fh_element_size[FC_DTYPES];
extern const size_t fh_block_size[FC_DTYPES]; /* 1 of a scalar dtype */
extern PyObject *fh_element[FC_DTYPES];       /* numpy dtypes */
extern PyObject *fh_ndarray, *fh_release_type, *fh_no_hook, *fh_shadow_type, *fh_shape_type;
/* The leaf type of a dtype, made by the Python layer when it is first needed; borrowed.  NULL with an exception. */
PyTypeObject *fh_buffer_type(int dtype);
PyTypeObject *fh_tensor_type(int dtype);

/* -- buffers (python/buffers.c) */
int fh_is_buffer(PyObject *object);
/* A new handle to a storage, with a holder of its own. */
PyObject *fh_buffer_of(struct fc_storage *s);
static inline size_t fh_capacity(const struct fc_storage *s) { return s->bytes / fh_element_size[s->dtype]; }
/* Let go of a reference and a holder; an exception of the hook is left set. */
void fh_let_go(struct fc_storage *s);
/* The same where no exception may come out. */
void fh_let_go_silently(struct fc_storage *s);
/* Count a mutable access; 0 with an exception for a read-only storage, or when dropping the shadow raised.  What drops the
   shadow may also end tensors. */
int fh_open_for_writing(struct fc_storage *s);
/* An object with the buffer protocol over bytes of a storage that holds a pin; NULL with an exception. */
PyObject *fh_pin(struct fc_storage *s, size_t offset, size_t bytes, int writable);
/* Note where a storage was made. */
int fh_set_origin(struct fc_storage *s, PyObject *origin);
PyObject *fh_origin(struct fc_storage *s); /* borrowed, or NULL */

/* -- tensors (python/tensors.c) */
int fh_is_tensor(PyObject *object);
/* A tensor that takes over one reference and one holder; on error, NULL with an exception, they are given back. */
PyObject *fh_tensor_over(struct fc_storage *s, int rank, const size_t *shape, const size_t *strides, size_t offset);
/* A contiguous tensor, of unspecified content, on pooled storage; NULL with an exception. */
PyObject *fh_tensor_empty(fh_pool *pool, int dtype, int rank, const size_t *shape);
/* Whether a tensor can be used; and the exception where it cannot, returning NULL. */
static inline int fh_is_usable(const fh_tensor *t) {
    return t->storage && fc_is_live(t->storage) && (!t->lender || ((const fh_tensor *)t->lender)->storage);
}
/* How its life stands; of one that lives on another's reference, how the other's ended. */
static inline int fh_life(const fh_tensor *t) {
    const fh_tensor *lender = (const fh_tensor *)t->lender;
    return lender && !lender->storage ? lender->life : t->life;
}
PyObject *fh_unusable(const fh_tensor *t);
/* A tensor that can be used; NULL where it has ended, with an exception, and where the object is none, without. */
fh_tensor *fh_usable(PyObject *object);
/* Whether tensors, NULL among them, can be used after something that may have run Python code, which is making an object that
   the garbage collector knows and opening a storage for writing; 0 with an exception. */
static inline int fh_are_usable(fh_tensor *const *tensors, int count) {
    for (int k = 0; k < count; k++)
        if (tensors[k] && !fh_is_usable(tensors[k])) {
            fh_unusable(tensors[k]);
            return 0;
        }
    return 1;
}
#define FH_REQUIRE_USABLE(self) \
    if (!fh_is_usable((fh_tensor *)(self))) return fh_unusable((fh_tensor *)(self))
/* The shape in storage elements. */
static inline void fh_storage_shape(const fh_tensor *t, size_t *dims) {
    for (int k = 0; k < t->rank; k++) dims[k] = t->shape[k];
    dims[t->rank - 1] /= fh_block_size[t->dtype];
}
static inline int fh_is_contiguous(const fh_tensor *t) {
    size_t dims[FC_MAX_RANK] = {0};
    fh_storage_shape(t, dims);
    return fc_is_row_major(t->rank, dims, t->strides);
}
static inline size_t fh_storage_count(const fh_tensor *t) {
    size_t dims[FC_MAX_RANK] = {0};
    fh_storage_shape(t, dims);
    return fc_count(t->rank, dims);
}
/* Whether an operation that consumes a tensor may write into its storage: nobody else sees it, and it is all the tensor's
   (clause TENSOR-TAKE-1). */
static inline int fh_can_take_in_place(const fh_tensor *t) {
    return t->offset == 0 && (!t->storage->read_only || FC_PLANTED(READ_ONLY_TAKEN)) &&
           (fc_refs_of(fc_life_of(t->storage)) == 1 || FC_PLANTED(SHARED_TAKEN)) && fh_is_contiguous(t);
}
static inline unsigned char *fh_first(const fh_tensor *t) { return t->storage->data + t->offset * fh_element_size[t->dtype]; }
/* The entries of a tuple or list of one to eight exact ints in [0, 2^64); 0, without exception, when it is not so plain. */
int fh_entries(PyObject *object, size_t *entries);
int fh_u64(PyObject *object, size_t *value);
PyObject *fh_tuple(int rank, const size_t *entries);
/* The only argument of a method, by place or by name; NULL with a TypeError when there is another number of them. */
PyObject *fh_only(PyObject *const *args, Py_ssize_t count, PyObject *names, const char *name);

/* Count a mutable access to a tensor's storage; 0 with an exception, also where the tensor ended under it. */
int fh_open(fh_tensor *t);
/* Another raw tensor on the same storage, with a reference of its own (clause TENSOR-VIEW-1). */
PyObject *fh_view_of(const fh_tensor *t, int rank, const size_t *shape, const size_t *strides, size_t offset);
/* Give the reference back; an exception of a hook is left set. */
void fh_end(fh_tensor *t, int life);
/* What a dealloc does about the fields: the storage goes back, with a warning where somebody is to be told. */
void fh_tensor_clear(fh_tensor *t, int warned);
/* Methods that raw tensors and the facade's share. */
PyObject *fh_tensor_deinit(PyObject *self, PyObject *unused);
PyObject *fh_tensor_deinit_replaced(PyObject *self, PyObject *unused);
PyObject *fh_tensor_enter(PyObject *self, PyObject *unused);
PyObject *fh_tensor_leave(PyObject *self, PyObject *const *args, Py_ssize_t count);
PyObject *fh_tensor_adopt(PyObject *self, PyObject *unused);
PyObject *fh_tensor_close(PyObject *self, PyObject *unused);
PyObject *fh_tensor_is_usable(PyObject *self, PyObject *unused);
PyObject *fh_tensor_is_contiguous(PyObject *self, PyObject *unused);
PyObject *fh_tensor_can_take_in_place(PyObject *self, PyObject *unused);
PyObject *fh_tensor_clone_view(PyObject *self, PyObject *unused);
PyObject *fh_tensor_checked_view(PyObject *self, PyObject *args);
PyObject *fh_tensor_scope_owned(PyObject *self, void *unused);
PyObject *fh_tensor_state(PyObject *self, void *unused);
PyObject *fh_tensor_origin(PyObject *self, void *unused);
int fh_tensor_set_origin(PyObject *self, PyObject *origin, void *unused);

/* -- the facade's tensors (python/facade.c) */
int fh_is_facade(PyObject *object);
/* Whether an object is a type of theirs, with nothing of its own in its instances. */
int fh_is_facade_type(PyObject *object);
/* Whether an object begins with a fh_tensor: a raw tensor, or one of the facade. */
int fh_is_handle(PyObject *object);
/* A contiguous tensor of unspecified content, of a type with a dtype, bare where it has no axes, in a context; NULL with an
   exception.  And one of the type of another one. */
PyObject *fh_facade_empty(PyTypeObject *type, int dtype, int bare, PyObject *context, fh_pool *pool, int rank, const size_t *shape);
static inline PyObject *fh_facade_like(const fh_facade *model, PyObject *context, fh_pool *pool, int rank, const size_t *shape) {
    return fh_facade_empty(Py_TYPE((PyObject *)(uintptr_t)model), model->t.dtype, model->t.bare, context, pool, rank, shape);
}

/* A view of a tensor's, of the same type, in a context; NULL with an exception. */
PyObject *fh_facade_view(fh_facade *x, PyObject *context, const size_t *shape, size_t offset);

/* -- a tensor's elements (python/elements.c) */
PyObject *fh_data(PyObject *self, PyObject *unused);
PyObject *fh_data_const(PyObject *self, PyObject *unused);
PyObject *fh_exported(PyObject *self, PyObject *unused);
PyObject *fh_writable(PyObject *self, PyObject *unused);
PyObject *fh_pin_range(PyObject *self, PyObject *args);
PyObject *fh_copy_elements(PyObject *self, PyObject *args);
PyObject *fh_add(PyObject *self, PyObject *other);
PyObject *fh_scale(PyObject *self, PyObject *factor);
int fh_export(PyObject *self, Py_buffer *view, int flags);

/* -- computing without the GIL (python/handles.c) */
enum { FH_LARGE = 1 << 15, FH_AT_ONCE = 4 }; /* bytes from which on the GIL is released; tensors of one job */
/* Call compute(job) without the GIL. The memory of the job's tensors is pinned meanwhile, and the job sees copies of them,
   which deinit on another thread does not change.  `places` are where the job keeps them, at most FH_AT_ONCE, NULL where it
   has none.  0 with an exception. */
int fh_run_long(fh_tensor **const *places, int count, void (*compute)(const void *), const void *job);

#define FH_FAST(function) (PyCFunction)(void (*)(void))(function)

/* -- the parts of the module */
int fh_add_buffers(PyObject *module);
int fh_add_tensors(PyObject *module);
int fh_add_pools(PyObject *module);
int fh_add_dlpack(PyObject *module);
int fh_add_facade(PyObject *module);
/* A leaf of a type in the Python layer. */
PyObject *fh_leaf(PyObject *base, PyObject *name, destructor dealloc);

#endif
