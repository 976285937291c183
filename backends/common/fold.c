/* See fold.h. */
#include "backends/common/fold.h"

#include <string.h>

static bool is_random(const char *op) {
  return strncmp(op, "Random", 6) == 0 || strcmp(op, "Bernoulli") == 0 || strcmp(op, "Multinomial") == 0 ||
         strcmp(op, "Dropout") == 0;
}

bool clv__fold_reads_shape(const char *domain, const char *op) {
  return domain[0] == '\0' && (strcmp(op, "Shape") == 0 || strcmp(op, "Size") == 0);
}

bool clv__fold_is_possible(const char *domain, const clv__kernel_call *call) {
  const bool shape_only = clv__fold_reads_shape(domain, call->op);
  size_t total = 0, size_bytes;
  if (is_random(call->op)) return false;
  for (uint32_t i = 0; i < call->input_count && !shape_only; ++i) {
    const clv_tensor *input = &call->inputs[i];
    if (input->dtype != CLV_DTYPE_NONE && (input->data == NULL || input->dtype == CLV_STRING)) return false;
  }
  for (uint32_t i = 0; i < call->output_count; ++i) {
    const clv_tensor *output = &call->outputs[i];
    if (output->dtype == CLV_DTYPE_NONE) continue;
    if (output->dtype == CLV_STRING || !clv__tensor_size_bytes(output, &size_bytes)) return false;
    if (size_bytes > CLV__FOLD_BYTES - total) return false;
    total += size_bytes;
  }
  return true;
}

clv_status clv__fold(const clv__kernel *kernel, const clv__kernel_call *call, clv_tensor *inputs, clv_tensor *outputs,
                     clv__arena *arena, const clv_allocator *allocator) {
  static uint64_t nothing; /* placeholder data of inputs whose data is NULL: only their shape is read */
  char reason[160];
  for (uint32_t i = 0; i < call->input_count; ++i) {
    if (inputs[i].data == NULL && inputs[i].dtype != CLV_DTYPE_NONE) inputs[i].data = &nothing;
  }
  for (uint32_t i = 0; i < call->output_count; ++i) {
    size_t size_bytes = 0;
    if (outputs[i].dtype == CLV_DTYPE_NONE) continue;
    clv__tensor_size_bytes(&outputs[i], &size_bytes);
    outputs[i].data = clv__arena_allocate_data(arena, size_bytes);
    if (outputs[i].data == NULL) return clv__error_memory(call->error, size_bytes);
  }
  if (!clv__kernel_accepts(kernel, call, reason)) return clv__error_set(call->error, CLV_NOT_SUPPORTED, "%s", reason);
  return clv__kernel_run(kernel, call, allocator);
}
