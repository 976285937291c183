/* Measures how much time a capture saves on an OpenCL device. One partition of tiny kernels is executed, launched as a resolved
 * list of enqueues, and launched as a command buffer. For comparison, the driver enqueues the same number of empty kernels.
 *
 *   bench_replay_opencl [--nodes N] [--samples N] [--json] [--check]
 *
 * Three times are measured: CPU time of the calling thread and wall time until everything is issued, and wall time until the
 * device is done. The kinds of runs take turns; the best and the median of each are shown. The last line says whether
 * capture=auto uses the list or the command buffer. Results are compared; times are not judged. --check: few samples. If there is
 * no device, the program says so. */
#include <string.h>
#include <time.h>

#define BENCH "replay_opencl"
#include "analysis/shapes.h"
#include "backends/opencl/programs.h"
#include "backends/opencl/run/capture.h"
#include "chain.h"
#include "cleave/cleave.h"
#include "device/device.h"
#include "graph/view.h"

enum { MAX_SAMPLES = 1001, WAYS = 4 };

/* ---- One partition, on a device that is opened only for it ---- */

typedef struct calls {
  clv_context *context;
  clv_devices *devices;
  const clv_backend *b;
  clv_device *device;
  clv_stream *stream;
  clv_executable *executable;
  clv_instance *instance;
  clv_captured *captured;
  clv_binding bindings[3];
  clv_execute_args args;
} calls;

/* Opens the device `opencl` with the device option `capture`. Returns false and sets `error` if there is no device, or if its
 * driver does not support the option. */
static bool device_open(calls *c, const char *capture, clv_error *error) {
  const char *const device_options[] = {"opencl:fuse=off", capture};
  *c = (calls){0};
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  options.cache_directory = "";
  check(clv_context_create(&options, &c->context, error), error, "context");
  clv_devices_options devices = CLV_DEVICES_OPTIONS_INIT;
  devices.list = "opencl";
  devices.device_options = device_options;
  devices.device_option_count = 2;
  if (clv_devices_open(c->context, &devices, &c->devices, error) != CLV_OK) {
    clv_context_destroy(c->context);
    return false;
  }
  c->b = c->devices->items[0].backend;
  c->device = c->devices->items[0].handle;
  return true;
}

static void calls_compile(calls *c, const clv_graph *graph) {
  clv_error error = {0};
  clv__arena arena;
  clv__shapes *shapes;
  clv_graph_view *view;
  clv_compile_options options = {.struct_size = sizeof options};
  clv__arena_init(&arena, clv__allocator_default());
  check(clv__shapes_infer(graph, NULL, 0, 0, &shapes, &error), &error, "shapes");
  check(clv__view_create_whole(graph, shapes->types, &arena, &view, &error), &error, "view");
  check(c->b->compile(c->device, view, &options, &c->executable, &error), &error, "compile");
  clv__shapes_destroy(shapes);
  clv__arena_finish(&arena);
}

static void calls_open(calls *c, const clv_graph *graph, const float in[2][ELEMENTS], bool is_captured) {
  const int64_t dims[2] = {ROWS, COLUMNS};
  clv_error error = {0};
  clv_tensor types[2];
  for (int i = 0; i < 2; ++i) types[i] = clv__tensor_make(CLV_F32, 2, dims, NULL);
  calls_compile(c, graph);
  check(c->b->instance_create(c->device, c->executable, types, 2, NULL, 0, &c->instance, &error), &error, "instance");
  check(c->b->stream_create(c->device, &c->stream, &error), &error, "stream");
  for (int i = 0; i < 3; ++i) {
    c->bindings[i].type = types[0];
    check(c->b->buffer_alloc(c->device, VALUE_BYTES, &c->bindings[i].buffer, &error), &error, "buffer");
    c->bindings[i].type.data = c->b->buffer_host_pointer(c->device, c->bindings[i].buffer);
    if (i < 2) check(c->b->copy_in(c->device, c->stream, c->bindings[i].buffer, 0, in[i], VALUE_BYTES, &error), &error, "copy");
  }
  c->args = (clv_execute_args){
      .struct_size = sizeof c->args, .input_count = 2, .output_count = 1, .inputs = c->bindings, .outputs = &c->bindings[2]};
  if (!is_captured) return;
  check(c->b->capture->begin(c->device, c->stream, CLV_CAPTURE_THREAD, &error), &error, "capture");
  check(c->b->execute(c->device, c->instance, c->stream, &c->args, &error), &error, "capture");
  check(c->b->capture->end(c->device, c->stream, &c->captured, &error), &error, "capture");
}

