/* Attention: f32 (f64 of f64), whatever the tensors are stored as. No array of queries times keys is made but the scores of a few
 * rows. Keys that a query may not look at are never read for it: what lies in the unused end of a cache does not matter. */
#include "kernels/attention.h"

#include <math.h>
#include <stdio.h>

#include "base/memory.h"
#include "kernels/gemm.h"
#include "kernels/multiversion.h"
#include "kernels/rows.h"
#include "kernels/threads.h"

enum {
  FEW = 4,         /* rows that share a pass over the keys, the first way */
  MANY = 8,        /* rows from which on the second way pays */
  BLOCK_ROWS = 48, /* the second way: rows (a multiple of every tile's) and keys that meet at a time */
  KEYS = 256,
  TASK_ROWS = 480, /* at most in a task, which packs keys and values once for all of them */
  TASKS = 16,      /* that there should be, so that every thread finds one */
  MASK_CHUNK = 256,
  LANES = 16
};

/* e to numbers from about -100 to 0 and NaN; lower ones give 0. A polynomial (the Taylor series ends below half an ulp for halves
 * of ln 2) without branches, so that loops over it vectorise. */
static inline float exponential(float x) {
  const float low = x < -87.0f ? -87.0f : x;
  const float shifted = low * 1.44269504f + 0x1.8p23f, n = shifted - 0x1.8p23f;
  const float r = low - n * 0x1.62e4p-1f - n * 1.42860677e-6f; /* ln 2 in two parts, the first with few bits */
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.0f;
  sum = sum * r + 1.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3f800000u;
  float power;
  memcpy(&power, &bits, sizeof power);
  return x < -87.0f ? 0.0f : sum * power;
}

/* e to (number - origin) in place; returns their sum. */
CLV__MULTIVERSION static double exponentials_f32(float *numbers, int64_t count, float origin) {
  double sums[LANES] = {0}, sum = 0;
  int64_t j = 0;
  for (; j < count; ++j) numbers[j] = exponential(numbers[j] - origin);
  for (j = 0; j + LANES <= count; j += LANES) {
    for (int l = 0; l < LANES; ++l) sums[l] += (double)numbers[j + l];
  }
  for (; j < count; ++j) sum += (double)numbers[j];
  for (int l = 0; l < LANES; ++l) sum += sums[l];
  return sum;
}
static double exponentials_f64(double *numbers, int64_t count, double origin) {
  double sum = 0;
  for (int64_t j = 0; j < count; ++j) sum += numbers[j] = exp(numbers[j] - origin);
  return sum;
}

#define NAME(x) x##_f32
#define REAL float
#define REAL_DTYPE CLV_F32
#define TO_REAL clv__row_to_f32
#define FROM_REAL clv__row_from_f32
#include "kernels/attention_body.h"
#include "kernels/attention_tiles.h"
#undef NAME
#undef REAL
#undef REAL_DTYPE
#undef TO_REAL
#undef FROM_REAL
#define NAME(x) x##_f64
#define REAL double
#define REAL_DTYPE CLV_F64
#define TO_REAL clv__row_to_f64
#define FROM_REAL clv__row_from_f64
#include "kernels/attention_body.h"
#include "kernels/attention_tiles.h"

static const clv_tensor *present_of(const clv_tensor *tensors, uint32_t count, uint32_t index) {
  return index < count && tensors[index].dtype != CLV_DTYPE_NONE ? &tensors[index] : NULL;
}

/* ---- Reading the call ---- */

