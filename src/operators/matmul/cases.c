/* Cases of MatMul, Gemm and Einsum: see cases/cases.h for how the rows read. */
#include "check/cases/cases.h"

const clv__case_row clv__cases_matrix[] = {
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
    {"Einsum", "22 12", "f32 f16 f64 " CASE_INTEGERS,
     "a[5,7] b[7,3] | a[33,35] b[35,40] | a[0,4] b[4,2] | a[1,1] b[1,1] | a[5,7] b[7,3]=",
     "equation=ij,jk->ik | equation=ij,jk | equation=ij,jk->ki | equation=ij,jk->i", NULL},
    {"Einsum", "12", "f32 f64", "a[3,5,7] b[3,7,4] | a[2,9,8] b[2,8,1]",
     "equation=bij,bjk->bik | equation=bij,bjk->bki | equation=...ij,...jk->...ik", NULL},
    {"Einsum", "12", "f32 f16 f64", "a[2,3,4,5] b[2,3,6,5] | a[1,2,9,16] b[1,2,7,16]",
     "equation=bhqd,bhkd->bhqk | equation=bhqd,bhkd->bqhk", NULL},
    {"Einsum", "12", "f32 f64 i32", "a[4,5,6] | a[3,3,3]",
     "equation=ijk->kij | equation=ijk->ik | equation=ijk-> | equation=ijk->j", NULL},
    {"Einsum", "12", "f32 f64", "a[5,5] | a[1,1]", "equation=ii->i | equation=ii | equation=ij->ji", NULL},
    {"Einsum", "12", "f32 f64", "a[5] b[7] | a[1] b[4]", "equation=i,j->ij | equation=i,j->ji", NULL},
    {"Einsum", "12", "f32", "a[3,4] b[4,5] c[5,2] | a[1,7] b[7,3] c[3,9]", "equation=ab,bc,cd->ad", NULL},
    {"Einsum", "12", "f32", "a[2,3,4] b[4] | a[5,2,8] b[8]=", "equation=...i,i->...", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
