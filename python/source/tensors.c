/* See tensors.h. */
#include "tensors.h"

#include <stdlib.h>
#include <string.h>

PyTypeObject *memory_type;

/* The formats of the buffer protocol (those of the module struct) that dtypes have. Other dtypes go through the hooks. */
static const struct {
  clv_dtype dtype;
  const char *format;
} formats[] = {
    {CLV_F32, "f"}, {CLV_I64, "q"}, {CLV_I64, "l"}, {CLV_I32, "i"}, {CLV_U8, "B"},  {CLV_BOOL, "?"}, {CLV_F16, "e"},
    {CLV_F64, "d"}, {CLV_I8, "b"},  {CLV_I16, "h"}, {CLV_U16, "H"}, {CLV_U32, "I"}, {CLV_U64, "Q"},  {CLV_U64, "L"},
};

static clv_dtype dtype_of(const char *format) {
  if (format == NULL) return CLV_U8;
  if (format[0] == '@' || format[0] == '=' || format[0] == '<') ++format; /* x86 and ARM: little-endian */
  for (size_t i = 0; i < sizeof formats / sizeof *formats; ++i) {
    if (strcmp(formats[i].format, format) == 0) return formats[i].dtype;
  }
  return CLV_DTYPE_NONE;
}

static const char *format_of(clv_dtype dtype) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; ++i) {
    if (formats[i].dtype == dtype) return formats[i].format;
  }
  return NULL;
}

PyObject *shape_tuple(const clv_tensor *tensor) {
  PyObject *shape = PyTuple_New(tensor->rank);
  for (int32_t i = 0; shape != NULL && i < tensor->rank; ++i) {
    PyObject *size = PyLong_FromLongLong(tensor->dims[i]);
    if (size == NULL || PyTuple_SetItem(shape, i, size) < 0) Py_CLEAR(shape);
  }
  return shape;
}

size_t tensor_bytes(const clv_tensor *tensor) {
  size_t count = 1, bits = clv_dtype_size_bits(tensor->dtype);
  for (int32_t i = 0; i < tensor->rank; ++i) {
    if (__builtin_mul_overflow(count, (size_t)tensor->dims[i], &count)) return SIZE_MAX;
  }
  if (bits % 8 == 0) return __builtin_mul_overflow(count, bits / 8, &count) ? SIZE_MAX : count;
  return count / (8 / bits) + (count % (8 / bits) != 0);
}

/* ---- Inputs ---- */

void drop_operand(py_operand *operand) {
  if (operand->view.obj != NULL) PyBuffer_Release(&operand->view);
  Py_CLEAR(operand->kept);
  free(operand->strings);
  operand->strings = NULL;
}

/* Sets the tensor from operand->view. `shape` is a tuple, or NULL for the view's own. */
static int set_tensor(clv_tensor *tensor, const py_operand *operand, clv_dtype dtype, PyObject *shape, PyObject *name) {
  Py_ssize_t rank = shape != NULL ? PyTuple_Size(shape) : operand->view.ndim;
  if (rank > CLV_MAX_RANK) {
    PyErr_Format(PyExc_ValueError, "input '%U' has %zd dimensions; at most %d are supported", name, rank, CLV_MAX_RANK);
    return -1;
  }
  tensor->dtype = dtype;
  tensor->rank = (int32_t)rank;
  tensor->data = operand->view.buf;
  for (Py_ssize_t i = 0; i < rank; ++i) {
    tensor->dims[i] = shape == NULL ? operand->view.shape[i] : PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (tensor->dims[i] == -1 && PyErr_Occurred()) return -1;
  }
  return 0;
}

/* `list` has bytes objects. */
static int take_strings(PyObject *list, PyObject *shape, PyObject *name, clv_tensor *tensor, py_operand *operand) {
  Py_ssize_t count = PyList_Size(list);
  if (count < 0 || set_tensor(tensor, operand, CLV_STRING, shape, name) < 0) return -1;
  operand->strings = calloc((size_t)count + 1, sizeof *operand->strings);
  if (operand->strings == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    char *data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(PyList_GetItem(list, i), &data, &size) < 0) return -1;
    operand->strings[i] = (clv_string){data, (size_t)size};
  }
  tensor->data = operand->strings;
  return 0;
}

static int take_prepared(PyObject *value, const clv_tensor *wanted, PyObject *name, clv_tensor *tensor, py_operand *operand) {
  PyObject *buffer, *shape;
  int dtype;
  operand->kept = PyObject_CallFunction(hooks.prepare, "OiO", value, (int)wanted->dtype, name);
  if (operand->kept == NULL) return -1;
  if (!PyArg_ParseTuple(operand->kept, "OiO!", &buffer, &dtype, &PyTuple_Type, &shape)) return -1;
  if (dtype == CLV_STRING) return take_strings(buffer, shape, name, tensor, operand);
  if (PyObject_GetBuffer(buffer, &operand->view, PyBUF_ND) < 0) return -1;
  if (set_tensor(tensor, operand, (clv_dtype)dtype, shape, name) < 0) return -1;
  if ((size_t)operand->view.len >= tensor_bytes(tensor)) return 0;
  PyErr_Format(PyExc_SystemError, "input '%U' was prepared with too few bytes", name);
  return -1;
}

