/* Lowers attention to one step, which calls the kernel of backends/common. The operands are read where they were computed. */
#include "backends/cpu/passes/attention.h"
#include "backends/common/kernels.h"
#include "lower.h"

typedef struct step {
  clv__cpu_own own;
  const clv__attention *call;
  uint32_t mask_count;
} step;

/* Operands: Q, K, V, masks, the result, scratch. */
static void run(const clv__cpu_own *own, const clv_tensor *operands, const clv__stop *stop) {
  const step *s = (const step *)(const void *)own;
  clv__attention a = *s->call;
  a.query.tensor = &operands[CLV__CPU_ATTENTION_QUERY];
  a.key.tensor = &operands[CLV__CPU_ATTENTION_KEY];
  a.value.tensor = &operands[CLV__CPU_ATTENTION_VALUE];
  for (uint32_t m = 0; m < s->mask_count; ++m) a.masks[m].tensor = &operands[CLV__CPU_ATTENTION_MASK + m];
  const clv_tensor *last = &operands[CLV__CPU_ATTENTION_MASK + s->mask_count];
  a.output.tensor = last;
  clv__kernels()->attention_run(&a, last[1].data, stop);
}

clv_status clv__cpu_lower_attention(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  uint32_t slots[CLV__CPU_ATTENTION_INPUTS], result, scratch;
  clv__attention sized = node->attention->call;
  clv_tensor type = variant->values[node->outputs[0]].type;
  step *made = clv__arena_allocate_zero(&variant->arena, 1, sizeof *made);
  if (made == NULL) return clv__error_memory(error, sizeof *made);
  type.data = NULL;
  sized.output.tensor = &type;
  const size_t scratch_bytes = clv__kernels()->attention_scratch_bytes(&sized);
  *taken = scratch_bytes != SIZE_MAX;
  if (!*taken) return CLV_OK;
  *made = (step){.own = {.run = run}, .call = &node->attention->call, .mask_count = node->input_count - CLV__CPU_ATTENTION_MASK};
  for (uint32_t i = 0; i < node->input_count; ++i) {
    CLV__TRY(clv__cpu_form_get(variant, node->inputs[i], NULL, &slots[i], error));
  }
  CLV__TRY(clv__cpu_form_make(variant, node->outputs[0], NULL, &result, error));
  CLV__TRY(clv__cpu_slot_scratch(variant, scratch_bytes, &scratch, error));
  clv__cpu_step *to = clv__cpu_step_new(variant, CLV__CPU_STEP_OWN, node->source, "Attention", node->input_count + 2);
  if (to == NULL) return clv__error_memory(error, sizeof *to);
  to->own = &made->own;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    clv__cpu_step_input(to, 0, slots[i], NULL);
    to->operands[i].type = variant->values[node->inputs[i]].type;
    to->operands[i].type.data = NULL;
  }
  clv__cpu_step_output(to, 0, result, NULL);
  to->operands[node->input_count].type = type;
  clv__cpu_step_output(to, 0, scratch, NULL);
  return CLV_OK;
}
