/* Buffer objects: handles to a storage, its hook and shadow, and the pins of arrays. */
#include "python/handles.h"
#include "core/fault.h"
#include "storage/memory.h"
#include <stdlib.h>

static PyTypeObject *buffer_base, *pin_type;

/* What Python keeps for a storage. */
struct owner {
    struct fc_owner calls; /* first */
    PyObject *hook;        /* a Release, or NULL */
    PyObject *run, *context; /* of the hook; run is NULL where there is none, context where it is the buffer */
    PyObject *exporter;    /* of borrowed memory */
    PyObject *shadow;      /* a HostShadow */
    PyObject *origin;
};
static struct owner *owner_of(const struct fc_storage *s) { return (struct owner *)s->owner; }

int fh_is_buffer(PyObject *object) { return PyObject_TypeCheck(object, buffer_base); }

PyObject *fh_buffer_of(struct fc_storage *s) {
    PyTypeObject *type = fh_buffer_type(s->dtype);
    fh_buffer *self = type ? (fh_buffer *)PyType_GenericAlloc(type, 0) : NULL;
    if (!self) return NULL;
    fc_storage_hold(s);
    self->storage = s;
    return (PyObject *)self;
}

/* -- the ends of a storage's life */

/* Clauses: STORAGE-SHADOW-1 */
static void drop_shadow(struct fc_storage *s) {
    struct owner *owner = owner_of(s);
    if (!owner || !owner->shadow) return;
    PyObject *shadow = owner->shadow;
    owner->shadow = NULL;
    struct fh_pending pending;
    fh_pending_save(&pending);
    PyObject *destroy = PyObject_GetAttrString(shadow, "destroy"), *data = PyObject_GetAttrString(shadow, "data");
    if (destroy && data && destroy != Py_None) Py_XDECREF(PyObject_CallFunctionObjArgs(destroy, data, NULL));
    Py_XDECREF(destroy);
    Py_XDECREF(data);
    fh_pending_restore(&pending, shadow, 0);
    Py_DECREF(shadow);
}

/* Clauses: STORAGE-HOOK-1, STORAGE-HOOK-2 */
static void run_hook(struct fc_storage *s) {
    struct owner *owner = owner_of(s);
    struct fh_pending pending;
    fh_pending_save(&pending);
    PyObject *buffer = fh_buffer_of(s), *result = NULL;
    if (buffer) {
        PyObject *run = owner->run, *context = owner->context ? owner->context : buffer;
        Py_INCREF(run);
        Py_INCREF(context);
        result = PyObject_CallFunctionObjArgs(run, context, buffer, NULL);
        Py_DECREF(run);
        Py_DECREF(context);
    }
    if (!result && (fc_life_of(s) & FC_RELEASED)) { /* it raised: the storage is not to stay between life and death */
        struct fh_pending raised;
        fh_pending_save(&raised);
        fc_storage_destroy(s);
        fh_pending_restore(&raised, buffer, 0);
    }
    Py_XDECREF(result);
    Py_XDECREF(buffer);
    fh_pending_restore(&pending, NULL, 0);
}

static void forget(struct fc_storage *s) { Py_CLEAR(owner_of(s)->exporter); }

static void end(struct fc_storage *s) {
    struct owner *owner = owner_of(s);
    s->owner = NULL;
    struct fh_pending pending;
    fh_pending_save(&pending);
    Py_XDECREF(owner->hook);
    Py_XDECREF(owner->run);
    Py_XDECREF(owner->context);
    Py_XDECREF(owner->exporter);
    Py_XDECREF(owner->shadow);
    Py_XDECREF(owner->origin);
    free(owner);
    fh_pending_restore(&pending, NULL, 1);
}

static struct owner *owner_made(struct fc_storage *s) {
    if (!s->owner) {
        struct owner *owner = fc_record_take(sizeof *owner);
        if (!owner) return NULL;
        *owner = (struct owner){.calls = {NULL, drop_shadow, forget, end}};
        s->owner = &owner->calls;
    }
    return owner_of(s);
}

