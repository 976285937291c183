/* Session and Run. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "module.h"
#include "options.h"
#include "tensors.h"

PyTypeObject *session_type, *run_type;

/* A run that may take longer than this is driven by a thread of the session, so that the caller can look for signals, such as
 * Ctrl-C, every POLL_NS. Shorter runs are driven by the caller, because handing over takes microseconds. */
enum { LONG_NS = 40000000, SHORT_NS = 20000000, POLL_NS = 50000000 };

typedef struct py_session {
  PyObject ob_base;
  py_plan *plan;
  PyObject *compiled; /* or NULL */
  clv_session *session;
  clv_session_options options; /* that it was created with */
  PyObject *inputs, *outputs;  /* tuples of names */
  uint32_t input_count, output_count;
  bool has_strings; /* an output has strings, which are in the session's memory until the next run */
  bool has_loops;   /* the time of a run may depend on data */
  bool is_long;     /* the last run took long, or there was none */
  pthread_mutex_t strings_lock;
} py_session;

/* ---- One call of run ---- */

typedef struct py_call {
  py_session *session;
  clv_tensor *inputs, *outputs;
  py_operand *operands;
  void **memory; /* of the outputs: allocated during the run */
  bool *is_wanted;
  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool has_ended;
  PyObject *done; /* called when the run ends, or NULL */
} py_call;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void end_call(py_call *call) {
  py_session *self = call->session;
  for (uint32_t i = 0; i < self->input_count; ++i) drop_operand(&call->operands[i]);
  for (uint32_t i = 0; i < self->output_count; ++i) free(call->memory[i]);
  pthread_cond_destroy(&call->ended);
  pthread_mutex_destroy(&call->lock);
  Py_XDECREF(call->done);
  free(call);
}

static py_call *begin_call(py_session *self) {
  const size_t in = self->input_count, out = self->output_count;
  py_call *call =
      calloc(1, sizeof *call + (in + out) * sizeof(clv_tensor) + in * sizeof(py_operand) + out * (sizeof(void *) + 1));
  if (call == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  call->session = self;
  call->inputs = (clv_tensor *)(call + 1);
  call->outputs = call->inputs + in;
  call->operands = (py_operand *)(call->outputs + out);
  call->memory = (void **)(call->operands + in);
  call->is_wanted = (bool *)(call->memory + out);
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&call->ended, &attributes);
  pthread_condattr_destroy(&attributes);
  pthread_mutex_init(&call->lock, NULL);
  return call;
}

/* Called without the GIL. */
static void *allocate_output(void *user_data, uint32_t output, const clv_tensor *type) {
  py_call *call = user_data;
  void *data = NULL;
  const size_t size = tensor_bytes(type);
  if (!call->is_wanted[output] || type->dtype == CLV_STRING || size == SIZE_MAX) return NULL;
  if (posix_memalign(&data, 64, size > 0 ? size : 1) != 0) return NULL;
  call->memory[output] = data;
  return data;
}

static int take_input(py_call *call, uint32_t index, PyObject *value) {
  const py_session *self = call->session;
  if (value == Py_None) return 0; /* the default */
  return take_tensor(value, clv_graph_input_type(self->plan->graph->graph, index), PyTuple_GetItem(self->inputs, index),
                     &call->inputs[index], &call->operands[index]);
}

static int reject_unknown(const py_session *self, PyObject *feeds) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(feeds, &position, &key, &value)) {
    int is_known = PySequence_Contains(self->inputs, key);
    if (is_known < 0) return -1;
    if (is_known > 0) continue;
    clv_error error = {CLV_INVALID_ARGUMENT, ""};
    PyObject *text = PyUnicode_FromFormat("the model has no input %R; it has %R", key, self->inputs);
    const char *message = text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, NULL);
    if (message != NULL) {
      strncpy(error.message, message, sizeof error.message - 1);
      fail(error.status, &error);
    }
    Py_XDECREF(text);
    return -1;
  }
  return 0;
}

