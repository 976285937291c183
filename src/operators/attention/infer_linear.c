/* What decoders are made of besides Attention: RotaryEmbedding, LinearAttention, CausalConvWithState, TensorScatter (a cache
 * written in place of a longer one), SwiGLU. */
#include "operators/common/checks.h"
#include "operators/common/dims.h"
#include "operators/families.h"

static clv_status same_dim(clv__infer *infer, int64_t a, int64_t b, const char *what) {
  int64_t unused;
  if (clv__dim_merge(a, b, &unused)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s: %lld and %lld should be the same", what, (long long)a,
                        (long long)b);
}

/* `dim` split among `heads`; an error where it does not divide. */
static clv_status head_size(clv__infer *infer, uint32_t input, int64_t dim, int64_t heads, int64_t *size) {
  if (clv__dims_quotient(&dim, 1, &heads, 1, size)) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "input %u: %lld columns are no multiple of %lld heads", (unsigned)input,
                        (long long)dim, (long long)heads);
}

/* ---- RotaryEmbedding ---- */

static clv_status check_angles(clv__infer *infer, uint32_t input, int64_t batch, int64_t length, int64_t half) {
  const bool by_position = clv__infer_has(infer, 3);
  const clv_tensor *t = &infer->inputs[input];
  CLV__TRY(clv__check_same_dtype(infer, 0, input));
  CLV__TRY(clv__check_rank(infer, input, by_position ? 2 : 3, by_position ? 2 : 3));
  if (t->rank < 0) return CLV_OK;
  if (!by_position) {
    CLV__TRY(same_dim(infer, batch, t->dims[0], "batches of X and the angles"));
    CLV__TRY(same_dim(infer, length, t->dims[1], "lengths of X and the angles"));
  }
  return same_dim(infer, half, t->dims[t->rank - 1], "half of what is rotated, and angles");
}

static clv_status infer_rotary(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0];
  int64_t batch = CLV_DIM_UNKNOWN, length = CLV_DIM_UNKNOWN, size = CLV_DIM_UNKNOWN;
  CLV__TRY(clv__check_rank(infer, 0, 3, 4));
  if (x->rank == 4) {
    batch = x->dims[0], length = x->dims[2], size = x->dims[3];
  } else if (x->rank == 3) {
    const int64_t heads = clv__attribute_int(infer->attributes, "num_heads", 0);
    if (heads <= 0) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute num_heads is needed for an input of rank 3, and above 0");
    }
    batch = x->dims[0], length = x->dims[1];
    CLV__TRY(head_size(infer, 0, x->dims[2], heads, &size));
  }
  const int64_t rotated = clv__attribute_int(infer->attributes, "rotary_embedding_dim", 0);
  const int64_t count = rotated != 0 ? rotated : size;
  if (rotated < 0 || (count >= 0 && count % 2 != 0) || (size >= 0 && count > size)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "%lld of %lld columns of a head cannot be rotated in pairs",
                          (long long)count, (long long)size);
  }
  for (uint32_t i = 1; i <= 2; ++i) CLV__TRY(check_angles(infer, i, batch, length, count >= 0 ? count / 2 : CLV_DIM_UNKNOWN));
  if (infer->inputs[1].rank > 0 && infer->inputs[2].rank > 0) {
    CLV__TRY(same_dim(infer, infer->inputs[1].dims[0], infer->inputs[2].dims[0], "rows of cos_cache and sin_cache"));
  }
  if (clv__infer_has(infer, 3)) {
    const clv_tensor *positions = &infer->inputs[3];
    CLV__TRY(clv__check_rank(infer, 3, 2, 2));
    if (positions->rank == 2) {
      CLV__TRY(same_dim(infer, batch, positions->dims[0], "batches of X and position_ids"));
      CLV__TRY(same_dim(infer, length, positions->dims[1], "lengths of X and position_ids"));
    }
    if (positions->dtype != CLV_I64) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "position_ids are %s, not i64", clv_dtype_name(positions->dtype));
    }
  }
  return clv__infer_same(infer);
}

