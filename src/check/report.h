/* Builds a report: the counts and lists of items of each section. */
#ifndef CLEAVE_CHECK_REPORT_H
#define CLEAVE_CHECK_REPORT_H

#include "base/error.h"
#include "base/memory.h"
#include "cleave/check.h"

/* An outcome reported by a running section. `text` is NULL for a pass. */
typedef enum clv__check_fact { CLV__CHECK_PASS, CLV__CHECK_FAIL, CLV__CHECK_SKIP } clv__check_fact;
typedef void (*clv__check_listener)(void *cookie, clv__check_fact fact, const char *what, const char *text);

/* Creates a report without outcomes. It uses the names and help texts of `sections`, which must outlive it. */
clv_status clv__report_create(const clv_allocator *allocator, const clv_check_section *sections, uint32_t count,
                              uint32_t failures_listed, clv_check_report **report, clv_error *error);
/* Records the device that is checked. The texts are copied. */
clv_status clv__report_identify(clv_check_report *report, const char *device, const char *backend, const char *version,
                                const char *description, clv_error *error);
/* Adds an outcome to section `index` of the report. If memory runs out, the outcome is still counted. */
void clv__report_add(clv_check_report *report, uint32_t index, clv__check_fact fact, const char *what, const char *text);
void clv__report_time(clv_check_report *report, uint32_t index, double seconds);
/* Computes the totals. */
void clv__report_close(clv_check_report *report);

#endif
