/* Profile: measured costs of devices. */
#include "module.h"
#include "options.h"

static PyTypeObject *profile_type;

typedef struct py_profile {
  PyObject ob_base;
  py_context *owner;
  clv_profile *profile;
} py_profile;

/* Profile(context, path or None): an empty one, or one from a file. */
static PyObject *profile_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *owner, *path;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O!O", context_type, &owner, &path)) return NULL;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  py_profile *self = (py_profile *)allocate(type, 0);
  if (self == NULL) return NULL;
  self->owner = (py_context *)Py_NewRef(owner);
  const char *text = path == Py_None ? NULL : scratch_text(&scratch, path);
  if (!PyErr_Occurred()) {
    Py_BEGIN_ALLOW_THREADS;
    status = text == NULL ? clv_profile_create(self->owner->context, &self->profile, &error)
                          : clv_profile_read(self->owner->context, text, &self->profile, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (status == CLV_OK) return (PyObject *)self;
  fail(status, &error);
  Py_DECREF((PyObject *)self);
  return NULL;
}

static void profile_dealloc(py_profile *self) {
  clv_profile_destroy(self->profile);
  Py_XDECREF((PyObject *)self->owner);
  free_object((PyObject *)self);
}

/* ---- Measuring ---- */

static bool go_on(void *user_data) {
  (void)user_data;
  PyGILState_STATE state = PyGILState_Ensure();
  bool is_ended = PyErr_Occurred() != NULL || PyErr_CheckSignals() < 0;
  PyGILState_Release(state);
  return !is_ended;
}

static void tell_progress(void *user_data, const char *model, const char *device, const char *what, uint32_t done,
                          uint32_t total) {
  PyGILState_STATE state = PyGILState_Ensure();
  if (!PyErr_Occurred()) {
    PyObject *result = PyObject_CallFunction(user_data, "sssII", model, device, what, done, total);
    Py_XDECREF(result); /* an exception stays set; go_on() sees it */
  }
  PyGILState_Release(state);
}

static const py_field fields[] = {
    {"runs", PY_UINT32, offsetof(clv_profile_options, runs), 0},
    {"continues", PY_FLAG, offsetof(clv_profile_options, continues), 0},
    {"budget_seconds", PY_SECONDS, offsetof(clv_profile_options, budget_seconds), 0},
    {NULL, PY_TEXT, 0, 0},
};
static const py_field size_fields[] = {
    {"sizes", PY_SIZES, offsetof(clv_plan_options, sizes), offsetof(clv_plan_options, size_count)}, {NULL, PY_TEXT, 0, 0}};

/* Reads a list of (Graph, {"sizes": ...}). */
static clv_profile_graph *read_graphs(PyObject *list, Py_ssize_t count, py_scratch *scratch) {
  clv_profile_graph *graphs = scratch_allocate(scratch, (size_t)count + 1, sizeof *graphs);
  for (Py_ssize_t i = 0; graphs != NULL && i < count; ++i) {
    PyObject *graph, *given;
    clv_plan_options sizes = CLV_PLAN_OPTIONS_INIT;
    PyObject *item = PyList_GetItem(list, i);
    if (item == NULL || !PyArg_ParseTuple(item, "O!O", graph_type, &graph, &given)) return NULL;
    if (read_options(given, size_fields, &sizes, scratch) < 0) return NULL;
    graphs[i] = (clv_profile_graph){((py_graph *)graph)->graph, sizes.size_count, sizes.sizes};
  }
  return graphs;
}

/* measure(devices, list of (Graph, {"sizes": ...}), options, tell or None). Returns whether all was measured. */
static PyObject *profile_measure(py_profile *self, PyObject *arguments) {
  PyObject *devices, *list, *given, *tell;
  if (!PyArg_ParseTuple(arguments, "O!O!OO", devices_type, &devices, &PyList_Type, &list, &given, &tell)) return NULL;
  clv_profile_options options = CLV_PROFILE_OPTIONS_INIT;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  const Py_ssize_t count = PyList_Size(list);
  clv_profile_graph *graphs = read_graphs(list, count, &scratch);
  bool is_read = graphs != NULL && read_options(given, fields, &options, &scratch) == 0;
  options.go_on = go_on;
  options.user_data = tell;
  if (tell != Py_None) options.progress = tell_progress;
  if (is_read) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_profile_measure(self->profile, ((py_devices *)devices)->devices, graphs, (uint32_t)count, &options, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (!is_read) return NULL;
  if (status != CLV_OK || PyErr_Occurred()) return fail(status, &error);
  clv_profile_info info = {.struct_size = sizeof info};
  clv_profile_get_info(self->profile, NULL, &info);
  return PyBool_FromLong(!info.is_partial);
}

/* ---- Files and documents ---- */

/* update(path): merges the file into the profile, and writes it. */
static PyObject *profile_update(py_profile *self, PyObject *path) {
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_OK;
  const char *text = scratch_text(&scratch, path);
  if (text != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_profile_update(self->profile, text, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (text == NULL) return NULL;
  return status == CLV_OK ? Py_NewRef(Py_None) : fail(status, &error);
}

/* text(form) */
static PyObject *profile_text(py_profile *self, PyObject *form) {
  long number = PyLong_AsLong(form);
  clv_error error = {0};
  char *text = NULL;
  if (number == -1 && PyErr_Occurred()) return NULL;
  clv_status status = clv_profile_text(self->profile, NULL, false, (clv_form)number, &text, &error);
  if (status != CLV_OK) return fail(status, &error);
  PyObject *result = PyUnicode_FromString(text);
  clv_text_free(text);
  return result;
}

static PyMethodDef methods[] = {
    {"measure", (PyCFunction)profile_measure, METH_VARARGS, NULL},
    {"update", (PyCFunction)profile_update, METH_O, NULL},
    {"text", (PyCFunction)profile_text, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, profile_new}, {Py_tp_dealloc, profile_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
static PyType_Spec spec = {"cleave._cleave.Profile", sizeof(py_profile), 0, Py_TPFLAGS_DEFAULT, slots};

int add_profile_type(PyObject *module) {
  profile_type = add_type(module, &spec);
  return profile_type == NULL ? -1 : 0;
}
