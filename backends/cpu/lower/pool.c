/* Lowers pooling nodes. They run in the layout of their input, or with channels last if that is much faster. */
#include "lower.h"
#include "window.h"

static bool describe(const clv__cpu_variant_node *node, const clv_tensor *from, const clv_tensor *to, clv__dnn_pool *kind,
                     clv__dnn_window *window) {
  const clv__attributes attributes = node->source->attributes;
  const char *op = node->source->op;
  const bool global = strncmp(op, "Global", 6) == 0;
  const bool max = strcmp(op, "MaxPool") == 0 || strcmp(op, "GlobalMaxPool") == 0;
  const bool padded = clv__attribute_int(attributes, "count_include_pad", 0) != 0;
  *kind = max ? CLV__DNN_POOL_MAX : padded ? CLV__DNN_POOL_AVERAGE_PADDED : CLV__DNN_POOL_AVERAGE;
  memset(window, 0, sizeof *window);
  window->count = from->rank - 2;
  if (global) {
    for (int32_t i = 0; i < window->count; ++i) {
      window->kernel[i] = from->dims[i + 2];
      window->stride[i] = window->dilation[i] = 1;
    }
    return true;
  }
  size_t kernel_count;
  const int64_t *kernel = clv__attribute_ints(attributes, "kernel_shape", &kernel_count);
  if (kernel == NULL || kernel_count != (size_t)window->count) return false;
  for (int32_t i = 0; i < window->count; ++i) window->kernel[i] = kernel[i];
  clv__cpu_window_read(node->source, from, to, window);
  for (int32_t i = 0; i < window->count; ++i) {
    const int64_t extent = (window->kernel[i] - 1) * window->dilation[i] + 1;
    /* With ceil_mode, the last window may extend beyond the padded input. An average must not include the part beyond the
     * padding. */
    const int64_t needed = (to->dims[i + 2] - 1) * window->stride[i] + extent - from->dims[i + 2] - window->begin[i];
    if (needed > window->end[i] && padded && !max) return false;
    if (needed > window->end[i]) window->end[i] = needed;
    if (window->dilation[i] != 1 && !max) return false;
    if (window->begin[i] >= extent || window->end[i] >= extent) return false; /* some windows would cover only padding */
  }
  return true;
}

/* Creates the pool over `source`. If oneDNN has only its "simple" implementation for that layout, which is twenty times slower,
 * creates the pool with channels last and changes `source`. The additional reorder costs far less than it saves. */
static clv_status create(clv__cpu_variant *variant, clv__dnn_pool kind, const clv_tensor *from, const clv_tensor *to,
                         const clv__dnn_window *window, const clv__dnn_layout **source, clv__dnn_primitive **primitive,
                         clv_error *error) {
  clv__dnn *dnn = variant->device->dnn;
  clv_status status = clv__dnn_pool_create(dnn, kind, *source, to->rank, to->dims, window, &variant->arena, primitive, error);
  if (status != CLV_OK || strncmp((*primitive)->implementation, "simple", 6) != 0) return status;
  const clv__dnn_layout *last =
      clv__dnn_layout_channels_last(&variant->arena, clv__dnn_layout_dtype(*source), from->rank, from->dims);
  clv__dnn_primitive *better;
  if (last == NULL) return CLV_OK;
  if (clv__dnn_pool_create(dnn, kind, last, to->rank, to->dims, window, &variant->arena, &better, NULL) != CLV_OK) return CLV_OK;
  clv__dnn_primitive_release(*primitive);
  *primitive = better;
  *source = last;
  return CLV_OK;
}

clv_status clv__cpu_lower_pool(clv__cpu_variant *variant, clv__cpu_variant_node *node, bool *taken, clv_error *error) {
  const clv_tensor *from = &variant->values[node->inputs[0]].type, *to = &variant->values[node->outputs[0]].type;
  clv__dnn_pool kind;
  clv__dnn_window window;
  *taken = describe(node, from, to, &kind, &window);
  if (!*taken) return CLV_OK;
  const clv__dnn_layout *source = clv__cpu_form_layout(variant, node->inputs[0]);
  if (source == NULL) return clv__error_memory(error, 0);
  clv__dnn_primitive *primitive;
  clv_status status = create(variant, kind, from, to, &window, &source, &primitive, error);
  if (status != CLV_OK) return clv__cpu_refused(status, taken);
  clv__cpu_step *step;
  uint32_t from_slot, to_slot;
  status = clv__cpu_form_get(variant, node->inputs[0], source, &from_slot, error);
  if (status == CLV_OK) status = clv__cpu_form_make(variant, node->outputs[0], primitive->destination, &to_slot, error);
  if (status != CLV_OK) {
    clv__dnn_primitive_release(primitive);
    return status;
  }
  CLV__TRY(clv__cpu_step_primitive(variant, node, node->source->op, primitive, 2, &step, error));
  clv__cpu_step_input(step, CLV__DNN_SOURCE, from_slot, source);
  clv__cpu_step_output(step, CLV__DNN_DESTINATION, to_slot, primitive->destination);
  return CLV_OK;
}
