/* Test cases of Det. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

const clv__case_row clv__cases_linalg[] = {
    {"Det", "22", CASE_FLOATS, "x[3,3] | x[2,4,4] | x[1,1] | x[2,3,2,2] | x[0,3,3] | x[2,0,0] | x[5,5]& | x[2,17,17]~-1:1", NULL,
     NULL},
    {"Det", "11", "f32 f64 f16", "x[3,3] | x[2,2,2]~half", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
