/* Test cases of operators that permute axes and blocks. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

const clv__case_row clv__cases_layout[] = {
    {"Transpose", "22 21 13 1", CASE_ANY,
     "x[3,5,7,11]~any | x[5,7] | x[4] | x | x[2,0,3] | x[1,5,1] | x[65,67] | x[2,3,4,2,5] | x[5,7]&", NULL, NULL},
    {"Transpose", "13", "f32 f16 f64 i8 bool", "x[3,5,7,11] | x[2,64,9,9] | x[1,1,4,6] | x[2,0,3,4]",
     "perm=[0,2,3,1] | perm=[0,3,1,2] | perm=[0,2,1,3] | perm=[3,2,1,0] | perm=[0,1,3,2] | perm=[0,1,2,3] | perm=[1,0,2,3] | "
     "perm=[2,3,0,1]",
     NULL},
    {"Transpose", "13", "f32 u8 f64", "x[9,35,33] | x[1,7,3] | x[4,2,130]",
     "perm=[0,2,1] | perm=[1,0,2] | perm=[2,0,1] | perm=[1,2,0]", NULL},
    {"DepthToSpace", "22 13 11 1", CASE_ANY, "x[1,8,3,5]~any | x[2,12,1,4] | x[0,4,2,2] | x[1,64,7,7] | x[1,4,33,3]&",
     "blocksize=2", NULL},
    {"DepthToSpace", "13 11", "f32 f16 i32", "x[1,8,3,5] | x[2,16,9,4]",
     "blocksize=2 mode=CRD | blocksize=2 mode=DCR | blocksize=1", NULL},
    {"DepthToSpace", "13", "f32", "x[1,18,3,5]", "blocksize=3 | blocksize=3 mode=CRD", NULL},
    {"SpaceToDepth", "22 13 1", CASE_ANY, "x[1,2,4,6]~any | x[2,3,2,2] | x[0,3,4,4] | x[1,16,14,14] | x[1,1,34,2]&",
     "blocksize=2 | blocksize=1", NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
