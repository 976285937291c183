/* See bodies.h. */
#include "backends/common/bodies.h"

#include <stddef.h>

#include "backends/common/kernels.h"

static clv_status run_node(void *cookie, const clv_node_call *node, clv_error *error) {
  const clv__fast_run *run = cookie;
  const clv__kernel *kernel = clv__fast_kernel_find(node->domain, node->op);
  const clv__kernel_call call = {.op = node->op,
                                 .opset = node->opset,
                                 .attributes = {node->attributes, node->attribute_count},
                                 .inputs = node->inputs,
                                 .input_count = node->input_count,
                                 .outputs = node->outputs,
                                 .output_count = node->output_count,
                                 .error = error,
                                 .stop = run->stop};
  char reason[160];
  if (kernel == NULL || !clv__kernel_accepts(kernel, &call, reason)) return CLV_NOT_SUPPORTED;
  return clv__kernel_run(kernel, &call, run->allocator);
}

static bool is_stopped(void *cookie) {
  const clv__fast_run *run = cookie;
  return clv__is_stopped(run->stop);
}

clv_evaluation clv__fast_evaluation(clv__fast_run *run) {
  return (clv_evaluation){sizeof(clv_evaluation), run_node, is_stopped, run};
}

clv_status clv__fast_evaluate(const clv_host *host, const clv_graph_view *graph, uint32_t node, const clv_tensor *inputs,
                              clv_tensor *outputs, const clv__stop *stop, clv_error *error) {
  const bool is_known = host->struct_size >= offsetof(clv_host, evaluate_node_with) + sizeof host->evaluate_node_with;
  if (!is_known || host->evaluate_node_with == NULL) return host->evaluate_node(graph, node, inputs, outputs, error);
  clv__fast_run run = {host->allocator, stop};
  const clv_evaluation how = clv__fast_evaluation(&run);
  return host->evaluate_node_with(graph, node, inputs, outputs, &how, error);
}
