/* MaxPool, AveragePool, LpPool and their global forms. */
#include "operators/common/checks.h"
#include "operators/common/padding.h"
#include "operators/common/window.h"

static clv_status pool_infer(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  CLV__TRY(clv__check_rank(infer, 0, 3, CLV_MAX_RANK));
  int32_t rank = x->rank;
  int64_t dims[CLV_MAX_RANK];
  if (rank != CLV_RANK_UNKNOWN) {
    clv__window window;
    CLV__TRY(clv__window_read(infer->attributes, rank - 2, NULL, &window, infer->error));
    CLV__TRY(clv__window_resolve(&window, x->dims + 2, infer->error));
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
    for (int32_t i = 0; i < rank - 2; ++i) dims[i + 2] = window.output[i];
  }
  clv__infer_set(infer, 0, x->dtype, rank, dims);
  clv__infer_set(infer, 1, CLV_I64, rank, dims);
  return CLV_OK;
}

static void pool_work(const clv__infer *infer, clv__work *work) {
  size_t count;
  const int64_t *kernel = clv__attribute_ints(infer->attributes, "kernel_shape", &count);
  double taps = 1;
  for (size_t i = 0; i < count; ++i) taps *= (double)kernel[i];
  work->flops = clv__known_count(&infer->outputs[0]) * taps;
}

static clv_status global_infer(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  CLV__TRY(clv__check_rank(infer, 0, 2, CLV_MAX_RANK));
  int64_t dims[CLV_MAX_RANK];
  for (int32_t i = 0; i < x->rank; ++i) dims[i] = i < 2 ? x->dims[i] : 1;
  clv__infer_set(infer, 0, x->dtype, x->rank, dims);
  return CLV_OK;
}

static void global_work(const clv__infer *infer, clv__work *work) {
  work->flops = clv__known_count(&infer->inputs[0]);
}

/* ---- Independence along padded axes (common/padding.h) ---- */

/* Each channel of each image is independent. MaxPool's second output contains indices into the whole flattened input. If it is
 * used, only the batch axis may be padded. */
static bool independent_planes(clv__padding *padding) {
  const clv__infer *node = padding->node;
  bool counts = node->output_count > 1 && node->outputs[1].dtype != CLV_DTYPE_NONE;
  return clv__padding_avoids(padding, 0, counts ? ~1u : ~3u) && clv__padding_pass(padding);
}

const clv__op clv__ops_pool[] = {
    {"", "MaxPool", 1, 1, 1, 2, CLV__OP_KEEPS_STEPS, pool_infer, pool_work, independent_planes},
    {"", "AveragePool", 1, 1, 1, 1, 0, pool_infer, pool_work, independent_planes},
    {"", "LpPool", 1, 1, 1, 1, 0, pool_infer, pool_work, independent_planes},
    {"", "GlobalMaxPool", 1, 1, 1, 1, CLV__OP_KEEPS_STEPS, global_infer, global_work, independent_planes},
    {"", "GlobalAveragePool", 1, 1, 1, 1, 0, global_infer, global_work, independent_planes},
    {"", "GlobalLpPool", 1, 1, 1, 1, 0, global_infer, global_work, independent_planes},
    {.name = NULL},
};
