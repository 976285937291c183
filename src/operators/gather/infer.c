/* Operators that read or write at positions given by another tensor, the indices. */
#include "operators/common/checks.h"
#include "operators/common/dims.h"
#include "operators/gather/rules.h"

static clv_status check_index_dtype(clv__infer *infer, uint32_t input) {
  clv_dtype dtype = infer->inputs[input].dtype;
  if (dtype == CLV_I64 || dtype == CLV_I32) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "indices are %s; expected i32 or i64", clv_dtype_name(dtype));
}

/* Sets the content of the output if the input is a vector with partly known content and the indices are known. */
static void gather_content(clv__infer *infer) {
  clv__content data, indices, out = {.known = true};
  if (infer->output_content == NULL || infer->inputs[0].rank != 1) return;
  if (!clv__infer_vector(infer, 0, &data) || !clv__infer_vector(infer, 1, &indices) || !clv__content_is_numbers(&indices)) return;
  for (uint32_t i = 0; i < indices.count; ++i) {
    int64_t at = indices.elements[i];
    if (at < 0) at += data.count;
    if (at < 0 || at >= data.count) return; /* the kernel reports it */
    out.elements[out.count++] = data.elements[at];
  }
  *infer->output_content = out;
}

static clv_status infer_gather(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0], *indices = &infer->inputs[1];
  CLV__TRY(check_index_dtype(infer, 1));
  clv__infer_set(infer, 0, data->dtype, CLV_RANK_UNKNOWN, NULL);
  if (data->rank < 0) return CLV_OK;
  int32_t axis;
  CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", 0), data->rank, &axis));
  if (indices->rank < 0) return CLV_OK;
  CLV__TRY(clv__infer_rank(infer, (int64_t)data->rank - 1 + indices->rank));
  int64_t dims[CLV_MAX_RANK];
  int32_t rank = 0;
  for (int32_t d = 0; d < axis; ++d) dims[rank++] = data->dims[d];
  for (int32_t d = 0; d < indices->rank; ++d) dims[rank++] = indices->dims[d];
  for (int32_t d = axis + 1; d < data->rank; ++d) dims[rank++] = data->dims[d];
  clv__infer_set(infer, 0, data->dtype, rank, dims);
  gather_content(infer);
  return CLV_OK;
}

static clv_status rank_mismatch(clv__infer *infer, int32_t indices, int32_t data) {
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "indices of rank %d do not fit data of rank %d", indices, data);
}

static clv_status infer_gather_elements(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0], *indices = &infer->inputs[1];
  int32_t axis;
  CLV__TRY(check_index_dtype(infer, 1));
  if (data->rank >= 0) {
    CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", 0), data->rank, &axis));
    if (indices->rank >= 0 && indices->rank != data->rank) return rank_mismatch(infer, indices->rank, data->rank);
    for (int32_t d = 0; d < indices->rank; ++d) {
      if (d == axis || indices->dims[d] < 0 || data->dims[d] < 0 || indices->dims[d] <= data->dims[d]) continue;
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "indices have size %lld along axis %d, but data has size %lld",
                            (long long)indices->dims[d], d, (long long)data->dims[d]);
    }
  }
  clv__infer_set(infer, 0, data->dtype, indices->rank, indices->dims);
  return CLV_OK;
}

/* Sets *depth to the number of data axes, after the `batch` batch axes, that a row of indices addresses; -1: unknown. */
static clv_status index_depth(clv__infer *infer, int64_t batch, int64_t *depth) {
  const clv_tensor *data = &infer->inputs[0], *indices = &infer->inputs[1];
  *depth = -1;
  if (indices->rank < 0) return CLV_OK;
  if (indices->rank < 1) return rank_mismatch(infer, indices->rank, data->rank);
  *depth = indices->dims[indices->rank - 1] < 0 ? -1 : indices->dims[indices->rank - 1];
  if (batch < 0 || batch >= indices->rank || (data->rank >= 0 && batch >= data->rank)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "attribute batch_dims is %lld, which is out of range for data of rank %d and indices of rank %d",
                          (long long)batch, data->rank, indices->rank);
  }
  if (*depth > (data->rank >= 0 ? data->rank : CLV_MAX_RANK) - batch) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "the last axis of indices has size %lld; the maximum for this data is %lld, with batch_dims %lld",
                          (long long)*depth, (long long)((data->rank >= 0 ? data->rank : CLV_MAX_RANK) - batch),
                          (long long)batch);
  }
  return CLV_OK;
}

static clv_status infer_gather_nd(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0], *indices = &infer->inputs[1];
  int64_t batch = clv__attribute_int(infer->attributes, "batch_dims", 0), depth;
  clv__infer_set(infer, 0, data->dtype, CLV_RANK_UNKNOWN, NULL);
  CLV__TRY(check_index_dtype(infer, 1));
  CLV__TRY(index_depth(infer, batch, &depth));
  if (data->rank < 0 || depth < 0) return CLV_OK;
  int64_t dims[2 * CLV_MAX_RANK];
  int32_t rank = 0;
  for (int32_t d = 0; d < indices->rank - 1; ++d) {
    dims[rank] = indices->dims[d];
    if (d < batch && !clv__dim_merge(indices->dims[d], data->dims[d], &dims[rank])) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "batch axis %d is %lld in data, but %lld in indices", d,
                            (long long)data->dims[d], (long long)indices->dims[d]);
    }
    rank++;
  }
  for (int32_t d = (int32_t)(batch + depth); d < data->rank; ++d) dims[rank++] = data->dims[d];
  CLV__TRY(clv__infer_rank(infer, rank));
  clv__infer_set(infer, 0, data->dtype, rank, dims);
  return CLV_OK;
}

