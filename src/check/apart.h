/* Runs each section of a check in its own process. */
#ifndef CLEAVE_CHECK_APART_H
#define CLEAVE_CHECK_APART_H

#include "check/request.h"

clv_status clv__check_run_apart(const clv__check_request *request, clv_check_report *report, clv_error *error);

#endif
