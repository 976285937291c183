/* Measures how much time Cleave adds to a run of ONNX Runtime or OpenVINO if one partition is the whole model. In one
 * process, runs that use the framework directly alternate with runs of a Cleave session on the framework's device. Both
 * read the same inputs and write their outputs to the caller's memory. The results are compared.
 *
 *   bench_frameworks [--device DEVICE] [--runs N] [--threads N] [--json] [--check] MODEL...
 *
 * All shapes of a MODEL must be known, and its inputs must be f32. If the device is not available, the program says so and
 * succeeds. */
#define BENCH "bench_frameworks"

#include <math.h>
#include <string.h>
#include <time.h>

#include "backends/onnxruntime/device.h"
#include "backends/openvino/api.h"
#include "base/files/file.h"
#include "base/tensor/tensor.h"
#include "bench.h"
#include "cleave/cleave.h"
#include "device/device.h"
#include "plan/plan.h"

enum { MOST_VALUES = 64, MOST_RUNS = 4000, MOST_MODELS = 32, BURST = 8, WARM = 3 };

/* A model, its inputs, and memory for its outputs. */
typedef struct subject {
  const char *path;
  clv__file_map file;
  clv_graph *graph;
  uint32_t input_count, output_count; /* counts only inputs without an initializer */
  clv_tensor inputs[MOST_VALUES], outputs[MOST_VALUES], direct_outputs[MOST_VALUES];
  const char *input_names[MOST_VALUES], *output_names[MOST_VALUES];
  uint32_t thread_count;
  const clv_host *host;
} subject;

/* The functions that use a framework directly. open() returns the state that run() needs. Each of them ends the program if it
 * fails. */
typedef struct peer {
  const char *device;
  void *(*open)(const subject *s);
  void (*run)(void *self);
  void (*close)(void *self);
} peer;

/* ---- ONNX Runtime ---- */

typedef struct direct_ort {
  const clv__ort_api *api;
  const subject *subject;
  clv__ort_env *env;
  clv__ort_session *session;
  clv__ort_memory *memory;
  clv__ort_value *inputs[MOST_VALUES], *outputs[MOST_VALUES];
} direct_ort;

static void ort_check(const clv__ort_api *api, clv__ort_status *status, const char *call) {
  clv_error error = {0};
  check(clv__ort_check(api, status, call, &error), &error, call);
}
#define ORT(function, ...) ort_check(o->api, o->api->function(__VA_ARGS__), #function)

static void ort_value(direct_ort *o, const clv_tensor *tensor, clv__ort_value **value) {
  size_t size_bytes = 0;
  clv__tensor_size_bytes(tensor, &size_bytes);
  ORT(CreateTensorWithDataAsOrtValue, o->memory, tensor->data, size_bytes, tensor->dims, (size_t)tensor->rank, (int)tensor->dtype,
      value);
}

static void quiet(void *cookie, int severity, const char *category, const char *id, const char *location, const char *message) {
  (void)cookie, (void)severity, (void)category, (void)id, (void)location, (void)message;
}

static void *ort_open(const subject *s) {
  direct_ort *o = calloc(1, sizeof *o);
  clv_error error = {0};
  void *library;
  clv__ort_options *options;
  clv__ort_threading *threading;
  check(clv__ort_load(s->host, &library, &error), &error, "library");
  o->api = ((const clv__ort_library *)library)->api;
  o->subject = s;
  ORT(CreateThreadingOptions, &threading);
  ORT(CreateEnvWithCustomLoggerAndGlobalThreadPools, quiet, NULL, CLV__ORT_LOG_FATAL, "bench", threading, &o->env);
  o->api->ReleaseThreadingOptions(threading);
  ORT(CreateSessionOptions, &options);
  ORT(SetSessionLogSeverityLevel, options, CLV__ORT_LOG_FATAL);
  ORT(SetIntraOpNumThreads, options, (int)s->thread_count);
  ORT(CreateSessionFromArray, o->env, s->file.data, s->file.size_bytes, options, &o->session);
  o->api->ReleaseSessionOptions(options);
  ORT(CreateCpuMemoryInfo, CLV__ORT_ARENA_ALLOCATOR, CLV__ORT_MEMORY_DEFAULT, &o->memory);
  for (uint32_t i = 0; i < s->input_count; ++i) ort_value(o, &s->inputs[i], &o->inputs[i]);
  for (uint32_t i = 0; i < s->output_count; ++i) ort_value(o, &s->direct_outputs[i], &o->outputs[i]);
  return o;
}

