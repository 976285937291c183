/* Measures the launch time, the copies and the peaks of a device. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "cost/measure.h"
#include "cost/peaks.h"

/* Number of copies enqueued together. The time of a copy is the time of a batch minus the time of a single copy, so the wait
 * at the end is not counted: it is part of the launch. The batch is small because plans enqueue few copies between two waits,
 * and a device takes less time per copy in a larger batch. */
enum { BATCH = 2 };

/* ---- Graphs of one node ---- */

static clv_status add_value(clv__builder *builder, const char *name, const clv_tensor *type, bool is_weight, clv_value_id *value,
                            clv_error *error) {
  clv_tensor made = *type;
  size_t count, size_bytes;
  CLV__TRY(clv__builder_value(builder, name, value, error));
  made.data = NULL;
  if (is_weight) {
    if (!clv__tensor_count(type, &count) || !clv__tensor_size_bytes(type, &size_bytes))
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "the size of a weight is unknown");
    made.data = clv__arena_allocate_data(clv__builder_arena(builder), size_bytes);
    if (made.data == NULL) return clv__error_memory(error, size_bytes);
    memset(made.data, 0, size_bytes);
    for (size_t i = 0; i < count && type->dtype == CLV_F32; ++i)
      ((float *)made.data)[i] = (float)(i % 17) / 256.0f + 0.01f; /* avoids zeros, denormals and growing sums */
  }
  clv__builder_type(builder, *value, &made);
  return is_weight ? CLV_OK : clv__builder_input(builder, *value, error);
}

static clv_status build_single(clv__builder *builder, const char *op, const clv_tensor *inputs, uint32_t input_count,
                               const clv_tensor *weights, uint32_t weight_count, clv_error *error) {
  clv_value_id operands[8], output;
  char name[16];
  if (input_count + weight_count > 8) return clv__error_set(error, CLV_INVALID_ARGUMENT, "more than 8 operands");
  CLV__TRY(clv__builder_import(builder, "", 17, error));
  for (uint32_t i = 0; i < input_count + weight_count; ++i) {
    bool is_weight = i >= input_count;
    snprintf(name, sizeof name, "%c%u", is_weight ? 'w' : 'x', i);
    CLV__TRY(add_value(builder, name, is_weight ? &weights[i - input_count] : &inputs[i], is_weight, &operands[i], error));
  }
  CLV__TRY(clv__builder_value(builder, "y", &output, error));
  CLV__TRY(clv__builder_node(builder, op, "", op, operands, input_count + weight_count, &output, 1, NULL, 0, error));
  return clv__builder_output(builder, output, error);
}

/* Creates a graph of one `op` node over inputs and weights of these types, with one f32 output and no attributes. */
static clv_status make_single(const clv_allocator *allocator, const char *op, const clv_tensor *inputs, uint32_t input_count,
                              const clv_tensor *weights, uint32_t weight_count, clv_graph **graph, clv_error *error) {
  clv__builder *builder;
  *graph = NULL;
  CLV__TRY(clv__builder_create(allocator, &builder, error));
  clv_status status = build_single(builder, op, inputs, input_count, weights, weight_count, error);
  if (status == CLV_OK) return clv__builder_finish(builder, graph, error);
  clv__builder_destroy(builder);
  return status;
}

/* Measures a graph of one node if the device supports it. */
static clv_status measure_single(const clv__device *device, const clv_graph *graph, uint32_t runs, clv__measure *measure,
                                 clv_error *error) {
  clv__shapes *shapes;
  clv_graph_view *whole;
  clv__arena arena;
  CLV__TRY(clv__shapes_infer(graph, NULL, 0, 0, &shapes, error));
  clv__arena_init(&arena, graph->allocator);
  clv_status status = clv__view_create_whole(graph, shapes->types, &arena, &whole, error);
  if (status == CLV_OK) {
    clv_verdict verdict = {0};
    device->backend->supports(device->handle, whole, 0, &verdict);
    if (!verdict.supported) status = clv__error_set(error, CLV_NOT_SUPPORTED, "%.150s", verdict.reason);
  }
  if (status == CLV_OK) status = clv__measure_view(device, whole, runs, measure, NULL, error);
  clv__arena_finish(&arena);
  clv__shapes_destroy(shapes);
  return status;
}

