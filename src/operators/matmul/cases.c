/* Test cases of MatMul and Gemm, of floats and of 8-bit integers. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

const clv__case_row clv__cases_matmul[] = {
    {"MatMul", "22 13 9 1", "f32 f16 bf16 f64 i32 i64 u32 u64",
     "a[7,33] b[33,17]= | a[7,33] b[33,17] | a[1,64] b[64,48]= | a[1,1] b[1,1] | a[64,65] b[65,70]= | a[5] b[5] | a[5] b[5,3]="
     " | a[3,5] b[5] | a[2,3,5,7] b[2,3,7,4] | a[2,3,5,7] b[7,4]= | a[5,7] b[2,3,7,4] | a[2,1,5,7] b[3,7,4] | a[4,5,7] b[4,7,1]"
     " | a[2,3,1,9] b[2,3,9,8] | a[0,4] b[4,3]= | a[3,0] b[0,2] | a[3,4] b[4,0]= | a[0,3,4] b[0,4,2] | a[7,33]= b[33,17] | a[7] "
     "b[2,7,3]"
     " | a[2,4,7] b[7] | a[3,9]& b[9,5]& | a[17,130] b[130,33]= | a[2,2,3,4,5] b[3,5,3]",
     NULL, NULL},
    {"Gemm", "22 13 11 9", "f32 f16 bf16 f64 i32 i64 u32 u64",
     "a[7,33] b[33,17]= c[17]= | a[7,33] b[33,17]= | a[7,33] b[33,17] c[7,17] | a[7,33] b[33,17]= c[7,1]= | a[7,33] b[33,17]= c="
     " | a[7,33] b[33,17]= c[1,17]& | a[1,64] b[64,70]= c[70]= | a[65,64] b[64,33]= c[33]= | a[1,1] b[1,1] c[1] | a[0,4] b[4,3]= "
     "c[3]="
     " | a[3,0] b[0,2] c[2] | a[7,33] b[33,17]= -",
     NULL, NULL},
    {"Gemm", "13 7", "f32 f16 bf16 f64",
     "a[7,5] b[5,9]= c[9]=", "alpha=0.5 | beta=0.25 | alpha=-1.5 beta=2.0 | alpha=0.0 | beta=0.0", NULL},
    {"Gemm", "13 7", "f32 f16 f64", "a[5,7] b[5,9]= c[9]= | a[33,65] b[33,70]= c[65,1]= | a[5,7] b[5,9] c[7,9]",
     "transA=1 | transA=1 alpha=0.5 beta=2.0", NULL},
    {"Gemm", "13 7", "f32 f16 bf16 f64",
     "a[7,5] b[9,5]= c[9]= | a[33,65] b[70,65]= c[70]= | a[7,5] b[9,5] c[7,9] | a[1,64] b[50,64]= c[50]=",
     "transB=1 | transB=1 alpha=0.5 beta=2.0", NULL},
    {"Gemm", "13 7", "f32 f64", "a[5,7] b[9,5]= c[9]= | a[65,33] b[70,65] c[33,70]", "transA=1 transB=1", NULL},
    /* Scales are not powers of two, so that no scaled sum is halfway between two whole numbers. */
    {"MatMulInteger", "10", "u8 i8",
     "a[5,7]~any b:u8[7,9]~any za=(3) zb:u8=(5) | a[5,7]~any b:i8[7,9]~any | a[5,7]~any b:i8[7,9]~any - zb:i8=(-4) | "
     "a[33,35]~any b:i8[35,300]~any za=(3) zb:i8[300]~any= | a[2,3,5]~any b:u8[5,4]~any za[2,3,1]~any= | a[4,3,5]~any "
     "b:i8[4,5,2]~any za=(7) zb:i8[4,1,2]~any | a[6,5]~any b:u8[5,4]~any za[6]~any | a[7]~any b:i8[7]~any za=(1) | a[0,3] "
     "b:u8[3,4] | a[3,0] b:i8[0,4]",
     NULL, NULL},
    {"QLinearMatMul", "21 10", "u8 i8",
     "a[5,7]~any sa:f32=(0.031) za=(3) b:u8[7,9]~any sb:f32=(0.023) zb:u8=(5) sy:f32=(0.71) zy:u8=(9) | a[5,7]~any "
     "sa:f32=(0.031) za=(3) b:i8[7,9]~any sb:f32=(0.023) zb:i8=(-5) sy:f32=(0.71) zy:i8=(-9) | a[5,7]~any sa:f32[5]~0.01:0.1= "
     "za[5]~any= b:i8[7,9]~any sb:f32[9]~0.01:0.1= zb:i8[9]~any= sy:f32=(0.71) zy:u8=(99) | a[2,3,5]~any "
     "sa:f32[2,3,1]~0.01:0.1 za[2,3,1]~any b:u8[5,300]~any sb:f32=(0.023) zb:u8=(5) sy:f32=(0.71) zy:i8=(9) | a[33,35]~any "
     "sa:f32?(0.031) za?(3) b:u8[35,7]~any sb:f32?(0.023) zb:u8?(5) sy:f32?(1.7) zy:u8?(200)",
     NULL, NULL},
    /* Scales are exact in f16 and bf16, and zero points of Y are even, so halfway values round the same way on every device. */
    {"QLinearMatMul", "21", "u8 i8",
     "a[5,7]~any sa:f16=(0.03125) za=(3) b:u8[7,9]~any sb:f16=(0.09375) zb:u8=(5) sy:f16=(1) zy:u8=(8) | a[5,7]~any "
     "sa:bf16=(0.03125) za=(3) b:i8[7,9]~any sb:bf16=(0.09375) zb:i8=(5) sy:bf16=(1) zy:i8=(8)",
     NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
