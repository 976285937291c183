/* The CPU backend. It runs nodes with oneDNN if that is faster, and otherwise with the portable kernels
 * (backends/common/kernels). The host sees only this header. */
#ifndef CLEAVE_BACKENDS_CPU_CPU_H
#define CLEAVE_BACKENDS_CPU_CPU_H

#include "cleave/plugin/backend.h"

/* The backend's query function (a clv_backend_query_fn). `user_data` is not used. Any thread may call it. */
clv_status clv__cpu_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

#endif
