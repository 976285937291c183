/* Packing: find an equal pack, else make one from the raw bytes, else from a pack in another layout. */
#include "constants.h"

#include "kernels/rows.h"
#include "panels.h"
#include "winograd.h"

enum { SLICE_BYTES = 16 << 20, SLICE_ROWS = 64 /* a multiple of every block of oneDNN's */ };

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

/* Takes `data` over, also when it fails; *kept is where its bytes are from now on. */
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

static clv_status gone(const clv__cpu_constants *constants, uint32_t value, clv_error *error) {
  return clv__error_set(error, CLV_NOT_SUPPORTED, "constant '%s' was packed for the compiled shapes; compile again for these",
                        constants->program->values[value].name);
}

/* The bytes of a constant that a node makes of others, in memory of the allocator's. */
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
  if (!clv__tensor_size_bytes(&output, &size_bytes)) return gone(constants, node->outputs[0], error);
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
  const clv_status status = clv__kernel_run(node->kernel, &call, allocator);
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
  if (!clv__tensor_size_bytes(&constant->type, &size_bytes)) return gone(constants, value, error);
  if (constant->computed != NULL) {
    CLV__TRY(compute(constants, constant, &copy, error));
    return add_pack(constants, (clv__cpu_pack){.value = value}, NULL, copy, size_bytes, data, error);
  }
  if (constant->type.data == NULL) return gone(constants, value, error);
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

static uint64_t mix(uint64_t hash, const void *data, size_t size_bytes) { /* FNV-1a, over words of four bytes */
  const uint8_t *bytes = data;
  for (size_t i = 0; i < size_bytes; i += 4) {
    uint32_t word = 0;
    memcpy(&word, bytes + i, size_bytes - i < 4 ? size_bytes - i : 4);
    hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash;
}

static uint64_t variant_of(const clv__cpu_packing *packing, const clv_tensor *type) {
  const uint64_t order = packing->variant ^ (packing->expand_groups > 1 ? 8u : 0u);
  if (packing->scale == NULL) return order;
  uint64_t hash = 0xcbf29ce484222325u ^ order;
  return mix(hash, packing->scale, (size_t)type->dims[packing->scale_axis] * sizeof(float)) | 1u;
}

static void scale_rows(float *to, const clv_tensor *type, const float *scale, int32_t axis) {
  const int64_t outer = clv__dims_product(type, 0, axis), extent = type->dims[axis];
  const int64_t inner = clv__dims_product(type, axis + 1, type->rank);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t e = 0; e < extent; ++e) {
      float *row = to + (o * extent + e) * inner;
      for (int64_t i = 0; i < inner; ++i) row[i] *= scale[e];
    }
  }
}

/* [M, C/g, …] to [M, C, …]: each output channel keeps its group's inputs and gets zeros for the others. */
static clv_status expand(const clv_allocator *allocator, const clv_tensor *type, int64_t groups, const float *data, float **wide,
                         clv_error *error) {
  const size_t rows = (size_t)type->dims[0], row = (size_t)clv__dims_product(type, 1, type->rank);
  size_t size_bytes;
  if (!clv__multiply(rows * row, (size_t)groups * sizeof(float), &size_bytes)) return clv__error_memory(error, SIZE_MAX);
  *wide = clv__allocate_zero(allocator, size_bytes);
  if (*wide == NULL) return clv__error_memory(error, size_bytes);
  for (size_t r = 0; r < rows; ++r) {
    const size_t group = r / (rows / (size_t)groups);
    memcpy(*wide + (r * (size_t)groups + group) * row, data + r * row, row * sizeof **wide);
  }
  return CLV_OK;
}

/* What oneDNN does not read: such constants are packed by way of f32. */
static bool is_foreign(clv_dtype dtype) {
  return dtype == CLV_F16 || (dtype == CLV_BF16 && !clv__dnn_has_bf16());
}

/* Memory for a copy that lasts until the next one: fresh memory for each would cost more than the copying. */
static clv_status copy_room(clv__cpu_constants *constants, size_t size_bytes, void **room, clv_error *error) {
  if (constants->copy_bytes < size_bytes) {
    clv__cpu_constants_rest(constants);
    constants->copy = clv__allocate(constants->arena.allocator, size_bytes);
    if (constants->copy == NULL) return clv__error_memory(error, size_bytes);
    constants->copy_bytes = size_bytes;
  }
  *room = constants->copy;
  return CLV_OK;
}

