/* Conv and ConvTranspose, as products whose right operand is read through tables (see product.cl). A transposed convolution of
 * stride s splits into s phases per axis. Each phase uses some of the taps, with stride 1. */
#include <stddef.h>
#include <stdio.h>

#include "list.h"
#include "operators/common/window_axis.h"
#include "product.h"

enum { AXES = 3 };

typedef clv__window_axis axis;

typedef struct conv {
  const clv__opencl_node *node;
  int64_t images, groups, in_channels, out_channels; /* in_channels and out_channels are numbers per group */
  int64_t kernel_volume, input_plane, output_plane;
  bool transposed, has_bias;
  axis axes[AXES];
} conv;

/* ---- Tables ---- */

/* Builds two tables with an entry for each k, which is a tap in one input channel. An entry of `taps` has four numbers: the
 * distance in elements from the base of a column (see column_t in product.cl) to the input element that the tap reads, and its
 * distance along each of the three axes. An entry of `places` is the position of the tap's weight. */
static clv_status make_tables(clv__opencl_lowering *l, const conv *c, int64_t depth, uint32_t *taps, uint32_t *places,
                              clv_error *error) {
  clv__arena *arena = clv__opencl_lowering_arena(l);
  const axis *a = c->axes;
  int32_t *tap = clv__arena_allocate_zero(arena, (size_t)(depth > 0 ? depth : 1), 4 * sizeof *tap);
  int32_t *place = clv__arena_allocate_zero(arena, (size_t)(depth > 0 ? depth : 1), sizeof *place);
  if (tap == NULL || place == NULL) return clv__error_memory(error, (size_t)depth * 20);
  for (int64_t k = 0; k < depth; ++k) {
    int64_t rest = k, at[AXES], weight = 0, step = 1;
    for (int i = AXES - 1; i >= 0; --i) {
      const int64_t t = rest % a[i].taps;
      rest /= a[i].taps;
      at[i] = a[i].offset_first + t * a[i].offset_step;
      weight += (a[i].kernel_first + t * a[i].kernel_step) * step;
      step *= a[i].kernel;
    }
    const int64_t offset = rest * c->input_plane + (at[0] * a[1].input + at[1]) * a[2].input + at[2];
    weight += rest * (c->transposed ? c->out_channels : 1) * c->kernel_volume;
    if (offset > INT32_MAX || offset < INT32_MIN || weight > INT32_MAX || at[0] > INT32_MAX || at[1] > INT32_MAX ||
        at[2] > INT32_MAX || at[0] < INT32_MIN || at[1] < INT32_MIN || at[2] < INT32_MIN) {
      return clv__error_set(error, CLV_NOT_SUPPORTED,
                            "input, weight or dilations are too large: a position does not fit 32 bits");
    }
    tap[4 * k] = (int32_t)offset;
    for (int i = 0; i < AXES; ++i) tap[4 * k + 1 + i] = (int32_t)at[i];
    place[k] = (int32_t)weight;
  }
  *taps = clv__opencl_table(l, tap, (uint64_t)(depth > 0 ? depth : 1) * 4 * sizeof *tap);
  *places = clv__opencl_table(l, place, (uint64_t)(depth > 0 ? depth : 1) * sizeof *place);
  return CLV_OK;
}

/* ---- Launches ---- */

static void pass_axes(clv__opencl_lowering *l, const axis *a, size_t member) {
  int64_t values[AXES];
  for (int i = 0; i < AXES; ++i) memcpy(&values[i], (const char *)&a[i] + member, sizeof values[i]);
  clv__opencl_pass_dims(l, values, AXES);
}

static clv_status launch(clv__opencl_lowering *l, const conv *c, clv_error *error) {
  const axis *a = c->axes;
  int64_t depth = c->in_channels;
  for (int i = 0; i < AXES; ++i) depth *= a[i].taps;
  const int64_t columns = a[0].count * a[1].count * a[2].count;
  if (columns == 0) return CLV_OK;
  const clv__opencl_product p = {.dtype = c->node->inputs[0].dtype,
                                 .batches = c->images * c->groups,
                                 .rows = c->out_channels,
                                 .columns = columns,
                                 .depth = depth,
                                 .is_convolution = true,
                                 .row = a[2].count,
                                 .weights_scattered = c->transposed};
  uint32_t taps, places;
  CLV__TRY(make_tables(l, c, depth, &taps, &places, error));
  const clv__opencl_product_launch how = clv__opencl_product_choose(l, &p);
  clv__opencl_product_begin(l, &p, &how);
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_input(l, 1);
  clv__opencl_pass_input(l, c->has_bias ? 2 : 1);
  clv__opencl_pass_table(l, taps);
  clv__opencl_pass_table(l, places);
  clv__opencl_pass_index(l, p.rows);
  clv__opencl_pass_index(l, columns);
  clv__opencl_pass_index(l, depth);
  clv__opencl_pass_index(l, (c->transposed ? 1 : c->in_channels) * c->kernel_volume);
  clv__opencl_pass_index(l, c->in_channels * c->out_channels * c->kernel_volume);
  clv__opencl_pass_index(l, c->groups);
  clv__opencl_pass_index(l, c->groups * c->in_channels * c->input_plane);
  clv__opencl_pass_index(l, c->in_channels * c->input_plane);
  clv__opencl_pass_index(l, c->output_plane);
  pass_axes(l, a, offsetof(axis, count));
  pass_axes(l, a, offsetof(axis, input));
  pass_axes(l, a, offsetof(axis, input_step));
  pass_axes(l, a, offsetof(axis, output_first));
  pass_axes(l, a, offsetof(axis, output_step));
  pass_axes(l, a, offsetof(axis, output));
  clv__opencl_pass_int(l, c->has_bias);
  return clv__opencl_product_end(l, &how);
}

