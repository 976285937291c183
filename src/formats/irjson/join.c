/* ATen's operators that join and split tensors. See lower.h. */
#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

static value *room(aten *n, size_t count) {
  value *values = clv__arena_allocate_zero(n->arena, count, sizeof *values);
  if (values == NULL && n->status == CLV_OK) n->status = clv__error_memory(n->error, count * sizeof *values);
  return n->status == CLV_OK ? values : NULL;
}

/* cat() ignores tensors of shape [0] among tensors of another rank. */
static bool is_nothing(const value *v, int32_t rank) {
  return rank != 1 && v->type.rank == 1 && v->type.dims[0] == 0;
}

static void lower_cat(aten *n) {
  value *parts = room(n, n->input_count);
  if (parts == NULL) return;
  int32_t rank = n->outputs[0].type.rank;
  clv_dtype dtype = clv__aten_common(n->inputs, n->input_count, (clv__aten_scalar){CLV_DTYPE_NONE, 0, 0});
  int64_t axis = clv__aten_axis(n, "dim", 0, rank);
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->input_count; ++i) {
    if (!is_nothing(&n->inputs[i], rank)) parts[count++] = clv__aten_cast(n, n->inputs[i], dtype);
  }
  if (count == 0) clv__aten_keep(n);
  clv__aten_set_int(n, "axis", axis);
  clv__aten_return(n, 0, clv__aten_op(n, "Concat", dtype, parts, count));
}

static void lower_stack(aten *n) {
  value *parts = room(n, n->input_count);
  if (parts == NULL) return;
  clv__aten_input(n, 0);
  clv_dtype dtype = clv__aten_common(n->inputs, n->input_count, (clv__aten_scalar){CLV_DTYPE_NONE, 0, 0});
  int64_t axis = clv__aten_axis(n, "dim", 0, n->outputs[0].type.rank);
  for (uint32_t i = 0; i < n->input_count; ++i) {
    parts[i] = clv__aten_unsqueeze(n, clv__aten_cast(n, n->inputs[i], dtype), axis);
  }
  clv__aten_set_int(n, "axis", axis);
  clv__aten_return(n, 0, clv__aten_op(n, "Concat", dtype, parts, n->input_count));
}

/* Takes the sizes of the parts from the declared outputs. The arguments may be a size, a list of sizes or a number of parts. */
static void lower_split(aten *n) {
  value x = clv__aten_input(n, 0);
  bool unbind = strcmp(n->stem, "unbind") == 0;
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank), sizes[CLV__ATEN_MAX_LIST];
  if (n->output_count > CLV__ATEN_MAX_LIST || x.type.rank < 1) clv__aten_keep(n);
  value *parts = room(n, n->output_count);
  if (parts == NULL) return;
  for (uint32_t i = 0; i < n->output_count; ++i) {
    if (!unbind && n->outputs[i].type.rank != x.type.rank) {
      clv__aten_fail(n, "output %u has rank %d, but its input has rank %d", i, (int)n->outputs[i].type.rank, (int)x.type.rank);
      return;
    }
    sizes[i] = unbind ? 1 : n->outputs[i].type.dims[axis];
    parts[i].type.dtype = x.type.dtype;
  }
  clv__aten_set_int(n, "axis", axis);
  value inputs[2] = {x, clv__aten_vector(n, sizes, n->output_count)};
  clv__aten_ops(n, "Split", inputs, 2, parts, n->output_count);
  for (uint32_t i = 0; i < n->output_count; ++i) clv__aten_return(n, i, unbind ? clv__aten_squeeze(n, parts[i], axis) : parts[i]);
}

/* Replaces every step-th slice along an axis, from ends[0] up to but excluding ends[1], by those of `source`. */
static value scatter_steps(aten *n, value x, value source, int64_t axis, const int64_t *ends, int64_t step) {
  int64_t dims[CLV_MAX_RANK];
  for (int32_t i = 0; i < x.type.rank; ++i) dims[i] = i == axis ? source.type.dims[i] : 1;
  value places = clv__aten_call(n, "Range", CLV_I64, clv__aten_number(n, CLV_I64, (double)ends[0]),
                                clv__aten_number(n, CLV_I64, (double)ends[1]), clv__aten_number(n, CLV_I64, (double)step));
  places = clv__aten_reshape(n, places, x.type.rank, dims);
  places = clv__aten_expand(n, places, source.type.rank, source.type.dims);
  clv__aten_set_int(n, "axis", axis);
  return clv__aten_call(n, "ScatterElements", x.type.dtype, x, places, source);
}

/* Replaces a slice of self by the source: concatenates the part before the slice, the source and the part after the slice. */
static void lower_slice_scatter(aten *n) {
  value x = clv__aten_input(n, 0), source = clv__aten_input(n, 1);
  bool select = strcmp(n->stem, "select_scatter") == 0;
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank);
  int64_t step = select ? 1 : clv__aten_int(n, "step", 1);
  if (x.type.rank < 1 || step < 1 || (!select && source.type.rank != x.type.rank)) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  int64_t size = x.type.dims[axis], start = clv__aten_int(n, select ? "index" : "start", 0);
  if (start < 0) start += size;
  start = start < 0 ? 0 : start > size ? size : start;
  int64_t end = select ? start + 1 : clv__aten_int(n, "end", INT64_MAX);
  if (end < 0) end += size;
  end = end < start ? start : end > size ? size : end;
  source = clv__aten_cast(n, source, x.type.dtype);
  if (select) source = clv__aten_unsqueeze(n, source, axis);
  if (step != 1) {
    clv__aten_return(n, 0, scatter_steps(n, x, source, axis, (int64_t[]){start, end}, step));
    return;
  }
  value parts[3];
  uint32_t count = 0;
  if (start > 0) parts[count++] = clv__aten_slice(n, x, axis, 0, start, 1);
  parts[count++] = source;
  if (end < size) parts[count++] = clv__aten_slice(n, x, axis, end, size, 1);
  clv__aten_set_int(n, "axis", axis);
  clv__aten_return(n, 0, clv__aten_op(n, "Concat", x.type.dtype, parts, count));
}

const clv__aten_lowering clv__aten_join[] = {
    {"cat", lower_cat},
    {"concat", lower_cat},
    {"concatenate", lower_cat},
    {"stack", lower_stack},
    {"split", lower_split},
    {"split_with_sizes", lower_split},
    {"split_copy", lower_split},
    {"split_with_sizes_copy", lower_split},
    {"chunk", lower_split},
    {"unsafe_chunk", lower_split},
    {"unsafe_split", lower_split},
    {"unbind", lower_split},
    {"slice_scatter", lower_slice_scatter},
    {"select_scatter", lower_slice_scatter},
    {NULL, NULL},
};
