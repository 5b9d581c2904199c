/*
 * Block formats by the short way into the core: blocks as an array of the very struct of the format, or as bytes; no option
 * but `out`; indices of rows as an array of i64, or a list or tuple of ints.  The Python layer takes everything else, what is
 * empty, and many values to encode.
 */
#include "python/block_calls.h"
#include "core/fault.h"
#include "fucina.h"
#include "python/plain.h"
#include <stdlib.h>
#include <string.h>

enum {
    FORMATS = FC_DTYPES - FC_SCALAR_DTYPES,
    RELEASE_DECODING = 2048, /* values from which on the GIL is released around a kernel */
    RELEASE_ENCODING = 256,
    MOST_ENCODED = 1 << 20 /* values: beyond, Python costs nothing beside the kernel, which would run twice for an error's words */
};

static struct {
    PyObject *member, *form; /* the DType and the numpy dtype of the struct */
    size_t elements, bytes;  /* of a block */
    int may_reject;          /* the encoder has no answer for some blocks of finite numbers */
} formats[FORMATS];
static PyObject *name_out, *name_dtype;

PyObject *block_calls_configure(PyObject *module, PyObject *args) {
    PyObject *members, *forms, *may_reject;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!O!O!", &PyTuple_Type, &members, &PyTuple_Type, &forms, &PyTuple_Type, &may_reject)) return NULL;
    if (PyTuple_Size(members) != FORMATS || PyTuple_Size(forms) != FORMATS || PyTuple_Size(may_reject) != FORMATS) {
        PyErr_SetString(PyExc_ValueError, "27 block dtypes are expected");
        return NULL;
    }
    if (!(name_out = PyUnicode_InternFromString("out")) || !(name_dtype = PyUnicode_InternFromString("dtype"))) return NULL;
    for (int k = 0; k < FORMATS; k++) {
        struct fc_dtype_info info;
        fc_dtype_info(FC_SCALAR_DTYPES + k, &info);
        formats[k].elements = (size_t)info.block_size;
        formats[k].bytes = (size_t)info.byte_size;
        formats[k].may_reject = PyTuple_GetItem(may_reject, k) == Py_True;
        Py_INCREF(formats[k].form = PyTuple_GetItem(forms, k));
        Py_INCREF(formats[k].member = PyTuple_GetItem(members, k));
    }
    Py_RETURN_NONE;
}

static int format_of(PyObject *dtype) {
    int k = 0;
    while (k < FORMATS && formats[k].member != dtype) k++;
    return k;
}

/* `out` if it is the only keyword, or there is none; else 0. */
static int take_out(PyObject *const *values, PyObject *kwnames, PyObject **out) {
    *out = NULL;
    if (!kwnames || PyTuple_Size(kwnames) == 0) return 1;
    if (PyTuple_Size(kwnames) != 1 || PyTuple_GetItem(kwnames, 0) != name_out) return 0;
    if (*values != Py_None) *out = *values;
    return *out == NULL || plain_is_array(*out);
}

/* The array for the result, with a reference of ours: what was given, or a new one; NULL if there is none to be had. */
static PyObject *given_or_new(PyObject *out, const Py_ssize_t *lengths, int dims, Py_ssize_t last, PyObject *numpy_dtype) {
    if (!out) return plain_new(lengths, dims, last, numpy_dtype);
    Py_INCREF(out);
    return out;
}

/* Whether an array's dtype is this very object; one that is equal takes the long way. */
static int is_of(PyObject *array, PyObject *form) {
    PyObject *held = PyObject_GetAttr(array, name_dtype);
    Py_XDECREF(held); /* the array keeps it */
    if (!held) PyErr_Clear();
    return held == form;
}

/* Take blocks; 0 if they are not plain, none, or no whole number along the last axis, of which `columns` is how many. */
static int take_blocks(PyObject *object, int k, Py_buffer *buffer, Py_ssize_t *columns) {
    const Py_ssize_t size = (Py_ssize_t)formats[k].bytes;
    const int is_struct = plain_is_array(object) && is_of(object, formats[k].form);
    const int taken = is_struct || PyBytes_CheckExact(object) ? plain_take_any(object, 0, buffer) : plain_take(object, FC_u8, 0, buffer);
    if (!taken) return 0;
    if (buffer->ndim > 0 && buffer->len > 0) {
        const Py_ssize_t last = buffer->shape[buffer->ndim - 1];
        *columns = is_struct ? last : last / size;
        if (is_struct ? buffer->itemsize == size : last % size == 0) return 1;
    }
    PyBuffer_Release(buffer);
    return 0;
}

