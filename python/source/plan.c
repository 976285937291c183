/* Plan. */
#include <string.h>
#include <time.h>

#include "module.h"
#include "options.h"

PyTypeObject *plan_type;

#define FIELD(name, kind) \
  { #name, kind, offsetof(clv_plan_options, name), 0 }
#define ARRAY(name, count, kind) \
  { #name, kind, offsetof(clv_plan_options, name), offsetof(clv_plan_options, count) }
static const py_field plan_fields[] = {
    FIELD(strategy, PY_TEXT),
    ARRAY(pins, pin_count, PY_PAIRS),
    ARRAY(forces, force_count, PY_PAIRS),
    ARRAY(sizes, size_count, PY_SIZES),
    ARRAY(keeps, keep_count, PY_TEXTS),
    FIELD(split, PY_TEXT),
    FIELD(objective, PY_TEXT),
    FIELD(profile, PY_TEXT),
    ARRAY(weights, weight_count, PY_PAIRS),
    ARRAY(values, value_count, PY_PAIRS),
    ARRAY(supposes, suppose_count, PY_TEXTS),
    FIELD(record_passes, PY_FLAG),
    FIELD(name_others, PY_FLAG),
    FIELD(offload, PY_TEXT),
    {NULL, PY_TEXT, 0, 0},
};

/* Looks for signals, such as Ctrl-C, every 50 ms while a plan is made without the GIL. */
static bool go_on(void *user_data) {
  uint64_t *last_ns = user_data;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  if (now_ns - *last_ns < 50000000u) return true;
  *last_ns = now_ns;
  PyGILState_STATE state = PyGILState_Ensure();
  bool is_signalled = PyErr_CheckSignals() < 0;
  PyGILState_Release(state);
  return !is_signalled;
}

static py_plan *allocate(PyTypeObject *type, PyObject *graph, PyObject *devices) {
  allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  py_plan *self = (py_plan *)make(type, 0);
  if (self == NULL) return NULL;
  Py_INCREF(graph);
  Py_INCREF(devices);
  self->graph = (py_graph *)graph;
  self->devices = (py_devices *)devices;
  return self;
}

/* Plan(graph, devices, options): makes a plan. Plan(graph, devices, path=..., profile=...): reads one. */
static PyObject *plan_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"graph", "devices", "options", "path", "profile", NULL};
  PyObject *graph, *devices, *given = NULL, *path = NULL, *profile = NULL;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!O!|OOO", names, graph_type, &graph, devices_type, &devices, &given,
                                   &path, &profile))
    return NULL;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  uint64_t last_ns = 0;
  options.go_on = go_on;
  options.go_on_user_data = &last_ns;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  const char *path_text = NULL, *profile_text = NULL;
  py_plan *self = allocate(type, graph, devices);
  if (self == NULL) return NULL;
  bool is_read = read_options(given, plan_fields, &options, &scratch) == 0;
  if (is_read && path != NULL && path != Py_None) is_read = (path_text = scratch_text(&scratch, path)) != NULL;
  if (is_read && profile != NULL && profile != Py_None) is_read = (profile_text = scratch_text(&scratch, profile)) != NULL;
  if (is_read) {
    Py_BEGIN_ALLOW_THREADS;
    status = path_text == NULL
                 ? clv_plan_make(self->graph->graph, self->devices->devices, &options, &self->plan, &error)
                 : clv_plan_read(self->graph->graph, self->devices->devices, path_text, profile_text, &self->plan, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (is_read && status == CLV_OK) return (PyObject *)self;
  if (is_read) fail(status, &error);
  Py_DECREF((PyObject *)self);
  return NULL;
}

static void plan_dealloc(py_plan *self) {
  Py_BEGIN_ALLOW_THREADS;
  clv_plan_destroy(self->plan);
  Py_END_ALLOW_THREADS;
  Py_XDECREF((PyObject *)self->graph);
  Py_XDECREF((PyObject *)self->devices);
  free_object((PyObject *)self);
}

static PyObject *plan_write(py_plan *self, PyObject *path) {
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_OK;
  const char *text = scratch_text(&scratch, path);
  if (text != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_plan_write(self->plan, text, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (text == NULL) return NULL;
  if (status != CLV_OK) return fail(status, &error);
  Py_RETURN_NONE;
}

static PyObject *plan_json(py_plan *self, PyObject *none) {
  (void)none;
  clv_error error = {0};
  char *text = NULL;
  clv_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = clv_plan_json(self->plan, &text, &error);
  Py_END_ALLOW_THREADS;
  if (status != CLV_OK) return fail(status, &error);
  PyObject *result = PyUnicode_FromString(text);
  clv_text_free(text);
  return result;
}

static PyObject *plan_info(py_plan *self, PyObject *none) {
  (void)none;
  clv_plan_info info = {.struct_size = sizeof info};
  clv_plan_get_info(self->plan, &info);
  return Py_BuildValue("{s:I,s:I,s:I,s:I,s:s,s:s,s:s,s:(KK),s:(KK),s:(KK),s:d}", "step_count", info.step_count, "partition_count",
                       info.partition_count, "transfer_count", info.transfer_count, "node_count", info.node_count, "strategy",
                       info.strategy, "split", info.split, "objective", info.objective, "latency",
                       (unsigned long long)info.latency.predicted_ns, (unsigned long long)info.latency.bound_ns, "overlap",
                       (unsigned long long)info.overlap.predicted_ns, (unsigned long long)info.overlap.bound_ns, "throughput",
                       (unsigned long long)info.throughput.predicted_ns, (unsigned long long)info.throughput.bound_ns, "gap",
                       info.gap);
}

static PyObject *index_tuple(const uint32_t *items, uint32_t count) {
  PyObject *tuple = PyTuple_New(count);
  for (uint32_t i = 0; tuple != NULL && i < count; ++i) {
    PyObject *item = PyLong_FromUnsignedLong(items[i]);
    if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject *value_tuple(const clv_plan *plan, uint32_t partition, uint32_t count,
                             const char *(*name)(const clv_plan *, uint32_t, uint32_t)) {
  PyObject *tuple = PyTuple_New(count);
  for (uint32_t i = 0; tuple != NULL && i < count; ++i) {
    PyObject *item = PyUnicode_FromString(name(plan, partition, i));
    if (item == NULL || PyTuple_SetItem(tuple, i, item) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

/* An index from 0 to `count`, or UINT32_MAX with an IndexError. */
static uint32_t to_index(PyObject *number, uint32_t count, const char *what) {
  unsigned long index = PyLong_AsUnsignedLong(number);
  if (index == (unsigned long)-1 && PyErr_Occurred()) return UINT32_MAX;
  if (index < count) return (uint32_t)index;
  PyErr_Format(PyExc_IndexError, "there is no %s %lu: the plan has %u", what, index, count);
  return UINT32_MAX;
}

static clv_plan_info counts(const py_plan *self) {
  clv_plan_info info = {.struct_size = sizeof info};
  clv_plan_get_info(self->plan, &info);
  return info;
}

/* (is_transfer, index, dependencies) */
static PyObject *plan_step(py_plan *self, PyObject *number) {
  uint32_t index = to_index(number, counts(self).step_count, "step");
  clv_plan_step_info info = {.struct_size = sizeof info};
  if (index == UINT32_MAX) return NULL;
  clv_plan_step(self->plan, index, &info);
  return Py_BuildValue("OIN", info.is_transfer ? Py_True : Py_False, info.index,
                       index_tuple(info.dependencies, info.dependency_count));
}

/* (device, nodes, inputs, outputs, weight bytes, predicted ns) */
static PyObject *plan_partition(py_plan *self, PyObject *number) {
  uint32_t index = to_index(number, counts(self).partition_count, "partition");
  clv_partition_info info = {.struct_size = sizeof info};
  if (index == UINT32_MAX) return NULL;
  clv_plan_partition(self->plan, index, &info);
  return Py_BuildValue("sNNNKK", clv_devices_name(self->devices->devices, info.device), index_tuple(info.nodes, info.node_count),
                       value_tuple(self->plan, index, info.input_count, clv_plan_partition_input),
                       value_tuple(self->plan, index, info.output_count, clv_plan_partition_output),
                       (unsigned long long)info.weight_bytes, (unsigned long long)info.predicted_ns);
}

/* (kind, value, from, to, size in bytes, predicted ns) */
static PyObject *plan_transfer(py_plan *self, PyObject *number) {
  uint32_t index = to_index(number, counts(self).transfer_count, "transfer");
  clv_transfer_info info = {.struct_size = sizeof info};
  if (index == UINT32_MAX) return NULL;
  clv_plan_transfer(self->plan, index, &info);
  return Py_BuildValue("isssKK", (int)info.kind, info.value, info.from, info.to, (unsigned long long)info.size_bytes,
                       (unsigned long long)info.predicted_ns);
}

/* (device or None, partition or None, name, op, cause, note or None) */
static PyObject *plan_node(py_plan *self, PyObject *number) {
  uint32_t index = to_index(number, counts(self).node_count, "node");
  clv_placed_node_info info = {.struct_size = sizeof info};
  if (index == UINT32_MAX) return NULL;
  clv_plan_node(self->plan, index, &info);
  PyObject *partition = info.partition == CLV_NO_INDEX ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(info.partition);
  return Py_BuildValue("zNsssz", info.device == CLV_NO_INDEX ? NULL : clv_devices_name(self->devices->devices, info.device),
                       partition, info.name, info.op, info.cause, info.note);
}

/* ---- Documents ---- */

/* A text of the library as a str, or the error of the call that made it. */
static PyObject *text_result(clv_status status, char *text, const clv_error *error) {
  if (status != CLV_OK) return fail(status, error);
  PyObject *result = PyUnicode_FromString(text);
  clv_text_free(text);
  return result;
}

/* report(steps, form) */
static PyObject *plan_report(py_plan *self, PyObject *arguments) {
  int steps, form;
  if (!PyArg_ParseTuple(arguments, "ii", &steps, &form)) return NULL;
  clv_error error = {0};
  char *text = NULL;
  clv_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = clv_plan_report(self->plan, (clv_steps_shown)steps, (clv_form)form, &text, &error);
  Py_END_ALLOW_THREADS;
  return text_result(status, text, &error);
}

/* explain(pattern or None, form) */
static PyObject *plan_explain(py_plan *self, PyObject *arguments) {
  const char *pattern;
  int form;
  if (!PyArg_ParseTuple(arguments, "zi", &pattern, &form)) return NULL;
  clv_error error = {0};
  char *text = NULL;
  clv_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = clv_plan_explain(self->plan, pattern, (clv_form)form, &text, &error);
  Py_END_ALLOW_THREADS;
  return text_result(status, text, &error);
}

/* what_if(options of the plan, pairs of operator and device, form) */
static PyObject *plan_what_if(py_plan *self, PyObject *arguments) {
  static const py_field fields[] = {
      {"supposes", PY_PAIRS, offsetof(clv_plan_options, pins), offsetof(clv_plan_options, pin_count)}, {NULL, PY_TEXT, 0, 0}};
  PyObject *given, *supposes;
  int form;
  if (!PyArg_ParseTuple(arguments, "OOi", &given, &supposes, &form)) return NULL;
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT, pairs = CLV_PLAN_OPTIONS_INIT;
  uint64_t last_ns = 0;
  options.go_on = go_on;
  options.go_on_user_data = &last_ns;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  char *text = NULL;
  clv_status status = CLV_INVALID_ARGUMENT;
  bool is_read =
      read_options(given, plan_fields, &options, &scratch) == 0 && read_options(supposes, fields, &pairs, &scratch) == 0;
  if (is_read) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_plan_what_if(self->plan, &options, pairs.pins, pairs.pin_count, (clv_form)form, &text, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  return is_read ? text_result(status, text, &error) : NULL;
}

static clv_status compare(py_plan *self, clv_comparison **comparison, clv_error *error) {
  clv_compare_options options = CLV_COMPARE_OPTIONS_INIT;
  uint64_t last_ns = 0;
  options.go_on = go_on;
  options.go_on_user_data = &last_ns;
  return clv_plan_compare(self->plan, &options, comparison, error);
}

/* (text, JSON) */
static PyObject *plan_compare(py_plan *self, PyObject *none) {
  (void)none;
  clv_error error = {0};
  clv_comparison *comparison = NULL;
  char *text = NULL, *json = NULL;
  clv_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = compare(self, &comparison, &error);
  if (status == CLV_OK) status = clv_comparison_text(comparison, CLV_FORM_TEXT, &text, &error);
  if (status == CLV_OK) status = clv_comparison_text(comparison, CLV_FORM_JSON, &json, &error);
  clv_comparison_destroy(comparison);
  Py_END_ALLOW_THREADS;
  PyObject *result = status == CLV_OK ? Py_BuildValue("ss", text, json) : fail(status, &error);
  clv_text_free(text);
  clv_text_free(json);
  return result;
}

/* Appends to a bytearray, which is `user_data`. */
static bool append_bytes(void *user_data, const char *bytes, size_t size) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *more = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
  int result = more == NULL ? -1 : PyList_Append(user_data, more);
  Py_XDECREF(more);
  PyGILState_Release(state);
  return result == 0;
}

/* draw(picture, path or None, whether to compare strategies): a list of bytes if there is no path. */
static PyObject *plan_draw(py_plan *self, PyObject *arguments) {
  int picture, compares;
  PyObject *path;
  if (!PyArg_ParseTuple(arguments, "iOp", &picture, &path, &compares)) return NULL;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_OK;
  clv_comparison *comparison = NULL;
  const char *text = path == Py_None ? NULL : scratch_text(&scratch, path);
  PyObject *parts = text == NULL && path != Py_None ? NULL : PyList_New(0);
  if (parts != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    if (compares) status = compare(self, &comparison, &error);
    if (status == CLV_OK)
      status =
          clv_plan_draw(self->plan, (clv_picture)picture, comparison, text, text == NULL ? append_bytes : NULL, parts, &error);
    clv_comparison_destroy(comparison);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (parts == NULL || status == CLV_OK) return parts;
  Py_DECREF(parts);
  return fail(status, &error);
}

static PyMethodDef methods[] = {
    {"write", (PyCFunction)plan_write, METH_O, NULL},
    {"json", (PyCFunction)plan_json, METH_NOARGS, NULL},
    {"info", (PyCFunction)plan_info, METH_NOARGS, NULL},
    {"step", (PyCFunction)plan_step, METH_O, NULL},
    {"partition", (PyCFunction)plan_partition, METH_O, NULL},
    {"transfer", (PyCFunction)plan_transfer, METH_O, NULL},
    {"node", (PyCFunction)plan_node, METH_O, NULL},
    {"report", (PyCFunction)plan_report, METH_VARARGS, NULL},
    {"explain", (PyCFunction)plan_explain, METH_VARARGS, NULL},
    {"what_if", (PyCFunction)plan_what_if, METH_VARARGS, NULL},
    {"compare", (PyCFunction)plan_compare, METH_NOARGS, NULL},
    {"draw", (PyCFunction)plan_draw, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {{Py_tp_new, plan_new}, {Py_tp_dealloc, plan_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
static PyType_Spec spec = {"cleave._cleave.Plan", sizeof(py_plan), 0, Py_TPFLAGS_DEFAULT, slots};

int add_plan_type(PyObject *module) {
  plan_type = add_type(module, &spec);
  return plan_type == NULL ? -1 : 0;
}
