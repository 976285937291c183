/* Provides constants in the layouts that steps request. Reuses an earlier pack (packed copy) in the same layout if there is one.
 * Otherwise packs the raw bytes (packing.c) or, if they are no longer available, converts a pack in another layout. */
#include "constants.h"

#include "backends/common/kernels.h"

void clv__cpu_constants_init(clv__cpu_constants *constants, clv__cpu_program *program) {
  memset(constants, 0, sizeof *constants);
  constants->program = program;
  clv__arena_init(&constants->arena, program->device->allocator);
}

void clv__cpu_constants_finish(clv__cpu_constants *constants) {
  if (constants->program == NULL) return;
  const clv_allocator *allocator = constants->arena.allocator;
  clv__cpu_packs *store = constants->program->device->packs;
  for (size_t i = 0; i < constants->count; ++i) clv__cpu_packs_release(store, constants->packs[i].shared);
  clv__release(allocator, constants->packs);
  clv__cpu_constants_rest(constants);
  clv__arena_finish(&constants->arena);
  memset(constants, 0, sizeof *constants);
}

void clv__cpu_constants_rest(clv__cpu_constants *constants) {
  clv__release(constants->arena.allocator, constants->copy);
  constants->copy = NULL;
  constants->copy_bytes = 0;
}

/* Adds `data` to the packs of the executable. Takes ownership of `data`, even on failure. *kept receives the address to use
 * from then on: `data`, or the address of an equal pack that was stored earlier. */
static clv_status add_pack(clv__cpu_constants *constants, clv__cpu_pack pack, const clv__dnn_layout *layout, void *data,
                           size_t size_bytes, void **kept, clv_error *error) {
  const clv_allocator *allocator = constants->arena.allocator;
  clv_device *device = constants->program->device;
  void *packs = constants->packs;
  bool room = clv__array_reserve(allocator, &packs, &constants->capacity, constants->count + 1, sizeof pack, constants->count);
  bool is_new;
  constants->packs = packs;
  if (!room) {
    clv__release(allocator, data);
    return clv__error_memory(error, sizeof pack);
  }
  CLV__TRY(clv__cpu_packs_keep(device->packs, layout, data, size_bytes, &pack.shared, &is_new, error));
  constants->packs[constants->count++] = pack;
  if (is_new) constants->resident_bytes += size_bytes;
  *kept = pack.shared->data;
  const clv_host *host = device->host;
  if (constants->graph != NULL && host->constant_copied != NULL) host->constant_copied(constants->graph, pack.value);
  return CLV_OK;
}

clv_status clv__cpu_constant_gone(const clv__cpu_constants *constants, uint32_t value, clv_error *error) {
  return clv__error_set(error, CLV_NOT_SUPPORTED,
                        "constant '%s' was packed for the compiled shapes only; compile again for the new shapes",
                        constants->program->values[value].name);
}

/* Runs the node that computes a constant from other constants. *data comes from the allocator; the caller releases it. */
static clv_status compute(clv__cpu_constants *constants, const clv__cpu_value *constant, void **data, clv_error *error) {
  const clv__cpu_node *node = constant->computed;
  const clv_allocator *allocator = constants->arena.allocator;
  clv_tensor inputs[3], output = constant->type;
  size_t size_bytes;
  memset(inputs, 0, sizeof inputs);
  for (uint32_t i = 0; i < node->input_count && i < 3; ++i) {
    if (node->inputs[i] == CLV__CPU_NONE) continue;
    inputs[i] = constants->program->values[node->inputs[i]].type;
    if (inputs[i].data != NULL && (uintptr_t)inputs[i].data % clv_dtype_size_bytes(inputs[i].dtype) == 0) continue;
    CLV__TRY(clv__cpu_constant_raw(constants, node->inputs[i], &inputs[i].data, error));
  }
  if (!clv__tensor_size_bytes(&output, &size_bytes)) return clv__cpu_constant_gone(constants, node->outputs[0], error);
  output.data = clv__allocate(allocator, size_bytes);
  if (output.data == NULL) return clv__error_memory(error, size_bytes);
  const clv__kernel_call call = {.op = node->op,
                                 .opset = node->opset,
                                 .attributes = node->attributes,
                                 .inputs = inputs,
                                 .input_count = node->input_count,
                                 .outputs = &output,
                                 .output_count = 1,
                                 .error = error};
  const int threads = clv__cpu_threads_enter_packing(size_bytes);
  const clv_status status = clv__kernel_run(node->kernel, &call, allocator);
  clv__cpu_threads_leave_one(threads);
  if (status != CLV_OK) {
    clv__release(allocator, output.data);
    return status;
  }
  *data = output.data;
  return CLV_OK;
}

