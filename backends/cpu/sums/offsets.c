/* Derives, from a product's constant weights and their zero points, the numbers that the pass over the sums subtracts. */
#include "sums.h"

static clv_status bytes_of(clv__cpu_variant *variant, uint32_t value, const uint8_t **bytes, clv_error *error) {
  void *raw = variant->program->values[value].type.data;
  if (raw == NULL) CLV__TRY(clv__cpu_constant_raw(variant->constants, value, &raw, error));
  *bytes = raw;
  return CLV_OK;
}

static void add_row(const uint8_t *row, int flip, int64_t count, int32_t *sums) {
  for (int64_t j = 0; j < count; ++j) sums[j] += (int8_t)(row[j] ^ flip);
}

static int64_t sum_row(const uint8_t *row, int flip, int64_t count) {
  int64_t sum = 0;
  for (int64_t j = 0; j < count; ++j) sum += (int8_t)(row[j] ^ flip);
  return sum;
}

static clv_status read_zeros(clv__cpu_variant *variant, const clv__cpu_variant_node *node, int64_t channels,
                             clv__cpu_sums_offsets *o, clv_error *error) {
  const uint32_t value = node->inputs[CLV__CPU_SUMS_WEIGHTS_ZERO];
  const bool is_unsigned = clv__cpu_sums_weights(variant, node)->dtype == CLV_U8;
  const uint8_t *bytes = NULL;
  int64_t count = 1;
  bool any = false;
  o->zeros = clv__arena_allocate_zero(&variant->arena, (size_t)channels, sizeof *o->zeros);
  if (o->zeros == NULL) return clv__error_memory(error, (size_t)channels * sizeof *o->zeros);
  if (value != CLV__CPU_NONE) {
    CLV__TRY(bytes_of(variant, value, &bytes, error));
    count = clv__dims_product(&variant->values[value].type, 0, variant->values[value].type.rank);
  }
  for (int64_t c = 0; c < channels; ++c) {
    const uint8_t byte = bytes == NULL ? 0 : bytes[count == 1 ? 0 : c];
    o->zeros[c] = is_unsigned ? byte - 128 : (int8_t)byte;
    any = any || o->zeros[c] != 0;
  }
  if (!any) o->zeros = NULL;
  return CLV_OK;
}

/* Sums each channel's weights minus their zero points. */
static clv_status read_shifts(clv__cpu_variant *variant, const clv__cpu_variant_node *node, bool is_matrix, int64_t channels,
                              clv__cpu_sums_offsets *o, clv_error *error) {
  const clv_tensor *b = clv__cpu_sums_weights(variant, node);
  const int flip = b->dtype == CLV_U8 ? 0x80 : 0;
  const int64_t depth = clv__dims_product(b, 0, b->rank) / channels;
  const uint8_t *bytes;
  if (node->inputs[CLV__CPU_SUMS_SOURCE_ZERO] == CLV__CPU_NONE) return CLV_OK;
  o->shifts = clv__arena_allocate_zero(&variant->arena, (size_t)channels, sizeof *o->shifts);
  if (o->shifts == NULL) return clv__error_memory(error, (size_t)channels * sizeof *o->shifts);
  CLV__TRY(bytes_of(variant, node->inputs[CLV__CPU_SUMS_WEIGHTS], &bytes, error));
  for (int64_t k = 0; k < depth && is_matrix; ++k) add_row(bytes + k * channels, flip, channels, o->shifts);
  for (int64_t c = 0; c < channels; ++c) {
    if (!is_matrix) o->shifts[c] = (int32_t)sum_row(bytes + c * depth, flip, depth);
    if (o->zeros != NULL) o->shifts[c] = (int32_t)((uint32_t)o->shifts[c] - (uint32_t)depth * (uint32_t)o->zeros[c]);
  }
  return CLV_OK;
}

clv_status clv__cpu_sums_offsets_read(clv__cpu_variant *variant, const clv__cpu_variant_node *node, bool is_matrix,
                                      int64_t channels, clv__cpu_sums_offsets *offsets, clv_error *error) {
  *offsets = (clv__cpu_sums_offsets){NULL, NULL};
  CLV__TRY(read_zeros(variant, node, channels, offsets, error));
  return read_shifts(variant, node, is_matrix, channels, offsets, error);
}
