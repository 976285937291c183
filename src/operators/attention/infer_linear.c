/* LinearAttention: each head has one state, a matrix that every token decays, adds to and reads. */
#include "operators/attention/infer.h"
#include "operators/common/checks.h"
#include "operators/common/dims.h"

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
                          "attribute q_num_heads, %lld, must be a multiple of kv_num_heads, %lld, and both must be above 0",
                          (long long)l->q_heads, (long long)l->kv_heads);
  }
  for (uint32_t i = 0; i < 3; ++i) {
    CLV__TRY(clv__check_rank(infer, i, 3, 3));
    CLV__TRY(clv__check_same_dtype(infer, 0, i));
    const clv_tensor *t = &infer->inputs[i];
    if (t->rank != 3) continue;
    CLV__TRY(clv__check_same_dim(infer, l->batch, t->dims[0], "the batch sizes of query, key and value"));
    CLV__TRY(clv__check_same_dim(infer, l->length, t->dims[1], "the lengths of query, key and value"));
    clv__dim_merge(l->batch, t->dims[0], &l->batch);
    clv__dim_merge(l->length, t->dims[1], &l->length);
  }
  if (q->rank == 3) CLV__TRY(clv__attention_head_size(infer, 0, q->dims[2], l->q_heads, &l->key_size));
  if (k->rank == 3) CLV__TRY(clv__attention_head_size(infer, 1, k->dims[2], l->kv_heads, &key_size));
  if (v->rank == 3) CLV__TRY(clv__attention_head_size(infer, 2, v->dims[2], l->kv_heads, &l->value_size));
  CLV__TRY(clv__check_same_dim(infer, l->key_size, key_size, "the head sizes of query and key"));
  clv__dim_merge(l->key_size, key_size, &l->key_size);
  return CLV_OK;
}

/* Checks input decay (4) or beta (5). It must be present exactly if update_rule needs it, and have `a` or `b` columns. */
static clv_status check_gate(clv__infer *infer, const linear *l, uint32_t input, const char *name, bool needed, int64_t a,
                             int64_t b) {
  if (clv__infer_has(infer, input) != needed) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL, "the node's update_rule %s input %s",
                          needed ? "needs" : "does not use", name);
  }
  if (!needed) return CLV_OK;
  const clv_tensor *t = &infer->inputs[input];
  CLV__TRY(clv__check_same_dtype(infer, 0, input));
  CLV__TRY(clv__check_rank(infer, input, 3, 3));
  if (t->rank != 3) return CLV_OK;
  CLV__TRY(clv__check_same_dim(infer, l->batch, t->dims[0], "the batch sizes of query and decay (or beta)"));
  CLV__TRY(clv__check_same_dim(infer, l->length, t->dims[1], "the lengths of query and decay (or beta)"));
  if (t->dims[2] < 0 || t->dims[2] == a || b < 0 || t->dims[2] == b) return CLV_OK;
  return clv__error_set(infer->error, CLV_INVALID_MODEL, "%s has %lld columns; expected %lld or %lld", name,
                        (long long)t->dims[2], (long long)a, (long long)b);
}

clv_status clv__infer_linear_attention(clv__infer *infer) {
  linear l;
  int64_t columns, keys;
  CLV__TRY(read_linear(infer, &l));
  const clv__attributes attributes = infer->attributes;
  const bool plain = clv__attribute_is(attributes, "update_rule", "linear", false);
  const bool gated = clv__attribute_is(attributes, "update_rule", "gated", false);
  const bool delta = clv__attribute_is(attributes, "update_rule", "delta", false);
  const bool both = clv__attribute_is(attributes, "update_rule", "gated_delta", true);
  if (!plain && !gated && !delta && !both) {
    return clv__error_set(infer->error, CLV_INVALID_MODEL,
                          "attribute update_rule is not one of linear, gated, delta, gated_delta");
  }
  CLV__TRY(clv__infer_product(infer, (const int64_t[]){l.kv_heads, l.key_size}, 2, &keys));
  CLV__TRY(check_gate(infer, &l, 4, "decay", gated || both, l.kv_heads, keys));
  CLV__TRY(check_gate(infer, &l, 5, "beta", delta || both, l.kv_heads, 1));
  const int64_t state[] = {l.batch, l.kv_heads, l.key_size, l.value_size};
  const bool has_past = clv__infer_has(infer, 3);
  if (has_past) {
    const clv_tensor *past = &infer->inputs[3];
    CLV__TRY(clv__check_rank(infer, 3, 4, 4));
    for (int i = 0; past->rank == 4 && i < 4; ++i)
      CLV__TRY(clv__check_same_dim(infer, state[i], past->dims[i], "the expected and the actual size of an axis of past_state"));
  }
  CLV__TRY(clv__infer_product(infer, (const int64_t[]){l.q_heads, l.value_size}, 2, &columns));
  clv__infer_set(infer, 0, infer->inputs[0].dtype, 3, (const int64_t[]){l.batch, l.length, columns});
  clv__infer_set(infer, 1, has_past ? infer->inputs[3].dtype : infer->inputs[0].dtype, 4, state);
  return CLV_OK;
}

/* Counts, for each token, the decay, the read and the update of the state of each head of K and V, and one read of a state by
 * each head of Q. */
void clv__work_linear_attention(const clv__infer *infer, clv__work *work) {
  linear l;
  clv__infer quiet = *infer;
  clv_error error;
  quiet.error = &error;
  if (read_linear(&quiet, &l) != CLV_OK || l.batch < 0 || l.length < 0 || l.key_size < 0 || l.value_size < 0) return;
  const double states = (double)l.batch * (double)l.length * (double)l.key_size * (double)l.value_size;
  work->flops = states * (5.0 * (double)l.kv_heads + 2.0 * (double)l.q_heads);
}
