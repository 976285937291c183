/* LinearAttention. Each head has a state matrix [key_size, value_size]. For each token, the state decays, the outer product of
 * the token's key and value is added (with the delta rule, that of the key and a corrected value), and the token's queries are
 * multiplied by the state. The columns of the state are independent of each other, so each task computes some of them. */
#include <math.h>

#include "backends/common/kernels/families.h"
#include "operators/common/rows.h"
#include "operators/common/threads.h"
#include "operators/run.h"

enum { COLUMNS = 64 };

typedef struct linear {
  const clv_tensor *query, *key, *value, *past, *decay, *beta, *output, *present; /* NULL: absent */
  int64_t batch, length, q_heads, kv_heads, group, key_size, value_size;
  int64_t decay_columns, beta_columns; /* decays per head: 1 or key_size; betas per token: kv_heads or 1 */
  int64_t blocks;                      /* blocks of columns per head */
  float scale;
} linear;

static const clv_tensor *present_of(const clv_tensor *tensors, uint32_t count, uint32_t index) {
  return index < count && tensors[index].dtype != CLV_DTYPE_NONE ? &tensors[index] : NULL;
}

static linear linear_of(const clv__kernel_call *call) {
  const clv_tensor *in = call->inputs;
  linear l = {.query = &in[0], .key = &in[1], .value = &in[2], .batch = in[0].dims[0], .length = in[0].dims[1]};
  l.past = present_of(in, call->input_count, 3);
  l.decay = present_of(in, call->input_count, 4);
  l.beta = present_of(in, call->input_count, 5);
  l.output = present_of(call->outputs, call->output_count, 0);
  l.present = present_of(call->outputs, call->output_count, 1);
  l.q_heads = clv__attribute_int(call->attributes, "q_num_heads", 1);
  l.kv_heads = clv__attribute_int(call->attributes, "kv_num_heads", 1);
  l.group = l.q_heads / l.kv_heads;
  l.key_size = in[0].dims[2] / l.q_heads;
  l.value_size = in[2].dims[2] / l.kv_heads;
  if (l.decay != NULL) l.decay_columns = l.decay->dims[2] == l.kv_heads ? 1 : l.key_size;
  if (l.beta != NULL) l.beta_columns = l.beta->dims[2];
  l.blocks = (l.value_size + COLUMNS - 1) / COLUMNS;
  l.scale = clv__attribute_float(call->attributes, "scale", 0);
  if (l.scale == 0) l.scale = 1 / sqrtf((float)l.key_size);
  return l;
}

static void row_of(const clv_tensor *t, int64_t first, int64_t count, float *row) {
  clv__row_to_f32(t->dtype, t->data, first, count, row);
}

/* Updates COLUMNS columns of a head's state for one token. `state` is [key_size, COLUMNS]. */
static void write_state(float *state, int64_t key_size, const float *key, const float *decay, bool corrects, float beta,
                        const float *value) {
  float change[COLUMNS], seen[COLUMNS] = {0};
  for (int64_t d = 0; d < key_size; ++d) {
    float *row = state + d * COLUMNS;
    const float factor = decay[d], weight = key[d];
    for (int i = 0; i < COLUMNS; ++i) row[i] *= factor;
    for (int i = 0; i < COLUMNS; ++i) seen[i] += row[i] * weight;
  }
  for (int i = 0; i < COLUMNS; ++i) change[i] = corrects ? beta * (value[i] - seen[i]) : value[i];
  for (int64_t d = 0; d < key_size; ++d) {
    float *row = state + d * COLUMNS;
    for (int i = 0; i < COLUMNS; ++i) row[i] += key[d] * change[i];
  }
}

static void read_state(const float *state, int64_t key_size, const float *query, float scale, float *out) {
  float sum[COLUMNS] = {0};
  for (int64_t d = 0; d < key_size; ++d) {
    for (int i = 0; i < COLUMNS; ++i) sum[i] += query[d] * state[d * COLUMNS + i];
  }
  for (int i = 0; i < COLUMNS; ++i) out[i] = scale * sum[i];
}

