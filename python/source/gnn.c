/* Graphs, models, plans and runs of graph neural networks. */
#include <string.h>

#include "module.h"
#include "options.h"
#include "tensors.h"

static PyTypeObject *gnn_graph_type, *gnn_model_type, *gnn_plan_type, *gnn_run_type, *gnn_costs_type;

/* One layout for all of these objects: `handle` is the library's, `owners` are the objects that it refers to. */
typedef struct py_gnn {
  PyObject ob_base;
  void *handle;
  PyObject *owners; /* a tuple */
} py_gnn;

static py_gnn *make_object(PyTypeObject *type, PyObject *owners) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  py_gnn *self = owners == NULL ? NULL : (py_gnn *)allocate(type, 0);
  if (self == NULL) {
    Py_XDECREF(owners);
    return NULL;
  }
  self->owners = owners;
  return self;
}

/* The object, or NULL with the exception of `status`. */
static PyObject *finish_object(py_gnn *self, clv_status status, const clv_error *error) {
  if (status == CLV_OK && !PyErr_Occurred()) return (PyObject *)self;
  fail(status, error);
  Py_DECREF((PyObject *)self);
  return NULL;
}

#define DEALLOC(name, destroy)               \
  static void name##_dealloc(py_gnn *self) { \
    Py_BEGIN_ALLOW_THREADS;                  \
    destroy(self->handle);                   \
    Py_END_ALLOW_THREADS;                    \
    Py_XDECREF(self->owners);                \
    free_object((PyObject *)self);           \
  }
DEALLOC(graph, clv_gnn_graph_destroy)
DEALLOC(model, clv_gnn_model_destroy)
DEALLOC(plan, clv_gnn_plan_destroy)
DEALLOC(run, clv_gnn_run_destroy)
DEALLOC(costs, clv_gnn_costs_destroy)

static PyObject *text_result(clv_status status, char *text, const clv_error *error) {
  if (status != CLV_OK) return fail(status, error);
  PyObject *result = PyUnicode_FromString(text);
  clv_text_free(text);
  return result;
}

/* ---- Graphs ---- */

/* A flat i64 buffer. */
static const int64_t *read_ids(PyObject *given, const char *what, Py_buffer *view, uint64_t *count) {
  if (PyObject_GetBuffer(given, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) return NULL;
  if (view->itemsize == 8 && view->format != NULL && strchr("lq", view->format[strlen(view->format) - 1]) != NULL) {
    *count = (uint64_t)(view->len / 8);
    return view->buf;
  }
  PyErr_Format(PyExc_TypeError, "%s must be contiguous int64", what);
  return NULL;
}

static clv_status make_graph(clv_context *context, clv_gnn_arrays *arrays, PyObject *ids[2], PyObject *labels, py_gnn *self,
                             clv_error *error) {
  Py_buffer views[3] = {{.obj = NULL}, {.obj = NULL}, {.obj = NULL}};
  uint64_t counts[3] = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  clv_tensor label_tensor = {.dtype = CLV_I64, .rank = 1};
  arrays->sources = read_ids(ids[0], "sources", &views[0], &counts[0]);
  if (arrays->sources != NULL) arrays->destinations = read_ids(ids[1], "destinations", &views[1], &counts[1]);
  if (arrays->destinations != NULL && counts[0] != counts[1]) {
    PyErr_Format(PyExc_ValueError, "there are %llu sources and %llu destinations", (unsigned long long)counts[0],
                 (unsigned long long)counts[1]);
  } else if (arrays->destinations != NULL && labels != Py_None) {
    label_tensor.data = (void *)read_ids(labels, "labels", &views[2], &counts[2]);
    label_tensor.dims[0] = (int64_t)counts[2];
    arrays->labels = &label_tensor;
  }
  arrays->edge_count = counts[0];
  if (!PyErr_Occurred()) {
    clv_gnn_graph *graph = NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = clv_gnn_graph_make(context, arrays, &graph, error);
    Py_END_ALLOW_THREADS;
    self->handle = graph;
  }
  for (int i = 0; i < 3; ++i) {
    if (views[i].obj != NULL) PyBuffer_Release(&views[i]);
  }
  return status;
}

/* GnnGraph(context, sources, destinations, vertex count, features or None, labels or None, name) or
 * GnnGraph(context, path): a file. */
static PyObject *graph_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *context, *first, *second = NULL, *features = Py_None, *labels = Py_None;
  unsigned long long vertices = 0;
  const char *name = NULL;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O!O|OKOOz", context_type, &context, &first, &second, &vertices, &features, &labels, &name))
    return NULL;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  py_gnn *self = make_object(type, PyTuple_Pack(1, context));
  if (self == NULL) return NULL;
  clv_context *handle = ((py_context *)context)->context;
  if (second == NULL) {
    const char *path = scratch_text(&scratch, first);
    clv_gnn_graph *graph = NULL;
    if (path != NULL) {
      Py_BEGIN_ALLOW_THREADS;
      status = clv_gnn_graph_read(handle, path, &graph, &error);
      Py_END_ALLOW_THREADS;
    }
    self->handle = graph;
  } else {
    clv_gnn_arrays arrays = CLV_GNN_ARRAYS_INIT;
    clv_tensor tensor, wanted = {.dtype = CLV_F32, .rank = CLV_RANK_UNKNOWN};
    py_operand operand = {.view = {.obj = NULL}};
    PyObject *ids[2] = {first, second}, *title = PyUnicode_FromString("x");
    arrays.vertex_count = vertices;
    arrays.name = name;
    if (title != NULL && (features == Py_None || take_tensor(features, &wanted, title, &tensor, &operand) == 0)) {
      arrays.features = features == Py_None ? NULL : &tensor;
      status = make_graph(handle, &arrays, ids, labels, self, &error);
    }
    drop_operand(&operand);
    Py_XDECREF(title);
  }
  scratch_finish(&scratch);
  return finish_object(self, status, &error);
}