static clv_status check_updates(clv__infer *infer, int32_t rank, const int64_t *dims) {
  const clv_tensor *updates = &infer->inputs[2];
  bool fits = updates->dtype == infer->inputs[0].dtype;
  if (updates->rank >= 0 && rank >= 0) {
    fits = fits && updates->rank == rank;
    for (int32_t d = 0; fits && d < rank; ++d) fits = updates->dims[d] < 0 || dims[d] < 0 || updates->dims[d] == dims[d];
  }
  if (fits) return CLV_OK;
  char have[96], want[96];
  clv_tensor type = clv__tensor_make(infer->inputs[0].dtype, rank < 0 ? 0 : rank, dims, NULL);
  type.rank = rank;
  clv__infer_text(infer, updates, have, sizeof have);
  clv__infer_text(infer, &type, want, sizeof want);
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "updates are %s; expected %s", have, want);
}

static clv_status check_reduction(clv__infer *infer) {
  static const char *const names[] = {"none", "add", "mul", "min", "max"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (clv__attribute_is(infer->attributes, "reduction", names[i], i == 0)) return CLV_OK;
  }
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute reduction is not one of none, add, mul, min, max");
}

static clv_status infer_scatter_elements(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0], *indices = &infer->inputs[1];
  int32_t axis;
  CLV__TRY(check_index_dtype(infer, 1));
  CLV__TRY(check_reduction(infer));
  if (data->rank >= 0) {
    CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", 0), data->rank, &axis));
    if (indices->rank >= 0 && indices->rank != data->rank) return rank_mismatch(infer, indices->rank, data->rank);
    for (int32_t d = 0; d < indices->rank; ++d) {
      if (d == axis || indices->dims[d] < 0 || data->dims[d] < 0 || indices->dims[d] <= data->dims[d]) continue;
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "indices have size %lld along axis %d, but data has size %lld",
                            (long long)indices->dims[d], d, (long long)data->dims[d]);
    }
  }
  CLV__TRY(check_updates(infer, indices->rank, indices->dims));
  return clv__infer_same(infer);
}

static clv_status infer_scatter_nd(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0], *indices = &infer->inputs[1];
  int64_t depth, dims[2 * CLV_MAX_RANK];
  CLV__TRY(check_index_dtype(infer, 1));
  CLV__TRY(check_reduction(infer));
  CLV__TRY(index_depth(infer, 0, &depth));
  int32_t rank = 0;
  for (int32_t d = 0; d < indices->rank - 1; ++d) dims[rank++] = indices->dims[d];
  for (int32_t d = (int32_t)depth; depth >= 0 && d < data->rank; ++d) dims[rank++] = data->dims[d];
  bool told = data->rank >= 0 && depth >= 0;
  CLV__TRY(clv__infer_rank(infer, rank));
  CLV__TRY(check_updates(infer, told ? rank : CLV_RANK_UNKNOWN, dims));
  return clv__infer_same(infer);
}

/* TensorScatter writes rows of a cache, starting at the positions in write_indices. */
static clv_status infer_tensor_scatter(clv__infer *infer) {
  const clv_tensor *cache = &infer->inputs[0], *update = &infer->inputs[1];
  int32_t axis;
  if (!clv__attribute_is(infer->attributes, "mode", "linear", true) &&
      !clv__attribute_is(infer->attributes, "mode", "circular", false)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute mode is neither linear nor circular");
  }
  CLV__TRY(clv__check_same_dtype(infer, 0, 1));
  if (clv__infer_has(infer, 2) && infer->inputs[2].dtype != CLV_I64) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "write_indices are %s; expected i64",
                          clv_dtype_name(infer->inputs[2].dtype));
  }
  if (cache->rank < 0) return clv__infer_same(infer);
  CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", -2), cache->rank, &axis));
  if (axis == 0) return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute axis is 0, but it must not be the batch axis");
  CLV__TRY(clv__check_rank(infer, 1, cache->rank, cache->rank));
  CLV__TRY(clv__check_vector(infer, 2, cache->dims[0]));
  for (int32_t i = 0; update->rank >= 0 && i < cache->rank; ++i) {
    if (i != axis) {
      CLV__TRY(clv__check_same_dim(infer, cache->dims[i], update->dims[i],
                                   "the sizes of past_cache and update along an axis other than attribute axis"));
    } else if (cache->dims[i] >= 0 && update->dims[i] > cache->dims[i]) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL,
                            "update has %lld entries along axis %d, but past_cache has room for %lld", (long long)update->dims[i],
                            (int)axis, (long long)cache->dims[i]);
    }
  }
  return clv__infer_same(infer);
}

const clv__op clv__ops_gather[] = {
    {"", "Gather", 2, 2, 1, 1, CLV__OP_PICKS | CLV__OP_KEEPS_STEPS, infer_gather, clv__work_none, clv__independent_gather},
    {"", "GatherElements", 2, 2, 1, 1, CLV__OP_PICKS, infer_gather_elements, clv__work_none, clv__independent_gather_elements},
    {"", "GatherND", 2, 2, 1, 1, CLV__OP_PICKS, infer_gather_nd, clv__work_none, clv__independent_gather_nd},
    {"", "Scatter", 3, 3, 1, 1, 0, infer_scatter_elements, clv__work_none, clv__independent_scatter_elements},
    {"", "ScatterElements", 3, 3, 1, 1, 0, infer_scatter_elements, clv__work_none, clv__independent_scatter_elements},
    {"", "ScatterND", 3, 3, 1, 1, 0, infer_scatter_nd, clv__work_none, clv__independent_scatter_nd},
    {"", "TensorScatter", 2, 3, 1, 1, 0, infer_tensor_scatter, clv__work_none, NULL},
    {.name = NULL},
};