int take_tensor(PyObject *value, const clv_tensor *wanted, PyObject *name, clv_tensor *tensor, py_operand *operand) {
  if (wanted->dtype != CLV_STRING && PyObject_CheckBuffer(value)) {
    if (PyObject_GetBuffer(value, &operand->view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) == 0) {
      clv_dtype dtype = dtype_of(operand->view.format);
      if (dtype != CLV_DTYPE_NONE) return set_tensor(tensor, operand, dtype, NULL, name);
      PyBuffer_Release(&operand->view);
    }
    PyErr_Clear(); /* strided, or a dtype that the buffer protocol does not have */
    operand->view.obj = NULL;
  }
  return take_prepared(value, wanted, name, tensor, operand);
}

/* ---- Outputs ---- */

/* An output's memory, as a buffer. */
typedef struct py_memory {
  PyObject ob_base;
  void *data;
  size_t size;
  const char *format; /* static storage */
  int rank;
  Py_ssize_t item_size;
  Py_ssize_t shape[CLV_MAX_RANK], strides[CLV_MAX_RANK];
} py_memory;

static void memory_dealloc(py_memory *self) {
  free(self->data);
  free_object((PyObject *)self);
}

static int memory_buffer(py_memory *self, Py_buffer *view, int flags) {
  *view = (Py_buffer){.buf = self->data,
                      .len = (Py_ssize_t)self->size,
                      .itemsize = self->item_size,
                      .ndim = self->rank,
                      .format = flags & PyBUF_FORMAT ? (char *)self->format : NULL,
                      .shape = flags & PyBUF_ND ? self->shape : NULL,
                      .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->strides : NULL};
  view->obj = Py_NewRef((PyObject *)self);
  return 0;
}

static PyType_Slot memory_slots[] = {{Py_tp_dealloc, memory_dealloc}, {Py_bf_getbuffer, memory_buffer}, {0, NULL}};
static PyType_Spec memory_spec = {"cleave._cleave.Memory", sizeof(py_memory), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};

/* Elements without a format, such as bf16 or packed ones, are shown as bytes, in one dimension. */
static PyObject *make_memory(const clv_tensor *type, void *data, const char *format) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(memory_type, Py_tp_alloc);
  py_memory *self = (py_memory *)allocate(memory_type, 0);
  if (self == NULL) {
    free(data);
    return NULL;
  }
  self->data = data;
  self->size = tensor_bytes(type);
  self->format = format == NULL ? "B" : format;
  self->item_size = format == NULL ? 1 : (Py_ssize_t)clv_dtype_size_bytes(type->dtype);
  self->rank = format == NULL ? 1 : type->rank;
  if (format == NULL) {
    self->shape[0] = (Py_ssize_t)self->size;
    self->strides[0] = 1;
    return (PyObject *)self;
  }
  Py_ssize_t stride = self->item_size;
  for (int32_t i = type->rank - 1; i >= 0; --i) {
    self->shape[i] = (Py_ssize_t)type->dims[i];
    self->strides[i] = stride;
    stride *= self->shape[i];
  }
  return (PyObject *)self;
}

/* Steals `contents`. */
static PyObject *complete(PyObject *contents, const clv_tensor *type) {
  PyObject *shape = contents == NULL ? NULL : shape_tuple(type);
  PyObject *array = shape == NULL ? NULL : PyObject_CallFunction(hooks.complete, "OiO", contents, (int)type->dtype, shape);
  Py_XDECREF(shape);
  Py_XDECREF(contents);
  return array;
}

PyObject *array_of_memory(const clv_tensor *type, void *data) {
  const char *format = format_of(type->dtype);
  PyObject *memory = make_memory(type, data, format);
  if (memory == NULL || format == NULL) return complete(memory, type);
  PyObject *array = PyObject_CallFunctionObjArgs(hooks.asarray, memory, NULL);
  Py_DECREF(memory);
  return array;
}

PyObject *array_of_strings(const clv_tensor *tensor) {
  const clv_string *strings = tensor->data;
  const size_t count = tensor_bytes(tensor) / sizeof *strings;
  PyObject *list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list != NULL && i < count; ++i) {
    PyObject *item = PyUnicode_DecodeUTF8(strings[i].data, (Py_ssize_t)strings[i].size_bytes, "surrogateescape");
    if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
  }
  return complete(list, tensor);
}

int add_memory_type(PyObject *module) {
  memory_type = add_type(module, &memory_spec);
  return memory_type == NULL ? -1 : 0;
}
