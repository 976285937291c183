/* ATen's operators that move elements: permutations, slices, padding, repetition. See lower.h. */
#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

static void identity_order(int64_t *order) {
  for (int64_t i = 0; i < CLV_MAX_RANK; ++i) order[i] = i;
}

static void lower_permute(aten *n) {
  value x = clv__aten_input(n, 0);
  int64_t order[CLV__ATEN_MAX_LIST];
  uint32_t count = clv__aten_axes(n, "dims", x.type.rank, order);
  if (n->status == CLV_OK && (int32_t)count != x.type.rank) {
    clv__aten_fail(n, "attrs.dims has %u entries; expected one for each axis of its input, %d", count, (int)x.type.rank);
  }
  if (n->status == CLV_OK) clv__aten_return(n, 0, clv__aten_transpose(n, x, order));
}

static void swap_axes(aten *n, value x, int64_t a, int64_t b) {
  int64_t order[CLV_MAX_RANK];
  if (n->status != CLV_OK) return;
  identity_order(order);
  order[a] = b;
  order[b] = a;
  clv__aten_return(n, 0, x.type.rank < 2 ? x : clv__aten_transpose(n, x, order));
}

static void lower_transpose(aten *n) {
  value x = clv__aten_input(n, 0);
  int64_t a = clv__aten_axis(n, "dim0", 0, x.type.rank), b = clv__aten_axis(n, "dim1", 0, x.type.rank);
  swap_axes(n, x, a, b);
}

/* Lowers t, numpy_T and mT of matrices. For tensors of higher rank, mT swaps the last two axes; a node t or
 * numpy_T stays an ATen node. */
static void lower_t(aten *n) {
  value x = clv__aten_input(n, 0);
  if (x.type.rank > 2 && strcmp(n->stem, "mT") != 0) clv__aten_keep(n);
  swap_axes(n, x, x.type.rank >= 2 ? x.type.rank - 2 : 0, x.type.rank >= 2 ? x.type.rank - 1 : 0);
}

static void lower_slice(aten *n) {
  value x = clv__aten_input(n, 0);
  bool narrow = strcmp(n->stem, "narrow") == 0;
  if (x.type.rank < 1) clv__aten_fail(n, "its input has rank 0; expected 1 or more");
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank);
  int64_t start = clv__aten_int(n, "start", 0), step = clv__aten_int(n, "step", 1);
  if (narrow && !clv__aten_has(n, "start")) clv__aten_keep(n); /* then the start is a tensor */
  if (n->status != CLV_OK) return;
  int64_t size = x.type.dims[axis];
  if (start < 0) start += size;
  int64_t end = clv__aten_int(n, narrow ? "length" : "end", INT64_MAX);
  if (end < 0) end += size;
  if (narrow && __builtin_add_overflow(start, end, &end)) end = INT64_MAX;
  start = start < 0 ? 0 : start > size ? size : start;
  end = end < start ? start : end > size ? size : end;
  if (step < 1) clv__aten_fail(n, "attrs.step is %lld, but must be above 0", (long long)step);
  if (n->status != CLV_OK) return;
  clv__aten_return(n, 0, start == 0 && end == size && step == 1 ? x : clv__aten_slice(n, x, axis, start, end, step));
}

static void lower_select(aten *n) {
  value x = clv__aten_input(n, 0);
  if (x.type.rank < 1) clv__aten_fail(n, "its input has rank 0; expected 1 or more");
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank), index = clv__aten_int(n, "index", 0);
  if (n->status != CLV_OK) return;
  if (index < -x.type.dims[axis] || index >= x.type.dims[axis]) {
    clv__aten_fail(n, "attrs.index is %lld, but the axis has size %lld", (long long)index, (long long)x.type.dims[axis]);
  }
  clv__aten_set_int(n, "axis", axis);
  clv__aten_return(n, 0, clv__aten_call(n, "Gather", x.type.dtype, x, clv__aten_number(n, CLV_I64, (double)index)));
}

static void lower_flip(aten *n) {
  value x = clv__aten_input(n, 0);
  int64_t axes[CLV__ATEN_MAX_LIST], from[CLV_MAX_RANK], to[CLV_MAX_RANK], steps[CLV_MAX_RANK];
  uint32_t count = clv__aten_has(n, "dims") ? clv__aten_axes(n, "dims", x.type.rank, axes) : 0;
  if (n->status != CLV_OK || count > CLV_MAX_RANK) return;
  for (uint32_t i = 0; i < count; ++i) {
    from[i] = -1;
    to[i] = INT64_MIN + 1;
    steps[i] = -1;
  }
  if (x.type.rank == 0 || count == 0) {
    clv__aten_return(n, 0, x);
    return;
  }
  clv__aten_return(n, 0,
                   clv__aten_call(n, "Slice", x.type.dtype, x, clv__aten_vector(n, from, count), clv__aten_vector(n, to, count),
                                  clv__aten_vector(n, axes, count), clv__aten_vector(n, steps, count)));
}