/* `feeds`: a dict by name, or a sequence in the order of the model's inputs. */
static int take_inputs(py_call *call, PyObject *feeds) {
  const py_session *self = call->session;
  if (PyDict_Check(feeds)) {
    Py_ssize_t used = 0;
    for (uint32_t i = 0; i < self->input_count; ++i) {
      PyObject *value = PyDict_GetItemWithError(feeds, PyTuple_GetItem(self->inputs, i));
      if (value == NULL && PyErr_Occurred()) return -1;
      used += value != NULL;
      if (value != NULL && take_input(call, i, value) < 0) return -1;
    }
    return used == PyDict_Size(feeds) ? 0 : reject_unknown(self, feeds);
  }
  Py_ssize_t count = PySequence_Size(feeds);
  if (count < 0) return -1;
  if (count > (Py_ssize_t)self->input_count) {
    clv_error error = {CLV_INVALID_ARGUMENT, ""};
    snprintf(error.message, sizeof error.message, "the model has %u inputs, not %zd", self->input_count, count);
    fail(error.status, &error);
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *value = PySequence_GetItem(feeds, i);
    int result = value == NULL ? -1 : take_input(call, (uint32_t)i, value);
    Py_XDECREF(value); /* the buffer keeps it alive */
    if (result < 0) return -1;
  }
  return 0;
}

/* `wanted`: None for all outputs, or a tuple of indices. */
static int take_wanted(py_call *call, PyObject *wanted) {
  const py_session *self = call->session;
  if (wanted == Py_None) {
    memset(call->is_wanted, 1, self->output_count);
    return 0;
  }
  for (Py_ssize_t i = 0; i < PyTuple_Size(wanted); ++i) {
    Py_ssize_t index = PyLong_AsSsize_t(PyTuple_GetItem(wanted, i));
    if (index < 0 || index >= (Py_ssize_t)self->output_count) {
      if (!PyErr_Occurred()) PyErr_Format(PyExc_IndexError, "there is no output %zd", index);
      return -1;
    }
    call->is_wanted[index] = true;
  }
  return 0;
}

static PyObject *make_array(py_call *call, uint32_t index) {
  const clv_tensor *output = &call->outputs[index];
  if (output->dtype == CLV_STRING) return array_of_strings(output);
  void *data = call->memory[index];
  if (data == NULL || data != output->data) return PyErr_NoMemory();
  call->memory[index] = NULL;
  return array_of_memory(output, data);
}

/* A dict of the wanted outputs by name, or a list in the order of `wanted`. */
static PyObject *make_result(py_call *call, PyObject *wanted, bool as_list) {
  py_session *self = call->session;
  const bool is_all = wanted == Py_None;
  const Py_ssize_t count = is_all ? (Py_ssize_t)self->output_count : PyTuple_Size(wanted);
  PyObject *result = as_list ? PyList_New(count) : PyDict_New();
  for (Py_ssize_t i = 0; result != NULL && i < count; ++i) {
    const uint32_t index = is_all ? (uint32_t)i : (uint32_t)PyLong_AsUnsignedLong(PyTuple_GetItem(wanted, i));
    PyObject *array = make_array(call, index);
    if (array == NULL)
      Py_CLEAR(result);
    else if (as_list)
      PyList_SetItem(result, i, array);
    else {
      if (PyDict_SetItem(result, PyTuple_GetItem(self->outputs, index), array) < 0) Py_CLEAR(result);
      Py_DECREF(array);
    }
  }
  return result;
}

/* ---- Waiting ---- */

static void tell_ended(void *user_data, clv_status status) {
  py_call *call = user_data;
  (void)status;
  pthread_mutex_lock(&call->lock);
  call->has_ended = true;
  pthread_cond_signal(&call->ended);
  pthread_mutex_unlock(&call->lock);
}

/* Waits until the run ends or POLL_NS have passed; returns whether it ended. */
static bool wait_a_while(py_call *call) {
  const uint64_t until_ns = now_ns() + POLL_NS;
  struct timespec until = {(time_t)(until_ns / 1000000000u), (long)(until_ns % 1000000000u)};
  pthread_mutex_lock(&call->lock);
  while (!call->has_ended) {
    if (pthread_cond_timedwait(&call->ended, &call->lock, &until) != 0) break;
  }
  bool has_ended = call->has_ended;
  pthread_mutex_unlock(&call->lock);
  return has_ended;
}

