/* The reference evaluator over a graph. It runs node by node and frees each value after its last reader. evaluate_body.c calls
 * back into this file to run the bodies of If, Loop and Scan. */
#include "analysis/evaluate.h"

#include "analysis/evaluate_body.h"
#include "analysis/node.h"
#include "analysis/shapes.h"
#include "operators/infer.h"

clv_status clv__tensor_clone(const clv_tensor *from, clv_tensor *to, const clv_allocator *allocator, clv_error *error) {
  size_t size_bytes;
  if (!clv__tensor_size_bytes(from, &size_bytes)) {
    return clv__error_set(error, CLV_INVALID_ARGUMENT, "cannot copy a value that is missing or has an unknown size");
  }
  void *data = clv__allocate(allocator, size_bytes);
  if (data == NULL) return clv__error_memory(error, size_bytes);
  if (size_bytes > 0) memcpy(data, from->data, size_bytes);
  *to = *from;
  to->data = data;
  return CLV_OK;
}

clv_status clv__call_evaluate(const char *domain, const clv__kernel_call *call, const clv__evaluation *how,
                              const clv_allocator *allocator) {
  if (how->by != NULL && how->by->run_node != NULL) {
    const clv_node_call node = {.struct_size = sizeof node,
                                .opset = call->opset,
                                .op = call->op,
                                .domain = domain,
                                .attribute_count = call->attributes.count,
                                .input_count = call->input_count,
                                .output_count = call->output_count,
                                .attributes = call->attributes.items,
                                .inputs = call->inputs,
                                .outputs = call->outputs};
    const clv_status status = how->by->run_node(how->by->cookie, &node, call->error);
    if (status != CLV_NOT_SUPPORTED) return status;
  }
  return clv__call_run(domain, call, allocator);
}

static clv_status allocate_outputs(const clv_graph *graph, const clv__node *node, clv_tensor *outputs,
                                   const clv_allocator *allocator, clv_error *error) {
  for (uint32_t i = 0; i < node->output_count; ++i) {
    clv_tensor type = outputs[i];
    memset(&outputs[i], 0, sizeof outputs[i]);
    if (node->outputs[i] == CLV__NO_ID) continue;
    size_t size_bytes;
    if (!clv__tensor_is_static(&type)) {
      char text[96];
      clv__graph_type_text(graph, &type, text, sizeof text);
      return clv__error_set(error, CLV_NOT_SUPPORTED, "the shape of its output '%s' is unknown: %s",
                            graph->values[node->outputs[i]].name, text);
    }
    if (!clv__tensor_size_bytes(&type, &size_bytes)) {
      return clv__error_set(error, CLV_OUT_OF_MEMORY, "its output '%s' is too large for any memory",
                            graph->values[node->outputs[i]].name);
    }
    type.data = clv__allocate(allocator, size_bytes);
    if (type.data == NULL) return clv__error_memory(error, size_bytes);
    outputs[i] = type;
  }
  return CLV_OK;
}

/* Runs a node that has a kernel: aligns the inputs, infers the outputs' types from the inputs' data, allocates the outputs and
 * calls the kernel. */
static clv_status evaluate_plain(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                                 const clv__evaluation *how, const clv_allocator *allocator, clv_error *error) {
  const clv__node *node = &graph->nodes[id];
  uint32_t count = node->input_count;
  clv_tensor *aligned = clv__allocate(allocator, count * sizeof *aligned);
  if (aligned == NULL) return clv__error_memory(error, count * sizeof *aligned);
  clv_status status = clv__operands_align(inputs, count, SIZE_MAX, aligned, allocator, error);
  if (status != CLV_OK) {
    clv__release(allocator, aligned);
    return clv__node_error(node, status, error);
  }
  status = clv__node_infer(graph, id, aligned, outputs, error);
  if (status == CLV_OK) {
    status = allocate_outputs(graph, node, outputs, allocator, error);
    const clv__kernel_call call = {.op = node->op,
                                   .opset = node->opset,
                                   .attributes = node->attributes,
                                   .inputs = aligned,
                                   .input_count = clv__node_explicit_inputs(node),
                                   .outputs = outputs,
                                   .output_count = node->output_count,
                                   .error = error};
    if (status == CLV_OK) status = clv__call_evaluate(node->domain, &call, how, allocator);
    if (status != CLV_OK) clv__node_error(node, status, error);
  }
  clv__operands_release(inputs, count, aligned, allocator);
  clv__release(allocator, aligned);
  return status;
}

