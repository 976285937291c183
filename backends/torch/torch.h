/* The PyTorch backend: calls ATen operators that have no ONNX equivalent, as their schemas describe them. */
#ifndef CLEAVE_BACKENDS_TORCH_TORCH_H
#define CLEAVE_BACKENDS_TORCH_TORCH_H

#include "cleave/plugin/backend.h"

clv_status clv__torch_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

#endif