int fh_set_origin(struct fc_storage *s, PyObject *origin) {
    struct owner *owner = owner_made(s);
    if (!owner) return 0;
    fh_put(&owner->origin, origin);
    return 1;
}
PyObject *fh_origin(struct fc_storage *s) { return s->owner ? owner_of(s)->origin : NULL; }

void fh_let_go(struct fc_storage *s) { fc_storage_let_go(s); }

void fh_let_go_silently(struct fc_storage *s) {
    if (!s->owner) {
        fh_let_go(s);
        return;
    }
    struct fh_pending pending;
    fh_pending_save(&pending);
    fh_let_go(s);
    fh_pending_restore(&pending, NULL, 1);
}

/* Clauses: STORAGE-GEN-1, STORAGE-SHADOW-1, STORAGE-READ-1 */
int fh_open_for_writing(struct fc_storage *s) {
    if (s->read_only && !FC_PLANTED(READ_ONLY_WRITTEN)) {
        fh_refuse(FH_ReadOnlyStorage, "STORAGE-READ-1", "a storage of %llu bytes is read-only", (unsigned long long)s->bytes);
        return 0;
    }
    if (!FC_PLANTED(GENERATION_STALE)) atomic_fetch_add_explicit(&s->generation, 1, memory_order_relaxed);
    if (s->owner && !FC_PLANTED(SHADOW_KEPT)) {
        fc_storage_hold(s);
        drop_shadow(s);
        fc_storage_drop(s);
        if (PyErr_Occurred()) return 0;
    }
    return 1;
}

/* -- pins */

typedef struct {
    PyObject_HEAD
    struct fc_storage *storage;
    unsigned char *start;
    Py_ssize_t bytes;
    int writable;
} pin;

/* Clauses: STORAGE-PIN-1 */
PyObject *fh_pin(struct fc_storage *s, size_t offset, size_t bytes, int writable) {
    pin *self = (pin *)PyType_GenericAlloc(pin_type, 0);
    if (!self) return NULL;
    if (!fc_storage_pin(s)) {
        Py_DECREF(self);
        return fh_refuse(FH_UseAfterDeinit, "STORAGE-DEAD-1", "a storage of %llu bytes was used after its memory was given back",
                         (unsigned long long)s->bytes);
    }
    self->storage = s;
    self->start = s->data + offset;
    self->bytes = (Py_ssize_t)bytes;
    self->writable = writable;
    return (PyObject *)self;
}

static void pin_dealloc(PyObject *object) {
    pin *self = (pin *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->storage) {
        struct fh_pending pending;
        fh_pending_save(&pending);
        fc_storage_unpin(self->storage);
        fh_pending_restore(&pending, NULL, 1);
    }
    PyObject_Free(object);
    Py_DECREF(type);
}

static int pin_export(PyObject *object, Py_buffer *view, int flags) {
    static unsigned char nothing;
    pin *self = (pin *)object;
    return PyBuffer_FillInfo(view, object, self->start ? self->start : &nothing, self->bytes, !self->writable, flags);
}

static PyType_Slot pin_slots[] = {{Py_tp_dealloc, FH_SLOT(pin_dealloc)}, {Py_bf_getbuffer, FH_SLOT(pin_export)}, {0, NULL}};
static PyType_Spec pin_spec = {"fucina.fast._handles.Pin", sizeof(pin), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               pin_slots};

/* -- buffers */

static struct fc_storage *storage_of(PyObject *self) { return ((fh_buffer *)self)->storage; }

static PyObject *dead(PyObject *self, const char *clause) {
    return fh_refuse(FH_UseAfterDeinit, clause, "%R was used after its last reference was given back", self);
}
#define REQUIRE_LIVE(self, clause) \
    if (!fc_is_live(storage_of(self))) return dead(self, clause)

static PyObject *array_of(struct fc_storage *s, int writable) {
    PyObject *memory = fh_pin(s, 0, fh_capacity(s) * fh_element_size[s->dtype], writable);
    if (!memory) return NULL;
    PyObject *length = PyLong_FromSize_t(fh_capacity(s)), *array = NULL;
    if (length) array = PyObject_CallFunctionObjArgs(fh_ndarray, length, fh_element[s->dtype], memory, NULL);
    Py_XDECREF(length);
    Py_DECREF(memory);
    return array;
}

