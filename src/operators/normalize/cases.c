/* Test cases of the normalizations. See operators/cases.h for the syntax of the rows. */
#include "operators/cases.h"

#define BATCH(x, c) "x[" x "] s[" c "]~0.5:1.5= b[" c "]= m[" c "]= v[" c "]~0.5:2="

const clv__case_row clv__cases_normalize[] = {
    {"BatchNormalization", "22 15 14 9 7", CASE_FLOATS,
     BATCH("1,3,9,8", "3") " | " BATCH("2,5,7,7", "5") " | " BATCH("4,17", "17") " | " BATCH("2,3,33", "3") " | " BATCH(
         "1,2,3,4,5", "2") " | " BATCH("0,3,4,4", "3") " | " BATCH("1,64,6,6",
                                                                   "64") " | x[1,3,9,8] s[3]~0.5:1.5 b[3] m[3] v[3]~0.5:2 | "
                                                                         "x[1,3,9,8]& s[3]~0.5:1.5= b[3]= m[3] v[3]~0.5:2=",
     " | epsilon=0.1 | momentum=0.5", NULL},
    {"InstanceNormalization", "22 7", CASE_FLOATS,
     "x[1,3,9,8] s[3]~0.5:1.5= b[3]= | x[2,5,7,7] s[5]= b[5]= | x[2,3,33] s[3]= b[3]= | x[1,2,3,4,5] s[2]= b[2]= | x[1,3,9,8] "
     "s[3] b[3] | x[0,3,4,4] s[3]= b[3]="
     " | x[1,16,20,20] s[16]= b[16]=",
     " | epsilon=0.1", NULL},
    {"GroupNormalization", "22 21", CASE_FLOATS,
     "x[1,6,9,8] s[6]~0.5:1.5= b[6]= | x[2,6,33] s[6]= b[6]= | x[1,6,3,4,5] s[6] b[6] | x[2,24,8,8] s[24]= b[24]= | x[0,6,4] "
     "s[6]= b[6]= | x[3,12] s[12]= b[12]=",
     "num_groups=3 | num_groups=1 | num_groups=2 epsilon=0.1 | num_groups=6 | num_groups=3 stash_type=1", NULL},
    {"GroupNormalization", "18", "f32 f16", "x[1,6,9,8] s[3]~0.5:1.5= b[3]= | x[2,9,33] s[3]= b[3]=", "num_groups=3", NULL},
    {"LayerNormalization", "22 17", CASE_FLOATS,
     "x[2,5,64] s[64]~0.5:1.5= b[64]= | x[2,5,64] s[64]= | x[2,5,7] s[7] b[7] | x[3,515] s[515]= b[515]= | x[9] s[9]= b[9]= | "
     "x[2,3,4,5] s[5]= b[5]= | x[0,5,4] s[4]= b[4]= | x[2,5,1] s[1]= b[1]="
     " | x[2,5,64]~5:9 s[64]= b[64]= | x[1,7,768] s[768]= b[768]= | x[4,6]& s[6]= b[6]=",
     " | epsilon=0.1 | axis=-1 | >111", NULL},
    {"LayerNormalization", "17", "f32 f16 f64",
     "x[2,3,4,5] s[4,5]= b[4,5]= | x[3,2,7,9] s[7,9] | x[2,2,4,33] s[4,33]~0.5:1.5= b[4,33]=",
     "axis=2 | axis=-2 | >110 axis=-2 | >101 axis=2", NULL},
    {"LayerNormalization", "17", "f32", "x[3,4,5] s[3,4,5]= b[3,4,5]= | x[3,4,5] s[5]= b[5]= | x[3,4,5] s= b=", "axis=0", NULL},
    {"RMSNormalization", "23", CASE_FLOATS,
     "x[2,5,64] s[64]~0.5:1.5= | x[2,5,7] s[7] | x[3,515] s[515]= | x[9] s[9]= | x[0,5,4] s[4]= | x[1,7,768] s[768]= | x[4,6]& "
     "s[6]=",
     " | epsilon=0.1 | axis=-1", NULL},
    {"RMSNormalization", "23", "f32 f16", "x[2,3,4,5] s[4,5]= | x[2,2,4,33] s[4,33]=", "axis=2 | axis=-2", NULL},
    {"MeanVarianceNormalization", "22 13 9", CASE_FLOATS, "x[4,3,9,8] | x[1,5,4,4] | x[3,1,7,1] | x[4,3,5,5]&",
     " | axes=[2,3] | axes=[0] | axes=[1,-1]", NULL},
    {"LpNormalization", "22 1", CASE_FLOATS, "x[3,5,7]~0.1:2 | x[4,33]~-2:2 | x[515]~0.5:1 | x[2,0,3] | x[2,1,3]~0.5:1",
     " | p=1 | axis=0 | axis=0 p=1", NULL},
    {"LRN", "22 13 1", CASE_FLOATS, "x[1,7,5,6] | x[2,3,9,8] | x[1,16,11,3] | x[2,5,9] | x[0,3,4,4] | x[1,4,2,3,3]",
     "size=3 alpha=0.9 | size=3 | size=5 alpha=0.7 | size=4 alpha=0.8 | size=1 | size=3 alpha=0.5 | size=3 beta=0.5 | size=3 "
     "bias=2.0 | size=3 alpha=0.1 beta=1.5 bias=0.5",
     NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
