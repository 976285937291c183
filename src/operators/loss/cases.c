/* Test cases of the losses. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

#define SCORES                                                                                                  \
  "x[5,7] t:i64[5]~turn:7 | x[5,7] t:i32[5]~turn:7 w[7]~0.1:1 | x[2,7,3,40] t:i64[2,3,40]~turn:7 w[7]~0.1:1 | " \
  "x[3,600] t:i64[3]~turn:600 | x[3,4,70] t:i32[3,70]~turn:4"

const clv__case_row clv__cases_loss[] = {
    {"NegativeLogLikelihoodLoss", "22 13 12", "f32", SCORES, " | reduction=none | reduction=sum | ignore_index=2", NULL},
    {"NegativeLogLikelihoodLoss", "22", CASE_FLOATS, "x[2,7,3] t:i64[2,3]~turn:7 w[7]~0.1:1", " | reduction=none ignore_index=1",
     NULL},
    {"SoftmaxCrossEntropyLoss", "13 12", "f32", SCORES, ">11 | reduction=none | reduction=sum >11 | ignore_index=2", NULL},
    {"SoftmaxCrossEntropyLoss", "13", CASE_FLOATS, "x[2,7,3] t:i64[2,3]~turn:7 w[7]~0.1:1", ">11 | reduction=none ignore_index=1",
     NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