clv_status clv__node_evaluate_at(const clv_graph *graph, clv_node_id id, const clv_tensor *inputs, clv_tensor *outputs,
                                 const clv__evaluation *how, const clv_allocator *allocator, clv_error *error) {
  const clv__node *node = &graph->nodes[id];
  for (uint32_t i = 0; i < node->output_count; ++i) memset(&outputs[i], 0, sizeof outputs[i]);
  const clv__op *op = clv__op_find(node->domain, node->op);
  clv_status status;
  if (op == NULL) {
    status = clv__error_set(error, CLV_NOT_SUPPORTED, "operator %s%s%s (opset %d) is unknown", node->domain,
                            node->domain[0] != '\0' ? "." : "", node->op, node->opset);
    clv__node_error(node, status, error);
  } else if ((op->flags & CLV__OP_HAS_BODY) == 0) {
    status = evaluate_plain(graph, id, inputs, outputs, how, allocator, error);
  } else if (how->depth >= CLV__MAX_BODY_DEPTH) {
    status = clv__error_set(error, CLV_NOT_SUPPORTED, "bodies are nested more than %d levels deep", CLV__MAX_BODY_DEPTH);
    clv__node_error(node, status, error);
  } else {
    const clv__evaluation deeper = {how->depth + 1, how->by};
    status = clv__body_evaluate(graph, id, inputs, outputs, &deeper, allocator, error);
    if (status != CLV_OK) clv__node_error(node, status, error);
  }
  if (status != CLV_OK) {
    for (uint32_t i = 0; i < node->output_count; ++i) {
      clv__release(allocator, outputs[i].dtype != CLV_DTYPE_NONE ? outputs[i].data : NULL);
      memset(&outputs[i], 0, sizeof outputs[i]);
    }
  }
  return status;
}

clv_status clv__node_evaluate(const clv_graph *graph, clv_node_id node, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv_allocator *allocator, clv_error *error) {
  return clv__node_evaluate_with(graph, node, inputs, outputs, NULL, allocator, error);
}

clv_status clv__node_evaluate_with(const clv_graph *graph, clv_node_id node, const clv_tensor *inputs, clv_tensor *outputs,
                                   const clv_evaluation *how, const clv_allocator *allocator, clv_error *error) {
  return clv__node_evaluate_at(graph, node, inputs, outputs, &(clv__evaluation){0, how}, allocator, error);
}

/* The state of one evaluation of a view. */
typedef struct run {
  const clv_graph_view *view;
  const clv_allocator *allocator;
  clv_tensor *values; /* by value of the view; dtype NONE: not computed yet */
  bool *owned;        /* by value: this run owns the data */
  uint32_t *readers;  /* by value: remaining reads, including the view's outputs */
  clv_tensor *operands;
  clv__value_fn watch;
  void *cookie;
} run;

/* A node's inputs, then its outputs: values of the view or CLV_NO_VALUE. */
static const uint32_t *operands_of(const run *r, uint32_t node) {
  return r->view->operands + r->view->operand_offsets[node];
}

static clv_status run_prepare(run *r, clv_error *error) {
  const clv_graph_view *view = r->view;
  uint32_t widest = 1;
  for (uint32_t n = 0; n < view->node_count; ++n) {
    uint32_t operands = view->operand_offsets[n + 1] - view->operand_offsets[n];
    if (operands > widest) widest = operands;
  }
  size_t values_bytes = (size_t)view->value_count * sizeof *r->values;
  r->values = clv__allocate_zero(r->allocator, values_bytes);
  r->owned = clv__allocate_zero(r->allocator, view->value_count * sizeof *r->owned);
  r->readers = clv__allocate_zero(r->allocator, view->value_count * sizeof *r->readers);
  r->operands = clv__allocate_zero(r->allocator, widest * sizeof *r->operands);
  if (r->values == NULL || r->owned == NULL || r->readers == NULL || r->operands == NULL) {
    return clv__error_memory(error, values_bytes);
  }
  for (uint32_t n = 0; n < view->node_count; ++n) {
    const uint32_t *inputs = operands_of(r, n);
    for (uint32_t i = 0; i < clv__view_node(view, n)->input_count; ++i) {
      if (inputs[i] != CLV_NO_VALUE) r->readers[inputs[i]]++;
    }
  }
  for (uint32_t i = 0; i < view->output_count; ++i) r->readers[view->outputs[i]]++;
  return CLV_OK;
}

static void run_finish(run *r) {
  for (uint32_t v = 0; r->values != NULL && r->owned != NULL && v < r->view->value_count; ++v) {
    if (r->owned[v]) clv__release(r->allocator, r->values[v].data);
  }
  clv__release(r->allocator, r->operands);
  clv__release(r->allocator, r->readers);
  clv__release(r->allocator, r->owned);
  clv__release(r->allocator, r->values);
}

