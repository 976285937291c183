/* Context, Devices and Graph. */
#include <string.h>

#include "module.h"
#include "options.h"
#include "tensors.h"

PyTypeObject *context_type, *devices_type, *graph_type;

/* ---- Context ---- */

static const py_field context_fields[] = {
    {"capture", PY_INT32, offsetof(clv_context_options, capture), 0},
    {"capture_cache_entries", PY_INT32, offsetof(clv_context_options, capture_cache_entries), 0},
    {"capture_cache_bytes", PY_UINT64, offsetof(clv_context_options, capture_cache_bytes), 0},
    {"capture_prefill", PY_INT32, offsetof(clv_context_options, capture_prefill), 0},
    {"cache_directory", PY_TEXT, offsetof(clv_context_options, cache_directory), 0},
    {"cache_bytes", PY_UINT64, offsetof(clv_context_options, cache_bytes), 0},
    {"plugin_path", PY_TEXT, offsetof(clv_context_options, plugin_path), 0},
    {"fold_bytes", PY_UINT64, offsetof(clv_context_options, fold_bytes), 0},
    {NULL, PY_TEXT, 0, 0},
};

static void write_log(void *user_data, int level, const char *text) {
  PyObject *log = user_data;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace); /* of the call that logs, if it is already failing */
  PyObject *result = PyObject_CallFunction(log, "is", level, text);
  if (result == NULL) PyErr_WriteUnraisable(log);
  Py_XDECREF(result);
  PyErr_Restore(type, value, trace);
  PyGILState_Release(state);
}

static PyObject *context_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"options", "log", NULL};
  PyObject *given = NULL, *log = NULL;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|OO", names, &given, &log)) return NULL;
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  py_context *self = (py_context *)allocate(type, 0);
  if (self == NULL) return NULL;
  if (log != NULL && log != Py_None) {
    Py_INCREF(log);
    self->log = log;
    options.log = write_log;
    options.log_user_data = log;
  }
  clv_status status = CLV_INVALID_ARGUMENT;
  bool is_read = read_options(given, context_fields, &options, &scratch) == 0;
  if (is_read) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_context_create(&options, &self->context, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (is_read && status == CLV_OK) return (PyObject *)self;
  if (is_read) fail(status, &error);
  Py_DECREF((PyObject *)self);
  return NULL;
}

static void context_dealloc(py_context *self) {
  Py_BEGIN_ALLOW_THREADS;
  clv_context_destroy(self->context);
  Py_END_ALLOW_THREADS;
  Py_XDECREF((PyObject *)self->log);
  free_object((PyObject *)self);
}

