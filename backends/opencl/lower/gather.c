/* Gather*, Scatter*. ONNX allows two updates of one element (a collision) only if they are combined by a reduction, and then in
 * any order. If it costs nothing, updates are applied in the order of the indices. */
#include <stdio.h>

#include "block.h"
#include "list.h"

#define INDEX_DTYPES (CLV__DTYPE_BIT(CLV_I32) | CLV__DTYPE_BIT(CLV_I64))

static void begin(clv__opencl_lowering *l, const char *kernel, clv_dtype dtype, const clv__opencl_node *node) {
  clv__opencl_launch(l, "gather", kernel);
  clv__opencl_define_dtype(l, "T", dtype);
  clv__opencl_define_dtype(l, "I", node->inputs[1].dtype);
}

static clv_status lower_gather(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *data = &node->inputs[0], *out = &node->outputs[0];
  const int32_t axis = clv__opencl_axis(clv__attribute_int(node->attributes, "axis", 0), data->rank);
  if (clv__opencl_is_empty(out)) return CLV_OK;
  begin(l, "gather", clv__opencl_bits(data->dtype), node);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_input(l, 1);
  clv__opencl_pass_index(l, clv__opencl_count(out));
  clv__opencl_pass_index(l, data->dims[axis]);
  clv__opencl_pass_index(l, clv__opencl_count(&node->inputs[1]));
  clv__opencl_pass_index(l, clv__dims_product(data, axis + 1, data->rank));
  return clv__opencl_enqueue_1d(l, clv__opencl_count(out));
}

static clv_status lower_gather_elements(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *data = &node->inputs[0], *indices = &node->inputs[1];
  const int32_t axis = clv__opencl_axis(clv__attribute_int(node->attributes, "axis", 0), data->rank);
  int64_t strides[CLV_MAX_RANK];
  if (clv__opencl_is_empty(indices)) return CLV_OK;
  clv__opencl_strides(data, strides);
  const int64_t stride = strides[axis];
  strides[axis] = 0;
  begin(l, "gather_elements", clv__opencl_bits(data->dtype), node);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_input(l, 1);
  clv__opencl_pass_index(l, clv__opencl_count(indices));
  clv__opencl_pass_int(l, indices->rank);
  clv__opencl_pass_dims(l, indices->dims, (uint32_t)indices->rank);
  clv__opencl_pass_dims(l, strides, (uint32_t)indices->rank);
  clv__opencl_pass_index(l, data->dims[axis]);
  clv__opencl_pass_index(l, stride);
  return clv__opencl_enqueue_1d(l, clv__opencl_count(indices));
}

static clv_status lower_gather_nd(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *data = &node->inputs[0], *indices = &node->inputs[1], *out = &node->outputs[0];
  const int32_t batch = (int32_t)clv__attribute_int(node->attributes, "batch_dims", 0);
  const int64_t depth = indices->dims[indices->rank - 1];
  int64_t strides[CLV_MAX_RANK];
  if (clv__opencl_is_empty(out)) return CLV_OK;
  const int64_t rows = clv__dims_product(indices, 0, indices->rank - 1), batches = clv__dims_product(indices, 0, batch);
  clv__opencl_strides(data, strides);
  begin(l, "gather_rows", clv__opencl_bits(data->dtype), node);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_input(l, 1);
  clv__opencl_pass_index(l, clv__opencl_count(out));
  clv__opencl_pass_index(l, clv__dims_product(data, batch + (int32_t)depth, data->rank));
  clv__opencl_pass_index(l, rows / batches);
  clv__opencl_pass_index(l, clv__dims_product(data, batch, data->rank));
  clv__opencl_pass_int(l, (int32_t)depth);
  clv__opencl_pass_dims(l, data->dims + batch, (uint32_t)depth);
  clv__opencl_pass_dims(l, strides + batch, (uint32_t)depth);
  return clv__opencl_enqueue_1d(l, clv__opencl_count(out));
}

/* ---- Scatter ------------------------------------------------------------------------------------------------------------- */

/* The expression that combines an element `to` with an update `by`. NULL: the update replaces the element. */
static const char *reduction_of(const clv__opencl_node *node) {
  const clv_dtype dtype = node->inputs[0].dtype;
  const bool is_float = (CLV__DTYPE_BIT(dtype) & CLV__DTYPES_FLOAT) != 0;
  if (clv__attribute_is(node->attributes, "reduction", "add", false)) return is_float ? "to + by" : "(ULONG)to + (ULONG)by";
  if (clv__attribute_is(node->attributes, "reduction", "mul", false)) return is_float ? "to * by" : "(ULONG)to * (ULONG)by";
  if (clv__attribute_is(node->attributes, "reduction", "min", false)) return "(by < to || by != by) ? by : to";
  if (clv__attribute_is(node->attributes, "reduction", "max", false)) return "(by > to || by != by) ? by : to";
  return NULL;
}

