/* Test cases of Cast and CastLike, from every dtype to every other, and of BitCast. See operators/cases.h for the syntax of the
 * rows.
 */
#include "operators/cases.h"

#define TO_FLOATS "to=$f32 | to=$f16 | to=$bf16 | to=$f64"
#define TO_SIGNED "to=$i32 | to=$i64 | to=$i8 | to=$i16"
#define TO_SMALL "to=$f8e4m3fn | to=$f8e4m3fnuz | to=$f8e5m2 | to=$f8e5m2fnuz | to=$f8e8m0 | to=$f4e2m1"
#define TO_PACKED "to=$u4 | to=$i4 | to=$u2 | to=$i2"
#define TO_INTEGERS TO_SIGNED " | to=$u8 | to=$u16 | to=$u32 | to=$u64"

/* In the rows below, no float is outside the range of the integer dtype that it is cast to, because the specification leaves
 * the result undefined. */

const clv__case_row clv__cases_cast[] = {
    {"Cast", "21", "*" CASE_ANY, "x[3,5,7,11]~0:120", "*" TO_FLOATS " | " TO_INTEGERS " | to=$bool", NULL},
    {"Cast", "21", "*" CASE_FLOATS " " CASE_SIGNED, "x[33,35]~-100:100", "*" TO_FLOATS " | " TO_SIGNED " | to=$bool", NULL},
    {"Cast", "21", "*" CASE_INTEGERS, "x[33,35]~any", "*" TO_INTEGERS, NULL},
    {"Cast", "21", "*" CASE_FLOATS, "x[33,35]~nan | x[33,35]~max", "*" TO_FLOATS, NULL},
    {"Cast", "21 19 13 9", "f32 i64", "x[5,7]~0:9 | x | x[0,4] | x[1] | x[4099]~-99:99 | x[2,1,3,1,2] | x[5]&",
     "to=$i32 | to=$f16 | to=$bool", NULL},
    {"CastLike", "21 19 15", CASE_ANY,
     "x[5,7]~0:99 l:f16[1] | x[5,7]~0:99 l:i64 | x[4099]~0:99 l:bool[3]= | x[0,4] l:f64[2] | x~0:9 l:u8[1]~0:9= | x[5,7]~0:99 "
     "l:bf16[2,2]"
     " | x[5,7]~0:99 l:f32[1]",
     NULL, NULL},
    {"Cast", "25", "f32 f16 f64 bf16", "x[33,35]~-500:500 | x[5,7]~nan | x[33,35]~max", TO_SMALL, NULL},
    {"Cast", "24", "f32 f16", "x[5,7]~-400:400", "to=$f8e4m3fn saturate=0 | to=$f8e5m2 saturate=0", NULL},
    {"Cast", "25", "i32 u8 i64", "x[33,35]~0:120 | x[3,5,7]~0:9 | x[1]", TO_SMALL " | " TO_PACKED, NULL},
    {"Cast", "25", "f32 f16", "x[33,35]~0:1 | x[4099]~0:1", TO_PACKED, NULL},
    {"BitCast", "26", "f32 i32 u32", "x[33,35]~0:99 | x[0,4] | x~0:9", "to=$f32 | to=$i32 | to=$u32", NULL},
    {"BitCast", "26", "f64 i64 u64", "x[5,7]~0:99", "to=$f64 | to=$i64 | to=$u64", NULL},
    {"BitCast", "26", "f16 bf16 i16 u16", "x[5,7]~0:99", "to=$f16 | to=$bf16 | to=$i16 | to=$u16", NULL},
    {"BitCast", "26", "i8 u8 bool", "x[5,7]~0:1", "to=$i8 | to=$u8 | to=$bool", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
