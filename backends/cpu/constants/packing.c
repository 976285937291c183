/* Writes packs (packed copies of constants): converts raw bytes of a constant, at any alignment, into the layout that a oneDNN
 * primitive reads. Large constants are packed slice by slice, so that packing needs little more memory than the pack and one
 * slice. */
#include "backends/common/kernels.h"
#include "constants.h"
#include "panels.h"
#include "winograd.h"

enum { SLICE_BYTES = 16 << 20, SLICE_ROWS = 64 /* SLICE_ROWS is a multiple of every oneDNN block */ };

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

/* Expands weights [M, C/g, …] to [M, C, …]: each output channel keeps its group's inputs and gets zeros for the other groups. */
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

/* Provides memory for a copy, valid until the next call. Allocating fresh memory each time would cost more than the copying. */
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

/* Copies elements of the constant into aligned memory, unchanged, except that f16 and bf16 become f32. */
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
  if (narrow) clv__kernels()->row_to_f32(dtype, aligned, 0, (int64_t)count, *copy);
  return CLV_OK;
}

/* Packs a large constant slice by slice along the outermost axis of the raw bytes, so that packing needs little more memory
 * than the pack and one slice. Returns false if the constant must be packed in one go, which overwrites what was packed so
 * far. */
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
    if (clv__dnn_is_foreign(constant->type.dtype)) {
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

/* Packs a matrix, at any alignment, whose layout is panels of its own dtype. An f32 matrix may have one factor per column.
 * Returns false, without side effects, for other constants. */
static bool pack_panels(clv__cpu_constants *constants, const clv__cpu_packing *packing, const clv__dnn_layout *layout,
                        void *data) {
  const clv_host *host = constants->program->device->host;
  const clv__cpu_value *constant = &constants->program->values[packing->value];
  int64_t dims[CLV_MAX_RANK], strides[CLV_MAX_RANK];
  const bool is_narrow = constant->type.dtype == CLV_F16 || constant->type.dtype == CLV_BF16;
  if ((constant->type.dtype != CLV_F32 && !is_narrow) || constant->type.rank != 2 || packing->expand_groups > 1) return false;
  if (is_narrow && packing->scale != NULL) return false;
  if (!clv__dnn_layout_is_panels(layout) || clv__dnn_layout_dtype(layout) != constant->type.dtype ||
      !clv__dnn_layout_is_plain(packing->from))
    return false;
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
    const int64_t row = by_column ? 0 : at, column = by_column ? at : 0;
    if (is_narrow) {
      clv__cpu_panels_pack_narrow(&matrix, row, by_column ? dims[0] : count, column, by_column ? count : dims[1], data);
    } else {
      clv__cpu_panels_pack(&matrix, row, by_column ? dims[0] : count, column, by_column ? count : dims[1], data);
    }
    if (drops && count < extent) host->constant_copied(constants->graph, packing->value);
  }
  return true;
}

/* Whether the pack contains the elements in their raw order, scaled at most along the first axis. */
static bool is_whole(const clv__cpu_packing *packing) {
  return packing->arrangement == 0 && packing->expand_groups <= 1 && (packing->scale == NULL || packing->scale_axis == 0);
}

/* A layout with the same dims and strides as `layout`, for bf16 elements. */
static const clv__dnn_layout *as_bf16(clv__arena *arena, const clv__dnn_layout *layout) {
  int64_t dims[CLV_MAX_RANK], strides[CLV_MAX_RANK];
  const int32_t rank = clv__dnn_layout_dims(layout, dims);
  clv__dnn_layout_strides(layout, strides);
  return clv__dnn_layout_strided(arena, CLV_BF16, rank, dims, strides);
}

/* Packs Winograd weights; `raw` is f32. Returns false if other code must pack them. */
static bool pack_winograd(const clv__cpu_packing *packing, const clv_tensor *type, const void *raw, const clv__dnn_layout *layout,
                          void *data) {
  const clv__cpu_filters filters = {raw, type->dims[1], packing->first_input, packing->scale};
  return is_whole(packing) && clv__cpu_winograd_pack(layout, &filters, data);
}

clv_status clv__cpu_constant_write(clv__cpu_constants *constants, const clv__cpu_packing *packing, const clv__dnn_layout *layout,
                                   void *data, clv_error *error) {
  const clv_allocator *allocator = constants->arena.allocator;
  const clv__cpu_value *constant = &constants->program->values[packing->value];
  const clv__dnn_layout *from = packing->from;
  void *raw = constant->type.data, *copy = NULL;
  const bool is_f32 = constant->type.dtype == CLV_F32, foreign = clv__dnn_is_foreign(constant->type.dtype);
  if (is_f32 && pack_winograd(packing, &constant->type, raw, layout, data)) return CLV_OK;
  if (pack_panels(constants, packing, layout, data)) return CLV_OK;
  const bool changes = packing->scale != NULL || packing->expand_groups > 1 || packing->turns;
  if (foreign && !changes && reorder_slices(constants, packing->value, from, layout, data)) return CLV_OK;
  if (changes || foreign || (uintptr_t)raw % sizeof(float) != 0) {
    size_t count;
    if (!clv__tensor_count(&constant->type, &count)) return clv__cpu_constant_gone(constants, packing->value, error);
    CLV__TRY(copy_elements(constants, constant, 0, count, &copy, error));
    if (foreign && pack_winograd(packing, &constant->type, copy, layout, data)) return CLV_OK;
    for (size_t i = 0; i < count && packing->turns; ++i) ((uint8_t *)copy)[i] ^= 0x80u;
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
