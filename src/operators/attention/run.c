/* Attention, and FlexAttention without bodies. Each query is computed by itself, with all its scores at once. The output Y
 * never depends on keys that the query must not attend to, so the unused end of a cache may contain anything. The scores of
 * such keys are computed only if the node outputs them. */
#include "operators/attention/run.h"

#include <math.h>
#include <stdio.h>

#include "operators/common/element.h"
#include "operators/run.h"

/* Access to the rows of Q, K, V or the output: one row per batch, head and token. In a tensor of three dims, the heads of a token
 * are adjacent. */
typedef struct rows {
  const clv_tensor *tensor, *past; /* `past`: rows that come before those of `tensor`; NULL: none */
  int64_t heads, length, past_length, size;
} rows;

typedef struct attention {
  rows query, key, value, output; /* output.tensor is NULL if only the scores or the joined caches are wanted */
  const clv_tensor *mask, *valid, *scores;
  int64_t batches, group, total; /* `group`: heads of Q that share one head of K and V; `total`: number of keys, including past
                                  * ones */
  int64_t mask_keys;             /* keys from this index on are masked */
  int64_t left, right;           /* number of keys before and after its own position that a query may attend to */
  double scale, cap;
  int64_t mode;       /* the contents of the output `scores`: 0 raw, 1 capped, 2 masked, 3 after the softmax */
  clv_dtype rounding; /* dtype that the softmax is rounded to; NONE: not rounded */
} attention;

static rows rows_of(const clv_tensor *t, int64_t heads, const clv_tensor *past) {
  rows r = {.tensor = t, .past = past, .heads = heads, .past_length = past != NULL ? past->dims[2] : 0};
  r.length = t->dims[t->rank == 3 ? 1 : 2];
  r.size = t->rank == 4 ? t->dims[3] : heads > 0 ? t->dims[2] / heads : 0;
  return r;
}

/* Sets *tensor to the tensor that contains row `at` of a head, the past one or the new one, and returns the index of the row's
 * first element. */
static int64_t row_of(const rows *r, int64_t batch, int64_t head, int64_t at, const clv_tensor **tensor) {
  if (at < r->past_length) {
    *tensor = r->past;
    return ((batch * r->heads + head) * r->past_length + at) * r->size;
  }
  *tensor = r->tensor;
  at -= r->past_length;
  if (r->tensor->rank == 3) return ((batch * r->length + at) * r->heads + head) * r->size;
  return ((batch * r->heads + head) * r->length + at) * r->size;
}

/* The size of the attention window on one side, from attribute `name`. A negative size means no bound. */
static int64_t window_of(const clv__kernel_call *call, const char *name) {
  const int64_t size = clv__attribute_int(call->attributes, name, -1);
  return size < 0 || size > INT64_MAX / 4 ? INT64_MAX / 4 : size;
}

static clv_dtype rounding_of(const clv__kernel_call *call) {
  const clv_dtype own = call->inputs[0].dtype, asked = (clv_dtype)clv__attribute_int(call->attributes, "softmax_precision", 0);
  if (asked == own || asked == CLV_DTYPE_NONE || asked == CLV_F64) return CLV_DTYPE_NONE;
  return asked == CLV_F32 && own != CLV_F64 ? CLV_DTYPE_NONE : asked;
}

static attention attention_of(const clv__kernel_call *call) {
  const clv_tensor *q = &call->inputs[0], *k = &call->inputs[1], *v = &call->inputs[2], *y = clv__call_output(call, 0);
  const int64_t heads = q->rank == 3 ? clv__attribute_int(call->attributes, "q_num_heads", 1) : q->dims[1];
  const int64_t kv_heads = q->rank == 3 ? clv__attribute_int(call->attributes, "kv_num_heads", 1) : k->dims[1];
  attention a = {.batches = q->dims[0], .group = kv_heads > 0 ? heads / kv_heads : 0};
  a.query = rows_of(q, heads, NULL);
  a.key = rows_of(k, kv_heads, clv__call_input(call, 4));
  a.value = rows_of(v, kv_heads, clv__call_input(call, 5));
  if (y != NULL) a.output = rows_of(y, heads, NULL);
  a.total = a.key.past_length + a.key.length;
  a.mask = clv__call_input(call, 3);
  a.valid = clv__call_input(call, 6);
  a.scores = clv__call_output(call, 3);
  a.mode = clv__attribute_int(call->attributes, "qk_matmul_output_mode", 0);
  a.left = window_of(call, "left_window_size");
  a.right = window_of(call, "right_window_size");
  if (clv__attribute_int(call->attributes, "is_causal", 0) != 0) a.right = 0;
  a.scale = a.query.size > 0 ? 1 / sqrt((double)a.query.size) : 1;
  if (clv__attribute_find(call->attributes, "scale") != NULL)
    a.scale = (double)clv__attribute_float(call->attributes, "scale", 0);
  a.cap = (double)clv__attribute_float(call->attributes, "softcap", 0);
  a.rounding = rounding_of(call);
  /* A mask may have fewer columns than there are keys; the keys beyond are masked. Before opset 24, a mask with one column is
   * broadcast to all keys instead. */
  const int64_t mask_keys = a.mask != NULL ? a.mask->dims[a.mask->rank - 1] : a.total;
  a.mask_keys = mask_keys < a.total && (call->opset >= 24 || mask_keys != 1) ? mask_keys : a.total;
  return a;
}

