/* NonZero, TopK, Compress, Unique, ReverseSequence: selects and reorders elements. */
#include <stdio.h>

#include "base/memory.h"
#include "operators/common/move.h"
#include "operators/common/order.h"
#include "operators/common/threads.h"
#include "operators/run.h"
#include "operators/select/unique.h"

/* ---- NonZero ------------------------------------------------------------------------------------------------------------- */

static bool is_zero(const clv_tensor *tensor, size_t index) {
  switch (clv_dtype_size_bytes(tensor->dtype)) {
    case 1:
      return ((const uint8_t *)tensor->data)[index] == 0;
    case 2: {
      uint16_t bits = ((const uint16_t *)tensor->data)[index];
      bool half = tensor->dtype == CLV_F16 || tensor->dtype == CLV_BF16;
      return (half ? bits & 0x7fffu : bits) == 0; /* -0 equals 0 */
    }
    case 4:
      return tensor->dtype == CLV_F32 ? ((const float *)tensor->data)[index] == 0 : ((const int32_t *)tensor->data)[index] == 0;
    default:
      return tensor->dtype == CLV_F64 ? ((const double *)tensor->data)[index] == 0 : ((const int64_t *)tensor->data)[index] == 0;
  }
}

static clv_status run_nonzero(const clv__kernel_call *call) {
  const clv_tensor *in = &call->inputs[0];
  int64_t found = call->outputs[0].dims[1], at = 0, *out = call->outputs[0].data, where[CLV_MAX_RANK] = {0};
  size_t count;
  if (!clv__tensor_count(in, &count)) return CLV_OK;
  for (size_t i = 0; i < count; ++i) {
    if (clv__is_stopped(call->stop)) return CLV_OK;
    if (!is_zero(in, i)) {
      if (at >= found) break;
      for (int32_t d = 0; d < in->rank; ++d) out[d * found + at] = where[d];
      at++;
    }
    for (int32_t d = in->rank - 1; d >= 0 && ++where[d] == in->dims[d]; --d) where[d] = 0;
  }
  if (at == found) return CLV_OK;
  return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "the output has room for %lld element%s, but %lld are not zero",
                        (long long)found, CLV__S(found), (long long)at);
}

/* ---- TopK ---------------------------------------------------------------------------------------------------------------- */

typedef struct candidate {
  uint64_t key; /* a larger key is better */
  int64_t index;
} candidate;

static inline bool better(candidate a, candidate b) {
  return a.key != b.key ? a.key > b.key : a.index < b.index;
}

