/*
 * fucina.fast._nodes: the graph of gradients (chapter autograd).  The formulas are in the Python layer, the walk back is in
 * backward.c.  Lives in the same shared object as _handles.  Everything here runs with the GIL.
 */
#include "python/nodes.h"

static fh_node *of(PyObject *object) { return (fh_node *)object; }

static PyTypeObject *node_type, *leaf_type;
static unsigned long long serials;
static PyObject *nothing; /* the empty tuple */
static PyObject *foreign; /* the formula that calls what users wrote, or NULL */

int fh_is_node(PyObject *object) { return Py_TYPE(object) == node_type || Py_TYPE(object) == leaf_type; }

void fh_finish(PyObject *object) {
    fh_tensor *t = (fh_tensor *)object;
    if (t->life != FH_OWNED || !t->storage || t->lender) return;
    struct fc_storage *s = t->storage;
    t->life = FH_ENDED;
    t->storage = NULL;
    fh_let_go_silently(s);
}

PyObject *fh_leaf_gradient(PyObject *node) { return Py_TYPE(node) == leaf_type ? of(node)->gradient : NULL; }

/* Clauses: AUTOGRAD-TRACK-1, AUTOGRAD-SAVED-1 */
PyObject *fh_node_new(PyObject *shape, PyObject *operands, PyObject *saved, PyObject *formula, PyObject *constants) {
    const Py_ssize_t count = PyTuple_Size(saved);
    uint32_t *generations = NULL;
    if (PyErr_Occurred()) return NULL;
    if (count > FH_FEW && !(generations = PyMem_Malloc((size_t)count * sizeof *generations))) return PyErr_NoMemory();
    fh_node *self = of(PyType_GenericAlloc(node_type, 0));
    if (!self) {
        PyMem_Free(generations);
        return NULL;
    }
    self->generations = generations ? generations : self->few;
    for (Py_ssize_t k = 0; k < count; k++) {
        fh_tensor *t = fh_saved_at(saved, k);
        self->generations[k] = t && t->storage ? fh_generation_of(t) : 0;
        if (t && t->origin) fh_put(&t->origin, NULL); /* nobody else has to end it */
    }
    Py_INCREF(self->shape = shape);
    Py_INCREF(self->operands = operands);
    Py_INCREF(self->saved = saved);
    Py_INCREF(self->formula = formula);
    Py_INCREF(self->constants = constants);
    self->serial = serials++;
    self->foreign = formula == foreign;
    for (Py_ssize_t k = PyTuple_Size(operands); k--;)
        if (fh_is_node(PyTuple_GetItem(operands, k)) && of(PyTuple_GetItem(operands, k))->foreign) self->foreign = 1;
    return (PyObject *)self;
}

static PyObject *new_node(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *shape, *operands, *saved, *formula, *constants = nothing;
    (void)type, (void)keywords;
    if (!PyArg_ParseTuple(args, "O!O!O!O|O!", &PyTuple_Type, &shape, &PyTuple_Type, &operands, &PyTuple_Type, &saved, &formula, &PyTuple_Type, &constants))
        return NULL;
    for (Py_ssize_t k = PyTuple_Size(operands); k--;)
        if (PyTuple_GetItem(operands, k) != Py_None && !fh_is_node(PyTuple_GetItem(operands, k)))
            return PyErr_Format(PyExc_TypeError, "operands are nodes or None");
    for (Py_ssize_t k = PyTuple_Size(saved); k--;)
        if (PyTuple_GetItem(saved, k) != Py_None && !fh_is_tensor(PyTuple_GetItem(saved, k)))
            return PyErr_Format(PyExc_TypeError, "saved values are raw tensors or None");
    return fh_node_new(shape, operands, saved, formula, constants);
}

/* Clause: AUTOGRAD-LEAF-1 */
static PyObject *new_leaf(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    PyObject *shape, *dtype;
    (void)keywords;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &shape, &dtype)) return NULL;
    fh_node *self = of(PyType_GenericAlloc(type, 0));
    if (!self) return NULL;
    Py_INCREF(self->shape = shape);
    Py_INCREF(self->dtype = dtype);
    Py_INCREF(self->operands = nothing);
    Py_INCREF(self->saved = nothing);
    self->generations = self->few;
    self->leaf = 1;
    self->serial = serials++;
    return (PyObject *)self;
}

