/* Reduce*: sums, products, extremes and related operators over any set of axes.
 *
 * Neighbouring axes are merged if both are reduced or both are kept. If the innermost axis is reduced, an output accumulates
 * contiguous runs of elements. If it is kept, a block of neighbouring outputs accumulates rows, one element per output and row.
 * Floats accumulate in double, integers in 64 bits. The division of work depends on shapes alone, so the results do not depend on
 * the number of threads. */
#include <math.h>

#include "backends/common/kernels/extreme.h"
#include "backends/common/kernels/families.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

enum { BLOCK = 256, MAX_SHARES = 64, SHARE = 32768, FEW_OUTPUTS = 8, OUTPUT_GROUP = 16, LANES = 8 };

typedef enum fold { FOLD_SUM, FOLD_ABSOLUTE, FOLD_SQUARE, FOLD_EXP, FOLD_PRODUCT, FOLD_MAX, FOLD_MIN } fold;
typedef enum finish { FINISH_NONE, FINISH_MEAN, FINISH_ROOT, FINISH_LOG } finish;

typedef struct reduction {
  const char *op;
  fold what;
  finish last;
  bool in_double; /* accumulates in double, even for integers */
} reduction;

static const reduction table[] = {
    {"ReduceSum", FOLD_SUM, FINISH_NONE, false},      {"ReduceMean", FOLD_SUM, FINISH_MEAN, false},
    {"ReduceMax", FOLD_MAX, FINISH_NONE, false},      {"ReduceMin", FOLD_MIN, FINISH_NONE, false},
    {"ReduceProd", FOLD_PRODUCT, FINISH_NONE, false}, {"ReduceL1", FOLD_ABSOLUTE, FINISH_NONE, false},
    {"ReduceL2", FOLD_SQUARE, FINISH_ROOT, true},     {"ReduceLogSum", FOLD_SUM, FINISH_LOG, true},
    {"ReduceLogSumExp", FOLD_EXP, FINISH_LOG, true},  {"ReduceSumSquare", FOLD_SQUARE, FINISH_NONE, false},
};

/* The loops over the elements of the input. Strides are in elements. */
typedef struct plan {
  int32_t kept_rank, reduced_rank; /* not counting the innermost axis */
  int64_t kept_dims[CLV_MAX_RANK], kept_strides[CLV_MAX_RANK];
  int64_t reduced_dims[CLV_MAX_RANK], reduced_strides[CLV_MAX_RANK];
  int64_t kept_count, reduced_count; /* the products of kept_dims and of reduced_dims */
  int64_t inner;
  bool inner_reduced;
  int64_t reduced_total; /* number of input elements that an output combines */
  const clv__stop *stop;
} plan;

static void plan_make(const clv_tensor *input, uint32_t axes, plan *p) {
  *p = (plan){.kept_count = 1, .reduced_count = 1, .inner = 1, .reduced_total = 1};
  int64_t stride = 1;
  bool have_inner = false, last_reduced = false;
  for (int32_t axis = input->rank - 1; axis >= 0; --axis) {
    int64_t dim = input->dims[axis];
    bool reduced = (axes >> axis & 1u) != 0;
    if (dim == 1) continue;
    if (!have_inner || (p->kept_rank + p->reduced_rank == 0 && reduced == last_reduced)) {
      p->inner *= dim;
      p->inner_reduced = reduced;
      have_inner = true;
    } else {
      int32_t *rank = reduced ? &p->reduced_rank : &p->kept_rank;
      int64_t *dims = reduced ? p->reduced_dims : p->kept_dims, *strides = reduced ? p->reduced_strides : p->kept_strides;
      if (reduced == last_reduced) { /* merge with the previous axis */
        dims[*rank - 1] *= dim;
      } else {
        dims[*rank] = dim;
        strides[(*rank)++] = stride;
      }
    }
    if (reduced) p->reduced_total *= dim;
    last_reduced = reduced;
    stride *= dim;
  }
  for (int32_t i = 0; i < p->kept_rank; ++i) p->kept_count *= p->kept_dims[i];
  for (int32_t i = 0; i < p->reduced_rank; ++i) p->reduced_count *= p->reduced_dims[i];
}

