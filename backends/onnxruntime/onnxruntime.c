/* ONNX Runtime as a framework: see backends/framework/framework.h. */
#include "onnxruntime.h"

#include "device.h"

clv_status clv__onnxruntime_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  static const clv__framework framework = {
      .name = "onnxruntime",
      .version = "1",
      .options = clv__ort_options_known,
      .option_count = CLV__ORT_OPTION_COUNT,
      .load = clv__ort_load,
      .list = clv__ort_list,
      .device_open = clv__ort_device_open,
      .device_close = clv__ort_device_close,
      .may_support = clv__ort_may_support,
      .node_try = clv__ort_node_try,
      .model_compile = clv__ort_model_compile,
      .model_destroy = clv__ort_model_destroy,
      .model_bytes = clv__ort_model_bytes,
      .request_create = clv__ort_request_create,
      .request_resize = clv__ort_request_resize,
      .request_destroy = clv__ort_request_destroy,
      .request_run = clv__ort_request_run,
      .request_stop = clv__ort_request_stop,
      .request_resume = clv__ort_request_resume,
  };
  (void)host;
  (void)user_data;
  *backend = clv__framework_backend(&framework);
  return *backend != NULL ? CLV_OK
                          : clv__error_set(error, CLV_INTERNAL_ERROR,
                                           "too many frameworks: raise MAX_FRAMEWORKS in backends/framework/backend.c");
}