static int node_traverse(PyObject *object, visitproc visit, void *arg) {
    const fh_node *self = of(object);
    Py_VISIT((PyObject *)Py_TYPE(object));
    Py_VISIT(self->operands);
    Py_VISIT(self->saved);
    Py_VISIT(self->formula);
    Py_VISIT(self->constants);
    Py_VISIT(self->gradient);
    return 0;
}
static int node_clear(PyObject *object) {
    fh_node *self = of(object);
    self->dead = 1;
    fh_put(&self->operands, nothing);
    fh_put(&self->saved, nothing);
    Py_CLEAR(self->formula);
    Py_CLEAR(self->constants);
    Py_CLEAR(self->gradient);
    return 0;
}
static void node_dealloc(PyObject *object) { /* however long the chain: the tuples of operands keep the recursion short */
    fh_node *self = of(object);
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_XDECREF(self->shape);
    Py_XDECREF(self->operands);
    Py_XDECREF(self->saved);
    Py_XDECREF(self->formula);
    Py_XDECREF(self->constants);
    Py_XDECREF(self->dtype);
    Py_XDECREF(self->gradient);
    if (self->generations != self->few) PyMem_Free(self->generations);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* Clauses: AUTOGRAD-GRAD-1 */
static PyObject *zero(PyObject *object, PyObject *unused) {
    PyObject *gradient = of(object)->gradient;
    (void)unused;
    of(object)->gradient = NULL;
    if (gradient) fh_finish(gradient);
    Py_XDECREF(gradient);
    Py_RETURN_NONE;
}

/* Clause: AUTOGRAD-LIFE-1 */
static PyObject *destroy(PyObject *object, PyObject *unused) {
    fh_node *self = of(object);
    PyObject *saved = self->saved;
    Py_INCREF(saved);
    Py_XDECREF(zero(object, unused));
    node_clear(object);
    for (Py_ssize_t k = PyTuple_Size(saved); k--;)
        if (fh_saved_at(saved, k)) fh_finish((PyObject *)fh_saved_at(saved, k));
    Py_DECREF(saved);
    Py_RETURN_NONE;
}

static PyObject *get_generations(PyObject *object, void *unused) {
    const fh_node *self = of(object);
    (void)unused;
    const Py_ssize_t count = PyTuple_Size(self->saved);
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t k = 0; tuple && k < count; k++) {
        PyObject *entry = PyLong_FromUnsignedLong(self->generations[k]);
        if (!entry) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SetItem(tuple, k, entry);
    }
    return tuple;
}

/* calls_users(formula): the one that calls what users wrote */
static PyObject *calls_users(PyObject *module, PyObject *formula) {
    (void)module;
    fh_put(&foreign, formula);
    Py_RETURN_NONE;
}

#define FIELD(name, what) {#name, T_OBJECT, offsetof(fh_node, name), READONLY, what}
static PyMemberDef members[] = {
    FIELD(shape, "The raw shape of the result."),
    FIELD(operands, "The nodes of the operands, None for one that does not track."),
    FIELD(saved, "The values that the formula needs."),
    FIELD(formula, "What gives the operands their gradients."),
    FIELD(constants, "What else the formula wants."),
    {"serial", T_ULONGLONG, offsetof(fh_node, serial), READONLY, "Its place in the order of creation."},
    {"dead", T_BOOL, offsetof(fh_node, dead), READONLY, "Whether it was destroyed."},
    {NULL, 0, 0, 0, NULL},
};
static PyMemberDef leaf_members[] = {
    FIELD(dtype, "The dtype of the leaf; the gradient is f32 in any case."),
    FIELD(gradient, "The gradient, a raw tensor, or None."),
    {NULL, 0, 0, 0, NULL},
};
static PyGetSetDef getters[] = {
    {"generations", get_generations, NULL, "The generations of the saved values' storages.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef methods[] = {
    {"destroy", destroy, METH_NOARGS, "destroy($self)\n--\n\nLet go of everything; backward cannot go through the node any more.\n\nClauses: AUTOGRAD-LIFE-1"},
    {NULL, NULL, 0, NULL},
};
static PyMethodDef leaf_methods[] = {
    {"zero", zero, METH_NOARGS, "zero($self)\n--\n\nDrop the gradient.\n\nClauses: AUTOGRAD-GRAD-1"},
    {NULL, NULL, 0, NULL},
};
#define NODE_DOC "Node(shape, operands, saved, formula, constants=(), /)\n--\n\nAn operation whose result tracks gradients.\n\nClauses: AUTOGRAD-TRACK-1, AUTOGRAD-SAVED-1"
#define LEAF_DOC "Leaf(shape, dtype, /)\n--\n\nA tensor for which gradients are asked.\n\nClauses: AUTOGRAD-LEAF-1"
static PyType_Slot slots[] = {
    {Py_tp_new, FH_SLOT(new_node)}, {Py_tp_dealloc, FH_SLOT(node_dealloc)}, {Py_tp_traverse, FH_SLOT(node_traverse)}, {Py_tp_clear, FH_SLOT(node_clear)},
    {Py_tp_methods, methods}, {Py_tp_members, members}, {Py_tp_getset, getters}, {Py_tp_doc, NODE_DOC}, {0, NULL},
};
static PyType_Slot leaf_slots[] = {
    {Py_tp_new, FH_SLOT(new_leaf)}, {Py_tp_dealloc, FH_SLOT(node_dealloc)}, {Py_tp_traverse, FH_SLOT(node_traverse)}, {Py_tp_clear, FH_SLOT(node_clear)},
    {Py_tp_methods, leaf_methods}, {Py_tp_members, leaf_members}, {Py_tp_doc, LEAF_DOC}, {0, NULL},
};
static PyType_Spec spec = {"fucina.fast._nodes.Node", sizeof(fh_node), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
static PyType_Spec leaf_spec = {"fucina.fast._nodes.Leaf", sizeof(fh_node), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, leaf_slots};
static PyMethodDef functions[] = {{"calls_users", calls_users, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_nodes", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__nodes(void);
PyMODINIT_FUNC PyInit__nodes(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    node_type = (PyTypeObject *)PyType_FromSpec(&spec);
    PyObject *bases = node_type ? PyTuple_Pack(1, (PyObject *)node_type) : NULL;
    leaf_type = bases ? (PyTypeObject *)PyType_FromSpecWithBases(&leaf_spec, bases) : NULL;
    Py_XDECREF(bases);
    nothing = PyTuple_New(0);
    if (!leaf_type || !nothing || fh_add_backward(module) ||
        PyModule_AddObjectRef(module, "Node", (PyObject *)node_type) || PyModule_AddObjectRef(module, "Leaf", (PyObject *)leaf_type))
        Py_CLEAR(module);
    return module;
}