static clv_status check_input(const clv_graph *graph, const clv__value *value, const clv_tensor *given, bool with_shape,
                              clv_error *error) {
  const clv_tensor *declared = &value->type;
  bool fits = declared->dtype == CLV_DTYPE_NONE || declared->dtype == given->dtype;
  if (with_shape && declared->dtype != CLV_DTYPE_NONE && declared->rank >= 0) {
    fits = fits && declared->rank == given->rank;
    for (int32_t i = 0; fits && i < declared->rank; ++i) fits = declared->dims[i] < 0 || declared->dims[i] == given->dims[i];
  }
  if (fits) return CLV_OK;
  char want[96], have[96];
  clv__graph_type_text(graph, declared, want, sizeof want);
  clv__tensor_text(given, have, sizeof have);
  return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is given as %s, but declared as %s", value->name, have, want);
}

/* Sets the values of a whole graph that exist before the first node: initializers, inputs and captures. */
static clv_status begin_whole(run *r, const clv_tensor *inputs, const clv_tensor *captures, bool is_body, clv_error *error) {
  const clv_graph *graph = r->view->graph;
  for (clv_value_id v = 0; v < graph->value_count; ++v) {
    const clv__value *value = &graph->values[v];
    if (value->type.data != NULL && value->producer == CLV__NO_ID) r->values[v] = value->type;
  }
  for (uint32_t i = 0; i < graph->input_count; ++i) {
    clv_value_id v = graph->inputs[i];
    if (inputs == NULL || inputs[i].dtype == CLV_DTYPE_NONE) {
      if (r->values[v].dtype != CLV_DTYPE_NONE) continue;
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "input '%s' is not given", graph->values[v].name);
    }
    CLV__TRY(check_input(graph, &graph->values[v], &inputs[i], !is_body, error));
    r->values[v] = inputs[i];
  }
  for (uint32_t i = 0; i < graph->capture_count; ++i) {
    if (captures == NULL) {
      return clv__error_set(error, CLV_INVALID_ARGUMENT, "captured value '%s' is not given",
                            graph->values[graph->captures[i]].name);
    }
    r->values[graph->captures[i]] = captures[graph->capture_index[i]];
  }
  for (clv_value_id v = 0; r->watch != NULL && v < graph->value_count; ++v) {
    if (r->values[v].dtype != CLV_DTYPE_NONE) CLV__TRY(r->watch(r->cookie, v, &r->values[v], error));
  }
  return CLV_OK;
}

/* Sets the values of a part of a graph that exist before the first node: constants, which are the values whose type has data, and
 * inputs. */
static void begin_part(run *r, const clv_tensor *inputs) {
  const clv_graph_view *view = r->view;
  for (uint32_t v = 0; v < view->value_count; ++v) {
    if (clv__view_type(view, v)->data != NULL) r->values[v] = *clv__view_type(view, v);
  }
  for (uint32_t i = 0; i < view->input_count; ++i) r->values[view->inputs[i]] = inputs[i];
}

static void drop_reader(run *r, uint32_t v) {
  if (r->readers[v] > 0) r->readers[v]--;
  if (r->readers[v] > 0 || !r->owned[v]) return;
  clv__release(r->allocator, r->values[v].data);
  r->owned[v] = false;
  memset(&r->values[v], 0, sizeof r->values[v]);
}

static clv_status run_one(run *r, uint32_t index, const clv__evaluation *how, clv_error *error) {
  const clv__node *node = clv__view_node(r->view, index);
  const uint32_t *from = operands_of(r, index), *to = from + node->input_count;
  clv_tensor *inputs = r->operands, *outputs = r->operands + node->input_count;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    memset(&inputs[i], 0, sizeof inputs[i]);
    if (from[i] != CLV_NO_VALUE) inputs[i] = r->values[from[i]];
  }
  CLV__TRY(clv__node_evaluate_at(r->view->graph, r->view->nodes[index], inputs, outputs, how, r->allocator, error));
  for (uint32_t i = 0; i < node->output_count; ++i) {
    if (to[i] == CLV_NO_VALUE || outputs[i].dtype == CLV_DTYPE_NONE) continue;
    r->values[to[i]] = outputs[i];
    r->owned[to[i]] = true;
  }
  for (uint32_t i = 0; i < node->output_count; ++i) {
    uint32_t v = to[i];
    if (v == CLV_NO_VALUE || !r->owned[v]) continue;
    if (r->watch != NULL) CLV__TRY(r->watch(r->cookie, r->view->values[v], &r->values[v], error));
    if (r->readers[v] == 0) drop_reader(r, v);
  }
  for (uint32_t i = 0; i < node->input_count; ++i) {
    if (from[i] != CLV_NO_VALUE) drop_reader(r, from[i]);
  }
  return CLV_OK;
}

