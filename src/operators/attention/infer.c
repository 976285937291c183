/* The attention family; this file has Attention and FlexAttention. Q, K and V have either three dims, of which the last one
 * contains all heads side by side, or four, of which one is the axis of heads. The cache of keys and values is either internal
 * (inputs past_key and past_value, joined outputs present_key and present_value) or external: then K and V are the whole cache,
 * and input nonpad_kv_seqlen gives the number of keys that are valid. */
#include "operators/attention/infer.h"

#include "operators/common/checks.h"
#include "operators/common/dims.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, VALID };

/* The dims of Q, K or V: batch, number of heads, number of tokens, size of a head. Any of them may be unknown. */
typedef struct heads {
  int64_t batch, count, length, size;
} heads;

clv_status clv__attention_head_size(clv__infer *infer, uint32_t input, int64_t dim, int64_t count, int64_t *size) {
  if (clv__dims_quotient(&dim, 1, &count, 1, size)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL,
                        "input %u has %lld columns, which is not a multiple of the number of heads, %lld", (unsigned)input,
                        (long long)dim, (long long)count);
}

static clv_status read_heads(clv__infer *infer, uint32_t input, const char *attribute, heads *h) {
  const clv_tensor *t = &infer->inputs[input];
  *h = (heads){CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN, CLV_DIM_UNKNOWN};
  if (t->rank < 0) return CLV_OK;
  h->batch = t->dims[0];
  if (t->rank == 4) {
    h->count = t->dims[1], h->length = t->dims[2], h->size = t->dims[3];
    return CLV_OK;
  }
  h->count = clv__attribute_int(infer->attributes, attribute, 0);
  h->length = t->dims[1];
  if (h->count <= 0) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute %s is needed for inputs of rank 3, and must be above 0",
                          attribute);
  }
  return clv__attention_head_size(infer, input, t->dims[2], h->count, &h->size);
}

static clv_status merge(clv__infer *infer, int64_t *dim, int64_t other, const char *what) {
  int64_t merged;
  if (!clv__dim_merge(*dim, other, &merged)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s must be equal, but are %lld and %lld", what, (long long)*dim,
                          (long long)other);
  }
  *dim = merged;
  return CLV_OK;
}

/* The dims of Q, K and V. A dim that one tensor does not state is taken from another that must have the same dim, for example
 * from the cache. */
typedef struct shape {
  heads q, k, v;
  int64_t total; /* keys, including those of the cache */
} shape;

static clv_status read_past(clv__infer *infer, uint32_t input, heads *own, int64_t *past) {
  const clv_tensor *t = &infer->inputs[input];
  CLV__TRY(clv__check_rank(infer, input, 4, 4));
  if (t->rank < 0) return CLV_OK;
  CLV__TRY(merge(infer, &own->batch, t->dims[0], "the batch sizes of K and past_key (or V and past_value)"));
  CLV__TRY(merge(infer, &own->count, t->dims[1], "the numbers of heads of K and past_key (or V and past_value)"));
  CLV__TRY(merge(infer, past, t->dims[2], "the lengths of past_key and past_value"));
  return merge(infer, &own->size, t->dims[3], "the head sizes of K and past_key (or V and past_value)");
}

static clv_status read_cache(clv__infer *infer, shape *s) {
  const bool key = clv__infer_has(infer, PAST_KEY), value = clv__infer_has(infer, PAST_VALUE);
  int64_t past = key ? CLV_DIM_UNKNOWN : 0;
  if (key != value) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "give both past_key and past_value, or neither");
  }
  if (key && clv__infer_has(infer, VALID)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "inputs nonpad_kv_seqlen and past_key cannot both be given");
  }
  if (key) {
    CLV__TRY(clv__check_same_dtype(infer, K, PAST_KEY));
    CLV__TRY(clv__check_same_dtype(infer, V, PAST_VALUE));
    CLV__TRY(read_past(infer, PAST_KEY, &s->k, &past));
    CLV__TRY(read_past(infer, PAST_VALUE, &s->v, &past));
  }
  if (past >= 0 && s->k.length >= 0 && past > INT64_MAX - s->k.length) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "past_key and K have more than 2^63 - 1 keys in total");
  }
  s->total = clv__dim_add(past, s->k.length);
  return CLV_OK;
}

