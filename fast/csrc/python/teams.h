/* The functions for teams whose tasks are Python functions (python/teams.c). */
#ifndef FC_PYTHON_TEAMS_H
#define FC_PYTHON_TEAMS_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Add them to a module; -1 with an exception. */
int fh_add_teams(PyObject *module);

#endif
