/* Cases of operators that walk along one axis: see cases/cases.h for how the rows read. */
#include "check/cases/cases.h"

#define SHAPES "x[3,5,7,11] | x[4,1,6] | x[33,35] | x[5,515] | x[2,3,4,5,2] | x[1,3,1] | x[2,3]&"

const clv__case_row clv__cases_axis[] = {
    {"Softmax LogSoftmax", "22 13", CASE_FLOATS, SHAPES " | x[2,0,3] | x[7] | x[9,1000]~-30:30",
     " | axis=0 | axis=1 | axis=-1 | axis=-2", NULL},
    {"Softmax LogSoftmax", "11 1", "f32 f16 f64", SHAPES " | x[2,0,3]", " | axis=0 | axis=1 | axis=2", NULL},
    {"Softmax LogSoftmax Hardmax", "11", "f32", "x[2,3,4]", "axis=-1 | axis=-2", NULL},
    {"Hardmax", "22 13 11 1", CASE_FLOATS, SHAPES " | x[2,0,3] | x[33,35]~half", " | axis=0 | axis=1", NULL},
    {"ArgMax ArgMin", "22 13 12", CASE_NUMBERS, SHAPES " | x[33,35]~half | x[33,35]~0:3",
     " | axis=1 | axis=-1 | keepdims=0 | axis=1 keepdims=0"
     " | select_last_index=1 | axis=-1 select_last_index=1",
     NULL},
    {"ArgMax ArgMin", "11 1", "f32 i32", "x[3,5,7] | x[33,35]~half", " | axis=1 | axis=2 keepdims=0", NULL},
    {"CumSum", "22 14 11", "f32 f16 bf16 f64 i32 i64 u32 u64",
     "x[3,5,7,11] a:i32=(0) | x[3,5,7] a:i64=(1) | x[3,5,7] a:i64=(-1) | x[4099] a:i32=(0) | x[1] a:i32=(0) | x[2,0,3] a:i32=(1)"
     " | x[5,7] a:i64?(1) | x[5,515] a:i32={1}",
     " | exclusive=1 | reverse=1 | exclusive=1 reverse=1", NULL},
    {"CumProd", "26", "f32 f64 f16 bf16 i32 i64 u32 u64",
     "x[3,4,5]~1:2 a:i64=(1) | x[9]~1:2 a:i64=(0) | x[2,3,4]~1:3 a:i64=(-1) | x[2,0] a:i64=(0) | x[33,9]~0:2 a:i64=(0)",
     " | exclusive=1 | reverse=1 | exclusive=1 reverse=1", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