/* Passes the outputs to the caller. An output is copied if this run does not own it (an input, an initializer) or if it is listed
 * twice. */
static clv_status run_outputs(run *r, clv_tensor *outputs, clv_error *error) {
  for (uint32_t i = 0; i < r->view->output_count; ++i) {
    uint32_t v = r->view->outputs[i];
    if (r->values[v].dtype == CLV_DTYPE_NONE) {
      return clv__error_set(error, CLV_INVALID_MODEL, "no node produces output '%s'",
                            r->view->graph->values[r->view->values[v]].name);
    }
    if (r->owned[v] && r->readers[v] == 1) {
      outputs[i] = r->values[v];
      r->owned[v] = false;
    } else {
      CLV__TRY(clv__tensor_clone(&r->values[v], &outputs[i], r->allocator, error));
    }
    r->readers[v]--;
  }
  return CLV_OK;
}

static clv_status check_stop(const clv__evaluation *how, clv_error *error) {
  if (how->by == NULL || how->by->is_stopped == NULL || !how->by->is_stopped(how->by->cookie)) return CLV_OK;
  return clv__error_set(error, CLV_CANCELLED, "it was stopped");
}

/* Runs the nodes of a graph, or of part of one, and stores the results in `outputs`. The caller has set the values that exist
 * before the first node, and has zeroed `outputs`. After an error they are zero again. */
static clv_status run_nodes(run *r, clv_tensor *outputs, const clv__evaluation *how, clv_error *error) {
  clv_status status = CLV_OK;
  for (uint32_t n = 0; status == CLV_OK && n < r->view->node_count; ++n) {
    status = check_stop(how, error);
    if (status == CLV_OK) status = run_one(r, n, how, error);
  }
  if (status == CLV_OK) status = check_stop(how, error); /* a body may have no nodes */
  if (status == CLV_OK) status = run_outputs(r, outputs, error);
  if (status == CLV_OK) return CLV_OK;
  for (uint32_t i = 0; i < r->view->output_count; ++i) {
    clv__release(r->allocator, outputs[i].data);
    memset(&outputs[i], 0, sizeof outputs[i]);
  }
  return status;
}

clv_status clv__graph_evaluate_at(const clv_graph *graph, const clv_tensor *inputs, const clv_tensor *captures,
                                  clv_tensor *outputs, clv__value_fn watch, void *cookie, const clv__evaluation *how,
                                  const clv_allocator *allocator, clv_error *error) {
  run r = {.view = graph->whole, .allocator = allocator, .watch = watch, .cookie = cookie};
  memset(outputs, 0, graph->output_count * sizeof *outputs);
  clv_status status = run_prepare(&r, error);
  if (status == CLV_OK) status = begin_whole(&r, inputs, captures, how->depth > 0, error);
  if (status == CLV_OK) status = run_nodes(&r, outputs, how, error);
  run_finish(&r);
  return status;
}

clv_status clv__view_evaluate(const clv_graph_view *view, const clv_tensor *inputs, clv_tensor *outputs,
                              const clv_allocator *allocator, clv_error *error) {
  const clv__evaluation how = {0, NULL};
  run r = {.view = view, .allocator = allocator};
  memset(outputs, 0, view->output_count * sizeof *outputs);
  clv_status status = run_prepare(&r, error);
  if (status == CLV_OK) begin_part(&r, inputs);
  if (status == CLV_OK) status = run_nodes(&r, outputs, &how, error);
  run_finish(&r);
  return status;
}

bool clv__view_is_known(const clv_graph_view *view) {
  for (uint32_t n = 0; n < view->node_count; ++n) {
    const clv__node *node = clv__view_node(view, n);
    if (clv__op_find(node->domain, node->op) == NULL) return false;
  }
  return true;
}

clv_status clv__graph_evaluate_with(const clv_graph *graph, const clv_tensor *inputs, const clv_tensor *captures,
                                    clv_tensor *outputs, clv__value_fn watch, void *cookie, const clv_evaluation *how,
                                    const clv_allocator *allocator, clv_error *error) {
  memset(outputs, 0, graph->output_count * sizeof *outputs);
  CLV__TRY(clv__graph_check_bound(graph, error));
  return clv__graph_evaluate_at(graph, inputs, captures, outputs, watch, cookie, &(clv__evaluation){0, how}, allocator, error);
}

clv_status clv__graph_evaluate(const clv_graph *graph, const clv_tensor *inputs, const clv_tensor *captures, clv_tensor *outputs,
                               clv__value_fn watch, void *cookie, const clv_allocator *allocator, clv_error *error) {
  return clv__graph_evaluate_with(graph, inputs, captures, outputs, watch, cookie, NULL, allocator, error);
}