clv_status clv__cpu_constant_raw(clv__cpu_constants *constants, uint32_t value, void **data, clv_error *error) {
  const clv__cpu_value *constant = &constants->program->values[value];
  if (!constant->is_borrowed) {
    *data = constant->type.data;
    return CLV_OK;
  }
  for (size_t i = 0; i < constants->count; ++i) {
    const clv__cpu_pack *pack = &constants->packs[i];
    if (pack->value != value || pack->shared->layout != NULL) continue;
    *data = pack->shared->data;
    return CLV_OK;
  }
  size_t size_bytes;
  void *copy;
  if (!clv__tensor_size_bytes(&constant->type, &size_bytes)) return clv__cpu_constant_gone(constants, value, error);
  if (constant->computed != NULL) {
    CLV__TRY(compute(constants, constant, &copy, error));
    return add_pack(constants, (clv__cpu_pack){.value = value}, NULL, copy, size_bytes, data, error);
  }
  if (constant->type.data == NULL) return clv__cpu_constant_gone(constants, value, error);
  copy = clv__allocate(constants->arena.allocator, size_bytes);
  if (copy == NULL) return clv__error_memory(error, size_bytes);
  memcpy(copy, constant->type.data, size_bytes);
  return add_pack(constants, (clv__cpu_pack){.value = value}, NULL, copy, size_bytes, data, error);
}

clv_status clv__cpu_constants_keep_all(clv__cpu_constants *constants, clv_error *error) {
  for (uint32_t i = 0; i < constants->program->value_count; ++i) {
    void *data;
    if (constants->program->values[i].is_borrowed) CLV__TRY(clv__cpu_constant_raw(constants, i, &data, error));
  }
  return CLV_OK;
}