/* Where a dim is 0 the others may be anything: products of them mean nothing then, but must not overflow. */
static int64_t times(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Rows of a tensor of three dims (heads side by side) or four. */
static clv__attention_rows rows_of(const clv_tensor *t, int64_t heads, const clv_tensor *past) {
  clv__attention_rows rows = {.tensor = t, .past = past, .heads = heads, .past_length = past != NULL ? past->dims[2] : 0};
  if (t->rank == 3) {
    rows.size = heads > 0 ? t->dims[2] / heads : 0;
    rows.head_step = rows.size;
    rows.row_step = t->dims[2];
    rows.batch_step = times(t->dims[1], t->dims[2]);
  } else {
    rows.size = t->dims[3];
    rows.row_step = t->dims[3];
    rows.head_step = times(t->dims[2], t->dims[3]);
    rows.batch_step = times(t->dims[1], rows.head_step);
  }
  return rows;
}

static void read_mask(const clv__kernel_call *call, clv__attention *a) {
  const clv_tensor *mask = a->mask = present_of(call->inputs, call->input_count, 3);
  a->mask_keys = a->total;
  if (mask == NULL) return;
  int64_t step = 1;
  for (int32_t i = mask->rank - 1; i >= 0; --i) {
    a->mask_steps[4 - mask->rank + i] = mask->dims[i] == 1 ? 0 : step;
    step = times(step, mask->dims[i]);
  }
  /* A last dim of 1 is broadcast before opset 24, and since then as short as any other. */
  const int64_t keys = mask->dims[mask->rank - 1];
  if (keys < a->total && (call->opset >= 24 || keys != 1)) a->mask_keys = keys;
}

static int64_t window(const clv__kernel_call *call, const char *name) {
  const int64_t size = clv__attribute_int(call->attributes, name, -1);
  return size < 0 || size > INT64_MAX / 4 ? INT64_MAX / 4 : size;
}

static clv_dtype rounding_of(const clv__kernel_call *call) {
  const clv_dtype own = call->inputs[0].dtype, asked = (clv_dtype)clv__attribute_int(call->attributes, "softmax_precision", 0);
  if (asked == own || asked == CLV_DTYPE_NONE || asked == CLV_F64) return CLV_DTYPE_NONE;
  return asked == CLV_F32 && own != CLV_F64 ? CLV_DTYPE_NONE : asked;
}

static clv__attention attention_of(const clv__kernel_call *call) {
  const clv_tensor *in = call->inputs, *q = &in[0], *k = &in[1];
  const bool inside = q->rank == 3;
  const int64_t heads = inside ? clv__attribute_int(call->attributes, "q_num_heads", 1) : q->dims[1];
  clv__attention a = {.batches = q->dims[0], .queries = q->dims[inside ? 1 : 2]};
  a.heads = inside ? clv__attribute_int(call->attributes, "kv_num_heads", 1) : k->dims[1];
  a.group = a.heads > 0 ? heads / a.heads : 0;
  a.query = rows_of(q, heads, NULL);
  a.key = rows_of(k, a.heads, present_of(in, call->input_count, 4));
  a.value = rows_of(&in[2], a.heads, present_of(in, call->input_count, 5));
  a.total = a.key.past_length + k->dims[inside ? 1 : 2];
  if (call->outputs[0].dtype != CLV_DTYPE_NONE) a.output = rows_of(&call->outputs[0], heads, NULL);
  a.scores = present_of(call->outputs, call->output_count, 3);
  a.mode = (int)clv__attribute_int(call->attributes, "qk_matmul_output_mode", 0);
  const clv_tensor *valid = present_of(in, call->input_count, 6);
  a.valid = valid != NULL ? valid->data : NULL;
  a.left = window(call, "left_window_size");
  a.right = window(call, "right_window_size");
  if (clv__attribute_int(call->attributes, "is_causal", 0) != 0) a.right = 0;
  a.scale = (double)clv__attribute_float(call->attributes, "scale", 0);
  if (clv__attribute_find(call->attributes, "scale") == NULL) a.scale = a.query.size > 0 ? 1 / sqrt((double)a.query.size) : 1;
  a.cap = (double)clv__attribute_float(call->attributes, "softcap", 0);
  a.rounding = rounding_of(call);
  read_mask(call, &a);
  return a;
}

/* ---- Running it ---- */

/* The rows of one head of K and V, cut into tasks: a function of shapes alone. */
typedef struct cut {
  bool tiled;
  int64_t rows, task_rows, chunks;
} cut;

static cut cut_of(const clv__attention *a) {
  const int64_t pairs = times(a->batches, a->heads);
  cut c = {.rows = times(a->group, a->queries), .task_rows = FEW};
  c.tiled = c.rows >= MANY && a->scores == NULL && a->rounding == CLV_DTYPE_NONE;
  if (c.tiled) {
    int64_t chunks = (c.rows + TASK_ROWS - 1) / TASK_ROWS;
    if (pairs > 0 && chunks < TASKS / pairs) chunks = TASKS / pairs;
    c.task_rows = ((c.rows + chunks - 1) / chunks + 11) / 12 * 12; /* 12: a multiple of every tile's rows */
    if (c.task_rows < BLOCK_ROWS) c.task_rows = c.rows < BLOCK_ROWS ? (c.rows + 11) / 12 * 12 : BLOCK_ROWS;
  }
  c.chunks = (c.rows + c.task_rows - 1) / c.task_rows;
  return c;
}

static bool is_wide(const clv__kernel_call *call) {
  return call->inputs[0].dtype == CLV_F64;
}

static size_t slice_bytes(const clv__attention *a, const cut *c, bool wide) {
  if (c->tiled) return wide ? tiles_layout_f64(a, c->task_rows, NULL, NULL) : tiles_layout_f32(a, c->task_rows, NULL, NULL);
  return wide ? rows_scratch_f64(a) : rows_scratch_f32(a);
}

/* Whether there is more to make than the cache. */
static bool has_output(const clv__attention *a) {
  return (a->output.tensor != NULL && !clv__tensor_is_empty(a->output.tensor)) ||
         (a->scores != NULL && !clv__tensor_is_empty(a->scores));
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  const clv__attention a = attention_of(call);
  if (!has_output(&a)) return 0;
  const cut c = cut_of(&a);
  const size_t slice = slice_bytes(&a, &c, is_wide(call));
  const size_t threads = (size_t)clv__kernel_thread_limit(a.batches * a.heads * c.chunks);
  return slice > SIZE_MAX / CLV__KERNEL_MAX_THREADS ? SIZE_MAX : slice * threads;
}

/* Past and new rows, one after the other: a copy of bytes. */
static void join_cache(const clv__attention_rows *rows, const clv_tensor *present) {
  if (present == NULL || clv__tensor_is_empty(present)) return;
  const int64_t pairs = present->dims[0] * present->dims[1], length = present->dims[2];
  const size_t row_bytes = (size_t)rows->size * clv_dtype_size_bytes(present->dtype);
  const int threads = clv__kernel_threads(pairs, (double)pairs * (double)length * (double)row_bytes / 16);
  (void)threads; /* without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t pair = 0; pair < pairs; ++pair) {
    char *to = (char *)present->data + (size_t)(pair * length) * row_bytes;
    for (int64_t j = 0; j < length;) {
      const clv_tensor *from;
      const int64_t first = clv__attention_row(rows, pair / rows->heads, pair % rows->heads, j, &from);
      const int64_t run = j < rows->past_length ? rows->past_length : rows->row_step == rows->size ? length - j : 1;
      memcpy(to + (size_t)j * row_bytes, (const char *)from->data + (size_t)first * clv_dtype_size_bytes(from->dtype),
             (size_t)run * row_bytes);
      j += run;
    }
  }
}

static clv_status check_valid(const clv__kernel_call *call, const clv__attention *a) {
  for (int64_t b = 0; a->valid != NULL && b < a->batches; ++b) {
    if (a->valid[b] >= 0 && a->valid[b] <= a->total) continue;
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "nonpad_kv_seqlen[%lld] is %lld: there are %lld keys", (long long)b,
                          (long long)a->valid[b], (long long)a->total);
  }
  return CLV_OK;
}

static void run_task(const clv__attention *a, const cut *c, bool wide, int64_t task, char *slice) {
  const int64_t pair = task / c->chunks, row = task % c->chunks * c->task_rows;
  const int64_t batch = pair / a->heads, head = pair % a->heads;
  const int64_t count = c->rows - row < c->task_rows ? c->rows - row : c->task_rows;
  if (c->tiled && wide)
    run_tiles_f64(a, batch, head, row, count, c->task_rows, slice);
  else if (c->tiled)
    run_tiles_f32(a, batch, head, row, count, c->task_rows, slice);
  else if (wide)
    rows_f64(a, batch, head, row, count, slice);
  else
    rows_f32(a, batch, head, row, count, slice);
}

static clv_status run(const clv__kernel_call *call) {
  const clv__attention a = attention_of(call);
  const bool wide = is_wide(call);
  CLV__TRY(check_valid(call, &a));
  join_cache(&a.key, present_of(call->outputs, call->output_count, 1));
  join_cache(&a.value, present_of(call->outputs, call->output_count, 2));
  if (!has_output(&a)) return CLV_OK;
  const cut c = cut_of(&a);
  const size_t slice = slice_bytes(&a, &c, wide);
  const int64_t tasks = a.batches * a.heads * c.chunks;
  const double scores = (double)a.batches * (double)a.heads * (double)c.rows * (double)a.total;
  const int threads = clv__kernel_threads(tasks, scores * (double)(a.query.size + a.value.size + 8) / 8);
  (void)threads; /* without OpenMP */
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic, 1)
  for (int64_t task = 0; task < tasks; ++task) {
    run_task(&a, &c, wide, task, (char *)call->scratch + (size_t)clv__kernel_thread_index() * slice);
  }
  return CLV_OK;
}

