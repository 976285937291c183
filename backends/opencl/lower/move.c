/* Operators that move elements: Transpose, Slice, Split, Concat, Expand, Tile, Pad, DepthToSpace, SpaceToDepth. */
#include <stdio.h>

#include "block.h"
#include "list.h"

static clv_status lower_transpose(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *in = &node->inputs[0];
  clv__opencl_block b = {.rank = in->rank};
  int64_t strides[CLV_MAX_RANK];
  size_t count;
  const int64_t *perm = clv__attribute_ints(node->attributes, "perm", &count);
  clv__opencl_strides(in, strides);
  for (int32_t d = 0; d < in->rank; ++d) {
    const int64_t from = perm != NULL ? perm[d] : in->rank - 1 - d;
    b.dims[d] = in->dims[from];
    b.from[d] = strides[from];
  }
  clv__opencl_block_dense(&b);
  return clv__opencl_block_move(l, node, 0, 0, &b);
}

/* Reshapes the input to the dims `split` and permutes these axes to the order `perm`. */
static clv_status permute(clv__opencl_lowering *l, const clv__opencl_node *node, const int64_t split[6], const int32_t perm[6]) {
  clv__opencl_block b = {.rank = 6};
  int64_t strides[6], step = 1;
  for (int32_t d = 5; d >= 0; --d) {
    strides[d] = step;
    step *= split[d];
  }
  for (int32_t d = 0; d < 6; ++d) {
    b.dims[d] = split[perm[d]];
    b.from[d] = strides[perm[d]];
  }
  clv__opencl_block_dense(&b);
  return clv__opencl_block_move(l, node, 0, 0, &b);
}

static clv_status lower_depth_to_space(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const int64_t *in = node->inputs[0].dims, block = clv__attribute_int(node->attributes, "blocksize", 1);
  const int64_t depth = node->outputs[0].dims[1];
  if (clv__attribute_is(node->attributes, "mode", "CRD", false)) {
    return permute(l, node, (const int64_t[6]){in[0], depth, block, block, in[2], in[3]}, (const int32_t[6]){0, 1, 4, 2, 5, 3});
  }
  return permute(l, node, (const int64_t[6]){in[0], block, block, depth, in[2], in[3]}, (const int32_t[6]){0, 3, 4, 1, 5, 2});
}

static clv_status lower_space_to_depth(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const int64_t *in = node->inputs[0].dims, *out = node->outputs[0].dims;
  const int64_t block = clv__attribute_int(node->attributes, "blocksize", 1);
  const int64_t split[6] = {in[0], in[1], out[2], block, out[3], block};
  const bool channels_first = clv__attribute_is(node->attributes, "mode", "CRD", false);
  return permute(l, node, split, channels_first ? (const int32_t[6]){0, 1, 3, 5, 2, 4} : (const int32_t[6]){0, 3, 5, 1, 2, 4});
}

/* Copies the first `width` elements of each row. In the input, the first row begins at `from_first`, and rows begin `from_step`
 * elements apart; in the output, `to_first` and `to_step`. */
static clv_status move_rows(clv__opencl_lowering *l, const clv__opencl_node *node, uint32_t output, uint32_t input, int64_t rows,
                            int64_t width, int64_t to_first, int64_t to_step, int64_t from_first, int64_t from_step) {
  const clv__opencl_block b = {.rank = 2,
                               .dims = {rows, width},
                               .to = {to_step, 1},
                               .from = {from_step, 1},
                               .to_first = to_first,
                               .from_first = from_first};
  return clv__opencl_block_move(l, node, output, input, &b);
}

static clv_status lower_concat(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *out = &node->outputs[0];
  const int32_t axis = clv__opencl_axis(clv__attribute_int(node->attributes, "axis", 1), out->rank);
  const int64_t outer = clv__dims_product(out, 0, axis), step = clv__dims_product(out, axis, out->rank);
  int64_t at = 0;
  for (uint32_t i = 0; i < node->input_count; ++i) {
    const clv_tensor *in = &node->inputs[i];
    const int64_t width = clv__dims_product(in, axis, in->rank);
    CLV__TRY(move_rows(l, node, 0, i, outer, width, at, step, 0, width));
    at += width;
  }
  return CLV_OK;
}

static clv_status lower_split(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *in = &node->inputs[0];
  const int32_t axis = clv__opencl_axis(clv__attribute_int(node->attributes, "axis", 0), in->rank);
  const int64_t outer = clv__dims_product(in, 0, axis), dim = in->dims[axis];
  const int64_t slice = clv__dims_product(in, axis + 1, in->rank);
  const clv__opencl_list sizes = clv__opencl_list_read(node, 13, "split", 1);
  const int64_t parts = (int64_t)node->output_count, equal = (dim + parts - 1) / parts;
  int64_t left = dim, at = 0;
  for (uint32_t i = 0; i < node->output_count; ++i) {
    const int64_t size = clv__opencl_list_get(&sizes, i, equal < left ? equal : left);
    if (clv__opencl_has_output(node, i)) {
      CLV__TRY(move_rows(l, node, i, 0, outer, size * slice, 0, size * slice, at, dim * slice));
    }
    at += size * slice;
    left -= size;
  }
  return CLV_OK;
}

