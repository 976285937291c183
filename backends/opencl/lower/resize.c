/* Resize and Upsample: one axis after another, the last first. Each axis has tables of the input positions (and weights) that an
 * output position reads. The tables are those of the reference kernel (operators/common/resize.h). */
#include "operators/common/resize.h"

#include <stdio.h>

#include "list.h"

/* The tables of one axis, as its kernels read them: `taps` positions and weights per output position. */
typedef struct tables {
  int32_t *places;
  float *weights;
  size_t entries;
} tables;

static clv_status fill_tables(const clv__resize *r, const clv__resize_axis *a, clv__arena *arena, tables *t, clv_error *error) {
  const size_t taps = (size_t)a->taps;
  *t = (tables){0};
  if (!clv__multiply((size_t)a->output, taps, &t->entries)) return clv__error_memory(error, SIZE_MAX);
  t->places = clv__arena_allocate_zero(arena, t->entries, sizeof *t->places);
  t->weights = clv__arena_allocate_zero(arena, t->entries, sizeof *t->weights);
  int64_t *positions = clv__arena_allocate_zero(arena, taps, sizeof *positions);
  double *weights = clv__arena_allocate_zero(arena, taps, sizeof *weights);
  if (t->places == NULL || t->weights == NULL || positions == NULL || weights == NULL) {
    return clv__error_memory(error, t->entries * 8);
  }
  for (int64_t o = 0; o < a->output; ++o) {
    clv__resize_taps(r, a, o, positions, weights);
    for (size_t k = 0; k < taps; ++k) {
      t->places[(size_t)o * taps + k] = (int32_t)positions[k];
      t->weights[(size_t)o * taps + k] = (float)weights[k];
    }
  }
  return CLV_OK;
}

/* ---- Launches ---- */

/* A stage resizes one axis. The first stage reads the node's input, and the last one writes its output. Between stages the values
 * are in scratch. */
typedef struct stage {
  bool first, last;
  uint32_t from, to; /* indices of the scratch that the stage reads and writes, unless it is the first or last */
  clv_dtype from_dtype, to_dtype;
  int64_t before, after; /* elements before and after the axis */
} stage;

static void pass_ends(clv__opencl_lowering *l, const stage *s) {
  if (s->last)
    clv__opencl_pass_output(l, 0);
  else
    clv__opencl_pass_scratch(l, s->to);
  if (s->first)
    clv__opencl_pass_input(l, 0);
  else
    clv__opencl_pass_scratch(l, s->from);
}

static clv_status launch(clv__opencl_lowering *l, const clv__opencl_node *node, const clv__resize *r, const clv__resize_axis *a,
                         const stage *s, clv_error *error) {
  const int64_t count = s->before * a->output * s->after;
  tables t;
  CLV__TRY(fill_tables(r, a, clv__opencl_lowering_arena(l), &t, error));
  const uint32_t place_table = clv__opencl_table(l, t.places, t.entries * sizeof *t.places);
  const bool picks = r->mode == CLV__RESIZE_NEAREST;
  const uint32_t weight_table = picks ? 0 : clv__opencl_table(l, t.weights, t.entries * sizeof *t.weights);
  clv__opencl_launch(l, "resize", picks ? "pick" : "blend");
  clv__opencl_define_dtype(l, "T", picks ? clv__opencl_bits(s->to_dtype) : s->to_dtype);
  if (!picks) clv__opencl_define_dtype(l, "X", s->from_dtype);
  pass_ends(l, s);
  clv__opencl_pass_table(l, place_table);
  if (!picks) clv__opencl_pass_table(l, weight_table);
  clv__opencl_pass_index(l, count);
  clv__opencl_pass_index(l, a->input);
  clv__opencl_pass_index(l, a->output);
  clv__opencl_pass_index(l, s->after);
  if (picks) {
    int64_t bits = 0;
    const clv_tensor element = {.dtype = node->inputs[0].dtype, .data = &bits};
    clv__tensor_put(&element, 0, r->extrapolation, (int64_t)r->extrapolation, r->extrapolation != 0);
    clv__opencl_pass_long(l, bits);
  } else {
    clv__opencl_pass_int(l, (int32_t)a->taps);
    clv__opencl_pass_float(l, (float)r->extrapolation);
  }
  return clv__opencl_enqueue_1d(l, count);
}

static clv_status lower_resize(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  const clv_tensor *x = &node->inputs[0];
  const clv__resize_node what = {.op = node->op,
                                 .opset = node->opset,
                                 .attributes = node->attributes,
                                 .inputs = node->inputs,
                                 .input_count = node->input_count,
                                 .output = &node->outputs[0]};
  clv__resize r;
  int32_t left = 0;
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  CLV__TRY(clv__resize_read(&what, &r, error));
  for (int32_t i = 0; i < r.rank; ++i) left += !r.axes[i].identity;
  if (left == 0) {
    return clv__opencl_copy(l, CLV__OPENCL_OUTPUT, 0, 0, CLV__OPENCL_INPUT, 0, 0,
                            (uint64_t)clv__opencl_count(x) * clv_dtype_size_bytes(x->dtype));
  }
  const clv_dtype between = r.mode == CLV__RESIZE_NEAREST ? x->dtype : CLV_F32;
  stage s = {.first = true, .before = clv__opencl_count(x), .after = 1, .from_dtype = x->dtype};
  for (int32_t i = r.rank - 1; i >= 0; --i) {
    const clv__resize_axis *a = &r.axes[i];
    s.before /= a->input;
    if (!a->identity) {
      s.last = --left == 0;
      s.to_dtype = s.last ? x->dtype : between;
      if (!s.last) s.to = clv__opencl_scratch(l, (uint64_t)(s.before * a->output * s.after) * clv_dtype_size_bytes(between));
      CLV__TRY(launch(l, node, &r, a, &s, error));
      s.first = false;
      s.from = s.to;
      s.from_dtype = between;
    }
    s.after *= a->output;
  }
  return CLV_OK;
}

/* Accepts only mode nearest for integers. The other modes interpolate in f32, and could round a result that is halfway between
 * two integers to the wrong one. */
static bool accepts_resize(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const bool picks = clv__attribute_is(node->attributes, "mode", "nearest", true);
  const clv_dtype dtype = node->inputs[0].dtype;
  if (!picks && dtype != CLV_F32 && dtype != CLV_F16 && dtype != CLV_BF16) {
    snprintf(reason, 160, "dtype %s with a mode other than nearest", clv_dtype_name(dtype));
    return false;
  }
  if (picks && clv__attribute_int(node->attributes, "antialias", 0) != 0) {
    snprintf(reason, 160, "antialias cannot be used with mode nearest");
    return false;
  }
  for (uint32_t i = 1; i < node->input_count; ++i) {
    if (!clv__opencl_accepts_constant(node, i, "roi, scales or sizes", reason)) return false;
  }
  return true;
}

const clv__opencl_operator clv__opencl_family_resize[] = {
    {"", "Resize", CLV__DTYPES_ANY, false, accepts_resize, lower_resize},
    {"", "Upsample", CLV__DTYPES_ANY, false, accepts_resize, lower_resize},
    {NULL, NULL, 0, false, NULL, NULL},
};
