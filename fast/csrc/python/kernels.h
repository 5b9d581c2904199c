/* The entries of _contexts behind the facade (python/kernels.c). */
#ifndef FC_PYTHON_KERNELS_H
#define FC_PYTHON_KERNELS_H
#include "python/handles.h"

/* What the entries take: whether an object begins with an fh_tensor. */
static inline int fh_is_operand(PyObject *object) { return fh_is_handle(object); }
/* Add them to the module. */
int fh_add_kernels(PyObject *module);

#endif
