/* Declarations shared by the files that read a plan file (file_read.c). */
#ifndef CLEAVE_PLAN_FILE_H
#define CLEAVE_PLAN_FILE_H

#include <jansson.h>

#include "plan/plan.h"

/* file_check.c: checks that the known keys have the right JSON types. It checks neither that required keys exist nor their
 * values. */
clv_status clv__plan_check_keys(const json_t *root, clv_error *error);

/* file_check.c: checks that the partitions respect their devices' limits, and that their devices accept streamed weights as
 * inputs. The caller holds the devices' lock. */
clv_status clv__plan_check_devices(const clv_plan *plan, clv_error *error);
/* file_check.c: checks that the finished plan fits into the memory of its devices, which may have less memory now than when the
 * plan was made. */
clv_status clv__plan_check_memory(const clv_plan *plan, clv_error *error);

/* file_partitions.c: reads partitions and causes, and sets the plan's cut. */
clv_status clv__plan_read_partitions(clv_plan *plan, const json_t *root, clv_error *error);
/* Sets `kept` to a copy, in the plan's arena, of the text at `key` of a JSON object; NULL if there is none. */
clv_status clv__plan_keep_text(clv_plan *plan, const json_t *object, const char *key, const char **kept, clv_error *error);

#endif
