/* The entries of _contexts behind the facade (python/kernels.c). */
#ifndef FC_PYTHON_KERNELS_H
#define FC_PYTHON_KERNELS_H
#include "python/handles.h"

/* Add them to the module. */
int fh_add_kernels(PyObject *module);

#endif
