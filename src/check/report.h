/* The report while it grows: what is counted and listed for each section. */
#ifndef CLEAVE_CHECK_REPORT_H
#define CLEAVE_CHECK_REPORT_H

#include "check/check.h"

/* `names[i]`: which of clv__check_sections are in it. */
clv_status clv__report_create(const clv_allocator *allocator, const uint32_t *sections, uint32_t count, uint32_t failures_listed,
                              clv_check_report **report, clv_error *error);
/* Who is checked; texts are copied. */
clv_status clv__report_identify(clv_check_report *report, const char *device, const char *backend, const char *version,
                                const char *description, clv_error *error);
/* Adds to section `index` of the report. Where memory is out the fact is counted all the same. */
void clv__report_add(clv_check_report *report, uint32_t index, clv__check_fact fact, const char *what, const char *text);
void clv__report_time(clv_check_report *report, uint32_t index, double seconds);
/* Sums up. */
void clv__report_close(clv_check_report *report);

#endif