/* Finds the keys [*first, *end) that a query may attend to. Query i is at the position of new key i, after all past keys. With
 * nonpad_kv_seqlen, the last query is at the last valid key. */
static void range_of(const attention *a, int64_t batch, int64_t query, int64_t *first, int64_t *end) {
  const int64_t valid = a->valid != NULL ? clv__element_load_int(a->valid, batch) : a->total;
  const int64_t place = a->valid != NULL ? valid - a->query.length + query : a->key.past_length + query;
  *first = place - a->left < 0 ? 0 : place - a->left;
  *end = place + a->right + 1;
  if (*end > valid) *end = valid;
  if (*end > a->mask_keys) *end = a->mask_keys;
  if (*end < *first) *first = *end = 0;
}

/* The score after masking. A mask element of -inf replaces the score instead of being added, because NaN + -inf would still be
 * NaN. */
static double masked(const attention *a, int64_t batch, int64_t head, int64_t query, int64_t key, double score) {
  const int64_t place[4] = {batch, head, query, key};
  if (a->mask == NULL) return score;
  const int64_t at = clv__index_broadcast(a->mask, 4, place);
  if (a->mask->dtype == CLV_BOOL) return clv__element_load_int(a->mask, at) != 0 ? score : -INFINITY;
  const double value = clv__element_load(a->mask, at);
  return value == -INFINITY ? value : score + value;
}

static double round_to(clv_dtype dtype, double value) {
  uint64_t bits = 0;
  const clv_tensor one = clv__tensor_make(dtype, 0, NULL, &bits);
  if (dtype == CLV_DTYPE_NONE) return value;
  clv__element_store(&one, 0, value);
  return clv__element_load(&one, 0);
}

/* Turns scores into weights that sum to 1; all 0 if every score is -inf. */
static void softmax(clv_dtype rounding, double *scores, int64_t first, int64_t end) {
  double largest = -INFINITY, sum = 0;
  bool nothing = true;
  for (int64_t j = first; j < end; ++j) {
    scores[j] = round_to(rounding, scores[j]);
    if (scores[j] > largest) largest = scores[j];
    nothing = nothing && scores[j] == -INFINITY;
  }
  for (int64_t j = first; j < end; ++j) sum += scores[j] = nothing ? 0 : exp(scores[j] - largest);
  for (int64_t j = first; j < end; ++j) scores[j] = nothing ? 0 : round_to(rounding, scores[j] / sum);
}

static void show(const attention *a, int64_t row, const double *scores) {
  for (int64_t j = 0; j < a->total; ++j) clv__element_store(a->scores, row * a->total + j, scores[j]);
}

static double product_of(const attention *a, int64_t batch, int64_t head, int64_t query, int64_t key) {
  const clv_tensor *left, *right;
  const int64_t q = row_of(&a->query, batch, head, query, &left), k = row_of(&a->key, batch, head / a->group, key, &right);
  double sum = 0;
  for (int64_t i = 0; i < a->query.size; ++i) sum += clv__element_load(left, q + i) * clv__element_load(right, k + i);
  return sum * a->scale;
}

/* Computes the output row of one query of one head, and its row of the output `scores`. The argument `scores` has room for one
 * number per key. */
static void run_query(const attention *a, int64_t batch, int64_t head, int64_t query, double *scores) {
  const int64_t row = (batch * a->query.heads + head) * a->query.length + query, mode = a->scores != NULL ? a->mode : -1;
  const bool whole = mode >= 0 && mode < 3; /* also outputs scores of keys that the query must not attend to */
  int64_t first, end;
  range_of(a, batch, query, &first, &end);
  for (int64_t j = 0; j < a->total; ++j) {
    scores[j] = whole || (j >= first && j < end) ? product_of(a, batch, head, query, j) : 0;
  }
  if (mode == 0) show(a, row, scores);
  for (int64_t j = 0; a->cap > 0 && j < a->total; ++j) scores[j] = a->cap * tanh(scores[j] / a->cap);
  if (mode == 1) show(a, row, scores);
  for (int64_t j = 0; j < a->total; ++j) {
    scores[j] = j >= first && j < end ? masked(a, batch, head, query, j, scores[j]) : mode == 2 ? -INFINITY : 0;
  }
  if (mode == 2) show(a, row, scores);
  softmax(a->rounding, scores, first, end);
  if (mode == 3) show(a, row, scores);
  if (a->output.tensor == NULL) return;
  for (int64_t i = 0; i < a->value.size; ++i) {
    const clv_tensor *from;
    double sum = 0;
    for (int64_t j = first; j < end; ++j) {
      const int64_t value = row_of(&a->value, batch, head / a->group, j, &from);
      sum += scores[j] * clv__element_load(from, value + i);
    }
    const int64_t to = row_of(&a->output, batch, head, query, &from);
    clv__element_store(from, to + i, sum);
  }
}