/* Runs in a thread of the session. Looks for signals meanwhile; if one raises an exception, cancels the run. */
static clv_status run_watched(py_call *call, clv_run_options *options, clv_error *error) {
  py_session *self = call->session;
  clv_run *run;
  options->done = tell_ended;
  PyThreadState *state = PyEval_SaveThread();
  clv_status status =
      clv_session_start(self->session, call->inputs, self->input_count, call->outputs, self->output_count, options, &run, error);
  while (status == CLV_OK && !wait_a_while(call)) {
    PyEval_RestoreThread(state);
    bool is_signalled = PyErr_CheckSignals() < 0;
    state = PyEval_SaveThread();
    if (!is_signalled) continue;
    clv_run_cancel(run);
    break;
  }
  if (status == CLV_OK) status = clv_run_wait(run, error);
  PyEval_RestoreThread(state);
  return status;
}

static clv_status run_here(py_call *call, const clv_run_options *options, clv_error *error) {
  py_session *self = call->session;
  clv_status status;
  Py_BEGIN_ALLOW_THREADS;
  status =
      clv_session_run_with(self->session, call->inputs, self->input_count, call->outputs, self->output_count, options, error);
  Py_END_ALLOW_THREADS;
  return status;
}

/* Waits for the lock without the GIL. */
static void lock_strings(py_session *self) {
  Py_BEGIN_ALLOW_THREADS;
  pthread_mutex_lock(&self->strings_lock);
  Py_END_ALLOW_THREADS;
}

static int read_timeout(PyObject *timeout, clv_run_options *options) {
  if (timeout == Py_None) return 0;
  options->time_limit_s = PyFloat_AsDouble(timeout);
  return options->time_limit_s == -1 && PyErr_Occurred() ? -1 : 0;
}

/* The tensor at an address, of a type whose sizes must be known. */
static int take_address(PyObject *address, const clv_tensor *type, clv_tensor *tensor) {
  *tensor = *type;
  tensor->data = PyLong_AsVoidPtr(address);
  if (tensor->data == NULL && PyErr_Occurred()) return -1;
  if (tensor->data == NULL) tensor->data = tensor; /* of an empty tensor: not read */
  return 0;
}

/* run_addresses(inputs, outputs): tuples with the address of every input and output. The memory has the types that the graph
 * declares, in C order, and the caller vouches for it. Meant for graphs without symbolic dimensions. */
static PyObject *session_run_addresses(py_session *self, PyObject *const *arguments, Py_ssize_t count) {
  if (count != 2 || PyTuple_Size(arguments[0]) != (Py_ssize_t)self->input_count ||
      PyTuple_Size(arguments[1]) != (Py_ssize_t)self->output_count) {
    return PyErr_Format(PyExc_TypeError, "run_addresses takes a tuple of %u inputs and one of %u outputs", self->input_count,
                        self->output_count);
  }
  py_call *call = begin_call(self);
  if (call == NULL) return NULL;
  const clv_graph *graph = self->plan->graph->graph;
  int taken = 0;
  for (uint32_t i = 0; taken == 0 && i < self->input_count; ++i)
    taken = take_address(PyTuple_GetItem(arguments[0], i), clv_graph_input_type(graph, i), &call->inputs[i]);
  for (uint32_t i = 0; taken == 0 && i < self->output_count; ++i)
    taken = take_address(PyTuple_GetItem(arguments[1], i), clv_graph_output_type(graph, i), &call->outputs[i]);
  PyObject *result = NULL;
  if (taken == 0) {
    clv_error error = {0};
    clv_run_options options = CLV_RUN_OPTIONS_INIT;
    options.user_data = call;
    const uint64_t begin_ns = now_ns();
    clv_status status = self->has_loops || self->is_long ? run_watched(call, &options, &error) : run_here(call, &options, &error);
    const uint64_t run_ns = now_ns() - begin_ns;
    if (status == CLV_OK) self->is_long = run_ns > (self->is_long ? SHORT_NS : LONG_NS);
    result = status != CLV_OK || PyErr_Occurred() ? fail(status, &error) : Py_NewRef(Py_None);
  }
  end_call(call);
  return result;
}

