/* ATen's operators that select elements by index. Negative indices count from the end, as in ONNX. See lower.h. */
#include "formats/irjson/lower.h"

typedef clv__aten_value value;
typedef clv__aten_node aten;

static bool is_index(clv_dtype dtype) {
  return dtype == CLV_I64 || dtype == CLV_I32;
}

static value index_input(aten *n, uint32_t at) {
  value index = clv__aten_input(n, at);
  return is_index(index.type.dtype) ? index : clv__aten_cast(n, index, CLV_I64);
}

/* embedding(weight, indices) */
static void lower_embedding(aten *n) {
  value weight = clv__aten_input(n, 0), indices = index_input(n, 1);
  clv__aten_set_int(n, "axis", 0);
  clv__aten_return(n, 0, clv__aten_call(n, "Gather", weight.type.dtype, weight, indices));
}

static void lower_index_select(aten *n) {
  value x = clv__aten_input(n, 0), index = index_input(n, 1);
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank);
  if (x.type.rank == 0) clv__aten_keep(n);
  if (index.type.rank == 0) index = clv__aten_reshape(n, index, 1, (int64_t[]){1});
  clv__aten_set_int(n, "axis", axis);
  clv__aten_return(n, 0, clv__aten_call(n, "Gather", x.type.dtype, x, index));
}

static void lower_gather(aten *n) {
  value x = clv__aten_input(n, 0), index = index_input(n, 1);
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank);
  if (x.type.rank == 0 || index.type.rank != x.type.rank) clv__aten_keep(n);
  clv__aten_set_int(n, "axis", axis);
  clv__aten_return(n, 0, clv__aten_call(n, "GatherElements", x.type.dtype, x, index));
}

/* Lowers scatter, scatter_add and scatter_reduce. If the source is larger than the index, only its first elements are used. */
static void lower_scatter(aten *n) {
  value x = clv__aten_input(n, 0), index = index_input(n, 1);
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank);
  clv__aten_scalar number = clv__aten_scalar_of(n, "value");
  const char *how = clv__aten_text(n, "reduce", strcmp(n->stem, "scatter_add") == 0 ? "sum" : "none");
  static const char *const ways[][2] = {{"none", "none"},    {"sum", "add"},  {"add", "add"}, {"prod", "mul"},
                                        {"multiply", "mul"}, {"amax", "max"}, {"amin", "min"}};
  const char *onnx = NULL;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    if (strcmp(how, ways[i][0]) == 0) onnx = ways[i][1];
  }
  if (onnx == NULL || x.type.rank == 0 || index.type.rank != x.type.rank || !clv__aten_bool(n, "include_self", true))
    clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  value source;
  if (number.dtype != CLV_DTYPE_NONE) {
    source = clv__aten_expand(n, clv__aten_constant(n, x.type.dtype, number), index.type.rank, index.type.dims);
  } else {
    source = clv__aten_cast(n, clv__aten_input(n, 2), x.type.dtype);
    for (int32_t i = 0; n->status == CLV_OK && i < index.type.rank; ++i) {
      if (source.type.rank != index.type.rank)
        clv__aten_fail(n, "its source has rank %d, but its index has rank %d", (int)source.type.rank, (int)index.type.rank);
      clv_tensor type = source.type;
      if (n->status != CLV_OK || type.dims[i] <= index.type.dims[i]) continue;
      source = clv__aten_slice(n, source, i, 0, index.type.dims[i], 1);
      source.type = type;
      source.type.dims[i] = index.type.dims[i];
    }
  }
  clv__aten_set_int(n, "axis", axis);
  if (strcmp(onnx, "none") != 0) clv__aten_set_string(n, "reduction", onnx);
  clv__aten_return(n, 0, clv__aten_call(n, "ScatterElements", x.type.dtype, x, index, source));
}

/* Lowers index_copy and index_add, which write whole slices along one axis. ScatterElements needs an index per element, so the
 * index is expanded to the source's shape. */
static void lower_index_copy(aten *n) {
  value x = clv__aten_input(n, 0), index = index_input(n, 1), source = clv__aten_input(n, 2);
  int64_t axis = clv__aten_axis(n, "dim", 0, x.type.rank), dims[CLV_MAX_RANK], places = 1;
  clv__aten_scalar alpha = clv__aten_scalar_of(n, "alpha");
  if (x.type.rank == 1 && source.type.rank == 0) source = clv__aten_reshape(n, source, 1, (int64_t[]){1});
  if (x.type.rank == 0 || source.type.rank != x.type.rank || index.type.rank > 1) clv__aten_keep(n);
  if (n->status != CLV_OK) return;
  if (index.type.rank == 1) places = index.type.dims[0];
  if (places != source.type.dims[axis]) {
    clv__aten_fail(n, "its index has %lld entries, but its source has %lld slices", (long long)places,
                   (long long)source.type.dims[axis]);
  }
  for (int32_t i = 0; i < x.type.rank; ++i) dims[i] = i == axis ? places : 1;
  index = clv__aten_reshape(n, index, x.type.rank, dims);
  index = clv__aten_expand(n, index, source.type.rank, source.type.dims);
  clv_dtype dtype = x.type.dtype;
  clv_tensor source_type = source.type;
  source = clv__aten_cast(n, source, dtype);
  if (alpha.dtype != CLV_DTYPE_NONE && alpha.real != 1) {
    source = clv__aten_call(n, "Mul", dtype, source, clv__aten_constant(n, dtype, alpha));
    source.type = source_type;
  }
  clv__aten_set_int(n, "axis", axis);
  if (strcmp(n->stem, "index_add") == 0) clv__aten_set_string(n, "reduction", "add");
  clv__aten_return(n, 0, clv__aten_call(n, "ScatterElements", x.type.dtype, x, index, source));
}

static void lower_one_hot(aten *n) {
  value x = index_input(n, 0);
  int64_t classes = clv__aten_int(n, "num_classes", -1);
  if (classes < 1) clv__aten_keep(n);
  value depth = clv__aten_vector(n, &classes, 1), ends = clv__aten_vector(n, (int64_t[]){0, 1}, 2);
  clv__aten_set_int(n, "axis", -1);
  clv__aten_return(n, 0, clv__aten_call(n, "OneHot", CLV_I64, x, depth, ends));
}

const clv__aten_lowering clv__aten_index[] = {
    {"embedding", lower_embedding},   {"index_select", lower_index_select},
    {"gather", lower_gather},         {"scatter", lower_scatter},
    {"scatter_add", lower_scatter},   {"scatter_reduce", lower_scatter},
    {"index_copy", lower_index_copy}, {"index_add", lower_index_copy},
    {"one_hot", lower_one_hot},       {NULL, NULL},
};