static bool accepts_split(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return node->opset < 13 || clv__opencl_accepts_constant(node, 1, "split", reason);
}

/* ---- Slice --------------------------------------------------------------------------------------------------------------- */

static clv_status lower_slice(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *in = &node->inputs[0], *out = &node->outputs[0];
  int64_t strides[CLV_MAX_RANK];
  clv__opencl_block b = {.rank = in->rank};
  if (clv__opencl_is_empty(out)) return CLV_OK;
  clv__opencl_strides(in, strides);
  for (int32_t d = 0; d < in->rank; ++d) {
    b.dims[d] = out->dims[d];
    b.from[d] = strides[d];
  }
  const clv__opencl_list starts = clv__opencl_list_read(node, 10, "starts", 1), axes = clv__opencl_list_read(node, 10, "axes", 3);
  const clv__opencl_list steps = clv__opencl_list_read(node, 0, "", 4);
  for (size_t i = 0; i < starts.count; ++i) {
    const int32_t axis = clv__opencl_axis(clv__opencl_list_get(&axes, i, (int64_t)i), in->rank);
    const int64_t dim = in->dims[axis], step = clv__opencl_list_get(&steps, i, 1);
    int64_t start = clv__opencl_list_get(&starts, i, 0);
    if (start < 0) start += dim;
    if (start < 0) start = 0;
    if (start >= dim) start = dim - 1;
    b.from_first += start * strides[axis];
    b.from[axis] = out->dims[axis] == 1 ? 0 : strides[axis] * step;
  }
  clv__opencl_block_dense(&b);
  return clv__opencl_block_move(l, node, 0, 0, &b);
}

static bool accepts_slice(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  static const char *const names[] = {"starts", "ends", "axes", "steps"};
  for (uint32_t i = 1; node->opset >= 10 && i < 5; ++i) {
    if (!clv__opencl_accepts_constant(node, i, names[i - 1], reason)) return false;
  }
  return true;
}

/* ---- Expand, Tile -------------------------------------------------------------------------------------------------------- */

static clv_status lower_expand(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *in = &node->inputs[0], *out = &node->outputs[0];
  int64_t strides[CLV_MAX_RANK];
  const int32_t lead = out->rank - in->rank;
  clv__opencl_block b = {.rank = out->rank};
  clv__opencl_strides(in, strides);
  for (int32_t d = 0; d < out->rank; ++d) {
    b.dims[d] = out->dims[d];
    b.from[d] = d < lead || in->dims[d - lead] == 1 ? 0 : strides[d - lead];
  }
  clv__opencl_block_dense(&b);
  return clv__opencl_block_move(l, node, 0, 0, &b);
}

static clv_status lower_tile(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *in = &node->inputs[0], *out = &node->outputs[0];
  int64_t strides[CLV_MAX_RANK];
  clv__opencl_block b = {.rank = 2 * in->rank};
  if (clv__opencl_is_empty(out)) return CLV_OK;
  clv__opencl_strides(in, strides);
  for (int32_t d = 0; d < in->rank; ++d) {
    b.dims[2 * d] = out->dims[d] / in->dims[d];
    b.dims[2 * d + 1] = in->dims[d];
    b.from[2 * d + 1] = strides[d];
  }
  clv__opencl_block_dense(&b);
  return clv__opencl_block_move(l, node, 0, 0, &b);
}

static bool accepts_expand(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__tensor_is_static(&node->outputs[0]) || clv__opencl_accepts_constant(node, 1, "shape", reason);
}

static bool accepts_tile(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__opencl_accepts_constant(node, 1, "repeats", reason);
}

/* ---- Pad ----------------------------------------------------------------------------------------------------------------- */

/* The bits of the element with which mode "constant" pads. */
static int64_t pad_element(const clv__opencl_node *node) {
  const clv_dtype dtype = node->inputs[0].dtype;
  if (node->opset >= 11) {
    const bool given = clv__opencl_has_input(node, 2) && node->inputs[2].dtype == dtype && node->inputs[2].data != NULL &&
                       clv__opencl_count(&node->inputs[2]) > 0;
    return given ? clv__opencl_element_bits(&node->inputs[2]) : 0;
  }
  const float value = clv__attribute_float(node->attributes, "value", 0);
  int64_t bits = 0;
  const clv_tensor element = {.dtype = dtype, .data = &bits};
  clv__tensor_put(&element, 0, (double)value, (int64_t)value, value != 0);
  return bits;
}