/* run(feeds, wanted, timeout, as_list) */
static PyObject *session_run(py_session *self, PyObject *const *arguments, Py_ssize_t count) {
  if (count != 4) return PyErr_Format(PyExc_TypeError, "run takes 4 arguments, not %zd", count);
  py_call *call = begin_call(self);
  if (call == NULL) return NULL;
  PyObject *result = NULL;
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  options.allocate = allocate_output;
  options.user_data = call;
  if (take_inputs(call, arguments[0]) == 0 && take_wanted(call, arguments[1]) == 0 && read_timeout(arguments[2], &options) == 0) {
    clv_error error = {0};
    if (self->has_strings) lock_strings(self);
    const uint64_t begin_ns = now_ns();
    clv_status status = self->has_loops || self->is_long ? run_watched(call, &options, &error) : run_here(call, &options, &error);
    const uint64_t run_ns = now_ns() - begin_ns;
    if (status == CLV_OK) self->is_long = run_ns > (self->is_long ? SHORT_NS : LONG_NS);
    result = status != CLV_OK || PyErr_Occurred() ? fail(status, &error)
                                                  : make_result(call, arguments[1], PyObject_IsTrue(arguments[3]) == 1);
    if (self->has_strings) pthread_mutex_unlock(&self->strings_lock);
  }
  end_call(call);
  return result;
}

/* ---- Verifying and tracing ---- */

static bool no_signal(void *user_data) {
  (void)user_data;
  PyGILState_STATE state = PyGILState_Ensure();
  bool is_signalled = PyErr_Occurred() != NULL || PyErr_CheckSignals() < 0;
  PyGILState_Release(state);
  return !is_signalled;
}

static clv_status verify(py_call *call, bool *equal, char **text, char **json, clv_error *error) {
  clv_verify_options options = CLV_VERIFY_OPTIONS_INIT;
  clv_verification *verification = NULL;
  clv_verify_result result = {.struct_size = sizeof result};
  options.go_on = no_signal;
  clv_status status =
      clv_session_verify(call->session->session, call->inputs, call->session->input_count, &options, &verification, error);
  if (status != CLV_OK) return status;
  clv_verification_get_result(verification, &result);
  *equal = result.equal;
  status = clv_verification_text(verification, CLV_FORM_TEXT, false, text, error);
  if (status == CLV_OK) status = clv_verification_text(verification, CLV_FORM_JSON, false, json, error);
  clv_verification_destroy(verification);
  return status;
}

/* verify(feeds): (whether all is equal, text, JSON) */
static PyObject *session_verify(py_session *self, PyObject *feeds) {
  py_call *call = begin_call(self);
  if (call == NULL) return NULL;
  PyObject *result = NULL;
  if (take_inputs(call, feeds) == 0) {
    clv_error error = {0};
    bool equal = false;
    char *text = NULL, *json = NULL;
    clv_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = verify(call, &equal, &text, &json, &error);
    Py_END_ALLOW_THREADS;
    result = status == CLV_OK ? Py_BuildValue("Oss", equal ? Py_True : Py_False, text, json) : fail(status, &error);
    clv_text_free(text);
    clv_text_free(json);
  }
  end_call(call);
  return result;
}

static PyObject *session_trace_start(py_session *self, PyObject *none) {
  (void)none;
  clv_session_trace_start(self->session);
  Py_RETURN_NONE;
}