/* (vertices, edges, features per vertex, name) */
static PyObject *graph_info(py_gnn *self, PyObject *none) {
  (void)none;
  clv_gnn_graph_info info = {.struct_size = sizeof info};
  clv_gnn_graph_get_info(self->handle, &info);
  return Py_BuildValue("IKKs", info.vertex_count, (unsigned long long)info.edge_count, (unsigned long long)info.feature_count,
                       info.name);
}

static PyObject *graph_report(py_gnn *self, PyObject *form) {
  long number = PyLong_AsLong(form);
  clv_error error = {0};
  char *text = NULL;
  clv_status status;
  if (number == -1 && PyErr_Occurred()) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = clv_gnn_graph_report(self->handle, NULL, (clv_form)number, &text, &error);
  Py_END_ALLOW_THREADS;
  return text_result(status, text, &error);
}

/* ---- Models ---- */

/* GnnModel(context, path or bytes, is_path) */
static PyObject *model_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *context, *given;
  int is_path;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O!Op", context_type, &context, &given, &is_path)) return NULL;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  py_gnn *self = make_object(type, PyTuple_Pack(1, context));
  if (self == NULL) return NULL;
  char *bytes = NULL;
  Py_ssize_t size = 0;
  const char *path = is_path ? scratch_text(&scratch, given) : NULL;
  if (is_path ? path != NULL : PyBytes_AsStringAndSize(given, &bytes, &size) == 0) {
    clv_gnn_model *model = NULL;
    clv_context *handle = ((py_context *)context)->context;
    Py_BEGIN_ALLOW_THREADS;
    status = is_path ? clv_gnn_model_read(handle, path, &model, &error)
                     : clv_gnn_model_read_memory(handle, bytes, (size_t)size, NULL, &model, &error);
    Py_END_ALLOW_THREADS;
    self->handle = model;
  }
  scratch_finish(&scratch);
  return finish_object(self, status, &error);
}

/* (type, layers, features, classes, name) */
static PyObject *model_info(py_gnn *self, PyObject *none) {
  (void)none;
  clv_gnn_model_info info = {.struct_size = sizeof info};
  clv_gnn_model_get_info(self->handle, &info);
  return Py_BuildValue("sIIIs", info.type, info.layer_count, info.feature_count, info.class_count, info.name);
}

static PyObject *model_report(py_gnn *self, PyObject *form) {
  long number = PyLong_AsLong(form);
  clv_error error = {0};
  char *text = NULL;
  clv_status status;
  if (number == -1 && PyErr_Occurred()) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = clv_gnn_model_report(self->handle, (clv_form)number, &text, &error);
  Py_END_ALLOW_THREADS;
  return text_result(status, text, &error);
}

/* ---- Costs ---- */

