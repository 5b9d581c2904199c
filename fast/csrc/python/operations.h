/* Operations of the facade's tensors in C (python/operations.c): METH_FASTCALL | METH_KEYWORDS.  Everything here runs with the GIL. */
#ifndef FC_PYTHON_OPERATIONS_H
#define FC_PYTHON_OPERATIONS_H
#include "python/handles.h"

#define FH_OPERATION(name) PyObject *fh_op_##name(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
FH_OPERATION(add);
FH_OPERATION(sub);
FH_OPERATION(mul);
FH_OPERATION(div);
FH_OPERATION(scale);
FH_OPERATION(sum_all);
FH_OPERATION(dot);
FH_OPERATION(grad);

/* Add to the module what the Python layer tells about them. */
int fh_add_operations(PyObject *module);

#endif