/* Adds bytes to a hash: FNV-1a, applied to words of four bytes. */
static uint64_t mix(uint64_t hash, const void *data, size_t size_bytes) {
  const uint8_t *bytes = data;
  for (size_t i = 0; i < size_bytes; i += 4) {
    uint32_t word = 0;
    memcpy(&word, bytes + i, size_bytes - i < 4 ? size_bytes - i : 4);
    hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash;
}

static uint64_t arrangement_of(const clv__cpu_packing *packing, const clv_tensor *type) {
  uint64_t order = packing->arrangement ^ (packing->expand_groups > 1 ? 8u : 0u);
  if (packing->inputs > 0) order ^= (uint64_t)(packing->first_input + 1) << 4;
  if (packing->scale == NULL) return order;
  uint64_t hash = 0xcbf29ce484222325u ^ order;
  return mix(hash, packing->scale, (size_t)type->dims[packing->scale_axis] * sizeof(float)) | 1u;
}

/* Converts a pack to another layout. Panels in a dtype that oneDNN does not support are converted to f32 first. */
static clv_status repack(clv__cpu_constants *constants, const clv__cpu_shared *from, const clv__dnn_layout *layout, void *data,
                         clv_error *error) {
  clv__dnn *dnn = constants->program->device->dnn;
  const clv_allocator *allocator = constants->arena.allocator;
  const clv_dtype dtype = clv__dnn_layout_dtype(from->layout);
  if (!clv__dnn_is_foreign(dtype)) return clv__dnn_reorder_now(dnn, from->layout, from->data, layout, data, error);
  int64_t dims[CLV_MAX_RANK];
  (void)clv__dnn_layout_dims(from->layout, dims);
  const size_t count = from->size_bytes / sizeof(uint16_t);
  const clv__dnn_layout *panels = clv__dnn_layout_panels(&constants->arena, CLV_F32, dims);
  float *wide = clv__allocate(allocator, count * sizeof *wide);
  clv_status status = panels != NULL && wide != NULL ? CLV_OK : clv__error_memory(error, count * sizeof *wide);
  if (status == CLV_OK) {
    clv__kernels()->row_to_f32(dtype, from->data, 0, (int64_t)count, wide);
    status = clv__dnn_reorder_now(dnn, panels, wide, layout, data, error);
  }
  clv__release(allocator, wide);
  return status;
}

clv_status clv__cpu_constant_packed(clv__cpu_constants *constants, const clv__cpu_packing *packing, const clv__dnn_layout *layout,
                                    void **data, clv_error *error) {
  const clv__cpu_value *constant = &constants->program->values[packing->value];
  const uint64_t arrangement = arrangement_of(packing, &constant->type);
  const clv__cpu_pack *other = NULL;
  for (size_t i = 0; i < constants->count; ++i) {
    const clv__cpu_pack *pack = &constants->packs[i];
    if (pack->value != packing->value || pack->arrangement != arrangement || pack->shared->layout == NULL) continue;
    if (clv__dnn_layout_equal(pack->shared->layout, layout)) {
      *data = pack->shared->data;
      return CLV_OK;
    }
    const bool foreign = clv__dnn_is_foreign(clv__dnn_layout_dtype(pack->shared->layout));
    if (!clv__dnn_layout_is_opaque(pack->shared->layout) && (other == NULL || !foreign)) other = pack;
  }
  const bool raw_here = constant->type.data != NULL;
  if (!raw_here && other == NULL) {
    void *raw;
    CLV__TRY(clv__cpu_constant_raw(constants, packing->value, &raw, error));
    constants->program->values[packing->value].type.data = raw; /* later packs read these bytes, which the executable owns */
  }
  const clv__cpu_pack pack = {.value = packing->value, .arrangement = arrangement};
  const size_t size_bytes = clv__dnn_layout_size_bytes(layout);
  void *made = clv__allocate(constants->arena.allocator, size_bytes);
  if (made == NULL) return clv__error_memory(error, size_bytes);
  /* Avoid huge pages, because getting them takes time. They pay only if reading the pack dominates the time of the step. In
   * other steps, the arithmetic hides the time of page lookups. */
  if (!packing->is_streamed) clv__memory_soon(made, size_bytes);
  const int threads = clv__cpu_threads_enter_packing(size_bytes);
  clv_status status = raw_here || other == NULL ? clv__cpu_constant_write(constants, packing, layout, made, error)
                                                : repack(constants, other->shared, layout, made, error);
  clv__cpu_threads_leave_one(threads);
  if (status != CLV_OK) {
    clv__release(constants->arena.allocator, made);
    return status;
  }
  return add_pack(constants, pack, layout, made, size_bytes, data, error);
}

clv_status clv__cpu_constant_wide(clv__cpu_constants *constants, uint32_t value, void **data, clv_error *error) {
  const clv_tensor *type = &constants->program->values[value].type;
  const clv__dnn_layout *dense = clv__dnn_layout_dense(&constants->arena, CLV_F32, type->rank, type->dims);
  const clv__cpu_packing packing = {.value = value, .from = dense};
  if (dense == NULL) return clv__error_memory(error, 0);
  return clv__cpu_constant_packed(constants, &packing, dense, data, error);
}
