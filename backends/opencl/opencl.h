/* The OpenCL backend: GPUs (and PoCL's CPU device) through the ICD loader, which is loaded when a device is first opened. The
 * host uses only this header. */
#ifndef CLEAVE_BACKENDS_OPENCL_OPENCL_H
#define CLEAVE_BACKENDS_OPENCL_OPENCL_H

#include "cleave/plugin/backend.h"

/* The backend's table (a clv_backend_query_fn). `user_data` is unused. Never fails: if OpenCL is missing, opening a device
 * reports it. Any thread may call it. */
clv_status clv__opencl_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

#endif
