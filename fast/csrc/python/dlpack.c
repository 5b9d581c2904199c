/*
 * DLPack capsules, out and in.  A capsule that goes out owns a record with its structure and a pin; its deleter may be called
 * on any thread.  One that comes in is first only read; once consumed, an object calls its deleter at the end.  There are
 * two structures, without and with a version; only the second can say that memory is read-only.
 */
#include "python/handles.h"
#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS = 64 }; /* more than any tensor has */

struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};
struct dl_managed {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
};
struct dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_versioned *);
    uint64_t flags;
    struct dl_tensor tensor;
};

static const char *const plain = "dltensor", *const versioned = "dltensor_versioned";
static const char *const plain_used = "used_dltensor", *const versioned_used = "used_dltensor_versioned";

/* -- out */

struct record {
    union {
        struct dl_managed managed;
        struct dl_versioned versioned;
    } as;
    int64_t shape[FC_MAX_RANK], strides[FC_MAX_RANK];
    PyObject *pin;
};

static void end_record(struct record *record) {
    if (!Py_IsInitialized()) return; /* the process ends, and the memory with it */
    const PyGILState_STATE state = PyGILState_Ensure();
    struct fh_pending pending;
    fh_pending_save(&pending);
    Py_DECREF(record->pin);
    fh_pending_restore(&pending, NULL, 1);
    PyGILState_Release(state);
    free(record);
}
static void end_managed(struct dl_managed *managed) { end_record(managed->context); }
static void end_versioned(struct dl_versioned *managed) { end_record(managed->context); }

/* A capsule that nobody consumed still owns its record. */
static void end_capsule(PyObject *capsule) {
    struct fh_pending pending;
    fh_pending_save(&pending);
    if (PyCapsule_IsValid(capsule, plain)) {
        struct dl_managed *managed = PyCapsule_GetPointer(capsule, plain);
        if (managed->deleter) managed->deleter(managed);
    } else if (PyCapsule_IsValid(capsule, versioned)) {
        struct dl_versioned *managed = PyCapsule_GetPointer(capsule, versioned);
        if (managed->deleter) managed->deleter(managed);
    }
    fh_pending_restore(&pending, NULL, 1);
}

/* dlpack_export(pin, code, bits, shape, strides, flags or -1): a capsule of memory that begins where the pin does
   (TENSOR-DLPACK-1) */
static PyObject *export(PyObject *module, PyObject *args) {
    PyObject *pin, *shape, *strides;
    int code, bits;
    long long flags;
    size_t dims[FC_MAX_RANK], steps[FC_MAX_RANK];
    Py_buffer memory;
    (void)module;
    if (!PyArg_ParseTuple(args, "OiiOOL", &pin, &code, &bits, &shape, &strides, &flags)) return NULL;
    const int bare = PyTuple_Check(shape) && PyTuple_Size(shape) == 0, rank = bare ? 0 : fh_entries(shape, dims);
    if (!bare && (!rank || fh_entries(strides, steps) != rank)) return PyErr_Format(PyExc_ValueError, "a shape and its strides are required");
    if (PyObject_GetBuffer(pin, &memory, PyBUF_SIMPLE)) return NULL;
    void *data = memory.buf;
    PyBuffer_Release(&memory);
    struct record *record = calloc(1, sizeof *record);
    if (!record) return PyErr_NoMemory();
    for (int k = 0; k < rank; k++) {
        record->shape[k] = (int64_t)dims[k];
        record->strides[k] = (int64_t)steps[k];
    }
    const struct dl_tensor tensor = {data, 1, 0, rank, (uint8_t)code, (uint8_t)bits, 1, record->shape, record->strides, 0};
    if (flags < 0)
        record->as.managed = (struct dl_managed){tensor, record, end_managed};
    else
        record->as.versioned = (struct dl_versioned){1, 0, record, end_versioned, (uint64_t)flags, tensor};
    Py_INCREF(record->pin = pin);
    PyObject *capsule = PyCapsule_New(&record->as, flags < 0 ? plain : versioned, end_capsule);
    if (!capsule) {
        Py_DECREF(pin);
        free(record);
    }
    return capsule;
}

/* -- in */