static void work_rotary(const clv__infer *infer, clv__work *work) {
  work->flops = 3 * clv__known_count(&infer->inputs[0]);
}

/* ---- LinearAttention ---- */

typedef struct linear {
  int64_t q_heads, kv_heads, batch, length, key_size, value_size;
} linear;

static clv_status read_linear(clv__infer *infer, linear *l) {
  const clv_tensor *q = &infer->inputs[0], *k = &infer->inputs[1], *v = &infer->inputs[2];
  int64_t key_size = CLV_DIM_UNKNOWN;
  *l = (linear){.batch = CLV_DIM_UNKNOWN, .length = CLV_DIM_UNKNOWN, .key_size = CLV_DIM_UNKNOWN, .value_size = CLV_DIM_UNKNOWN};
  l->q_heads = clv__attribute_int(infer->attributes, "q_num_heads", 0);
  l->kv_heads = clv__attribute_int(infer->attributes, "kv_num_heads", 0);
  if (l->q_heads <= 0 || l->kv_heads <= 0 || l->q_heads % l->kv_heads != 0) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "attribute q_num_heads, %lld, should be a multiple of kv_num_heads, %lld, both above 0",
                          (long long)l->q_heads, (long long)l->kv_heads);
  }
  for (uint32_t i = 0; i < 3; ++i) {
    CLV__TRY(clv__check_rank(infer, i, 3, 3));
    CLV__TRY(clv__check_same_dtype(infer, 0, i));
    const clv_tensor *t = &infer->inputs[i];
    if (t->rank != 3) continue;
    CLV__TRY(same_dim(infer, l->batch, t->dims[0], "batches of query, key and value"));
    CLV__TRY(same_dim(infer, l->length, t->dims[1], "lengths of query, key and value"));
    clv__dim_merge(l->batch, t->dims[0], &l->batch);
    clv__dim_merge(l->length, t->dims[1], &l->length);
  }
  if (q->rank == 3) CLV__TRY(head_size(infer, 0, q->dims[2], l->q_heads, &l->key_size));
  if (k->rank == 3) CLV__TRY(head_size(infer, 1, k->dims[2], l->kv_heads, &key_size));
  if (v->rank == 3) CLV__TRY(head_size(infer, 2, v->dims[2], l->kv_heads, &l->value_size));
  CLV__TRY(same_dim(infer, l->key_size, key_size, "sizes of a head of query and key"));
  clv__dim_merge(l->key_size, key_size, &l->key_size);
  return CLV_OK;
}

/* decay (4) or beta (5): there exactly where the rule needs it; `a` or `b` columns. */
static clv_status check_gate(clv__infer *infer, const linear *l, uint32_t input, const char *name, bool needed, int64_t a,
                             int64_t b) {
  if (clv__infer_has(infer, input) != needed) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "this update_rule %s input %s", needed ? "needs" : "takes no", name);
  }
  if (!needed) return CLV_OK;
  const clv_tensor *t = &infer->inputs[input];
  CLV__TRY(clv__check_same_dtype(infer, 0, input));
  CLV__TRY(clv__check_rank(infer, input, 3, 3));
  if (t->rank != 3) return CLV_OK;
  CLV__TRY(same_dim(infer, l->batch, t->dims[0], "batches of query and gates"));
  CLV__TRY(same_dim(infer, l->length, t->dims[1], "lengths of query and gates"));
  if (t->dims[2] < 0 || t->dims[2] == a || b < 0 || t->dims[2] == b) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s has %lld columns, not %lld or %lld", name, (long long)t->dims[2],
                        (long long)a, (long long)b);
}

