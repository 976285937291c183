/* Test cases of the poolings. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

#define PLANES "x[1,3,9,8] | x[2,5,13,11] | x[1,1,3,3] | x[0,3,9,8] | x[1,64,7,7] | x[3,2,33,35] | x[1,3,9,8]&"
#define WINDOWS                                                                                                                 \
  "kernel_shape=[3,3] | kernel_shape=[2,3] | kernel_shape=[1,1] | kernel_shape=[3,3] strides=[2,2] | kernel_shape=[2,2] "       \
  "strides=[2,2]"                                                                                                               \
  " | kernel_shape=[3,3] pads=[1,1,1,1] | kernel_shape=[3,3] pads=[1,1,1,1] strides=[2,2] | kernel_shape=[3,2] pads=[2,0,1,1] " \
  "strides=[1,3]"                                                                                                               \
  " | kernel_shape=[3,3] auto_pad=SAME_UPPER | kernel_shape=[3,3] auto_pad=SAME_LOWER strides=[2,2] | kernel_shape=[2,2] "      \
  "auto_pad=VALID strides=[2,1]"
#define CEILS                                                                                                            \
  " | kernel_shape=[3,3] strides=[2,2] ceil_mode=1 | kernel_shape=[2,2] strides=[2,2] ceil_mode=1 | kernel_shape=[3,3] " \
  "strides=[2,3] pads=[1,1,1,1] ceil_mode=1"
#define DILATED " | kernel_shape=[3,3] dilations=[2,2] | kernel_shape=[2,3] dilations=[3,1] pads=[1,1,1,1]"

const clv__case_row clv__cases_pool[] = {
    {"MaxPool", "22 12 11", "f32 f16 bf16 f64 i8 u8", PLANES,
     WINDOWS CEILS " | kernel_shape=[2,3] dilations=[3,1] pads=[1,1,1,1]", NULL},
    {"MaxPool", "22 12", "f32 f16 f64 i8 u8", "x[1,3,9,8] | x[2,4,13,11]~half",
     ">11 kernel_shape=[3,3] strides=[2,2] | >11 kernel_shape=[3,3] pads=[1,1,1,1] | >11 kernel_shape=[2,3] storage_order=1"
     " | >11 kernel_shape=[3,3] strides=[2,2] ceil_mode=1",
     NULL},
    {"MaxPool", "8 1", "f32", "x[1,3,9,8] | x[2,4,13,11]", "kernel_shape=[3,3] strides=[2,2] | kernel_shape=[2,2] pads=[1,0,0,1]",
     NULL},
    {"AveragePool", "22 19", CASE_FLOATS, PLANES,
     WINDOWS CEILS DILATED " | kernel_shape=[3,3] pads=[1,1,1,1] count_include_pad=1 | kernel_shape=[3,3] strides=[2,2] "
                           "pads=[1,1,1,1] count_include_pad=1",
     NULL},
    {"AveragePool", "11 10 7", "f32 f16 f64", "x[1,3,9,8] | x[2,4,13,11]",
     "kernel_shape=[3,3] | kernel_shape=[3,3] strides=[2,2] pads=[1,1,1,1] count_include_pad=1 | kernel_shape=[2,2] "
     "auto_pad=SAME_UPPER",
     NULL},
    {"AveragePool", "1", "f32", "x[1,3,9,8] | x[2,4,13,11]", "kernel_shape=[3,3] | kernel_shape=[3,3] strides=[2,2]", NULL},
    {"LpPool", "22 18 11", "f32 f16 f64 bf16", "x[1,3,9,8]~0.1:2 | x[2,4,13,11] | x[0,3,9,8]",
     "kernel_shape=[3,3] | kernel_shape=[2,2] strides=[2,2] p=1 | kernel_shape=[3,3] p=3 pads=[1,1,1,1]"
     " | kernel_shape=[2,3] auto_pad=SAME_UPPER",
     NULL},
    {"LpPool", "22 18", "f32", "x[1,3,9,8]~0.1:2",
     "kernel_shape=[3,3] dilations=[2,2] | kernel_shape=[3,3] strides=[2,2] ceil_mode=1", NULL},
    {"MaxPool AveragePool LpPool", "22 11", "f32 f16 f64", "x[2,3,17] | x[1,8,100]",
     "kernel_shape=[3] | kernel_shape=[2] strides=[2] | kernel_shape=[3] pads=[1,1]", NULL},
    {"MaxPool AveragePool", "22 11", "f32 f64", "x[1,2,5,6,7] | x[1,3,4,4,4]",
     "kernel_shape=[2,3,2] | kernel_shape=[2,2,2] strides=[2,2,2] | kernel_shape=[3,3,3] pads=[1,1,1,1,1,1]", NULL},
    {"GlobalAveragePool GlobalMaxPool GlobalLpPool", "22 2", CASE_FLOATS,
     "x[1,3,9,8] | x[2,5,13,11] | x[1,64,7,7] | x[2,3,515] | x[1,2,3,4,5] | x[3,4,1,1] | x[0,3,2,2] | x[1,3,9,8]&", NULL, NULL},
    {"GlobalLpPool", "22", "f32 f64", "x[1,3,9,8]~0.1:2", "p=1 | p=3", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
