/* ArgMax, ArgMin, CumSum, CumProd: operators that walk along one axis. */
#include "operators/families.h"

static clv_status infer_arg(clv__infer *infer) {
  const clv_tensor *input = &infer->inputs[0];
  bool keeps_dims = clv__attribute_int(infer->attributes, "keepdims", 1) != 0;
  int64_t attribute = clv__attribute_int(infer->attributes, "axis", 0), dims[CLV_MAX_RANK];
  int32_t axis = 0, rank = 0;
  if (input->rank < 0) {
    clv__infer_set(infer, 0, CLV_I64, CLV_RANK_UNKNOWN, NULL);
    return CLV_OK;
  }
  if (input->rank != 0 || (attribute != 0 && attribute != -1)) CLV__TRY(clv__infer_axis(infer, attribute, input->rank, &axis));
  for (int32_t i = 0; i < input->rank; ++i) {
    if (i != axis || keeps_dims) dims[rank++] = i == axis ? 1 : input->dims[i];
  }
  clv__infer_set(infer, 0, CLV_I64, rank, dims);
  return CLV_OK;
}

static clv_status infer_cumulate(clv__infer *infer) {
  const clv_tensor *input = &infer->inputs[0];
  clv__content axis;
  int32_t unused;
  if (input->rank > 0 && clv__infer_elements(infer, 1, &axis) && axis.count == 1 && clv__element_is_number(axis.elements[0])) {
    CLV__TRY(clv__infer_axis(infer, axis.elements[0], input->rank, &unused));
  }
  return clv__infer_same(infer);
}

static void work_input(const clv__infer *infer, clv__work *work) {
  size_t count;
  if (clv__tensor_count(&infer->inputs[0], &count)) work->flops = (double)count;
}

const clv__op clv__ops_axis[] = {
    {"", "ArgMax", 1, 1, 1, 1, 0, infer_arg, work_input},
    {"", "ArgMin", 1, 1, 1, 1, 0, infer_arg, work_input},
    {"", "CumSum", 2, 2, 1, 1, 0, infer_cumulate, work_input},
    {"", "CumProd", 2, 2, 1, 1, 0, infer_cumulate, work_input},
    {NULL, NULL, 0, 0, 0, 0, 0, NULL, NULL},
};