static void run_token(const linear *l, int64_t token, int64_t head, int64_t column, int64_t width, float *state, float *lines) {
  float *key = lines, *query = key + l->key_size, *decay = query + l->key_size, value[COLUMNS] = {0}, out[COLUMNS], beta = 1;
  row_of(l->key, (token * l->kv_heads + head) * l->key_size, l->key_size, key);
  row_of(l->value, (token * l->kv_heads + head) * l->value_size + column, width, value);
  if (l->decay != NULL) {
    row_of(l->decay, (token * l->kv_heads + head) * l->decay_columns, l->decay_columns, decay);
    for (int64_t d = 0; d < l->decay_columns; ++d) decay[d] = expf(decay[d]);
  }
  for (int64_t d = l->decay != NULL ? l->decay_columns : 0; d < l->key_size; ++d) decay[d] = l->decay != NULL ? decay[0] : 1;
  if (l->beta != NULL) row_of(l->beta, token * l->beta_columns + (l->beta_columns > 1 ? head : 0), 1, &beta);
  write_state(state, l->key_size, key, decay, l->beta != NULL, beta, value);
  for (int64_t g = 0; l->output != NULL && g < l->group; ++g) {
    const int64_t row = token * l->q_heads + head * l->group + g;
    row_of(l->query, row * l->key_size, l->key_size, query);
    read_state(state, l->key_size, query, l->scale, out);
    clv__row_from_f32(l->output->dtype, l->output->data, row * l->value_size + column, width, out);
  }
}

static size_t slice_bytes(const linear *l) {
  size_t bytes;
  if (__builtin_mul_overflow((size_t)l->key_size + 1, (COLUMNS + 4) * sizeof(float), &bytes) || bytes > SIZE_MAX / 64)
    return SIZE_MAX;
  return (bytes + 63) / 64 * 64;
}

/* Whether there are no values, so that there is nothing to do. */
static bool is_empty(const linear *l) {
  return l->batch == 0 || l->value_size == 0;
}

static clv_status run_linear(const clv__kernel_call *call) {
  const linear l = linear_of(call);
  if (is_empty(&l)) return CLV_OK;
  const int64_t tasks = l.batch * l.kv_heads * l.blocks;
  const size_t slice = slice_bytes(&l);
  const double states = (double)tasks * (double)l.key_size * COLUMNS;
  const int threads = clv__kernel_threads(tasks, states * (double)(l.length + 1) * (double)(l.group + 3) / 8);
  (void)threads; /* unused without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t task = 0; task < tasks; ++task) {
    if (clv__is_stopped(call->stop)) continue;
    float *state = (float *)((char *)call->scratch + (size_t)clv__kernel_thread_index() * slice);
    float *lines = state + l.key_size * COLUMNS;
    const int64_t pair = task / l.blocks, column = task % l.blocks * COLUMNS; /* `pair` numbers the (batch, head) pairs */
    const int64_t batch = pair / l.kv_heads, head = pair % l.kv_heads;
    const int64_t width = l.value_size - column < COLUMNS ? l.value_size - column : COLUMNS;
    for (int64_t i = 0; i < l.key_size * COLUMNS; ++i) state[i] = 0;
    for (int64_t d = 0; l.past != NULL && d < l.key_size; ++d) {
      row_of(l.past, (pair * l.key_size + d) * l.value_size + column, width, state + d * COLUMNS);
    }
    for (int64_t t = 0; t < l.length; ++t) run_token(&l, batch * l.length + t, head, column, width, state, lines);
    for (int64_t d = 0; l.present != NULL && d < l.key_size; ++d) {
      clv__row_from_f32(l.present->dtype, l.present->data, (pair * l.key_size + d) * l.value_size + column, width,
                        state + d * COLUMNS);
    }
  }
  return CLV_OK;
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  const linear l = linear_of(call);
  if (is_empty(&l)) return 0;
  const size_t slice = slice_bytes(&l), limit = (size_t)clv__kernel_thread_limit(l.batch * l.kv_heads * l.blocks);
  return slice == SIZE_MAX ? SIZE_MAX : slice * limit;
}

const clv__fast_kernel clv__fast_linear_attention[] = {
    {"", "LinearAttention", run_linear, scratch_bytes},
    {.op = NULL},
};