/* Moves elements by `shift` along an axis. Those beyond its end reappear at its start. */
static value rolled(aten *n, value x, int64_t shift, int64_t axis) {
  const int64_t size = x.type.dims[axis],
                first = size == 0 ? 0 : (size - shift % size) % size; /* the element that becomes element 0 */
  if (first == 0) return x;
  value parts[2] = {clv__aten_slice(n, x, axis, first, size, 1), clv__aten_slice(n, x, axis, 0, first, 1)};
  clv__aten_set_int(n, "axis", axis);
  value made = clv__aten_op(n, "Concat", x.type.dtype, parts, 2);
  return (value){made.id, x.type};
}

/* Without dims, roll moves the elements of the flattened tensor. */
static void lower_roll(aten *n) {
  value x = clv__aten_input(n, 0);
  int64_t shifts[CLV__ATEN_MAX_LIST], axes[CLV__ATEN_MAX_LIST] = {0};
  uint32_t count = clv__aten_ints(n, "shifts", shifts), axis_count = clv__aten_ints(n, "dims", axes);
  size_t elements;
  if (!clv__tensor_count(&x.type, &elements)) return;
  if (count != (axis_count == 0 ? 1 : axis_count))
    clv__aten_fail(n, "attrs.shifts has %u entries, but attrs.dims has %u", count, axis_count);
  if (axis_count == 0) x = clv__aten_reshape(n, x, 1, (int64_t[]){(int64_t)elements});
  for (uint32_t i = 0; n->status == CLV_OK && i < count; ++i) {
    if (axes[i] < 0) axes[i] += x.type.rank;
    if (axes[i] < 0 || axes[i] >= x.type.rank)
      clv__aten_fail(n, "attrs.dims[%u] is out of range for rank %d", i, (int)x.type.rank);
    else
      x = rolled(n, x, shifts[i], axes[i]);
  }
  clv__aten_return(n, 0, clv__aten_reshape(n, x, n->outputs[0].type.rank, n->outputs[0].type.dims));
}

/* Converts the order of the pads. ATen lists them from the last axis to the first, with both ends of an axis next to each other.
 * ONNX lists the pads at the starts of all axes, from the first axis to the last, and then those at the ends. */
static void lower_pad(aten *n) {
  value x = clv__aten_input(n, 0);
  const char *name = clv__aten_has(n, "padding") ? "padding" : "pad";
  const char *mode = clv__aten_text(n, "mode", "constant");
  if (strncmp(n->stem, "reflection", 10) == 0) mode = "reflect";
  if (strncmp(n->stem, "replication", 11) == 0) mode = "replicate";
  int64_t given[CLV__ATEN_MAX_LIST], pads[2 * CLV_MAX_RANK] = {0};
  uint32_t count = clv__aten_ints(n, name, given);
  if (n->status != CLV_OK) return;
  if (count % 2 != 0 || (int32_t)count > 2 * x.type.rank) {
    clv__aten_fail(n, "attrs.%s has %u entries; expected an even number, at most 2 for each of the %d axes", name, count,
                   (int)x.type.rank);
    return;
  }
  bool cuts = false;
  for (uint32_t i = 0; i < count; ++i) {
    int32_t axis = x.type.rank - 1 - (int32_t)(i / 2);
    pads[i % 2 == 0 ? axis : x.type.rank + axis] = given[i];
    cuts = cuts || given[i] < 0;
  }
  bool constant = strcmp(mode, "constant") == 0;
  const char *onnx = constant                         ? "constant"
                     : strcmp(mode, "reflect") == 0   ? "reflect"
                     : strcmp(mode, "replicate") == 0 ? "edge"
                     : strcmp(mode, "circular") == 0  ? "wrap"
                                                      : NULL;
  if (onnx == NULL || (cuts && !constant)) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  clv__aten_scalar fill = clv__aten_scalar_of(n, "value");
  value number = constant && fill.dtype != CLV_DTYPE_NONE ? clv__aten_constant(n, x.type.dtype, fill) : clv__aten_absent();
  clv__aten_set_string(n, "mode", onnx);
  value list = clv__aten_vector(n, pads, 2 * (uint32_t)x.type.rank);
  clv__aten_return(n, 0, clv__aten_call(n, "Pad", x.type.dtype, x, list, number));
}