/* The offset of element `index` of the given axes, of which dims[0] is the innermost. */
static inline int64_t offset_of(int32_t rank, const int64_t *dims, const int64_t *strides, int64_t index) {
  int64_t offset = 0;
  for (int32_t i = 0; i < rank; ++i) {
    offset += index % dims[i] * strides[i];
    index /= dims[i];
  }
  return offset;
}

/* Definitions for reduce_body.h, to accumulate in double. */
#define NAME(x) x##_f64
#define T double
#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define ABSOLUTE(a) fabs(a)
#define MEAN(a, count) ((a) / (double)(count))
#define EXP(a) exp(a)
#define ROOT(a) sqrt(a)
#define LOGARITHM(a) log(a)
#define FINITE_OR_ZERO(a) (isfinite(a) ? (a) : 0)
#define LOAD clv__row_to_f64
#define STORE clv__row_from_f64
#include "backends/common/kernels/reduce_body.h"
#undef NAME
#undef T
#undef ADD
#undef MUL
#undef ABSOLUTE
#undef MEAN
#undef EXP
#undef ROOT
#undef LOGARITHM
#undef FINITE_OR_ZERO
#undef LOAD
#undef STORE

/* Definitions for reduce_body.h, to accumulate in 64-bit integers, which wrap. */
#define ADD(a, b) ((T)((uint64_t)(a) + (uint64_t)(b)))
#define MUL(a, b) ((T)((uint64_t)(a) * (uint64_t)(b)))
#define MEAN(a, count) ((count) > 0 ? (a) / (T)(count) : 0)
#define EXP(a) (a)
#define ROOT(a) (a)
#define LOGARITHM(a) (a)
#define FINITE_OR_ZERO(a) (a)
#define NAME(x) x##_i64
#define T int64_t
#define ABSOLUTE(a) ((a) < 0 ? (T)(0 - (uint64_t)(a)) : (a))
#define LOAD clv__row_to_i64
#define STORE clv__row_from_i64
#include "backends/common/kernels/reduce_body.h"
#undef NAME
#undef T
#undef ABSOLUTE
#undef LOAD
#undef STORE
#define NAME(x) x##_u64
#define T uint64_t
#define ABSOLUTE(a) (a)
#define LOAD(dtype, data, first, count, row) clv__row_to_i64(dtype, data, first, count, (int64_t *)(row))
#define STORE(dtype, data, first, count, row) clv__row_from_i64(dtype, data, first, count, (const int64_t *)(row))
#include "backends/common/kernels/reduce_body.h"

/* The value from which an integer reduction starts, which is also its result if there are no elements. */
static int64_t integer_identity(fold what, clv_dtype dtype) {
  if (what != FOLD_MAX && what != FOLD_MIN) return what == FOLD_PRODUCT;
  bool lowest = what == FOLD_MAX;
  switch (dtype) {
    case CLV_I8:
      return lowest ? INT8_MIN : INT8_MAX;
    case CLV_I16:
      return lowest ? INT16_MIN : INT16_MAX;
    case CLV_I32:
      return lowest ? INT32_MIN : INT32_MAX;
    case CLV_I64:
      return lowest ? INT64_MIN : INT64_MAX;
    case CLV_U8:
      return lowest ? 0 : UINT8_MAX;
    case CLV_U16:
      return lowest ? 0 : UINT16_MAX;
    case CLV_U32:
      return lowest ? 0 : UINT32_MAX;
    case CLV_U64:
      return lowest ? 0 : -1; /* UINT64_MAX as a signed number */
    default:
      return lowest ? 0 : 1; /* bool */
  }
}

static double float_identity(fold what) {
  return what == FOLD_MAX ? -(double)INFINITY : what == FOLD_MIN ? (double)INFINITY : what == FOLD_PRODUCT ? 1 : 0;
}

