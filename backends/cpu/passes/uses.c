/* Counts the readers of each value and finds its producer and last reader. Runs again after each pass that changes which nodes
 * read a value. */
#include "plan.h"

#define LEAVES (CLV__CPU_NONE - 1)

static void drop_dead(clv__cpu_plan *plan) {
  for (uint32_t i = 0; i < plan->value_count; ++i) plan->values[i].readers = plan->values[i].output != CLV__CPU_NONE;
  for (uint32_t i = plan->node_count; i-- > 0;) {
    clv__cpu_plan_node *node = &plan->nodes[i];
    if (node->dead) continue;
    bool wanted = false;
    for (uint32_t o = 0; o < node->output_count; ++o) {
      if (node->outputs[o] != CLV__CPU_NONE && plan->values[node->outputs[o]].readers > 0) wanted = true;
    }
    node->dead = !wanted;
    if (node->dead) continue;
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] == CLV__CPU_NONE) continue;
      plan->values[node->inputs[k]].readers++;
      plan->values[node->inputs[k]].reader = i;
    }
    for (uint32_t k = 0; k < node->post_count; ++k) {
      if (node->posts[k].kind != CLV__CPU_POST_ADD) continue;
      plan->values[node->posts[k].value].readers++;
      plan->values[node->posts[k].value].reader = CLV__CPU_NONE;
    }
  }
}

static void note_read(clv__cpu_plan *plan, uint32_t value, uint32_t node) {
  clv__cpu_plan_value *read = &plan->values[value];
  if (read->last_read == CLV__CPU_NONE || (read->last_read != LEAVES && read->last_read < node)) read->last_read = node;
}

void clv__cpu_pass_count(clv__cpu_plan *plan) {
  drop_dead(plan);
  for (uint32_t i = 0; i < plan->value_count; ++i) {
    plan->values[i].producer = CLV__CPU_NONE;
    plan->values[i].last_read = plan->values[i].output != CLV__CPU_NONE ? LEAVES : CLV__CPU_NONE;
  }
  for (uint32_t i = plan->node_count; i-- > 0;) {
    const clv__cpu_plan_node *node = &plan->nodes[i];
    if (node->dead) continue;
    for (uint32_t o = 0; o < node->output_count; ++o) {
      if (node->outputs[o] != CLV__CPU_NONE) plan->values[node->outputs[o]].producer = i;
    }
    for (uint32_t k = 0; k < node->input_count; ++k) {
      if (node->inputs[k] != CLV__CPU_NONE) note_read(plan, node->inputs[k], i);
    }
    for (uint32_t k = 0; k < node->post_count; ++k) {
      if (node->posts[k].kind == CLV__CPU_POST_ADD) note_read(plan, node->posts[k].value, i);
    }
    if (node->kind != CLV__CPU_VIEW) continue;
    const uint32_t last = plan->values[node->outputs[0]].last_read; /* later readers of the view also read its source */
    if (last == LEAVES) plan->values[node->inputs[0]].last_read = LEAVES;
    if (last != CLV__CPU_NONE && last != LEAVES) note_read(plan, node->inputs[0], last);
  }
}

clv_status clv__cpu_known(clv__cpu_plan *plan, uint32_t value, void **data, clv_error *error) {
  *data = NULL;
  if (value == CLV__CPU_NONE || !plan->values[value].is_constant) return CLV_OK;
  const bool is_folded = !plan->program->values[value].is_constant; /* folded by this plan */
  if (plan->values[value].outer != CLV_DTYPE_NONE && !is_folded && plan->values[value].type.data == NULL) {
    return clv__cpu_constant_wide(plan->constants, value, data, error);
  }
  if (is_folded || plan->values[value].outer != CLV_DTYPE_NONE) {
    *data = plan->values[value].type.data;
    return CLV_OK;
  }
  return clv__cpu_constant_raw(plan->constants, value, data, error);
}

bool clv__cpu_is_f32(const clv_tensor *type) {
  size_t count;
  return type->dtype == CLV_F32 && clv__tensor_is_static(type) && clv__tensor_count(type, &count) && count > 0;
}

clv__cpu_plan_node *clv__cpu_only_reader(clv__cpu_plan *plan, uint32_t value) {
  const clv__cpu_plan_value *read = &plan->values[value];
  if (read->readers != 1 || read->output != CLV__CPU_NONE || read->reader == CLV__CPU_NONE) return NULL;
  return &plan->nodes[read->reader];
}