/* GnnCosts(context, path) */
static PyObject *costs_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *context, *path;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O!O", context_type, &context, &path)) return NULL;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  py_gnn *self = make_object(type, PyTuple_Pack(1, context));
  if (self == NULL) return NULL;
  const char *text = scratch_text(&scratch, path);
  if (text != NULL) {
    clv_gnn_costs *costs = NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = clv_gnn_costs_read(((py_context *)context)->context, text, &costs, &error);
    Py_END_ALLOW_THREADS;
    self->handle = costs;
  }
  scratch_finish(&scratch);
  return finish_object(self, status, &error);
}

/* ---- Plans ---- */

static const py_field plan_fields[] = {
    {"seed", PY_UINT64, offsetof(clv_gnn_plan_options, seed), 0},
    {"pad_step", PY_UINT64, offsetof(clv_gnn_plan_options, pad_step), 0},
    {"quick", PY_FLAG, offsetof(clv_gnn_plan_options, quick), 0},
    {"top_k", PY_UINT32, offsetof(clv_gnn_plan_options, top_k), 0},
    {NULL, PY_TEXT, 0, 0},
};

static int read_ks(PyObject *given, clv_gnn_plan_options *options, py_scratch *scratch) {
  PyObject *list = PySequence_List(given);
  if (scratch_keep(scratch, list) < 0) return -1;
  Py_ssize_t count = PyList_Size(list);
  uint32_t *ks = scratch_allocate(scratch, (size_t)count + 1, sizeof *ks);
  if (ks == NULL) return -1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    unsigned long k = PyLong_AsUnsignedLong(PyList_GetItem(list, i));
    if (k == (unsigned long)-1 && PyErr_Occurred()) return -1;
    ks[i] = k > UINT32_MAX ? UINT32_MAX : (uint32_t)k;
  }
  options->ks = ks;
  options->k_count = (uint32_t)count;
  return 0;
}

/* GnnPlan(model, graph, devices, options, ks, costs or None, path or None): makes a plan, or reads one. */
static PyObject *plan_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *model, *graph, *devices, *given, *ks, *costs, *path;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O!O!O!OOOO", gnn_model_type, &model, gnn_graph_type, &graph, devices_type, &devices, &given,
                        &ks, &costs, &path))
    return NULL;
  clv_gnn_plan_options options = CLV_GNN_PLAN_OPTIONS_INIT;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  py_gnn *self = make_object(type, PyTuple_Pack(4, model, graph, devices, costs));
  if (self == NULL) return NULL;
  if (costs != Py_None && !PyObject_TypeCheck(costs, gnn_costs_type)) PyErr_SetString(PyExc_TypeError, "costs must be GnnCosts");
  const char *text = path == Py_None ? NULL : scratch_text(&scratch, path);
  if (!PyErr_Occurred() && read_options(given, plan_fields, &options, &scratch) == 0 && read_ks(ks, &options, &scratch) == 0) {
    clv_gnn_plan *plan = NULL;
    const clv_gnn_model *of = ((py_gnn *)model)->handle;
    const clv_gnn_graph *over = ((py_gnn *)graph)->handle;
    clv_devices *on = ((py_devices *)devices)->devices;
    options.costs = costs == Py_None ? NULL : ((py_gnn *)costs)->handle;
    Py_BEGIN_ALLOW_THREADS;
    status = text == NULL ? clv_gnn_plan_make(of, over, on, &options, &plan, &error)
                          : clv_gnn_plan_read(of, over, on, text, &options, &plan, &error);
    Py_END_ALLOW_THREADS;
    self->handle = plan;
  }
  scratch_finish(&scratch);
  return finish_object(self, status, &error);
}

static PyObject *plan_info(py_gnn *self, PyObject *none) {
  (void)none;
  clv_gnn_plan_info info = {.struct_size = sizeof info};
  clv_gnn_plan_get_info(self->handle, &info);
  return Py_BuildValue("{s:I,s:I,s:I,s:d,s:d,s:d,s:d,s:s,s:I,s:s,s:s}", "k", info.k, "layer_count", info.layer_count,
                       "task_count", info.task_count, "predicted_ns", info.predicted_ns, "bound_ns", info.bound_ns, "gap",
                       info.gap, "best_single_ns", info.best_single_ns, "best_single_device", info.best_single_device,
                       "best_single_k", info.best_single_k, "prices", info.prices, "why", info.why);
}