/* The axes to reduce, as bits: from input 1 or, in earlier opsets, from the attribute. If there are no axes, all are reduced,
 * or none if the attribute noop_with_empty_axes is set. */
static clv_status read_axes(const clv__kernel_call *call, uint32_t *axes) {
  int32_t rank = call->inputs[0].rank;
  size_t count = 0;
  const int64_t *list = clv__attribute_ints(call->attributes, "axes", &count);
  const clv_tensor *input = call->input_count > 1 && call->inputs[1].dtype != CLV_DTYPE_NONE ? &call->inputs[1] : NULL;
  if (input != NULL) count = (size_t)clv__dims_product(input, 0, input->rank);
  *axes = 0;
  for (size_t i = 0; i < count; ++i) {
    int64_t axis = input != NULL ? clv__tensor_get_int(input, i) : list[i];
    if (axis < -(int64_t)rank || axis >= rank) {
      return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "axes: %lld out of range for rank %d", (long long)axis, (int)rank);
    }
    *axes |= 1u << (axis < 0 ? axis + rank : axis);
  }
  if (count == 0 && clv__attribute_int(call->attributes, "noop_with_empty_axes", 0) == 0) *axes = (1u << rank) - 1;
  return CLV_OK;
}

/* Extremes of contiguous f32 rows, without converting to double. */
static void run_extreme(const plan *p, const reduction *entry, const clv_tensor *input, const clv_tensor *output) {
  const int64_t group = p->inner < SHARE ? SHARE / p->inner : 1, tasks = (p->kept_count + group - 1) / group;
  const int threads = clv__kernel_threads(tasks, (double)p->kept_count * (double)p->inner);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(p->stop)) continue;
    const int64_t first = task * group, rows = p->kept_count - first < group ? p->kept_count - first : group;
    clv__rows_extreme((const float *)input->data + first * p->inner, rows, p->inner, entry->what == FOLD_MIN,
                      (float *)output->data + first);
  }
}

static clv_status run_reduce(const clv__kernel_call *call) {
  const reduction *entry = table;
  while (strcmp(entry->op, call->op) != 0) ++entry; /* every operator of clv__fast_reduce is in the table */
  uint32_t axes;
  CLV__TRY(read_axes(call, &axes));
  const clv_tensor *input = &call->inputs[0], *output = &call->outputs[0];
  if (clv__dims_product(output, 0, output->rank) == 0) return CLV_OK;
  plan p;
  plan_make(input, axes, &p);
  p.stop = call->stop;
  bool is_float = (CLV__DTYPE_BIT(input->dtype) & CLV__DTYPES_FLOAT) != 0;
  const bool rows = p.inner_reduced && p.reduced_rank == 0 && p.kept_rank <= 1 && p.inner > 0 && p.kept_count >= FEW_OUTPUTS;
  if (rows && input->dtype == CLV_F32 && (entry->what == FOLD_MAX || entry->what == FOLD_MIN)) {
    run_extreme(&p, entry, input, output);
  } else if (is_float || entry->in_double) {
    run_f64(&p, entry, input, output, float_identity(entry->what), float_identity(FOLD_MAX));
  } else if (input->dtype == CLV_U64) {
    run_u64(&p, entry, input, output, (uint64_t)integer_identity(entry->what, CLV_U64), 0);
  } else {
    run_i64(&p, entry, input, output, integer_identity(entry->what, input->dtype), INT64_MIN);
  }
  return CLV_OK;
}

#define KERNEL(op) \
  { "", op, run_reduce, NULL }

const clv__fast_kernel clv__fast_reduce[] = {
    KERNEL("ReduceSum"),       KERNEL("ReduceMean"),      KERNEL("ReduceMax"), KERNEL("ReduceMin"),
    KERNEL("ReduceProd"),      KERNEL("ReduceL1"),        KERNEL("ReduceL2"),  KERNEL("ReduceLogSum"),
    KERNEL("ReduceLogSumExp"), KERNEL("ReduceSumSquare"), {.op = NULL},
};
