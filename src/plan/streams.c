/* Finds the weights that a device accepts as inputs instead of constants: only those can be streamed to it. It asks only devices
 * whose memory could be too small, or all devices if the user placed weights in the memory of particular devices. */
#include "plan/plan.h"

/* Weights of at least this size are worth streaming on their own. Smaller ones are often shapes and scales. */
#define LARGE_BYTES 4096

typedef struct asking {
  const clv_plan *plan;
  const clv__problem *problem;
  clv__arena arena; /* memory for the views */
  uint16_t *streams;
  uint32_t asked; /* bits of the devices that are asked */
} asking;

static uint64_t total_bytes(const clv__problem *problem) {
  uint64_t total = 0;
  for (uint32_t v = 0; v < problem->value_count; ++v)
    total = clv__sum_ns(total, clv__align_up(problem->value_bytes[v], CLV__ALIGNMENT));
  for (uint32_t w = 0; w < problem->weight_count; ++w)
    total = clv__sum_ns(total, clv__align_up(problem->weight_bytes[w], CLV__ALIGNMENT));
  return total;
}

uint32_t clv__plan_small_devices(const clv__problem *problem) {
  uint64_t total = total_bytes(problem);
  uint32_t devices = 0;
  for (uint32_t d = 0; d < problem->device_count; ++d) {
    uint64_t limit = problem->limits[d].memory_bytes;
    bool is_small = limit > 0 && (total > limit / 2 || clv__sum_ns(total, CLV__SCRATCH_GUESS_BYTES) > limit);
    if (problem->spaces[d] != 0 && is_small) devices |= 1u << d;
  }
  return devices;
}

static uint32_t devices_to_ask(const clv__problem *problem) {
  uint32_t devices = clv__plan_small_devices(problem);
  bool is_put = false;
  for (uint32_t w = 0; w < problem->weight_count && !is_put; ++w) is_put = problem->weight_homes[w] != CLV__NONE;
  for (uint32_t d = 0; d < problem->device_count; ++d) devices |= (is_put && problem->spaces[d] != 0 ? 1u : 0u) << d;
  return devices;
}

/* Builds a view of the graph with the weights of at least `least_bytes` as inputs. */
static clv_status open_weights(asking *a, uint64_t least_bytes, const clv_graph_view **out, clv_error *error) {
  const clv__problem *problem = a->problem;
  const clv_graph *graph = a->plan->graph;
  clv_graph_view *view;
  clv_tensor *types = clv__arena_copy(&a->arena, clv__plan_sized_types(a->plan), graph->value_count * sizeof *types);
  if (types == NULL) return clv__error_memory(error, graph->value_count * sizeof *types);
  for (uint32_t w = 0; w < problem->weight_count; ++w) {
    if (problem->weight_bytes[w] >= least_bytes) types[problem->weight_ids[w]].data = NULL;
  }
  CLV__TRY(clv__view_create_whole(graph, types, &a->arena, &view, error));
  *out = view;
  return CLV_OK;
}

static bool takes(const asking *a, const clv_graph_view *view, uint32_t node, uint32_t device) {
  const clv__device *asked = &a->plan->devices->items[device];
  clv_verdict verdict = {0};
  asked->backend->supports(asked->handle, view, a->problem->node_ids[node], &verdict);
  return verdict.supported;
}

/* Clears the bits of weights that the device does not accept as inputs of the node. A weight can be streamed to a device only if
 * all its readers that could run there accept it as an input. */
static void ask_node(const asking *a, const clv_graph_view *all, const clv_graph_view *large, uint32_t node, uint32_t device) {
  const clv__problem *problem = a->problem;
  uint32_t first = problem->weight_offsets[node], end = problem->weight_offsets[node + 1];
  if (first == end || !clv__can_run(problem, node, device) || clv__is_hosted(problem, node, device)) return;
  if (takes(a, all, node, device)) return;
  bool has_large = false;
  for (uint32_t k = first; k < end; ++k) has_large = has_large || problem->weight_bytes[problem->weights[k]] >= LARGE_BYTES;
  bool takes_large = has_large && takes(a, large, node, device);
  for (uint32_t k = first; k < end; ++k) {
    uint32_t weight = problem->weights[k];
    if (!takes_large || problem->weight_bytes[weight] < LARGE_BYTES) a->streams[weight] &= (uint16_t) ~(1u << device);
  }
}

clv_status clv__plan_ask_streams(clv_plan *plan, clv__problem *problem, clv_error *error) {
  asking a = {.plan = plan, .problem = problem, .asked = devices_to_ask(problem)};
  const clv_graph_view *all, *large;
  a.streams = clv__arena_allocate_zero(&plan->arena, problem->weight_count, sizeof *a.streams);
  if (a.streams == NULL) return clv__error_memory(error, problem->weight_count * sizeof *a.streams);
  problem->streams = a.streams;
  if (a.asked == 0) return CLV_OK;
  for (uint32_t w = 0; w < problem->weight_count; ++w) a.streams[w] = (uint16_t)a.asked;
  clv__arena_init(&a.arena, plan->graph->allocator);
  clv_status status = open_weights(&a, 0, &all, error);
  if (status == CLV_OK) status = open_weights(&a, LARGE_BYTES, &large, error);
  for (uint32_t d = 0; status == CLV_OK && d < problem->device_count; ++d) {
    for (uint32_t n = 0; (a.asked >> d & 1u) != 0 && n < problem->node_count; ++n) ask_node(&a, all, large, n, d);
  }
  clv__arena_finish(&a.arena);
  return status;
}