/* trace_write(path, feeds or None): ends the recording and writes it. With `feeds`, measures the operators inside partitions. */
static PyObject *session_trace_write(py_session *self, PyObject *arguments) {
  PyObject *path, *feeds;
  if (!PyArg_ParseTuple(arguments, "OO", &path, &feeds)) return NULL;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_trace_options options = CLV_TRACE_OPTIONS_INIT;
  PyObject *result = NULL;
  clv_session_trace_stop(self->session);
  const char *text = scratch_text(&scratch, path);
  py_call *call = text == NULL ? NULL : begin_call(self);
  if (call != NULL && (feeds == Py_None || take_inputs(call, feeds) == 0)) {
    clv_status status;
    options.inputs = feeds == Py_None ? NULL : call->inputs;
    options.input_count = feeds == Py_None ? 0 : self->input_count;
    Py_BEGIN_ALLOW_THREADS;
    status = clv_session_trace_write(self->session, &options, text, NULL, NULL, &error);
    Py_END_ALLOW_THREADS;
    result = status == CLV_OK ? Py_NewRef(Py_None) : fail(status, &error);
  }
  if (call != NULL) end_call(call);
  scratch_finish(&scratch);
  return result;
}

/* ---- Bench ---- */

static const py_field bench_fields[] = {
    {"runs", PY_UINT32, offsetof(clv_bench_options, runs), 0},
    {"duration_s", PY_SECONDS, offsetof(clv_bench_options, duration_s), 0},
    {"warmup", PY_UINT32, offsetof(clv_bench_options, warmup), 0},
    {"steps", PY_FLAG, offsetof(clv_bench_options, steps), 0},
    {"operators", PY_FLAG, offsetof(clv_bench_options, operators), 0},
    {NULL, PY_TEXT, 0, 0},
};

static void tell_progress(void *user_data, const clv_bench_progress *progress) {
  PyObject *tell = user_data;
  PyGILState_STATE state = PyGILState_Ensure();
  if (!PyErr_Occurred()) {
    const bool is_timed = progress->of == 0;
    PyObject *result =
        PyObject_CallFunction(tell, "sdd", is_timed ? "seconds" : "runs", is_timed ? progress->seconds : (double)progress->done,
                              is_timed ? progress->of_seconds : (double)progress->of);
    Py_XDECREF(result); /* an exception stays set; go_on() sees it */
  }
  PyGILState_Release(state);
}

static clv_status bench(py_call *call, const clv_bench_options *options, clv_bench **made, char **text, char **json,
                        clv_error *error) {
  const py_session *self = call->session;
  clv_bench_subject subject = CLV_BENCH_SUBJECT_INIT;
  subject.session = self->session;
  subject.inputs = call->inputs;
  subject.input_count = self->input_count;
  clv_status status = clv_bench_create(self->plan->graph->owner->context, options, made, error);
  if (status == CLV_OK) status = clv_bench_measure(*made, &subject, error);
  if (status == CLV_OK) status = clv_bench_details(*made, CLV_BENCH_USUAL, CLV_FORM_TEXT, text, error);
  if (status == CLV_OK) status = clv_bench_details(*made, CLV_BENCH_USUAL, CLV_FORM_JSON, json, error);
  return status;
}

static PyObject *samples(const clv_bench_figures *figures) {
  PyObject *list = PyList_New(0);
  for (uint64_t i = 0; list != NULL && i < figures->run_count; ++i) {
    PyObject *item = PyFloat_FromDouble(figures->runs_ms[i]);
    if (item == NULL || PyList_Append(list, item) < 0) Py_CLEAR(list);
    Py_XDECREF(item);
  }
  return list;
}

