/* Shared by the tests of the CPU backend: a host that serves the library's graphs, and functions that run a whole graph on the
 * device. */
#ifndef CLEAVE_TESTS_BACKENDS_CPU_HOST_H
#define CLEAVE_TESTS_BACKENDS_CPU_HOST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/evaluate.h"
#include "analysis/shapes.h"
#include "backends/cpu/cpu.h"
#include "formats/onnx/onnx.h"
#include "graph/view.h"
#include "models.h"
#include "support.h"

static uint32_t cpu_host_threads = 2; /* number of threads of devices that are opened later */
static clv_dtype cpu_host_precision;  /* option `precision` for graphs that are compiled later */
static bool cpu_host_tune, cpu_host_deterministic;
static size_t cpu_host_options_bytes = sizeof(clv_compile_options);
static size_t cpu_host_fold = SIZE_MAX; /* values of up to this many bytes are folded before compiling */

typedef struct cpu_host {
  clv_host host;
  const clv_allocator *allocator;
  const clv_backend *backend;
  clv_device *device;
  int retreats; /* how often making a variant failed, so that a simpler one was tried */
} cpu_host;

static inline void host_log(void *self, int level, const char *text) {
  (void)level;
  if (strstr(text, "simpler variant") != NULL) ((cpu_host *)self)->retreats++;
}

static inline clv_status host_infer(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                                    clv_error *error) {
  return clv__node_infer(graph->graph, graph->nodes[node], inputs, outputs, error);
}

static inline clv_status host_evaluate(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs, clv_tensor *outputs,
                                       clv_error *error) {
  return clv__node_evaluate(graph->graph, graph->nodes[node], inputs, outputs, graph->graph->allocator, error);
}

static inline clv_status host_evaluate_with(const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs,
                                            clv_tensor *outputs, const clv_evaluation *how, clv_error *error) {
  return clv__node_evaluate_with(graph->graph, graph->nodes[node], inputs, outputs, how, graph->graph->allocator, error);
}

static inline clv_status host_to_onnx(const clv_graph_view *graph, size_t limit, void **data, size_t *size, clv_error *error) {
  return clv__onnx_write(graph, limit, graph->graph->allocator, data, size, error);
}

static inline clv_status host_open(void *self, const void *data, size_t size, clv_graph_view **graph, clv_error *error) {
  clv_graph *loaded = NULL;
  CLV__TRY(clv__onnx_load_memory(((cpu_host *)self)->allocator, data, size, true, &loaded, error));
  *graph = (clv_graph_view *)loaded->whole;
  return CLV_OK;
}

static inline void host_close(void *self, clv_graph_view *graph) {
  (void)self;
  if (graph != NULL) clv__graph_destroy((clv_graph *)graph->graph);
}

/* Opens the device with `option` set to `value`, or without options if `option` is NULL. */
static inline clv_status cpu_host_open(cpu_host *cpu, const clv_allocator *allocator, const char *option, const char *value,
                                       clv_error *error) {
  *cpu = (cpu_host){.allocator = allocator};
  cpu->host = (clv_host){.abi_version = CLV_ABI_VERSION,
                         .struct_size = sizeof cpu->host,
                         .self = cpu,
                         .allocator = allocator,
                         .log = host_log,
                         .infer_node = host_infer,
                         .evaluate_node = host_evaluate,
                         .evaluate_node_with = host_evaluate_with,
                         .graph_to_onnx = host_to_onnx,
                         .graph_open = host_open,
                         .graph_close = host_close};
  clv__view_fill_host(&cpu->host);
  CLV__TRY(clv__cpu_backend_query(&cpu->host, NULL, &cpu->backend, error));
  const clv_option options[1] = {{option, value}};
  const clv_device_config config = {.struct_size = sizeof config,
                                    .name = "cpu",
                                    .option_count = option != NULL,
                                    .options = options,
                                    .thread_count = cpu_host_threads};
  return cpu->backend->open(cpu->backend->self, &cpu->host, &config, &cpu->device, error);
}

static inline void cpu_host_close(cpu_host *cpu) {
  if (cpu->device != NULL) cpu->backend->close(cpu->device);
}

/* A whole graph, compiled as one partition. */
typedef struct cpu_program {
  cpu_host *cpu;
  clv_graph *graph;
  clv__arena arena;
  clv__shapes *shapes;
  clv_graph_view *view;
  clv_executable *executable;
  clv_instance *instance;
} cpu_program;

