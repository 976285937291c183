/* GridSample and AffineGrid: where a grid of coordinates says what is read. */
#include "operators/resize/run_grid.h"

#include "operators/common/checks.h"
#include "operators/common/dims.h"
#include "operators/families.h"

static clv_status refuse_inputs(clv__infer *infer, const char *rule) {
  char first[96], second[96];
  clv__tensor_text(&infer->inputs[0], first, sizeof first);
  clv__tensor_text(&infer->inputs[1], second, sizeof second);
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "inputs %s and %s: %s", first, second, rule);
}

static clv_status infer_grid_sample(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *grid = &infer->inputs[1];
  clv__grid_mode mode;
  clv__grid_padding padding;
  int64_t dims[CLV_MAX_RANK], unused;
  CLV__TRY(clv__grid_read(infer->attributes, &mode, &padding, infer->error));
  CLV__TRY(clv__check_rank(infer, 0, 3, CLV_MAX_RANK));
  CLV__TRY(clv__check_rank(infer, 1, 3, CLV_MAX_RANK));
  const int32_t rank = x->rank >= 0 ? x->rank : grid->rank;
  if (rank < 0) {
    clv__infer_set(infer, 0, x->dtype, CLV_RANK_UNKNOWN, NULL);
    return CLV_OK;
  }
  if (x->rank >= 0 && grid->rank >= 0) {
    if (x->rank != grid->rank) return refuse_inputs(infer, "their ranks must be equal");
    if (!clv__dim_merge(x->dims[0], grid->dims[0], &unused)) return refuse_inputs(infer, "their batches must be equal");
  }
  if (grid->rank >= 0 && grid->dims[rank - 1] >= 0 && grid->dims[rank - 1] != rank - 2) {
    return refuse_inputs(infer, "the grid needs a coordinate for every spatial axis");
  }
  for (int32_t i = 0; i < rank; ++i) dims[i] = CLV_DIM_UNKNOWN;
  for (int32_t i = 2; i < rank && grid->rank >= 0; ++i) dims[i] = grid->dims[i - 1];
  if (x->rank >= 0) {
    dims[0] = x->dims[0];
    dims[1] = x->dims[1];
  }
  if (grid->rank >= 0) clv__dim_merge(dims[0], grid->dims[0], &dims[0]);
  clv__infer_set(infer, 0, x->dtype, rank, dims);
  return CLV_OK;
}

static void work_grid_sample(const clv__infer *infer, clv__work *work) {
  clv__grid_mode mode;
  clv__grid_padding padding;
  if (clv__grid_read(infer->attributes, &mode, &padding, NULL) != CLV_OK) return;
  double corners = 1;
  for (int32_t i = 2; i < infer->outputs[0].rank; ++i)
    corners *= mode == CLV__GRID_NEAREST ? 1 : mode == CLV__GRID_LINEAR ? 2 : 4;
  work->flops = clv__known_count(&infer->outputs[0]) * 2 * corners;
}

static clv_status infer_affine_grid(clv__infer *infer) {
  const clv_tensor *theta = &infer->inputs[0], *size = &infer->inputs[1];
  clv__content content;
  int64_t dims[CLV_MAX_RANK], unused;
  CLV__TRY(clv__check_rank(infer, 0, 3, 3));
  CLV__TRY(clv__check_rank(infer, 1, 1, 1));
  CLV__TRY(clv__infer_check_list(infer, 1));
  int64_t spatial = size->rank == 1 && size->dims[0] >= 0 ? size->dims[0] - 2 : CLV_DIM_UNKNOWN;
  if (theta->rank == 3 && spatial < 0 && size->rank == 1 && size->dims[0] < 0) spatial = theta->dims[1];
  bool known = clv__infer_elements(infer, 1, &content);
  if (known) spatial = (int64_t)content.count - 2;
  if ((known || spatial >= 0 || (size->rank == 1 && size->dims[0] >= 0)) && spatial != 2 && spatial != 3) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "size has %lld elements, 4 or 5 are needed", (long long)spatial + 2);
  }
  clv__infer_set_unknown(infer, 0, theta->dtype, spatial == 2 || spatial == 3 ? (int32_t)spatial + 2 : CLV_RANK_UNKNOWN);
  if (spatial != 2 && spatial != 3) return CLV_OK;
  if (theta->rank == 3 &&
      (!clv__dim_merge(theta->dims[1], spatial, &unused) || !clv__dim_merge(theta->dims[2], spatial + 1, &unused))) {
    return refuse_inputs(infer, "theta must be [N,2,3] for a size of 4 elements, [N,3,4] for 5");
  }
  for (int32_t i = 0; i <= spatial; ++i) {
    int64_t element = known ? content.elements[i == 0 ? 0 : i + 1] : CLV__ELEMENT_UNKNOWN;
    if (clv__element_is_number(element) && element < 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "size[%d] is %lld", i == 0 ? 0 : (int)i + 1, (long long)element);
    }
    dims[i] = clv__dim_from_element(element);
  }
  if (theta->rank == 3 && !clv__dim_merge(dims[0], theta->dims[0], &dims[0])) {
    return refuse_inputs(infer, "theta's batch must be the first element of size");
  }
  dims[spatial + 1] = spatial;
  clv__infer_set(infer, 0, theta->dtype, (int32_t)spatial + 2, dims);
  return CLV_OK;
}

static void work_affine_grid(const clv__infer *infer, clv__work *work) {
  work->flops = clv__known_count(&infer->outputs[0]) * 2 * infer->outputs[0].rank;
}

const clv__op clv__ops_grid[] = {
    {"", "GridSample", 2, 2, 1, 1, 0, infer_grid_sample, work_grid_sample},
    {"", "AffineGrid", 2, 2, 1, 1, 0, infer_affine_grid, work_affine_grid},
    {0},
};
