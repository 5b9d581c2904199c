/* What a library built with -Ofast does when it is loaded, or sets and clears other bits; if asked to, a Python module that
   does so. */
#include <xmmintrin.h>

#ifndef SET
#define SET 0x8040 /* FTZ and DAZ */
#endif
#ifndef CLEAR
#define CLEAR 0
#endif

__attribute__((constructor)) static void flush(void) { _mm_setcsr((_mm_getcsr() & ~(unsigned)CLEAR) | SET); }

#ifdef MODULE
#include <Python.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "flushing", NULL, 0, NULL, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_flushing(void) { return PyModuleDef_Init(&definition); }
#endif