static PyObject *subgraph_dict(const clv_gnn_subgraph_info *s) {
  return Py_BuildValue("IIKK", s->owned_count, s->halo_count, (unsigned long long)s->edge_count,
                       (unsigned long long)s->cut_edge_count);
}

/* [(vertices owned, halo, edges, edges cut)] */
static PyObject *plan_subgraphs(py_gnn *self, PyObject *none) {
  (void)none;
  PyObject *list = PyList_New(0);
  clv_gnn_subgraph_info info = {.struct_size = sizeof info};
  for (uint32_t i = 0; list != NULL && clv_gnn_plan_subgraph(self->handle, i, &info); ++i) {
    PyObject *item = subgraph_dict(&info);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
    info.struct_size = sizeof info;
  }
  return list;
}

/* report(form) */
static PyObject *plan_report(py_gnn *self, PyObject *form) {
  long number = PyLong_AsLong(form);
  clv_error error = {0};
  char *text = NULL;
  clv_status status;
  if (number == -1 && PyErr_Occurred()) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = clv_gnn_plan_report(self->handle, NULL, (clv_form)number, &text, &error);
  Py_END_ALLOW_THREADS;
  return text_result(status, text, &error);
}

/* write(path, is_page) */
static PyObject *plan_write(py_gnn *self, PyObject *arguments) {
  PyObject *path;
  int is_page;
  if (!PyArg_ParseTuple(arguments, "Op", &path, &is_page)) return NULL;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_OK;
  const char *text = scratch_text(&scratch, path);
  if (text != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    status = is_page ? clv_gnn_plan_page(self->handle, text, NULL, NULL, &error) : clv_gnn_plan_write(self->handle, text, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (text == NULL) return NULL;
  if (status != CLV_OK) return fail(status, &error);
  Py_RETURN_NONE;
}

/* ---- Runs ---- */

/* GnnRun(plan) */
static PyObject *run_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *plan;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O!", gnn_plan_type, &plan)) return NULL;
  clv_error error = {0};
  clv_status status;
  clv_gnn_run *run = NULL;
  py_gnn *self = make_object(type, PyTuple_Pack(1, plan));
  if (self == NULL) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = clv_gnn_run_create(((py_gnn *)plan)->handle, &run, &error);
  Py_END_ALLOW_THREADS;
  self->handle = run;
  return finish_object(self, status, &error);
}

/* execute(features or None, output): the output is a writable f32 buffer [vertices, classes]. */
static PyObject *run_execute(py_gnn *self, PyObject *arguments) {
  PyObject *features, *output;
  if (!PyArg_ParseTuple(arguments, "OO", &features, &output)) return NULL;
  clv_tensor input, result, wanted = {.dtype = CLV_F32, .rank = CLV_RANK_UNKNOWN};
  py_operand in = {.view = {.obj = NULL}}, out = {.view = {.obj = NULL}};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  PyObject *name = PyUnicode_FromString("x");
  bool is_read = name != NULL && (features == Py_None || take_tensor(features, &wanted, name, &input, &in) == 0) &&
                 take_tensor(output, &wanted, name, &result, &out) == 0;
  if (is_read) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_gnn_run_execute(self->handle, features == Py_None ? NULL : &input, &result, NULL, &error);
    Py_END_ALLOW_THREADS;
  }
  drop_operand(&in);
  drop_operand(&out);
  Py_XDECREF(name);
  if (!is_read) return NULL;
  if (status != CLV_OK) return fail(status, &error);
  Py_RETURN_NONE;
}

/* verify(features or None, output): the largest difference from a run in one piece, relative to the largest value. */
static PyObject *run_verify(py_gnn *self, PyObject *arguments) {
  PyObject *features, *output;
  if (!PyArg_ParseTuple(arguments, "OO", &features, &output)) return NULL;
  clv_tensor input, result, wanted = {.dtype = CLV_F32, .rank = CLV_RANK_UNKNOWN};
  py_operand in = {.view = {.obj = NULL}}, out = {.view = {.obj = NULL}};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  double difference = 0;
  PyObject *name = PyUnicode_FromString("x");
  bool is_read = name != NULL && (features == Py_None || take_tensor(features, &wanted, name, &input, &in) == 0) &&
                 take_tensor(output, &wanted, name, &result, &out) == 0;
  if (is_read) {
    Py_BEGIN_ALLOW_THREADS;
    status =
        clv_gnn_run_verify(self->handle, features == Py_None ? NULL : &input, &result, CLV_GNN_TOLERANCE, &difference, &error);
    Py_END_ALLOW_THREADS;
  }
  drop_operand(&in);
  drop_operand(&out);
  Py_XDECREF(name);
  if (!is_read) return NULL;
  return status == CLV_OK ? PyFloat_FromDouble(difference) : fail(status, &error);
}