/* Copies the data to the output before the updates. */
static clv_status copy_data(clv__opencl_lowering *l, const clv__opencl_node *node) {
  const uint64_t bytes = (uint64_t)clv__opencl_count(&node->inputs[0]) * clv_dtype_size_bytes(node->inputs[0].dtype);
  return clv__opencl_copy(l, CLV__OPENCL_OUTPUT, 0, 0, CLV__OPENCL_INPUT, 0, 0, bytes);
}

static void begin_scatter(clv__opencl_lowering *l, const char *kernel, const clv__opencl_node *node) {
  const char *update = reduction_of(node);
  begin(l, kernel, update == NULL ? clv__opencl_bits(node->inputs[0].dtype) : node->inputs[0].dtype, node);
  clv__opencl_define(l, "UPDATE", "%s", update == NULL ? "by" : update);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 1);
  clv__opencl_pass_input(l, 2);
}

/* With at least this many lines along the axis, one work item per line keeps the device busy. With fewer lines, each update gets
 * a work item if the lines are long and the model rules out collisions. */
#define MANY_LINES 256

static clv_status lower_scatter_elements(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *data = &node->inputs[0], *indices = &node->inputs[1];
  if (clv__opencl_is_empty(data)) return CLV_OK;
  CLV__TRY(copy_data(l, node));
  if (clv__opencl_is_empty(indices) || data->rank == 0) return CLV_OK;
  const int32_t axis = clv__opencl_axis(clv__attribute_int(node->attributes, "axis", 0), data->rank);
  int64_t strides[CLV_MAX_RANK], length = indices->dims[axis];
  const int64_t inner = clv__dims_product(indices, axis + 1, indices->rank), total = clv__opencl_count(indices);
  const bool alone = reduction_of(node) == NULL && total / length < MANY_LINES && length > 64;
  clv__opencl_strides(data, strides);
  const int64_t stride = strides[axis];
  strides[axis] = 0;
  begin_scatter(l, "scatter_elements", node);
  clv__opencl_pass_index(l, alone ? total : total / length);
  clv__opencl_pass_index(l, alone ? 1 : length);
  clv__opencl_pass_index(l, alone ? 1 : inner);
  clv__opencl_pass_int(l, indices->rank);
  clv__opencl_pass_dims(l, indices->dims, (uint32_t)indices->rank);
  clv__opencl_pass_dims(l, strides, (uint32_t)indices->rank);
  clv__opencl_pass_index(l, data->dims[axis]);
  clv__opencl_pass_index(l, stride);
  return clv__opencl_enqueue_1d(l, alone ? total : total / length);
}

static clv_status lower_scatter_nd(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *data = &node->inputs[0], *indices = &node->inputs[1];
  if (clv__opencl_is_empty(data)) return CLV_OK;
  CLV__TRY(copy_data(l, node));
  const int64_t depth = indices->dims[indices->rank - 1];
  const int64_t rows = clv__dims_product(indices, 0, indices->rank - 1),
                inner = clv__dims_product(data, (int32_t)depth, data->rank);
  int64_t strides[CLV_MAX_RANK];
  if (rows == 0 || inner == 0) return CLV_OK;
  clv__opencl_strides(data, strides);
  /* With a reduction, rows of indices may collide: one work item per column of the slice then applies all rows, in order. Up to
   * 64 rows without a reduction are applied in the same way, because it costs nothing. If such rows collide, which ONNX
   * forbids, the last one wins. With more rows, each row has its own work items. */
  const bool alone = reduction_of(node) == NULL && rows > 64;
  const int64_t each = alone ? 1 : rows;
  begin_scatter(l, "scatter_rows", node);
  clv__opencl_pass_index(l, rows);
  clv__opencl_pass_index(l, inner);
  clv__opencl_pass_index(l, each);
  clv__opencl_pass_int(l, (int32_t)depth);
  clv__opencl_pass_dims(l, data->dims, (uint32_t)depth);
  clv__opencl_pass_dims(l, strides, (uint32_t)depth);
  return clv__opencl_enqueue(l, 2, (int64_t[]){inner, rows / each}, NULL);
}

/* ---- Accepted nodes ---- */

static bool accepts_indices(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__opencl_accepts_dtype(node, 1, INDEX_DTYPES, reason);
}

static bool accepts_scatter(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  if (node->inputs[0].dtype == CLV_BOOL && reduction_of(node) != NULL) {
    snprintf(reason, 160, "reduction of bool");
    return false;
  }
  return accepts_indices(traits, node, reason);
}

const clv__opencl_operator clv__opencl_family_gather[] = {
    {"", "Gather", CLV__DTYPES_ANY, false, accepts_indices, lower_gather},
    {"", "GatherElements", CLV__DTYPES_ANY, false, accepts_indices, lower_gather_elements},
    {"", "GatherND", CLV__DTYPES_ANY, false, accepts_indices, lower_gather_nd},
    {"", "Scatter", CLV__DTYPES_ANY, false, accepts_scatter, lower_scatter_elements},
    {"", "ScatterElements", CLV__DTYPES_ANY, false, accepts_scatter, lower_scatter_elements},
    {"", "ScatterND", CLV__DTYPES_ANY, false, accepts_scatter, lower_scatter_nd},
    {NULL, NULL, 0, false, NULL, NULL},
};