/* bench(feeds, options, tell or None): (times of the runs in ms, predicted ms, first run ms, text, JSON) */
static PyObject *session_bench(py_session *self, PyObject *arguments) {
  PyObject *feeds, *given, *tell;
  if (!PyArg_ParseTuple(arguments, "OOO", &feeds, &given, &tell)) return NULL;
  clv_bench_options options = CLV_BENCH_OPTIONS_INIT;
  py_scratch scratch = {NULL};
  py_call *call = begin_call(self);
  PyObject *result = NULL;
  options.go_on = no_signal;
  options.user_data = tell;
  if (tell != Py_None) options.progress = tell_progress;
  if (call != NULL && take_inputs(call, feeds) == 0 && read_options(given, bench_fields, &options, &scratch) == 0) {
    clv_error error = {0};
    clv_bench *made = NULL;
    clv_bench_figures figures = {.struct_size = sizeof figures};
    char *text = NULL, *json = NULL;
    clv_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = bench(call, &options, &made, &text, &json, &error);
    Py_END_ALLOW_THREADS;
    if (status != CLV_OK || PyErr_Occurred())
      fail(status, &error);
    else if (clv_bench_row(made, 0, &figures))
      result = Py_BuildValue("Nddss", samples(&figures), figures.predicted_ms, figures.first_run_ms, text, json);
    clv_text_free(text);
    clv_text_free(json);
    clv_bench_destroy(made);
  }
  if (call != NULL) end_call(call);
  scratch_finish(&scratch);
  return result;
}

/* ---- Asynchronous runs ---- */

typedef struct py_run {
  PyObject ob_base;
  py_session *session;
  PyObject *wanted;
  clv_run *run; /* NULL: it was waited for */
  py_call *call;
} py_run;

static void tell_done(void *user_data, clv_status status) {
  py_call *call = user_data;
  (void)status;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *result = PyObject_CallFunctionObjArgs(call->done, NULL);
  if (result == NULL) PyErr_WriteUnraisable(call->done);
  Py_XDECREF(result);
  PyGILState_Release(state);
}

/* start(feeds, wanted, timeout, done): done() is called in a thread of the session when the run ends. */
static PyObject *session_start(py_session *self, PyObject *arguments) {
  PyObject *feeds, *wanted, *timeout, *done;
  if (!PyArg_ParseTuple(arguments, "OOOO", &feeds, &wanted, &timeout, &done)) return NULL;
  allocfunc allocate = (allocfunc)PyType_GetSlot(run_type, Py_tp_alloc);
  py_run *run = (py_run *)allocate(run_type, 0);
  if (run == NULL) return NULL;
  clv_run_options options = CLV_RUN_OPTIONS_INIT;
  run->session = (py_session *)Py_NewRef((PyObject *)self);
  run->wanted = Py_NewRef(wanted);
  run->call = begin_call(self);
  if (run->call == NULL || take_inputs(run->call, feeds) < 0 || take_wanted(run->call, wanted) < 0 ||
      read_timeout(timeout, &options) < 0) {
    Py_DECREF((PyObject *)run);
    return NULL;
  }
  options.allocate = allocate_output;
  options.user_data = run->call;
  options.done = tell_done;
  run->call->done = Py_NewRef(done);
  clv_error error = {0};
  clv_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = clv_session_start(self->session, run->call->inputs, self->input_count, run->call->outputs, self->output_count,
                             &options, &run->run, &error);
  Py_END_ALLOW_THREADS;
  if (status == CLV_OK) return (PyObject *)run;
  Py_DECREF((PyObject *)run);
  return fail(status, &error);
}

/* Waits for the run, and returns its outputs. */
static PyObject *run_result(py_run *self, PyObject *none) {
  (void)none;
  clv_error error = {0};
  clv_status status;
  clv_run *run = self->run;
  if (run == NULL) return PyErr_Format(PyExc_RuntimeError, "the result of this run was already taken");
  self->run = NULL;
  Py_BEGIN_ALLOW_THREADS;
  status = clv_run_wait(run, &error);
  Py_END_ALLOW_THREADS;
  if (status != CLV_OK) return fail(status, &error);
  return make_result(self->call, self->wanted, false);
}

