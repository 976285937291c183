/* The extension `cleave._cleave`: the library's objects as Python objects, with the limited API of CPython 3.11. It converts
 * arguments and results, and nothing more: the shape of the package is in Python, in ../cleave.
 *
 * Every object holds a reference to the objects that it was made from, so that they are destroyed in the right order. Calls that
 * work release the GIL. */
#ifndef CLEAVE_PYTHON_MODULE_H
#define CLEAVE_PYTHON_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cleave/cleave.h>

/* What set_up() of the module was given by the package. */
typedef struct py_hooks {
  PyObject *raise;    /* raise(status, message): raises the exception of a status */
  PyObject *asarray;  /* numpy.asarray */
  PyObject *prepare;  /* prepare(value, dtype, name): an object that is not a plain buffer -> (buffer or list, dtype, shape) */
  PyObject *complete; /* complete(memory or list, dtype, shape): an output that is not a plain buffer -> an array */
} py_hooks;
extern py_hooks hooks;

typedef struct py_context {
  PyObject ob_base;
  clv_context *context;
  PyObject *log; /* a function of (level, text), or NULL */
} py_context;

typedef struct py_devices {
  PyObject ob_base;
  py_context *owner;
  clv_devices *devices;
} py_devices;

typedef struct py_graph {
  PyObject ob_base;
  py_context *owner;
  clv_graph *graph;
  PyObject *tensors; /* a dict with the owners of borrowed weights, or NULL */
} py_graph;

typedef struct py_plan {
  PyObject ob_base;
  py_graph *graph;
  py_devices *devices;
  clv_plan *plan;
} py_plan;

extern PyTypeObject *context_type, *devices_type, *graph_type, *plan_type, *session_type, *run_type, *memory_type, *compiled_type;

/* Add the types of a file to the module. Return 0, or -1 with an exception. */
int add_object_types(PyObject *module);
int add_plan_type(PyObject *module);
int add_memory_type(PyObject *module);
int add_session_types(PyObject *module);
int add_compiled_type(PyObject *module);
int add_gnn_types(PyObject *module);
int add_profile_type(PyObject *module);

/* Makes a type from `spec`, adds it to the module, and returns a reference that is kept for ever, or NULL. */
PyTypeObject *add_type(PyObject *module, PyType_Spec *spec);
/* The result of a failed call. Always NULL, with the exception of `error`, or with the one that is set already. */
PyObject *fail(clv_status status, const clv_error *error);
/* The options that a folder was compiled with; `compiled` is of compiled_type. */
const clv_session_options *compiled_session_options(PyObject *compiled);
/* Releases the memory of an object of a heap type. */
void free_object(PyObject *object);

#endif