static PyObject *numbers(int rank, const int64_t *values) {
    PyObject *tuple = PyTuple_New(rank);
    for (int k = 0; tuple && k < rank; k++) {
        PyObject *number = PyLong_FromLongLong(values[k]);
        if (!number) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SetItem(tuple, k, number);
    }
    return tuple;
}

static PyObject *none(void) {
    Py_INCREF(Py_None);
    return Py_None;
}

/*
 * dlpack_read(object): what a capsule holds, without consuming it, or None when it is no capsule that can be consumed:
 * (major version, flags, address, device type, (code, bits, lanes), shape or None, strides or None).  Of a later version
 * only the number is known.  (TENSOR-DLPACK-2)
 */
static PyObject *look_into(PyObject *module, PyObject *capsule) {
    const struct dl_tensor *t;
    uint32_t major = 0;
    uint64_t flags = 0;
    (void)module;
    if (!PyCapsule_CheckExact(capsule)) Py_RETURN_NONE;
    if (PyCapsule_IsValid(capsule, plain)) {
        t = &((struct dl_managed *)PyCapsule_GetPointer(capsule, plain))->tensor;
    } else if (PyCapsule_IsValid(capsule, versioned)) {
        const struct dl_versioned *managed = PyCapsule_GetPointer(capsule, versioned);
        major = managed->major;
        if (major > 1) return Py_BuildValue("IKKi(iii)OO", major, 0ULL, 0ULL, 0, 0, 0, 0, Py_None, Py_None);
        flags = managed->flags;
        t = &managed->tensor;
    } else {
        Py_RETURN_NONE;
    }
    const int readable = t->rank >= 0 && t->rank <= DIMENSIONS && (t->shape || !t->rank);
    return Py_BuildValue("IKKi(iii)NN", major, (unsigned long long)flags,
                         (unsigned long long)((uint64_t)(uintptr_t)t->data + t->byte_offset), t->device_type, t->code, t->bits,
                         t->lanes, readable ? numbers(t->rank, t->shape) : none(),
                         readable && t->strides ? numbers(t->rank, t->strides) : none());
}

/* What holds foreign memory. */
typedef struct {
    PyObject_HEAD
    void *managed;
    int is_versioned;
} foreign;
static PyTypeObject *foreign_type;

static void foreign_dealloc(PyObject *object) {
    foreign *self = (foreign *)object;
    PyTypeObject *type = Py_TYPE(object);
    struct fh_pending pending;
    fh_pending_save(&pending);
    if (self->managed && self->is_versioned) {
        struct dl_versioned *managed = self->managed;
        if (managed->deleter) managed->deleter(managed);
    } else if (self->managed) {
        struct dl_managed *managed = self->managed;
        if (managed->deleter) managed->deleter(managed);
    }
    fh_pending_restore(&pending, NULL, 1);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* dlpack_consume(capsule): the object that calls the deleter at its end (TENSOR-DLPACK-2) */
static PyObject *consume(PyObject *module, PyObject *capsule) {
    (void)module;
    if (!PyCapsule_CheckExact(capsule)) return PyErr_Format(PyExc_TypeError, "a capsule is required");
    const int is_versioned = PyCapsule_IsValid(capsule, versioned);
    foreign *self = (foreign *)PyType_GenericAlloc(foreign_type, 0);
    if (!self) return NULL;
    void *managed = PyCapsule_GetPointer(capsule, is_versioned ? versioned : plain);
    if (!managed || PyCapsule_SetName(capsule, is_versioned ? versioned_used : plain_used)) {
        Py_DECREF(self);
        return NULL;
    }
    self->managed = managed;
    self->is_versioned = is_versioned;
    return (PyObject *)self;
}

static PyMethodDef functions[] = {
    {"dlpack_export", export, METH_VARARGS, NULL},
    {"dlpack_read", look_into, METH_O, NULL},
    {"dlpack_consume", consume, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_dealloc, FH_SLOT(foreign_dealloc)}, {0, NULL}};
static PyType_Spec spec = {"fucina.fast._handles.Foreign", sizeof(foreign), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

int fh_add_dlpack(PyObject *module) {
    foreign_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return foreign_type ? PyModule_AddFunctions(module, functions) : -1;
}
