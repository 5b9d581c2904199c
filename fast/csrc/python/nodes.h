/* The graph of gradients, for the C files that make its nodes (module fucina.fast._nodes).  Everything runs with the GIL. */
#ifndef FC_PYTHON_NODES_H
#define FC_PYTHON_NODES_H
#include "python/handles.h"

int fh_is_node(PyObject *object);
/* The gradient of a leaf that has one, borrowed; else NULL, without an exception. */
PyObject *fh_leaf_gradient(PyObject *node);
/* A node, over the raw shape, the tuple of the operands' nodes or None, and the tuple of the saved raw tensors or None; NULL with an
   exception, and then nothing was taken over. */
PyObject *fh_node_new(PyObject *shape, PyObject *operands, PyObject *saved, PyObject *formula, PyObject *constants);

#endif