static void calls_close(calls *c) {
  if (c->captured != NULL) c->b->capture->destroy(c->device, c->captured);
  if (c->instance != NULL) c->b->instance_destroy(c->device, c->instance);
  if (c->executable != NULL) c->b->executable_destroy(c->device, c->executable);
  if (c->stream != NULL) c->b->stream_destroy(c->device, c->stream);
  for (int i = 0; i < 3; ++i) {
    if (c->bindings[i].buffer != NULL) c->b->buffer_free(c->device, c->bindings[i].buffer);
  }
  clv_devices_close(c->devices);
  clv_context_destroy(c->context);
}

/* ---- The driver's enqueues ---- */

typedef struct raw {
  clv_device *device;
  cl_program program;
  cl_kernel kernel;
  cl_mem memory;
  uint32_t count;
} raw;

static void raw_open(raw *r, clv_device *device, uint32_t count) {
  static const char source[] = "__kernel void nothing(__global int *x, int never) { if (never) x[get_global_id(0)] = never; }\n";
  const char *text = source;
  const size_t size_bytes = sizeof source - 1;
  const cl_int never = 0;
  clv_error error = {0};
  cl_int code;
  *r = (raw){.device = device, .count = count};
  check(clv__opencl_program_make(device, 1, &text, &size_bytes, "a bench", &r->program, &error), &error, "kernel");
  check(clv__opencl_memory_create(device, VALUE_BYTES, &r->memory, &error), &error, "memory");
  r->kernel = device->cl->clCreateKernel(r->program, "nothing", &code);
  if (r->kernel == NULL || device->cl->clSetKernelArg(r->kernel, 0, sizeof r->memory, &r->memory) != CL_SUCCESS ||
      device->cl->clSetKernelArg(r->kernel, 1, sizeof never, &never) != CL_SUCCESS)
    check(CLV_DEVICE_ERROR, &error, "kernel");
}

static void raw_close(raw *r) {
  r->device->cl->clReleaseKernel(r->kernel);
  clv__opencl_memory_release(r->device, r->memory);
  r->device->cl->clReleaseProgram(r->program);
}

/* ---- Time ---- */

typedef struct sample {
  double thread_us, issued_us, done_us; /* CPU time of the thread until issued; wall time until issued, and until done */
} sample;

