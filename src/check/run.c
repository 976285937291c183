/* See run.h: reference values, programs and comparison. Jobs are in job.c. */
#include "check/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/evaluate.h"
#include "base/tensor/compare.h"

#define NEAR_ZERO 0.1

/* ---- The truth ---- */

static clv_status keep_value(void *cookie, clv_value_id value, const clv_tensor *tensor, clv_error *error) {
  clv__check_truth *truth = cookie;
  size_t size_bytes;
  if (!clv__tensor_size_bytes(tensor, &size_bytes)) return CLV_OK;
  truth->values[value] = *tensor;
  truth->values[value].data = clv__arena_allocate_data(&truth->arena, size_bytes);
  if (truth->values[value].data == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(truth->values[value].data, tensor->data, size_bytes);
  return CLV_OK;
}

clv_status clv__check_truth_make(clv__check *check, const clv_graph *graph, const clv_tensor *inputs, clv__check_truth *truth,
                                 clv_error *error) {
  *truth = (clv__check_truth){.graph = graph};
  clv__arena_init(&truth->arena, check->allocator);
  truth->values = clv__arena_allocate_zero(&truth->arena, graph->value_count, sizeof *truth->values);
  clv_tensor *outputs = clv__arena_allocate_zero(&truth->arena, graph->output_count, sizeof *outputs);
  if (truth->values == NULL || outputs == NULL) return clv__error_memory(error, graph->value_count * sizeof *truth->values);
  clv_status status = clv__graph_evaluate(graph, inputs, NULL, outputs, keep_value, truth, check->allocator, error);
  for (uint32_t i = 0; status == CLV_OK && i < graph->output_count; ++i) clv__release(check->allocator, outputs[i].data);
  for (uint32_t i = 0; status == CLV_OK && i < graph->input_count; ++i) {
    if (inputs[i].dtype != CLV_DTYPE_NONE) status = keep_value(truth, graph->inputs[i], &inputs[i], error);
  }
  return status == CLV_OK ? status : clv__error_prefix(error, status, "reference");
}

void clv__check_truth_finish(clv__check_truth *truth) {
  if (truth->graph != NULL) clv__arena_finish(&truth->arena);
  *truth = (clv__check_truth){0};
}

/* ---- Programs ---- */

static clv_status infer(clv__check_program *p, const clv_tensor *inputs, clv_error *error) {
  const clv_graph *graph = p->graph;
  clv__shape_given *given = clv__arena_allocate_zero(&p->arena, graph->input_count, sizeof *given);
  uint32_t count = 0;
  if (given == NULL) return clv__error_memory(error, graph->input_count * sizeof *given);
  for (uint32_t i = 0; inputs != NULL && i < graph->input_count; ++i) {
    if (inputs[i].dtype == CLV_DTYPE_NONE || clv__tensor_is_static(&graph->values[graph->inputs[i]].type)) continue;
    given[count] = (clv__shape_given){.name = graph->values[graph->inputs[i]].name, .rank = inputs[i].rank};
    memcpy(given[count++].dims, inputs[i].dims, sizeof inputs[i].dims);
  }
  return clv__shapes_infer(graph, given, count, SIZE_MAX, &p->shapes, error);
}

clv_status clv__check_program_view(clv__check *check, const clv_graph *graph, const clv_tensor *inputs, const clv_node_id *nodes,
                                   uint32_t node_count, clv__check_program *program, clv_error *error) {
  *program = (clv__check_program){.check = check, .graph = graph};
  clv__arena_init(&program->arena, check->allocator);
  CLV__TRY(infer(program, inputs, error));
  if (nodes == NULL) {
    clv_node_id *all = clv__arena_allocate_zero(&program->arena, graph->node_count, sizeof *all);
    if (all == NULL) return clv__error_memory(error, graph->node_count * sizeof *all);
    node_count = 0;
    for (clv_node_id n = 0; n < graph->node_count; ++n) {
      if (!program->shapes->node_folded[n]) all[node_count++] = n;
    }
    nodes = all;
  }
  clv_graph_view *view = NULL;
  CLV__TRY(clv__view_create(graph, program->shapes->types, nodes, node_count, NULL, &program->arena, &view, error));
  view->fills = program->shapes->fills;
  program->view = view;
  return CLV_OK;
}

/* The constant value of the view with the given name, or CLV_NO_VALUE if there is none. */
static uint32_t find_weight(const clv_graph_view *view, const char *name) {
  for (uint32_t v = 0; v < view->value_count; ++v) {
    if (clv__view_type(view, v)->data == NULL || !clv__value_is_constant(view->graph, view->types, view->values[v])) continue;
    if (strcmp(view->graph->values[view->values[v]].name, name) == 0) return v;
  }
  return CLV_NO_VALUE;
}

clv_status clv__check_program_take(clv__check_program *program, clv_executable *executable, clv_error *error) {
  const clv__check *check = program->check;
  const clv_backend *backend = check->backend;
  program->executable = executable;
  program->info = (clv_executable_info){.struct_size = sizeof program->info};
  backend->executable_info(check->handle, executable, &program->info);
  uint32_t count = program->info.weight_count;
  program->weights = clv__arena_allocate_zero(&program->arena, count, sizeof(clv_weight *));
  if (program->weights == NULL) return clv__error_memory(error, count * sizeof(clv_weight *));
  if (backend->finish != NULL) {
    clv__error_clear(error);
    clv_status status = backend->finish(check->handle, &program->executable, 1, error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "finish");
  }
  for (uint32_t i = 0; i < count; ++i) {
    const char *name = program->info.weights[i];
    uint32_t value = find_weight(program->view, name);
    if (value == CLV_NO_VALUE) {
      return clv__error_set(error, CLV_INTERNAL_ERROR, "the executable requests weight '%s', which the graph does not have",
                            name);
    }
    clv__error_clear(error);
    clv_status status =
        backend->weight_upload(check->handle, name, clv__view_type(program->view, value), &program->weights[i], error);
    if (status != CLV_OK) return clv__error_prefix(error, status, "weight_upload '%s'", name);
  }
  return CLV_OK;
}

clv_status clv__check_program_compile(clv__check_program *program, clv_error *error) {
  const clv__check *check = program->check;
  const clv_compile_options options = {.struct_size = sizeof options};
  clv_executable *made = NULL;
  clv__error_clear(error);
  clv_status status = check->backend->compile(check->handle, program->view, &options, &made, error);
  if (status != CLV_OK) return clv__error_prefix(error, status, "compile");
  if (made == NULL) return clv__error_set(error, CLV_INTERNAL_ERROR, "compile returned 'ok', but no executable");
  return clv__check_program_take(program, made, error);
}

void clv__check_program_finish(clv__check_program *program) {
  const clv__check *check = program->check;
  if (check == NULL) return;
  for (uint32_t i = 0; program->weights != NULL && i < program->info.weight_count; ++i) {
    if (program->weights[i] != NULL) check->backend->weight_release(check->handle, program->weights[i]);
  }
  if (program->executable != NULL) check->backend->executable_destroy(check->handle, program->executable);
  clv__shapes_destroy(program->shapes);
  clv__arena_finish(&program->arena);
  *program = (clv__check_program){0};
}

const clv__node *clv__check_program_refused(const clv__check_program *program, char reason[160]) {
  const clv__check *check = program->check;
  for (uint32_t n = 0; n < program->view->node_count; ++n) {
    clv_verdict verdict = {0};
    check->backend->supports(check->handle, program->view, n, &verdict);
    if (verdict.supported) continue;
    verdict.reason[sizeof verdict.reason - 1] = '\0';
    snprintf(reason, 160, "%s", verdict.reason);
    return clv__view_node(program->view, n);
  }
  return NULL;
}

/* ---- Comparing ---- */

void clv__check_call_text(const char *call, clv_status status, const clv_error *error, char *text, size_t text_bytes) {
  snprintf(text, text_bytes, "%s%s%s: %.900s", call, call[0] != '\0' ? ": " : "", clv_status_name(status),
           error->message[0] != '\0' ? error->message : "(no text)");
}

bool clv__check_same(const clv_tensor *expected, const clv_tensor *actual, const char *name, char *text, size_t text_bytes) {
  if (!clv__tensor_same_type(expected, actual)) {
    char is[128], should[128];
    clv__tensor_text(actual, is, sizeof is);
    clv__tensor_text(expected, should, sizeof should);
    snprintf(text, text_bytes, "'%s' is %s; expected %s", name, is, should);
    return false;
  }
  /* The kit's inputs are numbers of magnitudes up to about 1. Even if all expected numbers are near 0, their rounding errors
   * are those of the larger numbers that they were computed from, so the tolerance has a floor. */
  clv__difference worst;
  const double floor = clv__dtype_tolerance(expected->dtype) * NEAR_ZERO;
  if (clv__tensor_agrees(expected, actual, &worst)) return true;
  if (floor > 0 && fabs(worst.actual - worst.expected) <= floor) return true;
  if (worst.tolerance < floor) worst.tolerance = floor;
  char type[128];
  clv__tensor_text(expected, type, sizeof type);
  snprintf(text, text_bytes, "'%s' %s: element %zu is %.9g; expected %.9g (tolerance %.3g)", name, type, worst.element,
           worst.actual, worst.expected, worst.tolerance);
  return false;
}

bool clv__check_view_agrees(clv__check_program *program, const clv_tensor *values, char *text, size_t text_bytes) {
  clv_error error = {0};
  clv__check_job job = {0};
  clv_status status = program->executable != NULL ? CLV_OK : clv__check_program_compile(program, &error);
  if (status == CLV_OK) status = clv__check_job_open(program, values, &job, &error);
  bool agrees = false;
  if (status == CLV_OK)
    agrees = clv__check_job_run(&job, values, text, text_bytes);
  else
    clv__check_call_text("", status, &error, text, text_bytes);
  clv__check_job_finish(&job);
  return agrees;
}