static clv_status read_shape(clv__infer *infer, shape *s) {
  const clv_tensor *in = infer->inputs;
  for (uint32_t i = Q; i <= V; ++i) CLV__TRY(clv__check_rank(infer, i, 3, 4));
  if (in[Q].rank >= 0 && in[K].rank >= 0 && in[V].rank >= 0 && (in[Q].rank != in[K].rank || in[Q].rank != in[V].rank)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "Q, K and V have ranks %d, %d and %d, which must be equal",
                          (int)in[Q].rank, (int)in[K].rank, (int)in[V].rank);
  }
  CLV__TRY(clv__check_same_dtype(infer, Q, K));
  CLV__TRY(read_heads(infer, Q, "q_num_heads", &s->q));
  CLV__TRY(read_heads(infer, K, "kv_num_heads", &s->k));
  CLV__TRY(read_heads(infer, V, "kv_num_heads", &s->v));
  CLV__TRY(merge(infer, &s->k.length, s->v.length, "the lengths of K and V"));
  CLV__TRY(read_cache(infer, s));
  CLV__TRY(merge(infer, &s->q.batch, s->k.batch, "the batch sizes of Q and K"));
  CLV__TRY(merge(infer, &s->q.batch, s->v.batch, "the batch sizes of Q and V"));
  CLV__TRY(merge(infer, &s->k.count, s->v.count, "the numbers of heads of K and V"));
  CLV__TRY(merge(infer, &s->q.size, s->k.size, "the head sizes of Q and K"));
  if (s->q.count >= 0 && s->k.count >= 0 && s->q.count != s->k.count && (s->k.count == 0 || s->q.count % s->k.count != 0)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "Q has %lld heads, which is not a multiple of the %lld heads of K and V", (long long)s->q.count,
                          (long long)s->k.count);
  }
  return CLV_OK;
}

/* The mask broadcasts to batch, heads, queries and keys. From opset 24 on, its last dim is not broadcast but may be smaller
 * than the number of keys: no query attends to the keys beyond that dim, even if it is 1. */
static clv_status check_mask(clv__infer *infer, const shape *s) {
  clv_tensor target = clv__tensor_make(CLV_F32, 4, (const int64_t[]){s->q.batch, s->q.count, s->q.length, s->total}, NULL);
  if (!clv__infer_has(infer, MASK) || infer->inputs[MASK].rank == CLV_RANK_UNKNOWN) return CLV_OK;
  const clv_tensor *mask = &infer->inputs[MASK];
  CLV__TRY(clv__check_rank(infer, MASK, 1, 4));
  const int64_t keys = mask->dims[mask->rank - 1];
  if (infer->opset >= 24 && keys >= 0 && s->total >= 0 && keys <= s->total) target.dims[3] = keys;
  return clv__check_broadcasts_to(infer, MASK, &target);
}

static clv_status check_attributes(clv__infer *infer) {
  static const char *const windows[] = {"left_window_size", "right_window_size"};
  const int64_t mode = clv__attribute_int(infer->attributes, "qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute qk_matmul_output_mode is %lld; expected 0 to 3",
                          (long long)mode);
  }
  for (int i = 0; i < 2; ++i) {
    const int64_t size = clv__attribute_int(infer->attributes, windows[i], -1);
    if (size >= -1) continue;
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute %s is %lld; expected 0 or more, or -1 for no bound",
                          windows[i], (long long)size);
  }
  return CLV_OK;
}

