/* Test cases of the reductions and of operators that work along one axis. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

/* Inputs, each with a list of axes. The lists contain each single axis, several axes, a negative axis and all axes. The inputs
 * include long and short rows, rows of one element, an input without elements, and a scalar. */
#define SHAPES(fill)                                                                                                    \
  "x[3,5,7,11]" fill " a:i64={1,-1} | x[3,5,7,11]" fill " a:i64={0} | x[3,5,7,11]" fill " a:i64={1} | x[3,5,7,11]" fill \
  " a:i64={3} | x[3,5,7,11]" fill " a:i64={2,3} | x[3,5,7,11]" fill " a:i64={0,2} | x[3,5,7,11]" fill                   \
  " a:i64={-2}"                                                                                                         \
  " | x[2,3,4]" fill " | x[2,3,4]" fill " a:i64={0,1,2} | x[4,1,6]" fill " a:i64={1} | x[2,0,3]" fill                   \
  " a:i64={0}"                                                                                                          \
  " | x[5,515]" fill " a:i64={1} | x[515,5]" fill " a:i64={0} | x[2,3,2,5,2]" fill " a:i64={1,3} | x[1,1,1]" fill       \
  " a:i64={1}"                                                                                                          \
  " | x" fill " | x[7]" fill " a:i64={0} | x[5,7]" fill " a:i64?{1} | x[1,64,7,7]" fill " a:i64={2,3} | x[2,3,4]" fill  \
  "& a:i64={-3}"
#define FLAGS " | keepdims=0 | keepdims=1 | noop_with_empty_axes=1"
#define LISTED "axes=[1,-1] | axes=[0] keepdims=0 | axes=[-1] | axes=[1,2] keepdims=0 | keepdims=0 | "

#define LINES "x[3,5,7,11] | x[4,1,6] | x[33,35] | x[5,515] | x[2,3,4,5,2] | x[1,3,1] | x[2,3]&"

const clv__case_row clv__cases_reduce[] = {
    {"ReduceSum", "22 13", "f32 f16 bf16 f64 i32 i64 u32 u64", SHAPES("") " | x[5,0,3] a:i64={1}", FLAGS, NULL},
    {"ReduceMean", "22 18", "f32 f16 bf16 f64 i32 i64 u32 u64", SHAPES(""), FLAGS, NULL},
    {"ReduceMax ReduceMin", "22 20 18", "f32 f16 bf16 f64 i32 i64 u32 u64 i8 u8 bool", SHAPES("") " | x[33,35]~inf a:i64={1}",
     FLAGS, NULL},
    {"ReduceMax ReduceMin", "20", "*i32 i64 u32 u64 i8 u8", "x[33,35]~any a:i64={0} | x[33,35]~any", NULL, NULL},
    {"ReduceProd", "22 18", CASE_FLOATS,
     "x[3,5,7,11]~0.8:1.2 a:i64={1,-1} | x[3,5,7]~0.8:1.2 a:i64={0} | x[3,5,7]~0.8:1.2"
     " | x[33,35]~-1.5:1.5 a:i64={1} | x[4,1]~-2:2 a:i64={1} | x[2,0,3] a:i64={0} | x[5,0,3] a:i64={1} | x",
     FLAGS, NULL},
    {"ReduceProd", "18", "i32 i64 u32 u64", "x[3,5,7]~1:3 a:i64={1} | x[2,3,4]~-3:3 a:i64={0,-1} | x", FLAGS, NULL},
    {"ReduceL1 ReduceSumSquare", "22 18", "f32 f16 bf16 f64 i32 i64 u32 u64", SHAPES("") " | x[5,0,3] a:i64={1}", FLAGS, NULL},
    {"ReduceL2", "22 18", CASE_FLOATS, SHAPES(""), FLAGS, NULL},
    {"ReduceLogSumExp", "22 18", CASE_FLOATS, SHAPES("") " | x[33,35]~40:90 a:i64={1} | x[33,35]~-90:-40 a:i64={0}", FLAGS, NULL},
    {"ReduceLogSum", "22 18", CASE_FLOATS, SHAPES("~0.1:3"), FLAGS, NULL},
    {"ReduceSum", "11 1", "f32 i32 f64 f16", "x[3,5,7,11] | x[33,35,2]", LISTED, NULL},
    {"ReduceMean ReduceMax ReduceMin ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp", "13 11 1", "f32 f64 f16",
     "x[3,5,7,11] | x[33,35,2]", LISTED, NULL},
    {"ReduceLogSum ReduceProd", "13 11 1", "f32 f64 f16", "x[3,5,4]~0.7:1.4 | x[5,3,2]~0.7:1.4", LISTED, NULL},
    {"ArgMax ArgMin", "22 13 12", CASE_NUMBERS, LINES " | x[33,35]~half | x[33,35]~0:3",
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
