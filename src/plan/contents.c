/* Lets programs read a plan: see cleave/plan_contents.h. */
#include "cleave/plan_contents.h"

#include <string.h>

#include "base/document.h"
#include "plan/plan.h"

_Static_assert(CLV_NO_INDEX == CLV__NO_ID, "an absent index must be the same number inside the library");
_Static_assert((int)CLV_TRANSFER_INNER == (int)CLV__BOUNDARY_INNER && (int)CLV_TRANSFER_INPUT == (int)CLV__BOUNDARY_INPUT &&
                   (int)CLV_TRANSFER_OUTPUT == (int)CLV__BOUNDARY_OUTPUT && (int)CLV_TRANSFER_WEIGHT == (int)CLV__BOUNDARY_WEIGHT,
               "kinds of transfers must be numbered as inside the library");

/* Copies `filled` to `info` as far as the caller's struct reaches. Both begin with their struct_size. */
static void fill(void *info, const void *filled, uint32_t size_bytes) {
  uint32_t struct_size;
  memcpy(&struct_size, info, sizeof struct_size);
  if (struct_size < size_bytes) size_bytes = struct_size;
  if (size_bytes <= sizeof struct_size) return;
  memcpy((char *)info + sizeof struct_size, (const char *)filled + sizeof struct_size, size_bytes - sizeof struct_size);
}

void clv_plan_get_info(const clv_plan *plan, clv_plan_info *info) {
  const clv_plan_info filled = {.step_count = plan->step_count,
                                .partition_count = plan->partition_count,
                                .transfer_count = plan->transfer_count,
                                .node_count = plan->graph->node_count,
                                .strategy = plan->placement.strategy,
                                .split = clv__split_name(plan->split),
                                .objective = clv__objective_name(plan->objective),
                                .latency = {plan->price.serial_ns, plan->bounds.serial_ns},
                                .overlap = {plan->price.overlapped_ns, plan->bounds.overlapped_ns},
                                .throughput = {plan->price.throughput_ns, plan->bounds.throughput_ns},
                                .gap = clv__plan_gap(plan)};
  fill(info, &filled, sizeof filled);
}

bool clv_plan_step(const clv_plan *plan, uint32_t index, clv_plan_step_info *info) {
  clv_plan_step_info filled = {0};
  bool exists = index < plan->step_count;
  if (exists) {
    const clv__step *step = &plan->steps[index];
    filled = (clv_plan_step_info){.is_transfer = step->is_transfer,
                                  .index = step->index,
                                  .dependency_count = step->dependency_count,
                                  .dependencies = step->dependencies};
  }
  fill(info, &filled, sizeof filled);
  return exists;
}

bool clv_plan_partition(const clv_plan *plan, uint32_t index, clv_partition_info *info) {
  clv_partition_info filled = {0};
  bool exists = index < plan->partition_count;
  if (exists) {
    const clv__partition *partition = &plan->partitions[index];
    filled = (clv_partition_info){.device = partition->device,
                                  .node_count = partition->node_count,
                                  .nodes = partition->nodes,
                                  .input_count = partition->view->input_count,
                                  .output_count = partition->view->output_count,
                                  .weight_bytes = partition->weight_bytes,
                                  .predicted_ns = plan->price.partition_ns[index]};
  }
  fill(info, &filled, sizeof filled);
  return exists;
}

static const char *value_name(const clv_plan *plan, const clv_graph_view *view, uint32_t local) {
  return plan->graph->values[view->values[local]].name;
}

const char *clv_plan_partition_input(const clv_plan *plan, uint32_t partition, uint32_t index) {
  const clv_graph_view *view = partition < plan->partition_count ? plan->partitions[partition].view : NULL;
  return view == NULL || index >= view->input_count ? NULL : value_name(plan, view, view->inputs[index]);
}

const char *clv_plan_partition_output(const clv_plan *plan, uint32_t partition, uint32_t index) {
  const clv_graph_view *view = partition < plan->partition_count ? plan->partitions[partition].view : NULL;
  return view == NULL || index >= view->output_count ? NULL : value_name(plan, view, view->outputs[index]);
}

bool clv_plan_transfer(const clv_plan *plan, uint32_t index, clv_transfer_info *info) {
  clv_transfer_info filled = {0};
  bool exists = index < plan->transfer_count;
  if (exists) {
    const clv__transfer *transfer = &plan->transfers[index];
    filled = (clv_transfer_info){.kind = (clv_transfer_kind)transfer->boundary,
                                 .value = plan->graph->values[transfer->value].name,
                                 .from = plan->devices->spaces[transfer->from],
                                 .to = plan->devices->spaces[transfer->to],
                                 .size_bytes = transfer->size_bytes,
                                 .predicted_ns = plan->price.copy_ns[index]};
  }
  fill(info, &filled, sizeof filled);
  return exists;
}

static bool runs(const clv_plan *plan, uint32_t node) {
  return node < plan->graph->node_count && plan->placement.devices[node] != CLV__NO_ID;
}

bool clv_plan_node(const clv_plan *plan, uint32_t index, clv_placed_node_info *info) {
  clv_placed_node_info filled = {0};
  bool exists = index < plan->graph->node_count;
  if (exists) {
    filled =
        (clv_placed_node_info){.device = plan->placement.devices[index],
                               .partition = runs(plan, index) ? plan->cut.partition_of[plan->problem_nodes[index]] : CLV_NO_INDEX,
                               .name = plan->graph->nodes[index].name,
                               .op = plan->graph->nodes[index].op,
                               .cause = plan->placement.causes[index],
                               .note = plan->placement.notes[index]};
  }
  fill(info, &filled, sizeof filled);
  return exists;
}

const char *clv_plan_node_refusal(const clv_plan *plan, uint32_t node, uint32_t device) {
  if (!runs(plan, node) || device >= plan->devices->count || plan->capability.reasons == NULL) return NULL;
  return clv__capability_reason(&plan->capability, node, device);
}

bool clv_plan_move_ns(const clv_plan *plan, uint32_t node, uint32_t device, int64_t *delta_ns) {
  *delta_ns = 0;
  return runs(plan, node) && device < plan->devices->count && clv__plan_move_price(plan, node, device, delta_ns);
}

/* ---- Text ---- */

clv_status clv_plan_json(const clv_plan *plan, char **text, clv_error *error) {
  if (plan == NULL || text == NULL) return clv__error_set(error, CLV_INVALID_ARGUMENT, "plan and text must not be NULL");
  char *made;
  *text = NULL;
  CLV__TRY(clv__graph_check_files(plan->graph, error)); /* the hash of the model is computed from its files */
  CLV__TRY(clv__plan_to_json(plan, false, &made, error));
  clv__text whole;
  clv__text_init(&whole, plan->graph->allocator);
  clv__text_append_bytes(&whole, made, strlen(made));
  clv__release(plan->graph->allocator, made);
  return clv__document_give(&whole, text, error);
}
