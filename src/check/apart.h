/* The sections of a check, each in a process of its own. */
#ifndef CLEAVE_CHECK_APART_H
#define CLEAVE_CHECK_APART_H

#include "check/request.h"

clv_status clv__check_run_apart(const clv__check_request *request, clv_check_report *report, clv_error *error);

#endif