static PyObject *run_cancel(py_run *self, PyObject *none) {
  (void)none;
  Py_BEGIN_ALLOW_THREADS;
  clv_run_cancel(self->run);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

static void run_dealloc(py_run *self) {
  if (self->run != NULL) {
    Py_BEGIN_ALLOW_THREADS;
    clv_run_cancel(self->run);
    if (clv_run_wait(self->run, NULL) != CLV_OK) { /* nobody asks for the result */
    }
    Py_END_ALLOW_THREADS;
  }
  if (self->call != NULL) end_call(self->call);
  Py_XDECREF((PyObject *)self->session);
  Py_XDECREF((PyObject *)self->wanted);
  free_object((PyObject *)self);
}

static PyMethodDef run_methods[] = {
    {"result", (PyCFunction)run_result, METH_NOARGS, NULL},
    {"cancel", (PyCFunction)run_cancel, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot run_slots[] = {{Py_tp_dealloc, run_dealloc}, {Py_tp_methods, run_methods}, {0, NULL}};
static PyType_Spec run_spec = {"cleave._cleave.Run", sizeof(py_run), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                               run_slots};

/* ---- Sessions ---- */

static const py_field session_fields[] = {
    {"deterministic", PY_FLAG, offsetof(clv_session_options, deterministic), 0},
    {"tune", PY_FLAG, offsetof(clv_session_options, tune), 0},
    {"in_flight", PY_UINT32, offsetof(clv_session_options, in_flight), 0},
    {"prepared_shapes", PY_UINT32, offsetof(clv_session_options, prepared_shapes), 0},
    {"device_time_limit_s", PY_SECONDS, offsetof(clv_session_options, device_time_limit_s), 0},
    {"no_fallback", PY_FLAG, offsetof(clv_session_options, no_fallback), 0},
    {"bucket_multiple", PY_UINT32, offsetof(clv_session_options, bucket_multiple), 0},
    {"precision", PY_INT32, offsetof(clv_session_options, precision), 0},
    {NULL, PY_TEXT, 0, 0},
};

/* A tuple of the first items of a list of tuples. */
static PyObject *first_items(PyObject *list) {
  PyObject *tuple = list == NULL ? NULL : PyTuple_New(PyList_Size(list));
  for (Py_ssize_t i = 0; tuple != NULL && i < PyList_Size(list); ++i) {
    PyObject *name = Py_NewRef(PyTuple_GetItem(PyList_GetItem(list, i), 0));
    PyUnicode_InternInPlace(&name);
    if (PyTuple_SetItem(tuple, i, name) < 0) Py_CLEAR(tuple);
  }
  Py_XDECREF(list);
  return tuple;
}

static bool any_loops(const clv_plan *plan) {
  clv_plan_info info = {.struct_size = sizeof info};
  clv_plan_get_info(plan, &info);
  for (uint32_t i = 0; i < info.node_count; ++i) {
    clv_placed_node_info node = {.struct_size = sizeof node};
    clv_plan_node(plan, i, &node);
    if (node.device == CLV_NO_INDEX) continue;
    if (strcmp(node.op, "Loop") == 0 || strcmp(node.op, "Scan") == 0 || strcmp(node.op, "If") == 0) return true;
  }
  return false;
}

/* Fills what is read in every run. */
static int describe(py_session *self, PyObject *keeps) {
  PyObject *graph = (PyObject *)self->plan->graph;
  PyObject *outputs = PyObject_CallMethod(graph, "outputs", NULL);
  self->inputs = first_items(PyObject_CallMethod(graph, "inputs", NULL));
  outputs = first_items(outputs);
  self->outputs = outputs == NULL ? NULL : PySequence_Concat(outputs, keeps);
  Py_XDECREF(outputs);
  if (self->inputs == NULL || self->outputs == NULL) return -1;
  self->input_count = (uint32_t)PyTuple_Size(self->inputs);
  self->output_count = (uint32_t)PyTuple_Size(self->outputs);
  for (uint32_t i = 0; i < clv_graph_output_count(self->plan->graph->graph); ++i) {
    self->has_strings |= clv_graph_output_type(self->plan->graph->graph, i)->dtype == CLV_STRING;
  }
  self->has_loops = any_loops(self->plan->plan);
  self->is_long = true;
  return 0;
}

/* Session(plan, keeps, options, compiled): `keeps` is a tuple of the names of the plan's kept values. */
static PyObject *session_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  PyObject *plan, *keeps, *given, *compiled;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O!O!OO", plan_type, &plan, &PyTuple_Type, &keeps, &given, &compiled)) return NULL;
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  py_session *self = (py_session *)allocate(type, 0);
  if (self == NULL) return NULL;
  pthread_mutex_init(&self->strings_lock, NULL);
  self->plan = (py_plan *)Py_NewRef(plan);
  if (compiled != Py_None) {
    self->compiled = Py_NewRef(compiled);
    options = *compiled_session_options(compiled);
  }
  bool is_read = read_options(given, session_fields, &options, &scratch) == 0 && describe(self, keeps) == 0;
  if (is_read) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_session_create(self->plan->plan, &options, &self->session, &error);
    Py_END_ALLOW_THREADS;
  }
  self->options = options;
  self->options.compiled = NULL;
  scratch_finish(&scratch); /* no option of sessions points into it */
  if (is_read && status == CLV_OK) return (PyObject *)self;
  if (is_read) fail(status, &error);
  Py_DECREF((PyObject *)self);
  return NULL;
}

static void session_dealloc(py_session *self) {
  Py_BEGIN_ALLOW_THREADS;
  clv_session_destroy(self->session);
  Py_END_ALLOW_THREADS;
  pthread_mutex_destroy(&self->strings_lock);
  Py_XDECREF((PyObject *)self->plan);
  Py_XDECREF((PyObject *)self->compiled);
  Py_XDECREF((PyObject *)self->inputs);
  Py_XDECREF((PyObject *)self->outputs);
  free_object((PyObject *)self);
}

static PyObject *session_names(py_session *self, PyObject *none) {
  (void)none;
  return PyTuple_Pack(2, self->inputs, self->outputs);
}

/* compile(directory, devices options): writes the plan's directory with the session's options. */
static PyObject *session_compile(py_session *self, PyObject *arguments) {
  PyObject *path, *devices;
  if (!PyArg_ParseTuple(arguments, "OO", &path, &devices)) return NULL;
  clv_compiled_options options = CLV_COMPILED_OPTIONS_INIT;
  clv_devices_options opened = CLV_DEVICES_OPTIONS_INIT;
  py_scratch scratch = {NULL};
  clv_error error = {0};
  clv_status status = CLV_INVALID_ARGUMENT;
  const char *text = scratch_text(&scratch, path);
  bool is_read = text != NULL && read_options(devices, devices_fields, &opened, &scratch) == 0;
  options.session = &self->options;
  options.devices = &opened;
  if (is_read) {
    Py_BEGIN_ALLOW_THREADS;
    status = clv_compiled_write(self->plan->plan, &options, text, &error);
    Py_END_ALLOW_THREADS;
  }
  scratch_finish(&scratch);
  if (!is_read) return NULL;
  return status == CLV_OK ? Py_NewRef(Py_None) : fail(status, &error);
}

static PyMethodDef session_methods[] = {
    {"run", (PyCFunction)(void (*)(void))session_run, METH_FASTCALL, NULL},
    {"start", (PyCFunction)session_start, METH_VARARGS, NULL},
    {"run_addresses", (PyCFunction)(void (*)(void))session_run_addresses, METH_FASTCALL, NULL},
    {"names", (PyCFunction)session_names, METH_NOARGS, NULL},
    {"verify", (PyCFunction)session_verify, METH_O, NULL},
    {"compile", (PyCFunction)session_compile, METH_VARARGS, NULL},
    {"bench", (PyCFunction)session_bench, METH_VARARGS, NULL},
    {"trace_start", (PyCFunction)session_trace_start, METH_NOARGS, NULL},
    {"trace_write", (PyCFunction)session_trace_write, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot session_slots[] = {
    {Py_tp_new, session_new}, {Py_tp_dealloc, session_dealloc}, {Py_tp_methods, session_methods}, {0, NULL}};
static PyType_Spec session_spec = {"cleave._cleave.Session", sizeof(py_session), 0, Py_TPFLAGS_DEFAULT, session_slots};

int add_session_types(PyObject *module) {
  session_type = add_type(module, &session_spec);
  run_type = session_type == NULL ? NULL : add_type(module, &run_spec);
  return run_type == NULL ? -1 : 0;
}
