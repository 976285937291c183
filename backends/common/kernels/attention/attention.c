/* Attention and FlexAttention: describes a call as a clv__attention and writes the outputs present_key and present_value. run.c
 * computes the other outputs. */
#include "backends/common/kernels/attention/attention.h"
#include "backends/common/kernels/families.h"

#include <math.h>
#include <stdio.h>

#include "operators/common/rows.h"
#include "operators/common/threads.h"

static const clv_tensor *present_of(const clv_tensor *tensors, uint32_t count, uint32_t index) {
  return index < count && tensors[index].dtype != CLV_DTYPE_NONE ? &tensors[index] : NULL;
}

/* ---- Reading the call ---- */

/* Multiplies modulo 2^64, because a signed overflow would be undefined. The product of a tensor's dims overflows only if the
 * tensor is empty, and no stride of an empty tensor is used. */
static int64_t times(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* The rows of a tensor [batch, position, heads * size] or [batch, heads, position, size]. */
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
  const clv_tensor *mask = present_of(call->inputs, call->input_count, 3);
  a->mask_keys = a->total;
  if (mask == NULL) return;
  clv__attention_mask *read = &a->masks[0];
  *read = (clv__attention_mask){.tensor = mask, .kind = CLV__ATTENTION_ADDS, .fill = -INFINITY};
  if (mask->dtype == CLV_BOOL) read->kind = CLV__ATTENTION_KEEPS;
  int64_t step = 1;
  for (int32_t i = mask->rank - 1; i >= 0; --i) {
    read->steps[4 - mask->rank + i] = mask->dims[i] == 1 ? 0 : step;
    step = times(step, mask->dims[i]);
  }
  /* A mask with fewer keys than K covers only the first keys, and all later keys are masked out. One exception: before opset
   * 24, a mask whose last dim is 1 is broadcast to all keys. */
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
  a.is_wide = q->dtype == CLV_F64;
  read_mask(call, &a);
  return a;
}

/* ---- Running the operator ---- */

/* Copies the past rows and then the new rows into `present`, as bytes. */
static void join_cache(const clv__attention_rows *rows, const clv_tensor *present) {
  if (present == NULL || clv__tensor_is_empty(present)) return;
  const int64_t pairs = present->dims[0] * present->dims[1], length = present->dims[2];
  const size_t row_bytes = (size_t)rows->size * clv_dtype_size_bytes(present->dtype);
  const int threads = clv__kernel_threads(pairs, (double)pairs * (double)length * (double)row_bytes / 16);
  (void)threads; /* unused without OpenMP */
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
    return clv__error_set(call->error, CLV_INVALID_ARGUMENT,
                          "nonpad_kv_seqlen[%lld] is %lld; it must be from 0 to %lld, the number of keys", (long long)b,
                          (long long)a->valid[b], (long long)a->total);
  }
  return CLV_OK;
}

static clv_status run(const clv__kernel_call *call) {
  const clv__attention a = attention_of(call);
  CLV__TRY(check_valid(call, &a));
  join_cache(&a.key, present_of(call->outputs, call->output_count, 1));
  join_cache(&a.value, present_of(call->outputs, call->output_count, 2));
  clv__attention_run(&a, call->scratch, call->stop);
  return CLV_OK;
}

static size_t scratch_bytes(const clv__kernel_call *call) {
  const clv__attention a = attention_of(call);
  return clv__attention_scratch_bytes(&a);
}

const clv__fast_kernel clv__fast_attention[] = {
    {"", "Attention", run, scratch_bytes},
    {"ai.onnx.preview", "FlexAttention", run, scratch_bytes},
    {.op = NULL},
};
