/* The virtual NPU: a backend that behaves like hardware and needs none. Tests use it in place of a real device. It also shows how
 * a device with other limits would behave. README.md describes its description file. */
#ifndef CLEAVE_BACKENDS_VNPU_VNPU_H
#define CLEAVE_BACKENDS_VNPU_VNPU_H

#include "cleave/plugin/backend.h"

#define CLV__VNPU_VERSION "1" /* part of the cache keys: raise it when programs change */

/* The backend's table. `user_data` is unused. Any thread may call it. Errors: CLV_NOT_SUPPORTED if the host has another ABI. */
clv_status clv__vnpu_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

#endif