static bool accepts(const clv__kernel_call *call, char reason[160]) {
  const int64_t precision = clv__attribute_int(call->attributes, "softmax_precision", 0);
  const clv_tensor *mask = present_of(call->inputs, call->input_count, 3), *value = &call->inputs[2];
  if (precision != 0 && (precision < 0 || precision > CLV_BF16 || (CLV__DTYPES_FLOAT >> precision & 1u) == 0)) {
    snprintf(reason, 160, "softmax_precision %lld not supported", (long long)precision);
    return false;
  }
  if ((CLV__DTYPES_FLOAT & CLV__DTYPE_BIT(value->dtype)) == 0) {
    snprintf(reason, 160, "dtype %s of V not supported", clv_dtype_name(value->dtype));
    return false;
  }
  if (mask != NULL && (CLV__DTYPES_ANY & CLV__DTYPE_BIT(mask->dtype)) == 0) {
    snprintf(reason, 160, "dtype %s of attn_mask not supported", clv_dtype_name(mask->dtype));
    return false;
  }
  return true;
}

/* FlexAttention without bodies is Attention of four dims; with them it takes more than a kernel (src/ops/evaluate_flex.c). */
static bool accepts_flex(const clv__kernel_call *call, char reason[160]) {
  const bool has_body =
      clv__attribute_find(call->attributes, "score_mod") != NULL || clv__attribute_find(call->attributes, "prob_mod") != NULL;
  if (has_body) snprintf(reason, 160, "score_mod and prob_mod are no kernels");
  return !has_body && accepts(call, reason);
}

const clv__kernel clv__kernels_attention[] = {
    {"", "Attention", CLV__DTYPES_FLOAT, run, scratch_bytes, accepts},
    {"ai.onnx.preview", "FlexAttention", CLV__DTYPES_FLOAT, run, scratch_bytes, accepts_flex},
    {.op = NULL},
};
