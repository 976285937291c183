/* Test cases of Softmax, LogSoftmax and Hardmax. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

#define SHAPES "x[3,5,7,11] | x[4,1,6] | x[33,35] | x[5,515] | x[2,3,4,5,2] | x[1,3,1] | x[2,3]&"

const clv__case_row clv__cases_softmax[] = {
    {"Softmax LogSoftmax", "22 13", CASE_FLOATS, SHAPES " | x[2,0,3] | x[7] | x[9,1000]~-30:30",
     " | axis=0 | axis=1 | axis=-1 | axis=-2", NULL},
    {"Softmax LogSoftmax", "11 1", "f32 f16 f64", SHAPES " | x[2,0,3]", " | axis=0 | axis=1 | axis=2", NULL},
    {"Softmax LogSoftmax Hardmax", "11", "f32", "x[2,3,4]", "axis=-1 | axis=-2", NULL},
    {"Hardmax", "22 13 11 1", CASE_FLOATS, SHAPES " | x[2,0,3] | x[33,35]~half", " | axis=0 | axis=1", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
