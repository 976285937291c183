/* Writes a partition as an ONNX model in memory, for frameworks that read ONNX. The model has standard operators only: Cleave's
 * own operators are replaced by the standard operators that define them, because OpenVINO does not support ONNX functions. */
#include "base/tensor/tensor.h"
#include "framework.h"

/* Protobuf's own readers reject a model with more bytes than this. */
#define MOST_BYTES ((size_t)INT32_MAX)
/* Constants up to this size stay in a trial model, because the verdict may depend on their values. */
#define TRIAL_BYTES ((size_t)4096)

static clv_status refuse_size(size_t size_bytes, clv_error *error) {
  return clv__error_set(error, CLV_TOO_LARGE,
                        "the partition needs an ONNX file of at least %zu bytes; files above 2 GiB cannot be read", size_bytes);
}

/* Adds up the bytes of the constants that the model will contain, so that a model that is too large is rejected before it is
 * built. */
static size_t constant_bytes(const clv_host *host, const clv_graph_view *graph, size_t inline_limit_bytes) {
  size_t total = 0, size_bytes;
  uint32_t count = host->graph_value_count(graph);
  for (uint32_t v = 0; v < count; ++v) {
    clv_value_info value = {.struct_size = sizeof value};
    host->graph_value(graph, v, &value);
    if (value.type.data == NULL || !clv__tensor_size_bytes(&value.type, &size_bytes)) continue;
    if (size_bytes <= inline_limit_bytes && !clv__add(total, size_bytes, &total)) return SIZE_MAX;
  }
  return total;
}

static clv_status write_onnx(const clv_host *host, const clv_graph_view *graph, size_t inline_limit_bytes, void **data,
                             size_t *size_bytes, clv_error *error) {
  *data = NULL;
  *size_bytes = 0;
  size_t expected = constant_bytes(host, graph, inline_limit_bytes);
  if (expected > MOST_BYTES) return refuse_size(expected, error);
  clv__error_clear(error);
  CLV__TRY(host->graph_to_standard_onnx(graph, inline_limit_bytes, data, size_bytes, error));
  if (*size_bytes <= MOST_BYTES) return CLV_OK;
  clv__release(host->allocator, *data);
  *data = NULL;
  clv_status status = refuse_size(*size_bytes, error);
  *size_bytes = 0;
  return status;
}

clv_status clv__framework_onnx(const clv_host *host, const clv_graph_view *graph, void **data, size_t *size_bytes,
                               clv_error *error) {
  return write_onnx(host, graph, SIZE_MAX, data, size_bytes, error);
}

clv_status clv__framework_onnx_trial(const clv_host *host, const clv_graph_view *graph, void **data, size_t *size_bytes,
                                     clv_error *error) {
  return write_onnx(host, graph, TRIAL_BYTES, data, size_bytes, error);
}