static inline void cpu_program_close(cpu_program *program) {
  const clv_backend *backend = program->cpu->backend;
  if (program->instance != NULL) backend->instance_destroy(program->cpu->device, program->instance);
  if (program->executable != NULL) backend->executable_destroy(program->cpu->device, program->executable);
  clv__shapes_destroy(program->shapes);
  clv__arena_finish(&program->arena);
}

/* Compiles `graph` and creates an instance for inputs of the types `inputs` (NULL: those of the graph). Destroys the shapes and
 * the view before it creates the instance, because executables must not need them. */
static inline clv_status cpu_program_open(cpu_program *program, cpu_host *cpu, clv_graph *graph, const clv_tensor *inputs,
                                          clv_error *error) {
  *program = (cpu_program){.cpu = cpu, .graph = graph};
  clv__arena_init(&program->arena, cpu->allocator);
  CLV__TRY(clv__shapes_infer(graph, NULL, 0, cpu_host_fold, &program->shapes, error));
  CLV__TRY(clv__view_create_whole(graph, program->shapes->types, &program->arena, &program->view, error));
  clv_tensor types[16];
  for (uint32_t i = 0; i < program->view->input_count; ++i) {
    types[i] = inputs != NULL ? inputs[i] : *clv__view_type(program->view, program->view->inputs[i]);
    types[i].data = NULL;
  }
  const uint32_t input_count = program->view->input_count;
  const clv_compile_options options = {.struct_size = (uint32_t)cpu_host_options_bytes,
                                       .deterministic = cpu_host_deterministic,
                                       .tune = cpu_host_tune,
                                       .precision = cpu_host_precision};
  CLV__TRY(cpu->backend->compile(cpu->device, program->view, &options, &program->executable, error));
  clv__shapes_destroy(program->shapes);
  program->shapes = NULL;
  clv__arena_finish(&program->arena);
  clv__arena_init(&program->arena, cpu->allocator);
  program->view = NULL;
  return cpu->backend->instance_create(cpu->device, program->executable, types, input_count, NULL, 0, &program->instance, error);
}

static inline clv_status give_output(void *cookie, uint32_t index, const clv_tensor *type, clv_binding *binding,
                                     clv_error *error) {
  size_t size_bytes;
  (void)index;
  binding->type = *type;
  if (!clv__tensor_size_bytes(type, &size_bytes))
    return clv__error_set(error, CLV_INTERNAL_ERROR, "the size of an output is unknown");
  binding->type.data = clv__allocate(cookie, size_bytes);
  return binding->type.data != NULL ? CLV_OK : clv__error_memory(error, size_bytes);
}

/* Runs the program. For outputs whose `data` is NULL, memory is allocated through the callback allocate_output(). The caller
 * releases it with the allocator of the host. */
static inline clv_status cpu_program_run(cpu_program *program, const clv_tensor *inputs, clv_tensor *outputs, clv_error *error) {
  clv_binding in[16] = {{0}}, out[16] = {{0}};
  for (uint32_t i = 0; i < program->graph->input_count; ++i) in[i].type = inputs[i];
  for (uint32_t i = 0; i < program->graph->output_count; ++i) {
    out[i].type = outputs[i];
    if (outputs[i].data == NULL) out[i].type.rank = CLV_RANK_UNKNOWN;
  }
  clv_execute_args args = {.struct_size = sizeof args,
                           .input_count = program->graph->input_count,
                           .output_count = program->graph->output_count,
                           .inputs = in,
                           .outputs = out,
                           .cookie = (void *)program->cpu->allocator,
                           .allocate_output = give_output};
  clv_status status = program->cpu->backend->execute(program->cpu->device, program->instance, NULL, &args, error);
  for (uint32_t i = 0; i < program->graph->output_count; ++i) {
    if (out[i].type.data != NULL) outputs[i] = out[i].type;
  }
  return status;
}

