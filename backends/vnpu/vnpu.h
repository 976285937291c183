/* The virtual NPU: a backend that emulates an accelerator in software. Tests use it in place of a real device. It can also show
 * how models would be split and run on a device with different limits or speed. docs/virtual-npu.md explains the file that
 * describes the device. */
#ifndef CLEAVE_BACKENDS_VNPU_VNPU_H
#define CLEAVE_BACKENDS_VNPU_VNPU_H

#include "cleave/plugin/backend.h"

#define CLV__VNPU_VERSION "2" /* part of the cache keys: raise it when programs change */

/* Returns the backend's table. `user_data` is unused. May be called from any thread. Errors: CLV_NOT_SUPPORTED if the host has a
 * different ABI version. */
clv_status clv__vnpu_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

#endif
