/* The virtual NPU: a backend that behaves like hardware and needs none. It stands in for a real device in tests, and lets anyone
 * ask what a device with other limits would do. See README.md for its description file. */
#ifndef CLEAVE_BACKENDS_VNPU_VNPU_H
#define CLEAVE_BACKENDS_VNPU_VNPU_H

#include "cleave/plugin/backend.h"

#define CLV__VNPU_VERSION "1" /* joins cache keys: raise it when programs change */

/* The backend's table. `user_data` is not used. Any thread. Errors: CLV_NOT_SUPPORTED for a host of another ABI. */
clv_status clv__vnpu_backend_query(const clv_host *host, void *user_data, const clv_backend **backend, clv_error *error);

/* The name that a description (as in clv_device_config.spec) gives its device, or "" when it gives none: for a host that has to
 * know names before it opens devices. Reads and checks the whole description. Errors: those of open() about the description. */
clv_status clv__vnpu_spec_name(const clv_allocator *allocator, const char *spec, char *name, size_t size_bytes, clv_error *error);

#endif
