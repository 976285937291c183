/* Test cases of operators that create tensors from attributes, sizes and positions. See operators/cases.h for the syntax of the
 * rows. */
#include "operators/cases.h"

const clv__case_row clv__cases_generate[] = {
    {"Constant", "9 11", "f32", "", "value=#T[2,3]{1,0,1,3,1,2}", NULL},
    {"Constant", "22 13", "*" CASE_ANY, "", "value=#T[2,3]{1,0,1,3,1,2} | value=#T(1) | value=#T[0,2]{}", NULL},
    {"Constant", "22 13 12", "f32", "", "value_float=1.5 | value_floats=[1.5,-2.0,0.25] | value_int=-7 | value_ints=[3,-1,9]",
     NULL},
    {"ConstantOfShape", "22 21 9", CASE_ANY,
     "s:i64={3,5} | s:i64={} | s:i64={0,4} | s:i64={1} | s:i64={2,1,3,1,2} | s:i64={4099} | s:i64?{4,3}",
     "value=#T{1} | value=#T{0} | value=#T{3}", NULL},
    {"ConstantOfShape", "9", "f32", "s:i64={3,5} | s:i64={7} | s:i64?{2,2}", NULL, NULL},
    {"Range", "22 11", "f32 f64 i16 i32 i64",
     "a=(1) b=(20) c=(3) | a=(10) b=(-7) c=(-2) | a=(0) b=(5) c=(5) | a=(3) b=(3) c=(1) | a=(5) b=(2) c=(1) | a=(0) b=(4099) "
     "c=(1) | a?(2) b?(9) c?(2) | a=(-3) b?(4) c=(1)",
     NULL, NULL},
    {"Range", "11", "f32 f64", "a=(0.5) b=(3.1) c=(0.25) | a=(1) b=(-1) c=(-0.125)", NULL, NULL},
    {"EyeLike", "22 9", CASE_ANY, "x[4,4] | x[3,7] | x[7,3] | x[0,3] | x[1,1] | x[65,67]",
     " | k=1 | k=-2 | k=9 | dtype=$f32 | dtype=$i64 k=1", NULL},
    {"Trilu", "22 14", CASE_ANY,
     "x[5,7]~any | x[7,5] k:i64=(1) | x[5,7] k:i64=(-2) | x[2,3,4,5] k:i64=(0) | x[5,7] k:i64=(10) | x[5,7] k:i64=(-10) | x[0,4] "
     "| x[1,1] | x[65,67] k:i64?(3) | x[3,4]&",
     " | upper=0", NULL},
    {"Trilu", "14", "f32 i64", "x[5,7] k:i64=(1) | x[7,5] k:i64=(-2) | x[3,0,2] k:i64=(1)", "upper=0 | upper=1", NULL},
    {"OneHot", "22 11 9", CASE_OLD,
     "i:i64[5]~-7:6 d:i64=(7) v={0,1} | i:i64[2,3]~0:8 d:i64=(7) v={1,0} | i:i32[4]~0:4 d:i32=(5) v={2,3} | i:i64[1]~0:3 "
     "d:i64={4} v={0,1} | i:i64[0] d:i64=(3) v={0,1} | i:f32?{0,2,1,3} d:i64=(4) v={0,1}"
     " | i:i64[33]~0:99 d:i64=(100) v={0,1} | i:i64[5]~0:6 d:i64=(7) v[2] | i:i64[5]~0:6 d:i64?(7) v={0,1}",
     NULL, NULL},
    {"OneHot", "11", "f32 i64", "i:i64[2,3]~0:4 d:i64=(5) v={0,1} | i:i64[4,1]~0:4 d:i64=(5) v={3,1}",
     "axis=0 | axis=1 | axis=-1 | axis=-2", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
