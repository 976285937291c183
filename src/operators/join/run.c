/* Concat, Split, Slice, Pad, Expand, Tile: copies pieces of tensors to their positions. */
#include "operators/run.h"
#include "base/memory.h"
#include "operators/common/move.h"
#include "operators/common/threads.h"

/* Copies `count` rows of `row_bytes` bytes, which are `from_step` bytes apart in the source and `to_step` in the target. */
static void copy_rows(char *to, size_t to_step, const char *from, size_t from_step, size_t row_bytes, int64_t count,
                      const clv__stop *stop) {
  if (row_bytes == 0 || count == 0) return;
  if (count == 1 || (to_step == row_bytes && from_step == row_bytes)) {
    clv__copy_bytes(to, from, row_bytes * (size_t)count, stop);
    return;
  }
  int threads = clv__kernel_threads(count, (double)count * ((double)row_bytes / 8 + 2));
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t r = 0; r < count; ++r) {
    if (clv__is_stopped(stop)) continue;
    memcpy(to + (size_t)r * to_step, from + (size_t)r * from_step, row_bytes);
  }
}

/* A list that is an attribute before some opset (argument `since` of read_list()) and an input from then on. Before `since`, the
 * input is used if the attribute is absent, as in inference. */
typedef struct list {
  const clv_attribute *attribute;
  const clv_tensor *input;
  size_t count;
} list;

static list read_list(const clv__kernel_call *call, int32_t since, const char *name, uint32_t input) {
  list l = {.attribute = call->opset < since ? clv__attribute_find(call->attributes, name) : NULL};
  if (l.attribute != NULL) {
    l.count = l.attribute->kind == CLV_ATTRIBUTE_INTS ? l.attribute->count : 0;
  } else if (input < call->input_count && call->inputs[input].dtype != CLV_DTYPE_NONE) {
    l.input = &call->inputs[input];
    (void)clv__tensor_count(l.input, &l.count);
  }
  return l;
}

static int64_t list_entry(const list *l, size_t i, int64_t fallback) {
  if (i >= l->count) return fallback;
  return l->attribute != NULL ? l->attribute->ints[i] : clv__tensor_get_int(l->input, i);
}

static int32_t read_axis(const clv__kernel_call *call, int64_t fallback, int32_t rank) {
  int64_t axis = clv__attribute_int(call->attributes, "axis", fallback);
  return (int32_t)(axis < 0 ? axis + rank : axis);
}

static clv_status run_concat(const clv__kernel_call *call) {
  clv_tensor *out = &call->outputs[0];
  int32_t axis = read_axis(call, 1, out->rank);
  size_t bytes = clv_dtype_size_bytes(out->dtype);
  int64_t outer = clv__dims_product(out, 0, axis);
  size_t step = (size_t)clv__dims_product(out, axis, out->rank) * bytes, at = 0;
  for (uint32_t i = 0; i < call->input_count; ++i) {
    const clv_tensor *in = &call->inputs[i];
    size_t row = (size_t)clv__dims_product(in, axis, in->rank) * bytes;
    copy_rows((char *)out->data + at, step, in->data, row, row, outer, call->stop);
    at += row;
  }
  return CLV_OK;
}

static clv_status run_split(const clv__kernel_call *call) {
  const clv_tensor *in = &call->inputs[0];
  int32_t axis = read_axis(call, 0, in->rank);
  size_t bytes = clv_dtype_size_bytes(in->dtype), at = 0;
  int64_t outer = clv__dims_product(in, 0, axis), dim = in->dims[axis];
  size_t slice = (size_t)clv__dims_product(in, axis + 1, in->rank) * bytes;
  list sizes = read_list(call, 13, "split", 1);
  int64_t parts = (int64_t)call->output_count, equal = (dim + parts - 1) / parts, left = dim;
  for (uint32_t i = 0; i < call->output_count; ++i) {
    int64_t size = list_entry(&sizes, i, equal < left ? equal : left);
    clv_tensor *out = &call->outputs[i];
    size_t row = (size_t)size * slice;
    if (out->dtype != CLV_DTYPE_NONE) {
      copy_rows(out->data, row, (const char *)in->data + at, (size_t)dim * slice, row, outer, call->stop);
    }
    at += row;
    left -= size;
  }
  return CLV_OK;
}

/* ---- Slice --------------------------------------------------------------------------------------------------------------- */

