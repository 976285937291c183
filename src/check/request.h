/* A request to check a device, and the function that runs one section of it. */
#ifndef CLEAVE_CHECK_REQUEST_H
#define CLEAVE_CHECK_REQUEST_H

#include "check/check.h"

typedef struct clv__check_request {
  clv_context *context;
  const char *device;                  /* as the caller gave it; a path if it contains a '/' */
  clv_devices_options devices_options; /* the options to open the device with; `list` is the device's name */
  const clv_check_options *options;
} clv__check_request;

/* Loads the plugin if the request names it by its path. */
clv_status clv__check_resolve(clv__check_request *request, clv_error *error);

/* Runs section `index` of the report on a device that it opens. `listener` may be NULL. A failed check is not an error; an error
 * means that the device could not be opened or memory ran out. */
clv_status clv__check_run_section(const clv__check_request *request, uint32_t index, clv_check_report *report,
                                  clv__check_listener listener, void *cookie, clv__check_sign *sign, clv_error *error);

#endif
