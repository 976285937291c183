/* The ONNX Runtime backend. Each execution provider of the library is a device ("onnxruntime:CPU"). The library is loaded when
 * one of its devices is first requested. */
#ifndef CLEAVE_BACKENDS_ONNXRUNTIME_ONNXRUNTIME_H
#define CLEAVE_BACKENDS_ONNXRUNTIME_ONNXRUNTIME_H

#include "cleave/plugin/backend.h"

clv_status clv__onnxruntime_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

#endif