/* report(form) */
static PyObject *run_report(py_gnn *self, PyObject *form) {
  long number = PyLong_AsLong(form);
  clv_error error = {0};
  char *text = NULL;
  clv_status status;
  if (number == -1 && PyErr_Occurred()) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = clv_gnn_run_report(self->handle, NULL, (clv_form)number, &text, &error);
  Py_END_ALLOW_THREADS;
  return text_result(status, text, &error);
}

/* ---- Types ---- */

static PyMethodDef graph_methods[] = {{"info", (PyCFunction)graph_info, METH_NOARGS, NULL},
                                      {"report", (PyCFunction)graph_report, METH_O, NULL},
                                      {NULL, NULL, 0, NULL}};
static PyMethodDef model_methods[] = {{"info", (PyCFunction)model_info, METH_NOARGS, NULL},
                                      {"report", (PyCFunction)model_report, METH_O, NULL},
                                      {NULL, NULL, 0, NULL}};
static PyMethodDef plan_methods[] = {{"info", (PyCFunction)plan_info, METH_NOARGS, NULL},
                                     {"subgraphs", (PyCFunction)plan_subgraphs, METH_NOARGS, NULL},
                                     {"report", (PyCFunction)plan_report, METH_O, NULL},
                                     {"write", (PyCFunction)plan_write, METH_VARARGS, NULL},
                                     {NULL, NULL, 0, NULL}};
static PyMethodDef run_methods[] = {{"execute", (PyCFunction)run_execute, METH_VARARGS, NULL},
                                    {"verify", (PyCFunction)run_verify, METH_VARARGS, NULL},
                                    {"report", (PyCFunction)run_report, METH_O, NULL},
                                    {NULL, NULL, 0, NULL}};

static PyType_Slot graph_slots[] = {
    {Py_tp_new, graph_new}, {Py_tp_dealloc, graph_dealloc}, {Py_tp_methods, graph_methods}, {0, NULL}};
static PyType_Slot model_slots[] = {
    {Py_tp_new, model_new}, {Py_tp_dealloc, model_dealloc}, {Py_tp_methods, model_methods}, {0, NULL}};
static PyType_Slot plan_slots[] = {
    {Py_tp_new, plan_new}, {Py_tp_dealloc, plan_dealloc}, {Py_tp_methods, plan_methods}, {0, NULL}};
static PyType_Slot run_slots[] = {{Py_tp_new, run_new}, {Py_tp_dealloc, run_dealloc}, {Py_tp_methods, run_methods}, {0, NULL}};
static PyType_Slot costs_slots[] = {{Py_tp_new, costs_new}, {Py_tp_dealloc, costs_dealloc}, {0, NULL}};

static PyType_Spec graph_spec = {"cleave._cleave.GnnGraph", sizeof(py_gnn), 0, Py_TPFLAGS_DEFAULT, graph_slots};
static PyType_Spec model_spec = {"cleave._cleave.GnnModel", sizeof(py_gnn), 0, Py_TPFLAGS_DEFAULT, model_slots};
static PyType_Spec plan_spec = {"cleave._cleave.GnnPlan", sizeof(py_gnn), 0, Py_TPFLAGS_DEFAULT, plan_slots};
static PyType_Spec run_spec = {"cleave._cleave.GnnRun", sizeof(py_gnn), 0, Py_TPFLAGS_DEFAULT, run_slots};
static PyType_Spec costs_spec = {"cleave._cleave.GnnCosts", sizeof(py_gnn), 0, Py_TPFLAGS_DEFAULT, costs_slots};

int add_gnn_types(PyObject *module) {
  gnn_graph_type = add_type(module, &graph_spec);
  gnn_model_type = gnn_graph_type == NULL ? NULL : add_type(module, &model_spec);
  gnn_costs_type = gnn_model_type == NULL ? NULL : add_type(module, &costs_spec);
  gnn_plan_type = gnn_costs_type == NULL ? NULL : add_type(module, &plan_spec);
  gnn_run_type = gnn_plan_type == NULL ? NULL : add_type(module, &run_spec);
  return gnn_run_type == NULL ? -1 : 0;
}