/* Clauses: STORAGE-DATA-1, STORAGE-PIN-1 */
static PyObject *get_data(PyObject *self, void *unused) {
    (void)unused;
    if (!fc_has_memory(storage_of(self))) return dead(self, "STORAGE-DEAD-1");
    return array_of(storage_of(self), FC_PLANTED(DATA_WRITABLE));
}

/* Clauses: STORAGE-DATA-1, STORAGE-GEN-1, STORAGE-READ-1, STORAGE-PIN-1 */
static PyObject *wait_mutable(PyObject *self, PyObject *unused) {
    (void)unused;
    REQUIRE_LIVE(self, "STORAGE-DEAD-1");
    return fh_open_for_writing(storage_of(self)) ? array_of(storage_of(self), 1) : NULL;
}

/* Clause: STORAGE-GEN-1: a mutable access that hands nothing out */
static PyObject *open_for_writing(PyObject *self, PyObject *unused) {
    (void)unused;
    REQUIRE_LIVE(self, "STORAGE-DEAD-1");
    if (!fh_open_for_writing(storage_of(self))) return NULL;
    Py_RETURN_NONE;
}

/* _pinned(writable): all bytes, with a pin */
static PyObject *pinned(PyObject *self, PyObject *writable) {
    return fh_pin(storage_of(self), 0, storage_of(self)->bytes, PyObject_IsTrue(writable) == 1);
}

/* Clause: STORAGE-DATA-1 */
static PyObject *get_capacity(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromSize_t(fh_capacity(storage_of(self)));
}
static PyObject *get_address(PyObject *self, void *unused) {
    (void)unused;
    if (!fc_has_memory(storage_of(self))) return dead(self, "STORAGE-DEAD-1");
    return PyLong_FromVoidPtr(storage_of(self)->data);
}

/* Clauses: STORAGE-REF-1, STORAGE-PIN-1 */
static PyObject *get_refs(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(fc_refs_of(fc_life_of(storage_of(self))));
}
static PyObject *is_unique(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyBool_FromLong(fc_refs_of(fc_life_of(storage_of(self))) == 1);
}
static PyObject *get_generation(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(atomic_load(&storage_of(self)->generation));
}
static PyObject *get_read_only(PyObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(storage_of(self)->read_only);
}

/* _state: what repr shows: (kind, live 0, released 1 or destroyed 2) */
static PyObject *get_state(PyObject *self, void *unused) {
    (void)unused;
    const uint64_t life = fc_life_of(storage_of(self));
    return Py_BuildValue("ii", storage_of(self)->kind, life & FC_DESTROYED ? 2 : life & FC_RELEASED ? 1 : 0);
}

/* Clauses: STORAGE-REF-1, STORAGE-DEAD-1 */
static PyObject *retain(PyObject *self, PyObject *unused) {
    (void)unused;
    REQUIRE_LIVE(self, "STORAGE-REF-1");
    if (!fc_storage_retain(storage_of(self)))
        return fh_refuse(FH_Overflow, "STORAGE-REF-1", "a storage has fewer than 2^30 references, got one more of %R", self);
    Py_RETURN_NONE;
}