/* Take an array that blocks may be written to: bytes or structs, of any shape and exactly that size. */
static int take_target(PyObject *array, int k, size_t n, Py_buffer *buffer) {
    if (!is_of(array, formats[k].form) && !is_of(array, plain_storages[FC_u8])) return 0;
    if (!plain_take_any(array, 0, buffer)) return 0;
    if ((!buffer->readonly || FC_PLANTED(ENTRY_BLOCKS_READ_ONLY)) && (size_t)buffer->len == n * formats[k].bytes) return 1;
    PyBuffer_Release(buffer);
    return 0;
}

static int apart(const Py_buffer *source, const Py_buffer *target) {
    return plain_apart(source, target) || FC_PLANTED(ENTRY_BLOCKS_OVERLAP);
}

/* What a call returns: its result, or NULL if it was not done, and our reference goes. */
static PyObject *ended(int done, PyObject *result) {
    if (done) return result;
    Py_XDECREF(result);
    return NULL;
}

PyObject *plain_dequantize(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *out;
    Py_buffer blocks, target;
    Py_ssize_t columns;
    int done = 0;
    if (nargs != 2 || !take_out(args + 2, kwnames, &out)) return NULL;
    const int k = format_of(args[0]);
    if (k == FORMATS || !take_blocks(args[1], k, &blocks, &columns)) return NULL;
    const size_t n = (size_t)blocks.len / formats[k].bytes, values = n * formats[k].elements;
    out = given_or_new(out, blocks.shape, blocks.ndim - 1, columns * (Py_ssize_t)formats[k].elements, plain_storages[FC_f32]);
    if (out && plain_take(out, FC_f32, 1, &target)) {
        if (apart(&blocks, &target) && (size_t)target.len == values * sizeof(float)) {
            PyThreadState *state = values >= RELEASE_DECODING ? PyEval_SaveThread() : NULL;
            done = fc_dequantize(FC_SCALAR_DTYPES + k, blocks.buf, target.buf, n) == FC_OK;
            if (state) PyEval_RestoreThread(state);
        }
        PyBuffer_Release(&target);
    }
    PyBuffer_Release(&blocks);
    return ended(done, out);
}

/*
 * Encode into memory that somebody else has, which an error must leave as it is: all values are looked at before, and where
 * the encoder may reject a block the blocks go aside at first.  0 is an error, or no memory.
 */
static int encode_into(int k, const Py_buffer *values, void *target, size_t n, const struct fc_quantize_options *options) {
    size_t encoded;
    const size_t count = n * formats[k].elements;
    if (fc_first_nonfinite(values->buf, count) < count && !FC_PLANTED(ENTRY_NONFINITE)) return 0;
    const int dtype = FC_SCALAR_DTYPES + k;
    if (!formats[k].may_reject || FC_PLANTED(ENTRY_REJECTED_HALF))
        return fc_quantize(dtype, values->buf, target, n, options, &encoded) == FC_OK;
    void *aside = malloc(n * formats[k].bytes);
    const int done = aside && fc_quantize(dtype, values->buf, aside, n, options, &encoded) == FC_OK;
    if (done) memcpy(target, aside, n * formats[k].bytes);
    free(aside);
    return done;
}

/* Encode taken values, in rows of so many blocks, into taken memory: an array of ours, or the caller's. */
static int encode(int k, const Py_buffer *values, const Py_buffer *target, size_t n, size_t columns, int is_new) {
    size_t encoded;
    const struct fc_quantize_options options = {NULL, columns, 0, 0.0, 1, is_new};
    PyThreadState *state = n * formats[k].elements >= RELEASE_ENCODING ? PyEval_SaveThread() : NULL;
    const int done = is_new ? fc_quantize(FC_SCALAR_DTYPES + k, values->buf, target->buf, n, &options, &encoded) == FC_OK
                            : encode_into(k, values, target->buf, n, &options);
    if (state) PyEval_RestoreThread(state);
    return done;
}

PyObject *plain_quantize(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *out, *result = NULL;
    Py_buffer values, target;
    int done = 0;
    if (nargs != 2 || !take_out(args + 2, kwnames, &out)) return NULL;
    const int k = format_of(args[0]);
    if (k == FORMATS || !plain_take(args[1], FC_f32, 0, &values)) return NULL;
    const Py_ssize_t last = values.ndim > 0 && values.len > 0 ? values.shape[values.ndim - 1] : 0;
    const size_t elements = formats[k].elements, n = (size_t)values.len / sizeof(float) / elements;
    if (last > 0 && (size_t)last % elements == 0 && n * elements <= MOST_ENCODED) {
        const size_t columns = (size_t)last / elements;
        result = given_or_new(out, values.shape, values.ndim - 1, (Py_ssize_t)columns, formats[k].form);
        if (result && take_target(result, k, n, &target)) {
            done = apart(&values, &target) && encode(k, &values, &target, n, columns, !out);
            PyBuffer_Release(&target);
        }
    }
    PyBuffer_Release(&values);
    return ended(done, result);
}

