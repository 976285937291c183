/* See options.h. */
#include "options.h"

#include <stdlib.h>
#include <string.h>

typedef struct py_block {
  struct py_block *next;
  PyObject *object; /* or NULL */
  max_align_t bytes[];
} py_block;

void scratch_finish(py_scratch *scratch) {
  while (scratch->blocks != NULL) {
    py_block *block = scratch->blocks;
    scratch->blocks = block->next;
    Py_XDECREF(block->object);
    free(block);
  }
}

static py_block *add_block(py_scratch *scratch, size_t size) {
  py_block *block = calloc(1, sizeof *block + size);
  if (block == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  block->next = scratch->blocks;
  scratch->blocks = block;
  return block;
}

void *scratch_allocate(py_scratch *scratch, size_t count, size_t size) {
  if (size > 0 && count > (SIZE_MAX - sizeof(py_block)) / size) {
    PyErr_NoMemory();
    return NULL;
  }
  py_block *block = add_block(scratch, count * size);
  return block == NULL ? NULL : block->bytes;
}

int scratch_keep(py_scratch *scratch, PyObject *object) {
  if (object == NULL) return -1;
  py_block *block = add_block(scratch, 0);
  if (block == NULL) {
    Py_DECREF(object);
    return -1;
  }
  block->object = object;
  return 0;
}

const char *scratch_text(py_scratch *scratch, PyObject *object) {
  Py_ssize_t size;
  const char *text = NULL;
  if (PyUnicode_Check(object)) {
    text = PyUnicode_AsUTF8AndSize(object, &size); /* as long as the object, which the caller's arguments hold */
    Py_INCREF(object);
    if (scratch_keep(scratch, object) < 0) return NULL;
  } else {
    PyObject *bytes = NULL; /* a path in the file system's encoding, also bytes */
    if (!PyUnicode_FSConverter(object, &bytes)) return NULL;
    char *start;
    if (scratch_keep(scratch, bytes) < 0 || PyBytes_AsStringAndSize(bytes, &start, &size) < 0) return NULL;
    text = start;
  }
  if (text != NULL && strlen(text) != (size_t)size) {
    PyErr_SetString(PyExc_ValueError, "a text has a zero character inside");
    return NULL;
  }
  return text;
}

/* ---- Arrays ---- */

static int read_texts(PyObject *list, Py_ssize_t count, void *place, py_scratch *scratch) {
  const char **texts = scratch_allocate(scratch, (size_t)count + 1, sizeof *texts);
  if (texts == NULL) return -1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *item = PyList_GetItem(list, i);
    texts[i] = item == NULL ? NULL : scratch_text(scratch, item);
    if (texts[i] == NULL) return -1;
  }
  memcpy(place, &texts, sizeof texts);
  return 0;
}

static int read_pairs(PyObject *list, Py_ssize_t count, void *place, py_scratch *scratch) {
  clv_assignment *pairs = scratch_allocate(scratch, (size_t)count + 1, sizeof *pairs);
  if (pairs == NULL) return -1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *item = PySequence_Tuple(PyList_GetItem(list, i)), *pattern, *device;
    if (scratch_keep(scratch, item) < 0 || !PyArg_ParseTuple(item, "OO", &pattern, &device)) return -1;
    pairs[i].pattern = scratch_text(scratch, pattern);
    pairs[i].device = pairs[i].pattern == NULL ? NULL : scratch_text(scratch, device);
    if (pairs[i].device == NULL) return -1;
  }
  memcpy(place, &pairs, sizeof pairs);
  return 0;
}

static int read_dims(PyObject *dims, clv_size *size) {
  Py_ssize_t rank = PyTuple_Size(dims);
  if (rank > CLV_MAX_RANK) {
    PyErr_Format(PyExc_ValueError, "the shape of '%s' has %zd dimensions; at most %d are supported", size->name, rank,
                 CLV_MAX_RANK);
    return -1;
  }
  size->rank = (int32_t)rank;
  for (Py_ssize_t k = 0; k < rank; ++k) {
    size->dims[k] = PyLong_AsLongLong(PyTuple_GetItem(dims, k));
    if (size->dims[k] == -1 && PyErr_Occurred()) return -1;
  }
  return 0;
}

