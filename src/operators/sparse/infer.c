/* Operators of domain `ai.cleave` over graphs in compressed rows. Row v of the result is computed from the data rows named by
 * sources[offsets[v] .. offsets[v + 1]).
 *
 *   SparseAggregate(data [r, F], offsets [n + 1], sources [m]) -> [n, F]
 *     reduce   "sum" (default), "mean" (a row without sources is 0), "max" (a row without sources is 0)
 *   SparseAttention(data [r, H * C], source_score [r, H], target_score [n, H], offsets [n + 1], sources [m]) -> [n, H * C]
 *     for each head, the sum of the sources' data, weighted by the softmax over a row's sources of leaky_relu(source_score +
 *     target_score), whose slope is negative_slope, by default 0.2 (graph attention: Veličković and others 2018)
 *
 * Offsets are i64, begin with 0, never decrease, and may end below m; the remaining sources are padding. Sources are i32 or i64.
 * Sums are in f32. */
#include "operators/infer.h"
#include "operators/common/dims.h"

static clv_status check_index(clv__infer *infer, uint32_t input, const char *name, bool wide_only) {
  const clv_tensor *index = &infer->inputs[input];
  if (index->dtype != CLV_I64 && (wide_only || index->dtype != CLV_I32)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s are %s; expected %s", name, clv_dtype_name(index->dtype),
                          wide_only ? "i64" : "i32 or i64");
  }
  if (index->rank >= 0 && index->rank != 1) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s have rank %d; expected 1", name, index->rank);
  }
  return CLV_OK;
}

static clv_status check_rank(clv__infer *infer, uint32_t input, const char *name) {
  int32_t rank = infer->inputs[input].rank;
  if (rank < 0 || rank == 2) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s has rank %d; expected 2", name, rank);
}

/* The number of rows of the result, from the offsets. */
static clv_status row_count(clv__infer *infer, uint32_t offsets, int64_t *rows) {
  const clv_tensor *index = &infer->inputs[offsets];
  *rows = CLV_DIM_UNKNOWN;
  if (index->rank != 1 || index->dims[0] < 0) return CLV_OK;
  if (index->dims[0] == 0)
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "offsets is empty; expected one element more than there are rows");
  *rows = index->dims[0] - 1;
  return CLV_OK;
}

static clv_status infer_aggregate(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0];
  int64_t rows;
  clv__attributes attributes = infer->attributes;
  if (!clv__attribute_is(attributes, "reduce", "sum", true) && !clv__attribute_is(attributes, "reduce", "mean", false) &&
      !clv__attribute_is(attributes, "reduce", "max", false)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute reduce is not one of sum, mean, max");
  }
  CLV__TRY(check_rank(infer, 0, "data"));
  CLV__TRY(check_index(infer, 1, "offsets", true));
  CLV__TRY(check_index(infer, 2, "sources", false));
  CLV__TRY(row_count(infer, 1, &rows));
  clv__infer_set(infer, 0, data->dtype, 2, (const int64_t[]){rows, data->rank == 2 ? data->dims[1] : CLV_DIM_UNKNOWN});
  return CLV_OK;
}

static clv_status same_dim(clv__infer *infer, int64_t a, int64_t b, const char *what) {
  int64_t dim;
  if (clv__dim_merge(a, b, &dim)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s must be equal, but are %lld and %lld", what, (long long)a,
                        (long long)b);
}

static clv_status infer_attention(clv__infer *infer) {
  const clv_tensor *data = &infer->inputs[0], *source = &infer->inputs[1], *target = &infer->inputs[2];
  int64_t rows;
  static const char *const names[] = {"data", "source_score", "target_score"};
  for (uint32_t i = 0; i < 3; ++i) CLV__TRY(check_rank(infer, i, names[i]));
  for (uint32_t i = 1; i < 3; ++i) {
    if (infer->inputs[i].dtype == data->dtype) continue;
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s is %s, but data is %s", names[i],
                          clv_dtype_name(infer->inputs[i].dtype), clv_dtype_name(data->dtype));
  }
  CLV__TRY(check_index(infer, 3, "offsets", true));
  CLV__TRY(check_index(infer, 4, "sources", false));
  CLV__TRY(row_count(infer, 3, &rows));
  if (data->rank == 2 && source->rank == 2)
    CLV__TRY(same_dim(infer, data->dims[0], source->dims[0], "the numbers of rows of data and source_score"));
  if (source->rank == 2 && target->rank == 2) {
    CLV__TRY(same_dim(infer, source->dims[1], target->dims[1], "the numbers of heads of source_score and target_score"));
    if (rows >= 0)
      CLV__TRY(same_dim(infer, rows, target->dims[0], "the numbers of rows that offsets describes and that target_score has"));
  }
  if (data->rank == 2 && source->rank == 2 && data->dims[1] >= 0 && source->dims[1] >= 0 &&
      (source->dims[1] == 0 || data->dims[1] % source->dims[1] != 0)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "data has %lld columns, which is not a multiple of %lld heads",
                          (long long)data->dims[1], (long long)source->dims[1]);
  }
  clv__infer_set(infer, 0, data->dtype, 2, (const int64_t[]){rows, data->rank == 2 ? data->dims[1] : CLV_DIM_UNKNOWN});
  return CLV_OK;
}

/* Returns the number of pairs of a source and a column. Each pair costs one addition, and in SparseAttention also one
 * multiplication. */
static double pairs(const clv__infer *infer, uint32_t sources) {
  size_t count;
  const clv_tensor *data = &infer->inputs[0];
  if (data->rank != 2 || data->dims[1] < 0 || !clv__tensor_count(&infer->inputs[sources], &count)) return 0;
  return (double)count * (double)data->dims[1];
}

static void aggregate_work(const clv__infer *infer, clv__work *work) {
  work->flops = pairs(infer, 2);
}

static void attention_work(const clv__infer *infer, clv__work *work) {
  work->flops = 2 * pairs(infer, 4);
}

const clv__op clv__ops_sparse[] = {
    {"ai.cleave", "SparseAggregate", 3, 3, 1, 1, 0, infer_aggregate, aggregate_work, NULL},
    {"ai.cleave", "SparseAttention", 5, 5, 1, 1, 0, infer_attention, attention_work, NULL},
    {.name = NULL},
};