/* Moves heap[at] down until the heap, whose root is its worst candidate, is in order again. */
static void sift_down(candidate *heap, int64_t count, int64_t at) {
  candidate moved = heap[at];
  for (;;) {
    int64_t child = 2 * at + 1;
    if (child >= count) break;
    if (child + 1 < count && better(heap[child], heap[child + 1])) child++;
    if (!better(moved, heap[child])) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = moved;
}

static int64_t topk_axis(const clv__kernel_call *call) {
  int64_t axis = clv__attribute_int(call->attributes, "axis", -1);
  return axis < 0 ? axis + call->inputs[0].rank : axis;
}

static size_t scratch_topk(const clv__kernel_call *call) {
  const clv_tensor *out =
      call->outputs[0].dtype != CLV_DTYPE_NONE || call->output_count < 2 ? &call->outputs[0] : &call->outputs[1];
  size_t size_bytes;
  if (out->rank < 1) return 0;
  bool fits = clv__multiply((size_t)out->dims[topk_axis(call)], sizeof(candidate) * CLV__KERNEL_MAX_THREADS, &size_bytes);
  return fits ? size_bytes : SIZE_MAX;
}

/* Selects the k best of one lane, best first. The lane has `length` elements, `inner` apart, starting at `base`. If the
 * call is stopped, the heap is incomplete. */
static void select_lane(const clv_tensor *in, int64_t base, int64_t length, int64_t inner, bool largest, int64_t k,
                        candidate *heap, const clv__stop *stop) {
  for (int64_t i = 0; i < length && !clv__is_stopped(stop); ++i) {
    uint64_t key = clv__order_key(in, (size_t)(base + i * inner));
    if (!largest)
      key = key == UINT64_MAX ? 0 : ~key; /* a NaN is worse than any number, whether the largest or the smallest are selected */
    else if (key == UINT64_MAX && (CLV__DTYPE_BIT(in->dtype) & CLV__DTYPES_FLOAT))
      key = 0;
    candidate c = {key, i};
    if (i < k) {
      heap[i] = c;
      for (int64_t root = i + 1 == k ? k / 2 - 1 : -1; root >= 0 && !clv__is_stopped(stop); --root) sift_down(heap, k, root);
    } else if (better(c, heap[0])) {
      heap[0] = c;
      sift_down(heap, k, 0);
    }
  }
  for (int64_t left = k - 1; left > 0 && !clv__is_stopped(stop); --left) {
    candidate worst = heap[0];
    heap[0] = heap[left];
    heap[left] = worst;
    sift_down(heap, left, 0);
  }
}

static clv_status run_topk(const clv__kernel_call *call) {
  const clv_tensor *in = &call->inputs[0];
  clv_tensor *values = &call->outputs[0], none = {.dtype = CLV_DTYPE_NONE};
  clv_tensor *places = call->output_count > 1 ? &call->outputs[1] : &none;
  const clv_tensor *shape = values->dtype != CLV_DTYPE_NONE ? values : places;
  if (shape->dtype == CLV_DTYPE_NONE) return CLV_OK;
  int32_t axis = (int32_t)topk_axis(call);
  int64_t k = shape->dims[axis], length = in->dims[axis];
  int64_t outer = clv__dims_product(in, 0, axis), inner = clv__dims_product(in, axis + 1, in->rank);
  size_t bytes = clv_dtype_size_bytes(in->dtype);
  bool largest = clv__attribute_int(call->attributes, "largest", 1) != 0;
  if (k == 0) return CLV_OK;
  int threads = clv__kernel_threads(outer * inner, (double)outer * (double)inner * (double)length * 4);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t lane = 0; lane < outer * inner; ++lane) {
    if (clv__is_stopped(call->stop)) continue;
    candidate *heap = (candidate *)call->scratch + clv__kernel_thread_index() * k;
    int64_t from = lane / inner * length * inner + lane % inner, to = lane / inner * k * inner + lane % inner;
    select_lane(in, from, length, inner, largest, k, heap, call->stop);
    if (clv__is_stopped(call->stop)) continue;
    for (int64_t i = 0; i < k; ++i) {
      if (places->dtype != CLV_DTYPE_NONE) ((int64_t *)places->data)[to + i * inner] = heap[i].index;
      if (values->dtype == CLV_DTYPE_NONE) continue;
      memcpy((char *)values->data + (size_t)(to + i * inner) * bytes,
             (const char *)in->data + (size_t)(from + heap[i].index * inner) * bytes, bytes);
    }
  }
  return CLV_OK;
}

/* ---- Compress, Unique, ReverseSequence ----------------------------------------------------------------------------------- */

/* Copies the slice at index `from` of the input's axis to index `to` of the output's axis. The tensors differ only in the size of
 * this axis. */
static void copy_item(const clv_tensor *in, clv_tensor *out, int32_t axis, int64_t from, int64_t to) {
  size_t inner = (size_t)clv__dims_product(in, axis + 1, in->rank) * clv_dtype_size_bytes(in->dtype);
  int64_t outer = clv__dims_product(in, 0, axis);
  for (int64_t o = 0; inner > 0 && o < outer; ++o) {
    memcpy((char *)out->data + (size_t)(o * out->dims[axis] + to) * inner,
           (const char *)in->data + (size_t)(o * in->dims[axis] + from) * inner, inner);
  }
}

/* Returns the input, and sets *axis from the attribute axis. Without this attribute, returns the flattened input and sets *axis
 * to 0. */
static clv_tensor with_axis(const clv__kernel_call *call, int32_t *axis) {
  clv_tensor in = call->inputs[0];
  const clv_attribute *attribute = clv__attribute_find(call->attributes, "axis");
  int64_t number = clv__attribute_int(call->attributes, "axis", 0);
  if (attribute == NULL) {
    in.dims[0] = clv__dims_product(&in, 0, in.rank);
    in.rank = 1;
  }
  *axis = (int32_t)(number < 0 ? number + in.rank : number);
  return in;
}

static clv_status run_compress(const clv__kernel_call *call) {
  int32_t axis;
  clv_tensor in = with_axis(call, &axis);
  const uint8_t *condition = call->inputs[1].data;
  int64_t to = 0;
  for (int64_t i = 0; i < call->inputs[1].dims[0]; ++i) {
    if (clv__is_stopped(call->stop)) return CLV_OK;
    if (condition[i] == 0) continue;
    if (i >= in.dims[axis]) {
      return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "the condition selects element %lld, but there are only %lld",
                            (long long)i, (long long)in.dims[axis]);
    }
    if (to >= call->outputs[0].dims[axis]) {
      return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "the condition selects more elements than the output has, %lld",
                            (long long)call->outputs[0].dims[axis]);
    }
    copy_item(&in, &call->outputs[0], axis, i, to++);
  }
  return CLV_OK;
}

