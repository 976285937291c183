/* One check as it was asked for, and how a section of it runs. */
#ifndef CLEAVE_CHECK_REQUEST_H
#define CLEAVE_CHECK_REQUEST_H

#include "check/check.h"

typedef struct clv__check_request {
  clv_context *context;
  const char *device;                  /* as the caller gave it; a path where it has a '/' */
  clv_devices_options devices_options; /* `list`: the device */
  const clv_check_options *options;
} clv__check_request;

/* Loads the plugin that the request names by its path, if it does. */
clv_status clv__check_resolve(clv__check_request *request, clv_error *error);

/* Runs section `index` of the report on a device opened for it. `listener` may be NULL. Errors are of the opening. */
clv_status clv__check_run_section(const clv__check_request *request, uint32_t index, clv_check_report *report,
                                  clv__check_listener listener, void *cookie, clv__check_sign *sign, clv_error *error);

#endif