/* Fails unless `made` equals `wanted`: for f32, within 1e-4 of the largest magnitude; for other dtypes, exactly. */
static inline void assert_tensor(const clv_tensor *made, const clv_tensor *wanted, const char *what) {
  size_t count, size_bytes, worst = 0;
  assert_true(clv__tensor_same_type(made, wanted));
  assert_true(clv__tensor_count(wanted, &count) && clv__tensor_size_bytes(wanted, &size_bytes));
  if (wanted->dtype != CLV_F32) {
    if (size_bytes > 0) assert_memory_equal(made->data, wanted->data, size_bytes);
    return;
  }
  double largest = 1e-6, difference = 0;
  for (size_t i = 0; i < count; ++i) {
    float a, b;
    memcpy(&a, (const char *)made->data + i * 4, 4); /* outputs may be unaligned */
    memcpy(&b, (const char *)wanted->data + i * 4, 4);
    if (fabs((double)b) > largest) largest = fabs((double)b);
    const double d = fabs((double)a - (double)b);
    if (!(d <= difference)) difference = d, worst = i;
  }
  if (!(difference <= 1e-4 * largest)) {
    fail_msg("%s: element %zu of %zu differs by %g, more than 1e-4 of the largest magnitude, %g", what, worst, count, difference,
             largest);
  }
}

static inline clv_tensor random_tensor(const clv_allocator *allocator, uint64_t *seed, int32_t rank, const int64_t *dims) {
  clv_tensor tensor = clv__tensor_make(CLV_F32, rank, dims, NULL);
  const size_t count = (size_t)clv__dims_product(&tensor, 0, rank);
  tensor.data = clv__allocate(allocator, count * sizeof(float));
  assert_non_null(tensor.data);
  for (size_t i = 0; i < count; ++i) ((float *)tensor.data)[i] = test_random_float(seed);
  return tensor;
}

/* Opens a device, compiles `graph` and runs it, again and again. Each round lets a later allocation fail, until a round ends
 * without a failure. Every failure must return CLV_OUT_OF_MEMORY and leak nothing. `graph` must have been created with
 * `failing`. */
static inline void check_failing_memory(test_allocator *failing, clv_graph *graph, const clv_tensor *inputs) {
  clv_error error = {0};
  const size_t live = failing->live;
  bool done = false;
  for (size_t fail_after = 1; !done && fail_after < 5000; ++fail_after) {
    cpu_host cpu;
    cpu_program program = {0};
    clv_tensor made[16] = {{0}};
    for (uint32_t i = 0; i < graph->output_count; ++i) made[i].rank = CLV_RANK_UNKNOWN;
    failing->fail_at = failing->calls + fail_after;
    clv_status status = cpu_host_open(&cpu, &failing->allocator, NULL, NULL, &error);
    if (status == CLV_OK) status = cpu_program_open(&program, &cpu, graph, NULL, &error);
    if (status == CLV_OK) status = cpu_program_run(&program, inputs, made, &error);
    done = status == CLV_OK && failing->calls < failing->fail_at;
    if (status != CLV_OK) assert_int_equal(status, CLV_OUT_OF_MEMORY);
    for (uint32_t i = 0; i < graph->output_count; ++i) clv__release(&failing->allocator, made[i].data);
    if (program.graph != NULL) cpu_program_close(&program);
    cpu_host_close(&cpu);
    assert_int_equal(failing->live, live);
  }
  assert_true(done);
  failing->fail_at = 0;
}

/* Runs `graph` on the device and with the reference evaluator, and compares all outputs. Returns cpu_host.retreats. */
static inline int compare_with_reference(clv_graph *graph, const clv_tensor *inputs, const char *option, const char *value,
                                         const char *what) {
  const clv_allocator *allocator = graph->allocator;
  clv_error error = {0};
  cpu_host cpu;
  cpu_program program;
  clv_tensor made[16] = {{0}}, wanted[16] = {{0}};
  assert_ok(cpu_host_open(&cpu, allocator, option, value, &error), error);
  assert_ok(cpu_program_open(&program, &cpu, graph, inputs, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) made[i].rank = CLV_RANK_UNKNOWN;
  assert_ok(cpu_program_run(&program, inputs, made, &error), error);
  assert_ok(clv__graph_evaluate(graph, inputs, NULL, wanted, NULL, NULL, allocator, &error), error);
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    char text[128];
    snprintf(text, sizeof text, "%s: output '%s'", what, graph->values[graph->outputs[i]].name);
    assert_tensor(&made[i], &wanted[i], text);
  }
  for (uint32_t i = 0; i < graph->output_count; ++i) {
    clv__release(allocator, made[i].data);
    clv__release(allocator, wanted[i].data);
  }
  cpu_program_close(&program);
  cpu_host_close(&cpu);
  return cpu.retreats;
}

#endif
