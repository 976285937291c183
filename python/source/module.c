/* The module: its functions, and what all of its types need. */
#include "module.h"

py_hooks hooks;

PyTypeObject *add_type(PyObject *module, PyType_Spec *spec) {
  PyObject *type = PyType_FromModuleAndSpec(module, spec, NULL);
  if (type == NULL || PyModule_AddType(module, (PyTypeObject *)type) < 0) return NULL;
  return (PyTypeObject *)type;
}

void free_object(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

PyObject *fail(clv_status status, const clv_error *error) {
  if (PyErr_Occurred()) return NULL; /* of a callback, such as a progress function */
  if (hooks.raise == NULL) {
    PyErr_SetString(PyExc_RuntimeError, error->message);
    return NULL;
  }
  PyObject *result = PyObject_CallFunction(hooks.raise, "is", (int)status, error->message);
  Py_XDECREF(result);
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "an error was not raised");
  return NULL;
}

static PyObject *set_up(PyObject *module, PyObject *arguments) {
  (void)module;
  py_hooks given;
  if (!PyArg_ParseTuple(arguments, "OOOO", &given.raise, &given.asarray, &given.prepare, &given.complete)) return NULL;
  Py_INCREF(given.raise);
  Py_INCREF(given.asarray);
  Py_INCREF(given.prepare);
  Py_INCREF(given.complete);
  hooks = given;
  Py_RETURN_NONE;
}

static PyObject *version(PyObject *module, PyObject *none) {
  (void)module, (void)none;
  return PyUnicode_FromString(clv_version());
}

static PyObject *dtype_name(PyObject *module, PyObject *number) {
  (void)module;
  long dtype = PyLong_AsLong(number);
  if (dtype == -1 && PyErr_Occurred()) return NULL;
  return PyUnicode_FromString(clv_dtype_name((clv_dtype)dtype));
}

static PyObject *status_name(PyObject *module, PyObject *number) {
  (void)module;
  long status = PyLong_AsLong(number);
  if (status == -1 && PyErr_Occurred()) return NULL;
  return PyUnicode_FromString(clv_status_name((clv_status)status));
}

static PyMethodDef methods[] = {
    {"set_up", set_up, METH_VARARGS, NULL},
    {"version", version, METH_NOARGS, NULL},
    {"dtype_name", dtype_name, METH_O, NULL},
    {"status_name", status_name, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module) {
  if (add_object_types(module) < 0 || add_plan_type(module) < 0 || add_memory_type(module) < 0) return -1;
  if (add_session_types(module) < 0 || add_compiled_type(module) < 0 || add_gnn_types(module) < 0) return -1;
  if (add_profile_type(module) < 0) return -1;
  return PyModule_AddIntConstant(module, "MAX_IN_FLIGHT", CLV_MAX_IN_FLIGHT);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "_cleave", .m_methods = methods, .m_slots = slots};

PyMODINIT_FUNC PyInit__cleave(void);
PyMODINIT_FUNC PyInit__cleave(void) {
  return PyModuleDef_Init(&definition);
}
