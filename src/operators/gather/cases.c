/* Test cases of operators that read or write at positions given by another tensor, the indices. See operators/cases.h for the
 * syntax of the rows. */
#include "operators/cases.h"

const clv__case_row clv__cases_gather[] = {
    {"Gather", "22 13 11 1", CASE_ANY,
     "x[5,7]~any i:i64[3]~0:4 | x[5,7] i:i32[2,3]~0:4 | x[5,7] i:i64~0:4 | x[5,7] i:i64[3]~0:4= | x[5] i:i64[4]~0:4 | x[5,3] "
     "i:i64[0] | x[1,9] i:i64[2]~0:0 | x[515,9]= i:i64[33]~0:514"
     " | x[5,7]& i:i64[3]~0:4& | x[5,2,3,2] i:i64[2,2]~0:4",
     NULL, NULL},
    {"Gather", "13 11", "f32 i64 f16 bool",
     "x[5,7,6] i:i64[3]~-5:4 | x[5,9,8] i:i32[2,2]~-5:4 | x[33,5,40] i:i64[17]~0:4 | x[5,7,6] i:i64=(-1) | x[5,7,6] "
     "i:i64={0,-1,2}",
     "axis=1 | axis=0 | axis=-1 | axis=-2 | axis=2", NULL},
    {"GatherElements", "22 13 11", CASE_ANY,
     "x[5,7]~any i:i64[3,7]~0:4 | x[5,7] i:i32[5,7]~0:4 | x[5,7] i:i64[2,3]~-5:4 | x[9] i:i64[4]~0:8 | x[5,3] i:i64[0,3] | "
     "x[5,2,3] i:i64[5,2,3]~0:4= | x[33,35] i:i64[40,35]~0:32 | x[5,7]& i:i64[3,7]~0:4",
     NULL, NULL},
    {"GatherElements", "13", "f32 i64 f16", "x[4,4,4] i:i64[4,4,4]~0:3 | x[5,4,6] i:i64[3,4,2]~-4:3",
     "axis=1 | axis=2 | axis=-1 | axis=-3 | axis=0", NULL},
    {"GatherND", "22 13 12 11", CASE_ANY,
     "x[5,7]~any i:i64[4,2]~0:4 | x[5,7] i:i64[3,1]~0:4 | x[5,6,7] i:i64[2,3,2]~-5:4 | x[5,5,5] i:i64[3]~0:4 | x[5,3] i:i64[0,2] "
     "| x[5] i:i64[4,1]~0:4= | x[5,515] i:i64[7,1]~0:4 | x[5,6,7]& i:i64[2,2]~0:4",
     NULL, NULL},
    {"GatherND", "13 12", "f32 i64 f16", "x[3,5,6] i:i64[3,2,1]~0:4 | x[3,4,5] i:i64[3,2]~0:3 | x[2,9,9] i:i64[2,33,1]~-9:8",
     "batch_dims=1", NULL},
    {"GatherND", "13", "f32", "x[2,3,4,5] i:i64[2,3,2,1]~0:3", "batch_dims=2", NULL},
    {"ScatterElements", "22 18 16 13 11", CASE_ANY,
     "x[5,7]~any i:i64[3,7]~turn:5 u[3,7]~any | x[5,7] i:i32[5,7]~turn:5 u[5,7] | x[5,7] i:i64[2,3]~turn:-5 u[2,3] | x[9] "
     "i:i64[4]~turn:9 u[4] | x[5,3] i:i64[0,3] u[0,3]"
     " | x[5,2,3] i:i64[2,2,3]~turn:5= u[2,2,3]= | x[33,35] i:i64[33,30]~turn:33 u[33,30] | x[5,7]& i:i64[3,7]~turn:5 u[3,7]&",
     NULL, NULL},
    {"ScatterElements", "18 13", "f32 i64 f16", "x[4,4,4] i:i64[4,4,4]~turn:4 u[4,4,4] | x[5,4,6] i:i64[3,4,2]~turn:-4 u[3,4,2]",
     "axis=1 | axis=2 | axis=-1 | axis=-3", NULL},
    {"ScatterElements", "18 16", "f32 f16 bf16 f64 i32 i64 i8 u8",
     "x[5,7] i:i64[9,7]~0:4 u[9,7] | x[5,7] i:i64[3,7]~turn:5 u[3,7] | x[33,5] i:i32[40,5]~-33:32 u[40,5]",
     "reduction=add | reduction=mul", NULL},
    {"ScatterElements", "18", "f32 f16 bf16 f64 i32 i64 i8 u8", "x[5,7] i:i64[9,7]~0:4 u[9,7] | x[4,7] i:i64[5,4]~0:3 u[5,4]",
     "reduction=max | reduction=min", NULL},
    {"Scatter", "9", CASE_OLD,
     "x[5,7] i:i64[3,7]~turn:5 u[3,7] | x[5,7] i:i32[5,5]~turn:5 u[5,5] | x[9,9] i:i64[9,2]~turn:9 u[9,2]=",
     " | axis=1 | axis=-1", NULL},
    {"ScatterND", "22 18 16 13 11", CASE_ANY,
     "x[5,7]~any i:i64[4,2]~turn:5 u[4]~any | x[5,7] i:i64[3,1]~turn:5 u[3,7] | x[5,6,7] i:i64[3,2]~turn:-5 u[3,7] | x[9] "
     "i:i64[4,1]~turn:9= u[4]= | x[5,3] i:i64[0,2] u[0] | x[33,515] i:i64[20,1]~turn:33 u[20,515]"
     " | x[5,6,7]& i:i64[2,3]~turn:5 u[2]&",
     NULL, NULL},
    {"ScatterND", "18 16", "f32 f16 bf16 f64 i32 i64 i8 u8",
     "x[5,7] i:i64[9,1]~0:4 u[9,7] | x[5,7] i:i64[4,2]~0:4 u[4] | x[3,4,5] i:i64[6,2]~-3:2 u[6,5]",
     "reduction=add | reduction=mul", NULL},
    {"ScatterND", "18", "f32 f16 bf16 f64 i32 i64 i8 u8", "x[5,7] i:i64[9,1]~0:4 u[9,7] | x[5,7] i:i64[4,2]~0:4 u[4]",
     "reduction=max | reduction=min | reduction=none", NULL},
    {"TensorScatter", "24", CASE_ANY,
     "c[2,3,7,4] u[2,3,2,4] i:i64?{1,5} | c[2,3,7,4] u[2,3,2,4] | c[2,7,4] u[2,7,4] | c[2,3,7,4] u[2,3,0,4] i:i64?{7,0} | "
     "c[2,3,7,4]& u[2,3,2,4]& i:i64={0,3}",
     " | mode=circular", NULL},
    {"TensorScatter", "24", "f32 i64 bool", "c[2,7,3,4] u[2,5,3,4] i:i64?{1,6} | c[2,7,3,4] u[2,5,3,4] i:i64?{-3,12}",
     "*axis=1 mode=circular | axis=-3 mode=circular", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
