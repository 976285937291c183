/* Compiled: a folder that was compiled ahead of time. */
#include "module.h"
#include "options.h"

PyTypeObject *compiled_type;

typedef struct py_compiled {
  PyObject ob_base;
  py_context *owner;
  clv_compiled *compiled;
} py_compiled;

const clv_session_options *compiled_session_options(PyObject *compiled) {
  return clv_compiled_session_options(((py_compiled *)compiled)->compiled);
}

static PyObject *compiled_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *owner, *path;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O!O", context_type, &owner, &path)) return NULL;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  py_compiled *self = (py_compiled *)allocate(type, 0);
  if (self == NULL) return NULL;
  self->owner = (py_context *)Py_NewRef(owner);
  const char *text = scratch_text(&scratch, path);
  if (text != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_compiled_open(self->owner->context, text, &self->compiled, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (text != NULL && status == CLV_OK) return (PyObject *)self;
  if (text != NULL) fail(status, &error);
  Py_DECREF((PyObject *)self);
  return NULL;
}

static void compiled_dealloc(py_compiled *self) {
  clv_compiled_close(self->compiled);
  Py_XDECREF((PyObject *)self->owner);
  free_object((PyObject *)self);
}

static PyObject *list_of(const char *const *texts, uint32_t count) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list != NULL && i < count; ++i) {
    PyObject *text = PyUnicode_DecodeFSDefault(texts[i]);
    if (text == NULL || PyList_Append(list, text) < 0) Py_CLEAR(list);
    Py_XDECREF(text);
  }
  return list;
}

/* (path of the model, path of the plan, list of devices, npu_specs, device_options, thread_count) */
static PyObject *compiled_contents(py_compiled *self, PyObject *none) {
  (void)none;
  const clv_devices_options *devices = clv_compiled_devices_options(self->compiled);
  return Py_BuildValue("sszNNI", clv_compiled_model_path(self->compiled), clv_compiled_plan_path(self->compiled), devices->list,
                       list_of(devices->npu_specs, devices->npu_spec_count),
                       list_of(devices->device_options, devices->device_option_count), devices->thread_count);
}

static PyMethodDef methods[] = {
    {"contents", (PyCFunction)compiled_contents, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, compiled_new}, {Py_tp_dealloc, compiled_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
static PyType_Spec spec = {"cleave._cleave.Compiled", sizeof(py_compiled), 0, Py_TPFLAGS_DEFAULT, slots};

int add_compiled_type(PyObject *module) {
  compiled_type = add_type(module, &spec);
  return compiled_type == NULL ? -1 : 0;
}
