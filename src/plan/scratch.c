/* The scratch of single nodes. Only compilers know it, and asking them takes time, so planning asks only after a plan did not
 * fit. From then on, strategies and the remedies of memory_ways.c count it. */
#include <string.h>

#include "plan/plan.h"

/* Returns the scratch bytes that the device's compiler states for the view. Returns 0 if the device is lost or cannot compile
 * the view; then the compiler's answer for the whole partition, which is asked for later, decides. */
static uint64_t ask(const clv_plan *plan, uint32_t device, const clv_graph_view *view) {
  const clv__device *asked = &plan->devices->items[device];
  clv_compile_options options = {.struct_size = sizeof options};
  clv_executable_info info = {.struct_size = sizeof info};
  clv_executable *executable = NULL;
  if (asked->backend->compile(asked->handle, view, &options, &executable, NULL) != CLV_OK) return 0;
  asked->backend->executable_info(asked->handle, executable, &info);
  asked->backend->executable_destroy(asked->handle, executable);
  return info.scratch_bytes;
}

/* Returns the bytes of the node's outputs that nothing reads. The compiler includes them in the scratch, and
 * clv__memory_count() adds them itself, so the caller subtracts them once. */
static uint64_t unread_bytes(const clv__problem *problem, uint32_t node, uint32_t device) {
  uint64_t bytes = 0;
  for (uint32_t w = problem->write_offsets[node]; w < problem->write_offsets[node + 1]; ++w) {
    uint32_t value = problem->writes[w];
    if (problem->is_output[value] || problem->reader_offsets[value] < problem->reader_offsets[value + 1]) continue;
    bytes += clv__align_up(problem->value_bytes[value], problem->alignments[problem->spaces[device]]);
  }
  return bytes;
}

static clv_status ask_node(const clv_plan *plan, uint32_t node, uint32_t devices, uint64_t *bytes, clv_error *error) {
  clv__arena work;
  clv_graph_view *view;
  clv__arena_init(&work, plan->graph->allocator);
  clv_status status = clv__view_create(plan->graph, clv__plan_sized_types(plan), &plan->problem->node_ids[node], 1, plan->is_kept,
                                       &work, &view, error);
  for (uint32_t d = 0; status == CLV_OK && d < plan->devices->count; ++d) {
    view->fills = plan->shapes->fills;
    if ((devices >> d & 1u) == 0 || !clv__can_run(plan->problem, node, d) || clv__is_hosted(plan->problem, node, d)) continue;
    const uint64_t all = ask(plan, d, view), unread = unread_bytes(plan->problem, node, d);
    bytes[d] = all > unread ? all - unread : 0;
  }
  clv__arena_finish(&work);
  return status;
}

clv_status clv__plan_ask_scratch(clv_plan *plan, clv_error *error) {
  if (plan->problem->scratch_bytes != NULL) return CLV_OK;
  const uint32_t devices = clv__plan_small_devices(plan->problem), nodes = plan->problem->node_count;
  clv__problem *problem = clv__arena_copy(&plan->arena, plan->problem, sizeof *problem);
  uint64_t *bytes = clv__arena_allocate_zero(&plan->arena, (size_t)nodes * plan->devices->count, sizeof *bytes);
  if (problem == NULL || bytes == NULL) return clv__error_memory(error, (size_t)nodes * plan->devices->count * sizeof *bytes);
  for (uint32_t n = 0; n < nodes; ++n) CLV__TRY(ask_node(plan, n, devices, &bytes[(size_t)n * plan->devices->count], error));
  problem->scratch_bytes = bytes;
  memset(plan->unforeseen_bytes, 0, sizeof plan->unforeseen_bytes);
  plan->problem = problem;
  return CLV_OK;
}
