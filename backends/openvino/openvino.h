/* OpenVINO, as a backend: devices "openvino:CPU", "openvino:GPU.0", "openvino:NPU". */
#ifndef CLEAVE_BACKENDS_OPENVINO_OPENVINO_H
#define CLEAVE_BACKENDS_OPENVINO_OPENVINO_H

#include "cleave/plugin/backend.h"

clv_status clv__openvino_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

#endif
