/* The conformance kit: whether a device's backend keeps the promises of plugin/backend.h. For authors of backends, and for
 * whoever got one from a stranger. `cleave check-backend` prints its report. */
#ifndef CLEAVE_CHECK_H
#define CLEAVE_CHECK_H

#include "devices.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_check_options {
  uint32_t struct_size;
  const char *const *sections; /* names; none: all */
  uint32_t section_count;
  uint64_t seed;            /* of data and of what is drawn; 0 is one too */
  uint32_t failures_listed; /* a section, at most; 0: 20 */
  /* Called now and then, with how far it is; may be NULL. */
  void (*progress)(void *user_data, const char *section, uint32_t done, uint32_t of);
  void *user_data;
  /* Each section in a process of its own, so that a backend that crashes or hangs is reported, and the next section goes on. The
   * program must have no other threads then, and must not have opened the device. */
  bool apart;
  uint32_t time_limit_s; /* with `apart`: how long one thing may take before it counts as hung; 0: 120 */
  uint32_t every;        /* of what there is much of (operators' cases, graphs drawn) only every Nth; 0: all */
} clv_check_options;
#define CLV_CHECK_OPTIONS_INIT \
  { sizeof(clv_check_options), NULL, 0, 0, 0, NULL, NULL, false, 0, 0 }

typedef struct clv_check_item {
  const char *what; /* "Conv 22, f32, x[1,3,8,8]" */
  const char *text; /* what is wrong, or why it was not looked at */
  uint32_t count;   /* how many were left out for that reason; 1 for a failure */
} clv_check_item;

typedef struct clv_check_section {
  const char *name, *help;
  uint32_t passed, failed, skipped;
  uint32_t failure_count; /* of `failures`: the first ones */
  const clv_check_item *failures;
  uint32_t skip_count; /* of `skips`: one a reason */
  const clv_check_item *skips;
  double seconds;
} clv_check_section;

typedef struct clv_check_report {
  const char *device, *backend, *version, *description;
  uint32_t passed, failed, skipped;
  uint32_t section_count;
  const clv_check_section *sections;
} clv_check_report;

/* Checks the only device of `list` (as in clv_devices_options), opened with `devices_options`, which may be NULL. A `device` with
 * a '/' in it is the path of a plugin, which is loaded first: its backend's device is checked. A backend that crashes takes the
 * program with it, but for options->apart. Errors are of the check itself (CLV_NOT_FOUND, CLV_NOT_SUPPORTED where the device is
 * not here, CLV_INVALID_ARGUMENT, CLV_OUT_OF_MEMORY); what is wrong with the backend is in the report. */
CLV_API CLV_MUST_USE clv_status clv_check_backend(clv_context *context, const char *device,
                                                  const clv_devices_options *devices_options, const clv_check_options *options,
                                                  clv_check_report **report, clv_error *error);
CLV_API void clv_check_report_destroy(clv_check_report *report); /* accepts NULL */

/* The sections there are, in the order in which they run: name and what it looks at. NULL beyond the last. Static storage. */
CLV_API const char *clv_check_section_name(uint32_t index);
CLV_API const char *clv_check_section_help(uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