/* Concatenates the past and the new rows. */
static void join_cache(const rows *r, int64_t batches, const clv_tensor *present) {
  if (present == NULL || clv__tensor_is_empty(present)) return;
  int64_t to = 0;
  for (int64_t pair = 0; pair < batches * r->heads; ++pair) {
    for (int64_t j = 0; j < r->past_length + r->length; ++j) {
      const clv_tensor *from;
      const int64_t first = row_of(r, pair / r->heads, pair % r->heads, j, &from);
      for (int64_t i = 0; i < r->size; ++i) clv__element_copy(present, to++, from, first + i);
    }
  }
}

/* Whether any output except the joined caches is wanted. */
static bool is_wanted(const clv__kernel_call *call) {
  const clv_tensor *y = clv__call_output(call, 0), *scores = clv__call_output(call, 3);
  return (y != NULL && !clv__tensor_is_empty(y)) || (scores != NULL && !clv__tensor_is_empty(scores));
}

static clv_status run_attention(const clv__kernel_call *call) {
  const attention a = attention_of(call);
  for (int64_t b = 0; a.valid != NULL && b < a.batches; ++b) {
    const int64_t valid = clv__element_load_int(a.valid, b);
    if (valid >= 0 && valid <= a.total) continue;
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                          "nonpad_kv_seqlen[%lld] is %lld; it must be from 0 to %lld, the number of keys", (long long)b,
                          (long long)valid, (long long)a.total);
  }
  join_cache(&a.key, a.batches, clv__call_output(call, 1));
  join_cache(&a.value, a.batches, clv__call_output(call, 2));
  for (int64_t b = 0; is_wanted(call) && b < a.batches; ++b) {
    for (int64_t h = 0; h < a.query.heads; ++h) {
      for (int64_t i = 0; i < a.query.length; ++i) run_query(&a, b, h, i, call->scratch);
    }
  }
  return CLV_OK;
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  if (!is_wanted(call)) return 0;
  const clv_tensor *k = &call->inputs[1], *past = clv__call_input(call, 4);
  const int64_t length = k->dims[k->rank == 3 ? 1 : 2], before = past != NULL ? past->dims[2] : 0;
  const bool fits = length <= INT64_MAX / 64 && before <= INT64_MAX / 64;
  return fits ? (size_t)(length + before) * sizeof(double) : SIZE_MAX;
}

static bool accepts(const clv__kernel_call *call, char reason[160]) {
  const int64_t precision = clv__attribute_int(call->attributes, "softmax_precision", 0);
  const clv_tensor *mask = clv__call_input(call, 3), *value = &call->inputs[2];
  if (precision != 0 && (precision < 0 || precision > CLV_BF16 || (CLV__DTYPES_FLOAT >> precision & 1u) == 0)) {
    snprintf(reason, 160, "softmax_precision %lld is not supported", (long long)precision);
    return false;
  }
  if ((CLV__DTYPES_FLOAT & CLV__DTYPE_BIT(value->dtype)) == 0) {
    snprintf(reason, 160, "dtype %s of V is not supported", clv_dtype_name(value->dtype));
    return false;
  }
  if (mask != NULL && (CLV__DTYPES_ANY & CLV__DTYPE_BIT(mask->dtype)) == 0) {
    snprintf(reason, 160, "dtype %s of attn_mask is not supported", clv_dtype_name(mask->dtype));
    return false;
  }
  return true;
}

/* FlexAttention without bodies is Attention with four dims. With bodies it needs more than a kernel
 * (src/analysis/evaluate_flex.c). */
static bool accepts_flex(const clv__kernel_call *call, char reason[160]) {
  const bool has_body =
      clv__attribute_find(call->attributes, "score_mod") != NULL || clv__attribute_find(call->attributes, "prob_mod") != NULL;
  if (has_body) snprintf(reason, 160, "FlexAttention's score_mod and prob_mod are not supported here");
  return !has_body && accepts(call, reason);
}

const clv__kernel clv__kernels_attention[] = {
    {"", "Attention", CLV__DTYPES_FLOAT, run_attention, scratch_bytes, accepts},
    {"ai.onnx.preview", "FlexAttention", CLV__DTYPES_FLOAT, run_attention, scratch_bytes, accepts_flex},
    {"", "LinearAttention", CLV__DTYPES_FLOAT & ~CLV__DTYPE_BIT(CLV_F64), clv__kernel_linear_attention,
     clv__kernel_linear_attention_scratch_bytes, clv__kernel_linear_attention_accepts},
    {"", "RotaryEmbedding", CLV__DTYPES_FLOAT & ~CLV__DTYPE_BIT(CLV_F64), clv__kernel_rotary, NULL, NULL},
    {.op = NULL},
};
