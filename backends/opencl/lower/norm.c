/* Normalisations: Batch, Layer, RMS, Instance, Group, MeanVariance, Lp, and LRN. */
#include <stdio.h>

#include "fold.h"
#include "list.h"

/* ---- BatchNormalization ---- */

static clv_status lower_batch(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *x = &node->inputs[0];
  if (clv__opencl_is_empty(x)) return CLV_OK;
  const int64_t channels = x->rank > 1 ? x->dims[1] : 1, plane = clv__dims_product(x, 2, x->rank);
  const int64_t planes = (x->rank > 0 ? x->dims[0] : 1) * channels;
  clv__opencl_launch(l, "norm", "batch");
  clv__opencl_define_dtype(l, "T", x->dtype);
  clv__opencl_define_dtype(l, "TS", node->inputs[1].dtype);
  clv__opencl_define_dtype(l, "TM", node->inputs[3].dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  clv__opencl_pass_output(l, 0);
  for (uint32_t i = 0; i < 5; ++i) clv__opencl_pass_input(l, i);
  clv__opencl_pass_float(l, clv__attribute_float(node->attributes, "epsilon", 1e-5f));
  clv__opencl_pass_index(l, planes);
  clv__opencl_pass_index(l, plane);
  clv__opencl_pass_index(l, channels);
  const int64_t each = clv__opencl_each(l), items = (plane + each - 1) / each;
  clv__opencl_pass_index(l, each);
  clv__opencl_pass_posts(l);
  if (plane < 16) return clv__opencl_enqueue(l, 2, (int64_t[]){items, planes}, (int64_t[]){1, 64});
  return clv__opencl_enqueue(l, 2, (int64_t[]){items, planes}, (int64_t[]){each > 1 ? 1 : 64, 1});
}

static bool accepts_batch(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  if (clv__attribute_int(node->attributes, "training_mode", 0) != 0) {
    snprintf(reason, 160, "training_mode is not supported");
    return false;
  }
  if (clv__attribute_int(node->attributes, "spatial", 1) == 0) {
    snprintf(reason, 160, "spatial 0 (statistics for every activation) is not supported");
    return false;
  }
  for (uint32_t i = 1; i < node->output_count; ++i) {
    if (!clv__opencl_has_output(node, i)) continue;
    snprintf(reason, 160, "output %u exists only in training", (unsigned)i);
    return false;
  }
  for (uint32_t i = 1; i < 5; ++i) {
    if (!clv__opencl_accepts_dtype(node, i, CLV__DTYPES_FLOAT, reason)) return false;
  }
  return true;
}

/* ---- LayerNormalization, RMSNormalization ---- */

/* Whether the dims of `t`, without leading dims of 1, are the trailing dims of `x`. 1: yes; 0: no; -1: not known. */
static int is_trailing(const clv_tensor *t, const clv_tensor *x) {
  if (t->rank == CLV_RANK_UNKNOWN || x->rank == CLV_RANK_UNKNOWN) return -1;
  int32_t first = 0;
  while (first < t->rank && t->dims[first] == 1) ++first;
  for (int32_t i = first; i < t->rank; ++i) {
    const int64_t own = t->dims[i], its = x->dims[x->rank - t->rank + i];
    if (own < 0 || its < 0) return -1;
    if (own != its) return 0;
  }
  return 1;
}

/* Launches the kernel for CPUs. Scale and bias must have as many elements as a row. The kernel does not output the mean and the
 * inverse deviation. */
static clv_status launch_layer_wide(clv__opencl_lowering *l, const clv__opencl_node *node, int64_t rows, int64_t count) {
  const bool has_bias = clv__opencl_has_input(node, 2);
  clv__opencl_launch(l, "norm", "layer_wide");
  clv__opencl_define_dtype(l, "T", node->inputs[0].dtype);
  clv__opencl_define_dtype(l, "TS", node->inputs[1].dtype);
  clv__opencl_define_dtype(l, "TM", node->inputs[0].dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  clv__opencl_define(l, "VECTORS", "1");
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_input(l, 1);
  clv__opencl_pass_input(l, has_bias ? 2 : 1);
  clv__opencl_pass_index(l, rows);
  clv__opencl_pass_index(l, count);
  clv__opencl_pass_float(l, clv__attribute_float(node->attributes, "epsilon", 1e-5f));
  clv__opencl_pass_int(l, node->op[0] == 'L');
  clv__opencl_pass_int(l, has_bias);
  clv__opencl_pass_posts(l);
  return clv__opencl_enqueue(l, 1, &rows, (int64_t[]){1});
}

static clv_status lower_layer(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *x = &node->inputs[0], *scale = &node->inputs[1];
  const bool has_bias = clv__opencl_has_input(node, 2);
  const bool has_means = node->op[0] == 'L' && clv__opencl_has_output(node, 1), has_inverses = clv__opencl_has_output(node, 2);
  const int32_t axis = clv__opencl_axis(clv__attribute_int(node->attributes, "axis", -1), x->rank);
  const int64_t rows = clv__dims_product(x, 0, axis), count = clv__dims_product(x, axis, x->rank);
  const uint32_t statistic = has_means ? 1 : 2;
  if (clv__opencl_is_empty(x)) return CLV_OK;
  const bool as_long = clv__opencl_count(scale) == count && (!has_bias || clv__opencl_count(&node->inputs[2]) == count);
  if (as_long && !has_means && !has_inverses && clv__opencl_is_wide(l, x->dtype)) return launch_layer_wide(l, node, rows, count);
  clv__opencl_launch(l, "norm", "layer");
  clv__opencl_define_dtype(l, "T", x->dtype);
  clv__opencl_define_dtype(l, "TS", scale->dtype);
  clv__opencl_define_dtype(l, "TM", has_means || has_inverses ? node->outputs[statistic].dtype : x->dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_input(l, 1);
  clv__opencl_pass_input(l, has_bias ? 2 : 1);
  clv__opencl_pass_output(l, has_means ? 1 : 0);
  clv__opencl_pass_output(l, has_inverses ? 2 : 0);
  clv__opencl_pass_index(l, count);
  clv__opencl_pass_index(l, clv__opencl_count(scale));
  clv__opencl_pass_index(l, has_bias ? clv__opencl_count(&node->inputs[2]) : 1);
  clv__opencl_pass_float(l, clv__attribute_float(node->attributes, "epsilon", 1e-5f));
  clv__opencl_pass_int(l, node->op[0] == 'L');
  clv__opencl_pass_int(l, has_bias);
  clv__opencl_pass_int(l, has_means);
  clv__opencl_pass_int(l, has_inverses);
  clv__opencl_pass_posts(l);
  const int64_t group = clv__opencl_group(l);
  return clv__opencl_enqueue(l, 1, (int64_t[]){rows * group}, (int64_t[]){group});
}

static bool accepts_layer(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  for (uint32_t i = 1; i < 3; ++i) {
    if (!clv__opencl_has_input(node, i)) continue;
    if (is_trailing(&node->inputs[i], &node->inputs[0]) != 1) {
      snprintf(reason, 160, "input %u is not known to have the trailing dims of input 0", (unsigned)i);
      return false;
    }
    if (node->inputs[i].dtype != node->inputs[1].dtype) {
      snprintf(reason, 160, "bias of dtype %s with a scale of %s", clv_dtype_name(node->inputs[i].dtype),
               clv_dtype_name(node->inputs[1].dtype));
      return false;
    }
  }
  if (node->op[0] != 'L' && (clv__opencl_has_output(node, 1) || clv__opencl_has_output(node, 2))) {
    snprintf(reason, 160, "the statistics output of RMSNormalization is not supported");
    return false;
  }
  return clv__opencl_accepts_dtype(node, 1, CLV__DTYPES_FLOAT, reason);
}

/* ---- InstanceNormalization, GroupNormalization ---- */

static clv_status lower_groups(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *x = &node->inputs[0];
  const bool instance = node->op[0] == 'I';
  if (clv__opencl_is_empty(x)) return CLV_OK;
  const int64_t groups = instance ? x->dims[1] : clv__attribute_int(node->attributes, "num_groups", 1);
  const bool wide = clv__opencl_is_wide(l, x->dtype);
  const int64_t parts = x->dims[0] * groups;
  clv__opencl_launch(l, "norm", wide ? "groups_wide" : "groups");
  if (wide) clv__opencl_define(l, "VECTORS", "1");
  clv__opencl_define_dtype(l, "T", x->dtype);
  clv__opencl_define_dtype(l, "TS", node->inputs[1].dtype);
  clv__opencl_define_dtype(l, "TM", x->dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  clv__opencl_pass_output(l, 0);
  for (uint32_t i = 0; i < 3; ++i) clv__opencl_pass_input(l, i);
  clv__opencl_pass_float(l, clv__attribute_float(node->attributes, "epsilon", 1e-5f));
  if (wide) clv__opencl_pass_index(l, parts);
  clv__opencl_pass_index(l, groups);
  clv__opencl_pass_index(l, x->dims[1] / groups);
  clv__opencl_pass_index(l, clv__dims_product(x, 2, x->rank));
  clv__opencl_pass_int(l, !instance && node->opset < 21);
  clv__opencl_pass_posts(l);
  if (wide) return clv__opencl_enqueue(l, 1, &parts, (int64_t[]){1});
  const int64_t group = clv__opencl_group(l);
  return clv__opencl_enqueue(l, 1, (int64_t[]){parts * group}, (int64_t[]){group});
}

static bool accepts_groups(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  return clv__opencl_accepts_dtype(node, 1, CLV__DTYPES_FLOAT, reason) &&
         clv__opencl_accepts_dtype(node, 2, CLV__DTYPE_BIT(node->inputs[1].dtype), reason);
}

/* ---- MeanVarianceNormalization, LpNormalization, LRN ---- */

static clv_status lower_deviations(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  static const int64_t usual[] = {0, 2, 3};
  const clv_tensor *x = &node->inputs[0];
  size_t count;
  const int64_t *list = clv__attribute_ints(node->attributes, "axes", &count);
  uint32_t axes = 0;
  if (clv__opencl_is_empty(x)) return CLV_OK;
  if (list == NULL || count == 0) list = usual, count = 3;
  for (size_t i = 0; i < count; ++i) {
    const int32_t axis = clv__opencl_axis(list[i], x->rank);
    if (axis >= 0 && axis < x->rank) axes |= 1u << axis;
  }
  clv__opencl_fold fold;
  clv__opencl_fold_make(x, axes, &fold);
  clv__opencl_launch(l, "norm", "deviations");
  clv__opencl_define_dtype(l, "T", x->dtype);
  clv__opencl_define_dtype(l, "TS", x->dtype);
  clv__opencl_define_dtype(l, "TM", x->dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_axes(l, &fold.kept);
  clv__opencl_pass_index(l, fold.folded.count);
  clv__opencl_pass_axes(l, &fold.folded);
  const int64_t group = clv__opencl_group(l);
  return clv__opencl_enqueue(l, 1, (int64_t[]){fold.kept.count * group}, (int64_t[]){group});
}

static clv_status lower_lp(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *x = &node->inputs[0];
  const int32_t axis = clv__opencl_axis(clv__attribute_int(node->attributes, "axis", -1), x->rank);
  if (clv__opencl_is_empty(x)) return CLV_OK;
  const int64_t inner = clv__dims_product(x, axis + 1, x->rank), lines = clv__dims_product(x, 0, axis) * inner;
  clv__opencl_launch(l, "norm", "lp");
  clv__opencl_define_dtype(l, "T", x->dtype);
  clv__opencl_define_dtype(l, "TS", x->dtype);
  clv__opencl_define_dtype(l, "TM", x->dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_index(l, lines);
  clv__opencl_pass_index(l, x->dims[axis]);
  clv__opencl_pass_index(l, inner);
  clv__opencl_pass_int(l, clv__attribute_int(node->attributes, "p", 2) == 1 ? 1 : 2);
  return clv__opencl_enqueue_1d(l, lines);
}

static clv_status lower_lrn(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *x = &node->inputs[0];
  const int64_t size = clv__attribute_int(node->attributes, "size", 1);
  if (clv__opencl_is_empty(x)) return CLV_OK;
  clv__opencl_launch(l, "norm", "lrn");
  clv__opencl_define_dtype(l, "T", x->dtype);
  clv__opencl_define_dtype(l, "TS", x->dtype);
  clv__opencl_define_dtype(l, "TM", x->dtype);
  clv__opencl_define(l, "GROUP", "%u", clv__opencl_group(l));
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_index(l, clv__opencl_count(x));
  clv__opencl_pass_index(l, x->dims[1]);
  clv__opencl_pass_index(l, clv__dims_product(x, 2, x->rank));
  clv__opencl_pass_int(l, (int32_t)size);
  clv__opencl_pass_float(l, clv__attribute_float(node->attributes, "alpha", 1e-4f));
  clv__opencl_pass_float(l, clv__attribute_float(node->attributes, "beta", 0.75f));
  clv__opencl_pass_float(l, clv__attribute_float(node->attributes, "bias", 1.0f));
  clv__opencl_pass_posts(l);
  return clv__opencl_enqueue_1d(l, clv__opencl_count(x));
}

static bool accepts_lrn(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const int64_t size = clv__attribute_int(node->attributes, "size", 1);
  if (size >= 1 && size <= 1 << 20) return true;
  snprintf(reason, 160, "size %lld is not from 1 to 2^20", (long long)size);
  return false;
}

const clv__opencl_operator clv__opencl_family_norm[] = {
    {"", "BatchNormalization", CLV__DTYPES_FLOAT, true, accepts_batch, lower_batch},
    {"", "InstanceNormalization", CLV__DTYPES_FLOAT, true, accepts_groups, lower_groups},
    {"", "GroupNormalization", CLV__DTYPES_FLOAT, true, accepts_groups, lower_groups},
    {"", "LayerNormalization", CLV__DTYPES_FLOAT, true, accepts_layer, lower_layer},
    {"", "RMSNormalization", CLV__DTYPES_FLOAT, true, accepts_layer, lower_layer},
    {"", "MeanVarianceNormalization", CLV__DTYPES_FLOAT, false, NULL, lower_deviations},
    {"", "LpNormalization", CLV__DTYPES_FLOAT, false, NULL, lower_lp},
    {"", "LRN", CLV__DTYPES_FLOAT, true, accepts_lrn, lower_lrn},
    {NULL, NULL, 0, false, NULL, NULL},
};
