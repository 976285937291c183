/* Test cases of operators that change or read a shape. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

const clv__case_row clv__cases_view[] = {
    {"Reshape", "22 19 14 7", CASE_ANY,
     "x[3,5,7,11]~any s:i64={15,77} | x[6,4] s:i64={-1} | x[6,4] s:i64={2,-1,3} | x[6,4] s:i64={0,2,-1} | x[1] s:i64={} | x "
     "s:i64={1,1} | x[0,3] s:i64={0,3,1}"
     " | x[2,0,3] s:i64={0,-1,0} | x[4099] s:i64={4099,1} | x[2,3,4,5,1] s:i64={4,30} | x[6,4]& s:i64={8,3} | x[6,4] s:i64?{8,3}",
     NULL, NULL},
    {"Reshape", "14", "f32", "x[0,3] s:i64={3,0} | x[2,0,3] s:i64={0,7}", "allowzero=1", NULL},
    {"Flatten", "22 13 11 9", CASE_ANY, "x[3,5,7,11]~any | x[4] | x[2,0,3] | x[1,1,1] | x[4099,1] | x[2,3,2,2,3]", NULL, NULL},
    {"Flatten", "22 11", "f32", "x[3,5,7,11]", "axis=0 | axis=2 | axis=4 | axis=-1 | axis=-3", NULL},
    {"Flatten", "22 11", "f32", "x", "axis=0", NULL},
    {"Squeeze", "22 13", CASE_ANY,
     "x[1,5,1,7]~any a:i64={0,2} | x[1,5,1,7] a:i64={-2} | x[1,5,1,7] | x[1,5,7] a:i64?{0} | x[1] a:i64={0} | x[1,0,1] a:i64={0} "
     "| x[3,4] | x[1,4099] a:i64={0} | x[1,5,1,7]& a:i64={2}",
     NULL, NULL},
    {"Squeeze", "11 1", "f32 i32", "x[1,5,1,7] | x[1,33,1]", "axes=[2] | axes=[0,2] | ", NULL},
    {"Unsqueeze", "22 13", CASE_ANY,
     "x[5,7]~any a:i64={0,2} | x[5,7] a:i64={-1} | x a:i64={0} | x[0] a:i64={1} | x[5,7] a:i64={3,1,0} | x[5,7] a:i64?{1} | "
     "x[4099] a:i64={0} | x[5,7]& a:i64={1}",
     NULL, NULL},
    {"Unsqueeze", "11 1", "f32 i32", "x[5,7] | x[0,3]", "axes=[0] | axes=[1,3]", NULL},
    {"Identity", "22 19 14 13 1", CASE_ANY, "x[3,5,7,11]~any | x | x[0,3] | x[1] | x[4099] | x[2,1,3,1,2] | x[5]&", NULL, NULL},
    {"Dropout", "22 13 12", CASE_FLOATS,
     "x[3,5,7,11]~any | x | x[0,3] | x[5,7] r:f32=(0.3) | x[5,7] r:f32=(0.3) t:bool=(0) | x[5,7] - t:bool=(0) | x[4099]",
     " | >11", NULL},
    {"Dropout", "10 7", "f32 f16 f64", "x[5,7] | x[4099]", " | ratio=0.7", NULL},
    {"Shape", "22 21 15 13 1", CASE_ANY, "x[3,5,7] | x | x[0,3] | x[1] | x[4099] | x[2,1,3,1,2]", NULL, NULL},
    {"Shape", "22 15", "f32", "x[3,5,7,2]", "start=1 | end=-1 | start=-2 | start=1 end=3 | start=3 end=1 | start=-9 end=9", NULL},
    {"Size", "22 13 1", CASE_ANY, "x[3,5,7] | x | x[0,3] | x[1] | x[4099]", NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
