/* LinearAttention: each head of K and V has a state, a matrix of [key_size, value_size]. Every token decays the state and adds
 * key x value to it; then the token's queries are multiplied by it. */
#include "operators/attention/run.h"

#include <math.h>
#include <stdio.h>

#include "operators/common/element.h"
#include "operators/run.h"

typedef struct linear {
  const clv_tensor *query, *key, *value, *past, *decay, *beta, *output, *present; /* NULL: absent */
  int64_t batch, length, q_heads, kv_heads, key_size, value_size;
  double scale;
} linear;

static linear linear_of(const clv__kernel_call *call) {
  const clv_tensor *in = call->inputs;
  linear l = {.query = &in[0], .key = &in[1], .value = &in[2], .batch = in[0].dims[0], .length = in[0].dims[1]};
  l.past = clv__call_input(call, 3);
  l.decay = clv__call_input(call, 4);
  l.beta = clv__call_input(call, 5);
  l.output = clv__call_output(call, 0);
  l.present = clv__call_output(call, 1);
  l.q_heads = clv__attribute_int(call->attributes, "q_num_heads", 1);
  l.kv_heads = clv__attribute_int(call->attributes, "kv_num_heads", 1);
  l.key_size = in[0].dims[2] / l.q_heads;
  l.value_size = in[2].dims[2] / l.kv_heads;
  const float scale = clv__attribute_float(call->attributes, "scale", 0);
  l.scale = scale != 0 ? (double)scale : 1 / sqrt((double)l.key_size);
  return l;
}

/* The factor by which row `d` of the state decays: one per head, or one per key element of the head. */
static double decay_of(const linear *l, int64_t token, int64_t head, int64_t d) {
  if (l->decay == NULL) return 1;
  const bool of_head = l->decay->dims[2] == l->kv_heads;
  const int64_t at = token * l->kv_heads + head;
  return exp(clv__element_load(l->decay, of_head ? at : at * l->key_size + d));
}

/* Decays the state by one token, and then adds the product of the token's key and value to it. With beta, (value - state's
 * value for that key) * beta takes the place of the value (the delta rule). */
static void write_token(const linear *l, int64_t token, int64_t head, double *state) {
  const int64_t key = (token * l->kv_heads + head) * l->key_size, value = (token * l->kv_heads + head) * l->value_size;
  const int64_t betas = l->beta != NULL ? l->beta->dims[2] : 0;
  for (int64_t d = 0; d < l->key_size; ++d) {
    const double keeps = decay_of(l, token, head, d);
    for (int64_t i = 0; i < l->value_size; ++i) state[d * l->value_size + i] *= keeps;
  }
  for (int64_t i = 0; i < l->value_size; ++i) {
    double change = clv__element_load(l->value, value + i);
    if (l->beta != NULL) {
      for (int64_t d = 0; d < l->key_size; ++d) change -= state[d * l->value_size + i] * clv__element_load(l->key, key + d);
      change *= clv__element_load(l->beta, token * betas + (betas > 1 ? head : 0));
    }
    for (int64_t d = 0; d < l->key_size; ++d) state[d * l->value_size + i] += clv__element_load(l->key, key + d) * change;
  }
}

static void read_token(const linear *l, int64_t token, int64_t q_head, const double *state) {
  const int64_t query = (token * l->q_heads + q_head) * l->key_size, output = (token * l->q_heads + q_head) * l->value_size;
  for (int64_t i = 0; i < l->value_size; ++i) {
    double sum = 0;
    for (int64_t d = 0; d < l->key_size; ++d) sum += clv__element_load(l->query, query + d) * state[d * l->value_size + i];
    clv__element_store(l->output, output + i, l->scale * sum);
  }
}

clv_status clv__kernel_linear_attention(const clv__kernel_call *call) {
  const linear l = linear_of(call);
  const int64_t group = l.q_heads / l.kv_heads, elements = l.key_size * l.value_size;
  double *state = call->scratch;
  if (l.batch == 0 || l.value_size == 0) return CLV_OK;
  for (int64_t pair = 0; pair < l.batch * l.kv_heads; ++pair) {
    const int64_t batch = pair / l.kv_heads, head = pair % l.kv_heads;
    for (int64_t i = 0; i < elements; ++i) state[i] = l.past != NULL ? clv__element_load(l.past, pair * elements + i) : 0;
    for (int64_t t = 0; t < l.length; ++t) {
      const int64_t token = batch * l.length + t;
      write_token(&l, token, head, state);
      for (int64_t g = 0; l.output != NULL && g < group; ++g) read_token(&l, token, head * group + g, state);
    }
    for (int64_t i = 0; l.present != NULL && i < elements; ++i) clv__element_store(l.present, pair * elements + i, state[i]);
  }
  return CLV_OK;
}

size_t clv__kernel_linear_attention_scratch_bytes(const clv__kernel_call *call) {
  const linear l = linear_of(call);
  size_t bytes;
  if (l.batch == 0 || l.value_size == 0) return 0;
  if (__builtin_mul_overflow((size_t)l.key_size, (size_t)l.value_size, &bytes)) return SIZE_MAX;
  return __builtin_mul_overflow(bytes, sizeof(double), &bytes) || bytes > SIZE_MAX / 2 ? SIZE_MAX : bytes;
}

/* Checks the dtype of past_state, which may differ from that of the other inputs. */
bool clv__kernel_linear_attention_accepts(const clv__kernel_call *call, char reason[160]) {
  const clv_tensor *past = clv__call_input(call, 3);
  if (past == NULL || ((CLV__DTYPES_FLOAT & ~CLV__DTYPE_BIT(CLV_F64)) >> past->dtype & 1u) != 0) return true;
  snprintf(reason, 160, "past_state of dtype %s is not supported", clv_dtype_name(past->dtype));
  return false;
}
