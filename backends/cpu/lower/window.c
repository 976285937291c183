/* Resolves the attributes strides, dilations, pads and auto_pad against the inferred shapes. */
#include "window.h"

static int64_t item(const int64_t *list, size_t count, int32_t index, int64_t fallback) {
  return list != NULL && (size_t)index < count ? list[index] : fallback;
}

void clv__cpu_window_read(const clv__cpu_node *node, const clv_tensor *from, const clv_tensor *to, clv__dnn_window *window) {
  size_t stride_count, dilation_count, pad_count;
  const int64_t *strides = clv__attribute_ints(node->attributes, "strides", &stride_count);
  const int64_t *dilations = clv__attribute_ints(node->attributes, "dilations", &dilation_count);
  const int64_t *pads = clv__attribute_ints(node->attributes, "pads", &pad_count);
  const bool upper = clv__attribute_is(node->attributes, "auto_pad", "SAME_UPPER", false);
  const bool lower = clv__attribute_is(node->attributes, "auto_pad", "SAME_LOWER", false);
  const bool valid = clv__attribute_is(node->attributes, "auto_pad", "VALID", false);
  for (int32_t i = 0; i < window->count; ++i) {
    window->stride[i] = item(strides, stride_count, i, 1);
    window->dilation[i] = item(dilations, dilation_count, i, 1);
    window->begin[i] = item(pads, pad_count, i, 0);
    window->end[i] = item(pads, pad_count, i + window->count, 0);
    if (valid) window->begin[i] = window->end[i] = 0;
    if (!upper && !lower) continue;
    const int64_t extent = (window->kernel[i] - 1) * window->dilation[i] + 1;
    int64_t total = (to->dims[i + 2] - 1) * window->stride[i] + extent - from->dims[i + 2];
    if (total < 0) total = 0;
    window->begin[i] = upper ? total / 2 : total - total / 2;
    window->end[i] = total - window->begin[i];
  }
}