/* Measures a node with `inputs` operands of the same f32 shape, of which the last `weights` are constants. False if the device
 * cannot run it. */
static bool try_single(const clv__device *device, const clv_allocator *allocator, const char *op, uint32_t inputs,
                       uint32_t weights, int32_t rank, const int64_t *dims, uint32_t runs, clv__measure *measure) {
  clv_tensor types[4];
  clv_graph *graph;
  clv_error ignored;
  for (uint32_t i = 0; i < 4; ++i) types[i] = clv__tensor_make(CLV_F32, rank, dims, NULL);
  if (make_single(allocator, op, types, inputs - weights, types, weights, &graph, &ignored) != CLV_OK) return false;
  bool done = measure_single(device, graph, runs, measure, &ignored) == CLV_OK;
  clv__graph_destroy(graph);
  return done;
}

/* ---- Launch and peaks ---- */

typedef struct probe {
  const char *op;
  uint32_t inputs, weights;
  int32_t rank;
} probe;

static void measure_launch(const clv__device *device, const clv_allocator *allocator, uint32_t runs, clv__measure *launch) {
  static const probe probes[] = {{"Relu", 1, 0, 4}, {"Add", 2, 0, 4},    {"Sigmoid", 1, 0, 4},
                                 {"Mul", 2, 0, 4},  {"MatMul", 2, 1, 2}, {"Conv", 2, 1, 4}};
  static const int64_t ones[] = {1, 1, 1, 1};
  *launch = (clv__measure){0};
  for (size_t i = 0; i < sizeof probes / sizeof *probes; ++i) { /* with almost no work, the shortest time is the launch */
    clv__measure measure;
    const probe *p = &probes[i];
    if (!try_single(device, allocator, p->op, p->inputs, p->weights, p->rank, ones, runs * 5, &measure)) continue;
    if (launch->runs == 0 || measure.time_ns < launch->time_ns) *launch = measure;
  }
}

static double rate(double amount, const clv__measure *measure, const clv__measure *launch) {
  return measure->time_ns > launch->time_ns ? amount / ((double)(measure->time_ns - launch->time_ns) * 1e-9) : 0;
}

/* Measures the largest product that the device can run. Tries large sizes first, because only large nodes reach the peak. */
static double peak_flops(const clv__device *device, const clv_allocator *allocator, uint32_t runs, const clv__measure *launch) {
  for (int64_t n = 768; n >= 96; n /= 2) {
    clv__measure measure;
    const int64_t square[] = {n, n}, image[] = {n / 16, n / 16, 3, 3};
    if (try_single(device, allocator, "MatMul", 2, 1, 2, square, runs, &measure) ||
        try_single(device, allocator, "Gemm", 2, 1, 2, square, runs, &measure)) {
      return rate(2.0 * (double)n * (double)n * (double)n, &measure, launch);
    }
    if (try_single(device, allocator, "Conv", 2, 1, 4, image, runs, &measure)) { /* a 3x3 kernel on a 3x3 image */
      return rate(2.0 * 9.0 * (double)(n / 16) * (double)(n / 16) * (double)(n / 16), &measure, launch);
    }
  }
  return 0;
}

static double peak_bytes(const clv__device *device, const clv_allocator *allocator, uint32_t runs, const clv__measure *launch) {
  static const probe probes[] = {{"Add", 2, 0, 4}, {"Mul", 2, 0, 4}, {"Relu", 1, 0, 4}, {"Sigmoid", 1, 0, 4}};
  for (int64_t height = 4096; height >= 1; height /= 4) {
    const int64_t dims[] = {1, 1, height, 1024};
    for (size_t i = 0; i < sizeof probes / sizeof *probes; ++i) {
      clv__measure measure;
      if (!try_single(device, allocator, probes[i].op, probes[i].inputs, 0, 4, dims, runs, &measure)) continue;
      return rate((double)(probes[i].inputs + 1) * (double)height * 1024.0 * sizeof(float), &measure, launch);
    }
  }
  return 0;
}

/* ---- Copies ---- */

typedef struct copier {
  const clv__device *device;
  clv_stream *stream;
  clv_buffer *buffer;
  void *host;
  bool into_device;
} copier;

