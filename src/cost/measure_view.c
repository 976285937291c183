/* Measures one view: compiles it on a device, uploads its weights, generates inputs and runs it repeatedly. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "cost/measure.h"

#define LONGEST_NS UINT64_C(250000000) /* limit on the total time of an item's runs, but at least LEAST_RUNS are made */
#define SHORTEST_NS UINT64_C(1500000)  /* minimum total time of an item's runs: items of a few microseconds get more runs */
#define WARM_NS UINT64_C(2000000)      /* total time of the warm-up runs; at least one is made */
enum { LEAST_RUNS = 3, MOST_WARM_RUNS = 20, MOST_ATTEMPTS = 3, DISTURBED = 12 /* maximum spread: 1/12 of the time */ };

typedef struct rig {
  const clv__device *device;
  const clv_graph_view *view;
  clv__arena arena;
  clv_executable *executable;
  clv_executable_info info;
  uint32_t weight_count;
  clv_weight **weights;
  clv_instance *instance;
  clv_stream *stream;
  clv_binding *inputs, *outputs;
  clv_buffer **buffers; /* inputs, then outputs; NULL entries if the device works in host memory */
  int64_t integer;      /* the value of every element of an integer input */
} rig;

static int compare_times(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

clv__measure clv__measure_of(uint64_t *samples, uint32_t count) {
  if (count == 0) return (clv__measure){0};
  qsort(samples, count, sizeof *samples, compare_times);
  uint64_t median = count % 2 == 1 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
  return (clv__measure){median, (samples[count - 1 - count / 4] - samples[count / 4]) / 2, count};
}

uint32_t clv__measure_runs(uint32_t runs, uint64_t once_ns) {
  if (once_ns == 0) once_ns = 1;
  uint64_t most = LONGEST_NS / once_ns, least = SHORTEST_NS / once_ns;
  uint64_t count = runs > least ? runs : least;
  if (count > most) count = most;
  if (count > CLV__MEASURE_MOST_RUNS) count = CLV__MEASURE_MOST_RUNS;
  return count < LEAST_RUNS ? (runs < LEAST_RUNS ? runs : LEAST_RUNS) : (uint32_t)count;
}

/* ---- Preparation ---- */

static clv_status find_weight(const rig *r, const char *name, const clv_tensor **data, clv_error *error) {
  for (uint32_t v = 0; v < r->view->value_count; ++v) {
    *data = clv__view_type(r->view, v);
    if ((*data)->data != NULL && strcmp(r->view->graph->values[r->view->values[v]].name, name) == 0) return CLV_OK;
  }
  return clv__error_set(error, CLV_INTERNAL_ERROR, "the executable requests weight '%s', which no node reads", name);
}

static clv_status compile(rig *r, clv_error *error) {
  const clv_backend *backend = r->device->backend;
  const clv_compile_options options = {.struct_size = sizeof options};
  clv__error_clear(error);
  CLV__TRY(backend->compile(r->device->handle, r->view, &options, &r->executable, error));
  if (backend->finish != NULL) CLV__TRY(backend->finish(r->device->handle, &r->executable, 1, error));
  r->info.struct_size = sizeof r->info;
  backend->executable_info(r->device->handle, r->executable, &r->info);
  r->weights = clv__arena_allocate_zero(&r->arena, r->info.weight_count, sizeof *r->weights);
  if (r->weights == NULL) return clv__error_memory(error, r->info.weight_count * sizeof *r->weights);
  for (uint32_t i = 0; i < r->info.weight_count; ++i) {
    const clv_tensor *data = NULL;
    CLV__TRY(find_weight(r, r->info.weights[i], &data, error));
    CLV__TRY(backend->weight_upload(r->device->handle, r->info.weights[i], data, &r->weights[i], error));
    ++r->weight_count;
  }
  return CLV_OK;
}

/* Fills the tensor according to its dtype: with pseudorandom floats in [-1, 1), with `integer` in every element, or with
 * pseudorandom bools. The sequence is the same on every call. */
static void make_up(const clv_tensor *tensor, size_t count, int64_t integer) {
  uint64_t state = 0x9e3779b97f4a7c15u;
  size_t size_bytes;
  if (clv__tensor_size_bytes(tensor, &size_bytes)) memset(tensor->data, 0, size_bytes);
  for (size_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    clv__tensor_put(tensor, i, (double)((int64_t)(state >> 40) - (1 << 23)) / (1 << 23), integer, state >> 63 != 0);
  }
}

/* Allocates one operand in the memory that the device uses: host memory or a device buffer. Fills it if it is an input. */
static clv_status make_binding(rig *r, const clv_tensor *type, bool is_input, clv_buffer **buffer, clv_binding *binding,
                               clv_error *error) {
  const clv__device *device = r->device;
  const clv_allocator *allocator = r->arena.allocator;
  size_t size_bytes, count;
  *binding = (clv_binding){.type = *type};
  binding->type.data = NULL;
  if (!clv__tensor_size_bytes(type, &size_bytes) || !clv__tensor_count(type, &count)) {
    return clv__error_set(error, CLV_NOT_SUPPORTED, "the size of an input or output is unknown");
  }
  bool on_host = device->space == CLV__SPACE_HOST;
  clv_tensor host = *type;
  host.data = on_host ? clv__arena_allocate_data(&r->arena, size_bytes == 0 ? 1 : size_bytes) : NULL;
  if (!on_host && is_input) host.data = clv__allocate(allocator, size_bytes);
  if (host.data == NULL && (on_host || is_input)) return clv__error_memory(error, size_bytes);
  if (is_input) make_up(&host, count, r->integer);
  if (on_host) {
    if (!is_input) memset(host.data, 0, size_bytes); /* so that the measured runs cause no page faults */
    binding->type.data = host.data;
    return CLV_OK;
  }
  clv_status status = device->backend->buffer_alloc(device->handle, size_bytes == 0 ? 1 : size_bytes, buffer, error);
  if (status == CLV_OK) {
    binding->buffer = *buffer;
    binding->type.data = device->backend->buffer_host_pointer(device->handle, *buffer);
  }
  if (status == CLV_OK && is_input && size_bytes > 0) {
    status = device->backend->copy_in(device->handle, r->stream, *buffer, 0, host.data, size_bytes, error);
    if (status == CLV_OK) status = device->backend->stream_synchronize(device->handle, r->stream, error);
  }
  clv__release(allocator, host.data);
  return status;
}

static clv_status make_bindings(rig *r, clv_error *error) {
  const clv_graph_view *view = r->view;
  r->inputs = clv__arena_allocate_zero(&r->arena, view->input_count, sizeof *r->inputs);
  r->outputs = clv__arena_allocate_zero(&r->arena, view->output_count, sizeof *r->outputs);
  r->buffers = clv__arena_allocate_zero(&r->arena, (size_t)view->input_count + view->output_count, sizeof *r->buffers);
  if (r->inputs == NULL || r->outputs == NULL || r->buffers == NULL) {
    return clv__error_memory(error, view->value_count * sizeof *r->inputs);
  }
  for (uint32_t i = 0; i < view->input_count; ++i) {
    CLV__TRY(make_binding(r, clv__view_type(view, view->inputs[i]), true, &r->buffers[i], &r->inputs[i], error));
  }
  for (uint32_t i = 0; i < view->output_count; ++i) {
    CLV__TRY(make_binding(r, clv__view_type(view, view->outputs[i]), false, &r->buffers[view->input_count + i], &r->outputs[i],
                          error));
  }
  return CLV_OK;
}

static clv_status make_instance(rig *r, clv_error *error) {
  const clv_graph_view *view = r->view;
  clv_tensor *types = clv__arena_allocate_zero(&r->arena, view->input_count, sizeof *types);
  if (types == NULL) return clv__error_memory(error, view->input_count * sizeof *types);
  for (uint32_t i = 0; i < view->input_count; ++i) types[i] = *clv__view_type(view, view->inputs[i]);
  return r->device->backend->instance_create(r->device->handle, r->executable, types, view->input_count, r->weights,
                                             r->weight_count, &r->instance, error);
}

static void finish(rig *r) {
  const clv_backend *backend = r->device->backend;
  clv_device *handle = r->device->handle;
  clv_error ignored;
  if (r->stream != NULL) (void)backend->stream_synchronize(handle, r->stream, &ignored);
  if (r->instance != NULL) backend->instance_destroy(handle, r->instance);
  for (uint32_t i = 0; r->buffers != NULL && i < r->view->input_count + r->view->output_count; ++i)
    backend->buffer_free(handle, r->buffers[i]);
  for (uint32_t i = r->weight_count; i-- > 0;) backend->weight_release(handle, r->weights[i]);
  if (r->executable != NULL) backend->executable_destroy(handle, r->executable);
  if (r->stream != NULL) backend->stream_destroy(handle, r->stream);
  clv__arena_finish(&r->arena);
}

/* ---- Running ---- */

static clv_status refuse_output(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding, clv_error *error) {
  (void)cookie;
  (void)index;
  (void)type;
  (void)binding;
  return clv__error_set(error, CLV_NOT_SUPPORTED, "an output's size depends on data");
}

static clv_status run_once(const rig *r, uint64_t *time_ns, clv_error *error) {
  const clv_backend *backend = r->device->backend;
  clv_execute_args args = {
      .struct_size = sizeof args,
      .input_count = r->view->input_count,
      .output_count = r->view->output_count,
      .inputs = r->inputs,
      .outputs = r->outputs,
      .allocate_output = refuse_output,
  };
  uint64_t start = clv__clock_ns();
  CLV__TRY(backend->execute(r->device->handle, r->instance, r->stream, &args, error));
  CLV__TRY(backend->stream_synchronize(r->device->handle, r->stream, error));
  *time_ns = clv__clock_ns() - start;
  return CLV_OK;
}

/* How often the system has preempted this process. */
static long count_interruptions(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Uses only the runs that were not interrupted. If there are too few, uses the fastest third of all runs. */
static clv__measure measure_of_calm(uint64_t *samples, const bool *is_calm, uint32_t count, bool *is_good) {
  uint32_t calm = 0;
  for (uint32_t i = 0; i < count; ++i) calm += is_calm[i];
  *is_good = calm >= LEAST_RUNS || calm == count;
  if (!*is_good) {
    (void)clv__measure_of(samples, count); /* called because it sorts the samples */
    return clv__measure_of(samples, (count + 2) / 3);
  }
  calm = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (is_calm[i]) samples[calm++] = samples[i];
  }
  return clv__measure_of(samples, calm);
}

/* Measures again, up to MOST_ATTEMPTS times, if the times are spread too far or too many runs were interrupted. Keeps the
 * smallest median. */
static clv_status measure(const rig *r, uint32_t runs, clv__measure *result, clv_error *error) {
  uint64_t samples[CLV__MEASURE_MOST_RUNS], once = 0, warm = 0;
  bool is_calm[CLV__MEASURE_MOST_RUNS], is_good = false;
  for (uint32_t i = 0; i == 0 || (i < MOST_WARM_RUNS && warm < WARM_NS); ++i) {
    CLV__TRY(run_once(r, &once, error));
    warm += once;
  }
  for (uint32_t attempt = 0; attempt < MOST_ATTEMPTS && !is_good; ++attempt) {
    uint32_t count = clv__measure_runs(runs, once);
    for (uint32_t i = 0; i < count; ++i) {
      long before = count_interruptions();
      CLV__TRY(run_once(r, &samples[i], error));
      is_calm[i] = count_interruptions() == before;
    }
    clv__measure made = measure_of_calm(samples, is_calm, count, &is_good);
    if (made.time_ns > CLV__PROFILE_MAX_NS) made.time_ns = CLV__PROFILE_MAX_NS;
    if (made.spread_ns > CLV__PROFILE_MAX_NS) made.spread_ns = CLV__PROFILE_MAX_NS;
    if (attempt == 0 || made.time_ns < result->time_ns) *result = made;
    is_good = is_good && made.spread_ns * DISTURBED <= made.time_ns;
    once = result->time_ns;
  }
  return CLV_OK;
}

static clv_status measure_with(const clv__device *device, const clv_graph_view *view, uint32_t runs, int64_t integer,
                               clv__measure *result, uint64_t *scratch_bytes, clv_error *error) {
  rig r = {.device = device, .view = view, .integer = integer};
  clv__arena_init(&r.arena, view->graph->allocator);
  clv_status status = compile(&r, error);
  if (status == CLV_OK) status = device->backend->stream_create(device->handle, &r.stream, error);
  if (status == CLV_OK) status = make_instance(&r, error);
  if (status == CLV_OK) status = make_bindings(&r, error);
  if (status == CLV_OK) status = measure(&r, runs, result, error);
  if (status == CLV_OK && scratch_bytes != NULL) *scratch_bytes = r.info.scratch_bytes;
  finish(&r);
  return status;
}

/* Integer inputs are mostly indices or divisors. Sets them to 1 first, because a divisor must not be 0. If that fails, sets
 * them to 0, because 1 may be out of range for an index. */
clv_status clv__measure_view(const clv__device *device, const clv_graph_view *view, uint32_t runs, clv__measure *result,
                             uint64_t *scratch_bytes, clv_error *error) {
  clv_status status = measure_with(device, view, runs, 1, result, scratch_bytes, error);
  bool retry = status != CLV_OK && status != CLV_OUT_OF_MEMORY && status != CLV_TOO_LARGE;
  return retry ? measure_with(device, view, runs, 0, result, scratch_bytes, error) : status;
}