static clv_status infer_linear(clv__infer *infer) {
  linear l;
  int64_t columns, keys;
  CLV__TRY(read_linear(infer, &l));
  const clv__attributes attributes = infer->attributes;
  const bool plain = clv__attribute_is(attributes, "update_rule", "linear", false);
  const bool gated = clv__attribute_is(attributes, "update_rule", "gated", false);
  const bool delta = clv__attribute_is(attributes, "update_rule", "delta", false);
  const bool both = clv__attribute_is(attributes, "update_rule", "gated_delta", true);
  if (!plain && !gated && !delta && !both) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute update_rule is none of linear, gated, delta, gated_delta");
  }
  CLV__TRY(clv__infer_product(infer, (const int64_t[]){l.kv_heads, l.key_size}, 2, &keys));
  CLV__TRY(check_gate(infer, &l, 4, "decay", gated || both, l.kv_heads, keys));
  CLV__TRY(check_gate(infer, &l, 5, "beta", delta || both, l.kv_heads, 1));
  const int64_t state[] = {l.batch, l.kv_heads, l.key_size, l.value_size};
  const bool has_past = clv__infer_has(infer, 3);
  if (has_past) {
    const clv_tensor *past = &infer->inputs[3];
    CLV__TRY(clv__check_rank(infer, 3, 4, 4));
    for (int i = 0; past->rank == 4 && i < 4; ++i) CLV__TRY(same_dim(infer, state[i], past->dims[i], "dims of past_state"));
  }
  CLV__TRY(clv__infer_product(infer, (const int64_t[]){l.q_heads, l.value_size}, 2, &columns));
  clv__infer_set(infer, 0, infer->inputs[0].dtype, 3, (const int64_t[]){l.batch, l.length, columns});
  clv__infer_set(infer, 1, has_past ? infer->inputs[3].dtype : infer->inputs[0].dtype, 4, state);
  return CLV_OK;
}

/* For every token the state is decayed, read, written, and read by each query. */
static void work_linear(const clv__infer *infer, clv__work *work) {
  linear l;
  clv__infer quiet = *infer;
  clv_error error;
  quiet.error = &error;
  if (read_linear(&quiet, &l) != CLV_OK || l.batch < 0 || l.length < 0 || l.key_size < 0 || l.value_size < 0) return;
  const double states = (double)l.batch * (double)l.length * (double)l.key_size * (double)l.value_size;
  work->flops = states * (5.0 * (double)l.kv_heads + 2.0 * (double)l.q_heads);
}

/* ---- CausalConvWithState ---- */

static clv_status infer_convolution(clv__infer *infer) {
  const clv_tensor *x = &infer->inputs[0], *w = &infer->inputs[1];
  const clv__attributes attributes = infer->attributes;
  int64_t batch = CLV_DIM_UNKNOWN, channels = CLV_DIM_UNKNOWN, kept = CLV_DIM_UNKNOWN;
  if (!clv__attribute_is(attributes, "activation", "none", true) && !clv__attribute_is(attributes, "activation", "silu", false) &&
      !clv__attribute_is(attributes, "activation", "swish", false)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute activation is none of none, silu, swish");
  }
  for (uint32_t i = 1; i < 4; ++i) CLV__TRY(clv__check_same_dtype(infer, 0, i));
  CLV__TRY(clv__check_rank(infer, 0, 3, 3));
  CLV__TRY(clv__check_rank(infer, 1, 3, 3));
  if (x->rank == 3) batch = x->dims[0], channels = x->dims[1];
  if (w->rank == 3) {
    CLV__TRY(same_dim(infer, channels, w->dims[0], "channels of input and weight"));
    CLV__TRY(same_dim(infer, 1, w->dims[1], "channels a group"));
    if (w->dims[2] == 0) return clv__error_set(infer->error, CLV_INVALID_MODEL, "the weight has no taps");
    clv__dim_merge(channels, w->dims[0], &channels);
    if (w->dims[2] > 0) kept = w->dims[2] - 1;
  }
  CLV__TRY(clv__check_vector(infer, 2, channels));
  if (clv__infer_has(infer, 3)) {
    const clv_tensor *past = &infer->inputs[3];
    CLV__TRY(clv__check_rank(infer, 3, 3, 3));
    const int64_t wanted[] = {batch, channels, kept};
    for (int i = 0; past->rank == 3 && i < 3; ++i) CLV__TRY(same_dim(infer, wanted[i], past->dims[i], "dims of past_state"));
    if (past->rank == 3) clv__dim_merge(kept, past->dims[2], &kept);
  }
  clv__infer_set(infer, 1, x->dtype, 3, (const int64_t[]){batch, channels, kept});
  return clv__infer_same(infer);
}

