/* RNN, GRU and LSTM: infers the sizes from the input and the weights, and from them the shapes of the outputs and states. */
#include "operators/infer.h"
#include "operators/common/checks.h"

typedef struct sizes {
  int64_t steps, batch, inputs, hidden, directions, gates; /* negative: unknown */
  bool batch_first;
} sizes;

static clv_status check_dims(clv__infer *infer, uint32_t input, const char *name, int32_t rank, const int64_t *dims) {
  if (!clv__infer_has(infer, input)) return CLV_OK;
  const clv_tensor *t = &infer->inputs[input];
  CLV__TRY(clv__check_rank(infer, input, rank, rank));
  if (t->rank < 0) return CLV_OK;
  for (int32_t i = 0; i < rank; ++i) {
    int64_t unused;
    if (clv__dim_merge(t->dims[i], dims[i], &unused)) continue;
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "dimension %d of %s is %lld; expected %lld", (int)i, name,
                          (long long)t->dims[i], (long long)dims[i]);
  }
  return CLV_OK;
}

static int64_t dim_of(const clv_tensor *tensor, int32_t rank, int32_t axis) {
  return tensor->rank == rank ? tensor->dims[axis] : CLV_DIM_UNKNOWN;
}

static int64_t times(int64_t factor, int64_t dim) {
  int64_t product;
  return dim < 0 || __builtin_mul_overflow(factor, dim, &product) ? CLV_DIM_UNKNOWN : product;
}

static clv_status read_sizes(clv__infer *infer, sizes *s) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1], *r = &infer->inputs[2];
  const bool both = clv__attribute_is(infer->attributes, "direction", "bidirectional", false);
  if (!both && !clv__attribute_is(infer->attributes, "direction", "reverse", false) &&
      !clv__attribute_is(infer->attributes, "direction", "forward", true)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute direction is not one of forward, reverse, bidirectional");
  }
  CLV__TRY(clv__check_rank(infer, 0, 3, 3));
  CLV__TRY(clv__check_rank(infer, 1, 3, 3));
  CLV__TRY(clv__check_rank(infer, 2, 3, 3));
  *s = (sizes){.directions = both ? 2 : 1, .gates = strcmp(infer->op, "LSTM") == 0 ? 4 : strcmp(infer->op, "GRU") == 0 ? 3 : 1};
  s->batch_first = clv__attribute_int(infer->attributes, "layout", 0) != 0;
  s->steps = dim_of(x, 3, s->batch_first);
  s->batch = dim_of(x, 3, !s->batch_first);
  s->inputs = dim_of(x, 3, 2);
  if (s->inputs < 0) s->inputs = dim_of(w, 3, 2);
  s->hidden = clv__attribute_int(infer->attributes, "hidden_size", 0);
  if (s->hidden < 0 || s->hidden > INT64_C(1) << 40) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute hidden_size is %lld; expected 0 to 2^40",
                          (long long)s->hidden);
  }
  if (s->hidden == 0) s->hidden = dim_of(r, 3, 2);
  return CLV_OK;
}

static clv_status check_weights(clv__infer *infer, const sizes *s) {
  const int64_t w[] = {s->directions, times(s->gates, s->hidden), s->inputs};
  const int64_t r[] = {s->directions, times(s->gates, s->hidden), s->hidden};
  const int64_t b[] = {s->directions, times(2 * s->gates, s->hidden)};
  const int64_t state[] = {s->batch_first ? s->batch : s->directions, s->batch_first ? s->directions : s->batch, s->hidden};
  const int64_t p[] = {s->directions, times(3, s->hidden)};
  for (uint32_t input = 1; input < infer->input_count; ++input) {
    if (input != 4) CLV__TRY(clv__check_same_dtype(infer, 0, input));
  }
  CLV__TRY(check_dims(infer, 1, "W", 3, w));
  CLV__TRY(check_dims(infer, 2, "R", 3, r));
  CLV__TRY(check_dims(infer, 3, "B", 2, b));
  if (clv__infer_has(infer, 4) && infer->inputs[4].dtype != CLV_I32) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "sequence_lens is %s; expected i32",
                          clv_dtype_name(infer->inputs[4].dtype));
  }
  CLV__TRY(check_dims(infer, 4, "sequence_lens", 1, &s->batch));
  CLV__TRY(check_dims(infer, 5, "initial_h", 3, state));
  CLV__TRY(check_dims(infer, 6, "initial_c", 3, state));
  return check_dims(infer, 7, "P", 2, p);
}

static clv_status infer_recurrent(clv__infer *infer) {
  sizes s;
  CLV__TRY(read_sizes(infer, &s));
  CLV__TRY(check_weights(infer, &s));
  const clv_dtype dtype = infer->inputs[0].dtype;
  const int64_t y[2][4] = {{s.steps, s.directions, s.batch, s.hidden}, {s.batch, s.steps, s.directions, s.hidden}};
  const int64_t state[2][3] = {{s.directions, s.batch, s.hidden}, {s.batch, s.directions, s.hidden}};
  clv__infer_set(infer, 0, dtype, 4, y[s.batch_first]);
  for (uint32_t i = 1; i < infer->output_count; ++i) clv__infer_set(infer, i, dtype, 3, state[s.batch_first]);
  return CLV_OK;
}

/* Counts two matrix products per step, and 20 FLOPs per element of a gate for its function. */
static void work_recurrent(const clv__infer *infer, clv__work *work) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1], *r = &infer->inputs[2];
  if (x->rank != 3 || w->rank != 3) return;
  const double rows = (double)x->dims[0] * (double)x->dims[1];
  work->flops = rows * (2 * clv__known_count(w) + 2 * clv__known_count(r) + 20.0 * (double)w->dims[0] * (double)w->dims[1]);
}

const clv__op clv__ops_recurrent[] = {
    {"", "RNN", 3, 6, 0, 2, 0, infer_recurrent, work_recurrent, NULL},
    {"", "GRU", 3, 6, 0, 2, 0, infer_recurrent, work_recurrent, NULL},
    {"", "LSTM", 3, 8, 0, 3, 0, infer_recurrent, work_recurrent, NULL},
    {.name = NULL},
};
