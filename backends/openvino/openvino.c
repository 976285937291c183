/* OpenVINO's table of framework slots. Their implementations are in the other files of this folder. */
#include "openvino.h"

#include "device.h"

clv_status clv__openvino_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error) {
  static const clv__framework table = {
      .name = "openvino",
      .version = "1",
      .options = clv__openvino_options,
      .option_count = CLV__OPENVINO_OPTION_COUNT,
      .load = clv__openvino_load,
      .list = clv__openvino_list,
      .device_open = clv__openvino_device_open,
      .device_close = clv__openvino_device_close,
      .may_support = clv__openvino_may_support,
      .model_compile = clv__openvino_model_compile,
      .model_destroy = clv__openvino_model_destroy,
      .model_save = clv__openvino_model_save,
      .model_load = clv__openvino_model_load,
      .node_try = clv__openvino_node_try,
      .request_create = clv__openvino_request_create,
      .request_resize = clv__openvino_request_resize,
      .request_destroy = clv__openvino_request_destroy,
      .request_run = clv__openvino_request_run,
      .request_stop = clv__openvino_request_stop,
  };
  (void)host;
  (void)user_data;
  (void)error;
  *backend = clv__framework_backend(&table);
  return CLV_OK;
}