static void work_convolution(const clv__infer *infer, clv__work *work) {
  const clv_tensor *w = &infer->inputs[1];
  if (w->rank == 3 && w->dims[2] >= 0) work->flops = 2 * (double)w->dims[2] * clv__known_count(&infer->inputs[0]);
}

/* ---- TensorScatter ---- */

static clv_status infer_scatter(clv__infer *infer) {
  const clv_tensor *cache = &infer->inputs[0], *update = &infer->inputs[1];
  int32_t axis;
  if (!clv__attribute_is(infer->attributes, "mode", "linear", true) &&
      !clv__attribute_is(infer->attributes, "mode", "circular", false)) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute mode is neither linear nor circular");
  }
  CLV__TRY(clv__check_same_dtype(infer, 0, 1));
  if (clv__infer_has(infer, 2) && infer->inputs[2].dtype != CLV_I64) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "write_indices are %s, not i64",
                          clv_dtype_name(infer->inputs[2].dtype));
  }
  if (cache->rank < 0) return clv__infer_same(infer);
  CLV__TRY(clv__infer_axis(infer, clv__attribute_int(infer->attributes, "axis", -2), cache->rank, &axis));
  if (axis == 0) return clv__error_set(infer->error, CLV_INVALID_MODEL, "attribute axis names the batch, axis 0");
  CLV__TRY(clv__check_rank(infer, 1, cache->rank, cache->rank));
  CLV__TRY(clv__check_vector(infer, 2, cache->dims[0]));
  for (int32_t i = 0; update->rank >= 0 && i < cache->rank; ++i) {
    if (i != axis) {
      CLV__TRY(same_dim(infer, cache->dims[i], update->dims[i], "dims of past_cache and update"));
    } else if (cache->dims[i] >= 0 && update->dims[i] > cache->dims[i]) {
      return clv__error_set(infer->error, CLV_INVALID_MODEL, "update has %lld entries along axis %d, past_cache room for %lld",
                            (long long)update->dims[i], (int)axis, (long long)cache->dims[i]);
    }
  }
  return clv__infer_same(infer);
}

/* ---- SwiGLU ---- */

static clv_status infer_swiglu(clv__infer *infer) {
  const clv_tensor *a = &infer->inputs[0], *b = &infer->inputs[1];
  clv_tensor merged = *a;
  CLV__TRY(clv__check_same_dtype(infer, 0, 1));
  if (a->rank >= 0 && b->rank >= 0) {
    CLV__TRY(clv__check_rank(infer, 1, a->rank, a->rank));
    for (int32_t i = 0; i < a->rank; ++i) {
      CLV__TRY(same_dim(infer, a->dims[i], b->dims[i], "dims of A and B, which do not broadcast"));
      clv__dim_merge(a->dims[i], b->dims[i], &merged.dims[i]);
    }
  } else if (a->rank < 0) {
    merged = *b;
  }
  clv__infer_set(infer, 0, a->dtype, merged.rank, merged.dims);
  return CLV_OK;
}

static void work_swiglu(const clv__infer *infer, clv__work *work) {
  work->flops = 15 * clv__known_count(&infer->inputs[0]);
}

const clv__op clv__ops_decode[] = {
    {"", "RotaryEmbedding", 3, 4, 1, 1, 0, infer_rotary, work_rotary},
    {"", "LinearAttention", 3, 6, 2, 2, 0, infer_linear, work_linear},
    {"", "CausalConvWithState", 2, 4, 2, 2, 0, infer_convolution, work_convolution},
    {"", "TensorScatter", 2, 3, 1, 1, 0, infer_scatter, clv__work_none},
    {"", "SwiGLU", 2, 2, 1, 1, CLV__OP_ELEMENTWISE, infer_swiglu, work_swiglu},
    {.name = NULL},
};