/* Elements of the constant in memory of their own, aligned: as they are, but f16 and bf16 in f32. */
static clv_status copy_elements(clv__cpu_constants *constants, const clv__cpu_value *constant, size_t first, size_t count,
                                void **copy, clv_error *error) {
  const clv_dtype dtype = constant->type.dtype;
  const bool narrow = dtype == CLV_F16 || dtype == CLV_BF16;
  const size_t element = clv_dtype_size_bytes(dtype), size_bytes = count * element;
  size_t room_bytes;
  if (!clv__multiply(size_bytes, narrow ? 3 : 1, &room_bytes)) return clv__error_memory(error, SIZE_MAX);
  CLV__TRY(copy_room(constants, room_bytes, copy, error));
  uint8_t *aligned = (uint8_t *)*copy + (narrow ? 2 * size_bytes : 0);
  memcpy(aligned, (const uint8_t *)constant->type.data + first * element, size_bytes);
  if (narrow) clv__row_to_f32(dtype, aligned, 0, (int64_t)count, *copy);
  return CLV_OK;
}

/* Packs a large constant slice by slice along the axis that is outermost in the raw bytes, so that hardly more than a slice of
 * them is ever in memory beside the pack. False: nothing is lost, but it has to be packed at once. */
static bool reorder_slices(clv__cpu_constants *constants, uint32_t value, const clv__dnn_layout *raw,
                           const clv__dnn_layout *layout, void *data) {
  const clv_host *host = constants->program->device->host;
  const clv__cpu_value *constant = &constants->program->values[value];
  const size_t size_bytes = clv__dnn_layout_size_bytes(raw);
  if (size_bytes < 2 * SLICE_BYTES || !constant->is_borrowed || constants->graph == NULL || host->constant_copied == NULL) {
    return false;
  }
  int64_t dims[CLV_MAX_RANK], strides[CLV_MAX_RANK], offsets[CLV_MAX_RANK] = {0};
  if (!clv__dnn_layout_is_plain(raw)) return false;
  const int32_t rank = clv__dnn_layout_dims(raw, dims);
  clv__dnn_layout_strides(raw, strides);
  int32_t axis = 0;
  for (int32_t i = 1; i < rank; ++i) axis = strides[i] > strides[axis] ? i : axis;
  const int64_t extent = dims[axis], row_bytes = (int64_t)size_bytes / extent;
  const int64_t rows = (int64_t)SLICE_BYTES / row_bytes / SLICE_ROWS * SLICE_ROWS;
  clv__arena arena;
  clv__arena_init(&arena, constants->arena.allocator);
  bool done = rows > 0;
  for (int64_t at = 0; done && at < extent; at += rows) {
    offsets[axis] = at;
    dims[axis] = extent - at < rows ? extent - at : rows;
    const clv__dnn_layout *from, *to = clv__dnn_layout_part(&arena, layout, dims, offsets);
    void *bytes = constant->type.data;
    if (is_foreign(constant->type.dtype)) {
      from = clv__dnn_layout_strided(&arena, CLV_F32, rank, dims, strides);
      const size_t elements = (size_t)strides[axis];
      done = copy_elements(constants, constant, (size_t)at * elements, (size_t)dims[axis] * elements, &bytes, NULL) == CLV_OK;
    } else {
      from = clv__dnn_layout_part(&arena, raw, dims, offsets);
    }
    done = done && from != NULL && to != NULL &&
           clv__dnn_reorder_now(constants->program->device->dnn, from, bytes, to, data, NULL) == CLV_OK;
    if (done) host->constant_copied(constants->graph, value);
  }
  clv__arena_finish(&arena);
  return done;
}

/* The same for a matrix of f32 that is wanted in panels, at any address and with a factor a column. */
static bool pack_panels(clv__cpu_constants *constants, const clv__cpu_packing *packing, const clv__dnn_layout *layout,
                        void *data) {
  const clv_host *host = constants->program->device->host;
  const clv__cpu_value *constant = &constants->program->values[packing->value];
  int64_t dims[CLV_MAX_RANK], strides[CLV_MAX_RANK];
  if (constant->type.dtype != CLV_F32 || constant->type.rank != 2 || packing->expand_groups > 1) return false;
  if (!clv__dnn_layout_is_panels(layout) || !clv__dnn_layout_is_plain(packing->from)) return false;
  if (clv__dnn_layout_dims(packing->from, dims) != 2) return false;
  clv__dnn_layout_strides(packing->from, strides);
  const bool by_column = strides[1] != 1;
  if (strides[by_column ? 0 : 1] != 1 || strides[by_column ? 1 : 0] != dims[by_column ? 0 : 1]) return false;
  if (packing->scale != NULL && packing->scale_axis != (by_column ? 0 : 1)) return false;
  const clv__cpu_matrix matrix = {constant->type.data, dims[0], dims[1], by_column, packing->scale};
  const int64_t extent = dims[by_column], rows = (int64_t)SLICE_BYTES / (dims[!by_column] * (int64_t)sizeof(float));
  const int64_t slice = rows / SLICE_ROWS * SLICE_ROWS > 0 ? rows / SLICE_ROWS * SLICE_ROWS : SLICE_ROWS;
  const bool drops = constant->is_borrowed && constants->graph != NULL && host->constant_copied != NULL;
  for (int64_t at = 0; at < extent; at += slice) {
    const int64_t count = extent - at < slice ? extent - at : slice;
    if (by_column) {
      clv__cpu_panels_pack(&matrix, 0, dims[0], at, count, data);
    } else {
      clv__cpu_panels_pack(&matrix, at, count, 0, dims[1], data);
    }
    if (drops && count < extent) host->constant_copied(constants->graph, packing->value);
  }
  return true;
}

