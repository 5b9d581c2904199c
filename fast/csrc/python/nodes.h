/* The graph of gradients, for the C files that make its nodes (module fucina.fast._nodes).  Everything runs with the GIL. */
#ifndef FC_PYTHON_NODES_H
#define FC_PYTHON_NODES_H
#include "python/handles.h"

enum { FH_FEW = 4 }; /* saved tensors that need no memory */

/* An operation whose result tracks gradients, or a leaf. */
typedef struct {
    PyObject_HEAD
    PyObject *shape, *operands, *saved, *formula, *constants;
    PyObject *dtype, *gradient; /* of a leaf; the gradient a raw tensor, or NULL */
    unsigned long long serial;  /* nodes are numbered as they are made */
    uint32_t few[FH_FEW], *generations;
    char dead, leaf, foreign;   /* foreign: a walk from here may call what users wrote */
} fh_node;

int fh_is_node(PyObject *object);
/* The gradient of a leaf that has one, borrowed; else NULL, without an exception. */
PyObject *fh_leaf_gradient(PyObject *node);
/* A node, over the raw shape, the tuple of the operands' nodes or None, and the tuple of the saved raw tensors or None; NULL with an
   exception, and then nothing was taken over. */
PyObject *fh_node_new(PyObject *shape, PyObject *operands, PyObject *saved, PyObject *formula, PyObject *constants);
/* A saved raw tensor, or NULL; and how often its storage has been written to. */
static inline fh_tensor *fh_saved_at(PyObject *saved, Py_ssize_t k) {
    PyObject *item = PyTuple_GetItem(saved, k);
    return item == Py_None ? NULL : (fh_tensor *)item;
}
static inline uint32_t fh_generation_of(const fh_tensor *t) { return atomic_load_explicit(&t->storage->generation, memory_order_relaxed); }
/* End a raw tensor of the graph's, whoever else points to the object. */
void fh_finish(PyObject *object);

/* Add the walk back (python/backward.c). */
int fh_add_backward(PyObject *module);

#endif
