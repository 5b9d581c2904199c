/* Operations of the facade's tensors in C (python/operations.c): METH_FASTCALL | METH_KEYWORDS.  Everything here runs with the GIL. */
#ifndef FC_PYTHON_OPERATIONS_H
#define FC_PYTHON_OPERATIONS_H
#include "python/contexts.h"
#include "python/pass_on.h"

#define FH_OPERATION(name) PyObject *fh_op_##name(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
FH_OPERATION(add);
FH_OPERATION(sub);
FH_OPERATION(mul);
FH_OPERATION(div);
FH_OPERATION(scale);
FH_OPERATION(sum_all);
FH_OPERATION(dot);
FH_OPERATION(grad);
FH_OPERATION(add_scalar);
FH_OPERATION(sum);
FH_OPERATION(to);
FH_OPERATION(narrow);

/* Operations as the formulas of their gradients are numbered, after those of fc_pointwise. */
enum { FH_SCALE = 4, FH_SUM, FH_DOT, FH_ADD_SCALAR, FH_TO, FH_NARROW, FH_OPERATIONS };

/* An operand, and how its axes lie along those of the result: as its own, or elsewhere. */
struct fh_side {
    fh_facade *given;
    const fh_tensor *along;
};
/* Give a result its node, with constants that are stolen; NULL with an exception, and then it has ended. */
PyObject *fh_noted(PyObject *result, int operation, const struct fh_side *a, const struct fh_side *b, PyObject *constants);
/* Whether a dtype tracks gradients, and whether the result of one operand does (clause AUTOGRAD-TRACK-1). */
static inline int fh_is_trackable(int dtype) { return dtype >= FC_f16 && dtype <= FC_f32; }
static inline int fh_tracks(const fh_context *ctx, const fh_facade *x, int dtype) { return x->node && !ctx->untracked && fh_is_trackable(dtype); }
/* A result under an open scope is adopted where it is of f32 or has a node (clause FACADE-OWN-2). */
PyObject *fh_adopted(fh_context *ctx, PyObject *result);
/* A method of so many arguments after the context: `made` in it, adopted; what is not plain goes to the Python method called
   `slow`. */
#define FH_PLAIN(name, arguments, made, slow)                               \
    FH_OPERATION(name) {                                                    \
        if (count == (arguments) + 1 && !names && fh_is_context(args[0])) { \
            fh_context *ctx = (fh_context *)args[0];                        \
            if (!fh_context_enter(ctx)) return NULL;                        \
            PyObject *result = fh_adopted(ctx, made);                       \
            fh_context_leave(ctx);                                          \
            if (result || PyErr_Occurred()) return result;                  \
        }                                                                   \
        return pass_on_to_method(self, slow, args, count, names);           \
    }

/* What is known about a pair of objects that hash as themselves, borrowed; NULL when they have not met, or with an exception. */
PyObject *fh_known(PyObject *pairs, PyObject *first, PyObject *second);
/* Note what was found out about a pair; steals it, which may be NULL. */
PyObject *fh_remembered(PyObject **pairs, PyObject *first, PyObject *second, PyObject *known);

/* Add to the module what the Python layer tells about them (python/operations.c, python/singles.c). */
int fh_add_operations(PyObject *module);
int fh_add_singles(PyObject *module);

#endif