static int read_sizes(PyObject *list, Py_ssize_t count, void *place, py_scratch *scratch) {
  clv_size *sizes = scratch_allocate(scratch, (size_t)count + 1, sizeof *sizes);
  if (sizes == NULL) return -1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *item = PySequence_Tuple(PyList_GetItem(list, i)), *name, *size;
    if (scratch_keep(scratch, item) < 0 || !PyArg_ParseTuple(item, "OO", &name, &size)) return -1;
    sizes[i].name = scratch_text(scratch, name);
    if (sizes[i].name == NULL) return -1;
    if (PyLong_Check(size)) {
      sizes[i].is_symbol = true;
      sizes[i].dims[0] = PyLong_AsLongLong(size);
      if (sizes[i].dims[0] == -1 && PyErr_Occurred()) return -1;
      continue;
    }
    PyObject *dims = PySequence_Tuple(size);
    if (scratch_keep(scratch, dims) < 0 || read_dims(dims, &sizes[i]) < 0) return -1;
  }
  memcpy(place, &sizes, sizeof sizes);
  return 0;
}

static int read_array(PyObject *value, const py_field *field, char *options, py_scratch *scratch) {
  PyObject *list = PySequence_List(value);
  if (scratch_keep(scratch, list) < 0) return -1;
  Py_ssize_t count = PyList_Size(list);
  uint32_t stored = (uint32_t)count;
  if (count > (Py_ssize_t)UINT32_MAX) {
    PyErr_Format(PyExc_ValueError, "%s: %zd entries are too many", field->name, count);
    return -1;
  }
  memcpy(options + field->count_offset, &stored, sizeof stored);
  void *place = options + field->offset;
  if (field->kind == PY_TEXTS) return read_texts(list, count, place, scratch);
  if (field->kind == PY_PAIRS) return read_pairs(list, count, place, scratch);
  return read_sizes(list, count, place, scratch);
}

/* ---- Fields ---- */

static int read_number(PyObject *value, const py_field *field, void *place) {
  if (field->kind == PY_INT32) {
    long number = PyLong_AsLong(value);
    int32_t stored = (int32_t)number;
    if (number == -1 && PyErr_Occurred()) return -1;
    if (stored != number) {
      PyErr_Format(PyExc_ValueError, "%s: %ld is out of range", field->name, number);
      return -1;
    }
    memcpy(place, &stored, sizeof stored);
    return 0;
  }
  unsigned long long number = PyLong_AsUnsignedLongLong(value);
  if (number == (unsigned long long)-1 && PyErr_Occurred()) return -1;
  if (field->kind == PY_UINT64) {
    uint64_t stored = number;
    memcpy(place, &stored, sizeof stored);
    return 0;
  }
  uint32_t stored = (uint32_t)number;
  if (stored != number) {
    PyErr_Format(PyExc_ValueError, "%s: %llu is out of range", field->name, number);
    return -1;
  }
  memcpy(place, &stored, sizeof stored);
  return 0;
}

static int read_field(PyObject *value, const py_field *field, char *options, py_scratch *scratch) {
  void *place = options + field->offset;
  if (value == Py_None) return 0; /* the default */
  switch (field->kind) {
    case PY_TEXT: {
      const char *text = scratch_text(scratch, value);
      if (text != NULL) memcpy(place, &text, sizeof text);
      return text == NULL ? -1 : 0;
    }
    case PY_FLAG: {
      int truth = PyObject_IsTrue(value);
      bool stored = truth > 0;
      if (truth >= 0) memcpy(place, &stored, sizeof stored);
      return truth < 0 ? -1 : 0;
    }
    case PY_SECONDS: {
      double number = PyFloat_AsDouble(value);
      if (number == -1 && PyErr_Occurred()) return -1;
      memcpy(place, &number, sizeof number);
      return 0;
    }
    case PY_UINT32:
    case PY_INT32:
    case PY_UINT64:
      return read_number(value, field, place);
    default:
      return read_array(value, field, options, scratch);
  }
}

int read_options(PyObject *given, const py_field *fields, void *options, py_scratch *scratch) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  if (given == NULL || given == Py_None) return 0;
  while (PyDict_Next(given, &position, &key, &value)) {
    const char *name = scratch_text(scratch, key);
    if (name == NULL) return -1;
    const py_field *field = fields;
    while (field->name != NULL && strcmp(field->name, name) != 0) ++field;
    if (field->name == NULL) {
      PyErr_Format(PyExc_TypeError, "unknown option '%s'", name);
      return -1;
    }
    if (read_field(value, field, options, scratch) < 0) return -1;
  }
  return 0;
}