static clv_status lower_pad(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *in = &node->inputs[0], *out = &node->outputs[0];
  int64_t before[CLV_MAX_RANK] = {0}, after[CLV_MAX_RANK] = {0}, strides[CLV_MAX_RANK];
  int64_t lead[CLV_MAX_RANK], cut[CLV_MAX_RANK], length[CLV_MAX_RANK];
  const clv__opencl_list axes = node->opset >= 18 ? clv__opencl_list_read(node, 0, "", 3) : (clv__opencl_list){0};
  const clv__opencl_list pads = clv__opencl_list_read(node, 11, "pads", 1);
  if (clv__opencl_is_empty(out)) return CLV_OK;
  for (size_t i = 0; i < pads.count / 2; ++i) {
    const int32_t axis = clv__opencl_axis(clv__opencl_list_get(&axes, i, (int64_t)i), in->rank);
    before[axis] = clv__opencl_list_get(&pads, i, 0);
    after[axis] = clv__opencl_list_get(&pads, pads.count / 2 + i, 0);
  }
  clv__opencl_strides(in, strides);
  for (int32_t d = 0; d < in->rank; ++d) {
    cut[d] = before[d] < 0 ? -before[d] : 0;
    lead[d] = before[d] > 0 ? before[d] : 0;
    length[d] = in->dims[d] - cut[d] + (after[d] < 0 ? after[d] : 0);
  }
  const uint32_t rank = (uint32_t)in->rank;
  clv__opencl_launch(l, "move", "pad");
  clv__opencl_define_dtype(l, "T", clv__opencl_bits(in->dtype));
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_index(l, clv__opencl_count(out));
  clv__opencl_pass_int(l, in->rank);
  clv__opencl_pass_dims(l, out->dims, rank);
  clv__opencl_pass_dims(l, strides, rank);
  clv__opencl_pass_dims(l, lead, rank);
  clv__opencl_pass_dims(l, cut, rank);
  clv__opencl_pass_dims(l, length, rank);
  clv__opencl_pass_int(l, clv__attribute_is(node->attributes, "mode", "reflect", false) ? 1
                          : clv__attribute_is(node->attributes, "mode", "edge", false)  ? 2
                          : clv__attribute_is(node->attributes, "mode", "wrap", false)  ? 3
                                                                                        : 0);
  clv__opencl_pass_long(l, pad_element(node));
  return clv__opencl_enqueue_1d(l, clv__opencl_count(out));
}

static bool accepts_pad(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  static const char *const names[] = {"pads", "constant_value", "axes"};
  for (uint32_t i = 1; node->opset >= 11 && i < 4; ++i) {
    if (!clv__opencl_accepts_constant(node, i, names[i - 1], reason)) return false;
  }
  return true;
}

/* ---- Dropout: nothing is dropped outside training ------------------------------------------------------------------------ */

static bool known_zero(const clv__opencl_node *node, uint32_t index) {
  const clv_tensor *t = &node->inputs[index];
  return clv__opencl_has_input(node, index) && t->data != NULL && clv__tensor_get(t, 0) == 0;
}

static bool accepts_dropout(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  if (!clv__opencl_has_input(node, 2) || known_zero(node, 2) || known_zero(node, 1)) return true;
  snprintf(reason, 160, "training_mode is not known to be false");
  return false;
}

static clv_status lower_dropout(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *x = &node->inputs[0];
  if (clv__opencl_is_empty(x)) return CLV_OK;
  if (clv__opencl_has_output(node, 0)) {
    CLV__TRY(clv__opencl_copy(l, CLV__OPENCL_OUTPUT, 0, 0, CLV__OPENCL_INPUT, 0, 0,
                              (uint64_t)clv__opencl_count(x) * clv_dtype_size_bytes(x->dtype)));
  }
  if (!clv__opencl_has_output(node, 1)) return CLV_OK;
  int64_t one = 0;
  const clv_tensor element = {.dtype = node->outputs[1].dtype, .data = &one};
  clv__tensor_put(&element, 0, 1, 1, true);
  clv__opencl_launch(l, "generate", "fill");
  clv__opencl_define_dtype(l, "T", clv__opencl_bits(element.dtype));
  clv__opencl_pass_output(l, 1);
  clv__opencl_pass_index(l, clv__opencl_count(x));
  clv__opencl_pass_long(l, one);
  return clv__opencl_enqueue_1d(l, clv__opencl_count(x));
}

const clv__opencl_operator clv__opencl_family_move[] = {
    {"", "Transpose", CLV__DTYPES_ANY, false, NULL, lower_transpose},
    {"", "DepthToSpace", CLV__DTYPES_ANY, false, NULL, lower_depth_to_space},
    {"", "SpaceToDepth", CLV__DTYPES_ANY, false, NULL, lower_space_to_depth},
    {"", "Concat", CLV__DTYPES_ANY, false, NULL, lower_concat},
    {"", "Split", CLV__DTYPES_ANY, false, accepts_split, lower_split},
    {"", "Slice", CLV__DTYPES_ANY, false, accepts_slice, lower_slice},
    {"", "Expand", CLV__DTYPES_ANY, false, accepts_expand, lower_expand},
    {"", "Tile", CLV__DTYPES_ANY, false, accepts_tile, lower_tile},
    {"", "Pad", CLV__DTYPES_ANY, false, accepts_pad, lower_pad},
    {"", "Dropout", CLV__DTYPES_FLOAT, false, accepts_dropout, lower_dropout},
    {NULL, NULL, 0, false, NULL, NULL},
};
