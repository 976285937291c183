/* MaxPool, AveragePool, LpPool, GlobalLpPool. */
#include <stdio.h>

#include "list.h"
#include "operators/common/window.h"

enum { AXES = 3 };

typedef struct pool {
  int64_t input[AXES], output[AXES], kernel[AXES], stride[AXES], dilation[AXES], pad[AXES], counted_end[AXES];
} pool;

static clv_status launch(clv__opencl_lowering *l, const clv__opencl_node *node, const pool *p) {
  const clv_tensor *x = &node->inputs[0];
  const bool largest = node->op[0] == 'M', average = node->op[0] == 'A';
  const bool has_indices = largest && clv__opencl_has_output(node, 1);
  const int64_t count = clv__opencl_count(&node->outputs[0]);
  clv__opencl_launch(l, "pool", "pool");
  clv__opencl_define_dtype(l, "T", x->dtype);
  clv__opencl_define(l, "KIND", "%d", largest ? 0 : average ? 1 : 2);
  clv__opencl_define(l, "LOWEST", "%s", x->dtype == CLV_I8 ? "-128" : x->dtype == CLV_U8 ? "0" : "(-(real)INFINITY)");
  clv__opencl_pass_output(l, 0);
  clv__opencl_pass_input(l, 0);
  clv__opencl_pass_output(l, has_indices ? 1 : 0);
  clv__opencl_pass_index(l, count);
  clv__opencl_pass_dims(l, p->input, AXES);
  clv__opencl_pass_dims(l, p->output, AXES);
  clv__opencl_pass_dims(l, p->kernel, AXES);
  clv__opencl_pass_dims(l, p->stride, AXES);
  clv__opencl_pass_dims(l, p->dilation, AXES);
  clv__opencl_pass_dims(l, p->pad, AXES);
  clv__opencl_pass_dims(l, p->counted_end, AXES);
  clv__opencl_pass_int(l, clv__attribute_int(node->attributes, "count_include_pad", 0) != 0);
  clv__opencl_pass_int(l, (int32_t)clv__attribute_int(node->attributes, "p", 2));
  clv__opencl_pass_int(l, has_indices);
  clv__opencl_pass_int(l, clv__attribute_int(node->attributes, "storage_order", 0) == 1);
  clv__opencl_pass_posts(l);
  return clv__opencl_enqueue_1d(l, count);
}

static clv_status lower_pool(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  const clv_tensor *x = &node->inputs[0];
  clv__window w;
  pool p;
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  CLV__TRY(clv__window_read(node->attributes, x->rank - 2, NULL, &w, error));
  CLV__TRY(clv__window_resolve(&w, x->dims + 2, error));
  for (int32_t i = 0; i < AXES; ++i) {
    const int32_t j = i - (AXES - w.spatial);
    const bool is = j >= 0;
    p.input[i] = is ? w.input[j] : 1;
    p.output[i] = is ? w.output[j] : 1;
    p.kernel[i] = is ? w.kernel[j] : 1;
    p.stride[i] = is ? w.stride[j] : 1;
    p.dilation[i] = is ? w.dilation[j] : 1;
    p.pad[i] = is ? w.pad_begin[j] : 0;
    p.counted_end[i] = p.input[i] + (is ? w.pad_end[j] : 0);
  }
  return launch(l, node, &p);
}

/* Pools the whole plane as one window. */
static clv_status lower_global(clv__opencl_lowering *l, const clv__opencl_node *node, clv_error *error) {
  (void)error;
  const clv_tensor *x = &node->inputs[0];
  if (clv__opencl_is_empty(&node->outputs[0])) return CLV_OK;
  const int64_t plane = clv__dims_product(x, 2, x->rank);
  const pool p = {.input = {1, 1, plane},
                  .output = {1, 1, 1},
                  .kernel = {1, 1, plane},
                  .stride = {1, 1, 1},
                  .dilation = {1, 1, 1},
                  .counted_end = {1, 1, plane}};
  return launch(l, node, &p);
}

static bool accepts_pool(const clv__opencl_traits *traits, const clv__opencl_node *node, char reason[160]) {
  (void)traits;
  const int32_t rank = node->inputs[0].rank;
  if (rank >= 3 && rank <= 2 + AXES) return true;
  if (rank == CLV_RANK_UNKNOWN)
    snprintf(reason, 160, "unknown rank");
  else
    snprintf(reason, 160, "rank %d (1 to %d spatial axes are supported)", (int)rank, AXES);
  return false;
}

#define MAX_DTYPES (CLV__DTYPES_FLOAT | CLV__DTYPE_BIT(CLV_I8) | CLV__DTYPE_BIT(CLV_U8))

const clv__opencl_operator clv__opencl_family_pool[] = {
    {"", "MaxPool", MAX_DTYPES, true, accepts_pool, lower_pool},
    {"", "AveragePool", CLV__DTYPES_FLOAT, true, accepts_pool, lower_pool},
    {"", "LpPool", CLV__DTYPES_FLOAT, true, accepts_pool, lower_pool},
    {"", "GlobalLpPool", CLV__DTYPES_FLOAT, true, NULL, lower_global},
    {NULL, NULL, 0, false, NULL, NULL},
};