static clv_status copy_batch(const copier *c, uint64_t size_bytes, uint32_t count, uint64_t *time_ns, clv_error *error) {
  const clv_backend *backend = c->device->backend;
  uint64_t start = clv__clock_ns();
  for (uint32_t i = 0; i < count; ++i) {
    CLV__TRY(c->into_device ? backend->copy_in(c->device->handle, c->stream, c->buffer, 0, c->host, size_bytes, error)
                            : backend->copy_out(c->device->handle, c->stream, c->host, c->buffer, 0, size_bytes, error));
  }
  CLV__TRY(backend->stream_synchronize(c->device->handle, c->stream, error));
  *time_ns = clv__clock_ns() - start;
  return CLV_OK;
}

static clv_status measure_copy(const copier *c, uint64_t size_bytes, uint32_t runs, clv__measure *measure, clv_error *error) {
  uint64_t samples[CLV__MEASURE_MOST_RUNS], one, all;
  CLV__TRY(copy_batch(c, size_bytes, BATCH, &all, error));
  uint32_t count = clv__measure_runs(runs, all);
  for (uint32_t i = 0; i < count; ++i) {
    CLV__TRY(copy_batch(c, size_bytes, 1, &one, error));
    CLV__TRY(copy_batch(c, size_bytes, BATCH, &all, error));
    samples[i] = all > one ? (all - one) / (BATCH - 1) : all / BATCH;
  }
  *measure = clv__measure_of(samples, count);
  return CLV_OK;
}

/* Measures copies of all sizes for which the device has room. */
static clv_status measure_sizes(copier *c, uint32_t runs, const clv_allocator *allocator, bool pinned, clv__profile *profile,
                                clv__profile_device *tables, clv_error *error) {
  static const uint64_t sizes[] = {64, 4096, 32768, 262144, 2097152, 16777216, 67108864};
  enum { SIZES = sizeof sizes / sizeof *sizes };
  clv__profile_copy copies[2][SIZES];
  uint32_t counts[2] = {0, 0};
  const clv_backend *backend = c->device->backend;
  clv_status status = CLV_OK;
  for (uint32_t i = 0; status == CLV_OK && i < SIZES; ++i) {
    clv_buffer *staging = NULL;
    clv_error ignored;
    if (backend->buffer_alloc(c->device->handle, sizes[i], &c->buffer, &ignored) != CLV_OK) break;
    if (pinned && backend->buffer_alloc(c->device->handle, sizes[i], &staging, &ignored) == CLV_OK)
      c->host = backend->buffer_host_pointer(c->device->handle, staging);
    else
      c->host = pinned ? NULL : clv__allocate_zero(allocator, sizes[i]);
    for (uint32_t way = 0; c->host != NULL && way < 2 && status == CLV_OK; ++way) {
      c->into_device = way == 0;
      status = measure_copy(c, sizes[i], runs, &copies[way][i].time, error);
      copies[way][i].size_bytes = sizes[i];
      if (status == CLV_OK) ++counts[way];
    }
    if (!pinned) clv__release(allocator, c->host);
    backend->buffer_free(c->device->handle, staging);
    backend->buffer_free(c->device->handle, c->buffer);
    if (c->host == NULL) break;
  }
  for (uint32_t way = 0; status == CLV_OK && way < 2; ++way) {
    clv__copy_kind kind = (clv__copy_kind)((pinned ? CLV__COPY_PINNED_IN : CLV__COPY_IN) + way);
    if (counts[way] > 0) status = clv__profile_put_copies(profile, tables, kind, copies[way], counts[way], error);
  }
  return status;
}

/* Whether the host can address the device's buffers. Such memory is pinned: copies need no page lookups. */
static bool has_pinned_memory(const clv__device *device) {
  clv_buffer *buffer;
  clv_error ignored;
  if (device->backend->buffer_alloc(device->handle, 4096, &buffer, &ignored) != CLV_OK) return false;
  bool pinned = device->backend->buffer_host_pointer(device->handle, buffer) != NULL;
  device->backend->buffer_free(device->handle, buffer);
  return pinned;
}

