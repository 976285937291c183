/* Test cases of Einsum. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

const clv__case_row clv__cases_einsum[] = {
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