/* The indices of rows: words of their own, which are what is checked and used, and the shape they were given in. */
struct rows {
    uint64_t *words;
    Py_ssize_t n, length; /* the length of a list */
    const Py_ssize_t *lengths;
    int dims;
    Py_buffer array; /* array.obj is NULL if they were given as a list */
};

static int words_of_array(PyObject *array, struct rows *rows) {
    if (!is_of(array, plain_storages[FC_i64]) || !plain_take_any(array, 0, &rows->array)) return 0;
    rows->n = rows->array.len / (Py_ssize_t)sizeof(int64_t);
    rows->lengths = rows->array.shape;
    rows->dims = rows->array.ndim;
    if (rows->n > 0 && (rows->words = malloc((size_t)rows->n * sizeof *rows->words))) {
        memcpy(rows->words, rows->array.buf, (size_t)rows->n * sizeof *rows->words);
        return 1;
    }
    PyBuffer_Release(&rows->array);
    return 0;
}

static int words_of_list(PyObject *list, struct rows *rows) {
    const int is_list = PyList_CheckExact(list);
    rows->n = rows->length = is_list ? PyList_Size(list) : PyTuple_Size(list);
    rows->lengths = &rows->length;
    rows->dims = 1;
    if (rows->n == 0 || !(rows->words = malloc((size_t)rows->n * sizeof *rows->words))) return 0;
    for (Py_ssize_t i = 0; i < rows->n; i++) {
        int64_t index;
        if (!plain_i64(is_list ? PyList_GetItem(list, i) : PyTuple_GetItem(list, i), &index)) {
            free(rows->words);
            return 0;
        }
        rows->words[i] = (uint64_t)index;
    }
    return 1;
}

static void leave_rows(struct rows *rows) {
    if (rows->array.obj) PyBuffer_Release(&rows->array);
    free(rows->words);
}

/* Take an array of i64, a list or a tuple: one index or more, each of a row that is there. */
static int take_rows(PyObject *object, size_t count, struct rows *rows) {
    rows->array.obj = NULL;
    const int listed = PyList_CheckExact(object) || PyTuple_CheckExact(object);
    if (!(listed ? words_of_list(object, rows) : plain_is_array(object) && words_of_array(object, rows))) return 0;
    for (Py_ssize_t i = 0; i < rows->n; i++)
        if (rows->words[i] >= count + FC_PLANT(ENTRY_LAST_ROW_PASSED, 0, 1)) {
            leave_rows(rows);
            return 0;
        }
    return 1;
}

PyObject *plain_dequantize_rows(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    PyObject *out, *result = NULL;
    Py_buffer blocks, target;
    struct rows rows;
    Py_ssize_t columns;
    int64_t row_len;
    int done = 0;
    if (nargs != 4 || !take_out(args + 4, kwnames, &out)) return NULL;
    const int k = format_of(args[0]);
    if (k == FORMATS || !plain_i64(args[2], &row_len) || row_len <= 0 || (uint64_t)row_len % formats[k].elements) return NULL;
    if (!take_blocks(args[1], k, &blocks, &columns)) return NULL;
    const size_t n = (size_t)blocks.len / formats[k].bytes, row_blocks = (size_t)row_len / formats[k].elements;
    if (n % row_blocks == 0 && take_rows(args[3], n / row_blocks, &rows)) {
        result = given_or_new(out, rows.lengths, rows.dims, (Py_ssize_t)row_len, plain_storages[FC_f32]);
        if (result && plain_take(result, FC_f32, 1, &target)) {
            const size_t row_bytes = (size_t)row_len * sizeof(float), length = (size_t)target.len;
            const int fits = length % row_bytes == 0 && length / row_bytes == (size_t)rows.n;
            if (fits && apart(&blocks, &target) && (!rows.array.obj || apart(&rows.array, &target))) {
                PyThreadState *state = length >= RELEASE_DECODING * sizeof(float) ? PyEval_SaveThread() : NULL;
                done = fc_dequantize_rows(FC_SCALAR_DTYPES + k, blocks.buf, row_blocks, rows.words, (size_t)rows.n, target.buf) == FC_OK;
                if (state) PyEval_RestoreThread(state);
            }
            PyBuffer_Release(&target);
        }
        leave_rows(&rows);
    }
    PyBuffer_Release(&blocks);
    return ended(done, result);
}