static void lower_repeat(aten *n) {
  value x = clv__aten_input(n, 0);
  int64_t repeats[CLV__ATEN_MAX_LIST], dims[CLV_MAX_RANK];
  bool tile = strcmp(n->stem, "tile") == 0;
  int32_t count = (int32_t)clv__aten_ints(n, tile ? "dims" : "repeats", repeats);
  if (n->status != CLV_OK) return;
  if (tile && count < x.type.rank) { /* a shorter list is for the last axes: repeat the axes before them once */
    int32_t more = x.type.rank - count;
    memmove(repeats + more, repeats, (size_t)count * sizeof *repeats);
    for (int32_t i = 0; i < more; ++i) repeats[i] = 1;
    count = x.type.rank;
  }
  if (count > CLV_MAX_RANK || count < x.type.rank) {
    clv__aten_fail(n, "it has %d repeats; expected at least one for each of the %d axes, and at most %d", (int)count,
                   (int)x.type.rank, CLV_MAX_RANK);
    return;
  }
  for (int32_t i = 0; i < count; ++i) {
    int32_t own = i - (count - x.type.rank);
    dims[i] = own < 0 ? 1 : x.type.dims[own];
  }
  value wide = clv__aten_reshape(n, x, count, dims);
  clv__aten_return(n, 0, clv__aten_call(n, "Tile", x.type.dtype, wide, clv__aten_vector(n, repeats, (uint32_t)count)));
}

/* Repeats each element several times in a row: adds an axis after it, repeats it and merges both axes. */
static void lower_repeat_interleave(aten *n) {
  value x = clv__aten_input(n, 0);
  if (strcmp(n->overload, "self_int") != 0 || n->input_count != 1) clv__aten_keep(n);
  int64_t times = clv__aten_int(n, "repeats", 1), dims[CLV_MAX_RANK + 1];
  if (n->status != CLV_OK) return;
  if (!clv__aten_has(n, "dim")) {
    size_t count;
    if (!clv__tensor_count(&x.type, &count)) return;
    x = clv__aten_reshape(n, x, 1, (int64_t[]){(int64_t)count});
  }
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank);
  if (x.type.rank == 0 || x.type.rank == CLV_MAX_RANK || times < 0) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  for (int32_t i = 0, k = 0; i < x.type.rank; ++i) {
    dims[k++] = x.type.dims[i];
    if (i == axis) dims[k++] = times;
  }
  value wide = clv__aten_expand(n, clv__aten_unsqueeze(n, x, axis + 1), x.type.rank + 1, dims);
  clv__aten_return(n, 0, clv__aten_reshape(n, wide, n->outputs[0].type.rank, n->outputs[0].type.dims));
}

static void lower_pixel_shuffle(aten *n) {
  value x = clv__aten_input(n, 0);
  bool down = strcmp(n->stem, "pixel_unshuffle") == 0;
  if (x.type.rank != 4 || down) clv__aten_keep(n);
  clv__aten_set_int(n, "blocksize", clv__aten_int(n, "upscale_factor", 1));
  clv__aten_set_string(n, "mode", "CRD");
  clv__aten_return(n, 0, clv__aten_call(n, "DepthToSpace", x.type.dtype, x));
}

static void lower_triangle(aten *n) {
  value x = clv__aten_input(n, 0);
  clv__aten_set_int(n, "upper", strcmp(n->stem, "triu") == 0);
  int64_t diagonal = clv__aten_int(n, "diagonal", 0);
  clv__aten_return(n, 0, clv__aten_call(n, "Trilu", x.type.dtype, x, clv__aten_number(n, CLV_I64, (double)diagonal)));
}

const clv__aten_lowering clv__aten_move[] = {
    {"permute", lower_permute},
    {"permute_copy", lower_permute},
    {"transpose", lower_transpose},
    {"transpose_copy", lower_transpose},
    {"swapaxes", lower_transpose},
    {"t", lower_t},
    {"t_copy", lower_t},
    {"numpy_T", lower_t},
    {"mT", lower_t},
    {"slice", lower_slice},
    {"slice_copy", lower_slice},
    {"narrow", lower_slice},
    {"select", lower_select},
    {"select_copy", lower_select},
    {"flip", lower_flip},
    {"roll", lower_roll},
    {"pad", lower_pad},
    {"constant_pad_nd", lower_pad},
    {"reflection_pad1d", lower_pad},
    {"reflection_pad2d", lower_pad},
    {"replication_pad1d", lower_pad},
    {"replication_pad2d", lower_pad},
    {"repeat", lower_repeat},
    {"tile", lower_repeat},
    {"repeat_interleave", lower_repeat_interleave},
    {"pixel_shuffle", lower_pixel_shuffle},
    {"tril", lower_triangle},
    {"triu", lower_triangle},
    {NULL, NULL},
};