/* If the convolution is pointwise, flattens its planes to single rows. */
static void flatten(conv *c) {
  for (int i = 0; i < AXES; ++i) {
    const axis *a = &c->axes[i];
    if (a->taps != 1 || a->input_step != 1 || a->offset_first != 0 || a->input != a->output || a->output_step != 1) return;
  }
  for (int i = 0; i < AXES - 1; ++i) c->axes[i].count = c->axes[i].input = c->axes[i].output = 1;
  c->axes[AXES - 1].count = c->axes[AXES - 1].input = c->axes[AXES - 1].output = c->input_plane;
}

static clv_status read(const clv__opencl_node *node, conv *c, clv__window *w, clv_error *error) {
  const clv_tensor *x = &node->inputs[0], *weight = &node->inputs[1];
  *c = (conv){.node = node, .transposed = strcmp(node->op, "ConvTranspose") == 0, .has_bias = clv__opencl_has_input(node, 2)};
  CLV__TRY(clv__window_read(node->attributes, x->rank - 2, weight->dims + 2, w, error));
  if (c->transposed) {
    CLV__TRY(clv__window_resolve_transposed(node->attributes, w, x->dims + 2, error));
  } else {
    CLV__TRY(clv__window_resolve(w, x->dims + 2, error));
  }
  c->images = x->dims[0];
  c->groups = clv__attribute_int(node->attributes, "group", 1);
  c->in_channels = x->dims[1] / c->groups;
  c->out_channels = c->transposed ? weight->dims[1] : weight->dims[0] / c->groups;
  c->kernel_volume = clv__dims_product(weight, 2, weight->rank);
  c->input_plane = clv__dims_product(x, 2, x->rank);
  c->output_plane = clv__dims_product(&node->outputs[0], 2, node->outputs[0].rank);
  return CLV_OK;
}

static clv_status lower_conv(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  conv c;
  clv__window w;
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  CLV__TRY(read(node, &c, &w, error));
  const int32_t lead = AXES - w.spatial;
  int64_t phases[AXES], limits[AXES];
  for (int i = 0; i < AXES; ++i) {
    c.axes[i] = i < lead ? CLV__WINDOW_AXIS_NONE : clv__window_axis_forward(&w, i - lead);
    limits[i] = i < lead ? 1 : w.stride[i - lead] < w.output[i - lead] ? w.stride[i - lead] : w.output[i - lead];
  }
  if (!c.transposed) {
    flatten(&c);
    return launch(l, &c, error);
  }
  for (phases[0] = 0; phases[0] < limits[0]; ++phases[0]) {
    for (phases[1] = 0; phases[1] < limits[1]; ++phases[1]) {
      for (phases[2] = 0; phases[2] < limits[2]; ++phases[2]) {
        for (int i = lead; i < AXES; ++i) c.axes[i] = clv__window_axis_phase(&w, i - lead, phases[i]);
        CLV__TRY(launch(l, &c, error));
      }
    }
  }
  return CLV_OK;
}

static bool accepts_conv(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const int32_t rank = node->inputs[0].rank;
  const clv__attributes attributes = node->attributes;
  if (rank == CLV_RANK_UNKNOWN) {
    snprintf(reason, 160, "unknown rank");
    return false;
  }
  if (rank < 3 || rank > 2 + AXES) {
    snprintf(reason, 160, "rank %d (1 to %d spatial axes are supported)", (int)rank, AXES);
    return false;
  }
  size_t count;
  const int64_t *strides = clv__attribute_ints(attributes, "strides", &count);
  int64_t phases = 1;
  for (size_t i = 0; node->op[4] != '\0' && strides != NULL && i < count; ++i) {
    phases = strides[i] > 64 || strides[i] < 1 ? 65 : phases * strides[i];
    if (phases <= 64) continue;
    snprintf(reason, 160, "strides whose product is not from 1 to 64 (stride %lld)", (long long)strides[i]);
    return false;
  }
  return true;
}

const clv__opencl_operator clv__opencl_family_conv[] = {
    {"", "Conv", CLV__DTYPES_FLOAT, true, accepts_conv, lower_conv},
    {"", "ConvTranspose", CLV__DTYPES_FLOAT, false, accepts_conv, lower_conv},
    {NULL, NULL, 0, false, NULL, NULL},
};