static clv_status run_slice(const clv__kernel_call *call) {
  const clv_tensor *in = &call->inputs[0], *out = &call->outputs[0];
  int64_t strides[CLV_MAX_RANK], offset = 0;
  clv__dense_strides(in, strides);
  clv__strided shape = {.rank = in->rank};
  for (int32_t d = 0; d < in->rank; ++d) {
    shape.dims[d] = out->dims[d];
    shape.strides[d] = strides[d];
  }
  list starts = read_list(call, 10, "starts", 1), axes = read_list(call, 10, "axes", 3), steps = read_list(call, 0, "", 4);
  for (size_t i = 0; i < starts.count; ++i) {
    int64_t axis = list_entry(&axes, i, (int64_t)i), start = list_entry(&starts, i, 0), step = list_entry(&steps, i, 1);
    if (axis < 0) axis += in->rank;
    int64_t dim = in->dims[axis];
    if (out->dims[axis] == 0) return CLV_OK;
    if (start < 0) start += dim;
    if (start < 0) start = 0; /* the step is positive: with a negative one the output would be empty */
    if (start >= dim) start = dim - 1;
    offset += start * strides[axis];
    /* A step longer than the axis selects one element. Its stride is not needed, and the product could overflow. */
    shape.strides[axis] = out->dims[axis] == 1 ? 0 : strides[axis] * step;
  }
  size_t bytes = clv_dtype_size_bytes(in->dtype);
  clv__strided_read((const char *)in->data + offset * (int64_t)bytes, out->data, &shape, bytes, call->stop);
  return CLV_OK;
}

/* ---- Pad ----------------------------------------------------------------------------------------------------------------- */

/* Reads the pads before and after each axis. */
static void read_pads(const clv__kernel_call *call, int64_t before[CLV_MAX_RANK], int64_t after[CLV_MAX_RANK]) {
  int32_t rank = call->inputs[0].rank;
  list axes = call->opset >= 18 ? read_list(call, 0, "", 3) : (list){0}, pads = read_list(call, 11, "pads", 1);
  size_t half = pads.count / 2;
  for (int32_t d = 0; d < rank; ++d) before[d] = after[d] = 0;
  for (size_t i = 0; i < half; ++i) {
    int64_t axis = list_entry(&axes, i, (int64_t)i);
    if (axis < 0) axis += rank;
    before[axis] = list_entry(&pads, i, 0);
    after[axis] = list_entry(&pads, half + i, 0);
  }
}

/* Fills in, for each output index along an axis, the source index, or -1 for the constant. Negative pads crop the axis first;
 * positive pads then extend what is left. */
static void map_axis(int64_t dim, int64_t before, int64_t after, char mode, int64_t size, int64_t *map) {
  int64_t cut = before < 0 ? -before : 0, lead = before > 0 ? before : 0;
  int64_t length = dim - cut + (after < 0 ? after : 0);
  for (int64_t o = 0; o < size; ++o) {
    int64_t i = o - lead;
    if (i < 0 || i >= length) {
      int64_t period = mode == 'w' ? length : 2 * (length - 1);
      if (mode == 'c') {
        map[o] = -1;
        continue;
      }
      if (mode == 'e' || period <= 0) {
        i = i < 0 ? 0 : length - 1;
      } else {
        i %= period;
        if (i < 0) i += period;
        if (mode == 'r' && i >= length) i = period - i;
      }
    }
    map[o] = i + cut;
  }
}

static size_t scratch_pad(const clv__kernel_call *call) {
  const clv_tensor *out = &call->outputs[0];
  size_t total = 0, size_bytes;
  if (!clv__tensor_size_bytes(out, &size_bytes) || size_bytes == 0) return 0;
  for (int32_t d = 0; d < out->rank; ++d) {
    if (!clv__add(total, (size_t)out->dims[d], &total)) return SIZE_MAX;
  }
  return clv__multiply(total, sizeof(int64_t), &size_bytes) ? size_bytes : SIZE_MAX;
}

/* Sets *element to the value for constant padding, in the data's dtype. */
static void constant_element(const clv__kernel_call *call, uint64_t *element) {
  clv_dtype dtype = call->inputs[0].dtype;
  *element = 0;
  if (call->opset >= 11) {
    size_t count;
    const clv_tensor *value = call->input_count > 2 && call->inputs[2].dtype == dtype ? &call->inputs[2] : NULL;
    if (value != NULL && clv__tensor_count(value, &count) && count > 0) memcpy(element, value->data, clv_dtype_size_bytes(dtype));
    return;
  }
  float value = clv__attribute_float(call->attributes, "value", 0);
  double wide = value;
  uint16_t half = dtype == CLV_F16 ? clv__f32_to_f16(value) : clv__f32_to_bf16(value);
  int64_t whole = (int64_t)value; /* before opset 11 only floats may be padded; other dtypes get the truncated value */
  if (dtype == CLV_F32)
    memcpy(element, &value, sizeof value);
  else if (dtype == CLV_F64)
    memcpy(element, &wide, sizeof wide);
  else if (dtype == CLV_F16 || dtype == CLV_BF16)
    memcpy(element, &half, sizeof half);
  else
    memcpy(element, &whole, sizeof whole);
}