static clv_status infer_attention(clv__infer *infer) {
  const clv_tensor *in = infer->inputs;
  shape s;
  CLV__TRY(check_attributes(infer));
  CLV__TRY(read_shape(infer, &s));
  CLV__TRY(check_mask(infer, &s));
  if (clv__infer_has(infer, VALID)) {
    CLV__TRY(clv__check_vector(infer, VALID, s.q.batch));
    if (in[VALID].dtype != CLV_I64) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "nonpad_kv_seqlen is %s; expected i64",
                            clv_dtype_name(in[VALID].dtype));
    }
  }
  if (in[Q].rank == 3) {
    int64_t columns;
    CLV__TRY(clv__infer_product(infer, (const int64_t[]){s.q.count, s.v.size}, 2, &columns));
    clv__infer_set(infer, 0, in[Q].dtype, 3, (const int64_t[]){s.q.batch, s.q.length, columns});
  } else if (in[Q].rank == 4) {
    clv__infer_set(infer, 0, in[Q].dtype, 4, (const int64_t[]){s.q.batch, s.q.count, s.q.length, s.v.size});
  } else {
    clv__infer_set(infer, 0, in[Q].dtype, CLV_RANK_UNKNOWN, NULL);
  }
  clv__infer_set(infer, 1, in[K].dtype, 4, (const int64_t[]){s.q.batch, s.k.count, s.total, s.k.size});
  clv__infer_set(infer, 2, in[V].dtype, 4, (const int64_t[]){s.q.batch, s.v.count, s.total, s.v.size});
  clv__infer_set(infer, 3, in[Q].dtype, 4, (const int64_t[]){s.q.batch, s.q.count, s.q.length, s.total});
  return CLV_OK;
}

/* The bodies score_mod and prob_mod of FlexAttention return the type that they receive, so they need not be inferred. */
static clv_status infer_flex(clv__infer *infer) {
  const clv_tensor *in = infer->inputs;
  shape s;
  if (infer->input_count < 3) return clv__error_set(infer->error, CLV_INVALID_MODEL, "inputs Q, K and V are needed");
  const int64_t precision = clv__attribute_int(infer->attributes, "softmax_precision", CLV_F32);
  if (precision != CLV_F32 && precision != CLV_F64 && precision != CLV_F16 && precision != CLV_BF16) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "attribute softmax_precision is %lld; expected 1 (f32), 10 (f16), 11 (f64) or 16 (bf16)",
                          (long long)precision);
  }
  for (uint32_t i = Q; i <= V; ++i) {
    if (!clv__infer_has(infer, i)) return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u is missing", (unsigned)i);
    CLV__TRY(clv__check_rank(infer, i, 4, 4));
    CLV__TRY(clv__check_same_dtype(infer, Q, i));
  }
  if (in[Q].dtype != CLV_DTYPE_NONE && (CLV__DTYPES_FLOAT >> in[Q].dtype & 1u) == 0) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "Q, K and V are %s; expected a float dtype",
                          clv_dtype_name(in[Q].dtype));
  }
  CLV__TRY(read_shape(infer, &s));
  clv__infer_set(infer, 0, in[Q].dtype, 4, (const int64_t[]){s.q.batch, s.q.count, s.q.length, s.v.size});
  return CLV_OK;
}

/* Counts both matrix products, and about ten operations per score for the softmax between them. Masked scores are counted too. */
static void work_attention(const clv__infer *infer, clv__work *work) {
  shape s;
  clv__infer quiet = *infer;
  clv_error error;
  quiet.error = &error;
  if (read_shape(&quiet, &s) != CLV_OK) return;
  const int64_t dims[] = {s.q.batch, s.q.count, s.q.length, s.total, s.q.size, s.v.size};
  for (int i = 0; i < 6; ++i) {
    if (dims[i] < 0) return;
  }
  const double scores = (double)dims[0] * (double)dims[1] * (double)dims[2] * (double)dims[3];
  work->flops = scores * (2.0 * (double)dims[4] + 2.0 * (double)dims[5] + 10.0);
}

const clv__op clv__ops_attention[] = {
    {"", "Attention", 3, 7, 1, 4, 0, infer_attention, work_attention, NULL},
    {"ai.onnx.preview", "FlexAttention", 3, 3, 1, 1, CLV__OP_HAS_BODY, infer_flex, work_attention, NULL},
    {"", "RotaryEmbedding", 3, 4, 1, 1, 0, clv__infer_rotary, clv__work_rotary, NULL},
    {"", "LinearAttention", 3, 6, 2, 2, 0, clv__infer_linear_attention, clv__work_linear_attention, NULL},
    {.name = NULL},
};
