/* The families of operators: one line each. Each is a table clv__opencl_family_<name> in lower_<name>.c. */
#ifndef CLEAVE_BACKENDS_OPENCL_FAMILIES_H
#define CLEAVE_BACKENDS_OPENCL_FAMILIES_H

#include "lower.h"

#define CLV__OPENCL_FAMILIES(FAMILY) FAMILY(elementwise)

#define DECLARE(name) extern const clv__opencl_operator clv__opencl_family_##name[];
CLV__OPENCL_FAMILIES(DECLARE)
#undef DECLARE

#endif
