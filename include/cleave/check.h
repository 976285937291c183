/* The conformance kit checks whether a device's backend keeps the promises of plugin/backend.h. It is for backend authors, and
 * for users of third-party backends. `cleave check-backend` prints its report.
 *
 * Unstable: may change until 1.0. */
#ifndef CLEAVE_CHECK_H
#define CLEAVE_CHECK_H

#include "devices.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct clv_check_options {
  uint32_t struct_size;
  const char *const *sections; /* names of the sections (groups of checks) to run, see clv_check_section_name() */
  uint32_t section_count;      /* 0: runs all sections */
  uint64_t seed;               /* for the random data and the random graphs; 0 is a valid seed */
  uint32_t failures_listed;    /* at most this many failures are listed per section; 0: 20 */
  /* Called from time to time to report progress; may be NULL. */
  void (*progress)(void *user_data, const char *section, uint32_t done, uint32_t of);
  void *user_data;
  /* Runs each section in its own process. A crash or a hang of the backend is then reported, and the next section runs. With this
   * option, the program must have no other threads and must not have opened the device. */
  bool apart;
  uint32_t time_limit_s; /* with `apart`: a single check that takes longer counts as hung; 0: 120 */
  uint32_t every;        /* checks only every Nth member of large sets (operator cases, random graphs); 0: all */
} clv_check_options;
#define CLV_CHECK_OPTIONS_INIT \
  { sizeof(clv_check_options), NULL, 0, 0, 0, NULL, NULL, false, 0, 0 }

typedef struct clv_check_item {
  const char *what; /* the check, such as "Conv 22, f32, x[1,3,8,8]" */
  const char *text; /* what is wrong, or why the check was skipped */
  uint32_t count;   /* checks skipped for that reason; 1 for a failure */
} clv_check_item;

typedef struct clv_check_section {
  const char *name, *help;
  uint32_t passed, failed, skipped;
  uint32_t failure_count; /* length of `failures`, which lists only the first ones */
  const clv_check_item *failures;
  uint32_t skip_count; /* length of `skips`: one entry per reason */
  const clv_check_item *skips;
  double seconds;
} clv_check_section;

typedef struct clv_check_report {
  const char *device, *backend, *version, *description;
  uint32_t passed, failed, skipped;
  uint32_t section_count;
  const clv_check_section *sections;
  uint64_t seed; /* of the random choices */
} clv_check_report;

/* Checks one device. `device` is a name as in clv_devices_options.list. If it contains a '/', it is the path of a plugin: the
 * plugin is loaded, and its backend's device is checked. The device is opened with `devices_options`, which may be NULL.
 *
 * A backend that crashes takes the program down with it, unless options->apart is set.
 *
 * A returned error concerns the check itself: CLV_NOT_FOUND; CLV_NOT_SUPPORTED if the device is not available;
 * CLV_INVALID_ARGUMENT; CLV_OUT_OF_MEMORY. Faults of the backend are in the report. */
CLV_API CLV_MUST_USE clv_status clv_check_backend(clv_context *context, const char *device,
                                                  const clv_devices_options *devices_options, const clv_check_options *options,
                                                  clv_check_report **report, clv_error *error);
CLV_API void clv_check_report_destroy(clv_check_report *report); /* accepts NULL */

typedef struct clv_check_text_options {
  uint32_t struct_size;
  bool skips; /* lists the reasons for which checks were skipped; JSON always has them */
  bool brief; /* only failures and the totals, without the table of sections */
} clv_check_text_options;
#define CLV_CHECK_TEXT_OPTIONS_INIT \
  { sizeof(clv_check_text_options), false, false }

/* Writes the report as `cleave check-backend` prints it. `options` may be NULL. Free the text with clv_text_free().
 * Errors: CLV_INVALID_ARGUMENT; CLV_OUT_OF_MEMORY. */
CLV_API CLV_MUST_USE clv_status clv_check_report_text(const clv_check_report *report, const clv_check_text_options *options,
                                                      clv_form form, char **text, clv_error *error);

/* The available sections, in the order in which they run: the name, and what the section checks. NULL beyond the last. Static
 * storage. */
CLV_API const char *clv_check_section_name(uint32_t index);
CLV_API const char *clv_check_section_help(uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