/* Writes one row along the last axis from a source row, with the indices from map_axis(). */
static void pad_row(char *to, const char *from, const int64_t *map, int64_t size, const uint64_t *element, size_t bytes) {
  int64_t o = 0;
  while (o < size) {
    int64_t run = 1;
    if (map[o] < 0) {
      while (o + run < size && map[o + run] < 0) ++run;
      clv__fill(to + (size_t)o * bytes, element, bytes, (size_t)run, NULL);
    } else {
      while (o + run < size && map[o + run] == map[o] + run) ++run;
      memcpy(to + (size_t)o * bytes, from + (size_t)map[o] * bytes, (size_t)run * bytes);
    }
    o += run;
  }
}

static clv_status run_pad(const clv__kernel_call *call) {
  const clv_tensor *in = &call->inputs[0], *out = &call->outputs[0];
  size_t bytes = clv_dtype_size_bytes(in->dtype), total;
  int64_t before[CLV_MAX_RANK], after[CLV_MAX_RANK], strides[CLV_MAX_RANK], *maps[CLV_MAX_RANK], *room = call->scratch;
  char mode = clv__attribute_is(call->attributes, "mode", "reflect", false) ? 'r'
              : clv__attribute_is(call->attributes, "mode", "edge", false)  ? 'e'
              : clv__attribute_is(call->attributes, "mode", "wrap", false)  ? 'w'
                                                                            : 'c';
  uint64_t element;
  constant_element(call, &element);
  if (!clv__tensor_count(out, &total) || total == 0) return CLV_OK;
  if (in->rank == 0) {
    memcpy(out->data, in->data, bytes);
    return CLV_OK;
  }
  read_pads(call, before, after);
  clv__dense_strides(in, strides);
  for (int32_t d = 0; d < in->rank; ++d) {
    maps[d] = room;
    room += out->dims[d];
    map_axis(in->dims[d], before[d], after[d], mode, out->dims[d], maps[d]);
  }
  int32_t last = in->rank - 1;
  int64_t width = out->dims[last], rows = (int64_t)total / width;
  int threads = clv__kernel_threads(rows, (double)total);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
  for (int64_t r = 0; r < rows; ++r) {
    if (clv__is_stopped(call->stop)) continue;
    int64_t rest = r, offset = 0;
    bool outside = false;
    for (int32_t d = last - 1; d >= 0; --d) {
      int64_t at = maps[d][rest % out->dims[d]];
      rest /= out->dims[d];
      outside = outside || at < 0;
      offset += at * strides[d];
    }
    char *to = (char *)out->data + (size_t)(r * width) * bytes;
    if (outside)
      clv__fill(to, &element, bytes, (size_t)width, call->stop);
    else
      pad_row(to, (const char *)in->data + offset * (int64_t)bytes, maps[last], width, &element, bytes);
  }
  return CLV_OK;
}

/* ---- Expand, Tile -------------------------------------------------------------------------------------------------------- */

static clv_status run_expand(const clv__kernel_call *call) {
  const clv_tensor *in = &call->inputs[0], *out = &call->outputs[0];
  int64_t strides[CLV_MAX_RANK];
  int32_t lead = out->rank - in->rank;
  clv__dense_strides(in, strides);
  clv__strided shape = {.rank = out->rank};
  for (int32_t d = 0; d < out->rank; ++d) {
    shape.dims[d] = out->dims[d];
    shape.strides[d] = d < lead || in->dims[d - lead] == 1 ? 0 : strides[d - lead];
  }
  clv__strided_read(in->data, out->data, &shape, clv_dtype_size_bytes(in->dtype), call->stop);
  return CLV_OK;
}

static clv_status run_tile(const clv__kernel_call *call) {
  const clv_tensor *in = &call->inputs[0];
  int64_t strides[CLV_MAX_RANK];
  clv__dense_strides(in, strides);
  clv__strided shape = {.rank = 2 * in->rank};
  for (int32_t d = 0; d < in->rank; ++d) {
    shape.dims[2 * d] = clv__tensor_get_int(&call->inputs[1], (size_t)d);
    shape.strides[2 * d] = 0;
    shape.dims[2 * d + 1] = in->dims[d];
    shape.strides[2 * d + 1] = strides[d];
  }
  clv__strided_read(in->data, call->outputs[0].data, &shape, clv_dtype_size_bytes(in->dtype), call->stop);
  return CLV_OK;
}

const clv__kernel clv__kernels_join[] = {
    {"", "Concat", CLV__DTYPES_ANY | CLV__DTYPES_F8, run_concat, NULL, NULL},
    {"", "Split", CLV__DTYPES_ANY | CLV__DTYPES_F8, run_split, NULL, NULL},
    {"", "Slice", CLV__DTYPES_ANY | CLV__DTYPES_F8, run_slice, NULL, NULL},
    {"", "Pad", CLV__DTYPES_ANY, run_pad, scratch_pad, NULL},
    {"", "Expand", CLV__DTYPES_ANY | CLV__DTYPES_F8, run_expand, NULL, NULL},
    {"", "Tile", CLV__DTYPES_ANY | CLV__DTYPES_F8, run_tile, NULL, NULL},
    {.op = NULL},
};