static double now_us(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static sample measure(calls *c, const raw *r) {
  const size_t items = 1;
  clv_error error = {0};
  double wall = now_us(CLOCK_MONOTONIC), thread = now_us(CLOCK_THREAD_CPUTIME_ID);
  if (c == NULL) {
    for (uint32_t i = 0; i < r->count; ++i) {
      if (r->device->cl->clEnqueueNDRangeKernel(r->device->service, r->kernel, 1, NULL, &items, &items, 0, NULL, NULL) !=
          CL_SUCCESS)
        check(CLV_DEVICE_ERROR, &error, "clEnqueueNDRangeKernel");
    }
  } else if (c->captured != NULL) {
    check(c->b->capture->launch(c->device, c->captured, c->stream, &error), &error, "launch");
  } else {
    check(c->b->execute(c->device, c->instance, c->stream, &c->args, &error), &error, "execute");
  }
  sample s = {.thread_us = now_us(CLOCK_THREAD_CPUTIME_ID) - thread, .issued_us = now_us(CLOCK_MONOTONIC) - wall};
  if (c == NULL) {
    if (r->device->cl->clFinish(r->device->service) != CL_SUCCESS) check(CLV_DEVICE_ERROR, &error, "clFinish");
  } else {
    check(c->b->stream_synchronize(c->device, c->stream, &error), &error, "synchronize");
  }
  s.done_us = now_us(CLOCK_MONOTONIC) - wall;
  return s;
}

/* Computes the best and the median of one of the three times. */
static void summarize(const sample *samples, int count, size_t offset, double *best, double *median) {
  static double sorted[MAX_SAMPLES];
  for (int i = 0; i < count; ++i) memcpy(&sorted[i], (const char *)&samples[i] + offset, sizeof *sorted);
  qsort(sorted, (size_t)count, sizeof *sorted, compare);
  *best = sorted[0];
  *median = sorted[count / 2];
}

static void print_way(const char *name, uint32_t nodes, const sample *samples, int count, bool json) {
  static const size_t offsets[] = {offsetof(sample, thread_us), offsetof(sample, issued_us), offsetof(sample, done_us)};
  static const char *const keys[] = {"thread", "issued", "done"};
  if (json)
    printf("{\"way\": \"%s\", \"nodes\": %u", name, nodes);
  else
    printf("%-16s", name);
  for (int i = 0; i < 3; ++i) {
    double best, median;
    summarize(samples, count, offsets[i], &best, &median);
    printf(json ? ", \"%s_best_us\": %.1f, \"%s_median_us\": %.1f" : "  %.0s%9.1f %.0s%9.1f", keys[i], best, keys[i], median);
  }
  puts(json ? "}" : "");
}

/* ---- All of it ---- */

/* Computes the expected result of the chain. */
static void compute(float in[2][ELEMENTS], uint32_t nodes, float *out) {
  for (int i = 0; i < ELEMENTS; ++i) {
    float v = in[0][i], side = in[1][i];
    for (uint32_t n = 0; n < nodes; ++n) {
      const float results[] = {v + side, v > 0 ? v : 0, v - side, -v, v > side ? v : side, v < 0 ? -v : v};
      v = results[n % 6];
    }
    out[i] = v;
  }
}

static void check_result(const calls *c, const float *wanted, const char *name) {
  float out[ELEMENTS];
  clv_error error = {0};
  check(c->b->copy_out(c->device, c->stream, out, c->bindings[2].buffer, 0, VALUE_BYTES, &error), &error, "copy");
  check(c->b->stream_synchronize(c->device, c->stream, &error), &error, "synchronize");
  for (int i = 0; i < ELEMENTS; ++i) {
    if (out[i] == wanted[i]) continue;
    fprintf(stderr, "replay_opencl: %s: element %d is %g, expected %g\n", name, i, (double)out[i], (double)wanted[i]);
    exit(1);
  }
}

static void bench(uint32_t nodes, int count, bool json, calls *automatic) {
  static const char *const names[WAYS] = {"executed", "list", "command buffer", "raw enqueues"};
  static const char *const options[WAYS - 1] = {"opencl:capture=off", "opencl:capture=list", "opencl:capture=buffer"};
  static sample samples[WAYS][MAX_SAMPLES];
  float in[2][ELEMENTS], wanted[ELEMENTS];
  clv_graph *graph = make_graph(nodes, false);
  calls c[WAYS - 1];
  bool is_there[WAYS] = {false, false, false, true};
  raw r;
  clv_error error = {0};
  for (int i = 0; i < ELEMENTS; ++i) {
    in[0][i] = (float)(i * 7 % 13) - 5.5f;
    in[1][i] = (float)(i * 3 % 11) * 0.25f - 1;
  }
  compute(in, nodes, wanted);
  for (int w = 0; w < WAYS - 1; ++w) {
    is_there[w] = device_open(&c[w], options[w], &error); /* some drivers do not support command buffers */
    if (!is_there[w]) continue;
    calls_open(&c[w], graph, (const float(*)[ELEMENTS])in, w > 0);
    if (c[w].instance->variant->steps.count != nodes)
      check(CLV_NOT_SUPPORTED, &error, "the partition does not have one kernel per node");
  }
  raw_open(&r, automatic->device, nodes);
  for (int k = -3; k < count; ++k) { /* three to warm up */
    for (int w = 0; w < WAYS; ++w) {
      if (is_there[w]) samples[w][k < 0 ? 0 : k] = measure(w < WAYS - 1 ? &c[w] : NULL, &r);
    }
  }
  if (!json)
    printf("%u kernels, us, best and median of %d\n%-16s  %19s  %19s  %19s\n", nodes, count, "", "thread until issued",
           "wall until issued", "wall until done");
  for (int w = 0; w < WAYS; ++w) {
    if (!is_there[w]) continue;
    if (w < WAYS - 1) check_result(&c[w], wanted, names[w]);
    print_way(names[w], nodes, samples[w], count, json);
    if (w < WAYS - 1) calls_close(&c[w]);
  }
  raw_close(&r);
  clv_graph_destroy(graph);
}

int main(int argument_count, char **arguments) {
  uint32_t nodes = 1000;
  int samples = 101;
  bool json = false;
  for (int i = 1; i < argument_count; ++i) {
    const char *a = arguments[i];
    if (strcmp(a, "--json") == 0)
      json = true;
    else if (strcmp(a, "--check") == 0)
      samples = 5;
    else if (strcmp(a, "--nodes") == 0 && i + 1 < argument_count)
      nodes = (uint32_t)atoi(arguments[++i]);
    else if (strcmp(a, "--samples") == 0 && i + 1 < argument_count)
      samples = atoi(arguments[++i]);
    else {
      fprintf(stderr, "usage: bench_replay_opencl [--nodes N] [--samples N] [--json] [--check]\n");
      return 2;
    }
  }
  if (samples < 1 || samples > MAX_SAMPLES) samples = 101;
  if (nodes < 1) nodes = 1;
  calls automatic;
  clv_error error = {0};
  if (!device_open(&automatic, "opencl:capture=auto", &error)) {
    printf("skipped: %s\n", error.message);
    return 0;
  }
  bench(nodes, samples, json, &automatic);
  bool is_buffer = clv__opencl_capture_choice(automatic.device) == CLV__OPENCL_CAPTURE_BUFFER;
  printf(json ? "{\"auto\": \"%s\"}\n" : "capture=auto uses: %s\n", is_buffer ? "command buffer" : "list");
  calls_close(&automatic);
  return 0;
}