static PyObject *none_unless_raised(void) {
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* Clauses: STORAGE-REF-1, STORAGE-HOOK-1 */
static PyObject *release(PyObject *self, PyObject *unused) {
    (void)unused;
    if (!fc_storage_release(storage_of(self)))
        return fh_refuse(FH_OverRelease, "STORAGE-REF-1", "%R has no reference to give back (arrays hold %llu)", self,
                         (unsigned long long)fc_pins_of(fc_life_of(storage_of(self))));
    return none_unless_raised();
}

/* Clause: STORAGE-REF-2 */
static PyObject *reset_refs(PyObject *self, PyObject *unused) {
    (void)unused;
    switch (fc_storage_reset(storage_of(self))) {
    case FC_RESET_DESTROYED: return dead(self, "STORAGE-REF-2");
    case FC_RESET_HELD:
        return fh_refuse(FH_OverRelease, "STORAGE-REF-2", "%llu references are held, so none may be forgotten",
                         (unsigned long long)fc_refs_of(fc_life_of(storage_of(self))));
    default: Py_RETURN_NONE;
    }
}

/* Clauses: STORAGE-DESTROY-1, STORAGE-HOOK-2 */
static PyObject *destroy(PyObject *self, PyObject *unused) {
    (void)unused;
    if (!fc_storage_destroy(storage_of(self))) return dead(self, "STORAGE-DESTROY-1");
    return none_unless_raised();
}

/* Clause: STORAGE-HOOK-1 */
static PyObject *get_hook(PyObject *self, void *unused) {
    (void)unused;
    struct owner *owner = owner_of(storage_of(self));
    PyObject *hook = owner && owner->hook ? owner->hook : fh_no_hook;
    Py_INCREF(hook);
    return hook;
}

/* Clause: STORAGE-SHADOW-1 */
static PyObject *get_shadow(PyObject *self, void *unused) {
    (void)unused;
    struct owner *owner = owner_of(storage_of(self));
    PyObject *shadow = owner && owner->shadow ? owner->shadow : Py_None;
    Py_INCREF(shadow);
    return shadow;
}

/* Clause: STORAGE-SHADOW-1 */
static PyObject *set_shadow(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *shadow = fh_only(args, count, names, "shadow");
    if (!shadow) return NULL;
    REQUIRE_LIVE(self, "STORAGE-SHADOW-1");
    if (shadow != Py_None && (PyObject *)Py_TYPE(shadow) != fh_shadow_type)
        return fh_refuse_type(FH_DTypeMismatch, "STORAGE-SHADOW-1", "a HostShadow or None is required, got an object of type %U",
                              Py_TYPE(shadow));
    struct fc_storage *s = storage_of(self);
    struct owner *owner = shadow == Py_None ? owner_of(s) : owner_made(s);
    if (!owner) {
        if (shadow == Py_None) Py_RETURN_NONE;
        return fh_refuse(FH_OutOfMemory, "STORAGE-SHADOW-1", "no memory for what keeps the shadow of %R", self);
    }
    if (owner->shadow == shadow) Py_RETURN_NONE;
    drop_shadow(s);
    if (PyErr_Occurred()) return NULL;
    if (shadow != Py_None) {
        fh_put(&owner->shadow, shadow); /* a destructor may have set another one meanwhile */
    }
    Py_RETURN_NONE;
}

/* Clause: STORAGE-NULL-1 */
static PyObject *no_work(PyObject *self, PyObject *unused) {
    (void)unused;
    REQUIRE_LIVE(self, "STORAGE-NULL-1");
    Py_RETURN_NONE;
}
static PyObject *set_pending_use(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (!fh_only(args, count, names, "work")) return NULL;
    REQUIRE_LIVE(self, "STORAGE-NULL-1");
    Py_RETURN_NONE;
}
static PyObject *has_pending(PyObject *self, PyObject *unused) {
    (void)unused;
    REQUIRE_LIVE(self, "STORAGE-NULL-1");
    Py_RETURN_FALSE;
}
static PyObject *get_resource(PyObject *self, void *unused) {
    (void)self, (void)unused;
    Py_RETURN_NONE;
}

static PyObject *compare(PyObject *a, PyObject *b, int operation) {
    if ((operation != Py_EQ && operation != Py_NE) || !fh_is_buffer(b)) Py_RETURN_NOTIMPLEMENTED;
    return PyBool_FromLong((storage_of(a) == storage_of(b)) == (operation == Py_EQ));
}
static Py_hash_t hash(PyObject *self) {
    const Py_hash_t found = (Py_hash_t)((uintptr_t)storage_of(self) >> 4);
    return found == -1 ? -2 : found;
}

static void buffer_dealloc(PyObject *object) {
    fh_buffer *self = (fh_buffer *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (self->weak) PyObject_ClearWeakRefs(object);
    if (self->storage) {
        struct fh_pending pending;
        fh_pending_save(&pending);
        fc_storage_drop(self->storage);
        fh_pending_restore(&pending, NULL, 1);
    }
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)args, (void)keywords;
    return fh_refuse_type(FH_DTypeMismatch, "STORAGE-TYPE-1", "%U is made by its constructors, such as create(length)", type);
}

/* Keep a hook; the exporter is kept too, or NULL.  0 without memory. */
static int keep(struct fc_storage *s, PyObject *hook, PyObject *exporter) {
    PyObject *run = PyObject_GetAttrString(hook, "run"), *context = PyObject_GetAttrString(hook, "ctx");
    struct owner *owner = run && context ? (run != Py_None || exporter ? owner_made(s) : NULL) : NULL;
    const int wanted = run != Py_None || exporter != NULL;
    if (owner) {
        Py_INCREF(owner->hook = hook);
        Py_XINCREF(owner->exporter = exporter);
        if (run != Py_None) {
            owner->calls.finish = run_hook;
            Py_INCREF(owner->run = run);
            if (context != Py_None) Py_INCREF(owner->context = context);
        }
    }
    Py_XDECREF(run);
    Py_XDECREF(context);
    return owner || !wanted;
}

/* _new(dtype index, hook, read only, address, bytes, exporter): a storage, owned where the exporter is None */
static PyObject *new_storage(PyObject *module, PyObject *args) {
    int dtype, read_only;
    PyObject *hook, *exporter;
    unsigned long long address, bytes;
    (void)module;
    if (!PyArg_ParseTuple(args, "iOpKKO", &dtype, &hook, &read_only, &address, &bytes, &exporter)) return NULL;
    if (dtype < 0 || dtype >= FC_DTYPES) return PyErr_Format(PyExc_ValueError, "no dtype has index %d", dtype);
    const int owned = exporter == Py_None;
    void *data = owned ? fc_memory_take((size_t)bytes) : (void *)(uintptr_t)address;
    struct fc_storage *s = NULL;
    if (data || !owned) s = fc_storage_new(dtype, owned ? FC_STORAGE_OWNED : FC_STORAGE_BORROWED, data, (size_t)bytes, read_only);
    if (s && !keep(s, hook, owned ? NULL : exporter)) {
        fc_storage_destroy(s);
        fc_storage_drop(s);
        s = NULL;
        data = NULL;
    }
    if (!s) {
        if (owned) fc_memory_give(data);
        if (PyErr_Occurred()) return NULL;
        return fh_refuse(FH_OutOfMemory, "STORAGE-CREATE-1", "no memory for a storage of %llu bytes", bytes);
    }
    PyObject *buffer = fh_buffer_of(s);
    if (!buffer) fc_storage_destroy(s);
    fc_storage_drop(s);
    return buffer;
}

static PyObject *make_leaf(PyObject *module, PyObject *args) {
    PyObject *base, *name;
    (void)module;
    if (!PyArg_ParseTuple(args, "OU", &base, &name)) return NULL;
    return fh_leaf(base, name, buffer_dealloc);
}

static PyMethodDef methods[] = {
    {"retain", retain, METH_NOARGS, "retain($self)\n--\n\nTake one more reference.\n\nClauses: STORAGE-REF-1"},
    {"release", release, METH_NOARGS, "release($self)\n--\n\nGive one reference back; the last one runs the hook.\n\nClauses: STORAGE-REF-1, STORAGE-HOOK-1, STORAGE-THREAD-1"},
    {"is_unique", is_unique, METH_NOARGS, "is_unique($self)\n--\n\nReturn whether there is exactly one reference.\n\nClauses: STORAGE-REF-1"},
    {"reset_refs", reset_refs, METH_NOARGS, "reset_refs($self)\n--\n\nMake one reference of what there is.\n\nClauses: STORAGE-REF-2"},
    {"destroy", destroy, METH_NOARGS, "destroy($self)\n--\n\nGive the memory and the header back, whoever holds references.\n\nClauses: STORAGE-DESTROY-1"},
    {"destroy_header", destroy, METH_NOARGS, "destroy_header($self)\n--\n\nGive the header back, and with it the hold on the memory.\n\nClauses: STORAGE-DESTROY-1, STORAGE-HOOK-2"},
    {"wait_mutable", wait_mutable, METH_NOARGS, "wait_mutable($self)\n--\n\nOpen the storage for writing; return all elements.\n\nClauses: STORAGE-DATA-1, STORAGE-GEN-1"},
    {"set_host_shadow", FH_FAST(set_shadow), METH_FASTCALL | METH_KEYWORDS, "set_host_shadow($self, shadow)\n--\n\nKeep something derived from the bytes; what was kept before is dropped.\n\nClauses: STORAGE-SHADOW-1"},
    {"wait_ready", no_work, METH_NOARGS, "wait_ready($self)\n--\n\nWait for work that writes here: there is none.\n\nClauses: STORAGE-NULL-1"},
    {"wait_unused", no_work, METH_NOARGS, "wait_unused($self)\n--\n\nWait for work that reads here: there is none.\n\nClauses: STORAGE-NULL-1"},
    {"discard_pending", no_work, METH_NOARGS, "discard_pending($self)\n--\n\nGive up what pending work would write here.\n\nClauses: STORAGE-NULL-1"},
    {"has_pending", has_pending, METH_NOARGS, "has_pending($self)\n--\n\nReturn whether work is pending: never.\n\nClauses: STORAGE-NULL-1"},
    {"acquire_pending", no_work, METH_NOARGS, "acquire_pending($self)\n--\n\nReturn the pending work: None.\n\nClauses: STORAGE-NULL-1"},
    {"set_pending_use", FH_FAST(set_pending_use), METH_FASTCALL | METH_KEYWORDS, "set_pending_use($self, work)\n--\n\nNote work that reads here; there is none.\n\nClauses: STORAGE-NULL-1"},
    {"_open", open_for_writing, METH_NOARGS, NULL},
    {"_pinned", pinned, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef getters[] = {
    {"data", get_data, NULL, "All elements in storage form, to be read.", NULL},
    {"capacity", get_capacity, NULL, "The number of elements.", NULL},
    {"address", get_address, NULL, "The address of the first byte.", NULL},
    {"refs", get_refs, NULL, "The number of references, those of arrays included.", NULL},
    {"generation", get_generation, NULL, "How often the storage was opened for writing, modulo 2^32.", NULL},
    {"release_hook", get_hook, NULL, "What runs when the last reference is gone.", NULL},
    {"read_only", get_read_only, NULL, "Whether it can never be written.", NULL},
    {"host_shadow", get_shadow, NULL, "What was derived from the bytes, if anything.", NULL},
    {"accelerator_resource", get_resource, NULL, "What an accelerator keeps about the memory: nothing.", NULL},
    {"_state", get_state, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(fh_buffer, weak), READONLY, NULL}, {NULL, 0, 0, 0, NULL}};
static PyType_Slot slots[] = {
    {Py_tp_new, FH_SLOT(buffer_new)},   {Py_tp_dealloc, FH_SLOT(buffer_dealloc)}, {Py_tp_methods, methods}, {Py_tp_getset, getters},
    {Py_tp_members, members}, {Py_tp_richcompare, FH_SLOT(compare)},    {Py_tp_hash, FH_SLOT(hash)},       {0, NULL},
};
static PyType_Spec spec = {"fucina.fast._handles.Storage", sizeof(fh_buffer), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
static PyMethodDef functions[] = {
    {"new_storage", new_storage, METH_VARARGS, NULL},
    {"buffer_leaf", make_leaf, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int fh_add_buffers(PyObject *module) {
    buffer_base = (PyTypeObject *)PyType_FromSpec(&spec);
    pin_type = (PyTypeObject *)PyType_FromSpec(&pin_spec);
    if (!buffer_base || !pin_type || PyModule_AddFunctions(module, functions)) return -1;
    return PyModule_AddObjectRef(module, "Storage", (PyObject *)buffer_base);
}
