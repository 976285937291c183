/* Tensors of the library from Python's objects, and back. */
#ifndef CLEAVE_PYTHON_TENSORS_H
#define CLEAVE_PYTHON_TENSORS_H

#include "module.h"

/* What an input keeps alive during a run. */
typedef struct py_operand {
  Py_buffer view; /* its obj is NULL if there is none */
  PyObject *kept;
  clv_string *strings;
} py_operand;

/* Makes a tensor that points into `value`: a C-contiguous buffer is not copied. Other objects go through hooks.prepare, with the
 * dtype that the model wants for values without one (lists and numbers of Python). Returns 0, or -1 with an exception. */
int take_tensor(PyObject *value, const clv_tensor *wanted, PyObject *name, clv_tensor *tensor, py_operand *operand);
void drop_operand(py_operand *operand);

/* A tuple of the dims of a tensor whose rank is known. */
PyObject *shape_tuple(const clv_tensor *tensor);

/* The number of bytes of a tensor's data; SIZE_MAX if it overflows. The dims must be known. */
size_t tensor_bytes(const clv_tensor *tensor);

/* An array for `data`, which was allocated with malloc() and is freed with the array, or now if it fails. */
PyObject *array_of_memory(const clv_tensor *type, void *data);
/* An array of strings, which are copied. */
PyObject *array_of_strings(const clv_tensor *tensor);

#endif
