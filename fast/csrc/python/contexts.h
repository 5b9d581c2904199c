/* A context, for the C files that drive one (module fucina.fast._contexts).  Everything here runs with the GIL. */
#ifndef FC_PYTHON_CONTEXTS_H
#define FC_PYTHON_CONTEXTS_H
#include "python/handles.h"

#define FH_PLENTY ((size_t)1 << 48) /* elements that no memory holds: the Python layer says so */

typedef struct {
    PyObject_HEAD
    fh_pool *pool;
    PyObject *marks;      /* the list of the open scopes' marks */
    unsigned long driver; /* the thread that is in a call */
    size_t depth;         /* how many calls of it are within each other; 0: nobody drives */
    size_t untracked;     /* how many no_grad are open (clause AUTOGRAD-NOGRAD-1) */
    int closed, plain;    /* plain: nothing is traced */
} fh_context;

int fh_is_context(PyObject *object);
/* Begin and end a call of the calling thread; 0 with an exception where it may not (clauses CONTEXT-THREAD-1, CONTEXT-LIFE-2). */
int fh_context_enter(fh_context *ctx);
static inline void fh_context_leave(fh_context *ctx) { ctx->depth--; }
static inline int fh_scope_is_open(const fh_context *ctx) { return !ctx->marks || PyList_Size(ctx->marks) > 0; }

/* A sum, difference, product or quotient of tensors of one type and dtype, or a product or sum with a number, on the pool;
   NULL without an exception when something is not plain. */
PyObject *fh_quick_binary(fh_context *ctx, int operation, fh_facade *a, fh_facade *b);
PyObject *fh_quick_scalar(fh_context *ctx, fh_facade *x, int plus, double number);
/* The same of tensors whose axes lie along those of the result as the copies say, of the given type. */
PyObject *fh_quick_aligned(fh_context *ctx, int operation, PyTypeObject *type, fh_facade *a, const fh_tensor *a_along, fh_facade *b,
                           const fh_tensor *b_along);
/* The sum of all elements of an f32 tensor, of the given type; and a copy of an f32 raw tensor, of the type of `like`. */
PyObject *fh_quick_sum(fh_context *ctx, PyTypeObject *type, fh_facade *x);
PyObject *fh_quick_copy(fh_context *ctx, fh_facade *like, fh_tensor *raw);
/* The sums along an axis, and a conversion, of the given type; of a tensor that has them. */
PyObject *fh_quick_sum_axis(fh_context *ctx, PyTypeObject *type, fh_facade *x, int axis);
PyObject *fh_quick_convert(fh_context *ctx, PyTypeObject *type, fh_facade *x, int dtype);
/* The sums of products along an axis of each, of the given type (python/kernels.c). */
PyObject *fh_quick_dot(fh_context *ctx, PyTypeObject *type, fh_facade *a, int axis, fh_facade *b, int other_axis);

#endif