static clv_status measure_copies(const clv__device *device, uint32_t runs, const clv_allocator *allocator, clv__profile *profile,
                                 clv__profile_device *tables, clv_error *error) {
  copier c = {.device = device};
  if (device->space == CLV__SPACE_HOST) return CLV_OK;
  CLV__TRY(device->backend->stream_create(device->handle, &c.stream, error));
  clv_status status = measure_sizes(&c, runs, allocator, false, profile, tables, error);
  if (status == CLV_OK && has_pinned_memory(device)) status = measure_sizes(&c, runs, allocator, true, profile, tables, error);
  device->backend->stream_destroy(device->handle, c.stream);
  return status;
}

/* ---- Device and host ---- */

static clv_status keep(clv__profile *profile, const char *text, const char **kept, clv_error *error) {
  *kept = clv__arena_string(&profile->arena, text, strlen(text));
  if (*kept != NULL) return CLV_OK;
  *kept = "";
  return clv__error_memory(error, strlen(text));
}

clv_status clv__measure_device(clv_devices *devices, uint32_t index, const clv__measure_options *options, clv__profile *profile,
                               clv_error *error) {
  const clv__device *device = &devices->items[index];
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  clv__profile_device *tables;
  CLV__TRY(clv__profile_find_or_add_device(profile, device->info.fingerprint, &tables, error));
  CLV__TRY(keep(profile, device->name, &tables->name, error));
  CLV__TRY(keep(profile, device->info.kind, &tables->kind, error));
  CLV__TRY(keep(profile, device->info.description, &tables->description, error));
  CLV__TRY(keep(profile, options->day, &tables->measured, error));
  if (clv__measure_is_over(options)) return clv__error_set(error, CLV_CANCELLED, "%s was not measured", device->name);
  if (options->goes_on && tables->launch.runs > 0) return CLV_OK;
  if (options->progress != NULL)
    options->progress(options->user_data, device->name, "launch time, copy times and peak rates", 0, 0);
  clv__devices_lock(devices);
  measure_launch(device, allocator, options->runs, &tables->launch);
  clv_status status = measure_copies(device, options->runs, allocator, profile, tables, error);
  tables->flops_per_second = peak_flops(device, allocator, options->runs, &tables->launch);
  tables->bytes_per_second = peak_bytes(device, allocator, options->runs, &tables->launch);
  clv__devices_unlock(devices);
  return status == CLV_OK ? status : clv__error_prefix(error, status, "measuring %s", device->name);
}

void clv__peaks_of_device(clv_devices *devices, uint32_t index, uint32_t runs, clv__peaks *peaks) {
  const clv__device *device = &devices->items[index];
  const clv_allocator *allocator = clv__context_allocator(devices->context);
  clv__measure launch;
  *peaks = (clv__peaks){.thread_count = 0};
  clv__devices_lock(devices);
  measure_launch(device, allocator, runs, &launch);
  peaks->flops_per_second[CLV__PEAK_F32] = peak_flops(device, allocator, runs, &launch);
  const double bytes_per_second = peak_bytes(device, allocator, runs, &launch);
  clv__devices_unlock(devices);
  if (bytes_per_second <= 0) return;
  peaks->size_count = 1;
  peaks->sizes_bytes[0] = (uint64_t)48 << 20; /* three operands of the largest sum */
  peaks->read_bytes_per_second[0] = peaks->copy_bytes_per_second[0] = bytes_per_second;
}

/* Reads the model name of the first processor, such as "AMD EPYC". The name is empty if the system does not tell it. */
static void processor_name(char name[128]) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[256];
  name[0] = '\0';
  while (file != NULL && name[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) == 0 && colon != NULL) snprintf(name, 128, "%s", colon + 1 + (colon[1] == ' '));
  }
  if (file != NULL) fclose(file);
  name[strcspn(name, "\n")] = '\0';
}

clv_status clv__measure_host(clv__profile *profile, clv_error *error) {
  char name[128], text[256];
  struct utsname system;
  processor_name(name);
  CLV__TRY(keep(profile, name, &profile->host_processor, error));
  text[0] = '\0';
  if (uname(&system) == 0) snprintf(text, sizeof text, "%.100s %.100s", system.sysname, system.machine);
  CLV__TRY(keep(profile, text, &profile->host_system, error));
  return keep(profile, CLEAVE_VERSION, &profile->cleave_version, error);
}
