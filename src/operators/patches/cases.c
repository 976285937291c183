/* Test cases of Col2Im, MaxUnpool and CenterCropPad. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

#define PLACES "={5,0,7,46,20,33,10,11,25,30,41,2}" /* indices among the 48 elements of the output */

const clv__case_row clv__cases_patches[] = {
    {"Col2Im", "18", CASE_NUMBERS,
     "x[2,8,12] i:i64={4,5} b:i64={2,2} | x[1,3,7] i:i64={9} b:i64={3} | x[1,8,8] i:i64={3,3,3} b:i64={2,2,2} | x[1,8,4] "
     "i:i64?{3,3} b:i64?{2,2} | x[0,4,4] i:i64={3,3} b:i64={2,2}",
     NULL, NULL},
    {"Col2Im", "18", "f32 i32", "x[1,4,16] i:i64={5,5} b:i64={2,2}",
     "dilations=[2,2] pads=[1,0,0,1] | pads=[0,0,0,0] dilations=[1,1]", NULL},
    {"Col2Im", "18", "f32 f64", "x[1,9,9] i:i64={5,5} b:i64={3,3}", "strides=[2,2] pads=[1,1,1,1]", NULL},
    {"MaxUnpool", "22", CASE_FLOATS,
     "x[1,2,2,3] i:i64[1,2,2,3]" PLACES " | x[1,2,2,3] i:i64[1,2,2,3]" PLACES
     " s:i64={1,2,5,6} | x[1,2,2,3]& i:i64[1,2,2,3]?{5,0,7,46,20,33,10,11,25,30,41,2} | x[0,1,2,2] i:i64[0,1,2,2]",
     "kernel_shape=[2,2] strides=[2,2]", NULL},
    {"MaxUnpool", "11 9", "f32 f64 f16", "x[1,1,5] i:i64[1,1,5]={1,3,4,7,9}",
     "kernel_shape=[2] strides=[2] | kernel_shape=[4] strides=[2] pads=[1,1]", NULL},
    {"CenterCropPad", "18", CASE_ANY,
     "x[5,8]~any s:i64={3,11} | x[4,6,3] s:i64={7,3,3} | x[9]~any s:i32={4} | x[5,8] s:i64={0,3} | x[5,0] s:i64={5,3} | x[33,35] "
     "s:i64?{20,40} | x[5,8]& s:i64={6,7}",
     NULL, NULL},
    {"CenterCropPad", "18", "f32 i64", "x[5,8,3] s:i64={3,11} | x[2,9,4] s:i64={12,2}", "axes=[0,1] | axes=[-2,0]", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