/* True for row-major elements that differ from what is to be packed in a scale of the first axis at most. */
static bool is_whole(const clv__cpu_packing *packing) {
  return packing->variant == 0 && packing->expand_groups <= 1 && (packing->scale == NULL || packing->scale_axis == 0);
}

/* The same strides over elements of bf16. */
static const clv__dnn_layout *as_bf16(clv__arena *arena, const clv__dnn_layout *layout) {
  int64_t dims[CLV_MAX_RANK], strides[CLV_MAX_RANK];
  const int32_t rank = clv__dnn_layout_dims(layout, dims);
  clv__dnn_layout_strides(layout, strides);
  return clv__dnn_layout_strided(arena, CLV_BF16, rank, dims, strides);
}

/* Reorders raw (possibly unaligned, possibly to be scaled) bytes into `data`. */
static clv_status pack_raw(clv__cpu_constants *constants, const clv__cpu_packing *packing, const clv__dnn_layout *layout,
                           void *data, clv_error *error) {
  const clv_allocator *allocator = constants->arena.allocator;
  const clv__cpu_value *constant = &constants->program->values[packing->value];
  const clv__dnn_layout *from = packing->from;
  void *raw = constant->type.data, *copy = NULL;
  const bool is_f32 = constant->type.dtype == CLV_F32, foreign = is_foreign(constant->type.dtype);
  if (is_f32 && is_whole(packing) && clv__cpu_winograd_pack(layout, raw, packing->scale, data)) return CLV_OK;
  if (pack_panels(constants, packing, layout, data)) return CLV_OK;
  const bool changes = packing->scale != NULL || packing->expand_groups > 1;
  if (foreign && !changes && reorder_slices(constants, packing->value, from, layout, data)) return CLV_OK;
  if (changes || foreign || (uintptr_t)raw % sizeof(float) != 0) {
    size_t count;
    if (!clv__tensor_count(&constant->type, &count)) return gone(constants, packing->value, error);
    CLV__TRY(copy_elements(constants, constant, 0, count, &copy, error));
    if (foreign && is_whole(packing) && clv__cpu_winograd_pack(layout, copy, packing->scale, data)) return CLV_OK;
    if (packing->scale != NULL) scale_rows(copy, &constant->type, packing->scale, packing->scale_axis);
    raw = copy;
  } else if (constant->type.dtype == CLV_BF16) {
    from = as_bf16(&constants->arena, from);
    if (from == NULL) return clv__error_memory(error, 0);
  }
  float *wide = NULL;
  if (packing->expand_groups > 1) {
    CLV__TRY(expand(allocator, &constant->type, packing->expand_groups, copy, &wide, error));
    raw = wide;
  }
  if (copy == NULL && reorder_slices(constants, packing->value, from, layout, data)) return CLV_OK;
  const clv_status status = clv__dnn_reorder_now(constants->program->device->dnn, from, raw, layout, data, error);
  clv__release(allocator, wide);
  return status;
}

clv_status clv__cpu_constant_packed(clv__cpu_constants *constants, const clv__cpu_packing *packing, const clv__dnn_layout *layout,
                                    void **data, clv_error *error) {
  const clv__cpu_value *constant = &constants->program->values[packing->value];
  const uint64_t variant = variant_of(packing, &constant->type);
  const clv__cpu_pack *other = NULL;
  for (size_t i = 0; i < constants->count; ++i) {
    const clv__cpu_pack *pack = &constants->packs[i];
    if (pack->value != packing->value || pack->variant != variant || pack->shared->layout == NULL) continue;
    if (clv__dnn_layout_equal(pack->shared->layout, layout)) {
      *data = pack->shared->data;
      return CLV_OK;
    }
    if (!clv__dnn_layout_is_opaque(pack->shared->layout)) other = pack;
  }
  const bool raw_here = constant->type.data != NULL;
  if (!raw_here && other == NULL) {
    void *raw;
    CLV__TRY(clv__cpu_constant_raw(constants, packing->value, &raw, error));
    constants->program->values[packing->value].type.data = raw; /* the kept copy stands in for the view's from now on */
  }
  const clv__cpu_pack pack = {.value = packing->value, .variant = variant};
  const size_t size_bytes = clv__dnn_layout_size_bytes(layout);
  void *made = clv__allocate(constants->arena.allocator, size_bytes);
  if (made == NULL) return clv__error_memory(error, size_bytes);
  clv_status status = raw_here || other == NULL ? pack_raw(constants, packing, layout, made, error)
                                                : clv__dnn_reorder_now(constants->program->device->dnn, other->shared->layout,
                                                                       other->shared->data, layout, made, error);
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
