/* Verdicts of devices without a plan: see cleave/support.h. The first steps of clv_plan_make(), without the later ones. */
#include "cleave/support.h"

#include <string.h>

#include "base/options.h"
#include "plan/make.h"

struct clv_support {
  const clv_allocator *allocator;
  clv_plan *plan; /* never placed */
};

static clv_status ask(clv_plan *plan, const clv_plan_options *options, clv_error *error) {
  clv_graph_view *whole;
  clv__poll poll = {options->go_on, options->go_on_user_data, false};
  CLV__TRY(clv__view_create_whole(plan->graph, plan->shapes->types, &plan->arena, &whole, error));
  CLV__TRY(clv__capability_ask(plan->devices, whole, plan->shapes->node_folded, plan->open, options->support,
                               options->support_user_data, &poll, &plan->capability, error));
  return clv__plan_host_views(plan, error);
}

clv_status clv_support_ask(const clv_graph *graph, clv_devices *devices, const clv_plan_options *given, clv_support **out,
                           clv_error *error) {
  if (out == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "the pointer that receives the support must not be NULL");
  *out = NULL;
  if (graph == NULL || devices == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "graph and devices must not be NULL");
  clv_plan_options options = CLV_PLAN_OPTIONS_INIT;
  CLV__TRY(clv__options_read(&options, sizeof options, given, "CLV_PLAN_OPTIONS_INIT", error));
  CLV__TRY(clv__options_list(options.sizes, options.size_count, "sizes", error));
  clv_support *support = clv__allocate_zero(graph->allocator, sizeof *support);
  if (support == NULL) return clv__error_memory(error, sizeof *support);
  support->allocator = graph->allocator;
  clv_status status = clv__plan_create(graph, devices, options.sizes, options.size_count, NULL, 0, &support->plan, error);
  if (status == CLV_OK) {
    clv__devices_lock(devices);
    status = ask(support->plan, &options, error);
    clv__devices_unlock(devices);
  }
  if (status == CLV_OK)
    *out = support;
  else
    clv_support_destroy(support);
  return status;
}

void clv_support_destroy(clv_support *support) {
  if (support == NULL) return;
  clv_plan_destroy(support->plan);
  clv__release(support->allocator, support);
}

uint32_t clv_support_node_count(const clv_support *support) {
  return support->plan->graph->node_count;
}

bool clv_support_node(const clv_support *support, uint32_t index, clv_node_support *info) {
  const clv_plan *plan = support->plan;
  clv_node_support filled = {0};
  bool exists = index < plan->graph->node_count;
  if (exists) {
    filled.is_folded = filled.can_run = plan->shapes->node_folded[index];
    for (uint32_t d = 0; d < plan->devices->count && !filled.can_run; ++d) {
      filled.can_run = clv__capability_reason(&plan->capability, index, d) == NULL;
    }
    filled.name = plan->graph->nodes[index].name;
    filled.op = plan->graph->nodes[index].op;
  }
  size_t size_bytes = info->struct_size < sizeof filled ? info->struct_size : sizeof filled;
  size_t first = sizeof filled.struct_size;
  if (size_bytes > first) memcpy((char *)info + first, (const char *)&filled + first, size_bytes - first);
  return exists;
}

const char *clv_support_refusal(const clv_support *support, uint32_t node, uint32_t device) {
  const clv_plan *plan = support->plan;
  if (node >= plan->graph->node_count || device >= plan->devices->count || plan->shapes->node_folded[node]) return NULL;
  return clv__capability_reason(&plan->capability, node, device);
}