static PyObject *context_load_plugin(py_context *self, PyObject *path) {
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_OK;
  const char *text = scratch_text(&scratch, path);
  if (text != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_context_load_plugin(self->context, text, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (text == NULL) return NULL;
  if (status != CLV_OK) return fail(status, &error);
  Py_RETURN_NONE;
}

static PyMethodDef context_methods[] = {
    {"load_plugin", (PyCFunction)context_load_plugin, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot context_slots[] = {
    {Py_tp_new, context_new}, {Py_tp_dealloc, context_dealloc}, {Py_tp_methods, context_methods}, {0, NULL}};
static PyType_Spec context_spec = {"cleave._cleave.Context", sizeof(py_context), 0, Py_TPFLAGS_DEFAULT, context_slots};

/* ---- Devices ---- */

const py_field devices_fields[] = {
    {"list", PY_TEXT, offsetof(clv_devices_options, list), 0},
    {"npu_specs", PY_TEXTS, offsetof(clv_devices_options, npu_specs), offsetof(clv_devices_options, npu_spec_count)},
    {"device_options", PY_TEXTS, offsetof(clv_devices_options, device_options),
     offsetof(clv_devices_options, device_option_count)},
    {"thread_count", PY_UINT32, offsetof(clv_devices_options, thread_count), 0},
    {"no_fallback", PY_FLAG, offsetof(clv_devices_options, no_fallback), 0},
    {NULL, PY_TEXT, 0, 0},
};

static PyObject *devices_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"context", "options", NULL};
  PyObject *owner, *given = NULL;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!|O", names, context_type, &owner, &given)) return NULL;
  clv_devices_options options = CLV_DEVICES_OPTIONS_INIT;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  py_devices *self = (py_devices *)allocate(type, 0);
  if (self == NULL) return NULL;
  Py_INCREF(owner);
  self->owner = (py_context *)owner;
  bool is_read = read_options(given, devices_fields, &options, &scratch) == 0;
  if (is_read) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_devices_open(self->owner->context, &options, &self->devices, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (is_read && status == CLV_OK) return (PyObject *)self;
  if (is_read) fail(status, &error);
  Py_DECREF((PyObject *)self);
  return NULL;
}

static void devices_dealloc(py_devices *self) {
  Py_BEGIN_ALLOW_THREADS;
  clv_devices_close(self->devices);
  Py_END_ALLOW_THREADS;
  Py_XDECREF((PyObject *)self->owner);
  free_object((PyObject *)self);
}

/* A list of dicts, one per device, with the fields of clv_device_info. */
static PyObject *devices_infos(py_devices *self, PyObject *none) {
  (void)none;
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list != NULL && i < clv_devices_count(self->devices); ++i) {
    clv_device_info info = {.struct_size = sizeof info};
    clv_devices_info(self->devices, i, &info);
    PyObject *item =
        Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:K,s:O,s:O,s:I,s:I}", "name", clv_devices_name(self->devices, i), "kind", info.kind,
                      "description", info.description, "fingerprint", info.fingerprint, "memory_space", info.memory_space,
                      "memory_limit_bytes", (unsigned long long)info.memory_limit_bytes, "static_shapes_only",
                      info.static_shapes_only ? Py_True : Py_False, "is_synchronous", info.is_synchronous ? Py_True : Py_False,
                      "max_partition_inputs", info.max_partition_inputs, "max_partition_nodes", info.max_partition_nodes);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

static PyMethodDef devices_methods[] = {
    {"infos", (PyCFunction)devices_infos, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot devices_slots[] = {
    {Py_tp_new, devices_new}, {Py_tp_dealloc, devices_dealloc}, {Py_tp_methods, devices_methods}, {0, NULL}};
static PyType_Spec devices_spec = {"cleave._cleave.Devices", sizeof(py_devices), 0, Py_TPFLAGS_DEFAULT, devices_slots};

/* ---- Graph ---- */

/* Loads a file with its params, or bytes. `is_path` tells bytes of a model from those of a path. */
static clv_status load(py_context *owner, PyObject *model, int is_path, PyObject *params, clv_graph **graph, clv_error *error) {
  py_scratch scratch = {NULL};
  clv_status status = CLV_INVALID_ARGUMENT;
  PyObject *list = params == NULL || params == Py_None ? PyList_New(0) : PySequence_List(params);
  const char **texts = NULL, *path = NULL;
  char *bytes = NULL;
  Py_ssize_t size = 0, count = 0;
  bool is_read = scratch_keep(&scratch, list) == 0;
  if (is_read && is_path) {
    count = PyList_Size(list);
    path = scratch_text(&scratch, model);
    texts = scratch_allocate(&scratch, (size_t)count + 1, sizeof *texts);
    is_read = path != NULL && texts != NULL;
    for (Py_ssize_t i = 0; is_read && i < count; ++i) {
      texts[i] = scratch_text(&scratch, PyList_GetItem(list, i));
      is_read = texts[i] != NULL;
    }
  } else if (is_read) {
    is_read = PyBytes_AsStringAndSize(model, &bytes, &size) == 0;
  }
  if (is_read) {
    Py_BEGIN_ALLOW_THREADS;
    status = is_path ? clv_graph_load_params(owner->context, path, texts, (uint32_t)count, graph, error)
                     : clv_graph_load_memory(owner->context, bytes, (size_t)size, CLV_COPY, graph, error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  return status;
}

/* Reads {name: (address, dtype, shape, owner)} into arrays of `scratch`. Returns their length, or -1 with an exception. */
static Py_ssize_t read_tensors(PyObject *given, const char ***names, clv_tensor **tensors, py_scratch *scratch) {
  Py_ssize_t position = 0, count = 0;
  PyObject *key, *value;
  *names = scratch_allocate(scratch, (size_t)PyDict_Size(given) + 1, sizeof **names);
  *tensors = scratch_allocate(scratch, (size_t)PyDict_Size(given) + 1, sizeof **tensors);
  if (*names == NULL || *tensors == NULL) return -1;
  while (PyDict_Next(given, &position, &key, &value)) {
    clv_tensor *tensor = &(*tensors)[count];
    PyObject *address, *shape, *owner;
    int dtype;
    if (!PyArg_ParseTuple(value, "OiO!O", &address, &dtype, &PyTuple_Type, &shape, &owner)) return -1;
    (*names)[count++] = scratch_text(scratch, key);
    tensor->dtype = (clv_dtype)dtype;
    tensor->data = PyLong_AsVoidPtr(address);
    tensor->rank = (int32_t)PyTuple_Size(shape);
    if (tensor->rank > CLV_MAX_RANK) PyErr_Format(PyExc_ValueError, "a weight has %d dimensions", (int)tensor->rank);
    for (int32_t i = 0; !PyErr_Occurred() && i < tensor->rank; ++i)
      tensor->dims[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
    if (PyErr_Occurred()) return -1;
  }
  return count;
}

/* Loads IR JSON with weights at addresses, which the graph borrows. */
static clv_status load_tensors(py_context *owner, PyObject *model, PyObject *given, clv_graph **graph, clv_error *error) {
  py_scratch scratch = {NULL};
  clv_status status = CLV_INVALID_ARGUMENT;
  const char **names;
  clv_tensor *tensors;
  char *bytes;
  Py_ssize_t size, count = read_tensors(given, &names, &tensors, &scratch);
  if (count >= 0 && PyBytes_AsStringAndSize(model, &bytes, &size) == 0) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_graph_load_memory_params(owner->context, bytes, (size_t)size, names, tensors, (uint32_t)count, CLV_BORROW, graph,
                                          error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  return status;
}

static PyObject *graph_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"context", "model", "is_path", "params", "tensors", NULL};
  PyObject *owner, *model, *params = NULL, *tensors = NULL;
  int is_path;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!Op|OO!", names, context_type, &owner, &model, &is_path, &params,
                                   &PyDict_Type, &tensors))
    return NULL;
  clv_error error = {0};
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  py_graph *self = (py_graph *)allocate(type, 0);
  if (self == NULL) return NULL;
  Py_INCREF(owner);
  self->owner = (py_context *)owner;
  self->tensors = Py_XNewRef(tensors);
  clv_status status = tensors != NULL ? load_tensors(self->owner, model, tensors, &self->graph, &error)
                                      : load(self->owner, model, is_path, params, &self->graph, &error);
  if (status == CLV_OK) return (PyObject *)self;
  fail(status, &error);
  Py_DECREF((PyObject *)self);
  return NULL;
}

static void graph_dealloc(py_graph *self) {
  Py_BEGIN_ALLOW_THREADS;
  clv_graph_destroy(self->graph);
  Py_END_ALLOW_THREADS;
  Py_XDECREF(self->tensors);
  Py_XDECREF((PyObject *)self->owner);
  free_object((PyObject *)self);
}

static PyObject *names_and_types(uint32_t count, const clv_graph *graph, const char *(*name)(const clv_graph *, uint32_t),
                                 const clv_tensor *(*type)(const clv_graph *, uint32_t)) {
  PyObject *list = PyList_New(0);
  for (uint32_t i = 0; list != NULL && i < count; ++i) {
    const clv_tensor *is = type(graph, i);
    PyObject *shape = is->rank < 0 ? Py_NewRef(Py_None) : shape_tuple(is);
    PyObject *item = shape == NULL
                         ? NULL
                         : Py_BuildValue("siNO", name(graph, i), (int)is->dtype, shape, is->data != NULL ? Py_True : Py_False);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* [(name, dtype, shape or None, whether it has a default)]. Sizes that are not known are negative. */
static PyObject *graph_inputs(py_graph *self, PyObject *none) {
  (void)none;
  return names_and_types(clv_graph_input_count(self->graph), self->graph, clv_graph_input_name, clv_graph_input_type);
}
static PyObject *graph_outputs(py_graph *self, PyObject *none) {
  (void)none;
  return names_and_types(clv_graph_output_count(self->graph), self->graph, clv_graph_output_name, clv_graph_output_type);
}

/* The name of a symbolic dimension, or None. */
static PyObject *graph_symbol(py_graph *self, PyObject *number) {
  unsigned long symbol = PyLong_AsUnsignedLong(number);
  if (symbol == (unsigned long)-1 && PyErr_Occurred()) return NULL;
  return Py_BuildValue("z", symbol < UINT32_MAX ? clv_graph_symbol_name(self->graph, (uint32_t)symbol) : NULL);
}

static PyMethodDef graph_methods[] = {
    {"symbol", (PyCFunction)graph_symbol, METH_O, NULL},
    {"inputs", (PyCFunction)graph_inputs, METH_NOARGS, NULL},
    {"outputs", (PyCFunction)graph_outputs, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot graph_slots[] = {
    {Py_tp_new, graph_new}, {Py_tp_dealloc, graph_dealloc}, {Py_tp_methods, graph_methods}, {0, NULL}};
static PyType_Spec graph_spec = {"cleave._cleave.Graph", sizeof(py_graph), 0, Py_TPFLAGS_DEFAULT, graph_slots};

int add_object_types(PyObject *module) {
  context_type = add_type(module, &context_spec);
  devices_type = context_type == NULL ? NULL : add_type(module, &devices_spec);
  graph_type = devices_type == NULL ? NULL : add_type(module, &graph_spec);
  return graph_type == NULL ? -1 : 0;
}