static void ort_run(void *self) {
  direct_ort *o = self;
  const subject *s = o->subject;
  ORT(Run, o->session, NULL, s->input_names, (const clv__ort_value *const *)o->inputs, s->input_count, s->output_names,
      s->output_count, o->outputs);
}

static void ort_close(void *self) {
  direct_ort *o = self;
  for (uint32_t i = 0; i < o->subject->input_count; ++i) o->api->ReleaseValue(o->inputs[i]);
  for (uint32_t i = 0; i < o->subject->output_count; ++i) o->api->ReleaseValue(o->outputs[i]);
  o->api->ReleaseSession(o->session);
  o->api->ReleaseMemoryInfo(o->memory);
  o->api->ReleaseEnv(o->env);
  free(o);
}

/* ---- OpenVINO ---- */

typedef struct direct_ov {
  const clv__openvino *ov;
  const subject *subject;
  ov_core *core;
  ov_compiled_model *compiled;
  ov_infer_request *request;
} direct_ov;

static void ov_check(const clv__openvino *ov, int code, const char *call) {
  clv_error error = {0};
  if (code != 0) check(clv__openvino_failed(ov, &error, call, code), &error, call);
}
#define OV(function, ...) ov_check(o->ov, o->ov->function(__VA_ARGS__), "ov_" #function)

/* Sets properties as Cleave's device does by default: latency, f32 computed in f32, threads not pinned. */
static void ov_set(const direct_ov *o, const char *key, const char *value) {
  OV(core_set_property, o->core, "CPU", key, value);
}

/* Binds the memory of `tensor` to input or output `index` of the request. The request keeps its own reference to the OpenVINO
 * tensor. */
static void ov_bind(const direct_ov *o, const clv_tensor *tensor, uint32_t index, bool is_output) {
  int64_t dims[CLV_MAX_RANK] = {0};
  ov_tensor *made = NULL;
  ov_port *port = NULL;
  memcpy(dims, tensor->dims, (size_t)tensor->rank * sizeof *dims);
  OV(tensor_create_from_host_ptr, clv__openvino_type(tensor->dtype), ((ov_shape){tensor->rank, dims}), tensor->data, &made);
  if (is_output)
    OV(compiled_model_output_by_index, o->compiled, index, &port);
  else
    OV(compiled_model_input_by_index, o->compiled, index, &port);
  OV(infer_request_set_tensor_by_const_port, o->request, port, made);
  o->ov->output_const_port_free(port);
  o->ov->tensor_free(made);
}

static void *ov_open(const subject *s) {
  direct_ov *o = calloc(1, sizeof *o);
  clv_error error = {0};
  void *library;
  char threads[16];
  ov_model *model = NULL;
  check(clv__openvino_load(s->host, &library, &error), &error, "library");
  o->ov = library;
  o->subject = s;
  snprintf(threads, sizeof threads, "%u", s->thread_count);
  OV(core_create, &o->core);
  ov_set(o, "PERFORMANCE_HINT", "LATENCY");
  ov_set(o, "INFERENCE_PRECISION_HINT", "f32");
  ov_set(o, "EXECUTION_MODE_HINT", "ACCURACY");
  ov_set(o, "INFERENCE_NUM_THREADS", threads);
  ov_set(o, "ENABLE_CPU_PINNING", "NO");
  OV(core_read_model_from_memory_buffer, o->core, (const char *)s->file.data, s->file.size_bytes, NULL, &model);
  OV(core_compile_model, o->core, model, "CPU", 0, &o->compiled);
  o->ov->model_free(model);
  OV(compiled_model_create_infer_request, o->compiled, &o->request);
  for (uint32_t i = 0; i < s->input_count; ++i) ov_bind(o, &s->inputs[i], i, false);
  for (uint32_t i = 0; i < s->output_count; ++i) ov_bind(o, &s->direct_outputs[i], i, true);
  return o;
}

static void ov_run(void *self) {
  direct_ov *o = self;
  OV(infer_request_infer, o->request);
}

static void ov_close(void *self) {
  direct_ov *o = self;
  o->ov->infer_request_free(o->request);
  o->ov->compiled_model_free(o->compiled);
  o->ov->core_free(o->core);
  free(o);
}

static const peer peers[] = {
    {"onnxruntime:CPU", ort_open, ort_run, ort_close},
    {"openvino:CPU", ov_open, ov_run, ov_close},
};

/* ---- Through Cleave ---- */

typedef struct through {
  clv_plan *plan;
  clv_session *session;
  const subject *subject;
  clv_tensor inputs[4 * MOST_VALUES]; /* all inputs of the graph */
} through;