static size_t scratch_unique(const clv__kernel_call *call) {
  int32_t axis;
  if (!clv__tensor_is_static(&call->inputs[0])) return 0;
  clv_tensor in = with_axis(call, &axis);
  size_t size_bytes;
  return clv__multiply((size_t)in.dims[axis], 4 * sizeof(int64_t), &size_bytes) ? size_bytes : SIZE_MAX;
}

static clv_status run_unique(const clv__kernel_call *call) {
  int32_t axis;
  clv_tensor in = with_axis(call, &axis);
  int64_t count = in.dims[axis], distinct = call->outputs[0].dims[axis], group = -1;
  int64_t *order = call->scratch, *room = order + count, *first = room + count, *place = first + count;
  int32_t along = clv__attribute_find(call->attributes, "axis") != NULL ? axis : -1;
  clv_tensor *wanted[4] = {NULL};
  for (uint32_t i = 0; i < call->output_count && i < 4; ++i) {
    if (call->outputs[i].dtype != CLV_DTYPE_NONE) wanted[i] = &call->outputs[i];
  }
  if (count == 0) return CLV_OK;
  const int64_t found = clv__unique_sort(&in, along, order, room, call->stop);
  if (clv__is_stopped(call->stop)) return CLV_OK;
  if (found != distinct) {
    return clv__error_set(call->error, CLV_INTERNAL_ERROR, "the number of distinct items is not the size of the output");
  }
  /* Equal items form a group. Groups are numbered in ascending order of their items. room[item] is the number of the item's
   * group; first[group] is the group's first item. */
  for (int64_t i = 0; i < count; ++i) {
    bool fresh = i == 0 || !clv__unique_same(&in, along, order[i - 1], order[i]);
    if (fresh) first[++group] = order[i];
    room[order[i]] = group;
  }
  /* place[group]: the group's position in the result. Without sorting, groups are in the order in which they first appear. */
  bool sorted = clv__attribute_int(call->attributes, "sorted", 1) != 0;
  int64_t next = 0;
  for (int64_t g = 0; g < distinct; ++g) place[g] = g;
  for (int64_t i = 0; !sorted && i < count; ++i) {
    if (first[room[i]] == i) place[room[i]] = next++;
  }
  for (int64_t g = 0; g < distinct; ++g) {
    if (wanted[0] != NULL) copy_item(&in, wanted[0], axis, first[g], place[g]);
    if (wanted[1] != NULL) ((int64_t *)wanted[1]->data)[place[g]] = first[g];
    if (wanted[3] != NULL) ((int64_t *)wanted[3]->data)[g] = 0;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (wanted[2] != NULL) ((int64_t *)wanted[2]->data)[i] = place[room[i]];
    if (wanted[3] != NULL) ((int64_t *)wanted[3]->data)[place[room[i]]]++;
  }
  return CLV_OK;
}

static clv_status run_reverse_sequence(const clv__kernel_call *call) {
  const clv_tensor *in = &call->inputs[0], *lengths = &call->inputs[1];
  bool batch_first = clv__attribute_int(call->attributes, "batch_axis", 1) == 0;
  int64_t rows = in->dims[0], columns = in->dims[1];
  int64_t batches = batch_first ? rows : columns, steps = batch_first ? columns : rows;
  size_t inner = (size_t)clv__dims_product(in, 2, in->rank) * clv_dtype_size_bytes(in->dtype);
  for (int64_t b = 0; inner > 0 && b < batches && !clv__is_stopped(call->stop); ++b) {
    int64_t length = clv__tensor_get_int(lengths, (size_t)b);
    if (length < 0 || length > steps) {
      return clv__error_set(call->error, CLV_INVALID_ARGUMENT, "sequence length %lld is out of range for %lld steps",
                            (long long)length, (long long)steps);
    }
    for (int64_t s = 0; s < steps; ++s) {
      int64_t source = s < length ? length - 1 - s : s;
      int64_t to = batch_first ? b * columns + s : s * columns + b,
              from = batch_first ? b * columns + source : source * columns + b;
      memcpy((char *)call->outputs[0].data + (size_t)to * inner, (const char *)in->data + (size_t)from * inner, inner);
    }
  }
  return CLV_OK;
}

const clv__kernel clv__kernels_select[] = {
    {"", "NonZero", CLV__DTYPES_ANY, run_nonzero, NULL, NULL},
    {"", "TopK", CLV__DTYPES_NUMBER, run_topk, scratch_topk, NULL},
    {"", "Compress", CLV__DTYPES_ANY, run_compress, NULL, NULL},
    {"", "Unique", CLV__DTYPES_ANY, run_unique, scratch_unique, NULL},
    {"", "ReverseSequence", CLV__DTYPES_ANY, run_reverse_sequence, NULL, NULL},
    {.op = NULL},
};
