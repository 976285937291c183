/* Transpose, DepthToSpace, SpaceToDepth: strided reads with reordered axes. */
#include "operators/run.h"
#include "operators/common/move.h"

static clv_status run_transpose(const clv__kernel_call *call) {
  const clv_tensor *data = &call->inputs[0];
  int64_t strides[CLV_MAX_RANK];
  size_t count;
  const int64_t *perm = clv__attribute_ints(call->attributes, "perm", &count);
  clv__dense_strides(data, strides);
  clv__strided shape = {.rank = data->rank};
  for (int32_t d = 0; d < data->rank; ++d) {
    int64_t from = perm != NULL ? perm[d] : data->rank - 1 - d;
    shape.dims[d] = data->dims[from];
    shape.strides[d] = strides[from];
  }
  clv__strided_read(data->data, call->outputs[0].data, &shape, clv_dtype_size_bytes(data->dtype), call->stop);
  return CLV_OK;
}

/* Transposes the input, viewed as a dense tensor of dims `split`, by `perm`. */
static void permute(const clv__kernel_call *call, const int64_t split[6], const int32_t perm[6]) {
  int64_t strides[6], stride = 1;
  clv__strided shape = {.rank = 6};
  for (int32_t d = 5; d >= 0; --d) {
    strides[d] = stride;
    stride *= split[d];
  }
  for (int32_t d = 0; d < 6; ++d) {
    shape.dims[d] = split[perm[d]];
    shape.strides[d] = strides[perm[d]];
  }
  clv__strided_read(call->inputs[0].data, call->outputs[0].data, &shape, clv_dtype_size_bytes(call->inputs[0].dtype), call->stop);
}

static clv_status run_depth_to_space(const clv__kernel_call *call) {
  const int64_t *in = call->inputs[0].dims, block = clv__attribute_int(call->attributes, "blocksize", 1);
  int64_t depth = call->outputs[0].dims[1];
  if (clv__attribute_is(call->attributes, "mode", "CRD", false)) {
    permute(call, (const int64_t[6]){in[0], depth, block, block, in[2], in[3]}, (const int32_t[6]){0, 1, 4, 2, 5, 3});
  } else {
    permute(call, (const int64_t[6]){in[0], block, block, depth, in[2], in[3]}, (const int32_t[6]){0, 3, 4, 1, 5, 2});
  }
  return CLV_OK;
}

static clv_status run_space_to_depth(const clv__kernel_call *call) {
  const int64_t *in = call->inputs[0].dims, *out = call->outputs[0].dims;
  int64_t block = clv__attribute_int(call->attributes, "blocksize", 1);
  const int64_t split[6] = {in[0], in[1], out[2], block, out[3], block};
  bool channels_first = clv__attribute_is(call->attributes, "mode", "CRD", false);
  permute(call, split, channels_first ? (const int32_t[6]){0, 1, 3, 5, 2, 4} : (const int32_t[6]){0, 3, 5, 1, 2, 4});
  return CLV_OK;
}

const clv__kernel clv__kernels_layout[] = {
    {"", "Transpose", CLV__DTYPES_ANY | CLV__DTYPES_F8, run_transpose, NULL, NULL},
    {"", "DepthToSpace", CLV__DTYPES_ANY, run_depth_to_space, NULL, NULL},
    {"", "SpaceToDepth", CLV__DTYPES_ANY, run_space_to_depth, NULL, NULL},
    {.op = NULL},
};