static void through_open(through *t, const subject *s, clv_devices *devices) {
  clv_error error = {0};
  memset(t, 0, sizeof *t);
  t->subject = s;
  check(clv_plan_make(s->graph, devices, NULL, &t->plan, &error), &error, s->path);
  if (t->plan->partition_count != 1) {
    fprintf(stderr, BENCH ": %s: the plan has %u partitions, but must have one\n", s->path, t->plan->partition_count);
    exit(1);
  }
  clv_session_options options = CLV_SESSION_OPTIONS_INIT;
  options.no_fallback = true;
  check(clv_session_create(t->plan, &options, &t->session, &error), &error, s->path);
}

static void through_run(through *t, const clv_tensor *inputs, clv_tensor *outputs) {
  clv_error error = {0};
  const clv_graph *graph = t->subject->graph;
  check(clv_session_run(t->session, inputs, graph->input_count, outputs, graph->output_count, &error), &error, t->subject->path);
}

/* ---- Measuring ---- */

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void no_model(const char *path, const char *why) {
  fprintf(stderr, BENCH ": %s: %s\n", path, why);
  exit(1);
}

static void subject_open(subject *s, clv_context *context, const char *path, uint32_t thread_count) {
  clv_error error = {0};
  memset(s, 0, sizeof *s);
  s->path = path;
  s->thread_count = thread_count;
  s->host = clv__context_host(context);
  check(clv__file_map_open(path, &s->file, &error), &error, path);
  check(clv_graph_load(context, path, &s->graph, &error), &error, path);
  for (uint32_t i = 0; i < s->graph->input_count; ++i) {
    const clv__value *value = &s->graph->values[s->graph->inputs[i]];
    size_t size_bytes;
    if (value->type.data != NULL) continue; /* an initializer is its default value */
    if (s->input_count == MOST_VALUES || value->type.dtype != CLV_F32 || !clv__tensor_size_bytes(&value->type, &size_bytes)) {
      no_model(path, "it must have at most 64 inputs, all f32 and of known shapes");
    }
    s->input_names[s->input_count] = value->name;
    clv_tensor *input = &s->inputs[s->input_count++];
    *input = value->type;
    input->data = aligned_alloc(64, clv__align_up(size_bytes + 1, 64));
    for (size_t k = 0; k < size_bytes / 4; ++k) ((float *)input->data)[k] = (float)(k * 7919 % 1000) / 1000 - 0.5f;
  }
  s->output_count = s->graph->output_count;
  for (uint32_t i = 0; i < s->output_count; ++i) {
    const clv__value *value = &s->graph->values[s->graph->outputs[i]];
    size_t size_bytes;
    if (i == MOST_VALUES || !clv__tensor_size_bytes(&value->type, &size_bytes))
      no_model(path, "it must have at most 64 outputs, all of known shapes");
    s->output_names[i] = value->name;
    s->outputs[i] = s->direct_outputs[i] = value->type;
    s->outputs[i].data = aligned_alloc(64, clv__align_up(size_bytes + 1, 64));
    s->direct_outputs[i].data = aligned_alloc(64, clv__align_up(size_bytes + 1, 64));
  }
}

static void subject_close(subject *s) {
  for (uint32_t i = 0; i < s->input_count; ++i) free(s->inputs[i].data);
  for (uint32_t i = 0; i < s->output_count; ++i) free(s->outputs[i].data), free(s->direct_outputs[i].data);
  clv_graph_destroy(s->graph);
  clv__file_map_close(&s->file);
}

static void compare_outputs(const subject *s) {
  for (uint32_t i = 0; i < s->output_count; ++i) {
    size_t count = 0;
    clv__tensor_count(&s->outputs[i], &count);
    for (size_t k = 0; k < count; ++k) {
      double a = clv__tensor_get(&s->outputs[i], k), e = clv__tensor_get(&s->direct_outputs[i], k);
      if (fabs(a - e) <= 1e-7 + 1e-3 * fabs(e)) continue;
      fprintf(stderr, BENCH ": %s: output '%s', element %zu: %g through Cleave, %g directly\n", s->path, s->output_names[i], k, a,
              e);
      exit(1);
    }
  }
}

typedef struct result {
  double direct_us, through_us, overhead_us; /* medians; overhead_us: of the differences of neighbouring bursts */
} result;

/* Measures bursts of direct runs and bursts of runs through Cleave, alternately. The first runs of a burst are not counted,
 * because threads of the burst before it may still be active. */
static result measure(const peer *p, subject *s, clv_devices *devices, int runs) {
  static double direct[MOST_RUNS], through_times[MOST_RUNS], differences[MOST_RUNS];
  through t;
  int count = 0, bursts = 0;
  void *self = p->open(s);
  through_open(&t, s, devices);
  uint32_t used = 0;
  for (uint32_t i = 0; i < s->graph->input_count; ++i) {
    if (s->graph->values[s->graph->inputs[i]].type.data == NULL) t.inputs[i] = s->inputs[used++];
  }
  p->run(self);
  through_run(&t, t.inputs, s->outputs);
  compare_outputs(s);
  for (; count < runs; ++bursts) {
    double sums[2][BURST];
    for (int turn = 0; turn < 2; ++turn) {
      int side = (turn + bursts) % 2;
      for (int i = 0; i < BURST + WARM; ++i) {
        double before = now_us();
        if (side == 0)
          p->run(self);
        else
          through_run(&t, t.inputs, s->outputs);
        if (i >= WARM) sums[side][i - WARM] = now_us() - before;
      }
    }
    for (int i = 0; i < BURST && count < runs; ++i, ++count) {
      direct[count] = sums[0][i];
      through_times[count] = sums[1][i];
    }
    for (int side = 0; side < 2; ++side) qsort(sums[side], BURST, sizeof(double), compare);
    differences[bursts] = sums[1][BURST / 2] - sums[0][BURST / 2];
  }
  p->close(self);
  clv_session_destroy(t.session);
  clv_plan_destroy(t.plan);
  qsort(direct, (size_t)count, sizeof(double), compare);
  qsort(through_times, (size_t)count, sizeof(double), compare);
  qsort(differences, (size_t)bursts, sizeof(double), compare);
  return (result){direct[count / 2], through_times[count / 2], differences[bursts / 2]};
}

static const peer *find_peer(const char *device) {
  for (size_t i = 0; i < sizeof peers / sizeof *peers; ++i) {
    if (strcmp(peers[i].device, device) == 0) return &peers[i];
  }
  fprintf(stderr, BENCH ": '%s' is not a device of a known framework\n", device);
  exit(2);
}

int main(int argc, char **argv) {
  const char *device = "onnxruntime:CPU", *models[MOST_MODELS];
  int runs = 200, model_count = 0;
  uint32_t threads = 1;
  bool json = false, only_check = false;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
      device = argv[++i];
    } else if (strcmp(argv[i], "--runs") == 0 && i + 1 < argc) {
      runs = atoi(argv[++i]);
    } else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc) {
      threads = (uint32_t)atoi(argv[++i]);
    } else if (strcmp(argv[i], "--json") == 0) {
      json = true;
    } else if (strcmp(argv[i], "--check") == 0) {
      only_check = true;
    } else if (argv[i][0] != '-' && model_count < MOST_MODELS) {
      models[model_count++] = argv[i];
    } else {
      fprintf(stderr, "usage: " BENCH " [--device DEVICE] [--runs N] [--threads N] [--json] [--check] MODEL...\n");
      return 2;
    }
  }
  if (only_check) runs = BURST;
  if (runs < 1 || runs > MOST_RUNS) runs = MOST_RUNS;
  const peer *p = find_peer(device);
  clv_error error = {0};
  clv_context *context;
  clv_devices *devices;
  clv_context_options options = CLV_CONTEXT_OPTIONS_INIT;
  options.cache_directory = "";
  clv_devices_options list = CLV_DEVICES_OPTIONS_INIT;
  list.list = device;
  list.thread_count = threads;
  check(clv_context_create(&options, &context, &error), &error, "context");
  if (clv_devices_open(context, &list, &devices, &error) != CLV_OK) {
    printf("%s is not available: %s\n", device, error.message);
    clv_context_destroy(context);
    return 0;
  }
  for (int i = 0; i < model_count; ++i) {
    static subject s;
    subject_open(&s, context, models[i], threads);
    result r = measure(p, &s, devices, runs);
    if (json) {
      printf("{\"model\": \"%s\", \"device\": \"%s\", \"direct_us\": %.2f, \"cleave_us\": %.2f, \"overhead_us\": %.2f}\n",
             models[i], device, r.direct_us, r.through_us, r.overhead_us);
    } else {
      printf("%-40s %s: directly %10.1f us, through Cleave %10.1f us: %+.1f us a run (%+.2f %%)\n", models[i], device,
             r.direct_us, r.through_us, r.overhead_us, 100 * r.overhead_us / r.direct_us);
    }
    subject_close(&s);
  }
  clv_devices_close(devices);
  clv_context_destroy(context);
  return 0;
}
